"""What a step of a compiled loop or branch does besides computing, which would be done once.

Note [Side effects of steps]
----------------------------
A step is traced, not run: what it prints, writes to a file, or puts into a list around it would
come about once, while it is compiled, and never again. Bytecode does not tell what is executed, and
a stream does not tell who writes to it. A profile function of this thread sees each call before
it is made: a print is refused with its line, as is what changes a container that the user's code
finds around a step. What changes without a call (``total += 1`` of an outer ``total``,
``counts[k] += 1``) is found by comparison in the end. A new key of a dictionary is none of these
unless something traced is kept there: functions remember so what they computed.

That takes time, so it is done only for code that may do such things: that names ``print``, or a
container around it and a method that changes one, or assigns a variable around it. Where a profiler
is running already, nothing is watched.
"""

from __future__ import annotations

import builtins
import dis
import io
import os
import sys
import sysconfig
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

from numgrad.compiler.trace.arrays import TracedArray
from numgrad.core.tree import leaves
from numgrad.errors import NumgradTraceError, is_users

_CHANGES = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft",
    "insert", "intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "rotate",
    "sort", "symmetric_difference_update", "update",
}  # fmt: skip
"""Methods that change a container."""
_CONTAINERS = (list, dict, set, deque, Counter)
_WRITES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_LOGGED = {"log", "debug", "info", "warning", "error", "exception", "critical"}
_STREAMS = {"write", "writelines", "truncate"}
_SUSPECT = {"print", "input", "exec", "eval", *_STREAMS, *_LOGGED}
_LOGS = os.path.join("logging", "__init__.py")
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))
MOST = 1_000
"""Elements up to which those of a container are compared; of larger ones the number is."""


class SideEffects:
    """Watches the user's code in a ``with`` block, and raises for what it does besides computing.

    Raises
    ------
    NumgradTraceError
        For the first side effect, with its line.
    """

    def __init__(self, what: str, function: Callable[..., Any]) -> None:
        self.what, self.function = what, function
        self.entered: set[CodeType] = set()
        self.containers: dict[int, _Container] = {}
        self.globals: list[tuple[dict[str, Any], str, Any, str]] = []
        self.outer: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> SideEffects:
        self._before = sys.getprofile()
        free = self._before is None or is_watching(self._before)
        self._watches = free and _may_have_effects(self.function)
        if self._watches:
            sys.setprofile(_Profile(self))
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        if not self._watches:
            return
        sys.setprofile(self._before)
        if kind is None:
            self._compare()

    # ------------------------------------------------------------------------------------ calls

    def enters(self, frame: FrameType) -> None:
        """The user's code begins to run: note what it finds around itself."""
        code = frame.f_code
        where, stored, names = (
            f"{code.co_filename}:{code.co_firstlineno}",
            _stored(code),
            frame.f_locals,
        )
        free = {n: names[n] for n in code.co_freevars if n in names and not self._makes(code, n)}
        if stored and free:
            self.outer[id(frame)] = {n: x for n, x in free.items() if n in stored}
        if code in self.entered:
            return
        self.entered.add(code)
        around = frame.f_globals
        for name in code.co_names:
            if name in around:
                free[name] = around[name]
                if name in stored:
                    self.globals.append((around, name, around[name], where))
        for name, x in free.items():
            if type(x) in _CONTAINERS and id(x) not in self.containers:
                self.containers[id(x)] = _Container(x, _contents(x), name, where)

    def leaves(self, frame: FrameType) -> None:
        """The user's code has run: look at what it assigned around itself."""
        for name, before in self.outer.pop(id(frame), {}).items():
            if frame.f_locals.get(name) is not before:
                self._refuse(f"assigning {name!r}, which lies around it,", _line(frame))

    def _makes(self, code: CodeType, name: str) -> bool:
        """Whether a variable around code is one of code that the step runs."""
        return any(
            code in outer.co_consts
            and (
                name in outer.co_cellvars
                or (name in outer.co_freevars and self._makes(outer, name))
            )
            for outer in self.entered
        )

    def called(self, frame: FrameType, function: Any) -> None:
        """A function that is written in C is about to be called."""
        if function is builtins.print or function is builtins.input:
            self._refuse(f"{function.__name__}()", _line(frame))
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if name in _STREAMS and isinstance(owner, io.IOBase):
            self._refuse(f"{name}() of a file", _line(frame))
        known = self.containers.get(id(owner)) if name in _CHANGES else None
        if known is not None and not (type(owner) is dict and name == "update"):  # of new keys
            self._refuse(f"{name}() of {known.name!r}, which lies around it,", _line(frame))

    def _compare(self) -> None:
        for known in self.containers.values():
            if _changed(known.before, _contents(known.value)):
                self._refuse(f"a change of {known.name!r}, which lies around it,", known.where)
        for around, name, before, where in self.globals:
            if around.get(name) is not before:
                self._refuse(f"assigning {name!r}, which lies around it,", where)

    def _refuse(self, effect: str, line: str) -> NoReturn:
        raise NumgradTraceError(
            f"{line}: {self.what} is traced and compiled, so {effect} would happen once and not in "
            "each step; return what is to be seen, or run it outside of ng.jit "
            "(ng.config.jit = False)"
        )


class _Profile:
    """What Python calls with events of this thread."""

    def __init__(self, effects: SideEffects) -> None:
        self.effects = effects

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        file = frame.f_code.co_filename
        if not _is_watched(file):
            if event == "call" and file.endswith(_LOGS) and frame.f_code.co_name == "_log":
                self.effects._refuse("logging", _line(frame))
        elif event == "c_call":
            self.effects.called(frame, function)
        elif event == "call":
            self.effects.enters(frame)
        elif event == "return":
            self.effects.leaves(frame)


def is_watching(profile: Any) -> bool:
    """Whether a profile function is one that watches steps."""
    return isinstance(profile, _Profile)


def _may_have_effects(function: Callable[..., Any]) -> bool:
    """Whether code that a function has at hand could do anything besides computing."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > MOST:
            return True
        if isinstance(x, FunctionType):
            form, around = _form(x.__code__), _around(x)
            if _is_watched(x.__code__.co_filename) and (
                form.suspect or (form.changes and any(type(v) in _CONTAINERS for v in around))
            ):
                return True
            waiting += around
        elif isinstance(x, MethodType):
            waiting += (x.__func__, x.__self__)
        elif isinstance(x, partial):
            waiting += (x.func, *x.args, *x.keywords.values())
        elif isinstance(x, list | tuple | dict):
            waiting += islice(x.values() if isinstance(x, dict) else x, MOST)
        elif isinstance(x, staticmethod | classmethod):
            waiting.append(x.__func__)
        elif isinstance(x, property):
            waiting.append(x.fget)
        elif isinstance(x, type):
            waiting += vars(x).values() if _is_own(x) else ()
        elif _is_own(type(x)):
            waiting += (type(x), *getattr(x, "__dict__", {}).values())
    return False


@dataclass(frozen=True)
class _Form:
    """What code and the functions in it could do."""

    names: tuple[str, ...]
    suspect: bool
    changes: bool


@cache
def _form(code: CodeType) -> _Form:
    inner = [_form(x) for x in code.co_consts if isinstance(x, CodeType)]
    names = dict.fromkeys([*code.co_names, *(n for form in inner for n in form.names)])
    subscripts = any(step.opname in _WRITES for step in dis.get_instructions(code))
    return _Form(
        tuple(names),
        bool(_stored(code)) or not _SUSPECT.isdisjoint(names) or any(f.suspect for f in inner),
        subscripts or not _CHANGES.isdisjoint(names) or any(f.changes for f in inner),
    )


def _around(function: FunctionType) -> list[Any]:
    """The values around a function that it may use: also those of modules of the user's."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            found.append(cell.cell_contents)
    if not _is_watched(function.__code__.co_filename):
        return found
    names, around = _form(function.__code__).names, function.__globals__
    for name in names:
        x = around.get(name)
        if not isinstance(x, ModuleType):
            found.append(x)
        elif _is_watched(getattr(x, "__file__", None) or os.sep):
            found += [getattr(x, attribute, None) for attribute in names]
    return found


def _is_own(kind: type) -> bool:
    """Whether a class is the user's."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and _is_watched(file))


@dataclass(frozen=True)
class _Container:
    """A container around the user's code, and what it held when that began to run."""

    value: Any
    before: Any
    name: str
    where: str


@cache
def _is_watched(file: str) -> bool:
    """Whether code is the user's own: libraries keep books in containers of theirs."""
    return is_users(file) and not file.startswith(_INSTALLED)


def _line(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename.endswith(_LOGS):
        frame = frame.f_back
    return "jit" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


@cache
def _stored(code: CodeType) -> frozenset[str]:
    """The names around code that it assigns."""
    free = set(code.co_freevars)
    return frozenset(
        step.argval
        for step in dis.get_instructions(code)
        if step.opname == "STORE_GLOBAL" or (step.opname == "STORE_DEREF" and step.argval in free)
    )


def _contents(value: Any) -> Any:
    """What a container holds, to be compared."""
    if len(value) > MOST:
        return len(value)
    return dict(value) if isinstance(value, dict) else list(value)


def _changed(before: Any, now: Any) -> bool:
    if type(before) is not type(now) or isinstance(before, int):
        return before != now
    if isinstance(before, dict):
        kept = all(key in now and now[key] is x for key, x in before.items())
        return not kept or any(_is_traced(x) for key, x in now.items() if key not in before)
    return len(before) != len(now) or any(a is not b for a, b in zip(before, now, strict=True))


def _is_traced(value: Any) -> bool:
    return any(isinstance(getattr(x, "_array", x), TracedArray) for x in leaves(value))
