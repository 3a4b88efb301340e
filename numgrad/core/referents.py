"""Referents of a user's functions and containers: the objects that these hold.

Whoever searches what a function can reach walks them: ``compiler.call.captures`` for values that a
compiled function reads, ``compiler.trace.side_effects`` for what a step may change,
``tensors.random_state`` for generators of random numbers. Each decides what it looks at, follows
objects of other kinds, and what a function finds among globals, itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property, partial
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, NamedTuple

CELL, DEFAULT, KEYWORD = "cell", "default", "keyword"
FUNCTION, RECEIVER, ARGUMENT = "function", "receiver", "argument"
ITEM, ELEMENT = "item", "element"


class Referent(NamedTuple):
    """An object that another one holds.

    Attributes
    ----------
    kind
        How: as an enclosed variable, a default, a default or argument by keyword, the function
        behind a method or partial, what a method belongs to, an argument by position, a value of a
        dictionary, or an element.
    key
        The name of the variable or parameter, the number, or the key of a dictionary.
    holder
        The cell, the tuple of defaults or the dictionary in between; else the object itself.
    number
        The place of a default among these.
    """

    value: Any
    kind: str
    key: Any
    holder: Any
    number: int = 0

    @property
    def access(self) -> str:
        """How it is read, as an expression in ``{0}`` for the holder and ``{1}`` for the key."""
        if self.kind in (KEYWORD, ITEM, ELEMENT):
            return f"{{0}}[{self.key!r}]" if type(self.key) in (str, int) else "{0}[{1}]"
        if self.kind == FUNCTION:
            return "{0}.func" if isinstance(self.holder, partial) else "{0}.__func__"
        return _ACCESS[self.kind].format(number=self.number, key=self.key)


_ACCESS = {
    CELL: "{{0}}.cell_contents",
    DEFAULT: "{{0}}[{number}]",
    RECEIVER: "{{0}}.__self__",
    ARGUMENT: "{{0}}.args[{key}]",
}


def referents(x: Any) -> Iterator[Referent] | None:
    """The objects that a function, method, partial or container holds; None for other objects.

    Examples
    --------
    >>> from functools import partial
    >>> from numgrad.core.referents import referents
    >>> [(r.kind, r.key, r.value) for r in referents(partial(max, 2.0, key=abs))][1:]
    [('argument', 0, 2.0), ('keyword', 'key', <built-in function abs>)]
    """
    for kinds, walk in _WALKS:
        if isinstance(x, kinds):
            return walk(x)
    return None


def _of_function(x: FunctionType) -> Iterator[Referent]:
    code = x.__code__
    for name, cell in zip(code.co_freevars, x.__closure__ or (), strict=True):
        try:
            yield Referent(cell.cell_contents, CELL, name, cell)
        except ValueError:  # not assigned yet
            continue
    defaults = x.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    for number, (name, value) in enumerate(zip(names, defaults, strict=True)):
        yield Referent(value, DEFAULT, name, defaults, number)
    keywords = x.__kwdefaults__ or {}
    for name, value in keywords.items():
        yield Referent(value, KEYWORD, name, keywords)


def _of_method(x: MethodType) -> Iterator[Referent]:
    yield Referent(x.__func__, FUNCTION, None, x)
    yield Referent(x.__self__, RECEIVER, None, x)


def _of_partial(x: partial) -> Iterator[Referent]:
    yield Referent(x.func, FUNCTION, None, x)
    for number, value in enumerate(x.args):
        yield Referent(value, ARGUMENT, number, x)
    for name, value in x.keywords.items():
        yield Referent(value, KEYWORD, name, x.keywords)


def _of_mapping(x: Any) -> Iterator[Referent]:
    items = dict.items(x) if isinstance(x, dict) else x.items()
    return (Referent(value, ITEM, key, x) for key, value in items)


def _of_elements(x: Any) -> Iterator[Referent]:
    return (Referent(value, ELEMENT, number, x) for number, value in enumerate(x))


def _of_descriptor(x: Any) -> Iterator[Referent]:
    function = getattr(x, "__func__", None) or getattr(x, "fget", None) or getattr(x, "func", None)
    yield Referent(function, FUNCTION, None, x)


_WALKS: Any = (
    (FunctionType, _of_function),
    (MethodType, _of_method),
    (partial, _of_partial),
    ((dict, MappingProxyType), _of_mapping),
    ((list, tuple, set, deque), _of_elements),
    ((staticmethod, classmethod, property, cached_property), _of_descriptor),
)
