"""Referents of a user's functions and containers: the objects that these hold.

Whoever searches what a function can reach walks them: ``compiler.call.captures`` for values that a
compiled function reads, ``compiler.trace.side_effects`` for what a step may change,
``tensors.random_state`` for generators of random numbers. Each decides what it looks at, follows
objects of other kinds, and what a function finds among globals, itself.
"""

from collections import deque
from collections.abc import Iterator
from functools import cached_property, partial
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, TypeAlias

CELL, DEFAULT, KEYWORD = "cell", "default", "keyword"
FUNCTION, RECEIVER, ARGUMENT = "function", "receiver", "argument"
ITEM, ELEMENT = "item", "element"


Referent: TypeAlias = tuple[Any, str, Any, Any, str]
"""An object that another one holds: value, kind, key, holder, access.

Its kind is how: as an enclosed variable, a default, a default or argument by keyword, the function
behind a method or partial, the receiver of a method, an argument by position, a value of a
dictionary, or an element. The key is the name of a variable or parameter, a number, or the key of a
dictionary; the holder is the cell, the tuple of defaults or the dictionary in between, else the
object itself. ``access`` is an expression that reads it, in ``{0}`` for the holder and ``{1}`` for
the key.
"""


def referents(x: Any) -> Iterator[Referent] | None:
    """The objects that a function, method, partial or container holds; None for other objects.

    Examples
    --------
    >>> from functools import partial
    >>> from numgrad.core.referents import referents
    >>> [(kind, key, x) for x, kind, key, _, _ in referents(partial(max, 2.0, key=abs))][1:]
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
            yield (cell.cell_contents, CELL, name, cell, "{0}.cell_contents")
        except ValueError:  # not assigned yet
            continue
    defaults = x.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    for number, (name, value) in enumerate(zip(names, defaults, strict=True)):
        yield (value, DEFAULT, name, defaults, f"{{0}}[{number}]")
    keywords = x.__kwdefaults__ or {}
    for name, value in keywords.items():
        yield (value, KEYWORD, name, keywords, f"{{0}}[{name!r}]")


def _of_method(x: MethodType) -> Iterator[Referent]:
    yield (x.__func__, FUNCTION, None, x, "{0}.__func__")
    yield (x.__self__, RECEIVER, None, x, "{0}.__self__")


def _of_partial(x: partial) -> Iterator[Referent]:
    yield (x.func, FUNCTION, None, x, "{0}.func")
    for number, value in enumerate(x.args):
        yield (value, ARGUMENT, number, x, f"{{0}}.args[{number}]")
    for name, value in x.keywords.items():
        yield (value, KEYWORD, name, x.keywords, f"{{0}}[{name!r}]")


def _of_mapping(x: Any) -> Iterator[Referent]:
    items = dict.items(x) if isinstance(x, dict) else x.items()
    for key, value in items:
        access = f"{{0}}[{key!r}]" if type(key) in (str, int) else "{0}[{1}]"
        yield (value, ITEM, key, x, access)


def _of_elements(x: Any) -> Iterator[Referent]:
    for number, value in enumerate(x):
        yield (value, ELEMENT, number, x, f"{{0}}[{number}]")


def _of_descriptor(x: Any) -> Iterator[Referent]:
    for name in ("__func__", "fget", "func"):
        if hasattr(x, name):
            yield (getattr(x, name), FUNCTION, None, x, f"{{0}}.{name}")


_WALKS: Any = (
    (FunctionType, _of_function),
    (MethodType, _of_method),
    (partial, _of_partial),
    ((dict, MappingProxyType), _of_mapping),
    ((list, tuple, set, deque), _of_elements),
    ((staticmethod, classmethod, property, cached_property), _of_descriptor),
)
