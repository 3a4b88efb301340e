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
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "absolute": np.absolute,
    "square": np.square,
    "sqrt": np.sqrt,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "where": np.where,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


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
    function = _EXACT.get(node.name)
    if function is None:
        return None
    assert isinstance(node.op, Elementwise)
    loop, _ = node.op.result_types([v.operand for v in node.inputs])
    (out,) = node.outputs
    if any(d.kind == "c" for d in loop):
        return None
    if not all(is_convertible(v, d) for v, d in zip(node.inputs, loop, strict=True)):
        return None
    numbers = [np.asarray(v.constant).astype(d) for v, d in zip(node.inputs, loop, strict=True)]
    with np.errstate(all="ignore"):
        result = np.asarray(function(*numbers)).astype(out.dtype)
    return to.constant(result.item(), out.dtype, out.weak)
