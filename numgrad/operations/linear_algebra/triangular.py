"""Triangular systems, and Cholesky's factors."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Meta, broadcasting_rule, composite, prepared
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.kernels.matrices import systems
from numgrad.operations.diagonal import tril, triu
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.shape import as_operand, expand_dims, squeeze
from numgrad.operations.shared_rules import of_matrices


@prepared(internal=True, method=False, smooth=True)
def solve_triangle(a, b, *, lower=False, of_adjoint=False, unit=False):
    """Solve with one triangle of ``a``, or its adjoint, for the columns of matrices ``b``."""
    dtype = matrices.computing_dtype("solve_triangular", a, b)
    return _substituting(a.shape, b.shape, dtype, lower, of_adjoint, unit)


def _substituting(
    of_a: tuple[int, ...],
    of_b: tuple[int, ...],
    dtype: np.dtype,
    lower: bool,
    of_adjoint: bool,
    unit: bool,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The kernel that solves with a triangle, of arrays of these shapes, whose stacks broadcast."""
    lead_a, n, columns = of_a[:-2], *of_b[-2:]
    batch = np.broadcast_shapes(lead_a, of_b[:-2])
    whole_a, whole_b = (*batch, n, n), (*batch, n, columns)
    together = prod(lead_a) == 1 != prod(batch)
    lead, count = ((1,), prod(batch) * columns) if together else (batch, columns)
    solve = systems.triangles(lead, n, count, dtype, lower, of_adjoint, unit)
    array, packed = np.array, np.ascontiguousarray
    if lead_a == batch == of_b[:-2]:

        def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            x = array(b, dtype, order="C")
            solve(packed(a, dtype), x)
            return x

    elif together:  # one matrix: all as columns of one right side

        def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            b = np.moveaxis(np.broadcast_to(b, whole_b), -2, 0)
            x = array(b, dtype, order="C")
            solve(packed(a, dtype).reshape(1, n, n), x.reshape(1, n, count))
            return packed(np.moveaxis(x, 0, -2))

    else:

        def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            x = array(np.broadcast_to(b, whole_b), dtype, order="C")
            solve(packed(np.broadcast_to(a, whole_a), dtype), x)
            return x

    return compute


@solve_triangle.shape
def _solve_triangle_shape(a, b, *, lower, of_adjoint, unit):
    dtype = matrices.computing_dtype("solve_triangular", a, b)
    return Meta(matrices.check_right_side("solve_triangular", a, b), dtype)


solve_triangle.batch(broadcasting_rule)


def _solve_triangle_vjp_a(g, a, y, lower, of_adjoint, unit):
    z = solve_triangle(a, g, lower=lower, of_adjoint=not of_adjoint, unit=unit)
    whole = (
        matrices.product(y, matrices.adjoint(z))
        if of_adjoint
        else matrices.product(z, matrices.adjoint(y))
    )
    return -(tril(whole, -int(unit)) if lower else triu(whole, int(unit)))


solve_triangle.vjp(
    a=_solve_triangle_vjp_a,
    b=lambda g, a, lower, of_adjoint, unit: solve_triangle(
        a, g, lower=lower, of_adjoint=not of_adjoint, unit=unit
    ),
)


@solve_triangle.vjp_kernel
def _solve_triangle_backward(call, mask):
    a, b = call.metas
    (shape, dtype), *_ = call.outs
    lower, of_adjoint, unit = (call.params[k] for k in ("lower", "of_adjoint", "unit"))
    solve = _substituting(a.shape, shape, dtype, lower, not of_adjoint, unit)
    triangle = partial(np.tril, k=-int(unit)) if lower else partial(np.triu, k=int(unit))

    def backward(g: np.ndarray, a_: np.ndarray, y: Any = None) -> tuple[list[Any], int]:
        z = solve(a_, g)
        ga = None
        if mask & 1:
            whole = (
                matrices.product(y, matrices.adjoint(z))
                if of_adjoint
                else matrices.product(z, matrices.adjoint(y))
            )
            ga = matrices.fitted(-triangle(whole), a)
        return [ga, matrices.fitted(z, b) if mask & 2 else None], mask

    return backward


@composite(ref="scipy.linalg.solve_triangular", method=False, smooth=True)
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    """The ``x`` of ``a @ x = b`` for triangular matrices; ``b`` with one axis is a vector.

    Parameters
    ----------
    trans
        0 or ``"N"`` solves with ``a``, 1 or ``"T"`` with its transpose, 2 or ``"C"`` with its
        conjugate transpose.
    lower
        Whether the lower triangle of ``a`` counts, else the upper one. The other is not read.
    unit_diagonal
        Whether the diagonal counts as ones and is not read.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Raises
    ------
    NumgradLinAlgError
        If there is a zero on a diagonal, or a matrix is not square.

    Examples
    --------
    >>> a = ng.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> ng.linalg.solve_triangular(a, ng.tensor([2.0, 5.0]), lower=True)
    tensor([1., 1.])
    """
    a, b = as_operand(a), as_operand(b)
    matrices.check_square("solve_triangular", a)
    matrices.check_right_side("solve_triangular", a, b)
    codes = {0: "N", 1: "T", 2: "C"}
    code = codes.get(trans, trans) if isinstance(trans, int) else trans
    if code not in ("N", "T", "C"):
        raise NumgradValueError(
            f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}"
        )
    if not unit_diagonal:
        check_diagonal(a)
    vector = len(b.shape) == 1
    if vector:
        b = expand_dims(b, -1)
    turned = code == "T" and (a.dtype.kind == "c" or b.dtype.kind == "c")
    x = solve_triangle(
        a, np.conj(b) if turned else b, lower=bool(lower), of_adjoint=code != "N",
        unit=bool(unit_diagonal),
    )  # fmt: skip
    x = np.conj(x) if turned else x
    return squeeze(x, -1) if vector else x


@prepared(internal=True, method=False, differentiable=False, may_raise=True)
def check_diagonal(a):
    """Raise if there is a zero on the diagonal of a triangular matrix."""
    batch = a.shape[:-2]

    def check(a: np.ndarray) -> np.ndarray:
        diagonals = np.diagonal(a, axis1=-2, axis2=-1)
        if not diagonals.all():
            bad = np.any(diagonals == 0, axis=-1)
            raise NumgradLinAlgError(f"solve_triangular: {matrices.which(bad, batch)} is singular")
        return np.zeros((), bool)

    return check


check_diagonal.shape(lambda a: Meta((), np.dtype(bool)))


@prepared(ref=np.linalg.cholesky, method=False, smooth=True)
def cholesky(a, *, upper=False):
    """Triangular factors of Hermitian positive definite matrices: ``a = L @ L^H``.

    Only one triangle is read. The gradient is Hermitian, as if both were.

    Parameters
    ----------
    upper
        Whether to return ``U`` of ``a = U^H @ U`` and to read the upper triangle.

    Returns
    -------
    Tensor
        Of the shape of ``a``, with zeros in the other triangle.

    Raises
    ------
    NumgradLinAlgError
        If a matrix is not positive definite or not square.

    Examples
    --------
    >>> ng.linalg.cholesky(ng.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    matrices.check_square("cholesky", a)
    batch = a.shape[:-2]
    find = systems.cholesky_of(batch, a.shape[-1], matrices.computing_dtype("cholesky", a))

    def compute(a: np.ndarray) -> np.ndarray:
        factors, info = find(matrices.adjoint(a) if upper else a)
        if info:
            raise NumgradLinAlgError(
                f"cholesky: {matrices.which(info, batch)} is not positive definite"
            )
        return np.ascontiguousarray(matrices.adjoint(factors)) if upper else factors

    return compute


@cholesky.shape
def _cholesky_shape(a, *, upper):
    matrices.check_square("cholesky", a)
    return Meta(a.shape, matrices.computing_dtype("cholesky", a))


def _half_triangle(n: Any, dtype: np.dtype) -> Any:
    """A factor that takes the lower triangle with half of the diagonal."""
    n = n.__index__()
    dtype = real_dtype(dtype)
    return matrices.constant(np.tri(n, dtype=dtype) - 0.5 * np.eye(n, dtype=dtype))


def _cholesky_vjp(g, y, upper):
    if upper:
        g, y = matrices.adjoint(g), matrices.adjoint(y)
    inner = (matrices.product(matrices.adjoint(y), g)) * _half_triangle(y.shape[-1], y.dtype)
    half = solve_triangle(y, inner, lower=True, of_adjoint=True)
    return matrices.hermitian(
        matrices.adjoint(solve_triangle(y, matrices.adjoint(half), lower=True, of_adjoint=True))
    )


cholesky.vjp(a=_cholesky_vjp)


@cholesky.vjp_kernel
def _cholesky_backward(call, mask):
    (a,), upper = call.metas, call.params["upper"]
    batch, dtype, n = a.shape[:-2], a.dtype, a.shape[-1]
    run = systems.cholesky_backward(batch, n, dtype)

    def backward(g: np.ndarray, y: np.ndarray) -> tuple[list[np.ndarray], int]:
        if upper:
            g, y = matrices.adjoint(g), np.ascontiguousarray(matrices.adjoint(y))
        out = np.array(g, dtype, order="C")  # of which the lower triangle is read
        run(y, out)  # pyright: ignore
        return [out], 1

    def by_lapack(g: np.ndarray, y: np.ndarray) -> tuple[list[np.ndarray], int]:
        if upper:
            g, y = matrices.adjoint(g), matrices.adjoint(y)
        half = np.tri(n, dtype=real_dtype(dtype)) - 0.5 * np.eye(n, dtype=real_dtype(dtype))
        inner, factors = (
            matrices.stacked(matrices.product(matrices.adjoint(y), g) * half, dtype),
            matrices.stacked(y, dtype),
        )
        systems.solve_triangles(factors, inner, lower=True, trans="C")
        inner = np.ascontiguousarray(matrices.adjoint(inner))
        systems.solve_triangles(factors, inner, lower=True, trans="C")
        return [matrices.hermitian(inner).reshape(a.shape)], 1

    return by_lapack if run is None else backward


cholesky.batch(of_matrices)


@composite(ref="scipy.linalg.cho_factor", method=False, smooth=True)
def cho_factor(a, lower=False):
    """Cholesky's factor for ``cho_solve``, and whether it is the lower one.

    Parameters
    ----------
    lower
        Whether to read the lower triangle and return the lower factor, else the upper ones.

    Returns
    -------
    tuple
        The factor, with zeros in the other triangle, and ``lower``.

    Examples
    --------
    >>> factor = ng.linalg.cho_factor(ng.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> ng.linalg.cho_solve(factor, ng.tensor([8.0, 8.0]))
    tensor([1.5, 1. ])
    """
    return cholesky(as_operand(a), upper=not lower), bool(lower)


@composite(ref="scipy.linalg.cho_solve", method=False, smooth=True)
def cho_solve(c_and_lower, b):
    """The ``x`` of ``a @ x = b`` by what ``cho_factor(a)`` returned.

    Parameters
    ----------
    c_and_lower : pair
        The factor, and whether it is the lower one.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Examples
    --------
    >>> ng.linalg.cho_solve((ng.tensor([[2.0]]), True), ng.tensor([8.0]))
    tensor([2.])
    """
    factor, lower = c_and_lower
    factor, b = as_operand(factor), as_operand(b)
    matrices.check_square("cho_solve", factor)
    matrices.check_right_side("cho_solve", factor, b)
    vector = len(b.shape) == 1
    x = expand_dims(b, -1) if vector else b
    for of_adjoint in (not lower, bool(lower)):
        x = solve_triangle(factor, x, lower=bool(lower), of_adjoint=of_adjoint)
    return squeeze(x, -1) if vector else x
