"""Reference backend: a graph's operations one by one on ndarrays, as eager code runs them.

What passes and generated kernels compute is held to it, and it is there to debug with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import CALL, CONSTANT, INPUT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.messages import name_line
from numgrad.core.op import Op
from numgrad.core.primitive import Primitive
from numgrad.errors import NumgradAssertionError, NumgradError

_INDEXED = ("getitem", "getitem_backward", "index_put")
"""Operations with a canonical index."""

Step = Callable[[list[Any]], tuple[Any, ...]]


def compile_graph(graph: Graph, options: Any = None) -> ReferenceProgram:
    """The program that computes ``graph``; there are no options."""
    return ReferenceProgram(graph)


class ReferenceProgram:
    """A graph that can be run; results are checked to be what the graph says they are."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def run(self, *inputs: Any) -> tuple[np.ndarray, ...]:
        """Outputs, then what is to be written to inputs: new contiguous arrays.

        ``inputs`` are ndarrays, and Python numbers for weak values.
        """
        graph = self.graph
        if len(inputs) != len(graph.inputs):
            raise NumgradAssertionError(
                f"graph: takes {len(graph.inputs)} inputs, got {len(inputs)}"
            )
        lengths = _lengths(graph, inputs)

        def length(n: Any) -> Any:
            return graph.sizes.evaluate(n, lengths)

        values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        known = dict(values)
        for position, node in enumerate(graph.nodes):
            if node.op != INPUT:
                operands = [known[v] for v in node.inputs]
                written = [values[v] for v in node.params.get("writes", ())]
                known.update(self._copies(position, known, written))
                known.update(zip(node.outputs, compute(node, operands, length), strict=True))
            for value in node.outputs:
                _check(value, known[value], length)
        return tuple(np.array(known[value], value.dtype, order="C") for value in graph.roots())

    def _copies(
        self, position: int, computed: dict[Value, Any], written: Sequence[np.ndarray]
    ) -> dict[Value, Any]:
        """Copies of what is read after a node that writes to the memory it lies in."""
        if not written:
            return {}
        later = [v for node in self.graph.nodes[position + 1 :] for v in node.inputs]
        return {
            v: computed[v].copy()
            for v in [*later, *self.graph.roots()]
            if v in computed and any(np.may_share_memory(computed[v], array) for array in written)
        }


def _lengths(graph: Graph, inputs: Sequence[Any]) -> dict[int, int]:
    """The length of each symbolic axis, from the arguments that have it."""
    mapping: dict[int, int] = {}
    for value, array in zip(graph.inputs, inputs, strict=True):
        for expected, n in zip(value.shape, np.shape(array), strict=True):
            axis = graph.sizes.number(expected)
            if axis is not None:
                mapping[axis] = n
    return mapping


def compute(
    node: TracedNode, inputs: Sequence[Any], length: Callable[[Any], int]
) -> tuple[Any, ...]:
    """Results of one node for operands as NumPy has them; ``length`` gives the number of a size."""
    inputs = list(inputs)
    if node.op == CONSTANT:
        (value,) = node.outputs
        number = node.params["value"]
        return (number if value.weak else np.asarray(number, value.dtype),)
    if node.op == SIZE:
        return (length(node.params["size"]),)
    if node.op == CALL:
        return tuple(node.params["function"](*inputs))
    assert isinstance(node.op, Op)
    inputs, params = operands(node, inputs), parameters(node, length)
    try:
        if isinstance(node.op, Primitive):
            results, aux = node.op.results_of(node.op.arrays(inputs), params)
            results += tuple(aux)
        else:
            out, _ = node.op.run(inputs, params)
            results = (*(out if type(out) is tuple else (out,)),)
    except NumgradError as error:
        name_line(error, node.line)
        raise
    return tuple(
        np.asarray(result).item() if value.weak else result
        for value, result in zip(node.outputs, results, strict=True)
    )


def operands(node: TracedNode, inputs: Sequence[Any]) -> list[Any]:
    """The operands of an operation, None for those that are left out."""
    results = list(inputs)
    for position in node.params.get("absent", ()):
        results.insert(position, None)
    return results


def parameters(node: TracedNode, length: Callable[[Any], Any]) -> dict[str, Any]:
    """The parameters of an operation as its caller would write them, with numbers for lengths."""
    index = node.name in _INDEXED
    return {
        name: _index(value, length) if index and name == "index" else with_lengths(value, length)
        for name, value in node.params.items()
        if name != "absent"
    }


def with_lengths(value: Any, length: Callable[[Any], int]) -> Any:
    """A parameter with numbers in place of symbolic lengths, at any depth."""
    if isinstance(value, Size):
        return length(value)
    if isinstance(value, tuple | list):
        return type(value)(with_lengths(item, length) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(with_lengths(item, length) for item in parts))
    return value


def _index(index: tuple[Any, ...], length: Callable[[Any], int]) -> tuple[Any, ...]:
    """A canonical index as NumPy understands it: it has no number for what is before the start."""
    results = []
    for entry in with_lengths(index, length):
        if isinstance(entry, slice) and entry.step < 0 and entry.stop < 0:
            entry = slice(entry.start, None, entry.step)
        results.append(entry)
    return tuple(results)


def _check(value: Value, array: Any, length: Callable[[Any], int]) -> None:
    shape = tuple(length(n) for n in value.shape)
    same = np.shape(array) == shape
    if value.weak:
        same = same and not isinstance(array, np.ndarray)
    else:
        same = same and isinstance(array, np.ndarray | np.generic) and array.dtype == value.dtype
    if not same:
        kind = getattr(array, "dtype", type(array).__name__)
        raise NumgradAssertionError(
            f"graph: {value!r} came out with shape {np.shape(array)} and dtype {kind}"
        )
