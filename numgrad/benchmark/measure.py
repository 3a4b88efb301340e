"""Benchmarks of a file timed in processes of their own: Note [Forms] in ``worker``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any

from numgrad.benchmark import worker
from numgrad.benchmark.worker import COMPILED, EAGER
from numgrad.errors import NumgradValueError

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
            seconds = self._ask(library, worker.sample, measured.name, form, SLICE_SECONDS)
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
                measured.first[form] = pool.submit(worker.first, measured.name, form).result()
                measured.memory[form] = pool.submit(worker.memory, measured.name, form).result()
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
            return pool, pool.submit(worker.read, str(self.path), variables).result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _explained(error: BaseException) -> str:
    if isinstance(error, BrokenExecutor):
        return "its process ended: by os._exit, a signal, or for want of memory"
    return f"{type(error).__name__}: {error}".splitlines()[0]
