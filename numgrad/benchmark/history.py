"""The files with which asv follows a package from commit to commit."""

from __future__ import annotations

import json
from pathlib import Path

from numgrad.errors import NumgradValueError

EXAMPLE = '''"""Benchmarks for asv: https://asv.readthedocs.io says what its names mean."""

import numpy as np

import numgrad as ng


def loss(x):
    """Put a function of your package here."""
    return np.sum(np.exp(np.tanh(x)) * x)


fast = ng.jit(ng.value_and_grad(loss))


class Gradient:
    """Value and gradient, eager and compiled."""

    params = (100, 100_000)
    param_names = ("n",)

    def setup(self, n):
        self.x = np.linspace(0.0, 1.0, n)
        fast(self.x)  # compiles

    def time_eager(self, n):
        ng.value_and_grad(loss)(self.x)

    def time_compiled(self, n):
        fast(self.x)
'''


def write(root: Path) -> list[Path]:
    """Write ``asv.conf.json`` and ``benchmarks/`` into the root of a package's repository.

    What asv puts into ``.asv/`` is ignored by git.

    Raises
    ------
    NumgradValueError
        If one of the files is there already; nothing is written then.
    """
    settings = {
        "version": 1,
        "project": root.name,
        "repo": ".",
        "branches": ["HEAD"],
        "environment_type": "virtualenv",
        "benchmark_dir": "benchmarks",
        "env_dir": ".asv/env",
        "results_dir": ".asv/results",
        "html_dir": ".asv/html",
    }
    made = {
        root / "asv.conf.json": json.dumps(settings, indent=4) + "\n",
        root / ".asv" / ".gitignore": "*\n",  # environments and results of this machine
        root / "benchmarks" / "__init__.py": "",
        root / "benchmarks" / "gradients.py": EXAMPLE,
    }
    there = [str(path.relative_to(root)) for path in made if path.exists()]
    if there:
        raise NumgradValueError(f"bench init: {', '.join(there)} is there already; move it away")
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return list(made)
