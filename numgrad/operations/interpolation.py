"""Values between samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.interpolation import interpolate, interpolate_backward
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_operand
from numgrad.operations.sorting import argsort
from numgrad.operations.take import in_a_row, take, take_backward

_FLOAT64 = np.dtype(np.float64)


@primitive(internal=True, method=False, auxiliaries=("place",), real=True)
def piecewise_linear(x, xp, fp):
    """The piecewise linear function through points, in order, constant beyond them."""
    if "c" in (x.dtype.kind, xp.dtype.kind, fp.dtype.kind):
        raise NumgradTypeError("piecewise_linear: not defined for complex numbers; use interp")
    x, xp, fp = (np.asarray(a, _FLOAT64) for a in (x, xp, fp))
    y, place = interpolate(in_a_row(x), in_a_row(xp), in_a_row(fp))
    return y.reshape(x.shape), (place.reshape(x.shape),)


@piecewise_linear.shape
def _piecewise_linear_shape(x, xp, fp):
    return Meta(x.shape, _FLOAT64), (Meta(x.shape, np.dtype(np.int64)),)


def _interval(x: Any, xp: Any, fp: Any, place: Any) -> tuple[Any, Any, Any, Any]:
    """The points around each ``x``, the slope between them, and which part of the way it lies."""
    n = xp.shape[0]
    inside = (place >= 0) & (place < n - 1)
    before = np.clip(place, 0, n - 1)
    after = np.minimum(before + 1, n - 1)
    x0, f0 = take(xp, before), take(fp, before)
    width = np.where(inside, take(xp, after) - x0, 1.0)
    slope = np.where(inside, (take(fp, after) - f0) / width, 0.0)
    return before, after, slope, np.where(inside, (x - x0) / width, 0.0)


def _lost(x: Any, n: Any) -> Any:
    """Where the value is NaN because ``x`` is; one point alone gives its value everywhere."""
    return np.isnan(x) & (n > 1)


def _of_x(g, x, xp, fp, place):
    lost = _lost(x, xp.shape[0])
    return np.where(lost, g, g * _interval(x, xp, fp, place)[2])


def _of_points(g: Any, x: Any, before: Any, after: Any, part: Any, n: Any) -> Any:
    lost = _lost(x, n)
    g = np.where(lost, 0.0, g)
    part = np.where(lost, 0.0, part)
    at_first = take_backward(g * (1 - part), before, shape=(n,))
    return at_first + take_backward(g * part, after, shape=(n,))


def _of_xp(g, x, xp, fp, place):
    before, after, slope, part = _interval(x, xp, fp, place)
    return _of_points(-g * slope, x, before, after, part, xp.shape[0])


def _of_fp(g, x, xp, fp, place):
    before, after, _, part = _interval(x, xp, fp, place)
    return _of_points(g, x, before, after, part, xp.shape[0])


piecewise_linear.vjp(x=_of_x, xp=_of_xp, fp=_of_fp)


@piecewise_linear.vjp_kernel
def _piecewise_linear_backward(call, mask, g, x: Any = None, xp=None, fp=None, place: Any = None):
    x, xp, fp, g = (np.asarray(a, _FLOAT64) for a in (x, xp, fp, g))
    rows = [in_a_row(a) for a in (x, xp, fp, place, g)]
    gx, gxp, gfp = interpolate_backward(*rows)
    found = [gx.reshape(x.shape), gxp, gfp]
    return [value if mask >> k & 1 else None for k, value in enumerate(found)]


@piecewise_linear.batch
def _batched_piecewise_linear(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, xp, fp = operands
    if xp.batched or fp.batched:
        return NotImplemented
    return bind(op, (x.value, xp.value, fp.value), params)


# at a point the slope is that of what begins there
piecewise_linear.kink(
    x=([-1.0, 0.0, 1.0, 2.0], [0, 1, 2, 0]), xp=([0.0, 1.0, 2.0], None), fp=([0.0, 1.0, 3.0], None)
)
piecewise_linear.calls = [
    (((4,), (3,)), lambda x, f: piecewise_linear(x, np.array([-1.0, 0.3, 1.1]), f)),
    (((2, 3), (3,), (3,)), lambda x, p, f: piecewise_linear(x, p * 0.2 + np.arange(3.0), f)),
]


@composite(ref=np.interp, method=False)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear function through given points, with gradients in ``x`` and in the points.

    At a point, the derivative in ``x`` is that of the interval behind it. At NaN the value is NaN,
    unless there is but one point: then it is that point's, as NumPy's.

    Parameters
    ----------
    x
        Where the function is wanted.
    xp
        Where it is known, in ascending order.
    fp
        Its values there.
    left : float
        Value before the first point, by default that at it.
    right : float
        Value behind the last point, by default that at it.
    period : float
        Period of the function, whose points may be in any order then.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> x = ng.tensor([0.5, 1.5, 9.0], requires_grad=True)
    >>> y = ng.interp(x, [0.0, 1.0, 2.0], [0.0, 2.0, 3.0])
    >>> y.detach()
    tensor([1. , 2.5, 3. ])
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 1., 0.])
    """
    x, xp, fp = as_operand(x), as_operand(xp), as_operand(fp)
    if x.dtype.kind == "c" or xp.dtype.kind == "c":
        raise NumgradTypeError("interp: takes real x and xp, got complex numbers")
    if len(xp.shape) != 1 or len(fp.shape) != 1 or xp.shape[0] != fp.shape[0]:
        raise NumgradValueError(
            f"interp: xp and fp have one axis and the same length, got shapes {tuple(xp.shape)} "
            f"and {tuple(fp.shape)}"
        )
    if not xp.shape[0]:
        raise NumgradValueError("interp: needs at least one point")
    if fp.dtype.kind == "c":
        parts = [
            interp(x, xp, part(fp), _part(part, left), _part(part, right), period)
            for part in (np.real, np.imag)
        ]
        return parts[0] + 1j * parts[1]
    x, xp, fp = (a if a.dtype == _FLOAT64 else a.astype(_FLOAT64) for a in (x, xp, fp))
    if period is not None:
        if period == 0:
            raise NumgradValueError("interp: the period must not be zero")
        period = abs(period)
        left = right = None
        x, xp = np.mod(x, period), np.mod(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        last, first = slice(-1, None), slice(0, 1)
        xp = concat(getitem(xp, last) - period, xp, getitem(xp, first) + period, axis=0)
        fp = concat(getitem(fp, last), fp, getitem(fp, first), axis=0)
    y = piecewise_linear(x, xp, fp)
    if left is not None:
        y = np.where(x < getitem(xp, 0), left, y)
    return y if right is None else np.where(x > getitem(xp, -1), right, y)


def _part(part: Any, value: Any) -> Any:
    return None if value is None else part(value)


interp.calls = [
    (((4,), (3,)), lambda x, f: interp(x, np.array([-1.0, 0.3, 1.1]), f)),
    (((3,), (3,), (3,)), lambda x, p, f: interp(x, p * 0.2 + np.arange(3.0), f, left=5.0)),
]
interp.kink(x=([1.0], [1.0]), xp=([0.0, 1.0, 2.0], None), fp=([0.0, 2.0, 3.0], None))
