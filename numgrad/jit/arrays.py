"""Arrays of a trace, and the line of the user's code that is being traced."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from numgrad.errors import NumgradTraceError
from numgrad.jit.graph import Shape, Value
from numgrad.op.abstract import AbstractArray

if TYPE_CHECKING:
    from numgrad.jit.trace import Tracer

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SKIPPED = (_HOME, os.path.dirname(np.__file__) + os.sep)
_BETWEEN = ("contextlib.py", "functools.py")


def user_line() -> str | None:
    """The place in the user's code that is being run, as ``file:line``."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_SKIPPED) and not name.endswith(_BETWEEN):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


class _Flags:
    c_contiguous = writeable = True


class TracedArray(AbstractArray):
    """An array of a trace: the value of the graph that it is.

    ``base`` is the array of which it is a view, as for ndarrays.
    """

    __slots__ = ("_value", "base", "tracer")

    def __init__(self, tracer: Tracer, value: Value, base: TracedArray | None = None) -> None:
        self.tracer, self._value, self.base = tracer, value, base

    @property
    def value(self) -> Value:
        """The value of the graph."""
        return self._value

    @property
    def shape(self) -> Shape:
        """Lengths of the axes, with all that is known of them by now."""
        self._check_alive()
        return self.tracer.resolved(self._value.shape)

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the elements."""
        self._check_alive()
        return self._value.dtype

    @property
    def flags(self) -> type[_Flags]:
        """What is asked of the memory of ndarrays."""
        self._check_alive()
        return _Flags

    def copy(self) -> TracedArray:
        """The same value, of which this is no view."""
        return TracedArray(self.tracer, self.value)

    def _check_alive(self) -> None:
        if self.tracer.ended:
            raise NumgradTraceError(
                f"{_at(user_line())}a Tensor that belongs to a finished trace was used: the "
                "compiled function stored it somewhere (a global, an attribute, a list) while it "
                "was traced, where it has no numbers; return the value from the function instead"
            )

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise: ``what`` needs numbers."""
        self._check_alive()
        raise NumgradTraceError(
            f"{_at(user_line())}{what} needs the numbers of an array of shape "
            f"{self.shape} and dtype {self.dtype}, but ng.jit traces the function, where arrays "
            f"have none yet; {remedy}"
        )

    def __repr__(self) -> str:
        value = self._value
        return f"<traced {value.dtype} {value.shape}>"


def _at(line: str | None) -> str:
    return f"{line}: " if line else ""
