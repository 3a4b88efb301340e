"""A graph as a function of Tensors: its operations are called anew, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.evaluate import operands, parameters
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph, TracedNode, Value
from numgrad.core.op import Op
from numgrad.errors import NumgradNotImplementedError


def replay(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of a graph, computed with operations on Tensors that may be recorded or traced."""
    sizes = graph.sizes
    lengths: dict[int, Any] = {}
    for value, given in zip(graph.inputs, inputs, strict=True):
        for expected, n in zip(value.shape, getattr(given, "shape", ()), strict=True):
            axis = sizes.number(sizes.resolve(expected))
            if axis is not None:
                lengths[axis] = n

    def length(n: Any) -> Any:
        return sizes.evaluate(n, lengths)

    known: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        if node.op != INPUT:
            known.update(zip(node.outputs, _compute(node, known, length), strict=False))
    return tuple([known[value] for value in graph.outputs])


def _compute(node: TracedNode, known: dict[Value, Any], length: Any) -> tuple[Any, ...]:
    """Results of a node, without what its operation notes besides."""
    value = node.outputs[0]
    if node.op == CONSTANT:
        number = node.params["value"]
        return (number if value.weak or number is None else np.asarray(number, value.dtype),)
    if node.op == SIZE:
        return (length(node.params["size"]),)
    if not isinstance(node.op, Op):
        raise NumgradNotImplementedError(
            f"jit: {node.line or 'a call of a Python function'}: a compiled function that calls "
            "Python code cannot be differentiated twice; run it eagerly (ng.config.jit = False)"
        )
    given = operands(node, [known[v] for v in node.inputs])
    out = node.op(*given, **parameters(node, length))
    results = out if isinstance(out, tuple) else (out,)
    return tuple(
        r.item() if v.weak and isinstance(r, Tensor) and isinstance(r._array, np.ndarray) else r
        for v, r in zip(node.outputs, results, strict=False)
    )
