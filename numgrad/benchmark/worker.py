"""Process that times benchmarks: it holds one library's, and takes samples on demand.

Note [Forms]
------------
A benchmark is timed in forms: ``eager`` is the function as it is, ``compiled`` what ``ng.jit``
makes of it, and the name of a library its counterpart. Each library has a process, which a pool of
one worker keeps; samples are asked for in turns, since other work on the machine slows whole
stretches of seconds. A sample repeats the call for about a millisecond, short enough that some fit
between two interruptions, and the smallest sample of each turn is kept.
"""

from __future__ import annotations

import functools
import inspect
import os
import time
import timeit
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numgrad.benchmark.declaration import Benchmark, collect
from numgrad.errors import NumgradTypeError

EAGER, COMPILED = "eager", "compiled"
SAMPLE_SECONDS = 0.001

_benchmarks: dict[str, Benchmark] = {}
_timers: dict[tuple[str, str], tuple[timeit.Timer, int]] = {}


def read(path: str, variables: dict[str, str]) -> dict[str, list[str]]:
    """Read the file, with further environment variables; each benchmark's counterparts."""
    os.environ.update(variables)
    _benchmarks.update(collect(Path(path)))
    return {name: list(b.declared.counterparts) for name, b in _benchmarks.items()}


def first(name: str, form: str) -> float:
    """Seconds of the first call in this process."""
    call = _call(name, form)
    began = time.perf_counter()
    result = call()
    took = time.perf_counter() - began
    if inspect.isroutine(result) or isinstance(result, functools.partial):
        raise NumgradTypeError(
            f"{name}: returns a function, which nothing calls, so its time is not that of a "
            "computation; call it in the benchmark, or prepare it outside"
        )
    return took


def sample(name: str, form: str, seconds: float) -> float:
    """The smallest time of a call in ``seconds``; calls before are not counted."""
    if (name, form) not in _timers:
        timer = timeit.Timer(_call(name, form), "import gc; gc.enable()")
        timer.timeit(2)  # compiles
        number = 1
        while min(timer.timeit(number) for _ in range(3)) < SAMPLE_SECONDS / 2:
            number *= 2
        _timers[name, form] = timer, number
    timer, number = _timers[name, form]
    end, smallest = time.perf_counter() + seconds, float("inf")
    while smallest == float("inf") or time.perf_counter() < end:
        smallest = min(smallest, timer.timeit(number) / number)
    return smallest


def memory(name: str, form: str) -> int:
    """Bytes of arrays and Python objects that a call has at most, beyond its arguments.

    Without what is made once: calls before compile and import, and the least of some calls counts.
    """
    call = _call(name, form)
    for _ in range(3):
        call()
    tracemalloc.start()
    try:
        peaks = []
        for _ in range(3):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            call()
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return min(peaks)
    finally:
        tracemalloc.stop()


def _call(name: str, form: str) -> Callable[[], Any]:
    """A call without arguments, which waits for a result that is computed in the background."""
    benchmark = _benchmarks[name]
    function = benchmark.declared.counterparts.get(form, benchmark.function)
    arguments = benchmark.arguments()
    benchmark.check(function, arguments)
    if form == COMPILED:
        import numgrad as ng

        function = ng.jit(function)

    def call() -> Any:
        result = function(**arguments)
        if form == "jax":
            import jax  # pyright: ignore[reportMissingImports]

            jax.block_until_ready(result)
        return result

    return call
