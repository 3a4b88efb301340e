"""Broadcasting after computing: elementwise operations work on operands as small as they are.

What broadcasts by itself is not repeated first, and a result that repeats is computed once:
``exp(broadcast_to(x, shape))`` becomes ``broadcast_to(exp(x), shape)``. So arrays of one number are
that number wherever something is computed from them.
"""

from __future__ import annotations

from numgrad.compiler.graph.graph import Graph, TracedNode, Value
from numgrad.compiler.passes.rewriting import Rewriting, rewrite
from numgrad.compiler.passes.uniform import REPEATING, source
from numgrad.core.elementwise import Elementwise


def move_broadcasts(graph: Graph) -> int:
    """Broadcast results instead of operands."""
    return rewrite(graph, _rule)


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    if not isinstance(node.op, Elementwise):
        return None
    if all(v.node.name not in REPEATING for v in node.inputs):
        return None
    found = [v if (s := source(v)) is v else to.strong(s) for v in node.inputs]
    if all(a is b for a, b in zip(found, node.inputs, strict=True)):
        return None
    (out,) = node.outputs
    return to.broadcast(to.elementwise(node.op, found, out), out.shape)
