"""Figures from import on, in fresh processes: first gradient and call, the demo, a deep chain."""

from __future__ import annotations

import json
import resource
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

SCRIPTS = {
    "numpy": "import numpy",
    "numgrad": "import numgrad; numgrad.Tensor",  # names are loaded when they are asked for
    "torch": "import torch",
    "jax": "import jax.numpy",
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
"""Programs of a fresh interpreter; its own start is not counted."""


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


def seconds(
    script: str,
    extra: Mapping[str, str],
    threads: int,
    setup: str = "",
    patience: float = 300.0,
) -> tuple[float, float]:
    """Seconds of wall clock and of CPU a fresh interpreter takes for ``script``, after ``setup``.

    Raises
    ------
    RuntimeError
        If the interpreter fails.
    TimeoutError
        If it takes longer than ``patience`` seconds.
    """
    text = (
        f"import time\n{setup}\nbegan, used = time.perf_counter(), time.process_time()\n"
        f"{script}\nprint(time.perf_counter() - began, time.process_time() - used)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", text],
            env=environment(threads, extra),
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"not done after {patience:.0f} s") from error
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


def summary(runs: Mapping[str, Runs]) -> dict[str, Any]:
    """The figures that go into JSON."""
    return {label: {"wall": r.wall.summary(), "cpu": r.cpu.summary()} for label, r in runs.items()}


def texts(runs: Mapping[str, Runs]) -> str:
    """Least seconds of wall clock and, in parentheses, of CPU."""
    return ", ".join(f"{label} {r.wall.min:.2f} s ({r.cpu.min:.2f})" for label, r in runs.items())


def measure_import(threads: int, rounds: int) -> list[Measured]:
    """``import numgrad`` with Tensors against ``import numpy``."""
    labels = ("numgrad", "numpy", "torch", "jax")
    times = _interleaved({k: SCRIPTS[k] for k in labels}, {}, threads, rounds)
    over = times["numgrad"].wall.min - times["numpy"].wall.min
    text = f"{texts(times)}: over NumPy"
    return [Measured("import", text, over, 0.08, summary(times))]


def _warm_and_empty(
    labels: Mapping[str, str], threads: int, rounds: int
) -> tuple[dict[str, Runs], Runs]:
    """Runs of scripts with warm kernel caches, and of ``numgrad``'s with an empty one."""
    with scratch() as path:
        extra = {"NUMGRAD_CACHE_DIR": str(path / "warm")}
        scripts = {label: SCRIPTS[name] for label, name in labels.items()}
        times = _interleaved(scripts, extra, threads, rounds)
        empty = Runs()
        for number in range(max(2, rounds // 2)):
            extra["NUMGRAD_CACHE_DIR"] = str(path / f"empty{number}")
            empty.add(*seconds(scripts["numgrad"], extra, threads))
    return times, empty


def _from_import(
    what: str, labels: Mapping[str, str], limits: tuple[float, float], threads: int, rounds: int
) -> list[Measured]:
    """Seconds over NumPy's import: with a warm and with an empty kernel cache."""
    times, empty = _warm_and_empty({**labels, "numpy": "numpy"}, threads, rounds)
    found = []
    for state, own, limit in zip(
        ("warm cache", "empty cache"), (times["numgrad"], empty), limits, strict=True
    ):
        runs = {**times, "numgrad": own}
        over = own.wall.min - times["numpy"].wall.min
        cpu = own.cpu.min - times["numpy"].cpu.min
        text = f"{texts(runs)}: {cpu:.2f} s of CPU over NumPy, wall clock"
        found.append(Measured(f"{what}/{state}", text, over, limit, summary(runs)))
    return found


def measure_first_gradient(threads: int, rounds: int) -> list[Measured]:
    """Import to first gradient, with a warm and with an empty kernel cache."""
    labels = {"numgrad": "gradient", "torch": "gradient-torch"}
    return _from_import("first gradient", labels, (0.12, 0.9), threads, rounds)


def measure_first_call(threads: int, rounds: int) -> list[Measured]:
    """Import to the first call of a compiled gradient, with a warm and an empty kernel cache."""
    labels = {"numgrad": "compiled", "jax": "compiled-jax"}
    return _from_import("import to first call", labels, (0.15, 1.5), threads, rounds)


def measure_demo(threads: int, rounds: int) -> list[Measured]:
    """CPU seconds of the whole demo with an empty kernel cache."""
    with scratch() as path:
        extra = {"NUMGRAD_CACHE_DIR": str(path / "cache"), "MPLBACKEND": "Agg"}
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "numgrad", "demo"],
            env=environment(threads, extra),
            cwd=path,
            capture_output=True,
            text=True,
            timeout=600,
        )
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = f"exit status {done.returncode}, {wall:.1f} s of wall clock: CPU seconds"
    details = {"status": done.returncode, "wall": wall}
    if done.returncode:
        details["stderr"] = done.stderr[-500:]
    return [Measured("demo/empty cache", text, cpu, 12.0, details)]


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
    "import to first call": measure_first_call,
    "deep chain": measure_deep_chain,
    "demo": measure_demo,
}
