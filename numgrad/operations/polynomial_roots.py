"""Roots of polynomials by their coefficients.

Note [Roots]
------------
Roots are eigenvalues of the companion matrix, as in NumPy. Their derivatives come from the
polynomial, which stays zero at a root: ``p'(r) dr + sum(r**(n - k) dp[k]) = 0``. That takes a
product of matrices, and no eigenvectors, which are ill-conditioned where roots lie close. A
repeated root has no derivative: infinity or NaN comes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import ones
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.batch_rules import with_parameters
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import as_operand


@primitive(internal=True, method=False, smooth=True)
def polynomial_roots(p):
    """Roots of polynomials along the last axis, whose first coefficients are not zero."""
    out = _roots_shape(p)
    with np.errstate(all="ignore"):
        return _eigenvalues(np.asarray(p / p[..., :1], _solved(p.dtype))).astype(out.dtype)


def _eigenvalues(p: np.ndarray) -> np.ndarray:
    """Of companion matrices; NaN where one is not finite, zero for zeros at the end."""
    n = p.shape[-1] - 1
    rows = p.reshape(-1, n + 1)
    roots = np.full((len(rows), n), complex(np.nan, np.nan))
    known = np.isfinite(rows).all(axis=1)
    zeros = np.argmax(rows[:, ::-1] != 0, axis=1)  # at the end of each
    for count in np.unique(zeros[known]):
        chosen = known & (zeros == count)
        m = n - count
        companions = np.zeros((chosen.sum(), m, m), p.dtype)
        companions[:, np.arange(1, m), np.arange(m - 1)] = 1
        companions[:, :1, :] = -rows[chosen, None, 1 : m + 1]
        roots[chosen, :m] = np.linalg.eigvals(companions)
        roots[chosen, m:] = 0
    return roots.reshape(*p.shape[:-1], n)


def _solved(dtype: np.dtype) -> np.dtype:
    """The dtype in which eigenvalues are found."""
    return np.result_type(dtype, np.float32) if dtype.kind in "fc" else np.dtype(np.float64)


@polynomial_roots.shape
def _roots_shape(p):
    check_dtype("roots", p.dtype)
    return Meta((*p.shape[:-1], p.shape[-1] - 1), np.result_type(_solved(p.dtype), np.complex64))


def _vjp(g, p, y):
    n = p.shape[-1] - 1
    columns = [y * 0 + 1]
    for _ in range(n):
        columns.append(columns[-1] * y)
    powers = stack(columns[::-1], axis=-1)
    slopes = (powers[..., 1:] @ (p[..., :-1] * np.arange(n, 0, -1))[..., None])[..., 0]
    return -(np.conj(np.swapaxes(powers, -1, -2)) @ (g / np.conj(slopes))[..., None])[..., 0]


polynomial_roots.vjp(p=_vjp)
polynomial_roots.calls = [
    (((4,),), lambda p: polynomial_roots(p + np.array([9.0, 0.0, 1.0, -40.0]))),
    (((2, 3),), lambda p: polynomial_roots(p + np.array([9.0, 1.0, -40.0]))),
]


@polynomial_roots.batch
@with_parameters
def _batched(p: Any, size: int) -> Any:
    return {} if p.ndim else NotImplemented


@composite(ref=np.roots, method=False, smooth=True)
def roots(p):
    """Roots of a polynomial, of which simple ones have a gradient.

    Always complex, unlike NumPy's, which are real where all imaginary parts are zero. Zeros that
    lead are left out; in a compiled or batched function, which has no numbers yet, the first
    coefficient must not be zero.

    Parameters
    ----------
    p : array_like
        Coefficients, that of the highest power first.

    Returns
    -------
    Tensor
        In no order, shorter by one than the coefficients.

    Raises
    ------
    NumgradValueError
        If there is more than one axis.
    NumgradLinAlgError
        If a coefficient is NaN or infinite, and known.

    Examples
    --------
    >>> p = ng.tensor([1.0, -3.0, 2.0], requires_grad=True)
    >>> r = ng.roots(p)
    >>> r.detach()
    tensor([2.+0.j, 1.+0.j], dtype=complex128)
    >>> r[0].real.backward()
    >>> p.grad
    tensor([-4., -2., -1.])
    """
    p = as_operand(p)
    if len(p.shape) > 1:
        raise NumgradValueError(f"roots: coefficients have one axis, got shape {tuple(p.shape)}")
    if not len(p.shape):
        p = p.reshape((1,))
    known = state.ground.numbers(p)
    if known is not None:
        (places,) = np.nonzero(known)
        if not np.isfinite(known).all():
            raise NumgradLinAlgError("roots: coefficients must be finite, got NaN or infinity")
        p = getitem(p, slice(places[0] if len(places) else len(known), None))
    if p.shape[0] < 2:  # none
        return getitem(polynomial_roots(concat(p, ones((2,), p.dtype), axis=0)), slice(0, 0))
    return polynomial_roots(p)


roots.calls = [(((3,),), lambda p: roots(p + np.array([9.0, 1.0, -40.0])))]
