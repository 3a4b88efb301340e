"""Messages to users: the line of their code in warnings and errors, and a line while they wait.

Note [Progress]
---------------
At a prompt or a terminal a line on stderr says what takes long, in a notebook one on stdout, since
notebooks show stderr in red; both learn when it is over. Elsewhere, as in a log, it is one line of
stderr, after longer.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from numgrad.errors import NumgradAssertionError, NumgradError, NumgradTraceError, warn
from numgrad.libraries import PACKAGE, is_users
from numgrad.progress import in_notebook

_PLACED = re.compile(r"(?:[A-Za-z]:)?[^:\n]*:\d+: ")


def user_line() -> str | None:
    """The place in the user's code that is being run, as ``file:line``."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def warn_at(line: str | None, message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at a line of the user's code, as ``user_line`` gives it."""
    if line is None:
        warn(message, category)
        return
    file, _, number = line.rpartition(":")
    warnings.warn_explicit(message, category, file, int(number))


def raised_at(traceback: TracebackType | None) -> str | None:
    """The last line of the user's code on the way of an error, as ``file:line``."""
    result = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_users(file):
            result = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return result


def defined_at(function: Callable[..., Any]) -> str | None:
    """Where a function is defined, as ``file:line``."""
    code = getattr(function, "__code__", None)
    return code and f"{code.co_filename}:{code.co_firstlineno}"


@contextmanager
def no_internal_error(
    what: str, function: Callable[..., Any], *, runs_users_code: bool = False
) -> Iterator[None]:
    """Turn an unforeseen error into one that names the user's line and the way out.

    Errors of the user's own code pass as they are.
    """
    try:
        yield
    except (Warning, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, NumgradError) and (
            runs_users_code or not isinstance(error, NumgradAssertionError)
        ):
            raise
        if runs_users_code and not _is_ours(error.__traceback__):
            raise
        line = raised_at(error.__traceback__) if runs_users_code else None
        line = line or defined_at(function)
        raise NumgradTraceError(
            f"{line + ': ' if line else ''}ng.jit failed while {what} "
            f"({type(error).__name__}: {error}); unless eager code fails here too, this is a fault "
            "of numgrad, which we ask you to report; ng.config.jit = False runs everything eagerly"
        ) from error


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether an error comes from this package, and not from code that it called for the user."""
    ours = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        ours = file.startswith(PACKAGE) or (ours and not is_users(file))
        traceback = traceback.tb_next
    return ours


def name_line(error: NumgradError, line: str | None) -> None:
    """Put the user's line in front of a message, unless it names one."""
    message = error.args[0] if error.args else None
    if line and isinstance(message, str) and not _PLACED.match(message):
        error.args = (f"{line}: {message}", *error.args[1:])


PATIENCE = 1.0
"""Seconds before the line is shown to somebody who watches."""
LONG = 5.0
"""Seconds before it is written where nobody may be watching."""

_open = threading.local()
"""``nested``: whether the thread is inside of something that is announced."""


def is_interactive() -> bool:
    """Whether a person is likely to watch: a prompt, a notebook, a terminal."""
    if hasattr(sys, "ps1") or in_notebook():
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say what is being done if it takes long: more than a second in an interactive session.

    Steps of something that is announced are not announced.
    """
    stream = sys.stdout if in_notebook() else sys.stderr
    if getattr(_open, "nested", False) or stream is None:
        yield
        return
    _open.nested = True
    begin = time.perf_counter()
    watched = is_interactive()
    shown = threading.Event()

    def show() -> None:
        if watched:
            shown.set()
            stream.write(f"numgrad: {what} ...")
        else:
            stream.write(f"numgrad: {what} takes more than {LONG:.2g} s\n")
        stream.flush()

    timer = threading.Timer(PATIENCE if watched else LONG, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        _open.nested = False
        timer.cancel()
        if shown.is_set():
            stream.write(f" {time.perf_counter() - begin:.1f} s\n")
            stream.flush()
