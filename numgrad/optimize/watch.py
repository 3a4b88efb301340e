"""Progress of a solver: evaluations, the best point, the user's errors, a progress line."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from numgrad import config
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradValueError, warn
from numgrad.progress import ProgressLine


class _Solving(threading.local):
    """How many solvers, one within the other, are calling a user's function.

    ``inner`` is whether it called one of SciPy's solvers, with which it cannot be compiled.
    """

    depth = 0
    inner = False


SOLVING = _Solving()


SLOW = 1.0
"""Seconds that evaluations of functions which are not compiled take in all before a hint."""


class _Told:
    """Whether the hint was given in this process."""

    once = False


class Watch:
    """Keeps the best point, and tells errors of the user's functions from those of the solver.

    Attributes
    ----------
    count
        Evaluations so far.
    best
        The smallest value and its vector.
    plain
        Whether the user's function is not compiled though it could be.
    """

    plain = False

    def __init__(self, name: str, progress: bool = False, on_interrupt: str = "raise") -> None:
        if on_interrupt not in ("raise", "return"):
            raise NumgradValueError(
                f"{name}: on_interrupt is 'raise' or 'return', got {on_interrupt!r}"
            )
        self.name, self.progress, self.on_interrupt = name, progress, on_interrupt
        self.count = 0
        self.best: tuple[float, np.ndarray] | None = None
        self.raised: BaseException | None = None
        self._line = ProgressLine()
        self._seconds = 0.0

    def evaluated(self, value: float, x: np.ndarray) -> None:
        """Take note of a value that is to become small, at a vector that nobody writes to."""
        self.count += 1
        if isfinite(value) and (self.best is None or value < self.best[0]):
            self.best = value, x
        if self.progress:
            self._line.show(self._text())

    def _text(self) -> str:
        best = "" if self.best is None else f", best {self.best[0]:.6g}"
        return f"{self.name}: {self.count} evaluations{best}"

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the user's; its errors are remembered."""
        SOLVING.depth += 1
        begin = time.perf_counter()
        try:
            return function(*args)
        except BaseException as error:
            self.raised = error
            raise
        finally:
            SOLVING.depth -= 1
            if self.count > 1:  # kernels of operations are compiled before
                self._seconds += time.perf_counter() - begin

    def start(self, value: float, describe: Callable[[], str]) -> None:
        """Refuse a first value with which no solver gets anywhere."""
        if self.count <= 1 and not np.isfinite(value):
            self.raised = NumgradValueError(
                f"{self.name}: {describe()} is {value} at the start; start where it is finite"
            )
            raise self.raised

    def interrupted(self, x: np.ndarray, **others: Any) -> OptimizeResult:
        """The result after Ctrl-C, at the best point."""
        return OptimizeResult(
            x=x, success=False, status=-1, nfev=self.count,
            message="Interrupted from the keyboard; this is the best point so far.", **others,
        )  # fmt: skip

    def run(
        self, solver: Callable[[], Any], interrupted: Callable[[float, np.ndarray], Any]
    ) -> Any:
        """The result of a solver, or what ``interrupted`` makes of the best point."""
        SOLVING.inner = False
        try:
            # Trial steps overflow; the solvers step back.
            with self._named(), np.errstate(all="ignore"):
                return solver()
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or self.best is None:
                raise
            return interrupted(*self.best)
        finally:
            self._hint()
            SOLVING.inner = SOLVING.depth > 0
            if self.progress:
                self._line.end(self._text())

    def _hint(self) -> None:
        """Say once that functions can be compiled, where that would have saved time."""
        slow = self.plain and not SOLVING.inner and self._seconds > SLOW
        if slow and not _Told.once and config.jit:
            _Told.once = True
            warn(
                f"{self.name}: {self.count} evaluations and their derivatives took "
                f"{self._seconds:.1f} s in code that is not compiled; jit=True compiles it"
            )

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (NumgradError, KeyboardInterrupt):
            raise
        except Exception as error:
            if error is self.raised or self.count == 0:
                raise  # the user's own; or SciPy's about its arguments
            where = "" if self.best is None else f"; the best value was {self.best[0]:.6g}"
            raise NumgradRuntimeError(
                f"{self.name}: the solver failed after {self.count} evaluations with "
                f"{type(error).__name__}: {error}{where}; try another method, or a start that is "
                "scaled better"
            ) from error
