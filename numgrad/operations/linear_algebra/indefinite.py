"""Factors of symmetric and Hermitian matrices that need not be positive definite.

Note [Derivatives of block factors]
-----------------------------------
Of ``a = l @ d @ l*`` with blocks of one or two rows in ``d``, ``m = inv(l) da inv(l)*`` is the sum
of ``x d``, the change of ``d`` and ``d x*``, where ``x = inv(l) dl`` has elements below the blocks
alone: so ``dd`` is what ``m`` has in the blocks, and ``x d`` what it has below them. The order of
rows and the blocks stay as they are for small changes.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradLinAlgError
from numgrad.operations.batch_rules import of_matrices
from numgrad.operations.choice import where
from numgrad.operations.linear_algebra.checks import (
    adjoint,
    check_right_side,
    check_square,
    computing_dtype,
    constant,
    identity,
    mirrored,
    product,
    stacked,
    which,
)
from numgrad.operations.linear_algebra.factors import inverse_permutation, rows_of
from numgrad.operations.linear_algebra.systems import solve
from numgrad.operations.linear_algebra.triangular import solve_triangle
from numgrad.operations.shape import as_operand, expand_dims, squeeze


@primitive(internal=True, method=False, outputs=True, smooth=True)
def block_factors(a, *, lower, hermitian):
    """Triangular factor with its rows in the order of ``a``, blocks, the order that sorts rows."""
    meta, *_ = _block_shape(a)
    batch = a.shape[:-2]
    if not a.size:
        return np.zeros(a.shape, meta.dtype), np.zeros(a.shape, meta.dtype), _orders(a)
    work = stacked(a, meta.dtype)
    bad = np.asarray(~np.isfinite(work).all((-2, -1)))
    if bad.any():
        raise NumgradLinAlgError(f"ldl: {which(bad, batch)} contains infinities or NaNs")
    of = importlib.import_module("scipy.linalg").ldl
    found = [of(x, lower=lower, hermitian=hermitian) for x in work]
    factor, blocks = (
        np.asarray([x[k] for x in found], meta.dtype).reshape(a.shape) for k in (0, 1)
    )
    return factor, blocks, np.asarray([x[2] for x in found], np.int64).reshape(a.shape[:-1])


def _orders(a: Any) -> np.ndarray:
    return np.zeros(a.shape[:-1], np.int64) + np.arange(a.shape[-1])


@block_factors.shape
def _block_shape(a, **_):
    check_square("ldl", a)
    meta = Meta(a.shape, computing_dtype("ldl", a))
    return meta, meta, Meta(a.shape[:-1], np.dtype(np.int64))


def _permuted_rows(x: Any, order: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(order[..., None], x.shape), axis=-2)


def _columns(x: Any, order: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(order[..., None, :], x.shape), axis=-1)


def _block_factors_vjp(g, y, lower, hermitian):
    of_factor, of_blocks, *_ = g
    factor, blocks, order = y
    own = (blocks != 0) | (identity(blocks.shape[-1], blocks.dtype) != 0)
    total = 0 * blocks if of_blocks is None else where(own, of_blocks, 0)
    if of_factor is not None:
        side = np.tri(blocks.shape[-1].__index__(), dtype=bool)
        beside = constant(side if lower else side.T.copy()) & ~own
        inner = where(beside, product(adjoint(factor), of_factor), 0)
        total = total + where(beside, adjoint(solve(blocks, adjoint(inner))), 0)
    triangle = _permuted_rows(factor, order)
    left = solve_triangle(triangle, total, lower=lower, of_adjoint=True)
    other = triangle if hermitian else np.conj(triangle)
    found = adjoint(solve_triangle(other, adjoint(left), lower=lower, of_adjoint=True))
    back = inverse_permutation(order)
    found = _columns(_permuted_rows(found, back), back)
    return 0.5 * (found + (adjoint(found) if hermitian else np.conj(adjoint(found))))


block_factors.vjp(a=_block_factors_vjp)
block_factors.batch(of_matrices)


@composite(
    ref="scipy.linalg.ldl",
    method=False,
    smooth=True,
    errors=[(((2, 3),), {}, "NumgradLinAlgError")],
)
def ldl(a, lower=True, hermitian=True):
    """Factors of symmetric or Hermitian matrices: ``a = L @ D @ L*``, rows of ``L`` exchanged.

    The gradient is in the triangle that is read.

    Parameters
    ----------
    lower : bool
        Whether the lower triangle is read, and ``L[perm]`` is lower triangular.
    hermitian : bool
        Whether a complex matrix is Hermitian; else it is symmetric, ``a = L @ D @ L.T``.

    Returns
    -------
    tuple of Tensors
        ``L``; ``D``, whose blocks have one or two rows; and ``perm``.

    Examples
    --------
    >>> l, d, perm = ng.linalg.ldl(ng.tensor([[2.0, 1.0], [1.0, 3.0]]))
    >>> l
    tensor([[1. , 0. ],
            [0.5, 1. ]])
    >>> d
    tensor([[2. , 0. ],
            [0. , 2.5]])
    """
    a = as_operand(a)
    check_square("ldl", a)
    return block_factors(mirrored(a, lower, hermitian), lower=lower, hermitian=hermitian)


@composite(ref=None, method=False, smooth=True)
def ldl_solve(ldl_factors, b, lower=True, hermitian=True):
    """The ``x`` of ``a @ x = b`` by what ``ldl(a)`` returned.

    Parameters
    ----------
    ldl_factors : tuple
        ``L``, ``D`` and ``perm``.
    lower, hermitian : bool
        As ``ldl`` was given them.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Raises
    ------
    NumgradLinAlgError
        If the matrix is singular.

    Examples
    --------
    >>> factors = ng.linalg.ldl(ng.tensor([[0.0, 1.0], [1.0, 3.0]]))
    >>> ng.linalg.ldl_solve(factors, ng.tensor([1.0, 5.0]))
    tensor([2., 1.])
    """
    factor, blocks, order = (as_operand(x) for x in ldl_factors)
    b = as_operand(b)
    check_square("ldl_solve", factor)
    check_right_side("ldl_solve", factor, b)
    vector = len(b.shape) == 1
    triangle = _permuted_rows(factor, order)
    x = rows_of(expand_dims(b, -1) if vector else b, order)
    x = solve(blocks, solve_triangle(triangle, x, lower=lower, unit=True))
    other = triangle if hermitian else np.conj(triangle)
    x = solve_triangle(other, x, lower=lower, of_adjoint=True, unit=True)
    x = rows_of(x, inverse_permutation(order))
    return squeeze(x, -1) if vector else x


_MIXED = np.array([[0.1, 4.0, 1.0], [4.0, 0.2, 2.0], [1.0, 2.0, -6.0]])
block_factors.calls = [
    (((3, 3),), lambda a: block_factors(
        0.1 * (a + adjoint(a)) + _MIXED, lower=True, hermitian=True)[0]),
]  # fmt: skip
ldl.calls = [
    (((3, 3),), lambda a: ldl(0.1 * a + _MIXED)[0]),
    (((3, 3),), lambda a: ldl(0.1 * a + _MIXED, lower=False)[1]),
    (((2, 3, 3),), lambda a: ldl(0.1 * a + _MIXED + 9 * np.eye(3), hermitian=False)[0]),
]
ldl_solve.calls = [
    (((3, 3), (3,)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED), b)),
    (((3, 3), (3, 2)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED, False), b, lower=False)),
    (((2, 3, 3), (3,)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED), b)),
]
