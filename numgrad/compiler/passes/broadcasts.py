"""Broadcasting after computing: elementwise operations work on operands as small as they are.

What broadcasts by itself is not repeated first, and a result that repeats is computed once:
``exp(broadcast_to(x, shape))`` becomes ``broadcast_to(exp(x), shape)``. So arrays of one number are
that number wherever something is computed from them.
"""

from __future__ import annotations

from typing import Any

from numgrad.compiler.graph.graph import CONSTANT, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import same_shape
from numgrad.compiler.passes.rewriting import Rewriting, is_one, rewrite
from numgrad.core.elementwise import Elementwise


def move_broadcasts(graph: Graph) -> int:
    """Broadcast results instead of operands."""
    return rewrite(graph, _rule)


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    if not isinstance(node.op, Elementwise):
        return None
    if all(v.node.name not in REPEATING for v in node.inputs):
        return None
    results = [v if (s := source(v)) is v else to.strong(s) for v in node.inputs]
    if all(a is b for a, b in zip(results, node.inputs, strict=True)):
        return None
    (out,) = node.outputs
    return to.broadcast(to.elementwise(node.op, results, out), out.shape)


# ----------------------------------------------------------------------------------------- uniform


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
    (before,) = value.node.inputs
    lead = value.ndim - before.ndim
    return (
        lead > 0
        and all(map(is_one, value.shape[:lead]))
        and same_shape(before.shape, value.shape[lead:])
    )


def constant_of(value: Value) -> Any:
    """The number that all elements are, if that is known, else None."""
    result = source(value)
    return result.node.params["value"] if result.node.op == CONSTANT else None
