"""Forward mode along several directions at once, each followed only as far as it reaches.

Note [Tangents by column]
-------------------------
Residuals of a model depend on most parameters through a term or two. So a Tensor has, at this
level, a tangent for each column of the Jacobian that is not zero there, and an operation costs one
tangent for each of those: the function runs once, and a column costs what its own terms do. That
beats a batch of all columns (Note [Batched values]) where columns are few. What would need more
than this, a write in place or a rule of the user's, is refused, and left to other ways; so is what
is computed in ``no_grad``, or for a gradient inside, where these ways differ, and what is not
finite, which factors may have made so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.autograd.factors import scaled
from numgrad.autograd.forward.rules import pushforward, reads_call, takes_tangent
from numgrad.autograd.forward_ad import ForwardInterpreter, gathered
from numgrad.autograd.variable import Tensor, root
from numgrad.core.arguments import complete
from numgrad.core.elementwise import Elementwise
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, bind_recorded, raw, state
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.core.primitive import View
from numgrad.errors import NumgradNotImplementedError

FEW = 24
"""Columns up to which they are computed like this."""

ONE = np.ones(())

Columns = dict[int, np.ndarray]
"""For each column that reaches a Tensor, what broadcasts to its shape."""


class Units:
    """What is differentiated by, or a view of it: the number of each element's own column."""

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
        given: list[Columns | None] = [
            self.tangent(a) if isinstance(a, Tensor) and takes_tangent(op, k) else None
            for k, a in enumerate(args)
        ]
        active = op.differentiable and any(g is not None for g in given)
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
                    self._push(op, args, params, given, out, call)
        finally:
            state.interpreters = before
            state.refresh()
        return out, call

    def _push(
        self, op: Op, args: tuple, params: dict[str, Any], given: Sequence[Any], out: Any, call: Any
    ) -> None:
        if isinstance(out, Tensor):
            if out._array.dtype != np.float64:
                if out._array.dtype.kind in "fc":
                    raise NumgradNotImplementedError("columns: numbers of another dtype")
                return
            if isinstance(op, View) and op.linear and op.jvp_formula is None:
                found = _by_views(op, args, params, given[0])
                if type(found) is Units or found:
                    self.set_tangent(out, found)  # pyright: ignore
                return
            given = [g.columns if type(g) is Units else g for g in given]
            if isinstance(op, Elementwise) and op.jvp_formula is None:
                found = _by_factors(op, args, given, out._array)
            else:
                (found,) = _by_rules(op, args, params, given, out, call)
            if found:
                self.set_tangent(out, found)  # pyright: ignore
            return
        given = [g.columns if type(g) is Units else g for g in given]
        for y, found in zip(out, _by_rules(op, args, params, given, out, call), strict=True):
            if found:
                self.set_tangent(y, found)  # pyright: ignore

    def tangent(self, tensor: Tensor) -> Any:
        """The columns that reach a Tensor; None for none."""
        found = self._own_tangent(tensor)
        if found is None:
            owner = root(tensor)
            if owner is not tensor and self._own_tangent(owner) is not None:
                raise NumgradNotImplementedError("columns: a view that does not follow its root")
        return found

    def duplicate(self, original: Tensor, twin: Tensor) -> None:
        """Refuse."""
        if self.tangent(original) is not None:
            raise NumgradNotImplementedError("columns: a write in place")

    def assign(self, target: Tensor, result: Any) -> None:
        """Refuse what would have to change tangents."""
        moved = isinstance(result, Tensor) and self.tangent(result) is not None
        if moved or self.tangent(target) is not None:
            raise NumgradNotImplementedError("columns: a write in place")


def _by_factors(op: Elementwise, args: tuple, given: Sequence[Any], out: np.ndarray) -> Columns:
    """Over the real numbers an elementwise gradient formula is a factor, for all columns."""
    arrays = [a._array if isinstance(a, Tensor) else a for a in args]
    metas = tuple([Meta(np.shape(a), out.dtype) for a in arrays])
    values = dict(zip(op.inputs, arrays, strict=True))
    values["y"] = out
    record = Call(op, metas, {})
    found: Columns = {}
    before = state.interpreters
    try:
        state.interpreters = (raw,)
        state.refresh()
        for k, columns in enumerate(given):
            if columns is None:
                continue
            factor = record.gradient(k, ONE, values)
            for column, t in columns.items():
                moved = t if factor is ONE else factor if t is ONE else scaled(op, factor, t)
                found[column] = found[column] + moved if column in found else moved
    finally:
        state.interpreters = before
        state.refresh()
    return found


def _by_views(op: View, args: tuple, params: dict[str, Any], columns: Any) -> Any:
    x, *rest = args
    if type(columns) is Units:
        return Units(op.compute((columns.places, *rest), params))
    found = {}
    for column, t in columns.items():
        moved = op.compute((np.broadcast_to(t, x.shape), *rest), params)
        found[column] = moved
    return found


def _by_rules(
    op: Op, args: tuple, params: dict[str, Any], given: Sequence[Any], out: Any, call: Any
) -> list[Columns]:
    """By the rules of forward mode."""
    several = isinstance(out, tuple)
    outs = out if several else (out,)
    if any(y._array.dtype.kind in "fc" and y._array.dtype != np.float64 for y in outs):
        raise NumgradNotImplementedError("columns: numbers of another dtype")
    found: list[Columns] = [{} for _ in outs]
    for column in dict.fromkeys(k for columns in given if columns for k in columns):
        tangents = [
            Tensor(np.array(np.broadcast_to(columns[column], a.shape), a.dtype))
            if columns and column in columns
            else None
            for a, columns in zip(args, given, strict=True)
        ]
        pushed = pushforward(op, args, params, tangents, out, call)
        for columns, t in zip(found, pushed if several else (pushed,), strict=True):
            if t is not None:
                columns[column] = t._array
    return found


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
