"""Determinants, and their logarithms."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Meta, broadcasting_rule, composite, prepared, primitive
from numgrad.errors import NumgradLinAlgError
from numgrad.kernels.matrices import systems
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.solve import factored_solve, factors_shape, inv, substituted
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import of_matrices


def _factoring(
    operation: str, a: Any
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, Any]]:
    """The kernel of factors, pivots, diagonals, and the signs that exchanges of columns bring."""
    matrices.check_square(operation, a)
    dtype, shape, n = matrices.computing_dtype(operation, a), a.shape, a.shape[-1]
    batch = shape[:-2]

    def factor(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
        factors = matrices.stacked(a, dtype)
        pivots, _ = systems.factored(factors)
        odd = np.count_nonzero(pivots != np.arange(1, n + 1), axis=-1) % 2
        diagonals = np.diagonal(factors, axis1=-2, axis2=-1)
        sign = (1 - 2 * odd).astype(dtype)
        return (
            factors.reshape(shape), pivots.reshape(shape[:-1]), diagonals.reshape(*batch, n),
            sign.reshape(batch),
        )  # fmt: skip

    return factor


@prepared(ref=np.linalg.det, method=False, smooth=True)
def det(a):
    """Determinants of square matrices; the gradient is right for singular ones too.

    Returns
    -------
    Tensor
        Without the last two axes.

    Examples
    --------
    >>> ng.linalg.det(ng.tensor([[1.0, 2.0], [3.0, 4.0]])).round(6)
    tensor(-2.)
    """
    factor = _factoring("det", a)

    def compute(a: np.ndarray) -> np.ndarray:
        *_, diagonals, sign = factor(a)
        return np.asarray(sign * np.prod(diagonals, axis=-1))

    return compute


@det.shape
def _det_shape(a):
    matrices.check_square("det", a)
    return Meta(a.shape[:-2], matrices.computing_dtype("det", a))


det.vjp(a=lambda g, a: _per_matrix(g) * matrices.adjoint(adjugate(a)))
det.batch(of_matrices)


def _per_matrix(x: Any) -> Any:
    return x[..., None, None]


def _trace(x: Any) -> Any:
    return np.sum(np.diagonal(x, axis1=-2, axis2=-1), axis=-1)


# Note [Adjugates]
# ----------------
# The adjugate of ``a = u @ diag(s) @ vh`` is ``det(u) det(vh) v @ diag(p) @ uh`` with the products
# ``p`` of all ``s`` but one, and its derivative is made of those of all but two: no division, so
# both are right at any rank. For matrices far from singular ``det(a) inv(a)`` is the same.


def _singular_basis(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    u, s, vh = np.linalg.svd(a)
    return u, s, vh, _per_matrix(np.linalg.det(u) * np.linalg.det(vh))


def _products_without(s: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """Products of the last axis of ``s`` over what the last axis of a mask leaves."""
    lead = s.reshape(*s.shape[:-1], *(1,) * (left_out.ndim - 1), s.shape[-1])
    return np.prod(np.where(left_out, 1, lead), axis=-1)


def _nearly_singular(diagonals: np.ndarray) -> np.ndarray:
    sizes = np.abs(diagonals)
    return sizes.min(-1) <= np.sqrt(np.finfo(sizes.dtype).eps) * sizes.max(-1)


@primitive(internal=True, method=False, differentiable=False, may_raise=True)
def check_regular(a):
    """Raise if a matrix is so nearly singular that its inverse is of no use."""
    if a.size:
        near = _nearly_singular(_factoring("det", a)(a)[2])
        if near.any():
            raise NumgradLinAlgError(
                "det: third derivatives are not known where "
                f"{matrices.which(near, a.shape[:-2])} is nearly singular"
            )
    return np.zeros((), bool)


check_regular.shape(lambda a: Meta((), np.dtype(bool)))


@primitive(internal=True, method=False, smooth=True)
def adjugate(a):
    """Transposed cofactors of square matrices: Note [Adjugates]."""
    n = a.shape[-1]
    factors, pivots, diagonals, sign = _factoring("det", a)(a)
    dtype = factors.dtype
    if not a.size:
        return np.zeros(a.shape, dtype)
    if not _nearly_singular(diagonals).any():
        x = np.broadcast_to(np.eye(n, dtype=dtype), a.shape).copy().reshape(-1, n, n)
        systems.substitute(factors.reshape(-1, n, n), pivots.reshape(-1, n), x, False)
        return _per_matrix(sign * np.prod(diagonals, axis=-1)) * x.reshape(a.shape)
    u, s, vh, unit = _singular_basis(np.asarray(a, dtype))
    products = _products_without(s, np.eye(n, dtype=bool))
    v = matrices.adjoint(vh)
    return ((v * products[..., None, :]) @ matrices.adjoint(u) * unit).astype(dtype, copy=False)


@primitive(internal=True, method=False, smooth=True)
def adjugate_derivative(a, t):
    """Derivative of the adjugate of ``a`` in the direction ``t``: Note [Adjugates]."""
    dtype = matrices.computing_dtype("det", a, t)
    n = a.shape[-1]
    if not a.size:
        return np.zeros(np.broadcast_shapes(a.shape, t.shape), dtype)
    u, s, vh, unit = _singular_basis(np.asarray(a, matrices.computing_dtype("det", a)))
    identity = np.eye(n, dtype=bool)
    products = _products_without(s, identity[:, None, :] | identity)
    t = matrices.adjoint(u) @ t @ matrices.adjoint(vh)
    on = np.diagonal(t, axis1=-2, axis2=-1)
    of_others = np.where(identity, 0, products) @ on[..., None]
    turned = np.where(identity, of_others, -products * t)
    return (matrices.adjoint(vh) @ turned @ matrices.adjoint(u) * unit).astype(dtype, copy=False)


def _third_derivative(g, a, t):
    """The third derivative at regular matrices: it is made of inverses."""
    check_regular(a)
    x, h = inv(a), matrices.adjoint(g)
    xt, xh = matmul(x, t), matmul(x, h)
    of_t, of_h = _per_matrix(_trace(xt)), _per_matrix(_trace(xh))
    both = _per_matrix(_trace(matmul(xt, xh)))
    m = (of_t * of_h - both) * x - of_h * (matmul(xt, x)) - of_t * (matmul(xh, x))
    m = m + matmul(matmul(xt, xh), x) + matmul(matmul(xh, xt), x)
    return matrices.adjoint(_per_matrix(det(a)) * m)


for _op in (adjugate, adjugate_derivative):
    _op.batch(of_matrices)
adjugate.shape(lambda a: Meta(a.shape, matrices.computing_dtype("det", a)))
adjugate.vjp(a=lambda g, a: adjugate_derivative(matrices.adjoint(a), g))
adjugate.jvp(lambda t_a, a: adjugate_derivative(a, t_a))


@adjugate_derivative.shape
def _adjugate_derivative_shape(a, t):
    shape = np.broadcast_shapes(a.shape, t.shape) if len(a.shape) != len(t.shape) else a.shape
    return Meta(shape, matrices.computing_dtype("det", a, t))


adjugate_derivative.batch(broadcasting_rule)


adjugate_derivative.vjp(
    t=lambda g, a: adjugate_derivative(matrices.adjoint(a), g), a=_third_derivative
)


# ----------------------------------------------------------------------------------- logarithms


@prepared(
    internal=True,
    method=False,
    outputs=True,
    auxiliaries=("factors", "pivots"),
    materializes=False,
    smooth=True,
)
def sign_and_logarithm(a):
    """Signs of determinants, and logarithms of their magnitudes."""
    factor, dtype = _factoring("slogdet", a), matrices.computing_dtype("slogdet", a)

    def compute(a: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        factors, pivots, diagonals, sign = factor(a)
        sizes = np.abs(diagonals)
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithm = np.sum(np.log(sizes), axis=-1)
            sign = sign * np.prod(np.where(sizes == 0, 0, diagonals / sizes), axis=-1)
        return (np.asarray(sign, dtype), np.asarray(logarithm)), (factors, pivots)

    return compute


@sign_and_logarithm.shape
def _sign_and_logarithm_shape(a):
    matrices.check_square("slogdet", a)
    dtype = matrices.computing_dtype("slogdet", a)
    outs = Meta(a.shape[:-2], dtype), Meta(a.shape[:-2], real_dtype(dtype))
    return outs, factors_shape(a, dtype)


def _slogdet_vjp(g, a, factors, pivots, y):
    """Gradient by ``z = trace(inv(a) @ da)``: Re z in the logarithm, i Im z times the sign."""
    of_sign, scale = g
    if factors.dtype.kind == "c" and of_sign is not None:
        turn = np.multiply(-1j, np.imag(np.conj(of_sign) * y[0]))
        scale = turn if scale is None else scale + turn
    if scale is None:
        return None
    right = _per_matrix(scale) * matrices.identity(a.shape[-1], factors.dtype)
    return factored_solve(a, factors, pivots, right, of_adjoint=True)


sign_and_logarithm.vjp(a=_slogdet_vjp)


@sign_and_logarithm.vjp_kernel
def _slogdet_backward(call, mask):
    (a,) = call.metas
    n, dtype = a.shape[-1], a.dtype
    turns = dtype.kind == "c"

    def backward(
        g: Any, a: np.ndarray, factors: np.ndarray, pivots: np.ndarray, y: Any
    ) -> tuple[list[Any], int]:
        of_sign, scale = g
        if turns and of_sign is not None:
            turn = np.multiply(-1j, np.imag(np.conj(of_sign) * y[0]))
            scale = turn if scale is None else scale + turn
        if scale is None:
            return [None], 0
        return [substituted(factors, pivots, _per_matrix(scale) * matrices.eye(n, dtype), True)], 1

    return backward


sign_and_logarithm.batch(of_matrices)


class SlogdetResult(NamedTuple):
    """Result of ``slogdet``."""

    sign: Any
    logabsdet: Any


@composite(ref=np.linalg.slogdet, method=False, smooth=True)
def slogdet(a):
    """Signs of determinants, and logarithms of their magnitudes.

    Of a singular matrix the sign is 0 and the logarithm ``-inf``, with a gradient of NaN or
    infinity.

    Returns
    -------
    SlogdetResult
        ``sign``, of the dtype of ``a``, and ``logabsdet``, real; without the last two axes.

    Examples
    --------
    >>> sign, logabsdet = ng.linalg.slogdet(ng.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.69314718))
    """
    return SlogdetResult(*sign_and_logarithm(as_operand(a)))
