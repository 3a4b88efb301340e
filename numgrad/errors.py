"""Exceptions: each is a ``NumgradError`` and the built-in that a caller would catch; warnings."""

import sys
import warnings
from _thread import _local  # that of ``threading``, whose import takes half a millisecond
from typing import Any

from numpy.linalg import LinAlgError as _LinAlgError

from numgrad.libraries import PACKAGE, is_users

__all__ = [
    "GradcheckError", "InterpretedLoopWarning", "NumgradAssertionError", "NumgradAttributeError",
    "NumgradError", "NumgradFloatingPointError", "NumgradIndexError", "NumgradKernelError",
    "NumgradKeyError", "NumgradLinAlgError", "NumgradNotImplementedError", "NumgradOverflowError",
    "NumgradRuntimeError", "NumgradTraceError", "NumgradTypeError", "NumgradValueError",
    "NumgradWarning", "NumgradZeroDivisionError", "UnrolledLoopWarning",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def generated(name: str) -> str:
    """The file name of code written at run time, one of ``PACKAGE``."""
    return f"{PACKAGE}<{name}>"


class _Refused(_local):
    """The functions of a thread, outermost first, in which refusals are kept."""

    scopes: tuple[Any, ...] = ()


REFUSED = _Refused()
"""Note [Refusals] in ``core.refusals``."""


class NumgradError(Exception):
    """Base class of every error raised by numgrad."""


class NumgradTypeError(NumgradError, TypeError):
    """An argument of the wrong kind or dtype."""


class NumgradKernelError(NumgradTypeError):
    """Code that ``ng.kernel`` cannot differentiate; the message has its line and a remedy."""


class NumgradTraceError(NumgradTypeError):
    """Error of a step that needs numbers while ``ng.jit`` traces, when there are none yet."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for scope in REFUSED.scopes:  # Note [Refusals] in ``core.refusals``
            if scope.traced:
                scope.note(self)


class NumgradOverflowError(NumgradTypeError, OverflowError):
    """A number that a dtype cannot hold."""


class NumgradValueError(NumgradError, ValueError):
    """An argument of the right kind with a value that cannot be used, such as a shape."""


class NumgradLinAlgError(NumgradValueError, _LinAlgError):
    """A matrix that an operation of linear algebra cannot take, such as a singular one."""


class NumgradZeroDivisionError(NumgradError, ZeroDivisionError):
    """A division by zero that has no result."""


class NumgradFloatingPointError(NumgradError, FloatingPointError):
    """A result that is NaN or infinite where ``np.errstate`` asks for an error."""


class NumgradIndexError(NumgradError, IndexError):
    """An index or axis outside its range."""


class NumgradKeyError(NumgradError, KeyError):
    """A name that cannot be used, is in use, or is not there."""

    __str__ = Exception.__str__  # that of KeyError shows the message in quotes


class NumgradRuntimeError(NumgradError, RuntimeError):
    """An operation that is not possible in the present state, such as a second backward."""


class GradcheckError(NumgradRuntimeError):
    """A gradient that disagrees with finite differences."""


class NumgradAttributeError(NumgradError, AttributeError):
    """A name that an object does not have."""


class NumgradImportError(NumgradError, ImportError):
    """A module that does not exist here."""


class NumgradAssertionError(NumgradError, AssertionError):
    """Error of an object that was changed, so that what must hold of it does not."""


class NumgradNotImplementedError(NumgradError, NotImplementedError):
    """Something that a user's own code would have to define, and does not."""


class NumgradWarning(UserWarning):
    """Base class of warnings that have a class of their own, to filter them by it."""


class InterpretedLoopWarning(NumgradWarning):
    """Many steps of a compiled function's loop are made in Python, where they take long."""


class UnrolledLoopWarning(NumgradWarning):
    """A Python loop became so many operations of a compiled function that compiling takes long."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's innermost line; if there is none, at the first outside of this package."""
    level, outside, frame = 1, 0, sys._getframe()
    while frame is not None and not is_users(file := frame.f_code.co_filename):
        if not (outside or file.startswith(PACKAGE)):
            outside = level
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level if frame is not None else outside or level)
