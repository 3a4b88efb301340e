"""Singular values and vectors, and what is made of them: pseudoinverses, bases of subspaces.

What Note [Repeated eigenvalues] in ``eigenvalues`` says holds for singular values too; vectors that
belong to the value 0 have no derivative either.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Meta, Primitive, composite, prepared, primitive
from numgrad.errors import (
    NumgradError,
    NumgradLinAlgError,
    NumgradNotImplementedError,
    NumgradValueError,
)
from numgrad.kernels.matrices import spectral
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.eigenvalues import differences
from numgrad.operations.linear_algebra.solve import inverse_or_zero
from numgrad.operations.matmul import matmul
from numgrad.operations.norm import norm
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.shared_rules import OUTSIDE, no_shape, of_matrices


class SVDResult(NamedTuple):
    """Result of ``svd``."""

    U: Any
    S: Any
    Vh: Any


@prepared(internal=True, method=False, outputs=True, materializes=False, smooth=True)
def singular(a, *, full=False):
    """Left singular vectors, singular values, descending, and right singular vectors in rows."""
    return finding("svd", a, full)


def finding(
    operation: str, a: Any, full: bool = False
) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """The kernel of singular values and vectors of arrays of that shape and dtype."""
    matrices.check_matrices(operation, a)
    dtype, batch = matrices.computing_dtype(operation, a), a.shape[:-2]
    find, convert = spectral.singular_of(a.shape, dtype, full), dtype != a.dtype

    def compute(a: np.ndarray) -> tuple[np.ndarray, ...]:
        u, s, vh, info = find(a.astype(dtype) if convert else a)
        if info:
            matrices.check_converged(operation, info, batch)
        return u, s, vh

    return compute


@singular.shape
def _singular_shape(a, *, full):
    matrices.check_matrices("svd", a)
    *batch, m, n = a.shape
    dtype = matrices.computing_dtype("svd", a)
    k = min(m, n)
    return (
        Meta((*batch, m, m if full else k), dtype),
        Meta((*batch, k), real_dtype(dtype)),
        Meta((*batch, n if full else k, n), dtype),
    )


def _skew(x: Any) -> Any:
    return x - matrices.adjoint(x)


def _singular_vjp(g, y):
    of_u, of_s, of_vh = g
    u, s, vh = y
    k = s.shape[-1]
    if of_u is None and of_vh is None:
        return matrices.product(u[..., :k] * of_s[..., None, :], vh[..., :k, :])
    v, of_v = matrices.adjoint(vh), None if of_vh is None else matrices.adjoint(of_vh)
    u, of_u = _of_rest(u, of_u, k)
    v, of_v = _of_rest(v, of_v, k)
    row, column = s[..., None, :], s[..., :, None]
    # differences of squares, without the squares, which would overflow
    separate = differences(s) * (row + column + matrices.identity(k, s.dtype))
    inner: Any = 0 * row
    outer: Any = 0
    diagonal = 0 * s if of_s is None else of_s
    if of_u is not None:
        inside = matrices.product(matrices.adjoint(u), of_u)
        inner = inner + (_skew(inside) / separate) * row
        if u.dtype.kind == "c":  # phases of vectors are one choice for both sides
            diagonal = diagonal + 1j * np.imag(np.diagonal(inside, axis1=-2, axis2=-1)) / s
        if u.shape[-2] > k:
            outer = outer + matrices.product(
                (of_u - matrices.product(u, inside)) / row, matrices.adjoint(v)
            )
    if of_v is not None:
        inside = matrices.product(matrices.adjoint(v), of_v)
        inner = inner + column * (_skew(inside) / separate)
        if v.shape[-2] > k:
            outer = outer + matrices.product(
                u / row, matrices.adjoint(of_v - matrices.product(v, inside))
            )
    return (
        matrices.product(
            matrices.product(u, matrices.on_diagonal(diagonal, inner)), matrices.adjoint(v)
        )
        + outer
    )


def _of_rest(x: Any, g: Any, k: Any) -> tuple[Any, Any]:
    """The first ``k`` vectors and their gradient, to which that of the others is added.

    The others span what the first do not; their own choice does not count, so they move only as the
    first make them: ``d rest = -first @ (d first)^H @ rest``.
    """
    if x.shape[-1] == k:
        return x, g
    first = x[..., :k]
    if g is None:
        return first, None
    rest = x[..., k:]
    return first, g[..., :k] - matrices.product(
        rest, matrices.product(matrices.adjoint(g[..., k:]), first)
    )


singular.vjp(a=_singular_vjp)


@singular.vjp_kernel
def _singular_backward(call, mask):
    a = call.metas[0]
    if call.params["full"] and a.shape[-2] != a.shape[-1]:
        return None
    gradient = spectral.singular_gradient(a.shape, a.dtype)
    return lambda g, y: ([gradient(y, g)], 1)


singular.batch(of_matrices)


@primitive(internal=True, method=False, differentiable=False)
def singular_values_alone(a):
    """Singular values without vectors, descending."""
    matrices.check_matrices("svdvals", a)
    s, info = spectral.singular_values_alone(
        matrices.as_stack(a, matrices.computing_dtype("svdvals", a))
    )
    batch = a.shape[:-2]
    matrices.check_converged("svdvals", info, batch)
    return s.reshape(*batch, s.shape[-1])


@singular_values_alone.shape
def _values_shape(a):
    matrices.check_matrices("svdvals", a)
    return Meta(
        (*a.shape[:-2], min(a.shape[-2:])), real_dtype(matrices.computing_dtype("svdvals", a))
    )


singular_values_alone.batch(of_matrices)


def _values(a: Any) -> Any:
    """Singular values; vectors are computed only for a gradient."""
    return singular_values_alone(a) if matrices.is_constant(a) else singular(a)[1]


@composite(ref=np.linalg.svd, method=False, smooth=True)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Singular values and vectors: ``a = U @ diag(S) @ Vh``.

    The gradient of vectors is NaN or infinite where singular values are equal (or zero, of what is
    not square), and means something only for results that do not depend on the vectors' signs or
    phases.

    Parameters
    ----------
    full_matrices : bool
        Whether ``U`` and ``Vh`` are square, else they have as many vectors as there are values.
    compute_uv : bool
        Whether vectors are returned.
    hermitian : bool
        Whether the matrices are Hermitian, so that they must be square; nothing else follows.

    Returns
    -------
    SVDResult
        ``U``, ``S``, descending, and ``Vh``; ``S`` alone unless ``compute_uv``.

    Examples
    --------
    >>> u, s, vh = ng.linalg.svd(ng.tensor([[0.0, 3.0], [2.0, 0.0]]))
    >>> s
    tensor([3., 2.])
    """
    a = as_operand(a)
    if hermitian:
        matrices.check_square("svd", a)
    if not compute_uv:
        return _values(a)
    return SVDResult(*singular(a, full=bool(full_matrices)))


@composite(ref="numpy.linalg.svdvals", method=False, smooth=True)
def svdvals(x):
    """Singular values of matrices, descending.

    Where some are equal or zero, the gradient is that of a choice of singular vectors.

    Returns
    -------
    Tensor
        Real, in place of the last two axes.

    Examples
    --------
    >>> ng.linalg.svdvals(ng.tensor([[0.0, 3.0], [2.0, 0.0]]))
    tensor([3., 2.])
    """
    x = as_operand(x)
    matrices.check_matrices("svdvals", x, "x")
    return _values(x)


@primitive(internal=True, method=False, smooth=True)
def pseudo_inverse(a, *, rcond=1e-15, scaled=False):
    """Inverses of what singular values above ``rcond`` times the largest make.

    ``scaled`` takes the larger length times ``rcond``: a length may be a symbol outside of here.
    """
    if scaled:
        rcond = rcond * max(a.shape[-2:])
    u, s, vh = finding("pinv", a)(a)
    if not a.size:
        return np.zeros(_swapped(a.shape), u.dtype)
    large = s > np.asarray(rcond)[..., None] * s.max(-1, keepdims=True)
    inverse = np.divide(1, s, out=np.zeros_like(s), where=large)
    return np.matmul(matrices.adjoint(vh) * inverse[..., None, :], matrices.adjoint(u))


def _swapped(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


@pseudo_inverse.shape
def _pseudo_inverse_shape(a, *, rcond, scaled):
    matrices.check_matrices("pinv", a)
    return Meta(_swapped(a.shape), matrices.computing_dtype("pinv", a))


def _pseudo_inverse_vjp(g, a, y):
    """Where the rank stays (G. Golub, V. Pereyra, 1973)."""
    m, n = a.shape[-2:]
    across, of_y = matrices.adjoint(g), matrices.adjoint(y)
    left = matrices.product(
        matrices.product(
            matrices.product(matrices.identity(m, y.dtype) - matrices.product(a, y), across), y
        ),
        of_y,
    )
    right = matrices.product(
        matrices.product(matrices.product(of_y, y), across),
        matrices.identity(n, y.dtype) - matrices.product(y, a),
    )
    return left + right - matrices.product(matrices.product(of_y, g), of_y)


pseudo_inverse.vjp(a=_pseudo_inverse_vjp)
pseudo_inverse.batch(of_matrices)


@composite(ref=np.linalg.pinv, method=False, smooth=True)
def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    """Pseudo-inverses (of Moore and Penrose); the gradient is that at a rank that stays.

    Parameters
    ----------
    rcond : float
        Singular values up to this times the largest count as zero; 1e-15 by default. Gradients
        take them to be so: a cut above rounding errors is not differentiated.
    hermitian : bool
        Whether the matrices are Hermitian, so that they must be square; nothing else follows.
    rtol : float
        Another name of ``rcond``.

    Returns
    -------
    Tensor
        With the last two lengths exchanged.

    Examples
    --------
    >>> ng.linalg.pinv(ng.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    a = as_operand(a)
    if hermitian:
        matrices.check_square("pinv", a)
    if rcond is not None and rtol is not None:
        raise NumgradValueError("pinv: rcond and rtol are one thing; give one of them")
    cut = rtol if rcond is None else rcond
    return pseudo_inverse(a, rcond=1e-15 if cut is None else cut)


@composite(ref=np.linalg.matrix_rank, method=False, differentiable=False)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """Number of singular values above a limit.

    Parameters
    ----------
    A
        Matrix or stack of matrices; of what has fewer axes, whether anything is not zero.
    tol : float
        The limit; by default ``rtol`` times the largest singular value.
    hermitian : bool
        Whether the matrices are Hermitian, so that they must be square; nothing else follows.
    rtol : float
        By default the larger length times the precision of the dtype.

    Returns
    -------
    Tensor
        Integers, without the last two axes.

    Examples
    --------
    >>> ng.linalg.matrix_rank(ng.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    a = as_operand(A)
    if len(a.shape) < 2:
        return np.any(a != 0).astype(np.int64)
    if hermitian:
        matrices.check_square("matrix_rank", a)
    s = singular_values_alone(a)
    if tol is None:
        return np.sum(s > _limit(a, s, rtol), axis=-1)
    return np.sum(s > _for_each(tol), axis=-1)


def _limit(a: Any, s: Any, rtol: Any) -> Any:
    """Up to what singular values count as zero."""
    if rtol is None:
        rtol = max(a.shape[-2:]) * np.finfo(s.dtype).eps
    largest = np.max(s, axis=-1, keepdims=True) if s.shape[-1] else s
    return _for_each(rtol) * largest


def _for_each(limit: Any) -> Any:
    """A limit for all matrices, or one for each."""
    return limit[..., None] if getattr(limit, "ndim", 0) else limit


@composite(ref=np.linalg.cond, method=False, smooth=True)
def cond(x, p=None):
    """Condition numbers of matrices: a norm times that of the inverse.

    Parameters
    ----------
    x
        Matrix or stack of matrices.
    p
        Order of the norm as in ``norm``; by default 2, the ratio of the largest singular value to
        the smallest, of matrices of any shape.

    Returns
    -------
    Tensor
        Real; without the last two axes; infinite for singular matrices.

    Examples
    --------
    >>> ng.linalg.cond(ng.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    x = as_operand(x)
    matrices.check_matrices("cond", x)
    if 0 in x.shape[-2:]:
        raise NumgradLinAlgError(f"cond: of shape {tuple(x.shape)}, which has no elements")
    if p is None or p in (2, -2):
        s = _values(x)
        ends = s[..., 0], s[..., -1]
        ratio = ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
        return np.where(ends[0] == 0, np.inf, ratio)
    matrices.check_square("cond", x)
    size = norm(x, p, axis=(-2, -1))
    of_inverse = norm(inverse_or_zero(x), p, axis=(-2, -1))
    singular = of_inverse == 0
    return np.where(singular, size + 1, size) * np.where(singular, np.inf, of_inverse)


class LstsqResult(NamedTuple):
    """Result of ``lstsq``."""

    x: Any
    residuals: Any
    rank: Any
    singular_values: Any


@composite(ref=np.linalg.lstsq, method=False, smooth=True)
def lstsq(a, b, rcond=None):
    """The shortest of the ``x`` for which ``a @ x`` comes nearest to ``b``.

    The gradient is that at a rank that stays.

    Parameters
    ----------
    rcond : float
        Singular values up to this times the largest count as zero; by default the larger length
        times the precision of the dtype, which -1 leaves without that length. Gradients take them
        to be so: a cut above rounding errors is not differentiated.

    Returns
    -------
    LstsqResult
        The solution, of the shape of ``b`` with as many rows as ``a`` has columns; the sums of
        squares of what is left over, empty unless ``a`` has more rows than columns and full rank
        (in a compiled function the rank is taken to be full); the rank; the singular values.

    Examples
    --------
    >>> a = ng.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = ng.linalg.lstsq(a, ng.tensor([1.0, 3.0, 5.0]))
    >>> x.round(6)
    tensor([1., 2.])
    """
    a, b = as_operand(a), as_operand(b)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2) or a.shape[0] != b.shape[0]:
        raise NumgradLinAlgError(
            f"lstsq: shapes {tuple(a.shape)} and {tuple(b.shape)}: a must be a matrix, b a vector "
            "or a matrix with as many rows"
        )
    m, n = a.shape
    dtype = real_dtype(matrices.computing_dtype("lstsq", a, b))
    eps = float(np.finfo(dtype).eps)
    if rcond is None:
        inverse, rcond = pseudo_inverse(a, rcond=eps, scaled=True), eps * max(m, n)
    else:
        rcond = eps if np.isscalar(rcond) and rcond == -1 else rcond
        inverse = pseudo_inverse(a, rcond=rcond)
    x = matmul(inverse, b)
    s = _values(a)
    rank = np.sum(s > _limit(a, s, rcond), axis=-1).astype(np.int32)
    if m > n and _is_full(rank, n):
        residuals = np.sum(np.abs(b - matmul(a, x)) ** 2, axis=0, keepdims=len(b.shape) == 1)
    else:
        residuals = reshape(np.real(x[:0]), (0,))
    return LstsqResult(x, residuals, rank, s)


def _is_full(rank: Any, n: Any) -> bool:
    try:
        return int(rank) == n
    except NumgradError:  # a compiled function has no numbers yet
        return True


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
        op = Basis(function, ref=f"scipy.linalg.{name}", method=False)
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
    return np.ascontiguousarray(matrices.adjoint(vh[rank:]))


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


@prepared(internal=True, method=False, differentiable=False, may_raise=True)
def check_semidefinite(w, limits):
    """Raise if an eigenvalue is negative, by more than limits."""
    batch = w.shape[:-1]

    def check(w: np.ndarray, limits: np.ndarray) -> np.ndarray:
        bad = np.any(w < -limits, axis=-1)
        if bad.any():
            raise NumgradLinAlgError(
                f"multivariate_normal: {matrices.which(bad, batch)} is not positive semidefinite"
            )
        return np.zeros((), bool)

    return check


check_semidefinite.shape(lambda w, limits: Meta((), np.dtype(bool)))


@composite(ref="scipy.linalg.pinvh", method=False, smooth=True)
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
    matrices.check_square("pinvh", a)
    whole = matrices.mirrored(a, lower)
    if rtol is None:
        precise = np.finfo(a.dtype if a.dtype.kind in "fc" else np.float64).eps
        return pseudo_inverse(whole, rcond=float(precise), scaled=True)
    return pseudo_inverse(whole, rcond=rtol)
