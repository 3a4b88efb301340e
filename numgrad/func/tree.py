"""Nested tuples, lists and dicts of arrays: taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(tree: Any) -> list[Any]:
    """The arrays of a nesting, depth first; dicts in insertion order."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nesting with ``function`` applied to every array."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*(map_leaves(function, value) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(map_leaves(function, value) for value in tree)
    return function(tree)


def rebuild(tree: Any, values: list[Any]) -> Any:
    """The nesting of ``tree`` with its arrays replaced by ``values``, in order."""
    remaining = iter(values)
    return map_leaves(lambda _: next(remaining), tree)
