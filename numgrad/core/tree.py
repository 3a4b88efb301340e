"""Nested tuples, lists and dicts of arrays: taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.errors import NumgradValueError

DEEPEST = 200
"""Levels of a nesting: what is deeper contains itself, or is no nesting of arrays."""


def leaves(tree: Any) -> list[Any]:
    """The arrays of a nesting, depth first; dicts in insertion order.

    Raises
    ------
    NumgradValueError
        If it is nested too deeply, as one that contains itself is.
    """
    found: list[Any] = []
    map_leaves(found.append, tree)
    return found


def map_leaves(function: Callable[[Any], Any], tree: Any, depth: int = 0) -> Any:
    """The same nesting with ``function`` applied to every array."""
    if not isinstance(tree, dict | list | tuple):
        return function(tree)
    if depth == DEEPEST:
        raise NumgradValueError(
            f"a {type(tree).__name__} is nested more than {DEEPEST} levels deep, or contains "
            "itself; give a flatter nesting of arrays"
        )
    if isinstance(tree, dict):
        return {key: map_leaves(function, value, depth + 1) for key, value in tree.items()}
    parts = [map_leaves(function, value, depth + 1) for value in tree]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*parts)
    return type(tree)(parts)


def rebuild(tree: Any, values: list[Any]) -> Any:
    """The nesting of ``tree`` with its arrays replaced by ``values``, in order."""
    remaining = iter(values)
    return map_leaves(lambda _: next(remaining), tree)
