"""Gradients of what all steps of a loop read, as one product after it.

Note [Products after a loop]
----------------------------
The gradient of a matrix that steps multiply with is a sum of products, of rank one for a step with
a vector: a loop that adds them up writes the whole matrix at each step. Where that is more than the
factors, the loop collects these, and one product of all of them gives the sum (loop distribution,
and one matrix product for many updates of rank one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.compiler.graph.graph import Graph, Value
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.loops.body import LoopBody
from numgrad.compiler.trace.cut import extract
from numgrad.core.op import OPS

SMALLEST = 64
"""Elements of a matrix that is added up in the loop in any case: they may stay in registers."""

Factors = tuple[Value, Value]
"""Factors of ``transpose(a) @ b``: vectors or matrices."""


def with_factors(
    body: LoopBody, summed: Sequence[int]
) -> tuple[LoopBody, dict[int, list[tuple[int, int]]]]:
    """A transposed loop that collects factors in place of sums, and where it has those of each.

    ``summed`` are the parts of its carry that add up something. Places are those in what is
    collected.
    """
    graph, c = body.graph, body.carries
    factors_of: dict[int, list[Factors]] = {}
    for k in summed:
        if factors := _factors(graph, k):
            factors_of[k] = factors
    if not factors_of:
        return body, {}
    rows = list(graph.outputs[c : len(graph.outputs) - c])
    places: dict[int, list[tuple[int, int]]] = {}
    for k, pairs in factors_of.items():
        places[k] = []
        for pair in pairs:
            places[k].append((len(rows), len(rows) + 1))
            rows += pair
    left = [k for k in range(c) if k not in factors_of]
    inputs = [v for k, v in enumerate(graph.inputs) if k not in factors_of]
    before = [graph.inputs[k] for k in left]
    part = extract(graph, inputs, [*(graph.outputs[k] for k in left), *rows, *before])
    return LoopBody(part, len(left), body.xs), places


def product(pairs: Sequence[tuple[Any, Any]], dtype: Any) -> Any:
    """The sum that pairs of collected factors give."""
    total: Any = None
    for a, b in pairs:
        here = OPS["matmul"](OPS["permute_dims"](_in_a_row(a), axes=(1, 0)), _in_a_row(b))
        total = here if total is None else total + here
    return total if total.dtype == dtype else OPS["astype"](total, dtype)


def _in_a_row(x: Any) -> Any:
    """The rows of all steps, one below the other."""
    return OPS["reshape"](x, (x.shape[0] * x.shape[1], x.shape[2])) if x.ndim == 3 else x


def _factors(graph: Graph, k: int) -> list[Factors]:
    """Factors of what is added to a part of the carry; none where that is no sum of products."""
    total, before = graph.outputs[k].node, graph.inputs[k]
    if total.name != "add" or total.inputs[0] is not before:
        return []
    factors: list[Factors] = []
    stack = [total.inputs[1]]
    while stack:
        value = stack.pop()
        pair = _pair(value)
        if pair is not None:
            factors.append(pair)
        elif value.node.name == "add" and all(v.ndim == 2 for v in value.node.inputs):
            stack += value.node.inputs
        else:
            return []
    collected = sum(_count(v) for pair in factors for v in pair)
    return factors if _count(before) > SMALLEST and 2 * collected < _count(before) else []


def _pair(value: Value) -> Factors | None:
    """The factors of a product of matrices, or of a column and a row."""
    node = value.node
    if value.ndim != 2 or value.dtype.kind not in "fc":
        return None
    if node.name == "matmul":
        a, b = node.inputs
        if a.node.name == "permute_dims" and a.node.params["axes"] == (1, 0) and b.ndim == 2:
            return a.node.inputs[0], b
    if node.name == "multiply":
        a, b = (_vector(v) for v in node.inputs)
        if a is not None and b is not None and a[1] == 0 and b[1] == 1:
            return a[0], b[0]
        if a is not None and b is not None and a[1] == 1 and b[1] == 0:
            return b[0], a[0]
    return None


def _vector(value: Value) -> tuple[Value, int] | None:
    """The vector that a column or a row is, and the axis of a matrix along which it lies."""
    if value.ndim == 1:
        return value, 1
    node = value.node
    if node.name != "reshape" or node.inputs[0].ndim != 1:
        return None
    axis = 0 if _is_one(value.shape[1]) else 1
    return (node.inputs[0], axis) if _is_one(value.shape[1 - axis]) else None


def _is_one(n: Any) -> bool:
    return isinstance(n, int) and n == 1


def _count(value: Value) -> int:
    """About how many elements a value has."""
    count = 1
    for n in value.shape:
        count *= n.hint if isinstance(n, Size) else n
    return count
