"""What is left of a value without the axes along which it repeats."""

from __future__ import annotations

from typing import Any

from numgrad.compiler.graph.graph import CONSTANT, Value
from numgrad.compiler.graph.shapes import same_shape
from numgrad.compiler.passes.rewriting import is_one

REPEATING = ("broadcast_to", "reshape")
"""Operations whose result may be a smaller value repeated."""


def source(value: Value) -> Value:
    """The smallest value that broadcasts to ``value``, axes matched from the right."""
    while True:
        node = value.node
        if node.name == "broadcast_to" or (node.name == "reshape" and _adds_leading_ones(value)):
            value = node.inputs[0]
        else:
            return value


def _adds_leading_ones(value: Value) -> bool:
    (given,) = value.node.inputs
    lead = value.ndim - given.ndim
    return (
        lead > 0
        and all(map(is_one, value.shape[:lead]))
        and same_shape(given.shape, value.shape[lead:])
    )


def constant_of(value: Value) -> Any:
    """The number that all elements are, if that is known, else None."""
    found = source(value)
    return found.node.params["value"] if found.node.op == CONSTANT else None
