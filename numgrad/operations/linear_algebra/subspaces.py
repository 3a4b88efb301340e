"""Bases of what a matrix reaches, of what it sends to zero; inverses of Hermitian ones there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from numgrad.core.declare import Primitive, composite, prepared
from numgrad.core.formula import Meta
from numgrad.errors import NumgradLinAlgError, NumgradNotImplementedError
from numgrad.operations.data_dependent import OUTSIDE, no_shape
from numgrad.operations.linear_algebra.checks import adjoint, check_square, mirrored, which
from numgrad.operations.linear_algebra.singular_values import finding, pseudo_inverse
from numgrad.operations.shape import as_operand


def _without_derivative(name: str, projector: str) -> Any:
    def refuse(g, a):
        raise NumgradNotImplementedError(
            f"{name}: a basis has no derivative, as any other of the subspace would do too; the "
            f"projector onto it has one: {projector}; or detach() the operand"
        )

    return refuse


def _parts(name: str, a: np.ndarray, rcond: float | None) -> tuple[np.ndarray, int, np.ndarray]:
    """Singular vectors, and how many singular values are not zero."""
    if a.ndim != 2:
        raise NumgradLinAlgError(f"{name}: a of shape {a.shape} must be a matrix; call it for each")
    if not a.size:
        return np.eye(a.shape[0]), 0, np.eye(a.shape[1])
    u, s, vh = finding(name, a, True)(a)
    cut = max(a.shape) * np.finfo(s.dtype).eps if rcond is None else rcond
    return u, int(np.count_nonzero(s > cut * s.max())), vh


class Basis(Primitive):
    """An operation that gives a basis of a subspace, whose choice has no derivative."""

    result = "With a column for each vector of the basis."
    parameters: ClassVar = {
        "rcond": (
            "float",
            "Singular values up to this times the largest count as zero; by default the larger "
            "length times the precision of the dtype.",
        )
    }


def _basis(projector: str) -> Callable[[Callable[..., Any]], Basis]:
    """Declare a basis of the subspace onto which a projector, in words, leads."""

    def declare(function: Callable[..., Any]) -> Basis:
        name = function.__name__
        errors = [(((3,),), {}, "NumgradLinAlgError")]
        op = Basis(function, ref=f"scipy.linalg.{name}", method=False, errors=errors)
        op.shape(no_shape(name, OUTSIDE))
        op.refuse(a=_without_derivative(name, projector))
        return op

    return declare


@_basis("np.eye(n) - pinv(a) @ a")
def null_space(a, *, rcond=None):
    """An orthonormal basis of what a matrix sends to zero; the gradient raises.

    Raises
    ------
    NumgradLinAlgError
        If ``a`` is no matrix.

    Examples
    --------
    >>> np.abs(ng.linalg.null_space(ng.tensor([[1.0, 0.0], [2.0, 0.0]])))
    tensor([[0.],
            [1.]])
    """
    _, rank, vh = _parts("null_space", a, rcond)
    return np.ascontiguousarray(adjoint(vh[rank:]))


@_basis("a @ pinv(a)")
def orth(a, *, rcond=None):
    """An orthonormal basis of the columns of a matrix; the gradient raises.

    Raises
    ------
    NumgradLinAlgError
        If ``a`` is no matrix.

    Examples
    --------
    >>> np.abs(ng.linalg.orth(ng.tensor([[0.0, 0.0], [2.0, 3.0]])))
    tensor([[0.],
            [1.]])
    """
    u, rank, _ = _parts("orth", a, rcond)
    return np.ascontiguousarray(u[:, :rank])


@prepared(internal=True, method=False, differentiable=False, effects=True)
def check_semidefinite(w, limits):
    """Raise if an eigenvalue is negative, by more than limits."""
    batch = w.shape[:-1]

    def check(w: np.ndarray, limits: np.ndarray) -> np.ndarray:
        bad = np.any(w < -limits, axis=-1)
        if bad.any():
            raise NumgradLinAlgError(
                f"multivariate_normal: {which(bad, batch)} is not positive semidefinite"
            )
        return np.zeros((), bool)

    return check


check_semidefinite.shape(lambda w, limits: Meta((), np.dtype(bool)))
check_semidefinite.calls = [
    (((3,), (1,)), lambda w, limits: check_semidefinite(np.abs(w), np.abs(limits))),
]


@composite(
    ref="scipy.linalg.pinvh",
    method=False,
    smooth=True,
    errors=[(((2, 3),), {}, "NumgradLinAlgError")],
)
def pinvh(a, *, rtol=None, lower=True):
    """Pseudo-inverses of Hermitian matrices, of which one triangle is read.

    The gradient is that at a rank that stays, and is in the triangle that is read.

    Parameters
    ----------
    rtol : float
        Eigenvalues up to this times the largest, by size, count as zero; by default the length
        times the precision of the dtype.
    lower : bool
        Whether the lower triangle is read.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Examples
    --------
    >>> ng.linalg.pinvh(ng.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    a = as_operand(a)
    check_square("pinvh", a)
    whole = mirrored(a, lower)
    if rtol is None:
        precise = np.finfo(a.dtype if a.dtype.kind in "fc" else np.float64).eps
        return pseudo_inverse(whole, rcond=float(precise), scaled=True)
    return pseudo_inverse(whole, rcond=rtol)


pinvh.calls = [
    (((2, 2),), lambda a: pinvh(a + 5 * np.eye(2))),
    (((2, 2, 2),), lambda a: pinvh(a + 5 * np.eye(2), lower=False)),
]
