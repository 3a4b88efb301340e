"""What translation asks of pieces of syntax again and again, found out once for each."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def found_once(find: Callable[[Any], T]) -> Callable[[Any], T]:
    """A function of a piece of syntax that keeps its answer in the piece, for as long as it lives.

    Syntax does not change after it is read.
    """
    key = f"found_{find.__name__}"

    def found(node: ast.AST) -> T:
        facts = node.__dict__
        if key not in facts:
            facts[key] = find(node)
        return facts[key]

    found.__doc__ = find.__doc__
    return found


@found_once
def nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """A piece of syntax and all pieces in it, in the order of ``ast.walk``."""
    found = [node]
    for each in found:  # which grows
        facts = each.__dict__
        for field in each._fields:
            value = facts.get(field)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
    return tuple(found)


@found_once
def calls(node: ast.AST) -> tuple[ast.Call, ...]:
    """The calls in a piece of syntax."""
    return tuple(each for each in nodes(node) if isinstance(each, ast.Call))
