"""Reductions over axes, and the maps that contain one (softmax)."""

import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.expr import Symbol
from numgrad.op import axiswise, composite
from numgrad.op.abstract import ones


@axiswise(ref=np.sum, linear=True)
def sum(x, *, axis=None, dtype=None, keepdims=False):
    """Sum over axes."""
    return np.sum(x, axis=axis, keepdims=True)


sum.vjp(x=lambda g: g)


@axiswise(ref=np.mean, linear=True)
def mean(x, *, axis=None, dtype=None, keepdims=False, n: Any = None):
    """Arithmetic mean over axes."""
    return np.sum(x * 1.0, axis=axis, keepdims=True) / n


mean.vjp(x=lambda g, n: g / n)


def others(x: Any, axis: Any) -> Any:
    """For each element, the product of the others along the axes.

    In a kernel by division, with zeros counted. On Tensors as the product of all before and all
    after, which can be differentiated again where there are zeros.
    """
    if not isinstance(x, Symbol):
        return _others_by_neighbours(x, axis)
    zero: Any = x == 0
    rest: Any = np.where(zero, 1, x)  # pyright: ignore
    p = np.prod(rest, axis=axis, keepdims=True)
    zeros = np.sum(zero * 1.0, axis=axis, keepdims=True)
    return np.where(zero, np.where(zeros == 1, p, 0), np.where(zeros == 0, p / rest, 0))


def _others_by_neighbours(x, axis):
    from numgrad.ops.cumulative import cumprod
    from numgrad.ops.join import concat
    from numgrad.ops.shape import flip, permute_dims, reshape

    kept = tuple(k for k in range(x.ndim) if k not in axis)
    order = (*kept, *axis)
    moved = permute_dims(x, axes=order)
    shape = moved.shape
    flat = reshape(moved, (*shape[: len(kept)], math.prod(shape[len(kept) :])))
    if flat.shape[-1] == 0:
        return x
    one = ones((*flat.shape[:-1], 1), flat.dtype)
    before = cumprod(concat([one, flat[..., :-1]], axis=-1), axis=-1)
    after = flip(cumprod(concat([one, flip(flat[..., 1:], axis=-1)], axis=-1), axis=-1), axis=-1)
    return permute_dims(reshape(before * after, shape), axes=tuple(np.argsort(order).tolist()))


@axiswise(ref=np.prod)
def prod(x, *, axis=None, dtype=None, keepdims=False):
    """Product over axes."""
    return np.prod(x, axis=axis, keepdims=True)


prod.vjp(x=lambda g, x, axis: g * np.conj(others(x, axis)))


@axiswise(ref=np.max, aliases=("amax",), empty=False)
def max(x, *, axis=None, keepdims=False):
    """Largest element over axes, NaN if there is one; equal elements share the gradient."""
    return np.max(x, axis=axis, keepdims=True)


def _extremum_vjp(g, x, y, axis):
    chosen = (x == y) | np.isnan(x)  # a NaN makes the result NaN
    return np.where(chosen, g / np.sum(chosen * 1, axis=axis, keepdims=True), 0)


max.vjp(x=_extremum_vjp)


@axiswise(ref=np.min, aliases=("amin",), empty=False)
def min(x, *, axis=None, keepdims=False):
    """Smallest element over axes, NaN if there is one; equal elements share the gradient."""
    return np.min(x, axis=axis, keepdims=True)


min.formulas.update(max.formulas)


@axiswise(ref=np.any, differentiable=False)
def any(x, *, axis=None, keepdims=False):
    """Whether an element over axes is non-zero."""
    return np.any(x, axis=axis, keepdims=True)


@axiswise(ref=np.all, differentiable=False)
def all(x, *, axis=None, keepdims=False):
    """Whether all elements over axes are non-zero."""
    return np.all(x, axis=axis, keepdims=True)


@axiswise(ref=np.count_nonzero, differentiable=False)
def count_nonzero(x, *, axis=None, keepdims=False):
    """Number of non-zero elements over axes."""
    return np.sum(x != 0, axis=axis, keepdims=True)


@axiswise(ref=np.var)
def var(x, *, axis=None, dtype=None, ddof=0, keepdims=False, n: Any = None):
    """Variance over axes: mean squared distance from the mean, divided by ``n - ddof``."""
    m = np.sum(x * 1.0, axis=axis, keepdims=True) / n
    return np.sum(np.square(np.abs(x - m)), axis=axis, keepdims=True) / (n - ddof)


var.vjp(
    x=lambda g, x, axis, ddof, n: g * 2 / (n - ddof) * (x - np.sum(x, axis=axis, keepdims=True) / n)
)


@axiswise(ref=np.std)
def std(x, *, axis=None, dtype=None, ddof=0, keepdims=False, n: Any = None):
    """Standard deviation over axes: the square root of ``var``."""
    m = np.sum(x * 1.0, axis=axis, keepdims=True) / n
    return np.sqrt(np.sum(np.square(np.abs(x - m)), axis=axis, keepdims=True) / (n - ddof))


std.vjp(
    x=lambda g, x, y, axis, ddof, n: np.where(
        y == 0,
        0,
        g / (np.where(y == 0, 1, y) * (n - ddof)) * (x - np.sum(x, axis=axis, keepdims=True) / n),
    )
)


@axiswise(ref="scipy.special.logsumexp", empty=False)
def logsumexp(x, *, axis=None, keepdims=False):
    """``log(sum(exp(x)))`` over axes, without overflow."""
    m = np.max(np.real(x) * 1.0, axis=axis, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    return np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m


logsumexp.vjp(x=lambda g, x, y: g * np.conj(np.exp(x - y)))


@axiswise(ref="scipy.special.softmax", keeps_shape=True, empty=False)
def softmax(x, *, axis=-1):
    """Exponentials divided by their sum over axes."""
    x = x * 1.0  # differences of small integers would overflow
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


softmax.vjp(
    x=lambda g, y, axis: np.conj(y) * (g - np.sum(g * np.conj(y), axis=axis, keepdims=True))
)


@axiswise(ref="scipy.special.log_softmax", keeps_shape=True, empty=False)
def log_softmax(x, *, axis=-1):
    """Logarithm of ``softmax``, accurate where that underflows."""
    x = x * 1.0
    s = x - np.max(x, axis=axis, keepdims=True)
    return s - np.log(np.sum(np.exp(s), axis=axis, keepdims=True))


log_softmax.vjp(x=lambda g, y, axis: g - np.conj(np.exp(y)) * np.sum(g, axis=axis, keepdims=True))


@axiswise(method=False, internal=True)
def norm2(x, *, axis=None, keepdims=False):
    """Square root of the sum of squared magnitudes."""
    return np.sqrt(np.sum(np.square(np.abs(x * 1.0)), axis=axis, keepdims=True))


norm2.vjp(x=lambda g, x, y: np.where(y == 0, 0, g * (x / np.where(y == 0, 1, y))))


@composite(ref=np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of vectors along ``axis``; of all elements without one.

    ``ord`` is None, ``"fro"`` or 2 (Euclidean), 1, any other positive number, 0 (count of non-zero
    elements) or an infinity. Matrix norms other than Frobenius' are not vector norms and raise.
    """
    many = isinstance(axis, tuple) and len(axis) > 1
    if ord is None or ord == "fro" or (ord == 2 and not many):
        return norm2(x, axis=axis, keepdims=keepdims)
    if isinstance(ord, str) or many:
        raise NumgradValueError(
            f"norm: ord={ord!r} over axis={axis!r} is a matrix norm, which is not available; use "
            "ord=None or 'fro', or one axis"
        )
    if not isinstance(ord, int | float):
        raise NumgradTypeError(f"norm: ord must be a number, None or 'fro', got {ord!r}")
    magnitude = np.abs(x)
    if ord == math.inf:
        return max(magnitude, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return min(magnitude, axis=axis, keepdims=keepdims)
    if ord == 0:
        return count_nonzero(x, axis=axis, keepdims=keepdims) * 1.0
    if ord == 1:
        return sum(magnitude, axis=axis, keepdims=keepdims)
    return _power_norm(magnitude, ord, axis, keepdims)


def _power_norm(magnitude, ord, axis, keepdims):
    """``sum(magnitude**ord) ** (1 / ord)``, whose gradient at magnitudes of 0 is 0, never NaN."""
    zero = magnitude == 0
    powers = np.where(zero, 0 if ord > 0 else math.inf, np.where(zero, 1, magnitude) ** ord)
    total = sum(powers, axis=axis, keepdims=keepdims)
    if ord < 0:
        return total ** (1.0 / ord)
    zero = total == 0
    return np.where(zero, 0, np.where(zero, 1, total) ** (1.0 / ord))
