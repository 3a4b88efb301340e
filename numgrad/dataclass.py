"""Data classes that are made quickly.

Note [Data classes]
-------------------
``dataclasses`` writes source for up to eight methods of each class and compiles it: 0.5 ms a class,
a sixth of the first compiled call of a process whose kernels are on disk. Here it writes
``__init__`` alone; comparing, hashing and showing are closures over the fields. All else is that of
``dataclasses``, for whose functions these are data classes. Classes that are ``frozen`` have a
hash and say that they are, as ``compiler.call.captures`` asks; that nobody sets an attribute of one
is checked by type checkers, which read this as the decorator of ``dataclasses``, and not again
when a program runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Make a data class: Note [Data classes]."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        equal, frozen = options.pop("eq", True), options.pop("frozen", False)
        hashed = frozen or options.pop("unsafe_hash", False)
        own = vars(cls)
        made = dataclasses.dataclass(repr=False, eq=False, **options)(cls)
        fields = dataclasses.fields(made)
        if "__repr__" not in own:
            made.__repr__ = _shown
        if equal and "__eq__" not in own:
            made.__eq__ = _equality(_values([f.name for f in fields if f.compare]))
        if equal and "__hash__" not in own:
            names = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
            made.__hash__ = _hash(_values(names)) if hashed else None
        made.__dataclass_params__.eq, made.__dataclass_params__.frozen = equal, frozen
        return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of some fields."""
    if len(names) == 1:
        value = attrgetter(names[0])
        return lambda instance: (value(instance),)
    return attrgetter(*names) if names else lambda _: ()


def _equality(values: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    return __eq__


def _hash(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _shown(self: Any) -> str:
    pairs = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(pairs)})"
