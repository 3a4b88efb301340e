"""Matrices known by few numbers: Toeplitz, companion, banded and block matrices."""

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, broadcasting_rule
from numgrad.core.declare import Meta, Op, bind, composite, primitive
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.kernels.matrices import elementary, functions
from numgrad.operations.choice import where
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.eigenvalues import eigh, eigvalsh
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, expand_dims, reshape, squeeze


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
    indices = columns - 1 + np.arange(rows)[:, None] - np.arange(columns)
    return concat(r[..., :0:-1], c, axis=-1)[..., matrices.constant(indices)]


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
    indices = np.arange(_lengths(c))[:, None] + np.arange(_lengths(r))
    return concat(c, r[..., 1:], axis=-1)[..., matrices.constant(indices)]


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
    return c[..., matrices.constant((np.arange(n)[:, None] - np.arange(n)) % max(n, 1))]


@composite(ref="scipy.linalg.companion", method=False, smooth=True)
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
        matrices.constant(np.eye(n - 1, n, dtype=first.dtype)), (*first.shape[:-1], n - 1, n)
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
        matrices.check_matrices("khatri_rao", x)
    if a.shape[-1] != b.shape[-1]:
        raise NumgradValueError(
            f"khatri_rao: a of shape {tuple(a.shape)} and b of shape {tuple(b.shape)} must have as "
            "many columns"
        )
    result = a[..., :, None, :] * b[..., None, :, :]
    return reshape(result, (*result.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1]))


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


def _raise_for(operation: str, info: Any, batch: tuple[int, ...]) -> None:
    """Raise as SciPy does, which has another error for what is not finite."""
    if info is not None and (info == elementary.NOT_FINITE).any():
        raise NumgradValueError(f"{operation}: operands contain infinities or NaNs")
    if info is not None:
        raise NumgradLinAlgError(f"{operation}: {matrices.which(info != 0, batch)} is singular")


@primitive(internal=True, method=False, smooth=True)
def toeplitz_solution(c, r, b):
    """Solve with the matrix of first column ``c`` and first row ``r`` for the columns of ``b``."""
    shape = _toeplitz_shape(c, r, b)
    batch = shape.shape[:-2]
    c, r = (matrices.as_vectors(matrices.spread(x, batch, 1)) for x in (c, r))
    b = matrices.as_stack(matrices.spread(b, batch), shape.dtype)
    result, info = functions.toeplitz(c, r, b)
    _raise_for("solve_toeplitz", info, batch)
    return result.astype(shape.dtype, copy=False).reshape(shape.shape)


@toeplitz_solution.shape
def _toeplitz_shape(c, r, b):
    batch = matrices.stacks("solve_toeplitz", c.shape[:-1], r.shape[:-1], b.shape[:-2])
    return Meta((*batch, *b.shape[-2:]), matrices.computing_dtype("solve_toeplitz", c, r, b))


@toeplitz_solution.batch
def _toeplitz_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    c, r, b = operands
    ndim = max(c.ndim + 1, r.ndim + 1, b.ndim)
    return bind(op, (c.aligned(ndim - 1), r.aligned(ndim - 1), b.aligned(ndim)), {})


def _sums_of_diagonals(x: Any) -> Any:
    """Sums of the diagonals of square matrices, from the lowest."""
    n = x.shape[-1]
    batch = x.shape[:-2]
    flipped = x[..., ::-1]  # each row is moved by one more when rows get longer by one
    longer = reshape(concat(flipped, 0 * flipped, axis=-1), (*batch, 2 * n * n))
    moved = reshape(longer[..., : n * (2 * n - 1)], (*batch, n, 2 * n - 1))
    return np.sum(moved, axis=-2)[..., ::-1]


def _toeplitz_gradient(g: Any, c: Any, r: Any, y: Any) -> Any:
    z = toeplitz_solution(_with_first(np.conj(r), c), np.conj(c), g)
    return -_sums_of_diagonals(matmul(z, matrices.adjoint(y)))


def _with_first(x: Any, c: Any) -> Any:
    """A first column whose first element is that of the diagonal, ``c[0]``."""
    if x.shape[:-1] != c.shape[:-1]:
        batch = np.broadcast_shapes(x.shape[:-1], c.shape[:-1])
        x, c = (np.broadcast_to(v, (*batch, v.shape[-1])) for v in (x, c))
    return concat(np.conj(c[..., :1]), x[..., 1:], axis=-1)


def _toeplitz_vjp_c(g, c, r, y):
    n = c.shape[-1]
    return _toeplitz_gradient(g, c, r, y)[..., :n][..., ::-1]


def _toeplitz_vjp_r(g, c, r, y):
    n = c.shape[-1]
    sums = _toeplitz_gradient(g, c, r, y)[..., n - 1 :]
    return concat(0 * sums[..., :1], sums[..., 1:], axis=-1)  # the first element is not read


toeplitz_solution.vjp(
    c=_toeplitz_vjp_c,
    r=_toeplitz_vjp_r,
    b=lambda g, c, r: toeplitz_solution(_with_first(np.conj(r), c), np.conj(c), g),
)


@composite(ref="scipy.linalg.solve_toeplitz", method=False, smooth=True)
def solve_toeplitz(c_or_cr, b):
    """The ``x`` of ``a @ x = b`` for a matrix whose diagonals are constant.

    Parameters
    ----------
    c_or_cr : array or pair of arrays
        The first column; or that and the first row, whose first element is not read. Without a row
        it is the conjugate of the column. Axes before the last are those of a stack.
    b
        A vector, a matrix of several, or a stack of such.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of all operands broadcast.

    Raises
    ------
    NumgradLinAlgError
        If a leading part of a matrix is singular.

    Examples
    --------
    >>> ng.linalg.solve_toeplitz(ng.tensor([2.0, 1.0]), ng.tensor([4.0, 5.0]))
    tensor([1., 2.])
    """
    b = as_operand(b)
    if isinstance(c_or_cr, tuple):
        c, r = (as_operand(x) for x in c_or_cr)
    else:
        c = as_operand(c_or_cr)
        r = np.conj(c)
    if not (len(c.shape) and len(b.shape)) or c.shape[-1] != r.shape[-1]:
        mismatch = True
    else:
        mismatch = b.shape[-2 if len(b.shape) > 1 else -1] != c.shape[-1]
    if mismatch:
        raise NumgradValueError(
            f"solve_toeplitz: a column of shape {tuple(c.shape)}, a row of shape {tuple(r.shape)}, "
            f"b of shape {tuple(b.shape)}: their lengths must be equal"
        )
    vector = len(b.shape) == 1
    x = toeplitz_solution(c, r, expand_dims(b, -1) if vector else b)
    return squeeze(x, -1) if vector else x


# ------------------------------------------------------------------------------------------ bands


@primitive(internal=True, method=False, smooth=True)
def banded_solution(ab, b, *, below, above):
    """Solve with the matrix of diagonals ``ab``, the highest first, for the columns of ``b``."""
    shape = _banded_shape(ab, b, below=below, above=above)
    batch = shape.shape[:-2]
    ab = matrices.as_stack(matrices.spread(ab, batch), shape.dtype)
    b = matrices.as_stack(matrices.spread(b, batch), shape.dtype)
    result, info = functions.banded(ab, b, below, above)
    _raise_for("solve_banded", info, batch)
    return result.reshape(shape.shape)


@banded_solution.shape
def _banded_shape(ab, b, *, below, above):
    batch = matrices.stacks("solve_banded", ab.shape[:-2], b.shape[:-2])
    return Meta((*batch, *b.shape[-2:]), matrices.computing_dtype("solve_banded", ab, b))


banded_solution.batch(broadcasting_rule)


@lru_cache(maxsize=16)
def _band_places(below: int, above: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the row of each element of ``ab``, whether there is one, and its adjoint diagonal.

    One object each, so that compiled gradients for both operands have their solution in common.
    """
    rows = np.arange(n) + np.arange(-above, below + 1)[:, None]
    inside = (rows >= 0) & (rows < n)
    lines = np.repeat(np.arange(below + above, -1, -1)[:, None], n, axis=1)
    places = np.clip(rows, 0, max(n - 1, 0)), inside, lines
    for array in places:
        array.flags.writeable = False
    return places


def _bands_of(below: int, above: int, ab: Any) -> tuple[Any, Any, Any]:
    arrays = _band_places(below, above, ab.shape[-1].__index__())
    return tuple(map(matrices.constant, arrays))  # pyright: ignore


def adjoint_bands(ab: Any, below: int, above: int) -> Any:
    """The bands of the adjoint: each diagonal moves along itself."""
    columns, inside, lines = _bands_of(above, below, ab)
    return np.conj(ab[..., lines, columns] * inside)


def _banded_vjp_ab(g, ab, y, below, above):
    z = banded_solution(adjoint_bands(ab, below, above), g, below=above, above=below)
    rows, inside, _ = _bands_of(below, above, ab)
    return -np.sum(z[..., rows, :] * np.conj(y)[..., None, :, :], axis=-1) * inside


banded_solution.vjp(
    ab=_banded_vjp_ab,
    b=lambda g, ab, below, above: banded_solution(
        adjoint_bands(ab, below, above), g, below=above, above=below
    ),
)


@composite(ref="scipy.linalg.solve_banded", method=False, smooth=True)
def solve_banded(l_and_u, ab, b):
    """The ``x`` of ``a @ x = b`` for a matrix with few diagonals.

    Parameters
    ----------
    l_and_u : pair of ints
        Numbers of diagonals below and above the main one.
    ab
        The diagonals in rows, the highest first: ``ab[u + i - j, j]`` is ``a[i, j]``. Axes before
        the last two are those of a stack.
    b
        A vector, a matrix of several, or a stack of such.

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
    >>> ab = ng.tensor([[0.0, 1.0], [2.0, 2.0]])
    >>> ng.linalg.solve_banded((0, 1), ab, ng.tensor([4.0, 4.0]))
    tensor([1., 2.])
    """
    ab, b = as_operand(ab), as_operand(b)
    try:
        below, above = (operator.index(k) for k in l_and_u)
    except (TypeError, ValueError):
        below = above = -1
    if min(below, above) < 0:
        raise NumgradValueError(
            f"solve_banded: l_and_u is {l_and_u!r}; give two numbers: of the diagonals below, and "
            "of those above, as in (1, 2)"
        )
    if len(ab.shape) < 2 or ab.shape[-2] != below + above + 1:
        raise NumgradValueError(
            f"solve_banded: ab of shape {tuple(ab.shape)} must have {below} + {above} + 1 rows"
        )
    if not len(b.shape) or b.shape[-2 if len(b.shape) > 1 else -1] != ab.shape[-1]:
        raise NumgradValueError(
            f"solve_banded: shapes {tuple(ab.shape)} and {tuple(b.shape)}: b must have as many "
            "rows as ab has columns"
        )
    vector = len(b.shape) == 1
    x = banded_solution(ab, expand_dims(b, -1) if vector else b, below=below, above=above)
    return squeeze(x, -1) if vector else x


# ----------------------------------------------------------------------------------------- blocks


@composite(ref="scipy.linalg.block_diag", method=False, smooth=True)
def block_diag(*arrays):
    """Matrices one after the other on the diagonal, zeros elsewhere; vectors count as rows.

    Returns
    -------
    Tensor
        With the rows and columns of all.

    Examples
    --------
    >>> ng.linalg.block_diag(ng.tensor([[1.0]]), ng.tensor([[2.0, 3.0]]))
    tensor([[1., 0., 0.],
            [0., 2., 3.]])
    """
    blocks = [as_operand(x) for x in arrays] or [np.zeros((1, 0))]
    for x in blocks:
        if len(x.shape) > 2:
            raise NumgradValueError(
                f"block_diag: takes matrices, got an array of shape {tuple(x.shape)}"
            )
    blocks = [x if len(x.shape) == 2 else reshape(x, (1, -1)) for x in blocks]
    dtype = np.result_type(*[x.dtype for x in blocks])
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        height, breadth = x.shape
        row_blocks = [
            matrices.constant(np.zeros((height, before), dtype)),
            x,
            matrices.constant(np.zeros((height, width - before - breadth), dtype)),
        ]
        rows.append(concat(row_blocks, axis=1))
        before += breadth
    return concat(rows, axis=0) if len(rows) > 1 else rows[0]


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
    read = a_band[..., matrices.constant(np.clip(rows, 0, count - 1)), matrices.constant(columns)]
    return matrices.mirrored(where(matrices.constant(inside), read, 0), lower)


@composite(ref="scipy.linalg.eig_banded", method=False, smooth=True)
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


@composite(ref="scipy.linalg.eigvals_banded", method=False, smooth=True)
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


@composite(ref="scipy.linalg.eigh_tridiagonal", method=False, smooth=True)
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


@composite(ref="scipy.linalg.solveh_banded", method=False, smooth=True)
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
