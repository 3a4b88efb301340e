"""Matrices made of few numbers: constant along diagonals, companions, products of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.checks import check_matrices, constant
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, reshape


def _lengths(x: Any) -> int:
    return x.shape[-1].__index__()


@composite(ref="scipy.linalg.toeplitz", method=False, smooth=True)
def toeplitz(c, r=None):
    """Matrices whose diagonals are constant.

    Parameters
    ----------
    c
        First columns, along the last axis.
    r
        First rows, whose first element is not read; by default the conjugates of the columns.

    Returns
    -------
    Tensor
        With an axis more than ``c``.

    Examples
    --------
    >>> ng.linalg.toeplitz(ng.tensor([1.0, 2.0]), [1.0, 5.0, 6.0])
    tensor([[1., 5., 6.],
            [2., 1., 5.]])
    """
    c = as_operand(c)
    r = np.conj(c) if r is None else as_operand(r)
    rows, columns = _lengths(c), _lengths(r)
    places = columns - 1 + np.arange(rows)[:, None] - np.arange(columns)
    return concat(r[..., :0:-1], c, axis=-1)[..., constant(places)]


@composite(ref="scipy.linalg.hankel", method=False, smooth=True)
def hankel(c, r=None):
    """Matrices whose antidiagonals are constant.

    Parameters
    ----------
    c
        First columns, along the last axis.
    r
        Last rows, whose first element is not read; by default zeros.

    Returns
    -------
    Tensor
        With an axis more than ``c``.

    Examples
    --------
    >>> ng.linalg.hankel(ng.tensor([1.0, 2.0]), [0.0, 5.0, 6.0])
    tensor([[1., 2., 5.],
            [2., 5., 6.]])
    """
    c = as_operand(c)
    r = np.zeros_like(c) if r is None else as_operand(r)
    places = np.arange(_lengths(c))[:, None] + np.arange(_lengths(r))
    return concat(c, r[..., 1:], axis=-1)[..., constant(places)]


@composite(ref="scipy.linalg.circulant", method=False, smooth=True)
def circulant(c):
    """Square matrices of which each column is the one before, turned by one place.

    Parameters
    ----------
    c
        First columns, along the last axis.

    Returns
    -------
    Tensor
        With an axis more than ``c``.

    Examples
    --------
    >>> ng.linalg.circulant(ng.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 3., 2.],
            [2., 1., 3.],
            [3., 2., 1.]])
    """
    c = as_operand(c)
    n = _lengths(c)
    return c[..., constant((np.arange(n)[:, None] - np.arange(n)) % max(n, 1))]


@composite(
    ref="scipy.linalg.companion",
    method=False,
    smooth=True,
    errors=[(((1,),), {}, "NumgradValueError")],
)
def companion(a):
    """Matrices whose eigenvalues are the roots of polynomials.

    Parameters
    ----------
    a
        Coefficients along the last axis, of the highest power first.

    Returns
    -------
    Tensor
        Square, of one row less than there are coefficients.

    Examples
    --------
    >>> ng.linalg.companion(ng.tensor([2.0, 4.0, 6.0]))
    tensor([[-2., -3.],
            [ 1.,  0.]])
    """
    a = as_operand(a)
    n = _lengths(a) - 1
    if n < 1:
        raise NumgradValueError(
            f"companion: a of shape {tuple(a.shape)} must have two coefficients or more"
        )
    first = -a[..., 1:] / a[..., :1]
    rest = np.broadcast_to(
        constant(np.eye(n - 1, n, dtype=first.dtype)), (*first.shape[:-1], n - 1, n)
    )
    return concat(first[..., None, :], rest, axis=-2)


@composite(ref="scipy.linalg.khatri_rao", method=False, smooth=True)
def khatri_rao(a, b):
    """Kronecker products of columns, one for each column.

    Returns
    -------
    Tensor
        With as many rows as both have multiplied.

    Raises
    ------
    NumgradValueError
        If the numbers of columns differ.

    Examples
    --------
    >>> ng.linalg.khatri_rao(ng.tensor([[1.0, 2.0]]), [[3.0, 4.0], [5.0, 6.0]])
    tensor([[ 3.,  8.],
            [ 5., 12.]])
    """
    a, b = as_operand(a), as_operand(b)
    for x in (a, b):
        check_matrices("khatri_rao", x)
    if a.shape[-1] != b.shape[-1]:
        raise NumgradValueError(
            f"khatri_rao: a of shape {tuple(a.shape)} and b of shape {tuple(b.shape)} must have as "
            "many columns"
        )
    found = a[..., :, None, :] * b[..., None, :, :]
    return reshape(found, (*found.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1]))


@composite(ref="scipy.linalg.matmul_toeplitz", method=False, smooth=True)
def matmul_toeplitz(c_or_cr, x):
    """Product of a matrix whose diagonals are constant, and a vector or matrix.

    Parameters
    ----------
    c_or_cr : array or pair of arrays
        The first column; or that and the first row.
    x
        What it is multiplied with.

    Returns
    -------
    Tensor
        Of the shape of ``x``, with the rows of the matrix.

    Examples
    --------
    >>> ng.linalg.matmul_toeplitz(ng.tensor([2.0, 1.0]), ng.tensor([1.0, 2.0]))
    tensor([4., 5.])
    """
    pair = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return matmul(toeplitz(*pair), as_operand(x))


toeplitz.calls = [(((3,),), lambda c: toeplitz(c)), (((2, 3), (2, 4)), lambda c, r: toeplitz(c, r))]
hankel.calls = [(((3,),), lambda c: hankel(c)), (((3,), (4,)), lambda c, r: hankel(c, r))]
circulant.calls = [(((3,),), lambda c: circulant(c)), (((2, 3),), lambda c: circulant(c))]
companion.calls = [(((3,),), lambda a: companion(a + 5)), (((2, 4),), lambda a: companion(a + 5))]
khatri_rao.calls = [(((2, 3), (4, 3)), lambda a, b: khatri_rao(a, b))]
matmul_toeplitz.calls = [
    (((3,), (3, 2)), lambda c, x: matmul_toeplitz(c, x)),
    (((3,), (2,), (2,)), lambda c, r, x: matmul_toeplitz((c, r), x)),
]
