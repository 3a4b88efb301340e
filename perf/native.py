"""Calls of compiled functions from Numba, C and SciPy: ``python perf/native.py``.

Nanoseconds of CPU time for each call, the least of several rounds in turns: value and gradient of
``sum(exp(-x**2) * x)`` from a loop of Numba, from Python, and by JAX if that is there; then an
integral by ``scipy.integrate.quad``; leapfrog steps of a logistic regression in Numba; calls in two
threads; last how long new processes take, after NumPy, to load an exported function and call it,
and, after a call of the compiled function, to make a native function and to export it, without and
with it on disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numba
import numpy as np
from scipy.integrate import quad

import numgrad as ng


def rounds(calls: dict[str, tuple[Callable[[], Any], int]], seconds: float) -> dict[str, float]:
    """Nanoseconds of each call, of functions that make so many."""
    least = dict.fromkeys(calls, float("inf"))
    for function, _ in calls.values():
        function()
    end = time.process_time() + seconds
    while time.process_time() < end:
        for name, (function, count) in calls.items():
            start = time.process_time()
            function()
            least[name] = min(least[name], (time.process_time() - start) / count * 1e9)
    return least


def energy(x: Any) -> Any:
    return np.sum(np.exp(-x * x) * x)


@numba.njit
def by_hand(x, slope):
    total = 0.0
    for k in range(len(x)):
        e = np.exp(-x[k] * x[k])
        total += e * x[k]
        slope[k] = e - 2 * x[k] * x[k] * e
    return total


def repeated(function: Any) -> Any:
    """A loop of Numba that calls a function of an array and an array for the gradient."""

    @numba.njit
    def run(x, slope, count):
        total = 0.0
        for _ in range(count):
            total += function(x, slope)
        return total

    return run


def addressed(entry: Any) -> Any:
    """A loop of Numba that calls the C function by its address, of which nothing is checked."""
    kernel = entry.ctypes

    @numba.njit
    def run(x, slope, count):
        total, value = 0.0, np.empty(1)
        for _ in range(count):
            kernel(x.ctypes, len(x), value.ctypes, slope.ctypes)
            total += value[0]
        return total

    return run


def repeated_njit(function: Any) -> Any:
    """A loop of Numba that calls a function of an array, which makes the gradient's array."""

    @numba.njit
    def run(x, count):
        total = 0.0
        for _ in range(count):
            value, slope = function(x)
            total += value + slope[0]
        return total

    return run


def gradients(size: int) -> dict[str, tuple[Callable[[], Any], int]]:
    x, slope = np.linspace(-1, 1, size), np.empty(size)
    fast = ng.jit(ng.value_and_grad(energy))
    fast(x)
    count = max(20, 200_000 // size)
    entry = fast.native(x)
    native, hand, bare = repeated(entry.njit_into), repeated(by_hand), addressed(entry)
    made = repeated_njit(entry.njit)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "bare kernel by address": (lambda: bare(x, slope, count), count),
        "from Numba, .njit_into": (lambda: native(x, slope, count), count),
        "from Numba, .njit": (lambda: made(x, count), count),
        "by hand in Numba": (lambda: hand(x, slope, count), count),
        "from Python": (lambda: [fast(x) for _ in range(500)], 500),
    }
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return calls
    jax.config.update("jax_enable_x64", True)
    theirs = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.exp(-x * x) * x)))
    there = jnp.asarray(x)
    calls["JAX from Python"] = (lambda: [theirs(there) for _ in range(500)], 500)
    return calls


def integrals(frequency: float) -> dict[str, tuple[Callable[[], Any], int]]:
    def function(t: Any, w: Any) -> Any:
        return np.exp(-0.5 * t) * np.sin(w * t) ** 2

    native = ng.jit(function).native(0.0, 0.0)
    callback = native.low_level_callable("double(double)", frequency)
    return {
        "compiled integrand": (lambda: [quad(callback, 0, 10) for _ in range(50)], 50),
        "Python's integrand": (
            lambda: [quad(function, 0, 10, args=(frequency,)) for _ in range(50)],
            50,
        ),
    }


def leapfrogs(rows: int, columns: int) -> dict[str, tuple[Callable[[], Any], int]]:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(rows, columns))
    labels = (rng.random(rows) < 0.5) * 1.0

    def minus_log_density(w: Any) -> Any:
        logits = data @ w
        return np.sum(np.logaddexp(0.0, logits) - labels * logits) + 0.5 * np.sum(w * w)

    slope = ng.jit(ng.grad(minus_log_density)).native(np.zeros(columns)).njit

    @numba.njit
    def run(position, momentum, step, count):
        for _ in range(count):
            momentum = momentum - 0.5 * step * slope(position)
            position = position + step * momentum
            momentum = momentum - 0.5 * step * slope(position)
        return position

    start = np.zeros(columns)
    return {"leapfrog step": (lambda: run(start, start + 0.1, 1e-3, 200), 200)}


def in_threads(size: int, rounds: int = 5) -> dict[str, float]:
    """Nanoseconds of a call with one and with two threads: of the caller, and of all threads.

    That of the caller is its CPU time, which is what a call lasts where each thread has a core.
    """
    x = np.linspace(-1, 1, size)
    fast = ng.jit(ng.value_and_grad(energy))
    calls = {count: fast.native(x, threads=count) for count in (1, 2)}
    repeats, least = max(3, 2_000_000 // size), dict[str, float]()
    for _ in range(rounds):
        for count, call in calls.items():
            own, whole = time.thread_time(), time.process_time()
            for _ in range(repeats):
                call(x)
            own, whole = time.thread_time() - own, time.process_time() - whole
            for name, value in (("caller", own), ("all threads", whole)):
                name = f"threads={count}, {name}"
                least[name] = min(least.get(name, float("inf")), value / repeats * 1e9)
    return least


_FIRST_CALL = """
import numpy as np, sys, time
x = np.ones(10)
start = time.process_time()
{load}
function(x)
print(time.process_time() - start)
"""


def first_calls(repeats: int = 5) -> dict[str, float]:
    """Nanoseconds from NumPy to the result of an exported function, the least of processes."""
    folder = Path(tempfile.mkdtemp())
    ng.export(
        {"f": ng.jit(ng.value_and_grad(energy)).native(np.ones(10))}, folder / "f", module=True
    )
    ways = {
        "module that stands alone": "import f_native; function = f_native.f",
        "load_native": "import numgrad as ng; start = time.process_time(); "
        "function = ng.load_native('f')['f']",
        "import and load_native": "import numgrad as ng; function = ng.load_native('f')['f']",
        "import and ng.jit": "import numgrad as ng; function = ng.jit(ng.value_and_grad("
        "lambda x: np.sum(np.exp(-x * x) * x)))",
    }
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    least = {}
    for name, load in ways.items():
        command = [sys.executable, "-c", _FIRST_CALL.format(load=load)]
        times = [
            float(subprocess.check_output(command, cwd=folder, env=environment, text=True))
            for _ in range(repeats)
        ]
        least[name] = 1e9 * min(times)
    return least


_MADE = """
import numpy as np, sys, time
import numgrad as ng
x = np.ones(10)
fast = ng.jit(ng.value_and_grad(lambda x: np.sum(np.exp(-x * x) * x)))
fast(x)
start = time.process_time()
native = fast.native(x)
middle = time.process_time()
ng.export({"f": native}, "g")
print(middle - start, time.process_time() - middle)
"""


def made(repeats: int = 5) -> dict[str, float]:
    """Nanoseconds to make and to export a native function; from disk the least of processes."""
    folder = Path(tempfile.mkdtemp())
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    runs = []
    for k in range(repeats + 2):  # the first two have empty caches, of which one has bytecode
        environment["NUMGRAD_CACHE_DIR"] = str(folder / f"kernels{min(k, 1)}")
        command = [sys.executable, "-c", _MADE]
        text = subprocess.check_output(command, cwd=folder, env=environment, text=True)
        runs.append([1e9 * float(word) for word in text.split()])
    results = {}
    for number, what in enumerate(("native", "export")):
        results[f"{what}, nothing on disk"] = runs[1][number]
        results[f"{what}, from disk"] = min(run[number] for run in runs[2:])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each row")
    options = parser.parse_args()
    ng.set_num_threads(1)
    groups: dict[str, dict[str, Any]] = {
        f"value and gradient of {size} elements": gradients(size) for size in (10, 1000, 100_000)
    }
    for frequency in (1.0, 20.0):
        groups[f"quad of an integrand of frequency {frequency:.0f}"] = integrals(frequency)
    groups["logistic regression, 1000 x 10"] = leapfrogs(1000, 10)
    for title, calls in groups.items():
        print(title)
        for name, value in rounds(calls, options.seconds).items():
            print(f"    {name:26}{value:14,.0f} ns", flush=True)
    for size in (1000, 100_000, 1_000_000, 10_000_000):
        print(f"value and gradient of {size} elements in threads")
        for name, value in in_threads(size).items():
            print(f"    {name:26}{value:14,.0f} ns", flush=True)
    print("first call of a process, after NumPy")
    for name, value in first_calls().items():
        print(f"    {name:26}{value:14,.0f} ns", flush=True)
    print("after a call of the compiled function")
    for name, value in made().items():
        print(f"    {name:26}{value:14,.0f} ns", flush=True)


if __name__ == "__main__":
    main()
