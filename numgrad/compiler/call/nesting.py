"""Nested tuples, lists and dicts: taken apart, put together, and named."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from numgrad.errors import NumgradValueError

Nesting = tuple[Any, Any, Any] | None
"""``(type, keys, parts)`` of a container, with keys only for dicts; None for a leaf."""


def is_named_tuple(kind: type) -> bool:
    """Whether instances of a class are named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


DEEPEST = 64
"""How deep containers may be in one another: each level is read, and made, at every call."""


def flatten(tree: Any, leaves: list[Any], depth: int = 0) -> Nesting:
    """The nesting of a tree, its leaves appended to a list.

    Raises
    ------
    NumgradValueError
        If it is nested deeper than ``DEEPEST``, or contains itself.
    """
    kind = type(tree)
    if depth > DEEPEST:
        raise NumgradValueError(
            f"jit: a {kind.__name__} lies more than {DEEPEST} containers deep in an argument or a "
            "result, or in itself; pass and return its arrays in a flat list or dict"
        )
    if kind in (tuple, list) or is_named_tuple(kind):
        return kind, None, tuple([flatten(part, leaves, depth + 1) for part in tree])
    if kind in (dict, OrderedDict):
        parts = [flatten(part, leaves, depth + 1) for part in tree.values()]
        return kind, tuple(tree), tuple(parts)
    leaves.append(tree)
    return None


def unflatten(nesting: Nesting, leaves: Iterator[Any]) -> Any:
    """The tree of that nesting with the next leaves."""
    if nesting is None:
        return next(leaves)
    kind, keys, parts = nesting
    values = [unflatten(part, leaves) for part in parts]
    if keys is not None:
        return kind(zip(keys, values, strict=True))
    return kind(*values) if is_named_tuple(kind) else kind(values)


def paths(nesting: Nesting, start: str) -> Iterator[str]:
    """How a reader would write each leaf, as in ``x[0]['w']``."""
    if nesting is None:
        yield start
        return
    kind, keys, parts = nesting
    for number, part in enumerate(parts):
        if is_named_tuple(kind):
            yield from paths(part, f"{start}.{kind._fields[number]}")
        else:
            yield from paths(part, f"{start}[{number if keys is None else keys[number]!r}]")
