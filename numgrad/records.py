"""Classes of named fields, defined in a third of the time.

A dataclass of Python's has each of its methods compiled from text, 0.3 ms a class, and starting
``ng.jit`` defines fifty. Here only ``__init__`` is; the others share their code. What Python's own
functions for dataclasses (``replace``, ``fields``) do with them is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class")


@overload
def record(cls: type[_Class], /) -> type[_Class]: ...


@overload
def record(
    *, frozen: bool = False, eq: bool = True, slots: bool = False, unsafe_hash: bool = False
) -> Callable[[type[_Class]], type[_Class]]: ...


@dataclass_transform(field_specifiers=(field,))
def record(
    cls: Any = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    slots: bool = False,
    unsafe_hash: bool = False,
) -> Any:
    """Make a class what ``dataclasses.dataclass`` makes of it, given the same options.

    Examples
    --------
    >>> from numgrad.records import record
    >>> @record(frozen=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(1.0, 0.0), hash(Point(1.0)) == hash(Point(1.0))
    (Point(x=1.0, y=0.0), True, True)
    """
    if cls is None:
        return lambda cls: record(cls, frozen=frozen, eq=eq, slots=slots, unsafe_hash=unsafe_hash)
    own = dict(vars(cls))
    hashes = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    made: Any = dataclass(cls, init=False, repr=False, eq=False, slots=slots)
    members = fields(made)
    given: dict[str, Any] = {"__init__": _init(made, members, frozen), "__repr__": _repr}
    if eq:
        values = _values([f.name for f in members if f.compare])
        given["__eq__"] = _eq(values)
        if not hashes:
            own.pop("__hash__", None)
            of_values = frozen or unsafe_hash
            given["__hash__"] = (lambda self: hash(values(self))) if of_values else None
    made.__dataclass_params__.frozen = frozen  # for who asks
    if frozen:
        given |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if slots:
            given |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in given.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _init(cls: type, members: tuple[Field, ...], frozen: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = [], []
    for f in members:
        name = value = f.name
        if f.default is not MISSING:
            scope[f"_default_{name}"] = f.default
            if f.init:
                parameters.append(f"{name}=_default_{name}")
            else:
                value = f"_default_{name}"
        elif f.default_factory is not MISSING:
            scope[f"_make_{name}"] = f.default_factory
            value = f"_make_{name}()"
            if f.init:
                value = f"{value} if {name} is _missing else {name}"
                parameters.append(f"{name}=_missing")
        elif f.init:
            parameters.append(name)
        else:
            continue
        lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    head = f"def __init__({', '.join(['self', *parameters])}):"
    exec("\n".join([head, *(lines or [" pass"])]), scope)
    init = scope["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {f.name: f.type for f in members if f.init} | {"return": None}
    return init


def _values(names: list[str]) -> Callable[[Any], Any]:
    """What reads several attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _eq(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def eq(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    eq.__name__ = "__eq__"
    return eq


def _repr(self: Any) -> str:
    parts = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
