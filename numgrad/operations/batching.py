"""How operations of the table act on batches.

Note [Rules of batching] in ``core.batching`` says what a rule is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.axis import normalize_axes
from numgrad.core.batching import BatchOperand, apply, shifted, unchanged, with_parameters
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.operations.arrangement import (
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    roll,
    swapaxes,
)
from numgrad.operations.complex import imag, real
from numgrad.operations.cumulative import cumprod, cumsum, linear_recurrence
from numgrad.operations.diagonal import diagonal, diagonal_backward, tril, triu
from numgrad.operations.extend import pad_constant
from numgrad.operations.index import getitem, getitem_backward
from numgrad.operations.join import concat, stack
from numgrad.operations.matmul import matmul
from numgrad.operations.search import argmax, argmin
from numgrad.operations.shape import (
    astype,
    broadcast_to,
    copy,
    expand_dims,
    ravel,
    reshape,
    squeeze,
)
from numgrad.operations.split import split_at, unstack
from numgrad.operations.take import gather_along, gather_along_backward, take, take_backward


def _integers(values: Any) -> tuple[int, ...]:
    """Lengths or axes, which may be written as one number or as any sequence."""
    return tuple(np.atleast_1d(values).tolist())


def _as_tuple(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


def _other_shape(x: BatchOperand, size: int, shape: Any, order: str) -> dict[str, Any]:
    shape = _integers(shape)
    if not size and shape.count(-1) == 1:  # NumPy cannot tell what is left of an empty batch
        known = -prod(shape)
        shape = tuple([prod(x.shape) // max(known, 1) if n == -1 else n for n in shape])
    return {"shape": (size, *shape)}


def _added_axes(x: BatchOperand, size: int, axis: Any) -> dict[str, Any]:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return {"axis": shifted(axis, x.ndim + count)}


def _without_axes(x: BatchOperand, size: int, axis: Any) -> dict[str, Any]:
    return {"axis": x.axes([k for k, n in enumerate(x.shape) if n == 1] if axis is None else axis)}


def _other_order(x: BatchOperand, size: int, axes: Any) -> dict[str, Any]:
    order = range(x.ndim)[::-1] if axes is None else _integers(axes)
    return {"axes": (0, *x.axes(order))}


def _of_matrices(x: BatchOperand, size: int, **params: Any) -> Any:
    return {} if x.ndim >= 2 else NotImplemented


def _padding(x: BatchOperand, size: int, widths: Any, values: Any) -> Any:
    return NotImplemented if np.ndim(values) else {"widths": ((0, 0), *widths)}


for _op in (astype, copy, imag, real):
    _op.batch(unchanged)
diagonal.batch(
    with_parameters(
        lambda x, size, offset, axis1, axis2: {
            "axis1": x.axes(axis1),
            "axis2": x.axes(axis2),
        }
    )
)
expand_dims.batch(with_parameters(_added_axes))
flip.batch(with_parameters(lambda x, size, axis: {"axis": x.axes(axis)}))
getitem.batch(with_parameters(lambda x, size, index: {"index": (slice(None), *_as_tuple(index))}))
matrix_transpose.batch(with_parameters(_of_matrices))
moveaxis.batch(
    with_parameters(
        lambda x, size, source, destination: {
            "source": x.axes(source),
            "destination": x.axes(destination),
        }
    )
)
pad_constant.batch(with_parameters(_padding))
permute_dims.batch(with_parameters(_other_order))
reshape.batch(with_parameters(_other_shape))
split_at.batch(with_parameters(lambda x, size, cuts, axis: {"axis": x.axes(axis)}))
squeeze.batch(with_parameters(_without_axes))
swapaxes.batch(
    with_parameters(lambda x, size, axis1, axis2: {"axis1": x.axes(axis1), "axis2": x.axes(axis2)})
)
tril.batch(with_parameters(_of_matrices))
triu.batch(with_parameters(_of_matrices))
unstack.batch(with_parameters(lambda x, size, axis: {"axis": x.axes(axis)}))


# ------------------------------------------------------------------------------------- shapes


@ravel.batch
def _ravel(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    return apply("reshape", x.value, shape=(size, prod(x.shape)), **params)


@broadcast_to.batch
def _broadcast_to(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape = _integers(params["shape"])
    return bind(op, (x.aligned(len(shape)),), {"shape": (size, *shape)})


@concat.batch
def _concat(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    axis = params["axis"]
    if axis is None:
        operands, axis = [o.flat() for o in operands], 0
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": operands[0].axes(axis)})


@stack.batch
def _stack(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": shifted(params["axis"], operands[0].ndim + 1)})


@diagonal_backward.batch
def _diagonal_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape = params["shape"]
    axes = {name: shifted(params[name], len(shape)) for name in ("axis1", "axis2")}
    return bind(op, (x.aligned(len(shape) - 1),), {**params, **axes, "shape": (size, *shape)})


@getitem_backward.batch
def _getitem_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape, index = params["shape"], _as_tuple(params["index"])
    written = np.broadcast_to(np.empty(()), shape)[index].ndim
    changed = {"shape": (size, *shape), "index": (slice(None), *index)}
    return bind(op, (x.aligned(written),), changed)


# ---------------------------------------------------------------- along an axis, or flattened


@cumprod.batch
@cumsum.batch
def _along_axis(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    if params["axis"] is None:
        return bind(op, (x.flat().value,), {**params, "axis": 1})
    return bind(op, (x.value,), {**params, "axis": x.axes(params["axis"])})


@argmax.batch
@argmin.batch
def _argreduce(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    out = _along_axis(op, operands, params, size)
    if params["axis"] is None and params["keepdims"]:
        return apply("reshape", out, shape=(size, *(1,) * operands[0].ndim))
    return out


@roll.batch
def _roll(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    out = _along_axis(op, operands, params, size)
    return apply("reshape", out, shape=operands[0].value.shape) if params["axis"] is None else out


@linear_recurrence.batch
def _linear_recurrence(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    axis = operands[0].axes(params["axis"])
    return bind(op, tuple([o.repeated(size) for o in operands]), {**params, "axis": axis})


# ------------------------------------------------------------------------------------ indices


def _spread(indices: BatchOperand, shape: tuple[int, ...], axis: int, size: int) -> Any:
    """Indices into ``axis`` of each example, one for each element: as ``gather_along`` has them.

    ``shape`` is that of the examples with the indices, flattened, along ``axis``.
    """
    count = shape[axis]
    lonely = (size, *(1,) * axis, count, *(1,) * (len(shape) - axis - 1))
    value = apply("reshape", indices.value, shape=lonely)
    return apply("broadcast_to", value, shape=(size, *shape))


@take.batch
def _take(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    x, indices = operands
    axis = params["axis"]
    if axis is None:
        x, axis = x.flat(), 0
    (axis,) = normalize_axes(op.name, axis, x.ndim)
    if not indices.batched:
        return bind(op, (x.value, indices.value), {"axis": axis + 1})
    if not x.batched:
        out = bind(op, (x.value, indices.value), {"axis": axis})
        return apply("moveaxis", out, source=axis, destination=0)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    where = _spread(indices, (*before, prod(indices.shape), *after), axis, size)
    out = apply("gather_along", x.value, where, axis=axis + 1)
    return apply("reshape", out, shape=(size, *before, *indices.shape, *after))


@take_backward.batch
def _take_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, indices = operands
    axis, target = params["axis"], tuple(params["shape"])
    shape = target
    if axis is None:
        shape, axis = (prod(target),), 0
    (axis,) = normalize_axes(op.name, axis, len(shape))
    whole = {"shape": (size, *shape), "axis": axis + 1}
    if indices.batched:
        around = (*shape[:axis], prod(indices.shape), *shape[axis + 1 :])
        value = apply("reshape", x.repeated(size), shape=(size, *around))
        where = _spread(indices, around, axis, size)
        out = apply("gather_along_backward", value, where, **whole)
    else:
        out = bind(op, (x.value, indices.value), whole)
    return out if shape == target else apply("reshape", out, shape=(size, *target))


@gather_along.batch
@gather_along_backward.batch
def _gather_along(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    changed = {"axis": operands[1].axes(params["axis"])}
    if "shape" in params:  # gather_along_backward
        changed["shape"] = (size, *params["shape"])
    return bind(op, tuple([o.repeated(size) for o in operands]), changed)


# ----------------------------------------------------------------------------------- products


@matmul.batch
def _matmul(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """Products of stacks of matrices, or one of two matrices where that does."""
    a, b = operands
    if a.ndim == 0 or b.ndim == 0:
        return NotImplemented  # an error, whose message one example gives
    # vectors of a batch times one matrix are one product of two matrices
    if a.batched and a.ndim == 1 and not b.batched and b.ndim == 2:
        return bind(op, (a.value, b.value), {})
    if b.batched and b.ndim == 1 and not a.batched and a.ndim == 2:
        return bind(op, (b.value, apply("matrix_transpose", a.value)), {})
    row, column = a.batched and a.ndim == 1, b.batched and b.ndim == 1
    if row:
        a = BatchOperand(apply("expand_dims", a.value, axis=1), True)
    if column:
        b = BatchOperand(apply("expand_dims", b.value, axis=2), True)
    ndim = max(a.ndim, b.ndim)
    out = bind(op, (a.aligned(ndim), b.aligned(ndim)), {})
    if column:
        out = apply("squeeze", out, axis=-1)
    return apply("squeeze", out, axis=-1 if column or b.ndim == 1 else -2) if row else out
