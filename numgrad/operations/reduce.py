"""Reductions over axes, places of extreme elements, and maps with a reduction in them (softmax)."""

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.axis_sweeps import argreduce_kernel
from numgrad.codegen.dtypes import check_dtype
from numgrad.codegen.symbols import Symbol
from numgrad.core.declare import BatchOperand, Meta, Op, apply, axiswise, one_axis, ones, primitive
from numgrad.errors import NumgradValueError
from numgrad.operations.shared_rules import along_axis


@axiswise(ref=np.sum, linear=True)
def sum(x, *, axis=None, dtype=None, keepdims=False):
    """Sum over axes.

    Examples
    --------
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.sum(x), ng.sum(x, axis=0)
    (tensor(10.), tensor([4., 6.]))
    >>> ng.sum(x, axis=1, keepdims=True)
    tensor([[3.],
            [7.]])
    """
    return np.sum(x, axis=axis, keepdims=True)


sum.vjp(x=lambda g: g)


@axiswise(ref=np.mean, linear=True)
def mean(x, *, axis=None, dtype=None, keepdims=False, n: Any = None):
    """Arithmetic mean over axes.

    Examples
    --------
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> ng.mean(x), ng.mean(x, axis=0)
    (tensor(3.), tensor([2., 4.]))
    """
    return np.sum(x * 1.0, axis=axis, keepdims=True) / n


mean.vjp(x=lambda g, n: g / n)


def others(x: Any, axis: Any) -> Any:
    """For each element, the product of the others along the axes.

    In a kernel by division, where zeros, infinities and NaN stand apart. On Tensors as the product
    of all before and all after, which can be differentiated again where there are zeros.
    """
    if not isinstance(x, Symbol):
        return _others_by_neighbours(x, axis)
    return _others_by_division(x, axis)


def _others_by_division(x: Any, axis: Any) -> Any:
    apart: Any = (x == 0) | ~np.isfinite(x)
    rest: Any = np.where(apart, 1, x)
    p = np.prod(rest, axis=axis, keepdims=True)
    count = np.sum(apart * 1.0, axis=axis, keepdims=True)
    wild = np.prod(np.where(apart, x, 1), axis=axis, keepdims=True)  # 0, infinite, NaN, or 1
    of_apart = np.where(count == 1, p, np.where(wild == 0, 0, wild * np.sign(x) * p))
    of_rest = np.where(wild == 0, 0, np.where(count == 0, p / rest, wild * (p / rest)))
    return np.where(apart, of_apart, of_rest)


def _others_by_neighbours(x, axis):
    from numgrad.operations.arrangement import flip, permute_dims
    from numgrad.operations.cumulative import cumprod
    from numgrad.operations.join import concat
    from numgrad.operations.shape import reshape

    remaining = tuple(k for k in range(x.ndim) if k not in axis)
    order = (*remaining, *axis)
    moved = permute_dims(x, axes=order)
    shape = moved.shape
    flat = reshape(moved, (*shape[: len(remaining)], math.prod(shape[len(remaining) :])))
    if flat.shape[-1] == 0:
        return x
    one = ones((*flat.shape[:-1], 1), flat.dtype)
    before = cumprod(concat([one, flat[..., :-1]], axis=-1), axis=-1)
    after = flip(cumprod(concat([one, flip(flat[..., 1:], axis=-1)], axis=-1), axis=-1), axis=-1)
    return permute_dims(reshape(before * after, shape), axes=tuple(np.argsort(order).tolist()))


@axiswise(ref=np.prod)
def prod(x, *, axis=None, dtype=None, keepdims=False):
    """Product over axes.

    Examples
    --------
    >>> x = ng.tensor([2.0, 0.0, 3.0], requires_grad=True)
    >>> y = ng.prod(x)
    >>> y.detach()
    tensor(0.)
    >>> y.backward()
    >>> x.grad
    tensor([0., 6., 0.])
    """
    return np.prod(x, axis=axis, keepdims=True)


prod.vjp(x=lambda g, x, axis: g * np.conj(others(x, axis)))
prod.kink(x=([2.0, 0.0, 3.0], [0, 6, 0]))
prod.kink(x=([0.0, 0.0, 3.0], [0, 0, 0]))
prod.kink(x=([[0.0, 2.0], [3.0, 4.0]], [[2, 0], [4, 3]]), params={"axis": 1})


@axiswise(ref=np.max, aliases=("amax",), empty=False)
def max(x, *, axis=None, keepdims=False):
    """Largest element over axes, NaN if there is one; equal elements share the gradient.

    Examples
    --------
    >>> x = ng.tensor([3.0, 1.0, 3.0], requires_grad=True)
    >>> y = ng.max(x)
    >>> y.detach()
    tensor(3.)
    >>> y.backward()
    >>> x.grad
    tensor([0.5, 0. , 0.5])
    """
    return np.max(x, axis=axis, keepdims=True)


def _extremum_vjp(g, x, y, axis):
    extreme = (x == y) | np.isnan(x)  # a NaN makes the result NaN
    return np.where(extreme, g / np.sum(extreme * 1, axis=axis, keepdims=True), 0)


max.vjp(x=_extremum_vjp)
max.kink(x=([2.0, 2.0, 1.0, 2.0], [1 / 3, 1 / 3, 0, 1 / 3]))
max.kink(x=([[1.0, 1.0], [3.0, 4.0]], [[0.5, 0.5], [0, 1]]), params={"axis": 1})
max.kink(x=([np.nan, 1.0], [1, 0]))


@axiswise(ref=np.min, aliases=("amin",), empty=False)
def min(x, *, axis=None, keepdims=False):
    """Smallest element over axes, NaN if there is one; equal elements share the gradient.

    Examples
    --------
    >>> x = ng.tensor([3.0, 1.0, 1.0], requires_grad=True)
    >>> y = ng.min(x)
    >>> y.detach()
    tensor(1.)
    >>> y.backward()
    >>> x.grad
    tensor([0. , 0.5, 0.5])
    """
    return np.min(x, axis=axis, keepdims=True)


min.vjp(x=_extremum_vjp)
min.kink(x=([1.0, 2.0, 1.0], [0.5, 0, 0.5]))
min.kink(x=([np.nan, 1.0], [1, 0]))


@axiswise(ref=np.any, differentiable=False)
def any(x, *, axis=None, keepdims=False):
    """Whether an element over axes is non-zero.

    Examples
    --------
    >>> ng.any(ng.tensor([[1.0, 0.0], [0.0, 0.0]]), axis=1)
    tensor([ True, False])
    """
    return np.any(x, axis=axis, keepdims=True)


@axiswise(ref=np.all, differentiable=False)
def all(x, *, axis=None, keepdims=False):
    """Whether all elements over axes are non-zero.

    Examples
    --------
    >>> ng.all(ng.tensor([[1.0, 0.0], [2.0, 3.0]]), axis=1)
    tensor([False,  True])
    """
    return np.all(x, axis=axis, keepdims=True)


@axiswise(ref=np.count_nonzero, differentiable=False)
def count_nonzero(x, *, axis=None, keepdims=False):
    """Number of non-zero elements over axes.

    Examples
    --------
    >>> ng.count_nonzero(ng.tensor([[1.0, 0.0], [2.0, 3.0]]), axis=1)
    tensor([1, 2])
    """
    return np.sum(x != 0, axis=axis, keepdims=True)


@axiswise(ref=np.var)
def var(x, *, axis=None, dtype=None, ddof=0, keepdims=False, n: Any = None):
    """Variance over axes: mean squared distance from the mean, divided by ``n - ddof``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 3.0])
    >>> ng.var(x), ng.var(x, ddof=1)
    (tensor(1.), tensor(2.))
    """
    m = np.sum(x * 1.0, axis=axis, keepdims=True) / n
    return np.sum(np.square(np.abs(x - m)), axis=axis, keepdims=True) / np.maximum(n - ddof, 0)


var.vjp(
    x=lambda g, x, axis, ddof, n: (
        g * 2 / np.maximum(n - ddof, 0) * (x - np.sum(x, axis=axis, keepdims=True) / n)
    )
)
var.kink(x=([1.0, 1.0, 1.0], [0, 0, 0]))


@axiswise(ref=np.std)
def std(x, *, axis=None, dtype=None, ddof=0, keepdims=False, n: Any = None):
    """Standard deviation over axes: the square root of ``var``.

    Examples
    --------
    >>> ng.std(ng.tensor([[1.0, 3.0], [0.0, 10.0]]), axis=1)
    tensor([1., 5.])
    """
    m = np.sum(x * 1.0, axis=axis, keepdims=True) / n
    return np.sqrt(
        np.sum(np.square(np.abs(x - m)), axis=axis, keepdims=True) / np.maximum(n - ddof, 0)
    )


std.vjp(
    x=lambda g, x, y, axis, ddof, n: np.where(
        y == 0,
        0,
        g
        / (np.where(y == 0, 1, y) * np.maximum(n - ddof, 0))
        * (x - np.sum(x, axis=axis, keepdims=True) / n),
    )
)
std.kink(x=([1.0, 1.0, 1.0], [0, 0, 0]))
std.kink(x=([0.0, 0.0], [0, 0]))


def deviation(variance: Any) -> Any:
    """Standard deviation of a variance, with the derivatives of ``std``: 0 where that is 0."""
    none = variance == 0
    return np.where(none, 0, np.sqrt(np.where(none, 1, variance)))


@axiswise(ref="scipy.special.logsumexp")
def logsumexp(x, *, axis=None, keepdims=False):
    """``log(sum(exp(x)))`` over axes, without overflow.

    Examples
    --------
    >>> x = ng.tensor([1000.0, 1000.0], requires_grad=True)
    >>> y = ng.logsumexp(x)
    >>> y.detach()
    tensor(1000.69314718)
    >>> y.backward()
    >>> x.grad
    tensor([0.5, 0.5])
    """
    m = np.max(np.real(x) * 1.0, axis=axis, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    return np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m


logsumexp.vjp(x=lambda g, x, y: g * np.conj(np.exp(x - y)))
logsumexp.kink(x=([-np.inf, 0.0], [0, 1]))
logsumexp.kink(x=([-np.inf, -np.inf], [np.nan, np.nan]))
logsumexp.kink(x=([800.0, -800.0], [1, 0]))


@axiswise(ref="scipy.special.softmax", keeps_shape=True, empty=False)
def softmax(x, *, axis=-1):
    """Exponentials divided by their sum over axes.

    Examples
    --------
    >>> x = ng.tensor([[0.0, 0.0], [1000.0, 0.0]])
    >>> ng.softmax(x)
    tensor([[0.5, 0.5],
            [1. , 0. ]])
    >>> ng.softmax(x).sum(axis=-1)
    tensor([1., 1.])
    """
    x = x * 1.0  # differences of small integers would overflow
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


softmax.vjp(
    x=lambda g, y, axis: np.conj(y) * (g - np.sum(g * np.conj(y), axis=axis, keepdims=True))
)
softmax.kink(x=([-np.inf, 0.0], [0, 0]))
softmax.kink(x=([-np.inf, -np.inf], [np.nan, np.nan]))


@axiswise(ref="scipy.special.log_softmax", keeps_shape=True, empty=False)
def log_softmax(x, *, axis=-1):
    """Logarithm of ``softmax``, accurate where that underflows.

    Examples
    --------
    >>> ng.log_softmax(ng.tensor([0.0, 0.0, -1000.0]))
    tensor([-6.93147181e-01, -6.93147181e-01, -1.00069315e+03])
    """
    x = x * 1.0
    s = x - np.max(x, axis=axis, keepdims=True)
    return s - np.log(np.sum(np.exp(s), axis=axis, keepdims=True))


log_softmax.vjp(x=lambda g, y, axis: g - np.conj(np.exp(y)) * np.sum(g, axis=axis, keepdims=True))
log_softmax.kink(x=([800.0, -800.0], [-1, 1]))
log_softmax.kink(x=([-np.inf, -np.inf], [np.nan, np.nan]))


@axiswise(
    method=False, internal=True, ref=lambda x, **params: np.sqrt(np.sum(np.abs(x) ** 2, **params))
)
def norm2(x, *, axis=None, keepdims=False):
    """Square root of the sum of squared magnitudes."""
    return np.sqrt(np.sum(np.square(np.abs(x * 1.0)), axis=axis, keepdims=True))


norm2.vjp(x=lambda g, x, y: np.where(y == 0, 0, g * (x / np.where(y == 0, 1, y))))
norm2.kink(x=([0.0, 0.0, -0.0], [0, 0, 0]))
norm2.kink(x=([0j, 0j], [0, 0]))


_ELEMENT_NS = 0.5


@cache
def _kernel(kind: str, dtype: np.dtype, columns: bool, parallel: bool) -> Any:
    return argreduce_kernel(kind, dtype, columns, parallel).entry


def _search(kind: str, x: np.ndarray, axis: int | None, keepdims: bool) -> np.ndarray:
    check_dtype(kind, x.dtype)
    shape = x.shape
    if axis is None:
        reduced = (1,) * x.ndim if keepdims else ()
        sizes = (1, x.size, 1)
    else:
        axis = one_axis(kind, axis, x.ndim)
        reduced = shape[:axis] + ((1,) if keepdims else ()) + shape[axis + 1 :]
        sizes = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    out = np.empty(reduced, np.int64)
    if not out.size:
        return out
    if not sizes[1]:
        raise NumgradValueError(
            f"{kind}: the searched axis of an operand of shape {shape} has no elements"
        )
    columns = sizes[2] != 1
    entry = threads.choose(
        partial(_kernel, kind, x.dtype, columns, False),
        partial(_kernel, kind, x.dtype, columns, True),
        x.size * _ELEMENT_NS if out.size > 1 else 0.0,  # one row cannot be shared
    )
    entry(np.ascontiguousarray(x).ravel(), out.ravel(), *(sizes if columns else sizes[:2]))
    return out


@primitive(ref=np.argmax, differentiable=False)
def argmax(x, *, axis=None, keepdims=False):
    """Index of the first largest element along an axis, or in the flattened operand.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.argmax(ng.tensor([[1.0, 3.0, 3.0], [4.0, 0.0, 2.0]]), axis=1)
    tensor([1, 0])
    """
    return _search("argmax", x, axis, keepdims)


@primitive(ref=np.argmin, differentiable=False)
def argmin(x, *, axis=None, keepdims=False):
    """Index of the first smallest element along an axis, or in the flattened operand.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.argmin(ng.tensor([[1.0, 3.0, 1.0], [4.0, 0.0, 2.0]]), axis=1)
    tensor([0, 1])
    """
    return _search("argmin", x, axis, keepdims)


def _search_result(kind: str, x: Meta, axis: int | None, keepdims: bool) -> Meta:
    if axis is None:
        return Meta((1,) * x.ndim if keepdims else (), np.dtype(np.int64))
    axis = one_axis(kind, axis, x.ndim)
    reduced = (1,) if keepdims else ()
    return Meta(x.shape[:axis] + reduced + x.shape[axis + 1 :], np.dtype(np.int64))


argmax.shape(lambda x, *, axis, keepdims: _search_result("argmax", x, axis, keepdims))
argmin.shape(lambda x, *, axis, keepdims: _search_result("argmin", x, axis, keepdims))


@argmax.batch
@argmin.batch
def _batched_search(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    out = along_axis(op, operands, params, size)
    if params["axis"] is None and params["keepdims"]:
        return apply("reshape", out, shape=(size, *(1,) * operands[0].ndim))
    return out
