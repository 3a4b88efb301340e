"""Benchmarks of a file timed in processes of their own, which take samples on demand.

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
import tempfile
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any

from numgrad.benchmark.declaration import Benchmark, collect
from numgrad.errors import NumgradTypeError, NumgradValueError

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


NUMGRAD = "numgrad"
SLICE_SECONDS = 0.05


@dataclass
class Measured:
    """Measurements of one benchmark.

    Attributes
    ----------
    seconds
        By form, the smallest time of a call in each round.
    first
        By form, seconds of the first call with an empty kernel cache.
    memory
        By form, bytes that a call has at most beyond its arguments.
    errors
        By form, why there is no figure.
    """

    name: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Session:
    """The processes that time a file; as a context, it ends them.

    Parameters
    ----------
    path
        The file of benchmarks.
    libraries
        Those whose counterparts are timed too.

    Raises
    ------
    NumgradValueError
        If the file cannot be run, has no benchmark, or none has a counterpart in a library.
    """

    def __init__(self, path: Path, libraries: Sequence[str] = ()) -> None:
        self.path = path
        self._pools: dict[str, ProcessPoolExecutor] = {}
        self._pools[NUMGRAD], self.counterparts = self._pool({})
        known = {library for names in self.counterparts.values() for library in names}
        for library in libraries:
            if library not in known:
                self.close()
                raise NumgradValueError(
                    f"bench {path}: no benchmark has a counterpart in {library!r}; declare one "
                    f"with @ng.benchmark.against(bench_..., {library!r})"
                )
        self.libraries = tuple(libraries)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)
        self._pools.clear()

    def measure(
        self, names: Sequence[str], rounds: int, *, compiled: bool = True
    ) -> Iterator[Measured]:
        """Time benchmarks, one after the other; what fails is an entry of ``errors``."""
        for name in names:
            measured = Measured(name)
            forms = [EAGER, *([COMPILED] if compiled else [])]
            for form in forms:
                self._alone(measured, form)
            forms += [k for k in self.libraries if k in self.counterparts[name]]
            for turn in range(rounds):
                for form in forms[turn % len(forms) :] + forms[: turn % len(forms)]:
                    if form not in measured.errors:
                        self._sample(measured, form)
            yield measured

    def _sample(self, measured: Measured, form: str) -> None:
        library = NUMGRAD if form in (EAGER, COMPILED) else form
        try:
            seconds = self._ask(library, sample, measured.name, form, SLICE_SECONDS)
        except (Exception, SystemExit) as error:
            measured.seconds.pop(form, None)
            measured.errors[form] = _explained(error)
            self._pools.pop(library).shutdown(cancel_futures=True)
        else:
            measured.seconds.setdefault(form, []).append(seconds)

    def _alone(self, measured: Measured, form: str) -> None:
        """First call and memory, in a process that starts without kernels."""
        with tempfile.TemporaryDirectory(prefix="numgrad-bench-") as kernels:
            pool, _ = self._pool({"NUMGRAD_CACHE_DIR": kernels})
            try:
                measured.first[form] = pool.submit(first, measured.name, form).result()
                measured.memory[form] = pool.submit(memory, measured.name, form).result()
            except (Exception, SystemExit) as error:
                measured.errors[form] = _explained(error)
            finally:
                pool.shutdown(cancel_futures=True)

    def _ask(self, library: str, function: Any, *arguments: Any) -> Any:
        if library not in self._pools:
            self._pools[library], _ = self._pool({})
        return self._pools[library].submit(function, *arguments).result()

    def _pool(self, variables: dict[str, str]) -> tuple[ProcessPoolExecutor, dict[str, list[str]]]:
        """A process that has read the file, and the benchmarks with their counterparts."""
        pool = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            return pool, pool.submit(read, str(self.path), variables).result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _explained(error: BaseException) -> str:
    if isinstance(error, BrokenExecutor):
        return "its process ended: by os._exit, a signal, or for want of memory"
    return f"{type(error).__name__}: {error}".splitlines()[0]
