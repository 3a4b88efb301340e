"""Factorizations: orthogonal and triangular, lower and upper, of blocks, of reflections.

Note [Derivatives of block factors]
-----------------------------------
Of ``a = l @ d @ l*`` with blocks of one or two rows in ``d``, ``m = inv(l) da inv(l)*`` is the sum
of ``x d``, the change of ``d`` and ``d x*``, where ``x = inv(l) dl`` has elements below the blocks
alone: so ``dd`` is what ``m`` has in the blocks, and ``x d`` what it has below them. The order of
rows and the blocks stay as they are for small changes.
"""

import importlib
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.abstract import broadcast_lengths
from numgrad.core.declare import OPS, Meta, bind, composite, primitive, with_parameters
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.kernels.matrices import spectral
from numgrad.operations.choice import where
from numgrad.operations.diagonal import tril, triu
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.linear_algebra.triangular import solve_triangle
from numgrad.operations.shape import as_operand, expand_dims, squeeze
from numgrad.operations.shared_rules import of_matrices

of_vectors = with_parameters(lambda x, size, **params: {} if x.ndim else NotImplemented)
"""The rule of an operation on the last axis."""


class QRResult(NamedTuple):
    """Result of ``qr``."""

    Q: Any
    R: Any


@primitive(internal=True, method=False, outputs=True, materializes=False, smooth=True)
def orthogonal_triangular(a, *, complete=False):
    """Orthogonal and upper triangular factors."""
    matrices.check_matrices("qr", a)
    work = matrices.stacked(a, matrices.computing_dtype("qr", a))
    result = spectral.orthogonal_factors(work, complete)
    return tuple([x.reshape(*a.shape[:-2], *x.shape[1:]) for x in result])


@orthogonal_triangular.shape
def _orthogonal_triangular_shape(a, *, complete):
    matrices.check_matrices("qr", a)
    *batch, m, n = a.shape
    dtype = matrices.computing_dtype("qr", a)
    k = m if complete else min(m, n)
    return Meta((*batch, m, k), dtype), Meta((*batch, k, n), dtype)


def _qr_vjp(g, y):
    """Gradient of a QR factorization.

    S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions".

    Columns beyond the square follow from the others: ``R2 = Q^H A2``. Further columns of a complete
    ``Q`` span what others do not; their own choice does not count, so they move only as those make
    them.
    """
    of_q, of_r = g
    q, r = y
    m, n = q.shape[-2], r.shape[-1]
    k = min(m, n)
    of_q = 0 * q if of_q is None else of_q
    of_r = 0 * r if of_r is None else of_r
    if q.shape[-1] > k:
        q, rest, of_rest = q[..., :k], q[..., k:], of_q[..., k:]
        of_q = of_q[..., :k] - matrices.product(
            rest, matrices.product(matrices.adjoint(of_rest), q)
        )
        r, of_r = r[..., :k, :], of_r[..., :k, :]
    beyond = None
    if n > m:
        beyond = matrices.product(q, of_r[..., m:])
        of_q = of_q + matrices.product(
            matrices.product(q, r[..., m:]), matrices.adjoint(of_r[..., m:])
        )
        r, of_r = r[..., :m], of_r[..., :m]
    inner = matrices.product(of_r, matrices.adjoint(r)) - matrices.product(
        matrices.adjoint(q), of_q
    )
    inner = triu(inner) * _halved(k, q.dtype)
    whole = of_q + matrices.product(q, inner + matrices.adjoint(inner))
    square = matrices.adjoint(solve_triangle(r, matrices.adjoint(whole), lower=False))
    return square if beyond is None else concat(square, beyond, axis=-1)


def _halved(n: Any, dtype: np.dtype) -> np.ndarray:
    """Ones, and halves on the diagonal."""
    n = n.__index__()
    return matrices.constant(1 - 0.5 * np.eye(n, dtype=real_dtype(dtype)))


orthogonal_triangular.vjp(a=_qr_vjp)
orthogonal_triangular.batch(of_matrices)


@primitive(internal=True, method=False, outputs=True)
def raw_qr(a):
    """LAPACK's results: factors in one matrix, transposed, and scales."""
    matrices.check_matrices("qr", a)
    return tuple(np.linalg.qr(np.asarray(a, matrices.computing_dtype("qr", a)), "raw"))


@raw_qr.shape
def _raw_qr_shape(a):
    matrices.check_matrices("qr", a)
    *batch, m, n = a.shape
    dtype = matrices.computing_dtype("qr", a)
    return Meta((*batch, n, m), dtype), Meta((*batch, min(m, n)), dtype)


raw_qr.batch(of_matrices)


@composite(ref=np.linalg.qr, method=False, smooth=True)
def qr(a, mode="reduced"):
    """Orthogonal and upper triangular factors: ``a = Q @ R``.

    The gradient is that at full rank. Of the columns that ``"complete"`` adds it means something
    for what depends only on the space they span.

    Parameters
    ----------
    mode : str
        ``"reduced"``; ``"complete"`` for a square ``Q``; ``"r"`` for ``R`` alone; ``"raw"`` for
        what LAPACK gives, whose gradient raises. SciPy's ``"economic"`` and ``"full"`` are the
        first two.

    Returns
    -------
    QRResult
        ``Q`` and ``R``; for ``"r"`` the latter alone, for ``"raw"`` ``h`` and ``tau``.

    Examples
    --------
    >>> q, r = ng.linalg.qr(ng.tensor([[0.0, 2.0], [3.0, 4.0]]))
    >>> abs(r)
    tensor([[3., 4.],
            [0., 2.]])
    """
    a = as_operand(a)
    mode = {"economic": "reduced", "full": "complete"}.get(mode, mode)  # SciPy's names
    if mode == "raw":
        return raw_qr(a)
    if mode not in ("reduced", "complete", "r"):
        raise NumgradValueError(
            f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}"
        )
    factors = orthogonal_triangular(a, complete=mode == "complete")
    return factors[1] if mode == "r" else QRResult(*factors)


# -------------------------------------------------------------------------------- lower and upper


@primitive(internal=True, method=False, outputs=True, smooth=True)
def packed_lu(a):
    """Lower and upper factors in one matrix, pivots from 0, the order that these make of rows."""
    matrices.check_matrices("lu", a)
    a = np.asarray(a, matrices.computing_dtype("lu", a))
    *batch, m, n = a.shape
    k = min(m, n)
    packed = np.empty(a.shape, a.dtype)
    pivots = np.empty((*batch, k), np.int32)
    order = np.empty((*batch, m), np.int64)
    order[...] = np.arange(m)
    if k:
        from scipy.linalg.lapack import get_lapack_funcs

        (getrf,) = get_lapack_funcs(("getrf",), (a,))
        for index in np.ndindex(*batch):
            packed[index], pivots[index], _ = getrf(a[index])
            rows = order[index]
            for i, p in enumerate(pivots[index]):
                rows[i], rows[p] = rows[p], rows[i]
    return packed, pivots, order


@packed_lu.shape
def _packed_lu_shape(a):
    matrices.check_matrices("lu", a)
    *batch, m, n = a.shape
    return (
        Meta(a.shape, matrices.computing_dtype("lu", a)),
        Meta((*batch, min(m, n)), np.dtype(np.int32)),
        Meta((*batch, m), np.dtype(np.int64)),
    )


def _lower(packed: Any, k: Any) -> Any:
    below = tril(packed[..., :k], -1)
    ones = np.eye(packed.shape[-2].__index__(), k.__index__(), dtype=packed.dtype)
    return below + matrices.constant(ones)


def _packed_lu_vjp(g, y):
    """Gradient of the square part; rows and columns beyond it follow by triangular systems."""
    g, (packed, _, order) = g[0], y
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower, upper = _lower(packed, k), triu(packed[..., :k, :])
    of_lower, of_upper = tril(g[..., :k], -1), triu(g[..., :k, :])
    below = right = None
    if m > k:  # L2 = A2 inv(U)
        below = matrices.adjoint(
            solve_triangle(upper, matrices.adjoint(of_lower[..., k:, :]), lower=False)
        )
        of_upper = of_upper - triu(matrices.product(matrices.adjoint(lower[..., k:, :]), below))
        lower, of_lower = lower[..., :k, :], of_lower[..., :k, :]
    if n > k:  # U2 = inv(L) A2
        right = solve_triangle(lower, of_upper[..., k:], lower=True, of_adjoint=True, unit=True)
        of_lower = of_lower - tril(matrices.product(right, matrices.adjoint(upper[..., k:])), -1)
        upper, of_upper = upper[..., :k], of_upper[..., :k]
    inner = tril(matrices.product(matrices.adjoint(lower), of_lower), -1) + triu(
        matrices.product(of_upper, matrices.adjoint(upper))
    )
    inner = matrices.adjoint(solve_triangle(upper, matrices.adjoint(inner), lower=False))
    whole = solve_triangle(lower, inner, lower=True, of_adjoint=True, unit=True)
    if below is not None:
        whole = concat(whole, below, axis=-2)
    if right is not None:
        whole = concat(whole, right, axis=-1)
    back = np.broadcast_to(inverse_permutation(order)[..., None], whole.shape)
    return np.take_along_axis(whole, back, axis=-2)


@primitive(internal=True, method=False, differentiable=False)
def inverse_permutation(x):
    """The permutation that undoes another."""
    return np.argsort(x, axis=-1)


inverse_permutation.shape(lambda x: Meta(x.shape, np.dtype(np.int64)))
inverse_permutation.batch(of_vectors)


@primitive(internal=True, method=False, differentiable=False)
def permutation_of(pivots):
    """The order that exchanges of rows make: row ``i`` with row ``pivots[i]``, one by one."""
    order = np.empty(pivots.shape, np.int64)
    order[...] = np.arange(pivots.shape[-1])
    for index in np.ndindex(*pivots.shape[:-1]):
        rows = order[index]
        for i, p in enumerate(pivots[index]):
            rows[i], rows[p] = rows[p], rows[i]
    return order


permutation_of.shape(lambda pivots: Meta(pivots.shape, np.dtype(np.int64)))
permutation_of.batch(of_vectors)
packed_lu.vjp(a=_packed_lu_vjp)
packed_lu.batch(of_matrices)


class LUResult(NamedTuple):
    """Result of ``lu``."""

    P: Any
    L: Any
    U: Any


@composite(ref="scipy.linalg.lu", method=False, smooth=True)
def lu(a, permute_l=False, p_indices=False):
    """Lower and upper triangular factors, rows exchanged: ``a = P @ L @ U``.

    Parameters
    ----------
    permute_l : bool
        Whether to return ``P @ L`` and ``U`` alone.
    p_indices : bool
        Whether ``P`` is the order of rows: ``a = L[P] @ U``.

    Returns
    -------
    LUResult
        ``P``, ``L`` with ones on its diagonal, and ``U``.

    Examples
    --------
    >>> p, l, u = ng.linalg.lu(ng.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> u
    tensor([[2., 2.],
            [0., 1.]])
    """
    packed, _, order = packed_lu(as_operand(a))
    k = min(packed.shape[-2:])
    lower, upper = _lower(packed, k), triu(packed[..., :k, :])
    rows = inverse_permutation(order)
    if permute_l:
        return _rows(lower, rows), upper
    return LUResult(rows if p_indices else _permutation(packed, rows), lower, upper)


def _permutation(packed: Any, rows: Any) -> Any:
    return _rows(matrices.identity(packed.shape[-2], packed.dtype), rows)


def _rows(x: Any, order: Any) -> Any:
    """The rows of matrices in another order."""
    batch = tuple(order.shape[:-1])
    shape = (*batch, *x.shape[-2:])
    if tuple(x.shape) != shape:
        x = bind(OPS["broadcast_to"], (x, shape), {})
    index = bind(
        OPS["broadcast_to"], (order[..., None], (*shape[:-2], order.shape[-1], shape[-1])), {}
    )
    return bind(OPS["take_along_axis"], (x, index), {"axis": -2})


@composite(ref="scipy.linalg.lu_factor", method=False, smooth=True)
def lu_factor(a):
    """Lower and upper triangular factors in one matrix, for ``lu_solve``.

    Returns
    -------
    tuple
        The matrix, and for each row the one it was exchanged with.

    Examples
    --------
    >>> factors = ng.linalg.lu_factor(ng.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> ng.linalg.lu_solve(factors, ng.tensor([3.0, 4.0]))
    tensor([1., 1.])
    """
    a = as_operand(a)
    matrices.check_matrices("lu_factor", a)
    return packed_lu(a)[:2]


@composite(method=False, smooth=True)
def lu_unpack(lu_and_piv):
    """The factors that ``lu_factor(a)`` returned in one matrix, and its order of rows as another.

    Parameters
    ----------
    lu_and_piv : pair
        The factors in one matrix, and the rows that were exchanged.

    Returns
    -------
    LUResult
        ``P``, ``L`` with ones on its diagonal, and ``U``: ``a = P @ L @ U``.

    Examples
    --------
    >>> factors = ng.linalg.lu_factor(ng.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> ng.linalg.lu_unpack(factors).L
    tensor([[1. , 0. ],
            [0.5, 1. ]])
    """
    packed, pivots = (as_operand(x) for x in lu_and_piv)
    matrices.check_matrices("lu_unpack", packed)
    m, k = packed.shape[-2], min(packed.shape[-2:])
    if m > k:  # the rows below were exchanged with none
        below = np.broadcast_to(np.arange(k, m), (*pivots.shape[:-1], m - k))
        pivots = np.concatenate([pivots, below], axis=-1)
    rows = inverse_permutation(permutation_of(pivots))
    return LUResult(_permutation(packed, rows), _lower(packed, k), triu(packed[..., :k, :]))


@composite(ref="scipy.linalg.lu_solve", method=False, smooth=True)
def lu_solve(lu_and_piv, b, trans=0):
    """The ``x`` of ``a @ x = b`` by what ``lu_factor(a)`` returned.

    Parameters
    ----------
    lu_and_piv : pair
        The factors in one matrix, and the rows that were exchanged.
    trans : int
        0 solves with ``a``, 1 with its transpose, 2 with its conjugate transpose.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Examples
    --------
    >>> factors = ng.linalg.lu_factor(ng.tensor([[4.0]]))
    >>> ng.linalg.lu_solve(factors, ng.tensor([8.0]))
    tensor([2.])
    """
    packed, pivots = (as_operand(x) for x in lu_and_piv)
    b = as_operand(b)
    matrices.check_square("lu_solve", packed)
    matrices.check_right_side("lu_solve", packed, b)
    if trans not in (0, 1, 2):
        raise NumgradValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    vector = len(b.shape) == 1
    x = expand_dims(b, -1) if vector else b
    order = permutation_of(pivots)
    if trans == 0:
        x = solve_triangle(packed, rows_of(x, order), lower=True, unit=True)
        x = solve_triangle(packed, x)
    else:
        x = np.conj(x) if trans == 1 else x
        x = solve_triangle(packed, x, of_adjoint=True)
        x = solve_triangle(packed, x, lower=True, of_adjoint=True, unit=True)
        x = rows_of(x, inverse_permutation(order))
        x = np.conj(x) if trans == 1 else x
    return squeeze(x, -1) if vector else x


def rows_of(x: Any, order: Any) -> Any:
    """The same, of stacks that broadcast."""
    batch = broadcast_lengths(tuple(x.shape[:-2]), tuple(order.shape[:-1]))
    lengths = (*batch, order.shape[-1])
    if tuple(order.shape) != lengths:
        order = bind(OPS["broadcast_to"], (order, lengths), {})
    return _rows(x, order)


@primitive(internal=True, method=False, outputs=True, smooth=True)
def block_factors(a, *, lower, hermitian):
    """Triangular factor with its rows in the order of ``a``, blocks, the order that sorts rows."""
    meta, *_ = _block_shape(a)
    batch = a.shape[:-2]
    if not a.size:
        return np.zeros(a.shape, meta.dtype), np.zeros(a.shape, meta.dtype), _orders(a)
    work = matrices.stacked(a, meta.dtype)
    bad = np.asarray(~np.isfinite(work).all((-2, -1)))
    if bad.any():
        raise NumgradLinAlgError(f"ldl: {matrices.which(bad, batch)} contains infinities or NaNs")
    of = importlib.import_module("scipy.linalg").ldl
    results = [of(x, lower=lower, hermitian=hermitian) for x in work]
    factor, blocks = (
        np.asarray([x[k] for x in results], meta.dtype).reshape(a.shape) for k in (0, 1)
    )
    return factor, blocks, np.asarray([x[2] for x in results], np.int64).reshape(a.shape[:-1])


def _orders(a: Any) -> np.ndarray:
    return np.zeros(a.shape[:-1], np.int64) + np.arange(a.shape[-1])


@block_factors.shape
def _block_shape(a, **_):
    matrices.check_square("ldl", a)
    meta = Meta(a.shape, matrices.computing_dtype("ldl", a))
    return meta, meta, Meta(a.shape[:-1], np.dtype(np.int64))


def _permuted_rows(x: Any, order: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(order[..., None], x.shape), axis=-2)


def _columns(x: Any, order: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(order[..., None, :], x.shape), axis=-1)


def _block_factors_vjp(g, y, lower, hermitian):
    of_factor, of_blocks, *_ = g
    factor, blocks, order = y
    in_blocks = (blocks != 0) | (matrices.identity(blocks.shape[-1], blocks.dtype) != 0)
    total = 0 * blocks if of_blocks is None else where(in_blocks, of_blocks, 0)
    if of_factor is not None:
        side = np.tri(blocks.shape[-1].__index__(), dtype=bool)
        beside = matrices.constant(side if lower else side.T.copy()) & ~in_blocks
        inner = where(beside, matrices.product(matrices.adjoint(factor), of_factor), 0)
        total = total + where(beside, matrices.adjoint(solve(blocks, matrices.adjoint(inner))), 0)
    triangle = _permuted_rows(factor, order)
    left = solve_triangle(triangle, total, lower=lower, of_adjoint=True)
    other = triangle if hermitian else np.conj(triangle)
    result = matrices.adjoint(
        solve_triangle(other, matrices.adjoint(left), lower=lower, of_adjoint=True)
    )
    back = inverse_permutation(order)
    result = _columns(_permuted_rows(result, back), back)
    return 0.5 * (
        result + (matrices.adjoint(result) if hermitian else np.conj(matrices.adjoint(result)))
    )


block_factors.vjp(a=_block_factors_vjp)
block_factors.batch(of_matrices)


@composite(ref="scipy.linalg.ldl", method=False, smooth=True)
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
    matrices.check_square("ldl", a)
    return block_factors(matrices.mirrored(a, lower, hermitian), lower=lower, hermitian=hermitian)


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
    matrices.check_square("ldl_solve", factor)
    matrices.check_right_side("ldl_solve", factor, b)
    vector = len(b.shape) == 1
    triangle = _permuted_rows(factor, order)
    x = rows_of(expand_dims(b, -1) if vector else b, order)
    x = solve(blocks, solve_triangle(triangle, x, lower=lower, unit=True))
    other = triangle if hermitian else np.conj(triangle)
    x = solve_triangle(other, x, lower=lower, of_adjoint=True, unit=True)
    x = rows_of(x, inverse_permutation(order))
    return squeeze(x, -1) if vector else x


@composite(method=False, smooth=True)
def householder_product(a, tau):
    """The first columns of ``H[0] @ H[1] @ ...`` with ``H[i] = 1 - tau[i] v[i] v[i]*``.

    ``v[i]`` has zeros, a one at ``i``, and below it what column ``i`` of ``a`` has there: as
    ``qr`` with ``mode="raw"`` gives them, transposed, and ``geqrf`` of LAPACK, whose ``orgqr`` this
    is. Reflections are put together as ``1 - V T V*`` (R. Schreiber, C. Van Loan, "A
    storage-efficient WY representation for products of Householder transformations", 1989).

    Parameters
    ----------
    a
        Matrices with no more columns than rows; what is on and above the diagonal is not read.
    tau
        A factor for each reflection, no more than ``a`` has columns.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradValueError
        If there are more columns than rows, or more factors than columns.

    Examples
    --------
    >>> h, tau = np.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]), mode="raw")
    >>> ng.linalg.householder_product(h.T, tau)
    tensor([[-0.6, -0.8],
            [-0.8,  0.6]])
    """
    a, tau = as_operand(a), as_operand(tau)
    matrices.check_matrices("householder_product", a)
    m, n = a.shape[-2:]
    if not len(tau.shape) or not tau.shape[-1] <= n <= m:
        raise NumgradValueError(
            f"householder_product: reflections in a matrix of shape {tuple(a.shape)} with factors "
            f"of shape {tuple(tau.shape)}: there may be no more columns than rows, nor more "
            "factors than columns"
        )
    k, dtype = tau.shape[-1].__index__(), np.result_type(a.dtype, tau.dtype)
    unit = matrices.constant(np.eye(m.__index__(), n.__index__(), dtype=dtype))
    v = tril(a[..., :k], -1) + unit[..., :k]
    back, factors = matrices.adjoint(v), expand_dims(tau, -1)
    # T = inv(1 + D S) D, where S is what v* v has above its diagonal
    inner = matrices.identity(k, dtype) + factors * triu(matrices.product(back, v), 1)
    turned = solve_triangle(inner, factors * matrices.product(back, unit), unit=True)
    return unit - matrices.product(v, turned)
