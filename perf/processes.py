"""Figures that need fresh processes: import, first gradient and call, the demo, a deep chain."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import HERE, Samples, environment

BASELINE_KERNEL = """\
import numpy as np
from numba import njit

@njit(cache=True)
def kernel(x, out):
    for i in range(x.size):
        out[i] = x[i] * 2.0 + 1.0
"""

SCRIPTS = {
    "numpy": "import numpy",
    "numgrad": "import numgrad",
    "torch": "import torch",
    "jax": "import jax.numpy",
    "baseline": (
        "import numpy as np\n"
        "from baseline_kernel import kernel\n"
        "x, out = np.ones(100), np.empty(100)\n"
        "kernel(x, out)"
    ),
    "gradient": (
        "import numpy as np\n"
        "import numgrad as ng\n"
        "a = ng.tensor(np.linspace(-1, 1, 100), requires_grad=True)\n"
        "b = ng.tensor(np.linspace(1, 2, 100), requires_grad=True)\n"
        "ng.sum(ng.exp(ng.tanh(a * b) + a)).backward()\n"
        "assert a.grad is not None"
    ),
    "gradient-torch": (
        "import torch\n"
        "a = torch.linspace(-1, 1, 100, dtype=torch.float64, requires_grad=True)\n"
        "b = torch.linspace(1, 2, 100, dtype=torch.float64, requires_grad=True)\n"
        "torch.sum(torch.exp(torch.tanh(a * b) + a)).backward()\n"
        "assert a.grad is not None"
    ),
    "compiled": (
        "import numpy as np\n"
        "import numgrad as ng\n"
        "f = lambda a, b: np.sum(np.exp(np.tanh(a * b) + a))\n"
        "fast = ng.jit(ng.value_and_grad(f, (0, 1)))\n"
        "value, gradients = fast(np.linspace(-1, 1, 100), np.linspace(1, 2, 100))"
    ),
    "compiled-jax": (
        "import numpy as np\n"
        "import jax, jax.numpy as jnp\n"
        "f = lambda a, b: jnp.sum(jnp.exp(jnp.tanh(a * b) + a))\n"
        "fast = jax.jit(jax.value_and_grad(f, (0, 1)))\n"
        "value, gradients = fast(np.linspace(-1, 1, 100), np.linspace(1, 2, 100))"
    ),
}
"""What a fresh interpreter runs; its own start is not counted."""


@dataclass
class Measured:
    """One figure: what was seen, the value that is judged and the limit it has to keep."""

    name: str
    text: str
    value: float
    limit: float | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit


@dataclass
class Runs:
    """Wall clock and CPU seconds of several runs; other processes disturb the latter less."""

    wall: Samples = field(default_factory=Samples)
    cpu: Samples = field(default_factory=Samples)

    def add(self, wall: float, cpu: float) -> None:
        """Note one more run."""
        self.wall.seconds.append(wall)
        self.cpu.seconds.append(cpu)


def seconds(script: str, extra: Mapping[str, str], threads: int) -> tuple[float, float]:
    """Seconds of wall clock and of CPU a fresh interpreter takes for ``script`` alone."""
    text = (
        "import time\nbegan, used = time.perf_counter(), time.process_time()\n"
        f"{script}\nprint(time.perf_counter() - began, time.process_time() - used)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=environment(threads, extra),
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr[-800:]}")
    wall, cpu = done.stdout.split()[-2:]
    return float(wall), float(cpu)


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="numgrad-perf-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _interleaved(
    scripts: Mapping[str, str], extra: Mapping[str, str], threads: int, rounds: int
) -> dict[str, Runs]:
    """Seconds of each script; the first run, which fills caches, is not counted."""
    found: dict[str, Runs] = {}
    for label, script in scripts.items():
        try:
            seconds(script, extra, threads)
        except RuntimeError as error:
            if "ModuleNotFoundError" not in str(error):
                raise
            continue
        found[label] = Runs()
    for _ in range(rounds):
        for label in found:
            found[label].add(*seconds(scripts[label], extra, threads))
    return found


def _summary(runs: Mapping[str, Runs]) -> dict[str, Any]:
    return {label: {"wall": r.wall.summary(), "cpu": r.cpu.summary()} for label, r in runs.items()}


def _texts(runs: Mapping[str, Runs]) -> str:
    return ", ".join(f"{label} {r.wall.min:.2f} s ({r.cpu.min:.2f})" for label, r in runs.items())


def measure_import(threads: int, rounds: int) -> list[Measured]:
    """``import numgrad`` against ``import numpy``."""
    labels = ("numgrad", "numpy", "torch", "jax")
    times = _interleaved({k: SCRIPTS[k] for k in labels}, {}, threads, rounds)
    over = times["numgrad"].wall.min - times["numpy"].wall.min
    text = f"{_texts(times)}: over NumPy"
    return [Measured("import", text, over, 0.1, _summary(times))]


def _warm_and_empty(
    labels: Mapping[str, str], threads: int, rounds: int
) -> tuple[dict[str, Runs], Runs]:
    """Runs of scripts with warm kernel caches, and of ``numgrad``'s with an empty one."""
    with scratch() as path:
        (path / "baseline_kernel.py").write_text(BASELINE_KERNEL)
        settings = environment(threads)
        extra = {
            "NUMGRAD_CACHE_DIR": str(path / "warm"),
            "NUMBA_CACHE_DIR": str(path / "numba"),
            "PYTHONPATH": f"{path}:{settings['PYTHONPATH']}",
        }
        scripts = {label: SCRIPTS[name] for label, name in labels.items()}
        times = _interleaved(scripts, extra, threads, rounds)
        empty = Runs()
        for number in range(max(2, rounds // 2)):
            extra["NUMGRAD_CACHE_DIR"] = str(path / f"empty{number}")
            empty.add(*seconds(scripts["numgrad"], extra, threads))
    return times, empty


def measure_first_gradient(threads: int, rounds: int) -> list[Measured]:
    """Import to first gradient, with a warm and with an empty kernel cache."""
    labels = {"numgrad": "gradient", "baseline": "baseline", "torch": "gradient-torch"}
    times, empty = _warm_and_empty(labels, threads, rounds)
    over = times["numgrad"].wall.min - times["baseline"].wall.min
    text = f"{_texts(times)}: over NumPy + Numba + one cached kernel"
    runs = {"numgrad": empty}
    return [
        Measured("first gradient/warm cache", text, over, 0.2, _summary(times)),
        Measured(
            "first gradient/empty cache", _texts(runs) + ":", empty.wall.min, 3.0, _summary(runs)
        ),
    ]


def measure_first_call(threads: int, rounds: int) -> list[Measured]:
    """Import to the first call of a compiled gradient, from disk and with an empty kernel cache."""
    labels = {"numgrad": "compiled", "baseline": "baseline", "jax": "compiled-jax"}
    times, empty = _warm_and_empty(labels, threads, rounds)
    baseline = times["baseline"].wall.min
    over = "over NumPy + Numba + one cached kernel"
    runs = {"numgrad": empty, "baseline": times["baseline"]}
    return [
        Measured(
            "first call/from disk",
            f"{_texts(times)}: {over}",
            times["numgrad"].wall.min - baseline,
            0.2,
            _summary(times),
        ),
        Measured(
            "first call/compiled",
            f"{_texts(runs)}: {over}",
            empty.wall.min - baseline,
            1.5,
            _summary(runs),
        ),
    ]


def measure_demo(threads: int, rounds: int) -> list[Measured]:
    """The whole demo with an empty kernel cache."""
    with scratch() as path:
        extra = {"NUMGRAD_CACHE_DIR": str(path / "cache"), "MPLBACKEND": "Agg"}
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "numgrad", "demo"],
            env=environment(threads, extra),
            cwd=path,
            capture_output=True,
            text=True,
            timeout=600,
        )
        wall = time.perf_counter() - began
    text = f"exit status {done.returncode}: wall clock"
    details = {"status": done.returncode, "stderr": done.stderr[-500:] if done.returncode else ""}
    return [Measured("demo/empty cache", text, wall, 60.0, details)]


def measure_deep_chain(threads: int, rounds: int) -> list[Measured]:
    """A chain of a million nodes: time and memory a node, against those of shorter chains."""
    sizes = (250_000, 500_000, 1_000_000)
    figures: dict[str, dict[int, dict[str, float]]] = {}
    for library in ("numgrad", "torch"):
        for nodes in sizes:
            for _ in range(max(1, min(3, rounds // 2))):
                done = subprocess.run(
                    [sys.executable, str(HERE / "deep_chain.py"), library, str(nodes)],
                    env=environment(threads),
                    capture_output=True,
                    text=True,
                    timeout=600,
                )
                if done.returncode:
                    if "ModuleNotFoundError" in done.stderr:
                        break
                    raise RuntimeError(
                        f"{library}, {nodes} nodes: status {done.returncode} {done.stderr[-500:]}"
                    )
                new = json.loads(done.stdout)
                old = figures.setdefault(library, {}).setdefault(nodes, new)
                figures[library][nodes] = {k: min(old[k], new[k]) for k in new}
    least, most = sizes[0], sizes[-1]
    found = []
    for key, what in (("build", "ns"), ("backward", "ns"), ("release", "ns"), ("bytes", "bytes")):
        factor = 1e9 if what == "ns" else 1
        texts = []
        for library, by_size in figures.items():
            per_node = [f"{by_size[n][key] * factor / n:.0f}" for n in sizes]
            texts.append(f"{library} {'/'.join(per_node)}")
        own = figures["numgrad"]
        growth = own[most][key] / most / max(own[least][key] / least, 1e-12)
        limit = 1.25 if key in ("backward", "bytes") else None
        text = f"{what} a node at 1/4, 1/2, 1 million: {', '.join(texts)}: growth a node"
        found.append(Measured(f"deep chain/{key}", text, growth, limit, figures))
    return found


MEASURES: dict[str, Callable[[int, int], list[Measured]]] = {
    "import": measure_import,
    "first gradient": measure_first_gradient,
    "first call": measure_first_call,
    "deep chain": measure_deep_chain,
    "demo": measure_demo,
}
