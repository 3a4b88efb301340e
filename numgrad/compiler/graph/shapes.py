"""Symbolic shapes: broadcasting, and equality without guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from numgrad.compiler.graph.graph import Graph, Length, Shape
from numgrad.compiler.graph.sizes import Size, lengths_in
from numgrad.core.abstract import broadcast_lengths
from numgrad.errors import NumgradValueError


def same(a: Length, b: Length) -> bool:
    """Whether two lengths are equal whatever the lengths of arguments are."""
    if isinstance(a, Size):
        return isinstance(b, Size) and a.sizes.known(a.terms) == b.sizes.known(b.terms)
    return not isinstance(b, Size) and a == b


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal whatever the lengths of arguments are."""
    return len(a) == len(b) and all(map(same, a, b))


def broadcast(operation: str, shapes: Sequence[Shape]) -> Shape:
    """The shape NumPy's broadcasting gives; equalities that it needs become guards."""
    try:
        return broadcast_lengths(*shapes)
    except ValueError:
        listed = ", ".join(str(hinted(shape)) for shape in shapes)
        raise NumgradValueError(
            f"{operation}: shapes {listed} do not broadcast; axes are matched from the right and "
            "must be equal or 1"
        ) from None


def hinted(shape: Shape) -> tuple[int, ...]:
    """A shape in the call that is traced."""
    return tuple([n.sizes.hint(n) if isinstance(n, Size) else n for n in shape])


def specialised(shape: Shape) -> tuple[int, ...]:
    """A shape as numbers, which become part of what a kernel is made for."""
    return tuple([n.sizes.specialise(n) if isinstance(n, Size) else n for n in shape])


def lengths_read(graph: Graph) -> set[int]:
    """The axes whose lengths a graph reads, and none of its inputs has."""
    sizes = graph.sizes
    read: list[Length] = []
    for node in graph.nodes:
        read += [n for v in node.outputs for n in v.shape]
        read += lengths_in(node.params)
    given = {sizes.number(sizes.resolve(n)) for v in graph.inputs for n in v.shape}
    return sizes.axes(n for n in read if isinstance(n, Size)) - given  # pyright: ignore


def with_lengths(graph: Graph, axes: Iterable[int]) -> Graph:
    """Add inputs without content whose lengths are those of axes that no other input has.

    ``length_arrays`` makes what to hand in for them.
    """
    for k in axes:
        graph.input((graph.sizes.of_axis(k),), np.dtype(bool))
    return graph


def length_arrays(axes: Iterable[int], known: Mapping[int, int]) -> list[np.ndarray]:
    """Arrays without content for the inputs that ``with_lengths`` has added."""
    return [np.empty(known[k], bool) for k in axes]


def results_of(graph: Graph, operands: Sequence[Shape], known: dict[int, Length]) -> list[Shape]:
    """Shapes of the outputs of a graph for operands of these shapes.

    ``known`` are the lengths of axes that no input has. Where a graph is called in another trace
    than its own, the lengths are those of that trace.
    """
    sizes = graph.sizes
    lengths: dict[int, Length] = dict(known)
    for value, shape in zip(graph.inputs, operands, strict=True):
        for expected, n in zip(value.shape, shape, strict=True):
            axis = sizes.number(sizes.resolve(expected))
            if axis is not None:
                lengths[axis] = n
    return [tuple(sizes.evaluate(n, lengths) for n in v.shape) for v in graph.outputs]  # pyright: ignore
