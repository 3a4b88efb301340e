"""Code that happens to run while something else does: finalizers, gc callbacks, signal handlers.

Note [Asides]
-------------
Python may run such code at any moment, also while a function is traced or the formula of an
operation is read. It is no part of either: what it calls goes to the base interpreter, and an
error that it meets is its own. A collection of garbage, with all finalizers and callbacks that it
calls, is bracketed by callbacks of ours; handlers of signals are wrapped while a trace is under
way. A finalizer that a last reference calls, by going away, is known by its frame only: it is a
``__del__``, that of ``weakref.finalize``, or was called where Python calls nothing, such as at an
assignment to a variable. So a trace looks at frames when it is asked what a call means or has to
refuse something.
"""

import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import FrameType
from typing import Any

from numgrad.codegen.locks import python_handlers
from numgrad.core.bytecode import is_silent
from numgrad.core.interpreter import State, state
from numgrad.errors import REFUSED

_FINALIZE = weakref.finalize.__call__.__code__


def _to_base() -> tuple[dict[str, Any], tuple]:
    """Let the base interpreter say what calls mean; what was before."""
    scopes, REFUSED.scopes = REFUSED.scopes, ()
    before = state.set(interpreters=(), ground=State.ground, transforms=0, constant=False)
    return before, scopes


def _back(before: dict[str, Any], scopes: tuple) -> None:
    REFUSED.scopes = scopes
    state.set(**before)


@contextmanager
def aside() -> Iterator[None]:
    """Let the base interpreter say what calls inside mean."""
    before = _to_base()
    try:
        yield
    finally:
        _back(*before)


# ------------------------------------------------------------------------ collections of garbage


class _Collections(threading.local):
    """State that a collection of garbage in this thread interrupted."""

    before: Any = None


_collections = _Collections()


def _bracket(phase: str, _: dict[str, int]) -> None:
    """Let what a collection calls run aside; the first of ``gc.callbacks``."""
    if phase == "start":
        if state.interpreters or state.transforms:
            _collections.before = _to_base()
    elif _collections.before is not None:
        # behind the others, and found also if each of them takes itself out of the list
        gc.callbacks.extend([_end] * len(gc.callbacks))


def _end(*_: Any) -> None:
    gc.callbacks[:] = [callback for callback in gc.callbacks if callback is not _end]
    before, _collections.before = _collections.before, None
    if before is not None:
        _back(*before)


gc.callbacks.insert(0, _bracket)


# ---------------------------------------------------------------------------- handlers of signals


@contextmanager
def handlers_aside() -> Iterator[None]:
    """Let handlers of signals in Python run aside, in the main thread, while the block does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wrapped: dict[int, tuple[Any, Any]] = {}
    try:
        for number, handler in python_handlers():
            wrapped[number] = handler, (mine := _run_aside(handler))
            with suppress(ValueError):  # not the main interpreter, which alone gets signals
                signal.signal(number, mine)
        yield
    finally:
        for number, (handler, mine) in wrapped.items():
            if signal.getsignal(number) is mine:  # unless it was replaced inside
                signal.signal(number, handler)


def _run_aside(handler: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(handler, assigned=())
    def run(number: int, frame: FrameType | None) -> Any:
        with aside():
            return handler(number, frame)

    return run


# ------------------------------------------------------------------------------------- finalizers


def runs_aside(entry: int) -> bool:
    """Whether a finalizer that interrupts what began in the frame ``entry`` calls this."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame) != entry:
        code, caller = frame.f_code, frame.f_back
        if code.co_name == "__del__" or code is _FINALIZE:
            return True
        if caller is not None and is_silent(caller):
            return True
        frame = caller
    return False
