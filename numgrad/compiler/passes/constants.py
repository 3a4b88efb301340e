"""Arithmetic of numbers that are known is done once, when the graph is compiled.

Only what has one right result is: NumPy rounds it as kernels do, so nothing is compiled for it.
Elementary functions of numbers are left to the kernel, which computes them once a call.
"""

from __future__ import annotations

import numpy as np

from numgrad.compiler.graph.graph import CONSTANT, Graph, TracedNode, Value
from numgrad.compiler.passes.rewriting import Rewriting, is_convertible, rewrite
from numgrad.core.elementwise import Elementwise

_EXACT = {
    "add", "subtract", "multiply", "divide", "negative", "absolute", "square", "sqrt", "sign",
    "floor", "ceil", "trunc", "rint", "maximum", "minimum", "where", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not", "isnan",
    "isinf", "isfinite",
}  # fmt: skip


def fold_constants(graph: Graph) -> int:
    """Compute what depends on nothing but numbers."""
    return rewrite(graph, _rule)


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    if any(v.node.op != CONSTANT for v in node.inputs):
        return None
    if node.name == "astype":
        (x,) = node.inputs
        dtype = node.outputs[0].dtype
        return to.astype(x, dtype) if is_convertible(x, dtype) else None
    if node.name not in _EXACT:
        return None
    assert isinstance(node.op, Elementwise)
    loop, _ = node.op.result_types([v.operand for v in node.inputs])
    (out,) = node.outputs
    pairs = list(zip(node.inputs, loop, strict=True))
    if any(d.kind == "c" for d in loop) or not all(is_convertible(v, d) for v, d in pairs):
        return None
    numbers = [np.asarray(v.constant).astype(d) for v, d in pairs]
    with np.errstate(all="ignore"):
        result = np.asarray(getattr(np, node.name)(*numbers)).astype(out.dtype)
    return to.constant(result.item(), out.dtype, out.weak)
