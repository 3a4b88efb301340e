"""Whether part of a graph is linear in some of its values.

Note [Rules that are not linear]
--------------------------------
The gradient of a loop computes each step anew. So in a derivative of second order the gradient of
a value in a step arrives in two parts: one at the step, one where it was computed anew. What is
linear may be applied to each part. A rule that is not, such as a hook that clips, needs their sum,
which exists nowhere, so its gradients are not differentiated again by the tape. Nor are those of a
compiled function whose cotangent depends on what is differentiated by: there the rest arrives.
"""

from __future__ import annotations

from collections.abc import Collection

from numgrad.compiler.graph.evaluate import operands
from numgrad.compiler.graph.graph import CONSTANT, Graph, TracedNode, Value
from numgrad.compiler.trace.cut import ancestors
from numgrad.compiler.trace.memory import CONSTANTS
from numgrad.core.op import Op
from numgrad.core.primitive import View

_NOT_LINEAR = frozenset({"fmod", "heaviside", "pad_constant", "remainder"})
"""Operations whose gradient is that of a linear one."""

_INNER = frozenset({"scan", "subgraph"})
"""Operations that have graphs of their own."""


def is_linear(
    graph: Graph, given: Collection[Value], found: Collection[Value], *, in_doubt: bool = False
) -> bool:
    """Whether ``found`` are linear in ``given``, as far as operations show.

    ``in_doubt`` is what loops and branches are taken for.
    """
    moving, needed = set(given), set(ancestors(list(found)))
    for node in graph.nodes:
        if needed.isdisjoint(node.outputs) or moving.isdisjoint(node.inputs):
            continue
        if node.name == "ruled":
            passed = node.inputs[node.params["count"] :]
            moving.update(y for x, y in zip(passed, node.outputs, strict=True) if x in moving)
        elif _is_linear(node, moving) or (in_doubt and node.name in _INNER):
            moving.update(node.outputs)
        else:
            return False
    return all(v in moving or _is_zero(v) for v in found)


def _is_linear(node: TracedNode, moving: Collection[Value]) -> bool:
    """Whether the results are linear in the ``moving`` operands together.

    That is so if no formula of theirs reads one of them, and nothing else is added.
    """
    op = node.op
    if not isinstance(op, Op) or op.name in _NOT_LINEAR:
        return False
    if op.name in CONSTANTS:
        return True
    if op.name.startswith("written") or any(v.dtype.kind not in "fc" for v in node.outputs):
        return False
    several = op.inputs == ("inputs",)
    given = operands(node, node.inputs)
    names = ["inputs" if several else op.inputs[k] for k in range(len(given))]
    never = {"y", *op.auxiliaries}
    never.update(name for name, v in zip(names, given, strict=True) if v in moving)
    for name, v in zip(names, given, strict=True):
        formula = op.formulas.get(name)
        reads = formula is None or not formula.uses_g or not never.isdisjoint(formula.needs)
        if v is None:
            continue
        if v in moving:
            if reads:
                return False
        elif formula is not None and not reads and not _is_zero(v):
            return False
    return True


def _is_zero(value: Value) -> bool:
    """Whether a value is known to be nothing but zeros."""
    node = value.node
    if node.name == "multiply" or isinstance(node.op, View):
        return any(map(_is_zero, node.inputs if node.name == "multiply" else node.inputs[:1]))
    return node.op == CONSTANT and value.constant == 0
