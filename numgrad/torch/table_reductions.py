"""Rows of reductions, sums along axes, sorts and statistics: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError, NumgradRuntimeError
from numgrad.torch.calls import table
from numgrad.torch.table_elementwise import floating, together


def axes(dim: Any, x: Any) -> Any:
    """Axes as numgrad has them, of ``dim``: all, of None and ()."""
    if dim is None or dim == () or dim == []:
        return None
    if x.ndim == 0 and dim in (0, -1, [0], [-1], (0,), (-1,)):
        return None
    return tuple(dim) if isinstance(dim, list | tuple) else dim


def one_axis(name: str, x: Any, dim: Any) -> int:
    """An axis counted from the first; an array without axes counts as having one."""
    rank = max(x.ndim, 1)
    if not -rank <= dim < rank:
        raise NumgradIndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], "
            f"but got {dim})"
        )
    return dim % rank


def along(name: str, x: Any, dim: int) -> tuple[Any, int, bool]:
    """A Tensor with at least one axis, the axis, and whether it had none."""
    axis = one_axis(name, x, dim)
    return (ng.reshape(x, (1,)), 0, True) if x.ndim == 0 else (x, axis, False)


def whole(x: Any) -> Any:
    """Integers and booleans as int64, in which their sums are."""
    return OPS["astype"](x, dtype=np.dtype(np.int64)) if x.dtype.kind in "biu" else x


def typed(x: Any, dtype: Any) -> Any:
    """A Tensor in a dtype, if one is given."""
    return x if dtype is None else OPS["astype"](x, dtype=dtype)


def float_only(name: str, x: Any) -> Any:
    """Raise unless numbers are floats or complex."""
    if x.dtype.kind not in "fc":
        raise NumgradRuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {x.dtype}; convert it with x.float()"
        )
    return x


def picked(x: Any, index: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """Values at one index along an axis, and the indices."""
    values = ng.take_along_axis(x, index, axis)
    if not keepdim:
        values, index = ng.squeeze(values, axis), ng.squeeze(index, axis)
    return values, index


def _extreme(name: str, x: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    whole_of, arg, pair = (
        (ng.max, ng.argmax, OPS["maximum"])
        if name == "max"
        else (ng.min, ng.argmin, OPS["minimum"])
    )
    if other is not None or hasattr(dim, "dtype"):
        return pair(*together(x, dim if other is None else other))
    if dim is None:
        return whole_of(x)
    x, axis, bare = along(name, x, dim)
    index = arg(x, axis, keepdims=True)
    values, index = picked(x, index, axis, keepdim)
    if bare and keepdim:
        values, index = ng.reshape(values, ()), ng.reshape(index, ())
    return _PAIRS[name](values, index)


def _pair(name: str) -> Any:
    from numgrad.torch.calls import named_tuple

    return named_tuple(name, ("values", "indices"))


_PAIRS = {name: _pair(name) for name in ("max", "min", "median", "nanmedian")}


def _moment(function: Any, x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return function(float_only("std and var", x), axes(dim, x), ddof=correction, keepdims=keepdim)


def _ranked(x: Any, k: int, dim: int, keepdim: bool, name: str) -> tuple[Any, Any]:
    """The k-th smallest along an axis, from 0, and its index."""
    x, axis, bare = along(name, x, dim)
    order = ng.argsort(x.detach(), axis, stable=True)
    index = ng.take(order, np.array([k]), axis)
    values, index = picked(x, index, axis, keepdim)
    return (ng.reshape(values, ()), ng.reshape(index, ())) if bare else (values, index)


def median(name: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """The lower of the middle numbers; NaN where there is one, unless they are left out."""
    flat = dim is None
    if flat:
        x, dim, keepdim = ng.reshape(x, (-1,)), 0, False
    rows, axis, bare = along(name, x, dim)
    numbers = rows.numpy(force=True)
    count = numbers.shape[axis]
    if not count and flat and rows.dtype.kind == "f":
        return ng.sum(rows) + np.nan
    if not count:
        raise NumgradIndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    order = np.argsort(numbers, axis, kind="stable")  # NaN come last
    missing = np.isnan(numbers).sum(axis, keepdims=True) if numbers.dtype.kind == "f" else 0
    if name == "median":
        place = np.where(missing, count - 1, (count - 1) // 2)
        first_missing = np.argmax(np.isnan(numbers), axis)[()] if numbers.dtype.kind == "f" else 0
    else:
        place, first_missing = np.maximum(count - missing - 1, 0) // 2, 0
    place = np.broadcast_to(place, [1 if a == axis else n for a, n in enumerate(numbers.shape)])
    index = np.take_along_axis(order, place, axis)
    if name == "median" and np.any(missing):
        index = np.where(missing, np.expand_dims(first_missing, axis), index)
    values, index = picked(rows, ng.asarray(index), axis, keepdim)
    if bare:
        values, index = ng.reshape(values, ()), ng.reshape(index, ())
    if flat and rows.dtype.kind == "f":  # equal numbers share the gradient
        middle = values.detach()
        equal = (rows == middle) | (ng.isnan(rows) & ng.isnan(middle))
        return ng.max(rows[equal])
    return values if flat else _PAIRS[name](values, index)


def _mode(x: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The most frequent number, the smallest of several, and the last index of it."""
    x, axis, bare = along("mode", x, dim)
    if not x.shape[axis]:
        raise NumgradIndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    rows = np.moveaxis(x.numpy(force=True), axis, -1)
    index = np.empty(rows.shape[:-1], np.int64)
    for place in np.ndindex(index.shape):
        numbers, counts = np.unique(rows[place], return_counts=True)
        index[place] = np.flatnonzero(rows[place] == numbers[np.argmax(counts)])[-1]
    values, found = picked(x, ng.asarray(np.expand_dims(index, axis)), axis, keepdim)
    return (ng.reshape(values, ()), ng.reshape(found, ())) if bare else (values, found)


def _sort(x: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    rows, axis, bare = along("sort", x, dim)
    index = ng.argsort(rows.detach(), axis, stable=True, descending=descending)
    values = ng.take_along_axis(rows, index, axis)
    return (x, ng.reshape(index, ())) if bare else (values, index)


def _topk(x: Any, k: int, dim: int, largest: bool) -> tuple[Any, Any]:
    rows, axis, bare = along("topk", x, dim)
    index = ng.argsort(rows.detach(), axis, stable=True, descending=largest)
    if k > rows.shape[axis]:
        raise NumgradRuntimeError("topk: selected index k out of range")
    index = ng.take(index, np.arange(k), axis)
    values = ng.take_along_axis(rows, index, axis)
    return (ng.reshape(values, ()), ng.reshape(index, ())) if bare else (values, index)


def _cumulative(name: str, x: Any, dim: int) -> tuple[Any, Any]:
    """The largest or smallest so far, and the last index of it."""
    rows, axis, bare = along(name, x, dim)
    numbers = rows.numpy(force=True)
    best = (np.maximum if name == "cummax" else np.minimum).accumulate(numbers, axis)
    is_best = (numbers == best) | ((numbers != numbers) & (best != best))
    places = np.arange(numbers.shape[axis]).reshape(
        [-1 if a == axis else 1 for a in range(rows.ndim)]
    )
    index = ng.asarray(np.maximum.accumulate(np.where(is_best, places, 0), axis))
    values = ng.take_along_axis(rows, index, axis)
    return (ng.reshape(values, ()), ng.reshape(index, ())) if bare else (values, index)


def _norm(x: Any, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    x = typed(x, dtype)
    if p == "nuc":
        return (
            ng.matrix_norm(x, ord="nuc", keepdims=keepdim)
            if dim is None
            else ng.norm(x, "nuc", axes(dim, x), keepdim)
        )
    if p is None or p == "fro":
        p = 2
    return ng.vector_norm(x, ord=p, axis=axes(dim, x), keepdims=keepdim)


def _soft(function: Any, x: Any, dim: int) -> Any:
    rows, axis, bare = along(function.__name__, floating(x), dim)
    out = function(rows, axis=axis)
    return ng.reshape(out, ()) if bare else out


def _quantile(function: Any, x: Any, q: Any, dim: Any, keepdim: bool, how: str) -> Any:
    if dim is None:
        out = function(ng.reshape(x, (-1,)), q, 0, method=how)
        return ng.reshape(out, (*out.shape, *[1] * x.ndim)) if keepdim else out
    if x.ndim == 0:
        x, keepdim = ng.reshape(x, (1,)), False
    return function(x, q, dim, method=how, keepdims=keepdim)


def _unique(x: Any, sort: bool, inverse: bool, counts: bool, dim: Any, consecutive: bool) -> Any:
    if consecutive:
        out = ng.unique_consecutive(x, inverse, counts, dim)
    else:
        out = ng.unique(x, return_inverse=inverse, return_counts=counts, axis=dim)
    return out


def _histc(x: Any, bins: int, low: float, high: float) -> Any:
    numbers = x.numpy(force=True)
    if low == high:
        low, high = (numbers.min(), numbers.max()) if numbers.size else (0, 0)
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = np.histogram(numbers, bins, (float(low), float(high)))
    return ng.asarray(counts.astype(numbers.dtype))


def _cov(x: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    of = ng.cov(x, ddof=correction, fweights=fweights, aweights=aweights)
    return of.astype(x.dtype) if x.dtype.kind in "fc" else of


def _search(sequence: Any, values: Any, out_int32: bool, right: bool, side: Any) -> Any:
    side = "right" if right or side == "right" else "left"
    a, v = (np.asarray(getattr(x, "_array", x)) for x in (sequence, values))
    if a.ndim == 1:
        found = np.searchsorted(a, v, side)
    else:
        found = np.empty(v.shape, np.int64)
        for place in np.ndindex(a.shape[:-1]):
            found[place] = np.searchsorted(a[place], v[place], side)
    return ng.asarray(np.asarray(found, np.int32 if out_int32 else np.int64))


def _gradient(x: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    dims = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    spacing = 1 if spacing is None else spacing
    steps = spacing if isinstance(spacing, list | tuple) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise NumgradRuntimeError(
            f"gradient: got {len(steps)} spacings for {len(dims)} dimensions, give one for each"
        )
    steps = [getattr(step, "_array", step) for step in steps]
    x = floating(x)
    return tuple(
        ng.gradient(x, step, axis=d, edge_order=edge_order)
        for step, d in zip(steps, dims, strict=True)
    )


def _histogram(x: Any, bins: Any, span: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    numbers, bins = x.numpy(force=True).ravel(), getattr(bins, "_array", bins)
    weight = None if weight is None else weight.numpy(force=True).ravel()
    if span is not None:
        span = tuple(span)
    counts, edges = np.histogram(numbers, bins, span, density, weight)
    return ng.asarray(counts.astype(x.dtype)), ng.asarray(edges.astype(x.dtype))


def _histogramdd(x: Any, bins: Any, span: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    numbers = x.numpy(force=True)
    numbers = numbers.reshape(-1, numbers.shape[-1])
    count = numbers.shape[-1]
    if isinstance(bins, int):
        bins = [bins] * count
    bins = [getattr(each, "_array", each) for each in bins]
    if span is not None:
        span = [tuple(span[2 * k : 2 * k + 2]) for k in range(count)]
    weight = None if weight is None else weight.numpy(force=True).ravel()
    counts, edges = np.histogramdd(numbers, bins, span, density, weight)
    made = tuple(ng.asarray(edge.astype(x.dtype)) for edge in edges)
    return ng.asarray(counts.astype(x.dtype)), made


def _any(function: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    out = function(x != 0 if x.dtype.kind != "b" else x, axes(dim, x), keepdims=keepdim)
    return typed(out, np.dtype(np.uint8)) if x.dtype == np.uint8 else out


def _argument(function: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if not x.size and (dim is None or not x.shape[one_axis("argmax", x, dim)]):
        raise NumgradIndexError(
            f"{function.__name__}(): Expected reduction dim to be specified, and to have elements, "
            f"for an operand of shape {list(x.shape)}"
        )
    if dim is None:
        out = function(ng.reshape(x, (-1,)), 0)
        return ng.reshape(out, (1,) * x.ndim) if keepdim else out
    rows, axis, bare = along("argmax", x, dim)
    return ng.reshape(function(rows), ()) if bare else function(rows, axis, keepdims=keepdim)


def _running(function: Any, x: Any, dim: int, dtype: Any) -> Any:
    rows, axis, bare = along(function.__name__, whole(x) if dtype is None else typed(x, dtype), dim)
    out = typed(function(rows, axis), dtype)  # numgrad has those of short integers in int64
    return ng.reshape(out, ()) if bare else out


def _total(function: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    given = whole(x) if dtype is None else typed(x, dtype)
    return typed(function(given, axes(dim, x), keepdims=keepdim), dtype)


def _trapezoid(function: Any, y: Any, x: Any, dx: Any, dim: int) -> Any:
    if not y.ndim:
        raise NumgradIndexError(f"trapezoid(): dimension {dim} of an operand without dimensions")
    y, axis = floating(y), one_axis("trapezoid", y, dim)
    if not y.shape[axis]:
        return ng.sum(y, axis) if function is ng.trapezoid else y
    return function(y, x, 1.0 if dx is None else dx, axis=axis)


def _diff(x: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    if not x.ndim:
        raise NumgradRuntimeError("diff expects input to be at least one-dimensional")
    parts, axis = [p for p in (prepend, x, append) if p is not None], one_axis("diff", x, dim)
    x = ng.cat(parts, axis=axis) if len(parts) > 1 else x
    return ng.diff(x, min(n, x.shape[axis]), axis=axis)


TABLE = """
[same 1]
sum(input, dim=None, keepdim=False, *, dtype=None): sum == _total(
    ng.sum, input, dim, keepdim, dtype)
mean(input, dim=None, keepdim=False, *, dtype=None): mean == ng.mean(
    float_only("mean", typed(input, dtype)), axes(dim, input), keepdims=keepdim)
nansum(input, dim=None, keepdim=False, *, dtype=None): _total(ng.nansum, input, dim, keepdim, dtype)
nanmean(input, dim=None, keepdim=False, *, dtype=None): ng.nanmean(
    float_only("nanmean", typed(input, dtype)), axes(dim, input), keepdims=keepdim)
prod(input, dim=None, keepdim=False, *, dtype=None): _total(ng.prod, input, dim, keepdim, dtype)
amax(input, dim=(), keepdim=False): ng.max(input, axes(dim, input), keepdims=keepdim)
amin(input, dim=(), keepdim=False): ng.min(input, axes(dim, input), keepdims=keepdim)
all(input, dim=None, keepdim=False): _any(ng.all, input, dim, keepdim)
any(input, dim=None, keepdim=False): _any(ng.any, input, dim, keepdim)
argmax(input, dim=None, keepdim=False): _argument(ng.argmax, input, dim, keepdim)
argmin(input, dim=None, keepdim=False): _argument(ng.argmin, input, dim, keepdim)
count_nonzero(input, dim=None): ng.count_nonzero(input, axes(dim, input))
var(input, dim=None, unbiased=None, keepdim=False, *, correction=None): _moment(
    ng.var, input, dim, unbiased, correction, keepdim)
std(input, dim=None, unbiased=None, keepdim=False, *, correction=None): _moment(
    ng.std, input, dim, unbiased, correction, keepdim)
norm(input, p="fro", dim=None, keepdim=False, dtype=None): _norm(input, p, dim, keepdim, dtype)
median(input, dim=None, keepdim=False): median("median", input, dim, keepdim)
nanmedian(input, dim=None, keepdim=False): median("nanmedian", input, dim, keepdim)
quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"): _quantile(
    ng.quantile, input, q, dim, keepdim, interpolation)
nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"): _quantile(
    ng.nanquantile, input, q, dim, keepdim, interpolation)
sort(input, dim=-1, descending=False, *, stable=False) -> values indices: _sort(
    input, dim, descending)
argsort(input, dim=-1, descending=False, *, stable=False): _sort(input, dim, descending)[1]
msort(input): _sort(input, 0, False)[0]
topk(input, k, dim=-1, largest=True, sorted=True) -> values indices: _topk(input, k, dim, largest)
kthvalue(input, k, dim=-1, keepdim=False) -> values indices: _ranked(
    input, k - 1, dim, keepdim, "kthvalue")
mode(input, dim=-1, keepdim=False) -> values indices: _mode(input, dim, keepdim)
cummax(input, dim) -> values indices: _cumulative("cummax", input, dim)
cummin(input, dim) -> values indices: _cumulative("cummin", input, dim)
logcumsumexp(input, dim): _running(ng.logcumsumexp, input, dim, None)
aminmax(input, *, dim=None, keepdim=False) -> min max: (
    ng.min(input, axes(dim, input), keepdims=keepdim),
    ng.max(input, axes(dim, input), keepdims=keepdim))
unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None): _unique(
    input, sorted, return_inverse, return_counts, dim, False)
unique_consecutive(input, return_inverse=False, return_counts=False, dim=None): _unique(
    input, True, return_inverse, return_counts, dim, True)
bincount(input, weights=None, minlength=0): typed(
    ng.bincount(input, weights, minlength),
    weights.dtype if weights is not None and weights.dtype == np.float32 else None)
histc(input, bins=100, min=0, max=0): _histc(input, bins, min, max)
diff(input, n=1, dim=-1, prepend=None, append=None): _diff(input, n, dim, prepend, append)
[same 1 inplace]
cumsum(input, dim, *, dtype=None): _running(ng.cumsum, input, dim, dtype)
cumprod(input, dim, *, dtype=None): _running(ng.cumprod, input, dim, dtype)
renorm(input, p, dim, maxnorm): ng.renorm(input, p, dim, maxnorm)
[same 1]
max(input, dim=None, keepdim=False, *, other=None): max == _extreme(
    "max", input, dim, keepdim, other)
min(input, dim=None, keepdim=False, *, other=None): min == _extreme(
    "min", input, dim, keepdim, other)
[number 2]
dist(input, other, p=2): ng.vector_norm(floating(input - other), ord=p)
[float 1]
cov(input, *, correction=1, fweights=None, aweights=None): _cov(
    input, correction, fweights, aweights)
corrcoef(input): ng.corrcoef(input).astype(input.dtype)
logsumexp(input, dim, keepdim=False): ng.logsumexp(input, axes(dim, input), keepdims=keepdim)
[same 1 function]
std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None): (
    _moment(ng.std, input, dim, unbiased, correction, keepdim),
    ng.mean(input, None if isinstance(dim, bool) else axes(dim, input), keepdims=keepdim))
var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None): (
    _moment(ng.var, input, dim, unbiased, correction, keepdim),
    ng.mean(input, None if isinstance(dim, bool) else axes(dim, input), keepdims=keepdim))
searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None): (
    _search(sorted_sequence if sorter is None else ng.take_along_axis(sorted_sequence, sorter, -1),
    input, out_int32, right, side))
bucketize(input, boundaries, *, out_int32=False, right=False): _search(
    boundaries, input, out_int32, right, None)
trapezoid(y, x=None, *, dx=None, dim=-1): _trapezoid(ng.trapezoid, y, x, dx, dim)
cumulative_trapezoid(y, x=None, *, dx=None, dim=-1): _trapezoid(
    ng.cumulative_trapezoid, y, x, dx, dim)
[same 1]
softmax(input, dim, dtype=None): _soft(ng.softmax, typed(input, dtype), dim)
log_softmax(input, dim, dtype=None): _soft(OPS["log_softmax"], typed(input, dtype), dim)
gradient(input, *, spacing=None, dim=None, edge_order=1): _gradient(input, spacing, dim, edge_order)
histogram(input, bins, *, range=None, weight=None, density=False) -> hist bin_edges: _histogram(
    input, bins, range, weight, density)
histogramdd(input, bins, *, range=None, weight=None, density=False) -> hist bin_edges: _histogramdd(
    input, bins, range, weight, density)
_softmax_backward_data(grad_output, output, dim, input_dtype): output * (grad_output - ng.sum(
    grad_output * output, dim, keepdims=True))
native_dropout_backward(grad_output, mask, scale): grad_output * mask * scale
aliases trapz=trapezoid
"""
table("", globals(), TABLE)
