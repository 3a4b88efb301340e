"""The derivative of a recorded function as a linear map: products from either side, or its matrix.

This is the only derivation: ``ng.grad`` and its like are wrappers of it, and so is
``numgrad.autograd.functional``.

Note [The transposed map]
-------------------------
The pullback ``w -> w J`` is linear in ``w``, and its own pullback is ``v -> J v``. So a product
from the right pulls back a ``w`` that requires grad (its value does not matter), recording that,
and pulls ``v`` back through the record; and the columns of ``J`` are the rows of the transposed
map. This needs no forward-mode formula, calls the function once however many products follow, and
the result can have a graph.

Note [Batches of rows]
----------------------
A row costs a backward. Many at once are a batch (Note [Batched values] in
``autograd.batching.batch``), which pays the way through the graph once, and takes memory for
``CHUNK`` times what the backward of one row does, at most. Rows are computed one after the other
where an operation refuses batches, and where code of the user's takes part in the backward (a
``Function``, a hook), which may look at numbers. Such code may also leave the tape, so columns by
the transposed map are chosen only where there are operations of the table and nothing else.

Note [Derivatives by example]
-----------------------------
Inside ``vmap`` arguments and results stand for examples, and the tape has whole batches. Every
example gets arguments of its own (``spread``), also of what all share, so that examples never meet
and the gradient of a sum over the batch has the gradients of all. The engine is asked below the
levels: what goes there is ``lowered``, what comes from there ``raised``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.batching.selected import beneath, levels_of, lowered, raised
from numgrad.autograd.engine.backward import dense_grad, repeated_gradient
from numgrad.autograd.engine.task import edge_of, reachable
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.variable import Tensor
from numgrad.core.abstract import ones, zeros
from numgrad.core.interpreter import ThreadSettings, state
from numgrad.core.op import OPS
from numgrad.errors import NumgradError

CHUNK = 128
"""Rows, or columns, that are computed at once."""

MANY = 16
"""Rows from which on a batch is faster than one after the other."""

Product = list[Tensor | None]
"""A Tensor for each input (or output); None is a zero for want of any dependence."""


class Linearization:
    """The derivative of ``y`` by ``x``, of which it was computed on the tape.

    Parameters
    ----------
    y
        Results; None for one that is known to depend on nothing.
    x
        What it is differentiated by: leaves, or what the tape knows.
    create_graph
        Record products, so that they can be differentiated.
    """

    def __init__(
        self, y: Sequence[Tensor | None], x: Sequence[Tensor], create_graph: bool = False
    ) -> None:
        self.y, self.x, self.create_graph = y, x, create_graph
        self.levels = levels_of(x[0]) if x else []

    def pull(
        self, w: Sequence[Tensor | None], *, last: bool = False, create_graph: bool | None = None
    ) -> Product:
        """The product ``w J``; None in ``w`` is zero. The ``last`` one frees the graph."""
        pairs = [
            (output, weight)
            for output, weight in zip(self.y, w, strict=True)
            if output is not None and weight is not None and output.requires_grad
        ]
        if not pairs:
            return [None] * len(self.x)
        roots, weights = zip(*pairs, strict=True)
        record = self.create_graph if create_graph is None else create_graph
        return self._walk(roots, weights, not last or None, record)

    def _walk(
        self,
        roots: Sequence[Tensor],
        weights: Sequence[Tensor] | None,
        retain_graph: bool | None,
        create_graph: bool,
        is_grads_batched: bool = False,
    ) -> Product:
        if not self.x:
            return []
        x, levels = self.x, self.levels
        if levels:  # Note [Derivatives by example]
            cotangents = map(one, roots) if weights is None else weights
            weights = [lowered(w, levels) for w in cotangents]
            if is_grads_batched:
                weights = [OPS["moveaxis"](w, len(levels), 0) for w in weights]
            roots, x = list(map(beneath, roots)), list(map(beneath, x))
        remaining = tuple([each for each in state.interpreters if each not in levels])
        with ThreadSettings(interpreters=remaining) if levels else nullcontext():
            results = dense_grad(
                roots, x, weights, retain_graph, create_graph,
                allow_unused=True, is_grads_batched=is_grads_batched,
            )  # fmt: skip
        if not levels:
            return list(results)
        if is_grads_batched:
            results = [None if g is None else OPS["moveaxis"](g, 0, len(levels)) for g in results]
        return [None if g is None else raised(g, levels) for g in results]

    def gradient(self) -> Product:
        """The gradient of ``y``, one number; nothing more is asked for."""
        (y,) = self.y
        if y is None or not y.requires_grad:
            return [None] * len(self.x)
        weights = [one(y)] if y.dtype.kind == "c" else None
        return self._walk([y], weights, None, self.create_graph)

    @cached_property
    def transposed(self) -> Linearization:
        """``w -> w J`` as a recorded function: Note [The transposed map]."""
        whole = [beneath(t) for t in self.y if t is not None]
        w = [raised(Tensor(zeros(t.shape, t.dtype), True), self.levels) for t in whole]
        grad = self.pull(w, create_graph=True)
        return Linearization(grad, w, self.create_graph)

    def push(
        self, v: Sequence[Tensor | None], *, last: bool = False, create_graph: bool | None = None
    ) -> Product:
        """The product ``J v``; as for ``pull``."""
        return self.transposed.pull(v, last=last, create_graph=create_graph)

    def pull_many(self, w: Sequence[Tensor]) -> Iterator[Product]:
        """The products of many ``w``, which lie along a first axis, as the results do: in batches.

        Note [Batches of rows] says when these are of one row each. ``push`` of many is the same of
        the transposed map.
        """
        count, start = int(w[0].shape[0]), 0
        known = [(y, v) for y, v in zip(self.y, w, strict=True) if y is not None]
        pairs = [(y, v) for y, v in known if y.requires_grad]
        roots = [y for y, _ in pairs]
        while start < count and count >= MANY and not uses_user_code(roots):
            chunk = [v[start : start + CHUNK] for _, v in pairs]
            try:
                results = self._walk(roots, chunk, True, self.create_graph, True)
            except NumgradError:  # an error of every row shows in turn
                break
            yield results
            start += CHUNK
        for row in zip(*[OPS["unstack"](v) for v in w], strict=True):
            if start:
                start -= 1
            else:
                results = self.pull(row)
                yield [None if g is None else OPS["expand_dims"](g, axis=0) for g in results]

    def freeze(self, frozen: bool = True) -> None:
        """Let nothing that was returned lead to leaves of the transposed map; or use it again."""
        if "transposed" in vars(self):
            for weight in map(beneath, self.transposed.x):
                weight._requires_grad = not frozen

    # ------------------------------------------------------------------------------------- matrix

    def rows(self, k: int, batched: bool | None = None, axis: int = 0) -> Product:
        """The Jacobian of ``y[k]`` by each of ``x``, of shape ``y[k].shape + x.shape``.

        ``batched`` is Note [Batches of rows], by default where there are many; with ``axis=-1`` the
        shape is ``x.shape + y[k].shape``.
        """
        y = self.y[k]
        if y is None:
            return [None] * len(self.x)
        wholes = [y.shape + t.shape if axis == 0 else t.shape + y.shape for t in self.x]
        if not y.size:  # no row to ask for
            return [filled(None, whole, t.dtype) for whole, t in zip(wholes, self.x, strict=True)]
        if not y.requires_grad:
            return [None] * len(self.x)
        count = int(y.size)
        if batched is None:
            many = count >= MANY and not uses_user_code([y])
            results = self._many(y) if many else None
        else:
            results = self._batches(y) if batched else None
        if results is None:
            if not (self.create_graph or state.interpreters or state.ground.deferred):
                return self._computed(y, count, axis, wholes)
            results = self._in_turn(y, count)
        return [
            None if block is None else OPS["reshape"](_arranged(block, axis), whole)
            for block, whole in zip(results, wholes, strict=True)
        ]

    def columns(self, k: int, batched: bool | None = None) -> Product:
        """The Jacobian of each of ``y`` by ``x[k]``, of shape ``y.shape + x[k].shape``."""
        return self.transposed.rows(k, batched, axis=-1)

    def _many(self, y: Tensor) -> list | None:
        try:
            return self._batches(y)
        except NumgradError:  # an error of every row shows in turn
            return None

    def _batches(self, y: Tensor) -> list:
        parts = [
            self._walk([y], [units], True, self.create_graph, is_grads_batched=True)
            for units in batches(y)
        ]
        columns = zip(*parts, strict=True)
        return [None if column[0] is None else joined(column) for column in columns]

    def _in_turn(self, y: Tensor, count: int) -> list[list[Tensor] | None]:
        """For each input a list of rows."""
        results: list[Any] = [None] * len(self.x)
        for position in range(count):
            row = self._walk([y], [unit(y, position)], True, self.create_graph)
            for p, (g, t) in enumerate(zip(row, self.x, strict=True)):
                if g is None:
                    continue
                if results[p] is None:
                    results[p] = [filled(None, t.shape, t.dtype)] * count
                results[p][position] = g
        return results

    def _computed(self, y: Tensor, count: int, axis: int, wholes: Sequence[tuple]) -> Product:
        """``rows`` in turn, if nothing has to know of them."""
        results: list[Any] = [None] * len(self.x)
        unit, pulled = np.zeros(y._array.shape, y._array.dtype), repeated_gradient(y, self.x)
        for position in range(count):
            unit.flat[position] = 1
            row = pulled(unit)
            unit.flat[position] = 0
            for p, g in enumerate(row):
                if g is None:
                    continue
                if results[p] is None:
                    results[p] = np.zeros((count, *g.shape), g.dtype)
                results[p][position] = g
        if axis:
            results = [None if rows is None else np.moveaxis(rows, 0, axis) for rows in results]
        return [
            None if rows is None else Tensor(rows.reshape(whole))
            for rows, whole in zip(results, wholes, strict=True)
        ]


Function: TypeAlias = Callable[[Sequence[Tensor]], Sequence[Tensor]]
"""Function of the Tensors that are differentiated."""


def dual_columns(
    function: Function, y: Sequence[Tensor], x: Sequence[Tensor]
) -> list[list[Tensor]]:
    """The Jacobian of a function by forward mode, ``table[output][input]``; ``y`` is its value.

    An evaluation with a batch of tangents for each input, or else one for each column.
    """
    table: list[list[Tensor]] = [[] for _ in y]
    for k, t in enumerate(x):
        parts = [_along(function, x, k, units) for units in batches(t)] or [[None] * len(y)]
        for row, of, blocks in zip(table, y, zip(*parts, strict=True), strict=True):
            whole = of.shape + t.shape
            if blocks[0] is None:
                row.append(filled(None, whole, of.dtype))
            else:
                row.append(OPS["reshape"](_arranged(joined(blocks), -1), whole))
    return table


def _along(function: Function, x: Sequence[Tensor], k: int, directions: Tensor) -> Product:
    """Derivatives of all outputs along each of some directions of one input."""
    count = int(directions.shape[0])

    def tangents(direction: Tensor) -> Product:
        with dual_level():
            outputs = function([*x[:k], make_dual(x[k], direction), *x[k + 1 :]])
            return [unpack_dual(output).tangent for output in outputs]

    if count > 1:
        try:
            with BatchingInterpreter(count) as batch:
                results = tangents(batch.wrap(directions))
                return [None if t is None else _unwrapped(batch, t) for t in results]
        except NumgradError:  # an error of every row shows in turn
            pass
    rows = [tangents(directions[position]) for position in range(count)]
    return [
        None if column[0] is None else OPS["stack"](column) for column in zip(*rows, strict=True)
    ]


def _unwrapped(batch: BatchingInterpreter, t: Tensor) -> Tensor:
    """The results of all directions along the first axis of an example."""
    levels = levels_of(t)
    return raised(OPS["moveaxis"](batch.unwrap(beneath(t)), 0, len(levels)), levels)


# ----------------------------------------------------------------------------------------- arrays


def unit(like: Tensor, position: int) -> Tensor:
    """An array shaped like a Tensor that is 1 at one place."""
    shape = tuple([int(n) for n in like.shape])
    return Tensor(state.ground.unit(shape, position, like.dtype))


def batches(like: Tensor) -> Iterator[Tensor]:
    """All these arrays, up to ``CHUNK`` of them along a first axis."""
    count, shape = int(like.size), tuple([int(n) for n in like.shape])
    for start in range(0, count, CHUNK):
        places = range(start, min(start + CHUNK, count))
        yield Tensor(state.ground.units(shape, places, like.dtype))


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Along the first axis."""
    return parts[0] if len(parts) == 1 else OPS["concat"](parts)


def filled(tensor: Tensor | None, shape: tuple[Any, ...], dtype: Any) -> Tensor:
    """A derivative, or zeros for want of any dependence."""
    return Tensor(zeros(shape, dtype)) if tensor is None else tensor


def one(like: Tensor) -> Tensor:
    """The cotangent of a number."""
    return Tensor(ones(like.shape, like.dtype))


def uses_user_code(y: Sequence[Tensor]) -> bool:
    """Whether a backward calls a ``Function`` or hooks."""
    edges = [edge_of(beneath(output)) for output in y]
    return any(
        node.extras is not None or node.call.opaque or node.call.ruled
        for node in reachable(edges).values()
    )


def is_of_the_table(y: Sequence[Tensor]) -> bool:
    """Whether a backward consists of operations of the table only."""
    edges = [edge_of(beneath(output)) for output in y]
    return all(
        node.extras is None and (node.call.composed or OPS.get(node.call.op.name) is node.call.op)
        for node in reachable(edges).values()
    )


def _arranged(rows: Any, axis: int) -> Tensor:
    """Rows, stacked or still to be, along the first axis or the last."""
    if isinstance(rows, list):
        return OPS["stack"](rows, axis=axis)
    return OPS["moveaxis"](rows, 0, -1) if axis else rows
