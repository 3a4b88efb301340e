"""Fresh processes: import, first gradient and first calls, with a warm and an empty cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from . import ROOT

sys.path.insert(0, os.path.join(ROOT, "perf"))
import first_calls

GRADIENT = """
import numpy as np
import numgrad as ng
a = ng.tensor(np.linspace(-1, 1, 100), requires_grad=True)
b = ng.tensor(np.linspace(1, 2, 100), requires_grad=True)
ng.sum(ng.exp(ng.tanh(a * b) + a)).backward()
"""


def _run(script: str, cache: str | None = None) -> float:
    """Seconds a fresh interpreter takes for ``script``, without its own start."""
    settings = dict(os.environ, PYTHONPATH=ROOT)
    if cache is not None:
        settings["NUMGRAD_CACHE_DIR"] = cache
    text = f"import time\nbegan = time.perf_counter()\n{script}\nprint(time.perf_counter() - began)"
    done = subprocess.run(
        [sys.executable, "-c", text], env=settings, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def _least(script: str, cache: str | None = None, runs: int = 5) -> float:
    _run(script, cache)
    return min(_run(script, cache) for _ in range(runs))


class Import:
    """``import`` of the package and of what it is measured against."""

    params = ("numgrad", "numpy", "numba")
    param_names = ("module",)
    unit = "s"

    def track_import(self, module: str) -> float:
        return _least(f"import {module}")


class FirstGradient:
    """From the import to the first gradient of ``sum(exp(tanh(a * b) + a))``."""

    unit = "s"
    timeout = 300

    def track_warm_cache(self) -> float:
        with tempfile.TemporaryDirectory(prefix="numgrad-perf-") as cache:
            return _least(GRADIENT, cache)

    def track_empty_cache(self) -> float:
        found = []
        for _ in range(2):
            with tempfile.TemporaryDirectory(prefix="numgrad-perf-") as cache:
                found.append(_run(GRADIENT, cache))
        return min(found)


class FirstCalls:
    """CPU seconds of first calls with an empty kernel cache."""

    params = tuple(first_calls.FIRST_CALLS)
    param_names = ("function",)
    unit = "s"
    timeout = 600

    def track_cpu(self, name: str) -> float:
        case = first_calls.FIRST_CALLS[name]
        return min(first_calls.first_call(case, "numgrad", 2, 300.0)[1] for _ in range(2))
