"""Rows, columns and entries of Jacobians at once, where the function's structure allows it.

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

Note [Tangents by column]
-------------------------
Residuals of a model depend on most parameters through a term or two. So a Tensor has, at this
level, a tangent for each column of the Jacobian that is not zero there, and an operation costs one
tangent for each of those: the function runs once, and a column costs what its own terms do. That
beats a batch of all columns (Note [Batched values]) where columns are few. What would need more
than this, a write in place or a rule of the user's, is refused, and left to other ways; so is what
is computed in ``no_grad``, or for a gradient inside, where these ways differ, and what is not
finite, which factors may have made so.

Note [Entries by part]
----------------------
A stencil cuts arrays of one shape out of its input, by slices, and combines them element by
element. An element of the result then depends on one element of each part, and one backward, of
cotangents that are all one, arrives at each part with its entries of the Jacobian, as long as
parts are not put back into the input. So a walk over the recorded graph ends where parts are cut.

Note [Derivatives as factors]
-----------------------------
Over the real numbers that is the formula, unless it selects: where a formula has ``where(c, g, 0)``
nothing arrives, and a factor of 0 would make NaN of NaN and of infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.forward_ad import ForwardInterpreter, gathered
from numgrad.autograd.forward_rules import pushforward, reads_call, takes_tangent
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor, root
from numgrad.core.arguments import complete
from numgrad.core.axis import AxisPlan
from numgrad.core.elementwise import Elementwise, ElementwisePlan
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, bind_recorded, raw, state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Call, remember
from numgrad.core.primitive import View
from numgrad.errors import NumgradNotImplementedError

_SELECTING = {"where", "maximum", "minimum", "fmax", "fmin", "clip", "nan_to_num"}


def scaled(op: Op, factor: Any, t: Any) -> Any:
    """A tangent or gradient times the factor of an operation, which may have selected."""
    if op.name in _SELECTING:
        return np.where(factor == 0, 0.0, factor * t)
    return factor * t


# ------------------------------------------------------------------------------------ rows by point


SHARED = -1
"""Marker in place of an axis: all points have the value in common."""


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

    ``arrived`` has for each value, by the ``_key`` of its edge, the axis of points or ``SHARED``,
    its gradients, and whether these may be added to.
    """

    def __init__(self, y: Tensor) -> None:
        self.count = y._array.shape[0]
        self.arrived: dict[int, list[Any]] = {}
        self.waiting: dict[int, Node] = {}
        self._arrive(edge_of(y), 0, np.ones(self.count, y._array.dtype), False)
        while self.waiting:
            sequence = max(self.waiting)
            axis, g, _ = self.arrived.pop(sequence)
            self._visit(self.waiting.pop(sequence), axis, g)

    def jacobian(self, x: Tensor) -> np.ndarray | None:
        """The Jacobian by a leaf, of shape ``(points, *x.shape)``."""
        axis, g, owned = self.arrived.get(_key(x), (SHARED, None, False))
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
        entry = self.arrived.get(key)
        if entry is None:
            self.arrived[key] = [axis, g, owned]
            if type(edge) is Node:
                self.waiting[key] = edge
        elif entry[0] != axis:
            raise NumgradNotImplementedError("points: they are mixed")
        elif entry[2]:
            entry[1] += g
        else:
            entry[1:] = entry[1] + g, True

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
        offset = axis - g.ndim  # operands are aligned at their ends
        key = call, node.mask, offset
        shared = _spreads.get(key)
        if shared is None:
            shared = remember(_spreads, key, _Spread(call, node.mask, offset, self.count))
        values = node.unpack() if node.saved != () else ()
        if shared.plan is not call:
            values = list(map(_spread_value, values, shared.saved))
        gradients, owned = shared.plan.backward(node.mask, g, values)
        for k, edge in enumerate(node.edges):
            if edge is None:
                continue
            grad = gradients[k]
            if shared.shapes[k] is None:
                self._arrive(edge, grad.ndim + offset, grad, bool(owned >> k & 1))
            else:
                grad = grad if offset == -1 else np.moveaxis(grad, offset, -1)
                self._arrive(edge, SHARED, grad.reshape(-1, self.count), bool(owned >> k & 1))

    def _view(self, node: Node, axis: int, g: np.ndarray) -> None:
        """Follow the axis of points through a view, as long as it stays one."""
        call: Any = node.call
        shape = call.metas[0].shape
        points = np.arange(self.count)
        expected = points.reshape(_one_axis(g.ndim, axis, self.count))
        for before in (k for k, n in enumerate(shape) if n == self.count):
            numbers = points.reshape(_one_axis(len(shape), before, self.count))
            viewed = call.op.function(np.broadcast_to(numbers, shape), **call.params)
            if (viewed == expected).all():
                gradients, owned = call.backward(node.mask, g, node.unpack() if node.saved else [])
                if gradients[0].shape == shape:
                    self._arrive(node.edges[0], before, gradients[0], bool(owned & 1))
                    return
        raise NumgradNotImplementedError("points: a view that mixes them")

    def _along(self, node: Node, axis: int, g: np.ndarray) -> None:
        """An operation along other axes."""
        call: Any = node.call
        same = len(call.metas[0].shape) == g.ndim
        axes = [k for k in range(len(call.metas[0].shape)) if same or k not in call.axes]
        if axes[axis] in call.axes:
            raise NumgradNotImplementedError("points: an operation along them")
        gradients, owned = call.backward(node.mask, g, node.unpack())
        self._arrive(node.edges[0], axes[axis], gradients[0], bool(owned & 1))

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
        entry = self.arrived.get(_key(edge))
        if entry is None or not entry[2]:
            self._arrive(edge, SHARED, np.zeros((size, self.count), g.dtype), True)
            entry = self.arrived[_key(edge)]
        if entry[0] != SHARED:
            raise NumgradNotImplementedError("points: they are mixed")
        for position, row in zip(places.tolist(), g, strict=True):
            target = entry[1][position]
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
    """An operation over elements whose operands all have the axis ``position`` of points.

    Attributes
    ----------
    shapes
        For each operand the shape that gives it that axis, None where it stays as it is.
    saved
        The same for each value that is saved.
    """

    def __init__(self, call: ElementwisePlan, mask: int, position: int, count: int) -> None:
        if any(meta.dtype.kind == "c" for meta in call.metas):
            raise NumgradNotImplementedError("points: complex numbers")
        self.shapes: list[tuple[int, ...] | None] = []
        for k, meta in enumerate(call.metas):
            shape = (*[1] * (-position - len(meta.shape)), *meta.shape)
            mixed = mask >> k & 1 and (len(meta.shape) < -position or shape[position] != count)
            broadcast = (
                *shape[: len(shape) + position],
                count,
                *shape[len(shape) + position + 1 :],
            )
            self.shapes.append(broadcast if mixed else None)
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
    """A saved value, contiguous, with the axis of points."""
    if not isinstance(value, np.ndarray):
        return value
    if shape is None:
        return value if value.flags.c_contiguous else value.copy()
    value = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    repeated = np.empty(shape, value.dtype)
    repeated[...] = value
    return repeated


# ------------------------------------------------------------------------------- tangents by column


FEW = 24
"""Columns up to which they are computed like this."""

ONE = np.ones(())

Columns = dict[int, np.ndarray]
"""For each column that reaches a Tensor, what broadcasts to its shape."""


class Units:
    """Columns of a variable or a view of it: the number of each element's own."""

    def __init__(self, places: np.ndarray) -> None:
        self.places = places

    @cached_property
    def columns(self) -> Columns:
        """A tangent for each element."""
        places = self.places
        if places.size == 1:
            return {places.item(): np.ones(places.shape) if places.shape else ONE}
        return {int(k): (places == k).astype(np.float64) for k in places.ravel()}


class ColumnsInterpreter(ForwardInterpreter):
    """A level at which tangents are columns: Note [Tangents by column]."""

    several = True

    def _apply(
        self, op: Op, args: tuple, params: dict[str, Any], wants_call: bool
    ) -> tuple[Any, Any]:
        args, params = complete(op, args, params)
        args = tuple([gathered(a) for a in args])
        columns: list[Columns | None] = [
            self.tangent(a) if isinstance(a, Tensor) and takes_tangent(op, k) else None
            for k, a in enumerate(args)
        ]
        active = op.differentiable and any(g is not None for g in columns)
        if active and (state.constant or state.grad_enabled):  # set by the function itself
            raise NumgradNotImplementedError("columns: in no_grad, or for a gradient inside")
        before = state.interpreters
        try:
            state.interpreters = self._below
            state.refresh()
            if wants_call or (active and reads_call(op)):
                out, call = bind_recorded(op, args, params)
            else:
                out, call = bind(op, args, params), None
            if active:
                with np.errstate(all="ignore"):  # silent as kernels are
                    self._push(op, args, params, columns, out, call)
        finally:
            state.interpreters = before
            state.refresh()
        return out, call

    def _push(
        self,
        op: Op,
        args: tuple,
        params: dict[str, Any],
        tangents: Sequence[Any],
        out: Any,
        call: Any,
    ) -> None:
        if isinstance(out, Tensor):
            if out._array.dtype != np.float64:
                if out._array.dtype.kind in "fc":
                    raise NumgradNotImplementedError("columns: numbers of another dtype")
                return
            if isinstance(op, View) and op.linear and op.jvp_formula is None:
                columns = _by_views(op, args, params, tangents[0])
                if type(columns) is Units or columns:
                    self.set_tangent(out, columns)  # pyright: ignore
                return
            tangents = [g.columns if type(g) is Units else g for g in tangents]
            if isinstance(op, Elementwise) and op.jvp_formula is None:
                columns = _by_factors(op, args, tangents, out._array)
            else:
                (columns,) = _by_rules(op, args, params, tangents, out, call)
            if columns:
                self.set_tangent(out, columns)  # pyright: ignore
            return
        tangents = [g.columns if type(g) is Units else g for g in tangents]
        for y, columns in zip(out, _by_rules(op, args, params, tangents, out, call), strict=True):
            if columns:
                self.set_tangent(y, columns)  # pyright: ignore

    def tangent(self, tensor: Tensor) -> Any:
        """The columns that reach a Tensor; None for none."""
        columns = self._own_tangent(tensor)
        if columns is None:
            owner = root(tensor)
            if owner is not tensor and self._own_tangent(owner) is not None:
                raise NumgradNotImplementedError("columns: a view that does not follow its root")
        return columns

    def duplicate(self, original: Tensor, twin: Tensor) -> None:
        """Refuse."""
        if self.tangent(original) is not None:
            raise NumgradNotImplementedError("columns: a write in place")

    def assign(self, target: Tensor, result: Any) -> None:
        """Refuse what would have to change tangents."""
        moved = isinstance(result, Tensor) and self.tangent(result) is not None
        if moved or self.tangent(target) is not None:
            raise NumgradNotImplementedError("columns: a write in place")


def _by_factors(op: Elementwise, args: tuple, inputs: Sequence[Any], out: np.ndarray) -> Columns:
    """Over the real numbers an elementwise gradient formula is a factor, for all columns."""
    arrays = [a._array if isinstance(a, Tensor) else a for a in args]
    metas = tuple([Meta(np.shape(a), out.dtype) for a in arrays])
    values = dict(zip(op.inputs, arrays, strict=True))
    values["y"] = out
    record = Call(op, metas, {})
    tangents: Columns = {}
    before = state.interpreters
    try:
        state.interpreters = (raw,)
        state.refresh()
        for k, columns in enumerate(inputs):
            if columns is None:
                continue
            factor = record.gradient(k, ONE, values)
            for column, t in columns.items():
                moved = t if factor is ONE else factor if t is ONE else scaled(op, factor, t)
                tangents[column] = tangents[column] + moved if column in tangents else moved
    finally:
        state.interpreters = before
        state.refresh()
    return tangents


def _by_views(op: View, args: tuple, params: dict[str, Any], columns: Any) -> Any:
    x, *rest = args
    if type(columns) is Units:
        return Units(op.compute((columns.places, *rest), params))
    tangents = {}
    for column, t in columns.items():
        moved = op.compute((np.broadcast_to(t, x.shape), *rest), params)
        tangents[column] = moved
    return tangents


def _by_rules(
    op: Op, args: tuple, params: dict[str, Any], given: Sequence[Any], out: Any, call: Any
) -> list[Columns]:
    """The derivative of a call by the rules of forward mode."""
    several = isinstance(out, tuple)
    outs = out if several else (out,)
    if any(y._array.dtype.kind in "fc" and y._array.dtype != np.float64 for y in outs):
        raise NumgradNotImplementedError("columns: numbers of another dtype")
    of_outputs: list[Columns] = [{} for _ in outs]
    for column in dict.fromkeys(k for columns in given if columns for k in columns):
        tangents = [
            Tensor(np.array(np.broadcast_to(columns[column], a.shape), a.dtype))
            if columns and column in columns
            else None
            for a, columns in zip(args, given, strict=True)
        ]
        out_tangents = pushforward(op, args, params, tangents, out, call)
        for columns, t in zip(
            of_outputs, out_tangents if several else (out_tangents,), strict=True
        ):
            if t is not None:
                columns[column] = t._array
    return of_outputs


def suits(x: Sequence[Tensor], results: Sequence[Tensor]) -> bool:
    """Whether columns are few, and nobody differentiates or maps them."""
    return not any(t.requires_grad for t in (*x, *results)) and few(x, results)


def few(x: Sequence[Tensor], results: Sequence[Tensor]) -> bool:
    """Whether columns are few, and nobody maps them."""
    if state.interpreters or state.ground.deferred:
        return False
    return all(t._array.dtype == np.float64 for t in (*x, *results)) and (
        sum(t._array.size for t in x) <= FEW
    )


def columns_by_duals(
    function: Callable[[Sequence[Tensor]], Sequence[Tensor]], x: Sequence[Tensor]
) -> list[list[Tensor]]:
    """For each result of a function, for each ``x``, the derivative, of shape ``result + x``.

    Raises
    ------
    NumgradNotImplementedError
        If something in it is not for this: Note [Tangents by column].
    """
    level = ColumnsInterpreter()
    before = state.set(interpreters=(level,), grad_enabled=False, constant=False)
    try:
        duals, first, places = [], 0, []
        for t in x:
            dual, shape, size = Tensor(t._array), t._array.shape, t._array.size
            units = Units(np.arange(first, first + size).reshape(shape))
            level.set_tangent(dual, units)  # pyright: ignore
            duals.append(dual)
            places.append((first, shape, size))
            first += size
        results = function(duals)
        table = []
        for y in results:
            columns = level.tangent(y) or {}
            columns = columns.columns if type(columns) is Units else columns
            row: list[Any] = []
            for start, shape, size in places:
                mine = [(k, columns[start + k]) for k in range(size) if start + k in columns]
                block = np.zeros((*y.shape, size), y.dtype)
                for k, t in mine:
                    block[..., k] = t
                if not np.isfinite(block).all():
                    raise NumgradNotImplementedError("columns: tangents that are not finite")
                row.append(Tensor(block.reshape((*y.shape, *shape))))
            table.append(row)
        return table
    finally:
        level.close()
        state.set(**before)


# ---------------------------------------------------------------------------------- entries by part


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
        """A key that says which elements the part has."""
        return self.number, *[(cut.op.name, repr(cut.params)) for cut in self.cuts]

    def places(self, shape: tuple[int, ...]) -> np.ndarray:
        """The numbers of the elements of the part among those of the leaf."""
        numbers = np.arange(prod(shape)).reshape(shape)
        for cut in self.cuts:
            numbers = cut.op.function(numbers, **cut.params)
        return np.ravel(numbers)


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
    shape, parts = y._array.shape, []
    root = edge_of(y)
    waiting: dict[int, tuple[Any, np.ndarray]] = {}

    def arrive(edge: Any, g: np.ndarray) -> None:
        if type(edge) is Node:
            known = waiting.get(edge.sequence)
            waiting[edge.sequence] = edge, g if known is None else known[1] + g
        elif isinstance(edge, Tensor) and id(edge) in leaves and edge._array.shape == shape:
            parts.append(CutPart(leaves[id(edge)], (), g))
        else:
            raise NumgradNotImplementedError("parts: another result or leaf")

    arrive(root, np.ones(shape, y._array.dtype))
    while waiting:
        node, g = waiting.pop(max(waiting))
        call: Any = node.call
        if node.extras is not None:
            raise NumgradNotImplementedError("parts: hooks, or code of the user's")
        if isinstance(call, ElementwisePlan):
            positions = [k for k, edge in enumerate(node.edges) if edge is not None]
            if any(call.metas[k].shape != shape for k in positions) or not call.floating:
                raise NumgradNotImplementedError("parts: they are broadcast")
            gradients, _ = call.backward(node.mask, g, node.unpack() if node.saved else ())
            for k in positions:
                arrive(node.edges[k], gradients[k])
        elif (cut := _cut(node, leaves)) is not None:
            parts.append(CutPart(*cut, g))
        else:
            raise NumgradNotImplementedError(f"parts: {call.op.name}")
    return parts


def _cut(node: Node, leaves: dict[int, int]) -> tuple[int, tuple[Any, ...]] | None:
    """The leaf that a node is a view of, and the calls between; None if it is something else."""
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
