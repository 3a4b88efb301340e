"""Warnings and errors that name the line of the user's code."""

from __future__ import annotations

import os
import re
import sys
import warnings
from types import TracebackType

import numpy as np

from numgrad.errors import NumgradError

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str) -> None:
    """Warn at the first line outside of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


_SKIPPED = (_HOME, os.path.dirname(np.__file__) + os.sep)
_BETWEEN = ("contextlib.py", "functools.py")
_PLACED = re.compile(r"(?:[A-Za-z]:)?[^:\n]*:\d+: ")


def is_users(file: str) -> bool:
    """Whether code is neither ours nor NumPy's, nor runs in between."""
    return not file.startswith(_SKIPPED) and not file.endswith(_BETWEEN)


def raised_at(traceback: TracebackType | None) -> str | None:
    """The last line of the user's code on the way of an error, as ``file:line``."""
    found = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_users(file):
            found = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def name_line(error: NumgradError, line: str | None) -> None:
    """Put the user's line in front of a message, unless it names one."""
    message = error.args[0] if error.args else None
    if line and isinstance(message, str) and not _PLACED.match(message):
        error.args = (f"{line}: {message}", *error.args[1:])
