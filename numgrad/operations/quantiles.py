"""Order statistics: elements by their place in order, medians and quantiles.

Note [Gradient of order statistics]
-----------------------------------
What is found at a place in order is an element of the operand, so the gradient goes there; of equal
elements to the one that a stable sort puts at that place. A quantile between two elements shares it
as it interpolates. Where a NaN decides, it gets the gradient.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import AbstractLength, filled
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import BatchOperand, Meta, Op, bind, composite, primitive, state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import moveaxis, permute_dims
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.sorting import stable_order
from numgrad.operations.take import take_along_axis

_INT64 = np.dtype(np.int64)
_FEW = 8
"""More places than these are read off a whole order."""


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    method=False,
    differentiable=False,
)
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
    positions = np.argpartition(x, np.unique(first), axis=-1)[..., first]
    for k, rank in enumerate(first):
        value = np.take_along_axis(x, positions[..., k : k + 1], -1)
        same = x == value
        if (np.count_nonzero(same, axis=-1) > 1).any():
            nth = rank - np.count_nonzero(x < value, axis=-1, keepdims=True) + 1
            result = np.argmax(np.cumsum(same, axis=-1) == nth, axis=-1)
            positions[..., k] = np.where(same.any(axis=-1), result, positions[..., k])  # not of NaN
    return positions


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
    reduced = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    order = (*rest, *axes)
    if order != tuple(range(len(shape))):
        x = permute_dims(x, order)
    return reshape(x, (*without, prod([shape[k] for k in axes]))), without, reduced


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
    result = take_along_axis(x, order_places(x, joined), axis=-1)
    results, start = [], 0
    for count in counts:
        selected = getitem(result, (Ellipsis, slice(start, start + count)))
        if heeds:
            last = _last(result)
            selected = np.where(np.isnan(last), last, selected)
        results.append(selected)
        start += count
    return results


# ---------------------------------------------------------------------------------------- median


def _median(name: str, x: Any, axis: Any, keepdims: bool, ignore_nan: bool) -> Any:
    x = as_operand(x)
    flat, without, reduced = lanes_of(name, x, axis)
    n: Any = flat.shape[-1]
    if type(n) is int and n == 0:
        y = sum(flat, axis=-1) * np.nan  # NaN for each lane
        return reshape(y, reduced if keepdims else without)
    if ignore_nan and x.dtype.kind in "fc":
        count = sum(~np.isnan(flat), axis=-1, keepdims=True)
        ranks = [np.maximum(count - 1, 0) // 2, np.minimum(count // 2, n - 1)]
    elif n % 2:
        ranks = [_place(n // 2)]
    else:
        ranks = [_place(n // 2 - 1), _place(n // 2)]
    values = found_at(flat, ranks, ignore_nan)
    if x.dtype.kind not in "fc":
        values = [value * 1.0 for value in values]
    y = values[0] if len(values) == 1 else (values[0] + values[1]) / 2
    return reshape(y, reduced if keepdims else without)


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


nanmedian.kink(x=([1.0, np.nan, 3.0], [0.5, 0, 0.5]))


def _continuous(alpha: float, beta: float) -> Callable[..., Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _rounded(index: Any, stays: Callable[[Any, Any], Any]) -> Any:
    """The place after ``index``, or that at it where ``stays`` says so of it and what is behind."""
    floor = np.floor(index)
    result = np.where(stays(index - floor, floor), floor, floor + 1)
    return np.maximum(result, 0)


_PLACES: dict[str, Callable[..., Any]] = {
    "inverted_cdf": lambda n, q: _rounded(n * q - 1, lambda fraction, _: fraction == 0),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "closest_observation": lambda n, q: _rounded(
        n * q - 1.5, lambda fraction, floor: (fraction == 0) & (floor % 2 == 1)
    ),
    "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0, 0),
    "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda n, q: np.round((n - 1) * q),
}
"""Methods -> place in order of a quantile of ``n`` elements, which may lie between two."""

_WHOLE = {"inverted_cdf", "closest_observation", "lower", "higher", "nearest"}
"""Methods whose places are those of elements."""


def _weight(method: str, fraction: Any) -> Any:
    """Share of the later of two elements, for a place that is ``fraction`` behind the earlier."""
    if method == "averaged_inverted_cdf":
        return np.where(fraction == 0, 0.5, 1.0).astype(fraction.dtype)
    if method == "midpoint":
        return np.where(fraction == 0, 0.0, 0.5).astype(fraction.dtype)
    return fraction


@primitive(internal=True, method=False, differentiable=False)
def weighted_places(x, weights, q):
    """Along the last axis, the first elements up to which a share ``q`` of the weights is."""
    order = np.argsort(x, axis=-1, kind="stable")
    share = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        share /= share[..., -1:]
    if np.isnan(share[..., -1]).any() and not np.isnan(x).all(axis=-1).any():
        raise NumgradValueError("quantile: weights are all zero, or NaN or infinite")
    if q.dtype.kind == "f":
        share = share.astype(q.dtype)
    share[share == 0] = -1
    result = np.empty((*x.shape[:-1], q.size), np.int64)
    for lane in np.ndindex(x.shape[:-1]):
        result[lane] = np.searchsorted(share[lane], q, side="left")
    positions = np.take_along_axis(order, np.minimum(result, x.shape[-1] - 1), -1)
    if x.dtype.kind == "f":
        last = order[..., -1:]
        heeded = np.isnan(np.take_along_axis(x, last, -1))
        heeded &= np.take_along_axis(weights, last, -1) != 0  # nanquantile gives NaN no weight
        positions = np.where(heeded, last, positions)
    return positions


weighted_places.shape(lambda x, weights, q: Meta((*x.shape[:-1], q.shape[0]), _INT64))


def _weighted(name: str, x: Any, q: Any, weights: Any, axis: Any, method: str, ignore: bool) -> Any:
    if method != "inverted_cdf":
        raise NumgradValueError(
            f"{name}: weights= goes with method='inverted_cdf' only, got {method!r}"
        )
    weights, shape = as_operand(weights), tuple(x.shape)
    axes = normalize_axes(name, axis, len(shape))
    if tuple(weights.shape) != shape:
        lengths = tuple([shape[k] for k in axes])
        if axis is None or tuple(weights.shape) != lengths:
            raise NumgradValueError(
                f"{name}: weights of shape {tuple(weights.shape)} for an operand of shape {shape}; "
                "they have its shape, or that of its axes"
            )
        along = [1] * len(shape)
        for k in axes:
            along[k] = shape[k]
        listed = axis if isinstance(axis, tuple | list) else (axis,)
        order = np.argsort([k % len(shape) for k in listed]).tolist()
        weights = broadcast_to(reshape(permute_dims(weights, order), along), shape)
    known = state.ground.numbers(weights)
    if known is not None and (known < 0).any():
        raise NumgradValueError(f"{name}: weights must not be negative")
    if ignore and x.dtype.kind == "f":
        weights = np.where(np.isnan(x), 0, weights)
    lanes, _, _ = lanes_of(name, x, axis)
    w, _, _ = lanes_of(name, weights, axis)
    return take_along_axis(lanes, weighted_places(lanes, w, q), axis=-1)


def _quantiles(
    name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, percent: bool
) -> Any:
    ignore_nan = name.startswith("nan")
    x = as_operand(x)
    weak = type(q) in (int, float)
    q = as_operand(q)
    if x.dtype.kind == "c" or q.dtype.kind == "c":
        raise NumgradTypeError(f"{name}: complex numbers have no order; use real() or abs()")
    if x.dtype.kind == "b" and method not in _WHOLE and q.dtype.kind == "f":
        raise NumgradTypeError(f"{name}: bools have no mean; convert them with astype(float)")
    if method not in _PLACES:
        raise NumgradValueError(
            f"{name}: no method is called {method!r}; there are {', '.join(_PLACES)}"
        )
    if len(q.shape) > 2:
        raise NumgradValueError(f"{name}: q has at most two axes, got shape {tuple(q.shape)}")
    known = state.ground.numbers(q)
    most = 100 if percent else 1
    if known is not None and known.size and not (known.min() >= 0 and known.max() <= most):
        raise NumgradValueError(f"{name}: q must be from 0 to {most}, got {known}")
    if percent:
        q = q / 100
    requested = tuple(q.shape)
    q = reshape(q, (-1,))
    lanes, without, reduced = lanes_of(name, x, axis)
    if not isinstance(lanes.shape[-1], AbstractLength) and lanes.shape[-1] == 0:
        if not ignore_nan:
            raise NumgradValueError(
                f"{name}: no elements along axis {axis} of shape {tuple(x.shape)}"
            )
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        lanes = as_operand(np.full((*without, 1), np.nan, dtype))
    if weights is not None:
        y = _weighted(name, x, q, weights, axis, method, ignore_nan)
    else:
        y = _interpolated(lanes, q, method, ignore_nan, weak)
    y = moveaxis(y, -1, 0) if len(y.shape) > 1 else y
    return reshape(y, (*requested, *(reduced if keepdims else without)))


def _as_constant(x: Any) -> Any:
    """An array that follows from lengths and parameters alone is a constant of the program."""
    if not state.ground.deferred or not isinstance(x, np.ndarray):
        return x
    return reshape(state.ground.made(x), x.shape)


def _interpolated(x: Any, q: Any, method: str, ignore_nan: bool, weak: bool) -> Any:
    n: Any = as_number(x.shape[-1])
    last = n - 1
    if ignore_nan and x.dtype.kind == "f":
        n = sum(~np.isnan(x), axis=-1, keepdims=True)
        n = n.astype(q.dtype) if q.dtype.kind == "f" else n
    position = _PLACES[method](n, q)
    whole = method in _WHOLE or (method == "linear" and q.dtype.kind in "iu")
    if whole:
        rank = np.minimum(np.maximum(position, 0), last).astype(np.int64)
        return found_at(x, [_as_constant(rank)], ignore_nan)[0]
    behind, before = position < 0, position >= n - 1
    floor = np.where(before, n - 1, np.where(behind, 0, np.floor(position)))
    rank = np.minimum(np.maximum(floor, 0), last).astype(np.int64)
    after = np.where(before | behind, rank, np.minimum(rank + 1, last)).astype(np.int64)
    a, b = found_at(x, [_as_constant(rank), _as_constant(after)], ignore_nan)
    fraction = _as_constant(_weight(method, position - floor))
    if weak and x.dtype.kind == "f":
        fraction = fraction.astype(x.dtype)
    d = b - a
    return np.where(fraction >= 0.5, b - d * (1 - fraction), a + d * fraction)


@composite(ref=np.quantile)
def quantile(x, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """Elements below which shares ``q`` of all lie, over axes; NaN if there is a NaN.

    Parameters
    ----------
    q : array_like
        Shares from 0 to 1, whose gradient is that of interpolating.
    method : str
        One of NumPy's: "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased", "normal_unbiased".
    weights : array_like
        How often each element counts, with ``method="inverted_cdf"``; without gradient.

    Returns
    -------
    Tensor
        The axes of ``q``, then those left of ``x``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> y = ng.quantile(x, [0.25, 1.0])
    >>> y.detach()
    tensor([1.5, 4. ])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0.5, 0.5, 1. ])
    """
    return _quantiles("quantile", x, q, axis, method, keepdims, weights, False)


@composite(ref=np.percentile, method=False)
def percentile(x, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """``quantile`` for shares in percent.

    Parameters
    ----------
    q : array_like
        Shares from 0 to 100.
    method, weights
        As in ``quantile``.

    Returns
    -------
    Tensor
        The axes of ``q``, then those left of ``x``.

    Examples
    --------
    >>> ng.percentile(ng.tensor([1.0, 2.0, 4.0]), 75)
    tensor(3.)
    """
    return _quantiles("percentile", x, q, axis, method, keepdims, weights, True)


@composite(ref=np.nanquantile)
def nanquantile(x, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """``quantile`` of the elements that are not NaN; NaN where all are.

    Parameters
    ----------
    q : array_like
        Shares from 0 to 1.
    method, weights
        As in ``quantile``.

    Returns
    -------
    Tensor
        The axes of ``q``, then those left of ``x``.

    Examples
    --------
    >>> ng.nanquantile(ng.tensor([1.0, np.nan, 4.0]), 0.5)
    tensor(2.5)
    """
    return _quantiles("nanquantile", x, q, axis, method, keepdims, weights, False)


@composite(ref=np.nanpercentile, method=False)
def nanpercentile(x, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """``nanquantile`` for shares in percent.

    Parameters
    ----------
    q : array_like
        Shares from 0 to 100.
    method, weights
        As in ``quantile``.

    Returns
    -------
    Tensor
        The axes of ``q``, then those left of ``x``.

    Examples
    --------
    >>> ng.nanpercentile(ng.tensor([1.0, np.nan, 4.0]), 50)
    tensor(2.5)
    """
    return _quantiles("nanpercentile", x, q, axis, method, keepdims, weights, True)


for _op, _share in ((quantile, 0.5), (percentile, 50), (nanquantile, 0.5), (nanpercentile, 50)):
    _op.kink(x=([1.0, 1.0, 1.0], [0, 1, 0]), params={"q": _share})
