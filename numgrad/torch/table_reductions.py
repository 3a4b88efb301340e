"""Rows of reductions, sums along axes, sorts and statistics: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.variable import Tensor as Base
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError
from numgrad.torch.array_functions import computed
from numgrad.torch.calls import cast, of_each as of_each, table
from numgrad.torch.dtypes import common_dtype


def typed(x: Any, dtype: Any) -> Any:
    """A Tensor in a dtype, if one is given."""
    return x if dtype is None else OPS["astype"](x, dtype=dtype)


def double(x: Any) -> Any:
    """A Tensor in float64, or None."""
    return x if x is None else typed(x, np.dtype(np.float64))


def in_dtype_of(x: Any, results: Any) -> Any:
    """Results in the dtype of an operand."""
    return of_each(lambda y: typed(y, x.dtype), results)


def several(value: Any) -> Any:
    """A tuple or list as it is, anything else in a tuple."""
    return value if isinstance(value, tuple | list) else (value,)


def _at(x: Any, index: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """Values at one index along an axis, and the indices."""
    values = ng.take_along_axis(x, index, axis)
    if not keepdim:
        values, index = ng.squeeze(values, axis), ng.squeeze(index, axis)
    return values, index


def _extreme(name: str, x: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if isinstance(dim, Base) or other is not None:
        operands = (x, dim if other is None else other)
        d = common_dtype(operands)
        return OPS[f"{name}imum"](*[cast(each, d) for each in operands])
    if dim is None:
        return OPS[name](x)
    return _at(x, OPS[f"arg{name}"](x, dim, keepdims=True), dim, keepdim)


def _moment(function: Any, x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return function(x, dim, ddof=correction, keepdims=keepdim)


def median(name: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """The lower of the middle numbers; NaN where there is one, unless they are left out."""
    rows, axis = (ng.reshape(x, (-1,)), 0) if dim is None else (x, dim)
    count = rows.shape[axis]
    if not count and dim is None and rows.dtype.kind == "f":
        return ng.sum(rows) + np.nan
    has_elements(name, x, dim)
    order = ng.argsort(rows.detach(), axis, stable=True)  # NaN come last
    missing = ng.sum(ng.isnan(rows.detach()), axis, keepdims=True)
    place = ng.maximum(count - missing - 1, 0) // 2
    if name == "median":
        place = ng.where(missing > 0, count - missing, (count - 1) // 2)
    index = ng.take_along_axis(order, place, axis)
    values, index = _at(rows, index, axis, keepdim and dim is not None)
    if dim is None and rows.dtype.kind == "f":  # equal numbers share the gradient
        middle = values.detach()
        equal = (rows == middle) | (ng.isnan(rows) & ng.isnan(middle))
        return ng.max(ng.where(equal, rows, -np.inf))
    return values if dim is None else (values, index)


def has_elements(name: str, x: Any, dim: Any) -> bool:
    """True, or an error if there are no elements along an axis, or none at all."""
    if x.size if dim is None else x.shape[dim]:
        return True
    raise NumgradIndexError(f"{name}(): no elements along axis {dim} of shape {[*x.shape]}")


def _mode(x: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """The most frequent number, the smallest of several, and the last index of it."""
    order = ng.argsort(x.detach(), axis, stable=True)
    rows = ng.moveaxis(ng.take_along_axis(x.detach(), order, axis), axis, -1)
    places = ng.arange(rows.shape[-1])
    begins = ng.where((rows != ng.roll(rows, 1, -1)) & (places > 0), places, 0)
    longest = ng.argmax(places - ng.cummax(begins, -1), -1)
    index = ng.take_along_axis(order, ng.expand_dims(longest, axis), axis)
    return _at(x, index, axis, keepdim)


def _ordered(x: Any, axis: int, descending: bool = False, places: Any = slice(None)) -> Any:
    """Numbers in ascending or descending order, those at some places, and their indices."""
    index = ng.argsort(x.detach(), axis, stable=True, descending=descending)
    index = index[(*[slice(None)] * axis, places)]
    return ng.take_along_axis(x, index, axis), index


def _search(sequence: Any, values: Any, short: bool, right: bool, side: Any) -> Any:
    search = partial(np.searchsorted, side="right" if right or side == "right" else "left")
    if sequence.ndim > 1:
        search = np.vectorize(search, otypes=[np.int64], signature="(n),(m)->(m)")
    return computed(
        lambda a, v: np.asarray(search(a, v), np.int32 if short else np.int64), sequence, values
    )


def _trapezoid(function: Any, y: Any, x: Any, dx: float, axis: int) -> Any:
    if not y.shape[axis]:
        return ng.sum(y, axis) if function is ng.trapezoid else y
    return function(y, x, dx, axis=axis)


def _diff(x: Any, n: int, axis: int, *around: Any) -> Any:
    if n == 0:
        return ng.copy(x)
    length = x.shape[axis] + sum(part.shape[axis] for part in around if part is not None)
    return ng.diff(x, min(n, length), axis, *around)


TABLE = """
[whole 1 dtype axes]
sum(input, dim=None, keepdim=False, *, dtype=None): sum == ng.sum(input, dim, keepdims=keepdim)
{nansum prod}(input, dim=None, keepdim=False, *, dtype=None): ng.@(input, dim, keepdims=keepdim)
[inexact 1 dtype axes]
mean(input, dim=None, keepdim=False, *, dtype=None): mean == ng.mean(input, dim, keepdims=keepdim)
nanmean(input, dim=None, keepdim=False, *, dtype=None): ng.nanmean(input, dim, keepdims=keepdim)
{var std}(input, dim=None, unbiased=None, keepdim=False, *, correction=None): _moment(
    ng.@, input, dim, unbiased, correction, keepdim)
[same 1 dtype axes]
norm(input, p="fro", dim=None, keepdim=False, dtype=None): ng.norm(
    input, "nuc", dim, keepdim) if p == "nuc" else ng.vector_norm(
    input, ord=2 if p in (None, "fro") else p, axis=dim, keepdims=keepdim)
[same 1 axes]
{amax=max amin=min}(input, dim=None, keepdim=False): ng.@(input, dim, keepdims=keepdim)
{all any}(input, dim=None, keepdim=False): typed(
    ng.@(input if input.dtype == bool else input != 0, dim, keepdims=keepdim),
    input.dtype if input.dtype == np.uint8 else None)
{quantile nanquantile}(input, q, dim=None, keepdim=False, *, interpolation="linear"): ng.@(
    input, q, dim, method=interpolation, keepdims=keepdim)
count_nonzero(input, dim=None): ng.count_nonzero(input, dim)
aminmax(input, *, dim=None, keepdim=False) -> min max: (
    ng.min(input, dim, keepdims=keepdim), ng.max(input, dim, keepdims=keepdim))
[same 1 axis]
{argmax argmin}(input, dim=None, keepdim=False) if has_elements("@", input, dim): ng.@(
    input, dim, keepdims=keepdim)
{max min}(input, dim=None, keepdim=False, *, other=None) -> values indices: @ == _extreme(
    "@", input, dim, keepdim, other)
{median nanmedian}(input, dim=None, keepdim=False) -> values indices: median(
    "@", input, dim, keepdim)
sort(input, dim=-1, descending=False, *, stable=False) -> values indices: _ordered(
    input, dim, descending)
argsort(input, dim=-1, descending=False, *, stable=False): _ordered(input, dim, descending)[1]
msort(input): _ordered(input, 0)[0]
topk(input, k, dim=-1, largest=True, sorted=True) -> values indices if k <= input.shape[dim]: (
    _ordered(input, dim, largest, slice(k)))
mode(input, dim=-1, keepdim=False) -> values indices if has_elements("mode", input, dim): _mode(
    input, dim, keepdim)
[same 1 axis indices]
kthvalue(input, k, dim=-1, keepdim=False) -> values indices: _at(
    input, _ordered(input, dim, False, np.array([k - 1]))[1], dim, keepdim)
[same 1 axis]
{cummax cummin}(input, dim) -> values indices: ng.@(input, dim, True)
logcumsumexp(input, dim): ng.logcumsumexp(input, dim)
diff(input, n=1, dim=-1, prepend=None, append=None): _diff(input, n, dim, prepend, append)
[whole 1 dtype axis inplace]
{cumsum cumprod}(input, dim, *, dtype=None): ng.@(input, dim)
[float 1 dtype axis]
{softmax log_softmax}(input, dim, dtype=None): OPS["@"](input, axis=dim)
[same 1]
unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None): ng.unique(
    input, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False)
unique_consecutive(input, return_inverse=False, return_counts=False, dim=None): (
    ng.unique_consecutive(input, return_inverse, return_counts, dim))
bincount(input, weights=None, minlength=0): typed(
    ng.bincount(input, weights, minlength),
    weights.dtype if weights is not None and weights.dtype == np.float32 else None)
histc(input, bins=100, min=0, max=0): computed(lambda a: np.histogram(
    a, bins, None if min == max else (float(min), float(max)))[0].astype(a.dtype), input)
histogram(input, bins, *, range=None, weight=None, density=False) -> hist bin_edges: in_dtype_of(
    input, ng.histogram(input.detach(), bins, range and tuple(range), density, double(weight)))
histogramdd(input, bins, *, range=None, weight=None, density=False) -> hist bin_edges: in_dtype_of(
    input, ng.histogramdd(ng.reshape(input.detach(), (-1, input.shape[-1])), bins,
    range and np.reshape(range, (-1, 2)).tolist(), density,
    weight if weight is None else ng.ravel(double(weight))))
_softmax_backward_data(grad_output, output, dim, input_dtype): output * (grad_output - ng.sum(
    grad_output * output, dim, keepdims=True))
[same 1 inplace]
renorm(input, p, dim, maxnorm): ng.renorm(input, p, dim, maxnorm)
[float 2]
dist(input, other, p=2): ng.vector_norm(input - other, ord=p)
[float 1]
native_dropout_backward(grad_output, mask, scale): grad_output * mask * scale
gradient(input, *, spacing=None, dim=None, edge_order=1) if (not isinstance(spacing, tuple | list)
    or len(spacing) == (input.ndim if dim is None else len(several(dim)))): several(ng.gradient(
    input, *several(1 if spacing is None else spacing), axis=dim, edge_order=edge_order))
cov(input, *, correction=1, fweights=None, aweights=None): ng.cov(
    input, ddof=correction, fweights=fweights, aweights=aweights).astype(input.dtype)
corrcoef(input): ng.corrcoef(input).astype(input.dtype)
[float 1 axes]
logsumexp(input, dim, keepdim=False): ng.logsumexp(input, dim, keepdims=keepdim)
[inexact 1 function axes]
{std_mean=std var_mean=var}(input, dim=None, unbiased=None, keepdim=False, *, correction=None): (
    _moment(ng.@, input, dim, unbiased, correction, keepdim),
    ng.mean(input, None if isinstance(dim, bool) else dim, keepdims=keepdim))
[same 1 function]
searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None): (
    _search(sorted_sequence if sorter is None else ng.take_along_axis(sorted_sequence, sorter, -1),
    input, out_int32, right, side))
bucketize(input, boundaries, *, out_int32=False, right=False): _search(
    boundaries, input, out_int32, right, None)
[float 2 axis function]
{trapezoid cumulative_trapezoid}(y, x=None, *, dx=1.0, dim=-1): _trapezoid(ng.@, y, x, dx, dim)
aliases trapz=trapezoid
"""
table("", globals(), TABLE)
