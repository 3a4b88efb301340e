"""Keys of nodes and graphs: equal ones compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import CALL, CONSTANT, INPUT, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, Sizes

_COMMUTATIVE = ("add", "multiply", "equal", "not_equal")
"""Whose result has the same bits for operands in either order, NaNs apart."""


def node_key(sizes: Sizes, node: TracedNode, numbers: dict[Value, int]) -> tuple:
    """A key that is the same for nodes that compute the same, given numbers of their operands."""
    inputs = [numbers[v] for v in node.inputs]
    if node.name in _COMMUTATIVE:
        inputs.sort()
    params: Any = ()
    if node.op == CONSTANT:  # -0.0 is not 0.0
        (value,) = node.outputs
        params = np.asarray(node.params["value"], value.dtype).tobytes()
    elif node.params:
        params = tuple([(name, frozen(sizes, v)) for name, v in sorted(node.params.items())])
    results = [x for v in node.outputs for x in (v.dtype, v.weak)]
    return node.op, params, *inputs, *results


def numbers_of(graph: Graph) -> dict[Value, int]:
    """A number for each value, the same for those that are equal by how they are computed."""
    known: dict[tuple, TracedNode] = {}
    numbers: dict[Value, int] = {}
    for node in graph.nodes:
        item = node
        if node.op not in (INPUT, CALL):
            item = known.setdefault(node_key(graph.sizes, node, numbers), node)
        for value, equal in zip(node.outputs, item.outputs, strict=True):
            numbers[value] = numbers.get(equal, len(numbers))
    return numbers


def graph_key(graph: Graph) -> tuple:
    """A key that is the same for graphs that compute the same things in the same order."""
    sizes = graph.sizes
    numbers: dict[Value, int] = {}
    results: list[Any] = [id(sizes)]
    for value in graph.inputs:
        numbers[value] = len(numbers)
        results.append((frozen(sizes, value.shape), value.dtype, value.weak))
    for node in graph.nodes:
        if node.op != INPUT:
            shapes = frozen(sizes, [v.shape for v in node.outputs])
            results.append(
                (id(node) if node.op == CALL else node_key(sizes, node, numbers), shapes)
            )
            for value in node.outputs:
                numbers[value] = len(numbers)
    return *results, *(numbers[v] for v in graph.outputs)


def frozen(sizes: Sizes, value: Any) -> Any:
    """A parameter as something to compare, of its type."""
    if type(value) is int:
        return value
    if isinstance(value, Size):
        return Size, sizes.known(value.terms)
    if isinstance(value, tuple | list):
        return tuple(frozen(sizes, item) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return "slice", *(frozen(sizes, item) for item in parts)
    if isinstance(value, int | float | complex | str | np.dtype | None):
        return type(value), repr(value)
    return object, getattr(value, "structure_key", None) or id(value)
