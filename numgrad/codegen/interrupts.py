"""Signals that wait until a kernel is complete.

Note [Ctrl-C]
-------------
An exception that interrupts the import of Numba, or the filling of its registries, leaves these
half done for good: later compilations fail with errors about unknown types. One that is raised in a
function that LLVM calls back is lost. So while a kernel is compiled or loaded, signals are noted,
and their handlers are called when it is complete: Ctrl-C arrives between two kernels.

That concerns all signals that have a handler in Python, any of which may raise, and the main
thread, where Python runs them. Those without one (the default action, a handler in C or of an
embedding program) are left as they are. A deferral inside another one leaves it at that.

What owns native memory, such as a module of LLVM, is made, used and given up within one deferral:
llvmlite gives up an object, then marks it, and an exception in between gives it up twice.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], object]
_SIGNALS = tuple(map(int, signal.valid_signals()))
_handler: Callable[[int], Any] = getattr(import_module("_signal"), "getsignal", signal.getsignal)
"""The function that ``signal`` wraps to make a member of an enumeration of each number: 0.1 ms."""
_deferring: int | None = None
"""The main thread while it is inside of a deferral; a fork by another thread has another one."""


def python_handlers() -> Iterator[tuple[int, Handler]]:
    """Signals that a function of Python's handles, each with it."""
    for number in _SIGNALS:
        handler = _handler(number)
        if callable(handler):
            yield number, handler


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals that arrive inside the block wait for its end."""
    global _deferring
    thread = threading.get_ident()
    if _deferring == thread or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Handler] = {}
    noted: dict[int, FrameType | None] = {}
    noting = True

    def handle(number: int, frame: FrameType | None) -> None:
        if noting:
            noted[number] = frame
        else:  # its handler is just being put back, or could not be because another one raised
            handlers[number](number, frame)

    try:
        for number, handler in python_handlers():
            handlers[number] = handler
            with suppress(ValueError):  # not the main interpreter, which alone gets signals
                signal.signal(number, handle)
        _deferring = thread
        yield
    finally:
        noting, _deferring = False, None
        try:
            _put_back(dict(handlers))
        finally:
            _call(handlers, noted)


def _put_back(handlers: dict[int, Handler]) -> None:
    """Make handlers those of their signals again, even if one of them is called and raises."""
    try:
        while handlers:
            number, handler = next(reversed(handlers.items()))
            if _handler(number) is not handler:
                with suppress(ValueError):
                    signal.signal(number, handler)
            del handlers[number]
    finally:
        if handlers:
            _put_back(handlers)


def _call(handlers: dict[int, Handler], noted: dict[int, FrameType | None]) -> None:
    """Call the handlers of all noted signals, even if one raises."""
    if noted:
        number, frame = noted.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _call(handlers, noted)
