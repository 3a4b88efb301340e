"""Equal computations are done once, which joins the work of a value and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import CALL, CONSTANT, INPUT, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, Sizes
from numgrad.compiler.passes.rewriting import Rewriting, rewrite

_COMMUTATIVE = ("add", "multiply", "equal", "not_equal")
"""Whose result has the same bits for operands in either order, NaNs apart."""


def join_common(graph: Graph) -> int:
    """Compute equal nodes once. Calls stay apart: they may have effects."""
    known: dict[tuple, TracedNode] = {}
    numbers: dict[Value, int] = {}

    def rule(to: Rewriting, node: TracedNode) -> tuple[Value, ...] | None:
        item = node
        if node.op not in (INPUT, CALL):
            item = known.setdefault(_key(graph.sizes, node, numbers), node)
        if item is not node:
            return item.outputs
        for value in node.outputs:
            numbers[value] = len(numbers)
        return None

    return rewrite(graph, rule)


def _key(sizes: Sizes, node: TracedNode, numbers: dict[Value, int]) -> tuple:
    inputs = [numbers[v] for v in node.inputs]
    if node.name in _COMMUTATIVE:
        inputs.sort()
    params: Any = ()
    if node.op == CONSTANT:  # -0.0 is not 0.0
        (value,) = node.outputs
        params = np.asarray(node.params["value"], value.dtype).tobytes()
    elif node.params:
        params = tuple([(name, _frozen(sizes, v)) for name, v in sorted(node.params.items())])
    results = [x for v in node.outputs for x in (v.dtype, v.weak)]
    return node.name, params, *inputs, *results


def graph_key(graph: Graph) -> tuple:
    """A key that is the same for graphs that compute the same things in the same order."""
    sizes = graph.sizes
    numbers: dict[Value, int] = {}
    results: list[Any] = [id(sizes)]
    for value in graph.inputs:
        numbers[value] = len(numbers)
        results.append((_frozen(sizes, value.shape), value.dtype, value.weak))
    for node in graph.nodes:
        if node.op != INPUT:
            shapes = _frozen(sizes, [v.shape for v in node.outputs])
            results.append((id(node) if node.op == CALL else _key(sizes, node, numbers), shapes))
            for value in node.outputs:
                numbers[value] = len(numbers)
    return *results, *(numbers[v] for v in graph.outputs)


def _frozen(sizes: Sizes, value: Any) -> Any:
    """A parameter as something to compare, of its type."""
    if type(value) is int:
        return value
    if isinstance(value, Size):
        return Size, sizes.known(value.terms)
    if isinstance(value, tuple | list):
        return tuple(_frozen(sizes, part) for part in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return "slice", *(_frozen(sizes, part) for part in parts)
    if isinstance(value, int | float | complex | str | np.dtype | None):
        return type(value), repr(value)
    return object, getattr(value, "structure_key", None) or id(value)
