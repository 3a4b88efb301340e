"""Functions and objects that read something else in the place of numbers around them.

Note [Other numbers in their places]
------------------------------------
A trace that has a stand-in for a number around the function must find it where the code reads it,
while other threads go on to read the number. So nothing is written into variables. Functions that
read an enclosed variable or a global are copied with other cells and globals, and so is what leads
to them from the function that is traced: functions, and what transforms made of such. The copies
are of this trace alone. If something else leads to such a function too, such as a list, an object
or a class, its code could read the number itself, and the place is left as it is. For an attribute
of an object its class has a descriptor for the time of the trace, which gives the stand-in to the
thread that traces and the number to others.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from inspect import getattr_static
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from numgrad.compiler.call.captures import Captures
from numgrad.compiler.call.source import VALUE, Source, is_atom
from numgrad.core.bytecode import facts
from numgrad.core.wrappers import FunctionWrapper
from numgrad.errors import NumgradTypeError
from numgrad.libraries import is_users_module

Key = tuple[int, str]

_UNKNOWN = {
    *("__class__", "__closure__", "__code__", "__dict__", "__globals__", "__self__", "eval"),
    *("exec", "getattr_static", "globals", "id", "isinstance", "isscalar", "locals", "setattr"),
    *("suppress", "type", "vars", "issubclass", "callable", "object", "inspect", "sys", "gc"),
}
"""Names in code that may tell a stand-in from a number, or get at the number in another way."""
_TYPED = {
    *("add", "conj", "conjugate", "dot", "inner", "multiply", "negative", "outer", "positive"),
    "subtract",
}
"""Functions that make NumPy's numbers of Python's, where operators do not."""


def key_of(source: Source) -> Key:
    """The key of a source, as long as its holder lives."""
    return id(source.holder), source.access


def is_number(source: Source) -> bool:
    """Whether a place holds a floating number whose value is guarded."""
    return source.treatment == VALUE and _is_floating(source.value)


def _is_floating(value: Any) -> bool:
    return type(value) in (float, np.float64, np.float32)


def takes_stand_ins(code: CodeType) -> bool:
    """Whether code does the same with a stand-in for a number, or raises an error.

    It does not if it catches errors, asks what an object is, or stores something around itself.
    """
    has = facts(code)
    stores = has.sets_attributes or has.assigns_outside
    return not (stores or has.catches or has.asks_for_kinds or has.mentions(_UNKNOWN | _TYPED))


class Routes:
    """Paths from a function to the numbers that it captures, and how others come into their places.

    Attributes
    ----------
    places
        One place of each number that can be replaced.
    """

    def __init__(self, captures: Captures, keys: Collection[Key]) -> None:
        self.sources: dict[Key, Source] = {}
        self._leading: dict[int, list[Source]] = {}
        self._copied: set[int] = set()
        self._attributes: set[Key] = set()
        if not keys or not all(map(takes_stand_ins, captures.codes)):
            return
        self._root = captures.sources[0].value
        for source in captures.sources:
            if not is_atom(source.value):
                self._leading.setdefault(id(source.value), []).append(source)
        readers: dict[Key, list[Source]] = {}
        for source in captures.sources:
            if key_of(source) in keys and is_number(source):
                readers.setdefault(key_of(source), []).append(source)
        for key, reads in readers.items():
            if all(map(self._is_attribute, reads)):
                self._attributes.add(key)
            elif not all(map(self._is_variable, reads)):
                continue
            self.sources[key] = reads[0]

    def _is_attribute(self, source: Source) -> bool:
        owner = source.parent.value if source.parent is not None else None
        kind = type(owner)
        name = source.name.rpartition(".")[2]
        return (
            type(kind) in (type, ABCMeta)
            and is_users_module(kind.__module__)
            and getattr(owner, "__dict__", None) is source.holder
            and source.access == f"{{0}}[{name!r}]"
            and kind.__getattribute__ is object.__getattribute__
            and all(is_atom(vars(base)[name]) for base in kind.__mro__ if name in vars(base))
        )

    def _is_variable(self, source: Source) -> bool:
        reader = source.parent.value if source.parent is not None else None
        needed: set[int] = set()
        if not (_is_read_by(source, reader) and self._can_copy(reader, needed)):
            return False
        self._copied |= needed
        return True

    def _can_copy(self, value: Any, needed: set[int]) -> bool:
        """Whether copies can take the place of something wherever it is found."""
        if id(value) in needed:
            return True
        needed.add(id(value))
        if type(value) is FunctionWrapper:  # what is in it is made with it
            if not value.can_be_made_of_others or needed.isdisjoint(map(id, value.made_of)):
                return False
        elif type(value) is not FunctionType and not _is_of_transform(value):
            return False
        for source in self._leading[id(value)]:
            if source.parent is None:
                if value is not self._root:
                    return False
                continue
            above = source.parent.value
            if type(above) is FunctionType and not _is_read_by(source, above):
                return False
            if not self._can_copy(above, needed):
                return False
        return True

    @contextmanager
    def replaced(self, numbers: dict[Key, Any]) -> Iterator[Callable[..., Any]]:
        """The function, which reads other numbers in their places."""
        with ExitStack() as stack:
            for key, number in numbers.items():
                source = self.sources[key]
                if key in self._attributes:
                    owner = source.parent.value  # pyright: ignore
                    name = source.name.rpartition(".")[2]
                    stack.enter_context(_attribute(owner, name, number))
            yield _Copies(numbers, self._copied).of(self._root)


def _is_of_transform(value: Any) -> bool:
    """Whether it is part of what a transform made."""
    return type(value).__module__.startswith(("numgrad.autograd.", "numgrad.transforms."))


def _is_read_by(source: Source, function: Any) -> bool:
    """Whether a place is an enclosed variable or a global of a function."""
    if type(function) is not FunctionType:
        return False
    return type(source.holder) is CellType or (
        source.holder is function.__globals__ and source.access.startswith("{0}[")
    )


@contextmanager
def _attribute(owner: Any, name: str, number: Any) -> Iterator[None]:
    """Let an attribute of an object be something else to this thread."""
    kind = type(owner)
    missing = object()
    before = vars(kind).get(name, missing)
    default = getattr_static(kind, name, missing)
    setattr(kind, name, _Shown(owner, name, number, default, missing))
    try:
        yield
    finally:
        if before is missing:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


class _Shown:
    """An attribute of a class that shows one thread another number for one object."""

    def __init__(self, owner: Any, name: str, number: Any, default: Any, missing: object) -> None:
        self.owner, self.name, self.number = owner, name, number
        self.default, self.missing = default, missing
        self.thread = threading.get_ident()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is self.owner and threading.get_ident() == self.thread:
            return self.number
        if isinstance(self.default, _Shown):  # of another object of the class
            return self.default.__get__(instance, owner)
        value = self.default
        if instance is not None:
            value = instance.__dict__.get(self.name, value)
        if value is self.missing:
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute {self.name!r}"
            )
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        if self.name not in instance.__dict__:
            raise AttributeError(self.name)
        del instance.__dict__[self.name]


class _Copies:
    """Functions copied with other numbers in cells and globals."""

    def __init__(self, numbers: dict[Key, Any], copied: set[int]) -> None:
        self._numbers, self._copied = numbers, copied
        self._made: dict[int, Any] = {}
        self._cells: dict[int, CellType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, value: Any) -> Any:
        """A copy of a function and of what it calls; anything else as it is."""
        if id(value) not in self._copied:
            return value
        cached = self._made.get(id(value))
        if cached is not None:
            return cached
        if type(value) is FunctionWrapper:
            copied = value.made_of_others(tuple(map(self.of, value.made_of)))
            self._made[id(value)] = copied
            return copied
        if type(value) is not FunctionType:
            raise NumgradTypeError(f"a {type(value).__name__} cannot be made of other functions")
        cells = value.__closure__ or ()
        new = [self._cells.setdefault(id(cell), CellType()) for cell in cells]
        before = value.__globals__
        around = self._globals.get(id(before))
        first = around is None
        if around is None:
            around = self._globals[id(before)] = dict(before)
        copied = FunctionType(
            value.__code__, around, value.__name__, value.__defaults__, tuple(new)
        )
        copied.__kwdefaults__, copied.__dict__ = value.__kwdefaults__, value.__dict__
        copied.__qualname__, copied.__module__ = value.__qualname__, value.__module__
        self._made[id(value)] = copied
        for cell, other in zip(cells, new, strict=True):
            self._fill(cell, other)
        if first:
            for name, item in before.items():
                number = self._numbers.get((id(before), f"{{0}}[{name!r}]"))
                around[name] = self.of(item) if number is None else number
        return copied

    def _fill(self, cell: CellType, other: CellType) -> None:
        number = self._numbers.get((id(cell), "{0}.cell_contents"))
        if number is not None:
            other.cell_contents = number
            return
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        other.cell_contents = value
        other.cell_contents = self.of(value)
