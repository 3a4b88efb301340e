"""Signs of square matrices, and factors of matrices that turn and that stretch.

Note [Derivatives of signs and unitary factors]
-----------------------------------------------
The sign ``s`` of ``a`` changes by the solution of a Sylvester equation in ``n = s @ a``, of which
all eigenvalues have positive real parts: ``n ds + ds n = da - s da s`` (C. S. Kenney, A. J. Laub,
1991). The unitary factor ``u`` of ``a = u @ p`` turns by ``w = u* du`` with
``p w + w p = u* da - da* u``; what of ``da`` is outside of the columns of ``u`` adds itself times
the inverse of ``p``. That is right where singular values are equal, at which derivatives of
singular vectors are not defined.
"""

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Meta, composite, primitive
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.matrix_functions import solve_sylvester
from numgrad.operations.linear_algebra.singular_values import finding
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import of_matrices

_STEPS = 100


def _norms(a: np.ndarray) -> np.ndarray:
    """Bounds of 2-norms, by the largest sums of rows and of columns."""
    sizes = np.abs(a)
    result = np.sqrt(sizes.sum(-1).max(-1)) * np.sqrt(sizes.sum(-2).max(-1))
    return result[:, None, None]


def _newton(s: np.ndarray) -> np.ndarray:
    """Signs of a stack by Newton's method, scaled while far from them (N. J. Higham, 2008)."""
    far, precise = np.ones((len(s), 1, 1), bool), np.finfo(s.dtype).eps
    for _ in range(_STEPS):
        try:
            inverse = np.linalg.inv(s)
        except np.linalg.LinAlgError:
            break
        scale = np.where(far, np.sqrt(_norms(inverse) / _norms(s)), 1).astype(real_dtype(s.dtype))
        after = 0.5 * (scale * s + inverse / scale)
        change = _norms(after - s) / _norms(after)
        s, far = after, far & (change > 0.01)
        if (change <= np.sqrt(precise)).all():  # a further step would change nothing
            break
    return s


@primitive(ref="scipy.linalg.signm", method=False, smooth=True)
def signm(a):
    """Signs of square matrices: eigenvalues become those of their real parts, 1 or -1.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If an eigenvalue has no real part.

    Examples
    --------
    >>> ng.linalg.signm(ng.tensor([[2.0, 1.0], [0.0, -3.0]])).round(6)
    tensor([[ 1. ,  0.4],
            [ 0. , -1. ]])
    """
    matrices.check_square("signm", a)
    s = matrices.stacked(a, matrices.computing_dtype("signm", a))
    if not s.size:
        return s.reshape(a.shape)
    unit, precise = np.eye(s.shape[-1], dtype=s.dtype), np.finfo(s.dtype).eps
    bad = np.asarray(~np.isfinite(s).all((-2, -1)))
    if bad.any():
        raise NumgradLinAlgError(
            f"signm: {matrices.which(bad, a.shape[:-2])} contains infinities or NaNs"
        )
    with np.errstate(all="ignore"):  # what has no sign becomes NaN
        s = _newton(s)
        wrong = np.abs(np.matmul(s, s) - unit).max((-2, -1))
    # of the square is left rounding, times a condition that may be large
    bad = np.logical_not(wrong <= np.sqrt(precise) * np.maximum(1, _norms(s)[:, 0, 0] ** 2))
    if bad.any():
        raise NumgradLinAlgError(
            f"signm: {matrices.which(bad, a.shape[:-2])} has no sign, as an eigenvalue has no real "
            "part"
        )
    return s.reshape(a.shape)


@signm.shape
def _signm_shape(a):
    matrices.check_square("signm", a)
    return Meta(a.shape, matrices.computing_dtype("signm", a))


def _signm_gradient(g, a, y):
    n, back = matrices.adjoint(matmul(y, a)), matrices.adjoint(y)
    w = solve_sylvester(n, n, g)
    return w - matmul(matmul(back, w), back)


signm.vjp(a=_signm_gradient)
signm.batch(of_matrices)


@primitive(internal=True, method=False, smooth=True)
def unitary_factor(a):
    """The unitary factor of matrices with no more columns than rows."""
    left, _, right = finding("polar", a)(a)
    return np.matmul(left, right)


@unitary_factor.shape
def _unitary_shape(a):
    matrices.check_matrices("polar", a)
    return Meta(a.shape, matrices.computing_dtype("polar", a))


def _unitary_gradient(g, a, y):
    back = matrices.adjoint(y)
    p, inner = matrices.hermitian(matmul(back, a)), matmul(back, g)
    w = solve_sylvester(p, p, inner)
    result = matmul(y, w - matrices.adjoint(w))
    if a.shape[-2] == a.shape[-1]:
        return result
    return result + matrices.adjoint(solve(p, matrices.adjoint(g - matmul(y, inner))))


unitary_factor.vjp(a=_unitary_gradient)
unitary_factor.batch(of_matrices)


@composite(ref="scipy.linalg.polar", method=False, smooth=True)
def polar(a, side="right"):
    """Polar decompositions: a unitary factor ``u``, and a positive semidefinite one ``p``.

    Gradients are those at full rank; else ``u`` is not unique.

    Parameters
    ----------
    side : {'right', 'left'}
        Whether ``a = u @ p`` or ``a = p @ u``.

    Returns
    -------
    tuple of Tensors
        ``u`` of the shape of ``a``, and ``p``, square.

    Examples
    --------
    >>> u, p = ng.linalg.polar(ng.tensor([[0.0, -2.0], [1.0, 0.0]]))
    >>> u
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    >>> p
    tensor([[1., 0.],
            [0., 2.]])
    """
    if side not in ("right", "left"):
        raise NumgradValueError(f"polar: side is 'right' or 'left', got {side!r}")
    a = as_operand(a)
    matrices.check_matrices("polar", a)
    wide = a.shape[-2] < a.shape[-1]
    u = matrices.adjoint(unitary_factor(matrices.adjoint(a))) if wide else unitary_factor(a)
    back = matrices.adjoint(u)
    return u, matrices.hermitian(matmul(back, a) if side == "right" else matmul(a, back))


@composite(ref="scipy.linalg.orthogonal_procrustes", method=False, smooth=True)
def orthogonal_procrustes(a, b):
    """The unitary matrix that takes one matrix closest to another: ``a @ r`` to ``b``.

    Returns
    -------
    tuple of Tensors
        ``r``, and the sum of the singular values of ``a* @ b``, by which ``a @ r`` is scaled.

    Raises
    ------
    NumgradValueError
        If shapes differ.

    Examples
    --------
    >>> r, scale = ng.linalg.orthogonal_procrustes(2 * np.eye(2), ng.tensor([[0.0, 1.0], [3, 0]]))
    >>> float(scale)
    8.0
    """
    a, b = as_operand(a), as_operand(b)
    matrices.check_matrices("orthogonal_procrustes", a)
    if tuple(a.shape) != tuple(b.shape):
        raise NumgradValueError(
            f"orthogonal_procrustes: matrices of shapes {tuple(a.shape)} and {tuple(b.shape)} must "
            "have the same shape"
        )
    r, p = polar(matmul(matrices.adjoint(a), b))
    return r, np.sum(np.real(np.diagonal(p, axis1=-2, axis2=-1)), axis=-1)
