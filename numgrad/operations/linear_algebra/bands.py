"""Hermitian matrices given by their diagonals: eigenvalues and systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.choice import where
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.checks import constant, mirrored
from numgrad.operations.linear_algebra.eigenvalues import eigh, eigvalsh
from numgrad.operations.linear_algebra.structured import adjoint_bands, solve_banded
from numgrad.operations.shape import as_operand, expand_dims


def _bands(operation: str, a_band: Any) -> Any:
    a_band = as_operand(a_band)
    if len(a_band.shape) < 2 or not a_band.shape[-2]:
        raise NumgradLinAlgError(
            f"{operation}: diagonals of shape {tuple(a_band.shape)} must be rows of a matrix"
        )
    return a_band


def _whole(a_band: Any, lower: bool) -> Any:
    """The matrices that have these diagonals."""
    count, n = (k.__index__() for k in a_band.shape[-2:])
    rows = np.subtract.outer(np.arange(n), np.arange(n)) + (0 if lower else count - 1)
    inside = (rows >= 0) & (rows < count)
    columns = np.broadcast_to(np.arange(n), (n, n)).copy()
    read = a_band[..., constant(np.clip(rows, 0, count - 1)), constant(columns)]
    return mirrored(where(constant(inside), read, 0), lower)


@composite(
    ref="scipy.linalg.eig_banded",
    method=False,
    smooth=True,
    errors=[(((3,),), {}, "NumgradLinAlgError")],
)
def eig_banded(a_band, lower=False, eigvals_only=False):
    """Eigenvalues and eigenvectors of Hermitian matrices given by their diagonals.

    They are those of the whole matrix by ``eigh``, which LAPACK's for diagonals may differ from by
    the signs of vectors.

    Parameters
    ----------
    a_band
        The diagonals in rows: if ``lower`` the main one first, ``a_band[i - j, j]`` is ``a[i, j]``;
        else it is the last, and ``a_band[u + i - j, j]`` is ``a[i, j]``.
    lower : bool
        Whether they are those of the lower triangle.
    eigvals_only : bool
        Whether to return the eigenvalues alone.

    Returns
    -------
    EighResult
        ``eigenvalues``, real and ascending, and ``eigenvectors``, in columns.

    Examples
    --------
    >>> ng.linalg.eig_banded(ng.tensor([[0.0, 1.0], [2.0, 2.0]]), eigvals_only=True)
    tensor([1., 3.])
    """
    whole = _whole(_bands("eig_banded", a_band), bool(lower))
    return eigvalsh(whole) if eigvals_only else eigh(whole)


@composite(
    ref="scipy.linalg.eigvals_banded",
    method=False,
    smooth=True,
    errors=[(((3,),), {}, "NumgradLinAlgError")],
)
def eigvals_banded(a_band, lower=False):
    """Eigenvalues of Hermitian matrices given by their diagonals, as ``eig_banded`` takes them.

    Parameters
    ----------
    a_band
        The diagonals in rows.
    lower : bool
        Whether they are those of the lower triangle.

    Returns
    -------
    Tensor
        Real and ascending.

    Examples
    --------
    >>> ng.linalg.eigvals_banded(ng.tensor([[2.0, 2.0], [1.0, 0.0]]), lower=True)
    tensor([1., 3.])
    """
    return eig_banded(_bands("eigvals_banded", a_band), lower, eigvals_only=True)


@composite(
    ref="scipy.linalg.eigh_tridiagonal",
    method=False,
    smooth=True,
    errors=[(((3,), (3,)), {}, "NumgradValueError")],
)
def eigh_tridiagonal(d, e, eigvals_only=False):
    """Eigenvalues and eigenvectors of symmetric matrices with three diagonals.

    They are those of the whole matrix by ``eigh``; signs of vectors may differ from SciPy's.

    Parameters
    ----------
    d, e
        The main diagonal, and the one beside it, shorter by one; real.
    eigvals_only : bool
        Whether to return the eigenvalues alone.

    Returns
    -------
    EighResult
        ``eigenvalues``, ascending, and ``eigenvectors``, in columns.

    Examples
    --------
    >>> ng.linalg.eigh_tridiagonal(ng.tensor([2.0, 2.0]), [1.0], eigvals_only=True)
    tensor([1., 3.])
    """
    d, e = as_operand(d), as_operand(e)
    if not (len(d.shape) and len(e.shape)) or e.shape[-1] != d.shape[-1] - 1:
        raise NumgradValueError(
            f"eigh_tridiagonal: diagonals of shapes {tuple(d.shape)} and {tuple(e.shape)}: the "
            "second must be shorter by one"
        )
    beside = concat(e, 0 * d[..., :1], axis=-1)
    bands = concat(expand_dims(d, -2), expand_dims(beside, -2), axis=-2)
    return eig_banded(bands, lower=True, eigvals_only=eigvals_only)


@composite(ref="scipy.linalg.eigvalsh_tridiagonal", method=False, smooth=True)
def eigvalsh_tridiagonal(d, e):
    """Eigenvalues of symmetric matrices with three diagonals.

    Parameters
    ----------
    d, e
        The main diagonal, and the one beside it, shorter by one; real.

    Returns
    -------
    Tensor
        Ascending.

    Examples
    --------
    >>> ng.linalg.eigvalsh_tridiagonal(ng.tensor([2.0, 2.0]), [1.0])
    tensor([1., 3.])
    """
    return eigh_tridiagonal(d, e, eigvals_only=True)


@composite(
    ref="scipy.linalg.solveh_banded",
    method=False,
    smooth=True,
    errors=[(((3,), (3,)), {}, "NumgradLinAlgError")],
)
def solveh_banded(ab, b, lower=False):
    """The ``x`` of ``a @ x = b`` for Hermitian matrices given by their diagonals.

    They need not be positive definite, as SciPy asks for.

    Parameters
    ----------
    ab
        The diagonals in rows, as ``eig_banded`` takes them.
    b
        A vector, a matrix of several, or a stack of such.
    lower : bool
        Whether they are those of the lower triangle.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Raises
    ------
    NumgradLinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> ng.linalg.solveh_banded(ng.tensor([[0.0, 1.0], [2.0, 2.0]]), ng.tensor([3.0, 3.0]))
    tensor([1., 1.])
    """
    ab = _bands("solveh_banded", ab)
    beside = ab.shape[-2].__index__() - 1
    if lower:
        other = adjoint_bands(ab, beside, 0)
        whole = concat(other[..., :-1, :], ab, axis=-2)
    else:
        other = adjoint_bands(ab, 0, beside)
        whole = concat(ab, other[..., 1:, :], axis=-2)
    return solve_banded((beside, beside), whole, b)


def _apart(a_band: Any, row: int) -> Any:
    """What keeps eigenvalues apart and from zero."""
    base = np.zeros(a_band.shape)
    base[..., row, :] = 9.0 * np.arange(1, base.shape[-1] + 1)
    return a_band + base


eig_banded.calls = [
    (((2, 4),), lambda a: eig_banded(_apart(a, 1), eigvals_only=True)),
    (((3, 4),), lambda a: np.abs(eig_banded(_apart(a, 0), lower=True)[1])),
]
eigvals_banded.calls = [(((2, 2, 3),), lambda a: eigvals_banded(_apart(a, 1)))]
eigh_tridiagonal.calls = [
    (((4,), (3,)), lambda d, e: eigh_tridiagonal(d + 9 * np.arange(4), e)[0]),
]
eigvalsh_tridiagonal.calls = [
    (((3,), (2,)), lambda d, e: eigvalsh_tridiagonal(d + 9 * np.arange(3), e)),
]
solveh_banded.calls = [
    (((2, 4), (4,)), lambda ab, b: solveh_banded(_apart(ab, 1), b)),
    (((3, 4), (4, 2)), lambda ab, b: solveh_banded(_apart(ab, 0), b, lower=True)),
]
