"""Rows of a Jacobian all at once, where each element of the result has computations of its own.

Note [Rows by point]
--------------------
The residuals of a model are computed point by point: all arrays on the way have an axis along which
nothing mixes, or are the parameters, which all points share. Then one backward, of cotangents that
are all one, has the gradients of all points in it, side by side, as long as nothing is summed along
that axis. So a walk over the recorded graph keeps, for each value, either a gradient of its own
shape, of which one axis is that of the points, or, if points share the value, a row for each of its
elements with a gradient for each point. It costs a backward, however many rows and columns there
are. What mixes points is refused, and left to other ways; so are gradients that are not finite,
which factors may have made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.factors import scaled
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.core.axis import AxisPlan
from numgrad.core.elementwise import ElementwisePlan
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.plan import remember
from numgrad.core.primitive import View
from numgrad.errors import NumgradNotImplementedError

SHARED = -1
"""In place of an axis: all points have the value in common."""


def rows_by_point(y: Tensor, x: Sequence[Tensor]) -> list[np.ndarray | None]:
    """The Jacobian of a recorded vector by each of some leaves, None where there is no dependence.

    Raises
    ------
    NumgradNotImplementedError
        If points are mixed, or something else is not for this: Note [Rows by point].
    """
    if not y.requires_grad:
        return [None] * len(x)
    if state.anomaly or any(t._extra is not None and t._extra.hooks is not None for t in x):
        raise NumgradNotImplementedError("points: hooks of leaves, or a search for NaN")
    if any(t._grad_fn is not None for t in x):
        raise NumgradNotImplementedError("points: by leaves only")
    with np.errstate(all="ignore"):  # silent as kernels are
        walk = _Walk(y)
    return [walk.jacobian(t) for t in x]


class _Walk:
    """One backward with gradients by point.

    ``found`` has for each value, by the ``_key`` of its edge, the axis of points or ``SHARED``, its
    gradients, and whether these may be added to.
    """

    def __init__(self, y: Tensor) -> None:
        self.count = y._array.shape[0]
        self.found: dict[int, list[Any]] = {}
        self.waiting: dict[int, Node] = {}
        self._arrive(edge_of(y), 0, np.ones(self.count, y._array.dtype), False)
        while self.waiting:
            sequence = max(self.waiting)
            axis, g, _ = self.found.pop(sequence)
            self._visit(self.waiting.pop(sequence), axis, g)

    def jacobian(self, x: Tensor) -> np.ndarray | None:
        """By a leaf, of shape ``(points, *x.shape)``."""
        axis, g, owned = self.found.get(_key(x), (SHARED, None, False))
        if g is None:
            return None
        if not np.isfinite(g).all():
            raise NumgradNotImplementedError("points: gradients that are not finite")
        if axis == SHARED:
            return (g if owned else g.copy()).T.reshape(self.count, *x._array.shape)
        whole = np.zeros((self.count, *x._array.shape), x._array.dtype)
        points = np.arange(self.count)
        np.moveaxis(whole, axis + 1, 1)[points, points] = np.moveaxis(g, axis, 0)
        return whole

    def _arrive(self, edge: Any, axis: int, g: np.ndarray, owned: bool) -> None:
        """Add gradients of a value."""
        key = _key(edge)
        known = self.found.get(key)
        if known is None:
            self.found[key] = [axis, g, owned]
            if type(edge) is Node:
                self.waiting[key] = edge
        elif known[0] != axis:
            raise NumgradNotImplementedError("points: they are mixed")
        elif known[2]:
            known[1] += g
        else:
            known[1:] = known[1] + g, True

    def _visit(self, node: Node, axis: int, g: np.ndarray) -> None:
        """Pass the gradients of a node's result on to its operands."""
        call: Any = node.call
        if node.extras is not None:
            raise NumgradNotImplementedError("points: hooks, or code of the user's")
        if isinstance(call, ElementwisePlan):
            (self._shared_elements if axis == SHARED else self._elements)(node, axis, g)
        elif isinstance(call.op, View) and call.op.linear and call.dtype == call.metas[0].dtype:
            (self._shared_view if axis == SHARED else self._view)(node, axis, g)
        elif isinstance(call, AxisPlan) and axis != SHARED:
            self._along(node, axis, g)
        elif call.op is OPS["matmul"] and axis != SHARED:
            self._product(node, g)
        else:
            raise NumgradNotImplementedError(f"points: {call.op.name}")

    # ----------------------------------------------------------------- values with a row of points

    def _elements(self, node: Node, axis: int, g: np.ndarray) -> None:
        call: Any = node.call
        place = axis - g.ndim  # operands are aligned at their ends
        key = call, node.mask, place
        spread = _spreads.get(key)
        if spread is None:
            spread = remember(_spreads, key, _Spread(call, node.mask, place, self.count))
        values = node.unpack() if node.saved != () else ()
        if spread.plan is not call:
            values = list(map(_spread_value, values, spread.saved))
        found, owned = spread.plan.backward(node.mask, g, values)
        for k, edge in enumerate(node.edges):
            if edge is None:
                continue
            part = found[k]
            if spread.shapes[k] is None:
                self._arrive(edge, part.ndim + place, part, bool(owned >> k & 1))
            else:
                part = part if place == -1 else np.moveaxis(part, place, -1)
                self._arrive(edge, SHARED, part.reshape(-1, self.count), bool(owned >> k & 1))

    def _view(self, node: Node, axis: int, g: np.ndarray) -> None:
        """Whatever the axis of points becomes, as long as it stays one."""
        call: Any = node.call
        shape = call.metas[0].shape
        points = np.arange(self.count)
        expected = points.reshape(_one_axis(g.ndim, axis, self.count))
        for before in (k for k, n in enumerate(shape) if n == self.count):
            numbers = points.reshape(_one_axis(len(shape), before, self.count))
            seen = call.op.function(np.broadcast_to(numbers, shape), **call.params)
            if (seen == expected).all():
                found, owned = call.backward(node.mask, g, node.unpack() if node.saved else [])
                if found[0].shape == shape:
                    self._arrive(node.edges[0], before, found[0], bool(owned & 1))
                    return
        raise NumgradNotImplementedError("points: a view that mixes them")

    def _along(self, node: Node, axis: int, g: np.ndarray) -> None:
        """An operation along other axes."""
        call: Any = node.call
        same = len(call.metas[0].shape) == g.ndim
        kept = [k for k in range(len(call.metas[0].shape)) if same or k not in call.axes]
        if kept[axis] in call.axes:
            raise NumgradNotImplementedError("points: an operation along them")
        found, owned = call.backward(node.mask, g, node.unpack())
        self._arrive(node.edges[0], kept[axis], found[0], bool(owned & 1))

    def _product(self, node: Node, g: np.ndarray) -> None:
        """A matrix, with a row for each point, times a vector that they share."""
        shapes = [m.shape for m in node.call.metas]
        if node.mask != 2 or len(shapes[0]) != 2 or len(shapes[1]) != 1:
            raise NumgradNotImplementedError("points: a product that mixes them")
        (matrix,) = node.unpack()
        self._arrive(node.edges[1], SHARED, matrix.T * g, True)

    # ---------------------------------------------------------------------- values that are shared

    def _shared_elements(self, node: Node, axis: int, g: np.ndarray) -> None:
        call: Any = node.call
        size = len(g)
        if any(edge is not None and prod(m.shape) != size
               for edge, m in zip(node.edges, call.metas, strict=True)):  # fmt: skip
            raise NumgradNotImplementedError("points: they share what is broadcast")
        ones = np.ones(call.shape, call.dtype)
        factors, _ = call.backward(node.mask, ones, node.unpack() if node.saved else [])
        for edge, factor in zip(node.edges, factors, strict=True):
            if edge is not None:
                passed = g if factor is ones else scaled(call.op, factor.reshape(-1, 1), g)
                self._arrive(edge, SHARED, passed, factor is not ones)

    def _shared_view(self, node: Node, axis: int, g: np.ndarray) -> None:
        call: Any = node.call
        shape, (edge,) = call.metas[0].shape, node.edges
        size = prod(shape)
        numbers = np.arange(size)
        places = call.op.function(numbers.reshape(shape), **call.params).ravel()
        if places.size == size and (places == numbers).all():
            self._arrive(edge, SHARED, g, False)
            return
        known = self.found.get(_key(edge))
        if known is None or not known[2]:
            self._arrive(edge, SHARED, np.zeros((size, self.count), g.dtype), True)
            known = self.found[_key(edge)]
        if known[0] != SHARED:
            raise NumgradNotImplementedError("points: they are mixed")
        for place, row in zip(places.tolist(), g, strict=True):
            target = known[1][place]
            target += row


def _key(edge: Any) -> int:
    """Identity of the value that an edge points to: the number of a node, below 0 of a leaf."""
    if type(edge) is Node:
        return edge.sequence
    if type(edge) is tuple:
        raise NumgradNotImplementedError("points: an operation with several results")
    return -id(edge)


def _one_axis(ndim: int, axis: int, count: int) -> tuple[int, ...]:
    """A shape with one axis that is not 1."""
    return tuple([count if k == axis else 1 for k in range(ndim)])


class _Spread:
    """An operation over elements whose operands all have the axis of points, ``place`` of the end.

    Attributes
    ----------
    shapes
        For each operand the shape that gives it that axis, None where it stays as it is.
    saved
        The same for each value that is saved.
    """

    def __init__(self, call: ElementwisePlan, mask: int, place: int, count: int) -> None:
        if any(meta.dtype.kind == "c" for meta in call.metas):
            raise NumgradNotImplementedError("points: complex numbers")
        self.shapes: list[tuple[int, ...] | None] = []
        for k, meta in enumerate(call.metas):
            shape = (*[1] * (-place - len(meta.shape)), *meta.shape)
            mixed = mask >> k & 1 and (len(meta.shape) < -place or shape[place] != count)
            spread = (*shape[: len(shape) + place], count, *shape[len(shape) + place + 1 :])
            self.shapes.append(spread if mixed else None)
        by_name = dict(zip(call.op.inputs, self.shapes, strict=True))
        self.saved = [by_name.get(name) for name in call.saves(mask)]
        self.plan = call
        if any(shape is not None for shape in self.shapes):
            operands = [
                1.0 if scalar else np.ones(meta.shape if shape is None else shape, meta.dtype)
                for scalar, meta, shape in zip(call.scalars, call.metas, self.shapes, strict=True)
            ]
            self.plan = call.op.plan(operands)


_spreads: dict[tuple, _Spread] = {}


def _spread_value(value: Any, shape: tuple[int, ...] | None) -> Any:
    """What was saved, contiguous, with the axis of points."""
    if not isinstance(value, np.ndarray):
        return value
    if shape is None:
        return value if value.flags.c_contiguous else value.copy()
    value = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    spread = np.empty(shape, value.dtype)
    spread[...] = value
    return spread
