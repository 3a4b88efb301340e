"""Nested containers of arrays: taken apart, put together, and named.

Note [Containers]
-----------------
Tuples, lists, named tuples, dicts, instances of dataclasses and of classes given to ``register``
are containers, and so are labelled arrays of xarray and Series of pandas, which hold one array;
everything else is a leaf, and so is what is an array besides or can be called. A subclass of
``tuple`` or ``list`` is put together by its class, one of ``dict`` other than ``OrderedDict`` as a
dict, and an instance of a dataclass from its fields, without ``__init__``.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.foreign import labelled_kind
from numgrad.errors import NumgradTypeError, NumgradValueError

Nesting = tuple[type, Any, tuple["Nesting", ...]] | None
"""``(type, keys, parts)`` of a container; None for a leaf."""

DEEPEST = 200
"""Levels of a nesting: what is deeper contains itself, or is no nesting of arrays."""


class Container(NamedTuple):
    """How instances of a class are taken apart and put together.

    Attributes
    ----------
    split
        Gives the keys, or whatever else there is besides the parts, and the parts.
    join
        Makes an instance of a class, of keys and parts.
    fields
        Names of the attributes that the parts are, if they are such; empty for one not shown.
    """

    split: Callable[[Any], tuple[Any, Sequence[Any]]]
    join: Callable[[type, Any, list[Any]], Any]
    fields: tuple[str, ...] | None = None

    def path(self, keys: Any, k: int) -> str:
        """How a reader would write part ``k``, as in ``['w']``."""
        if self.fields is not None:
            return f".{self.fields[k]}" if self.fields[k] else ""
        return f"[{keys[k]!r}]" if self is MAPPING else f"[{k}]"


SEQUENCE = Container(lambda x: (None, x), lambda kind, _, children: kind(children))
MAPPING = Container(
    lambda x: (tuple(x), tuple(x.values())),
    lambda kind, keys, children: kind(zip(keys, children, strict=True)),
)


class _Nothing:
    """The kind of None where that is a container without parts: ``flatten_arrays``."""


class _Labels:
    """Dimensions, coordinates, name and attributes of a labelled array of xarray."""

    def __init__(self, array: Any) -> None:
        self.template = array.copy(data=np.broadcast_to(np.zeros((), array.dtype), array.shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Labels) and self.template.identical(other.template)

    def __hash__(self) -> int:
        return hash((type(self.template), self.template.dims, self.template.shape))

    def around(self, data: Any) -> Any:
        """An array with these labels; what has another shape, as a Jacobian, as it is."""
        if getattr(data, "shape", None) != self.template.shape:
            return data
        return self.template.copy(data=data)


_LABELLED = Container(
    lambda x: (_Labels(x), (x.data,)),
    lambda kind, labels, children: labels.around(*children),
    ("data",),
)

LABELLED: dict[str, Container] = {"xarray.DataArray": _LABELLED, "xarray.Variable": _LABELLED}
"""Containers that hold one array, by library and class."""

_REGISTERED: dict[type, Container] = {
    _Nothing: Container(lambda x: (None, ()), lambda kind, keys, children: None)
}


def register(
    kind: type,
    split: Callable[[Any], tuple[Sequence[Any], Any]],
    join: Callable[[Any, Sequence[Any]], Any],
) -> type:
    """Make instances of a class containers, for transforms and ``jit``; returns the class.

    Parameters
    ----------
    kind
        The class; not its subclasses.
    split
        Gives of an instance a sequence of its parts, and what else belongs to it, which ``jit``
        compares by ``==``.
    join
        Makes an instance of that and of other parts.

    Raises
    ------
    NumgradTypeError
        If ``kind`` is no class.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> _ = ng.tree.register(
    ...     Line, lambda l: ((l.slope, l.offset), None), lambda _, parts: Line(*parts)
    ... )
    >>> ng.grad(lambda line: line.slope * 2.0 + line.offset)(Line(3.0, 1.0)).slope
    np.float64(2.0)
    """
    if not isinstance(kind, type):
        raise NumgradTypeError(f"register: takes a class, got a {type(kind).__name__}")

    def split_it(x: Any) -> tuple[Any, Sequence[Any]]:
        children, rest = split(x)
        return rest, tuple(children)

    _REGISTERED[kind] = Container(split_it, lambda _, rest, children: join(rest, children))
    container_of.cache_clear()
    return kind


@lru_cache(1024)
def container_of(kind: type) -> Container | None:
    """How instances of a class are taken apart; None if they are leaves."""
    if kind in _REGISTERED:
        return _REGISTERED[kind]
    if (labelled := LABELLED.get(labelled_kind(kind) or "")) is not None:
        return labelled
    if hasattr(kind, "__array__") or any("__call__" in vars(base) for base in kind.__mro__):
        return None
    if issubclass(kind, dict):
        return MAPPING
    names = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and names is not None:
        return Container(SEQUENCE.split, lambda kind, _, children: kind(*children), names)
    if issubclass(kind, tuple | list):
        return SEQUENCE
    if dataclasses.is_dataclass(kind):
        fields = tuple([field.name for field in dataclasses.fields(kind)])
        return Container(
            lambda x: (None, tuple([getattr(x, name) for name in fields])), _filled, fields
        )
    return None


def _filled(kind: type, _: Any, children: list[Any]) -> Any:
    """An instance of a dataclass with these fields."""
    made = object.__new__(kind)
    for field, child in zip(dataclasses.fields(kind), children, strict=True):
        object.__setattr__(made, field.name, child)
    return made


def flatten(tree: Any, leaves: list[Any], deepest: int = DEEPEST, depth: int = 0) -> Nesting:
    """The nesting of a tree, its leaves appended to a list, depth first.

    Raises
    ------
    NumgradValueError
        If it is nested deeper than ``deepest``, as one that contains itself is.
    """
    if container_of(type(tree)) is None:
        leaves.append(tree)
        return None
    if depth == deepest:
        raise NumgradValueError(
            f"a {type(tree).__name__} is nested more than {deepest} levels deep, or contains "
            "itself; give a flatter nesting of arrays"
        )
    kind, keys, children = split(tree)
    return kind, keys, tuple([flatten(child, leaves, deepest, depth + 1) for child in children])


def split(tree: Any) -> tuple[type, Any, Sequence[Any]]:
    """The kind, the keys and the parts of a container, of which ``join`` makes such a one."""
    kind, container = type(tree), container_of(type(tree))
    keys, children = container.split(tree)  # pyright: ignore[reportOptionalMemberAccess]
    return dict if container is MAPPING and kind is not OrderedDict else kind, keys, children


def join(kind: type, keys: Any, children: list[Any]) -> Any:
    """A container of these parts."""
    container: Any = container_of(kind)
    return container.join(kind, keys, children)


def flatten_arrays(tree: Any, leaves: list[Any]) -> Nesting:
    """The same where None in a container is none of the leaves, as in a field that is not used."""
    results: list[Any] = []
    nesting = flatten(tree, results)
    if nesting is None:
        leaves += results
        return None
    return _without_nothing(nesting, iter(results), leaves)


def _without_nothing(nesting: Nesting, result: Iterator[Any], leaves: list[Any]) -> Nesting:
    if nesting is None:
        leaf = next(result)
        if leaf is None:
            return _Nothing, None, ()
        leaves.append(leaf)
        return None
    kind, keys, children = nesting
    return kind, keys, tuple([_without_nothing(child, result, leaves) for child in children])


def unflatten(nesting: Nesting, leaves: Iterator[Any]) -> Any:
    """The tree of that nesting with the next leaves."""
    if nesting is None:
        return next(leaves)
    kind, keys, children = nesting
    return join(kind, keys, [unflatten(child, leaves) for child in children])


def align(nesting: Nesting, tree: Any, leaves: list[Any], start: str) -> str | None:
    """Append the leaves of a tree in the order of a nesting, whatever that of its dicts.

    Returns where it is nested otherwise, as ``paths`` writes it; None if it is not.
    """
    container: Any = container_of(type(tree))
    if nesting is None:
        leaves.append(tree)
        return None if container is None else start
    kind, keys, children = nesting
    if kind is _Nothing:
        return None if tree is None else start
    if container is not container_of(kind) or (container is SEQUENCE and type(tree) is not kind):
        return start
    its_keys, its_parts = container.split(tree)
    if container is MAPPING and set(its_keys) == set(keys):
        its_keys, its_parts = keys, [tree[key] for key in keys]
    if its_keys != keys or len(its_parts) != len(children):
        return start
    for k, (child, its_part) in enumerate(zip(children, its_parts, strict=True)):
        where = align(child, its_part, leaves, start + container.path(keys, k))
        if where is not None:
            return where
    return None


def is_labelled(nesting: Nesting) -> bool:
    """Whether a nesting is one array with labels."""
    return nesting is not None and container_of(nesting[0]) in LABELLED.values()


def paths(nesting: Nesting, start: str) -> Iterator[str]:
    """How a reader would write each leaf, as in ``x[0]['w']``."""
    if nesting is None:
        yield start
        return
    kind, keys, children = nesting
    container: Any = container_of(kind)
    for k, child in enumerate(children):
        yield from paths(child, start + container.path(keys, k))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nesting, depth first; dicts in insertion order."""
    results: list[Any] = []
    flatten(tree, results)
    return results


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nesting with ``function`` applied to every leaf."""
    results: list[Any] = []
    nesting = flatten(tree, results)
    return unflatten(nesting, map(function, results))
