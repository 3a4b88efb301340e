"""Side effects of a step of a compiled loop or branch, which would happen once.

Note [Side effects of steps]
----------------------------
A step is traced, not run: what it prints, writes to a file, or puts into a list around it would
come about once, while it is compiled, and never again. What it changes around itself is found by
comparison: what its code can reach is noted before the trace, and looked at after it, as
Note [Reach of a step] in ``side_effects`` says. A new key of a dictionary, or a new attribute, is
no change unless something traced is kept there: functions remember so what they computed. The step
is then traced again, in which what it remembers is there and does not grow.

What leaves no trace, such as a print, is seen by a profile function of this thread, before it is
done, and so are methods that change a container, with the line of the call. Bytecode does not tell
what is executed, and a stream does not tell who writes to it. That takes time, so it is done only
for code that may do such things: that names ``print``, or a container around it and a method that
changes one, or assigns a variable around it. Where a profiler is running already it is not, and
only the comparison is made.

Note [Reach of a step]
----------------------
From the function of a step, what its code names is followed: variables and defaults of functions,
what methods belong to, arguments of partials, attributes of objects of the user's classes, elements
of containers. What can change is noted as a place: a name, and a picture of what it holds. Objects
are the same if they are identical, or plain and equal; arrays by a checksum of their bytes. Objects
of this package and of libraries lead on to the user's functions and are not noted: libraries
keep books of their own. Up to ``MOST`` objects are looked at, nearest ones first, and large arrays
only if code at hand writes to arrays.
"""

from __future__ import annotations

import builtins
import functools
import io
import itertools
import operator
import os
import sys
import types
import warnings
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from types import CodeType, FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from numgrad.compiler.trace.arrays import TracedArray
from numgrad.core.bytecode import facts
from numgrad.core.referents import (
    ARGUMENT,
    CELL,
    ELEMENT,
    FUNCTION,
    ITEM,
    RECEIVER,
    Referent,
    referents,
)  # fmt: skip
from numgrad.core.tree import leaves
from numgrad.core.wrappers import FunctionWrapper
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTraceError
from numgrad.libraries import is_users, is_users_module

_LOGS = os.path.join("logging", "__init__.py")
_CONTAINERS = (list, dict, set, deque, bytearray, array)


class SideEffects:
    """Watches the user's code in a ``with`` block, and raises for what it does besides computing.

    Parameters
    ----------
    what
        What the step is, for errors.
    function
        The step.
    again
        Whether it was traced before and kept something new, which it may not do once more.
    state
        The snapshot of what the function may set to Tensors, which ``StateSnapshot.stored`` gives
        then; what is there for the first time counts as new.

    Attributes
    ----------
    grown
        Whether it kept something new, when the block has ended.

    Raises
    ------
    NumgradTraceError
        For the first side effect, with its line.
    """

    def __init__(
        self, what: str, function: Callable[..., Any], *, again: bool = False,
        state: StateSnapshot | None = None,
    ) -> None:  # fmt: skip
        self.what, self.function, self.again = what, function, again
        self.keeps = state is not None
        self.grown = False
        self.entered: set[CodeType] = set()
        self.snapshot = state or StateSnapshot()
        self.outer: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> SideEffects:
        self._before = sys.getprofile()
        snapshot = self.snapshot
        snapshot.look([(self.function, "", "")])
        free = self._before is None or is_watching(self._before)
        self._watches = free and (snapshot.suspect or (snapshot.changes and snapshot.holds))
        if self._watches:
            sys.setprofile(_Profile(self))
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        if self._watches:
            sys.setprofile(self._before)
        if kind is None:
            self._compare()

    # ------------------------------------------------------------------------------------ calls

    def enters(self, frame: FrameType) -> None:
        """The user's code begins to run: note what it finds around itself."""
        code = frame.f_code
        where, assigned, names = (
            f"{code.co_filename}:{code.co_firstlineno}",
            facts(code).assigned,
            frame.f_locals,
        )
        free = {n: names[n] for n in code.co_freevars if n in names and not self._makes(code, n)}
        if assigned and free:
            self.outer[id(frame)] = {n: x for n, x in free.items() if n in assigned}
        if code in self.entered:
            return
        self.entered.add(code)
        results = [(x, name, where) for name, x in free.items()]
        self.snapshot.look(results + self.snapshot.named(code, frame.f_globals, where))

    def leaves(self, frame: FrameType) -> None:
        """The user's code has run: look at what it assigned around itself."""
        for name, before in self.outer.pop(id(frame), {}).items():
            now = frame.f_locals.get(name)
            if now is not before and not (self.keeps and is_traced(now)):
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
        if name in STREAMS and isinstance(owner, io.IOBase):
            self._refuse(f"{name}() of a file", _line(frame))
        known = self.snapshot.places.get(id(owner)) if name in CHANGES else None
        if not isinstance(owner, _CONTAINERS) or (type(owner) is dict and name == "update"):
            return  # an update may be one of new keys
        if known is not None:
            self._refuse(f"{name}() of {known.name!r}, which lies around it,", _line(frame))

    def _compare(self) -> None:
        for entry in self.snapshot.places.values():
            for key, value in entry.differences(again=self.again):
                known = entry.known
                if self.keeps and key in known and is_traced(value):
                    continue
                if self.keeps and key is not None and known.get(key) is None:
                    self.grown = True
                    continue
                name = entry.shown(key)
                self._refuse(f"a change of {name!r}, which lies around it,", entry.where)
            self.grown = self.grown or entry.grown()

    def _refuse(self, effect: str, line: str) -> NoReturn:
        raise NumgradTraceError(
            f"{line}: {self.what} is traced and compiled, so {effect} would happen once and not in "
            "each step; return what is to be seen, or run it outside of ng.jit "
            "(ng.config.jit = False)"
        )


class _Profile:
    """The profile function of this thread."""

    def __init__(self, effects: SideEffects) -> None:
        self.effects = effects

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        file = frame.f_code.co_filename
        if not is_users(file):
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


def _line(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename.endswith(_LOGS):
        frame = frame.f_back
    return "jit" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


# ---------------------------------------------------------------------------------- state snapshot


MOST = 1_000
"""Objects that are looked at."""
MOST_ELEMENTS = 100_000
"""Elements up to which those of a container are compared; of larger ones the number is."""
MOST_BYTES = 1 << 18
"""Bytes of arrays that are compared for any code; more if code at hand writes to arrays."""

CHANGES = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft",
    "insert", "intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "rotate",
    "sort", "symmetric_difference_update", "update",
}  # fmt: skip
"""Methods that change a container."""
_WRITERS = {
    "at", "byteswap", "copyto", "fill", "fill_diagonal", "itemset", "partition", "place", "put",
    "put_along_axis", "putmask", "readinto", "resize", "setfield", "setitem", "shuffle", "sort",
    "__setitem__", "__iadd__", "__imul__", "__isub__",
}  # fmt: skip
_LOGGED = {"log", "debug", "info", "warning", "error", "exception", "critical"}
STREAMS = {"write", "writelines", "truncate"}
_SUSPECT = {"print", "input", "exec", "eval", *STREAMS, *_LOGGED}

_PLAIN = {int, float, complex, bool, str, bytes, type(None), range, slice, type(...), frozenset}
_PLAIN |= {np.dtype, types.BuiltinFunctionType, np.ufunc}
_PLAIN |= {np.dtype(c).type for c in "?bBhHiIqQefdFD"}
_SEQUENCES = (list, set, deque)
_COUNTED = {
    type(iter(x))
    for x in ([], (), {}, {}.values(), {}.items(), set(), range(1), range(1 << 70), reversed(()))
} | {type(reversed(x)) for x in ([], {}, {}.values(), {}.items())}
_REDUCED = {
    zip, map, filter, enumerate, type(iter("")), type(iter("é")), type(iter(b"")),
    itertools.count, itertools.cycle, itertools.chain, itertools.islice, itertools.repeat,
    itertools.accumulate, itertools.product, itertools.permutations, itertools.combinations,
    itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.zip_longest,
}  # fmt: skip
_BOOKS = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"}
_CALLS = ("__call__", "forward")
_ABSENT = object()


@dataclass(frozen=True)
class SnapshotEntry:
    """Something around the user's code that can change, and what it held when that began to run."""

    value: Any
    name: str
    where: str
    picture: Callable[[], Any]
    before: Any
    parts: str = ""

    def differences(self, *, again: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys of what is not what it was, and what is there now; ``again`` counts what is new.

        Without a key where parts are not told apart.
        """
        before, now = self.before, self.picture()
        if isinstance(now, list) and (known := self.known) and len(known) == len(now):
            before, now = known, dict(enumerate(now))
        if not isinstance(before, dict) or not isinstance(now, dict):
            if not _same(before, now):
                yield None, now
            return
        for key, x in before.items():
            if not _same(x, now.get(key, _ABSENT)):
                yield key, now.get(key, _ABSENT)
        for key, x in now.items():
            if key not in before and (is_traced(x) or (again and type(key) in _PLAIN)):
                yield key, x

    @property
    def known(self) -> dict[Any, Any]:
        """Values of before, by key or by number in a list."""
        before = self.before
        if isinstance(before, list) and isinstance(self.value, list):
            return dict(enumerate(before))
        return before if isinstance(before, dict) else {}

    def shown(self, key: Any) -> str:
        """The name of what is there under a key."""
        return self.parts.format(name=self.name, key=key) if self.parts else self.name

    def place(self, key: Any) -> tuple[int, Any]:
        """Identity of the place of a key."""
        return id(self._cell(key) or self.value), key

    def assign(self, key: Any, value: Any) -> None:
        """Let a key or an attribute hold a value."""
        cell = self._cell(key)
        if cell is not None:
            cell.cell_contents = value
        elif isinstance(self.value, dict | list):
            self.value[key] = value
        else:
            kind = type if isinstance(self.value, type) else object
            kind.__setattr__(self.value, key, value)

    def restore(self) -> None:
        """Let it hold again what it held."""
        before, now, value = self.before, self.picture(), self.value
        if isinstance(before, list) and isinstance(value, list):
            value[:] = before
        if not isinstance(before, dict) or not isinstance(now, dict):
            return
        for key in now.keys() - before.keys():
            if isinstance(value, dict):
                del value[key]
            else:
                object.__delattr__(value, key)
        for key, x in before.items():
            if now.get(key, _ABSENT) is not x:
                self.assign(key, x)

    def _cell(self, key: Any) -> Any:
        """The cell of a variable that lies around a function."""
        if self.parts != _VARIABLE or not isinstance(self.value, FunctionType):
            return None
        names = self.value.__code__.co_freevars
        return (self.value.__closure__ or ())[names.index(key)]

    def grown(self) -> bool:
        """Whether there is something new."""
        return isinstance(self.before, dict) and len(self.picture()) > len(self.before)


_ITEM, _ATTRIBUTE, _VARIABLE = "{name}[{key!r}]", "{name}.{key}", "{key}"


class StateSnapshot:
    """Snapshot of the state that a step can reach: Note [Reach of a step].

    Parameters
    ----------
    most
        Number of objects that are looked at.
    library
        Whether the attributes of modules, optimizers and schedules of this package are noted too.
    """

    def __init__(self, most: int = MOST, *, library: bool = False) -> None:
        self.most, self.library = most, library
        self.places: dict[Any, SnapshotEntry] = {}
        self.seen: dict[int, Any] = {}
        self.suspect = False
        self.holds = self.changes = self.writes = False
        self._arrays: list[tuple[np.ndarray, str, str]] = []
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []
        self._bytes = 0

    def stored(self) -> Iterator[tuple[SnapshotEntry, Any, Any]]:
        """Keys under which traced Tensors stand in place of what was there, and these."""
        for entry in self.places.values():
            for key, value in entry.differences():
                if key is not None and key in entry.known and is_traced(value):
                    yield entry, key, value

    def restore(self) -> None:
        """Let everything that can be set hold again what it held."""
        for x, content in self._copies:
            x[...] = content
        for entry in self.places.values():
            entry.restore()

    def look(self, results: Iterable[tuple[Any, str, str]]) -> None:
        """Note what is reached from objects, each with its name and the line of a function."""
        waiting = deque((x, name, where, bool(where)) for x, name, where in results)
        while waiting and len(self.seen) < self.most:
            x, name, where, noted = waiting.popleft()
            if type(x) in _PLAIN or id(x) in self.seen:
                continue
            self.seen[id(x)] = x
            waiting.extend(self._parts_of(x, name, where, noted))
        self.suspect = self.suspect or bool(waiting)
        large, self._arrays = self._arrays, []
        for x, name, where in large if self.writes else ():
            self._note(x, name, where, partial(_checksum, x))

    def named(self, code: CodeType, around: dict[str, Any], where: str) -> list[Any]:
        """Note the variables of a module that code names, and give what they hold."""
        names, results = _form(code).names, []
        self._variables(around, names, (id(around), code), where)
        for name in names:
            x = around.get(name)
            if not isinstance(x, ModuleType):
                results.append((x, name, where))
            elif is_users_module(x.__name__):
                inside = vars(x)
                self._variables(inside, names, (id(inside), code), where, name)
                results += [(inside[n], f"{name}.{n}", where) for n in names if n in inside]
        return results

    def _variables(
        self, around: dict[str, Any], names: Iterable[str], key: Any, where: str, module: str = ""
    ) -> None:
        if key not in self.places:
            picture = partial(_variables_named, around, names)
            parts = _ATTRIBUTE if module else _VARIABLE
            self.places[key] = SnapshotEntry(around, module, where, picture, picture(), parts)

    def _note(self, x: Any, name: str, where: str, picture: Any, parts: str = "") -> None:
        if id(x) not in self.places:
            self.places[id(x)] = SnapshotEntry(x, name, where, picture, picture(), parts)

    def _parts_of(self, x: Any, name: str, where: str, noted: bool) -> Iterable[Any]:
        """Note an object, and give what it leads to."""
        kind = type(x)
        if isinstance(x, FunctionType):
            return self._of_function(x)
        if noted and isinstance(x, dict):
            self.holds = True
            self._note(x, name, where, partial(_items, x), _ITEM)
        elif noted and isinstance(x, _SEQUENCES):
            self.holds = True
            self._note(x, name, where, partial(_elements, x))
        held = referents(x)
        if held is not None:
            return self._of_referents(held, name, where, noted)
        if isinstance(x, np.ndarray | bytearray | array):
            if noted:
                self._array(x, name, where)
            return ()
        if kind in _COUNTED or kind in _REDUCED or kind is types.GeneratorType:
            if noted:
                self._note(x, name, where, partial(_position, x))
            return ()
        if isinstance(x, type):
            return self._of_class(x, where) if is_own(x) else ()
        if wrapped := getattr(kind, "__wrapped__", None) or _wrapped(x):
            return [(wrapped, name, where, noted)]
        return self._of_object(x, kind, name, where, noted)

    def _of_referents(
        self, held: Iterable[Referent], name: str, where: str, noted: bool
    ) -> list[Any]:
        """The objects that another one holds; what a method or partial binds is its function's."""
        results: list[Any] = []
        line = where
        for value, kind, key, _, _ in islice(held, MOST):
            if kind == FUNCTION:
                line = _place_of(value) or where
                results.append((value, name, where, noted))
            elif kind in (ITEM, ELEMENT):
                shown = f"{name}[{key!r}]" if type(key) in _PLAIN else name
                if type(value) not in _PLAIN:
                    results.append((value, shown, where, noted))
            elif kind == RECEIVER:
                results.append((value, _self_name(value), line, bool(line)))
            else:
                shown = f"argument {key} of the partial" if kind == ARGUMENT else key
                results.append((value, shown, line, bool(line)))
        return results

    def _of_function(self, x: FunctionType) -> list[Any]:
        code, where = x.__code__, _place_of(x)
        noted = bool(where)
        results: list[Any] = [
            (value, "" if kind == CELL and not noted else key, where, noted)
            for value, kind, key, _, _ in referents(x) or ()
        ]
        if not noted:
            return results
        form = _form(code)
        self.suspect = self.suspect or form.suspect
        self.changes = self.changes or form.changes
        self.writes = self.writes or form.writes
        if code.co_freevars:
            key = (*map(id, x.__closure__ or ()), code)
            if key not in self.places:
                picture = partial(_cells, x)
                self.places[key] = SnapshotEntry(x, "", where, picture, picture(), _VARIABLE)
        self._note(x, x.__name__, where, partial(_items, vars(x)), _ATTRIBUTE)
        results += [(v, f"{x.__name__}.{n}", where, True) for n, v in vars(x).items()]
        return results + [(*f, True) for f in self.named(code, x.__globals__, where)]

    def _of_class(self, x: type, where: str) -> list[Any]:
        attributes = dict(vars(x))
        line = where or next(filter(None, map(_place_of, attributes.values())), "")
        if line:
            self._note(x, x.__name__, line, lambda: dict(vars(x)), _ATTRIBUTE)
        bases = [(b, b.__name__, line, bool(line)) for b in x.__bases__]
        return bases + [(v, f"{x.__name__}.{n}", line, bool(line)) for n, v in attributes.items()]

    def _of_object(self, x: Any, kind: type, name: str, where: str, noted: bool) -> list[Any]:
        own = is_own(kind)
        if self.library and (own or kind.__module__.startswith("numgrad")) and _has_state(x):
            result, where = _attributes(x), where or kind.__name__
            self._note(x, name, where, partial(_attributes, x), _ATTRIBUTE)
            return [(v, f"{name}.{n}", where, True) for n, v in (*result.items(), ("", kind))]
        if not own and not _is_namespace(x):
            if not kind.__module__.startswith("numgrad"):
                return []
            inside = _attributes(x).values()
            return [
                (v, "", "", False) for v in inside
                if isinstance(v, FunctionType | MethodType | partial) or is_own(type(v))
                or (isinstance(v, dict | tuple) and (hasattr(x, "named_modules") or _is_hooks(x)))
                or _is_hooks(v)
            ]  # fmt: skip
        module, name = hasattr(kind, "named_modules"), name or kind.__name__
        line = where or next(filter(None, (_place_of(getattr(kind, n, None)) for n in _CALLS)), "")
        result = _own_attributes(x, module)
        if line:
            self._note(x, name, line, partial(_own_attributes, x, module), _ATTRIBUTE)
            if module:
                self._note(x._buffers, name, line, partial(_items, x._buffers), _ATTRIBUTE)
        reached = [(v, f"{name}.{n}", line, bool(line)) for n, v in result.items()]
        if module:
            reached += [(v, "", "", False) for n, v in _attributes(x).items() if n not in result]
        return [*reached, (kind, kind.__name__, where, noted)]

    def _array(self, x: Any, name: str, where: str) -> None:
        if isinstance(x, np.ndarray):
            if not x.flags.writeable and x.flags.owndata:
                return
            self._bytes += x.nbytes
            if self._bytes > MOST_BYTES:
                self._bytes -= x.nbytes
                self._arrays.append((x, name, where))
                return
            if self.library and x.flags.writeable:
                self._copies.append((x, x.copy()))
        self._note(x, name, where, partial(_checksum, x))


# --------------------------------------------------------------------------------------- pictures


def _items(x: dict) -> Any:
    return dict.copy(x) if len(x) <= MOST_ELEMENTS else len(x)


def _elements(x: Any) -> Any:
    return list(x) if len(x) <= MOST_ELEMENTS else len(x)


def _variables_named(around: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: around[name] for name in names if name in around}


def _cells(function: FunctionType) -> dict[str, Any]:
    return {key: x for x, kind, key, _, _ in referents(function) or () if kind == CELL}


def _attributes(x: Any) -> dict[str, Any]:
    """The attributes that an object has itself, in its dictionary and in slots."""
    mapping: dict[str, Any] = {}
    with suppress(AttributeError):
        mapping.update(object.__getattribute__(x, "__dict__"))
    for name, slot in _slots(type(x)):
        with suppress(AttributeError):
            mapping[name] = slot.__get__(x)
    return mapping


@cache
def _slots(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, slot)
        for base in kind.__mro__
        if base.__dict__.get("__slots__")
        for name, slot in vars(base).items()
        if isinstance(slot, MemberDescriptorType)
    )


def _own_attributes(x: Any, module: bool) -> dict[str, Any]:
    """Attributes but for the books of this package's base classes."""
    result = _attributes(x)
    return {n: v for n, v in result.items() if n not in _BOOKS} if module else result


def _checksum(x: Any) -> Any:
    """A checksum of the elements of an array."""
    if not isinstance(x, np.ndarray):
        return len(x), zlib.crc32(x)
    x = np.asarray(x)
    if x.dtype.hasobject:
        return list(x.ravel())
    if not x.nbytes:
        return x.shape, x.dtype
    x = np.ascontiguousarray(x)
    return x.shape, x.dtype, zlib.crc32(x.reshape(-1).view(np.uint8).data)


def _position(x: Any) -> Any:
    """Where an iterator is."""
    if type(x) is types.GeneratorType:
        frame = x.gi_frame
        return None if frame is None else (frame.f_lasti, dict(frame.f_locals))
    if type(x) in _COUNTED:
        return operator.length_hint(x)
    if type(x) in (itertools.count, itertools.repeat):
        return repr(x)
    if type(x) not in _REDUCED:
        return None
    with warnings.catch_warnings(), suppress(TypeError):
        warnings.simplefilter("ignore", DeprecationWarning)
        return tuple(map(_flat, x.__reduce__()[1:]))
    return None


def _flat(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_flat, x))
    return _position(x) if type(x) in (*_COUNTED, *_REDUCED, types.GeneratorType) else x


def _same(a: Any, b: Any) -> bool:
    """Whether two pictures, or elements of such, show the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(_same(x, b[key]) for key, x in a.items())
    if type(a) is np.ndarray:
        return _same(_checksum(a), _checksum(b))
    if type(a) in _PLAIN or isinstance(a, np.dtype):
        return bool(a == b) or (a != a and b != b)
    if type(a) is MethodType:
        return a == b
    return False


def is_traced(value: Any) -> bool:
    """Whether there is a traced Tensor in a value."""
    return any(
        isinstance(getattr(getattr(x, "_tensor", x), "_array", x), TracedArray)
        for leaf in leaves(value)
        for x in (leaf, *(_attributes(leaf).values() if is_own(type(leaf)) else ()))
    )


# ------------------------------------------------------------------------------------------- code


@dataclass(frozen=True)
class _Form:
    """Effects that code and the functions in it could have."""

    names: tuple[str, ...]
    suspect: bool
    changes: bool
    writes: bool


@cache
def _form(code: CodeType) -> _Form:
    has = facts(code)
    names = dict.fromkeys(has.names)
    if "globals" in names:
        names |= dict.fromkeys(has.strings)
    return _Form(
        tuple(names),
        has.assigns_outside or has.mentions(_SUSPECT),
        has.sets_elements or has.mentions(CHANGES),
        has.sets_elements or has.updates or "out" in has.keywords or has.mentions(_WRITERS),
    )


def _is_namespace(x: Any) -> bool:
    """Whether an object of Python's own holds what users put there."""
    argparse = sys.modules.get("argparse")  # before it is imported, nobody has one of its
    kinds = (types.SimpleNamespace, *filter(None, [getattr(argparse, "Namespace", None)]))
    return isinstance(x, kinds)


def _has_state(x: Any) -> bool:
    """Whether an object is a module, an optimizer or a schedule."""
    return hasattr(type(x), "state_dict")


def _is_hooks(x: Any) -> bool:
    """Whether an object holds hooks of a module."""
    return type(x).__module__.endswith(".nn.module.hooks")


def is_own(kind: type) -> bool:
    """Whether a class is the user's."""
    return is_users_module(kind.__module__)


def _place_of(x: Any) -> str:
    """The line of a function of the user's, or an empty text."""
    x = getattr(x, "__func__", x)
    code = getattr(x, "__code__", None)
    if not isinstance(code, CodeType) or not is_users(code.co_filename):
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}"


def _self_name(x: Any) -> str:
    return x.__name__ if isinstance(x, type) else "self"


def _wrapped(x: Any) -> Any:
    return x.__wrapped__ if type(x) in (functools._lru_cache_wrapper, FunctionWrapper) else None
