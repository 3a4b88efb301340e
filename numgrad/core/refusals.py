"""Errors of a transformation that the function itself catches.

Note [Refusals]
---------------
What a traced or batched function cannot do, such as ``float(x)``, raises an error that eager code
would not. If a ``try`` of the function, or ``contextlib.suppress``, catches it, the function goes
on where eager code does not, and what it returns is wrong. So such errors are kept while it runs,
and one that it caught is raised in the end. Who caught it is the outermost frame of its traceback.
Code of this package, of Python and of libraries for arrays may ask and go on: it does the same with
an array for which the answer is no.
"""

import sys
from types import FrameType
from typing import Any, Self

from numgrad.core.asides import runs_aside
from numgrad.core.bytecode import has_handler
from numgrad.errors import REFUSED, NumgradError
from numgrad.libraries import PACKAGE, is_of_arrays, is_pythons

_ABOUT_SHAPES = "expected a sequence of integers or a single integer, got"
"""NumPy's words where something is no shape: they replace the error that says why."""


class Refusals:
    """Keeps what is refused while a function runs, in a ``with`` block: Note [Refusals].

    Parameters
    ----------
    traced
        Whether it is a trace, to which errors of traces inside of it count too; else only what is
        refused in a batch counts.
    """

    def __init__(self, *, traced: bool) -> None:
        self.traced = traced
        self.errors: list[NumgradError] = []
        self.entry = 0

    def note(self, error: NumgradError) -> None:
        """Keep an error, unless it is that of a finalizer: Note [Asides] in ``asides``."""
        if not runs_aside(self.entry):
            self.errors.append(error)

    def __enter__(self) -> Self:
        self.entry = id(_begun_in(sys._getframe(1)))
        REFUSED.scopes = (*REFUSED.scopes, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: Any
    ) -> None:
        """Raise the first error that the function caught, unless it is the one that comes out."""
        REFUSED.scopes = REFUSED.scopes[:-1]
        errors, self.errors = self.errors, []
        if error is not None and not isinstance(error, Exception):
            return
        if errors and type(error) is TypeError and str(error).startswith(_ABOUT_SHAPES):
            raise errors[-1] from None
        chain = _chain(error)
        for refused in errors:
            if refused is error:
                return
            if _caught_by_user(refused) or (
                refused in chain and not isinstance(error, NumgradError)
            ):
                raise refused from (None if refused in chain else error)


def _begun_in(frame: FrameType) -> FrameType:
    """The frame of the ``with`` block."""
    while frame.f_code.co_name == "__enter__" and frame.f_back is not None:
        frame = frame.f_back
    return frame


def replaced_by_numpy(error: ValueError) -> NumgradError | None:
    """The error of ours that NumPy replaced where a Tensor was to be an element of an ndarray."""
    cause = error.__cause__
    if isinstance(cause, NumgradError) and str(error).startswith("setting an array element"):
        cause.__cause__, cause.__suppress_context__ = None, True
        return cause
    return None


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and those that led to it."""
    errors: list[BaseException] = []
    while error is not None and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors


def _caught_by_user(error: BaseException) -> bool:
    """Whether an error that was raised ended in the user's code."""
    traceback = error.__traceback__
    if traceback is None:  # it was made and not raised
        return False
    frame: FrameType | None = traceback.tb_frame
    if frame.f_code.co_filename.startswith(PACKAGE) and not has_handler(traceback):
        frame = frame.f_back  # it went into C, where NumPy replaced it by an error of its own
    return frame is not None and not (is_of_arrays(frame) or is_pythons(frame.f_code.co_filename))
