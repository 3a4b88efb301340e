"""Values between samples."""

from __future__ import annotations

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.searching import searchsorted
from numgrad.operations.shape import as_operand
from numgrad.operations.sorting import argsort
from numgrad.operations.take import take


@composite(ref=np.interp, method=False)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear function through given points, with gradients in ``x`` and in the points.

    At a point, the derivative in ``x`` is that of the interval behind it.

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
    x, xp = x.astype(np.float64), xp.astype(np.float64)
    fp = fp.astype(np.complex128 if fp.dtype.kind == "c" else np.float64)
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
    n = xp.shape[0]
    start = getitem(fp, 0) if left is None else left
    end = getitem(fp, -1) if right is None else right
    place = searchsorted(xp, x, "right")
    before = np.clip(place - 1, 0, n - 1)
    after = np.minimum(before + 1, n - 1)
    x0, x1, f0, f1 = take(xp, before), take(xp, after), take(fp, before), take(fp, after)
    inside = after > before
    width = np.where(inside, x1 - x0, 1)
    y = f0 + (f1 - f0) / width * np.where(inside, x - x0, 0)
    y = np.where(x < getitem(xp, 0), start, np.where(x > getitem(xp, -1), end, y))
    return np.where(np.isnan(x), x, y)


interp.calls = [
    (((4,), (3,)), lambda x, f: interp(x, np.array([-1.0, 0.3, 1.1]), f)),
    (((3,), (3,), (3,)), lambda x, p, f: interp(x, p * 0.2 + np.arange(3.0), f, left=5.0)),
]
interp.kink(x=([1.0], [1.0]), xp=([0.0, 1.0, 2.0], None), fp=([0.0, 2.0, 3.0], None))
