"""State of the process that code reads through functions of Python's and NumPy's.

Note [State of the process]
---------------------------
Code may ask how NumPy treats errors, in which folder it runs, how many threads there are. It does
so by a function that its globals name: such a function is a place, whose value is compared at each
call. A clock gives something else each time, as do ``uuid`` and ``secrets``: what they gave while
the function was traced becomes part of it, so there is a warning at the line that called them.
Only where the code names one are its calls watched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from numgrad.compiler.call.source import VALUE, Source
from numgrad.compiler.messages import warn_at
from numgrad.libraries import is_users

_TIMES = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CLOCKS = {
    "time": {*_TIMES, *(f"{name}_ns" for name in _TIMES), "localtime", "gmtime", "ctime"},
    "datetime": {"datetime", "date"},
    "os": {"urandom", "times", "getloadavg"},
    "secrets": {"token_bytes", "token_hex", "token_urlsafe", "randbelow", "randbits", "choice"},
    "uuid": {"uuid1", "uuid4"},
}
"""Functions that return another value each time, by module."""
_METHODS = {"now", "today", "utcnow"}
"""Methods of ``datetime`` and ``date`` that do."""
_READERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "numpy": {
        "geterr": lambda geterr: tuple(geterr().items()),
        "geterrcall": lambda geterrcall: id(geterrcall()),
        "get_printoptions": lambda options: repr(options()),
    },
    "os": {"getcwd": lambda getcwd: getcwd(), "getcwdb": lambda getcwdb: getcwdb()},
    "sys": {
        "argv": tuple,
        "path": tuple,
        "getrecursionlimit": lambda limit: limit(),
        "getswitchinterval": lambda interval: interval(),
    },
    "locale": {
        "getlocale": lambda _: sys.modules["locale"].setlocale(0),
        "localeconv": lambda convention: repr(convention()),
    },
    "decimal": {
        "getcontext": lambda context: repr(context()),
        "Decimal": lambda _: repr(sys.modules["decimal"].getcontext()),
    },
    "warnings": {"filters": lambda filters: repr(filters)},
    "gc": {"isenabled": lambda enabled: enabled()},
    "numgrad": {"get_num_threads": lambda threads: threads()},
}
"""Readers of the state behind a function or object of these modules."""
_NAMES = {name for group in (*_CLOCKS.values(), *_READERS.values()) for name in group}
_GIVING: set[str] = {*_CLOCKS["time"], *_CLOCKS["os"], *_METHODS}
"""Names of functions in C whose calls are watched; those of other modules end there."""


def _objects(modules: dict[str, Any]) -> dict[int, tuple[Any, str, str]]:
    """Objects that the tables name, of imported modules, by identity."""
    objects = {}
    for module, names in modules.items():
        there = sys.modules.get(module)
        for name in names if there is not None else ():
            attribute = getattr(there, name, None)
            if attribute is not None:
                objects[id(attribute)] = attribute, module, name
    return objects


class ProcessState:
    """The state of the process that code mentions.

    Attributes
    ----------
    clocked
        Whether code names a function that gives something else each time.
    """

    def __init__(self) -> None:
        self.clocked = False
        self._read = _objects(_READERS)
        self._clocks = _objects(_CLOCKS)

    def places(self, value: Any, attributes: Collection[str]) -> Iterator[Source]:
        """The places of what code gets from a global, whose attributes it names."""
        parts = [value]
        if isinstance(value, ModuleType):
            there = vars(value)
            parts += [there[name] for name in _NAMES.intersection(attributes) if name in there]
        for item in parts:
            entry = self._read.get(id(item))
            if entry is not None:
                del self._read[id(item)]  # once is enough
                _, module, name = entry
                read = _READERS[module][name]
                access = "{0}({1})"
                yield Source(read(item), VALUE, read, access, f"{module}.{name}", key=item)
            entry = self._clocks.get(id(item))
            if entry is not None:
                by_method = entry[1] == "datetime"
                self.clocked = self.clocked or not by_method or bool(_METHODS & {*attributes})


@contextmanager
def clocks_watched(function: str, watched: bool) -> Iterator[None]:
    """Warn of calls inside of functions that give something else each time."""
    if not watched or sys.getprofile() is not None:
        yield
        return
    met: dict[str, str] = {}

    def profile(frame: Any, event: str, called: Any) -> None:
        if event != "c_call" or called.__name__ not in _GIVING:
            return
        kind = getattr(called, "__self__", None)
        module = getattr(kind, "__module__", None) if isinstance(kind, type) else None
        module = module or getattr(called, "__module__", None) or ""
        line = _asking_line(frame) if module in ("time", "posix", "nt", "datetime") else None
        if line is not None:
            met.setdefault(called.__name__, line)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
    for name, line in met.items():
        warn_at(
            line,
            f"jit: {function} called {name} while it was traced, and what that gave becomes part "
            "of the compiled function: each call has the same; call it outside, and pass what it "
            "gives as an argument",
        )


def _asking_line(frame: Any) -> str | None:
    """The line of the user's from which Python's own code is called; None if others call it."""
    while frame is not None:
        module, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if module.partition(".")[0] not in sys.stdlib_module_names:
            return f"{file}:{frame.f_lineno}" if is_users(file) else None
        frame = frame.f_back
    return None
