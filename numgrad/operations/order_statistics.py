"""Elements by their place in order, and medians.

Note [Gradient of order statistics]
-----------------------------------
What is found at a place in order is an element of the operand, so the gradient goes there; of equal
elements to the one that a stable sort puts at that place. A quantile between two elements shares it
as it interpolates. Where a NaN decides, it gets the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import AbstractLength, filled
from numgrad.core.axis import normalize_axes
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.operations.arrangement import permute_dims
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.sorting import stable_order
from numgrad.operations.take import take_along_axis

_INT64 = np.dtype(np.int64)
_FEW = 8
"""More places than these are read off a whole order."""


@primitive(internal=True, method=False, differentiable=False)
def order_places(x, ranks):
    """Where, along the last axis, the elements are that a stable sort puts at places of ``ranks``.

    ``ranks`` has one axis, or those of ``x``.
    """
    check_dtype("order_places", x.dtype)
    count = ranks.shape[-1]
    shape = (*x.shape[:-1], count)
    ranks = np.broadcast_to(ranks, shape)
    if not prod(shape):
        return np.empty(shape, np.int64)
    first = ranks.reshape(-1, count)[0]
    if count > _FEW or (ranks != first).any():
        return np.take_along_axis(stable_order(x, x.ndim - 1), ranks, -1)
    places = np.argpartition(x, np.unique(first), axis=-1)[..., first]
    for k, rank in enumerate(first):
        value = np.take_along_axis(x, places[..., k : k + 1], -1)
        same = x == value
        if (np.count_nonzero(same, axis=-1) > 1).any():
            wanted = rank - np.count_nonzero(x < value, axis=-1, keepdims=True) + 1
            found = np.argmax(np.cumsum(same, axis=-1) == wanted, axis=-1)
            places[..., k] = np.where(same.any(axis=-1), found, places[..., k])  # not of NaN
    return places


order_places.shape(lambda x, ranks: Meta((*x.shape[:-1], ranks.shape[-1]), _INT64))


@order_places.batch
def _batched_places(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, ranks = operands
    if ranks.batched or ranks.ndim != 1:
        return NotImplemented
    return bind(op, (x.value, ranks.value), params)


def lanes_of(name: str, x: Any, axis: Any) -> tuple[Any, tuple, tuple]:
    """The operand with the elements of ``axis`` along one last axis; shapes without, and kept."""
    shape = tuple(x.shape)
    axes = normalize_axes(name, axis, len(shape))
    rest = tuple([k for k in range(len(shape)) if k not in axes])
    without = tuple([shape[k] for k in rest])
    kept = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    order = (*rest, *axes)
    if order != tuple(range(len(shape))):
        x = permute_dims(x, order)
    return reshape(x, (*without, prod([shape[k] for k in axes]))), without, kept


def as_number(n: Any) -> Any:
    """A length as a number to compute with."""
    return n.as_number() if isinstance(n, AbstractLength) else n


def _place(n: Any) -> Any:
    return filled((1,), as_number(n), _INT64)


def _last(x: Any) -> Any:
    return getitem(x, (Ellipsis, slice(-1, None)))


def found_at(x: Any, ranks: Sequence[Any], ignore_nan: bool) -> list[Any]:
    """Elements of lanes by their places in order; NaN, which is last, if there is one to heed.

    Each of ``ranks`` has one axis or those of ``x``.
    """
    heeds = x.dtype.kind in "fc" and not ignore_nan
    counts = [r.shape[-1] for r in ranks]
    if heeds:
        ranks = [*ranks, _place(x.shape[-1] - 1)]
    several = len({len(r.shape) for r in ranks}) > 1
    rank = max(len(r.shape) for r in ranks)
    if several:
        ranks = [
            broadcast_to(r, (*(1,) * (rank - 1), r.shape[-1])) if len(r.shape) < rank else r
            for r in ranks
        ]
    joined = ranks[0] if len(ranks) == 1 else concat(ranks, axis=-1)
    found = take_along_axis(x, order_places(x, joined), axis=-1)
    parts, start = [], 0
    for count in counts:
        part = getitem(found, (Ellipsis, slice(start, start + count)))
        if heeds:
            last = _last(found)
            part = np.where(np.isnan(last), last, part)
        parts.append(part)
        start += count
    return parts


# ---------------------------------------------------------------------------------------- median


def _median(name: str, x: Any, axis: Any, keepdims: bool, ignore_nan: bool) -> Any:
    x = as_operand(x)
    flat, without, kept = lanes_of(name, x, axis)
    n: Any = flat.shape[-1]
    if type(n) is int and n == 0:
        y = sum(flat, axis=-1) * np.nan  # NaN for each lane
        return reshape(y, kept if keepdims else without)
    if ignore_nan and x.dtype.kind in "fc":
        count = sum(~np.isnan(flat), axis=-1, keepdims=True)
        ranks = [np.maximum(count - 1, 0) // 2, np.minimum(count // 2, n - 1)]
    elif n % 2:
        ranks = [_place(n // 2)]
    else:
        ranks = [_place(n // 2 - 1), _place(n // 2)]
    parts = found_at(flat, ranks, ignore_nan)
    if x.dtype.kind not in "fc":
        parts = [part * 1.0 for part in parts]
    y = parts[0] if len(parts) == 1 else (parts[0] + parts[1]) / 2
    return reshape(y, kept if keepdims else without)


@composite(ref=np.median)
def median(x, axis=None, *, keepdims=False):
    """Middle element in order over axes, the mean of the two middle ones of an even number.

    NaN if there is one. PyTorch's takes the lower of two.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; floating or complex.

    Examples
    --------
    >>> x = ng.tensor([4.0, 1.0, 7.0, 2.0], requires_grad=True)
    >>> y = ng.median(x)
    >>> y.detach()
    tensor(3.)
    >>> y.backward()
    >>> x.grad
    tensor([0.5, 0. , 0. , 0.5])
    """
    return _median("median", x, axis, keepdims, False)


median.calls = [
    (((2, 5),), lambda x: median(x, axis=1)),
    (((2, 3, 2),), lambda x: median(x, axis=(0, 2), keepdims=True)),
    (((2, 3),), lambda x: median(x)),
]
median.kink(x=([1.0, 1.0, 1.0], [0, 1, 0]))
median.kink(x=([1.0, np.nan, 1.0], [0, 1, 0]))


@composite(ref=np.nanmedian)
def nanmedian(x, axis=None, *, keepdims=False):
    """Median over axes of the elements that are not NaN; NaN where all are.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; floating or complex.

    Examples
    --------
    >>> ng.nanmedian(ng.tensor([4.0, np.nan, 1.0]))
    tensor(2.5)
    """
    return _median("nanmedian", x, axis, keepdims, True)


nanmedian.calls = [(((2, 5),), lambda x: nanmedian(x, axis=1))]
nanmedian.kink(x=([1.0, np.nan, 3.0], [0.5, 0, 0.5]))
