"""Polynomials by their coefficients, the highest power first, as NumPy's ``poly1d`` functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import ones, zeros
from numgrad.core.declare import composite
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.convolve import convolve
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import as_operand, reshape


def _coefficients(name: str, p: Any) -> Any:
    p = as_operand(p)
    if not len(p.shape):
        p = reshape(p, (1,))
    if len(p.shape) != 1:
        raise NumgradValueError(f"{name}: coefficients have one axis, got shape {tuple(p.shape)}")
    return p


@composite(ref=np.polyval, method=False, smooth=True)
def polyval(p, x):
    """Value of a polynomial, with gradients in coefficients and in ``x``.

    Parameters
    ----------
    p : array_like
        Coefficients, that of the highest power first.
    x
        Where the polynomial is wanted.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.polyval([1.0, 0.0, 2.0], ng.tensor([1.0, 3.0]))
    tensor([ 3., 11.])
    """
    p, x = _coefficients("polyval", p), as_operand(x)
    y: Any = x * 0
    for k in range(p.shape[0]):
        y = y * x + getitem(p, k)
    return y


polyval.calls = [(((3,), (2,)), lambda p, x: polyval(p, x))]


def _sum(name: str, a: Any, b: Any, sign: int) -> Any:
    a, b = _coefficients(name, a), _coefficients(name, b)
    short = a.shape[0] - b.shape[0]
    if short > 0:
        b = concat(zeros((short,), b.dtype), b, axis=0)
    elif short < 0:
        a = concat(zeros((-short,), a.dtype), a, axis=0)
    return a + b if sign > 0 else a - b


@composite(ref=np.polyadd, method=False, smooth=True)
def polyadd(a, b):
    """Coefficients of the sum of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as the longer one.

    Examples
    --------
    >>> ng.polyadd([1.0, 2.0], [9.0, 5.0, 4.0])
    tensor([9., 6., 6.])
    """
    return _sum("polyadd", a, b, 1)


@composite(ref=np.polysub, method=False, smooth=True)
def polysub(a, b):
    """Coefficients of the difference of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as the longer one.

    Examples
    --------
    >>> ng.polysub([1.0, 2.0], [9.0, 5.0, 4.0])
    tensor([-9., -4., -2.])
    """
    return _sum("polysub", a, b, -1)


@composite(ref=np.polymul, method=False, smooth=True)
def polymul(a, b):
    """Coefficients of the product of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as both together, less one.

    Examples
    --------
    >>> ng.polymul([1.0, 2.0], [1.0, 3.0])
    tensor([1., 5., 6.])
    """
    return convolve(_coefficients("polymul", a), _coefficients("polymul", b))


def _floating(p: Any) -> Any:
    return p if p.dtype.kind in "fc" else p.astype(np.float64)


@composite(ref=np.polydiv, method=False, smooth=True)
def polydiv(a, b):
    """Coefficients of quotient and remainder of two polynomials, that of the highest power first.

    Returns
    -------
    tuple of Tensors
        Quotient, and remainder without leading zeros.

    Examples
    --------
    >>> ng.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (tensor([1.5 , 1.75]), tensor([0.25]))
    """
    a, b = _floating(_coefficients("polydiv", a) * 1), _floating(_coefficients("polydiv", b) * 1)
    dtype = np.result_type(a.dtype, b.dtype)
    r, b = a.astype(dtype), b.astype(dtype)
    m, n = a.shape[0] - 1, b.shape[0] - 1
    found = []
    for k in range(m - n + 1):
        d = getitem(r, k) / getitem(b, 0)
        found.append(d)
        rest = getitem(r, slice(k, k + n + 1)) - d * b
        parts = [getitem(r, slice(None, k)), rest, getitem(r, slice(k + n + 1, None))]
        r = concat(parts, axis=0)
    q = stack(found) if found else zeros((1,), dtype)
    known = state.ground.numbers(r)
    if known is None:
        return r._array.refuse(
            "polydiv, which takes leading zeros off the remainder",
            "call it outside of the function, or use np.polymul and np.polysub",
        )
    first = 0
    while first < len(known) - 1 and np.allclose(known[first], 0, rtol=1e-14):
        first += 1
    return as_operand(q) * 1, getitem(r, slice(first, None))


def _powers(n: int) -> Any:
    """``n`` down to 1."""
    return state.ground.made(np.arange(n, 0, -1))


def _times(m: Any, name: str, what: str) -> int:
    if int(m) < 0:
        raise NumgradValueError(f"{name}: {what} must not be negative, got {m}")
    return int(m)


@composite(ref=np.polyder, method=False, smooth=True)
def polyder(p, m=1):
    """Coefficients of the ``m``-th derivative of a polynomial, that of the highest power first.

    Parameters
    ----------
    p : array_like
        Coefficients.
    m : int
        How often it is differentiated.

    Returns
    -------
    Tensor
        Shorter by ``m``.

    Examples
    --------
    >>> ng.polyder([1.0, 1.0, 1.0, 1.0])
    tensor([3., 2., 1.])
    """
    p = _coefficients("polyder", p)
    for _ in range(_times(m, "polyder", "the order")):
        n = p.shape[0] - 1
        p = OPS["multiply"](getitem(p, slice(None, -1)), _powers(n))
    return p


@composite(ref=np.polyint, method=False, smooth=True)
def polyint(p, m=1, k=None):
    """Coefficients of an antiderivative of a polynomial, that of the highest power first.

    Parameters
    ----------
    p : array_like
        Coefficients.
    m : int
        How often it is integrated.
    k : array_like
        Constants of integration, by default zero.

    Returns
    -------
    Tensor
        Longer by ``m``.

    Examples
    --------
    >>> ng.polyint([3.0, 2.0, 1.0])
    tensor([1., 1., 1., 0.])
    """
    p, m = _coefficients("polyint", p), _times(m, "polyint", "the order")
    constants = zeros((m,), np.dtype(float)) if k is None else _coefficients("polyint", k)
    if constants.shape[0] == 1 and m > 1:
        constants = concat([constants] * m, axis=0)
    if constants.shape[0] < m:
        raise NumgradValueError(
            f"polyint: {constants.shape[0]} constants for {m} integrations; give one, or one each"
        )
    for j in range(m):
        n = p.shape[0]
        p = concat(OPS["divide"](p, _powers(n)), getitem(constants, slice(j, j + 1)), axis=0)
    return p


@composite(ref=np.poly, method=False, smooth=True)
def poly(x):
    """Coefficients of the polynomial with given roots, that of the highest power first.

    Returns
    -------
    Tensor
        Longer by one than the roots.

    Examples
    --------
    >>> ng.poly([1.0, 2.0])
    tensor([ 1., -3.,  2.])
    """
    x = as_operand(x)
    if not len(x.shape):
        x = reshape(x, (1,))
    if len(x.shape) != 1:
        raise NumgradValueError(
            f"poly: takes roots along one axis, got shape {tuple(x.shape)}; of a matrix, give its "
            "eigenvalues"
        )
    x = _floating(x)
    one = ones((1,), x.dtype)
    p: Any = one
    for k in range(x.shape[0]):
        p = convolve(p, concat(one, -getitem(x, slice(k, k + 1)), axis=0))
    known = state.ground.numbers(x)
    paired = known is not None and np.array_equal(np.sort(known), np.sort(known.conj()))
    if x.dtype.kind == "c" and paired:
        p = p.real
    return as_operand(p)


@composite(ref=np.vander, method=False, smooth=True)
def vander(x, N=None, increasing=False):
    """Matrix of powers of the elements, a column for each power.

    Parameters
    ----------
    N : int
        Number of columns, by default as many as rows.
    increasing : bool
        Whether powers rise from left to right.

    Returns
    -------
    Tensor
        A row for each element.

    Examples
    --------
    >>> ng.vander(ng.tensor([1.0, 2.0, 3.0]), 3)
    tensor([[1., 1., 1.],
            [4., 2., 1.],
            [9., 3., 1.]])
    """
    x = as_operand(x)
    if len(x.shape) != 1:
        raise NumgradValueError(f"vander: takes one axis, got shape {tuple(x.shape)}")
    n = x.shape[0] if N is None else N
    x = x.astype(np.promote_types(x.dtype, int))
    if not n:
        return reshape(x * 0, (x.shape[0], 1))[:, :0]
    columns = [x * 0 + 1]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], axis=1)


polyadd.calls = [(((3,), (2,)), lambda a, b: polyadd(a, b))]
polysub.calls = [(((3,), (2,)), lambda a, b: polysub(a, b))]
polymul.calls = [(((3,), (2,)), lambda a, b: polymul(a, b))]
polydiv.calls = [(((4,), (2,)), lambda a, b: polydiv(a, b + 5)[0])]
polyder.calls = [(((4,),), lambda p: polyder(p, 2))]
polyint.calls = [(((3,), (2,)), lambda p, k: polyint(p, 2, k))]
poly.calls = [(((3,),), lambda x: poly(x))]
vander.calls = [(((3,),), lambda x: vander(x, 4))]
