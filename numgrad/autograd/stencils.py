"""Sparse Jacobians of functions that combine parts of their input element by element.

Note [Entries by part]
----------------------
A stencil cuts arrays of one shape out of its input, by slices, and combines them element by
element. An element of the result then depends on one element of each part, and one backward, of
cotangents that are all one, arrives at each part with its entries of the Jacobian, as long as
parts are not put back into the input. So a walk over the recorded graph ends where parts are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.core.elementwise import ElementwisePlan
from numgrad.core.interpreter import state
from numgrad.core.primitive import View
from numgrad.errors import NumgradNotImplementedError


class CutPart(NamedTuple):
    """Entries of the Jacobian in one part of the input.

    Attributes
    ----------
    number
        Which leaf the part is of.
    cuts
        The calls that cut it, one after the other.
    entries
        The derivatives of elements of the result, each by the element of the part at its place.
    """

    number: int
    cuts: tuple[Any, ...]
    entries: np.ndarray

    @property
    def key(self) -> Any:
        """What says which elements the part has."""
        return self.number, *[(cut.op.name, repr(cut.params)) for cut in self.cuts]

    def places(self, shape: tuple[int, ...]) -> np.ndarray:
        """The numbers of the elements of the part among those of the leaf."""
        found = np.arange(prod(shape)).reshape(shape)
        for cut in self.cuts:
            found = cut.op.function(found, **cut.params)
        return np.ravel(found)


def parts_of(y: Tensor, x: Sequence[Tensor]) -> list[CutPart]:
    """The Jacobian of a recorded result by leaves, part by part.

    Raises
    ------
    NumgradNotImplementedError
        If something else is done on the way: Note [Entries by part].
    """
    if state.anomaly or any(t._extra is not None and t._extra.hooks is not None for t in x):
        raise NumgradNotImplementedError("parts: hooks of leaves, or a search for NaN")
    leaves = {id(t): k for k, t in enumerate(x)}
    shape, found = y._array.shape, []
    root = edge_of(y)
    waiting: dict[int, tuple[Any, np.ndarray]] = {}

    def arrive(edge: Any, g: np.ndarray) -> None:
        if type(edge) is Node:
            known = waiting.get(edge.sequence)
            waiting[edge.sequence] = edge, g if known is None else known[1] + g
        elif isinstance(edge, Tensor) and id(edge) in leaves and edge._array.shape == shape:
            found.append(CutPart(leaves[id(edge)], (), g))
        else:
            raise NumgradNotImplementedError("parts: another result or leaf")

    arrive(root, np.ones(shape, y._array.dtype))
    while waiting:
        node, g = waiting.pop(max(waiting))
        call: Any = node.call
        if node.extras is not None:
            raise NumgradNotImplementedError("parts: hooks, or code of the user's")
        if isinstance(call, ElementwisePlan):
            wanted = [k for k, edge in enumerate(node.edges) if edge is not None]
            if any(call.metas[k].shape != shape for k in wanted) or not call.floating:
                raise NumgradNotImplementedError("parts: they are broadcast")
            gradients, _ = call.backward(node.mask, g, node.unpack() if node.saved else ())
            for k in wanted:
                arrive(node.edges[k], gradients[k])
        elif (cut := _cut(node, leaves)) is not None:
            found.append(CutPart(*cut, g))
        else:
            raise NumgradNotImplementedError(f"parts: {call.op.name}")
    return found


def _cut(node: Node, leaves: dict[int, int]) -> tuple[int, tuple[Any, ...]] | None:
    """Of which leaf a view is, and by which calls; None if it is something else."""
    cuts: list[Any] = []
    edge: Any = node
    while type(edge) is Node:
        call: Any = edge.call
        plain = isinstance(call.op, View) and call.op.linear and edge.extras is None
        if not plain or call.dtype != call.metas[0].dtype:
            return None
        cuts.insert(0, call)
        edge = edge.edges[0]
    return (leaves[id(edge)], tuple(cuts)) if id(edge) in leaves else None
