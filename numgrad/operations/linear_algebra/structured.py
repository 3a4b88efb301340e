"""Matrices known by fewer numbers: of Toeplitz, of bands, of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.checks import computing_dtype, constant
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, expand_dims, reshape, squeeze


@primitive(internal=True, method=False, smooth=True)
def toeplitz_solution(c, r, b):
    """Solve with the matrix of first column ``c`` and first row ``r`` for the columns of ``b``."""
    from scipy.linalg import solve_toeplitz as of_scipy

    dtype = computing_dtype("solve_toeplitz", c, r, b)
    c, r, b = (np.asarray(x, dtype) for x in (c, r, b))
    if not b.size:
        return np.zeros(b.shape, dtype)
    try:
        return np.asarray(of_scipy((c, r), b), dtype)
    except np.linalg.LinAlgError as error:
        raise NumgradLinAlgError(f"solve_toeplitz: of length {len(c)}: {error}") from None


toeplitz_solution.shape(lambda c, r, b: Meta(b.shape, computing_dtype("solve_toeplitz", c, r, b)))


def _sums_of_diagonals(x: Any) -> Any:
    """Sums of the diagonals of a square matrix, from the lowest."""
    n = x.shape[0]
    flipped = x[:, ::-1]  # each row is moved by one more when rows get longer by one
    longer = concat(flipped, 0 * flipped, axis=1)
    moved = reshape(reshape(longer, (-1,))[: n * (2 * n - 1)], (n, 2 * n - 1))
    return np.sum(moved, axis=0)[::-1]


def _toeplitz_gradient(g: Any, c: Any, r: Any, y: Any) -> Any:
    z = toeplitz_solution(_with_first(np.conj(r), c), np.conj(c), g)
    return -_sums_of_diagonals(matmul(z, np.conj(y).T))


def _with_first(x: Any, c: Any) -> Any:
    """A first column whose first element is that of the diagonal, ``c[0]``."""
    return concat(np.conj(c[:1]), x[1:], axis=0)


def _toeplitz_vjp_c(g, c, r, y):
    n = c.shape[0]
    return _toeplitz_gradient(g, c, r, y)[:n][::-1]


def _toeplitz_vjp_r(g, c, r, y):
    n = c.shape[0]
    sums = _toeplitz_gradient(g, c, r, y)[n - 1 :]
    return concat(0 * sums[:1], sums[1:], axis=0)  # the first element is not read


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
        it is the conjugate of the column.
    b
        A vector, or a matrix of several.

    Returns
    -------
    Tensor
        Of the shape of ``b``.

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
    c, r = reshape(c, (-1,)), reshape(r, (-1,))
    if c.shape != r.shape or len(b.shape) not in (1, 2) or b.shape[0] != c.shape[0]:
        raise NumgradValueError(
            f"solve_toeplitz: a column of shape {tuple(c.shape)}, a row of shape {tuple(r.shape)}, "
            f"b of shape {tuple(b.shape)}: their first lengths must be equal"
        )
    vector = len(b.shape) == 1
    x = toeplitz_solution(c, r, expand_dims(b, -1) if vector else b)
    return squeeze(x, -1) if vector else x


def _raised(c: Any) -> Any:
    """A first column that makes the diagonal large."""
    return c + 9 * np.eye(1, c.shape[0])[0]


toeplitz_solution.calls = [
    (((3,), (3,), (3, 2)), lambda c, r, b: toeplitz_solution(_raised(c), r, b)),
]
solve_toeplitz.calls = [
    (((4,), (4,)), lambda c, b: solve_toeplitz((_raised(c), c * 0.5), b)),
    (((3,), (3, 2)), lambda c, b: solve_toeplitz(_raised(np.abs(c)), b)),
]


# ------------------------------------------------------------------------------------------ bands


@primitive(internal=True, method=False, smooth=True)
def banded_solution(ab, b, *, below, above):
    """Solve with the matrix of diagonals ``ab``, the highest first, for the columns of ``b``."""
    from scipy.linalg import solve_banded as of_scipy

    dtype = computing_dtype("solve_banded", ab, b)
    if not b.size:
        return np.zeros(b.shape, dtype)
    try:
        found = of_scipy((below, above), np.asarray(ab, dtype), np.asarray(b, dtype))
    except np.linalg.LinAlgError as error:
        raise NumgradLinAlgError(f"solve_banded: ab of shape {ab.shape}: {error}") from None
    return np.asarray(found, dtype)


@banded_solution.shape
def _banded_shape(ab, b, *, below, above):
    return Meta(b.shape, computing_dtype("solve_banded", ab, b))


def _rows_of_bands(below: int, above: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of each element of ``ab``, and whether there is one."""
    rows = np.arange(n) + np.arange(-above, below + 1)[:, None]
    inside = (rows >= 0) & (rows < n)
    return constant(np.clip(rows, 0, max(n - 1, 0))), constant(inside)


def _adjoint_bands(ab: Any, below: int, above: int) -> Any:
    """The bands of the adjoint: each diagonal moves along itself."""
    n = ab.shape[1].__index__()
    columns, inside = _rows_of_bands(above, below, n)
    lines = np.repeat(np.arange(below + above, -1, -1)[:, None], n, axis=1)
    return np.conj(ab[constant(lines), columns] * inside)


def _banded_vjp_ab(g, ab, y, below, above):
    z = banded_solution(_adjoint_bands(ab, below, above), g, below=above, above=below)
    rows, inside = _rows_of_bands(below, above, ab.shape[1].__index__())
    return -np.sum(z[rows] * np.conj(y), axis=-1) * inside


banded_solution.vjp(
    ab=_banded_vjp_ab,
    b=lambda g, ab, below, above: banded_solution(
        _adjoint_bands(ab, below, above), g, below=above, above=below
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
        The diagonals in rows, the highest first: ``ab[u + i - j, j]`` is ``a[i, j]``.
    b
        A vector, or a matrix of several.

    Returns
    -------
    Tensor
        Of the shape of ``b``.

    Examples
    --------
    >>> ab = ng.tensor([[0.0, 1.0], [2.0, 2.0]])
    >>> ng.linalg.solve_banded((0, 1), ab, ng.tensor([4.0, 4.0]))
    tensor([1., 2.])
    """
    ab, b = as_operand(ab), as_operand(b)
    below, above = (int(k) for k in l_and_u)
    if len(ab.shape) != 2 or ab.shape[0] != below + above + 1:
        raise NumgradValueError(
            f"solve_banded: ab of shape {tuple(ab.shape)} must have {below} + {above} + 1 rows"
        )
    if len(b.shape) not in (1, 2) or b.shape[0] != ab.shape[1]:
        raise NumgradValueError(
            f"solve_banded: shapes {tuple(ab.shape)} and {tuple(b.shape)}: b must have as many "
            "rows as ab has columns"
        )
    vector = len(b.shape) == 1
    x = banded_solution(ab, expand_dims(b, -1) if vector else b, below=below, above=above)
    return squeeze(x, -1) if vector else x


def _with_diagonal(ab: Any, above: int) -> Any:
    return ab + 9 * np.eye(ab.shape[0])[above][:, None]


banded_solution.calls = [
    (
        ((3, 4), (4, 2)),
        lambda ab, b: banded_solution(_with_diagonal(ab, 1), b, below=1, above=1),
    ),
    (
        ((4, 5), (5, 1)),
        lambda ab, b: banded_solution(_with_diagonal(ab, 1), b, below=2, above=1),
    ),
]
solve_banded.calls = [
    (((4, 4), (4,)), lambda ab, b: solve_banded((1, 2), _with_diagonal(ab, 2), b)),
]


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
        height, own = x.shape
        parts = [
            constant(np.zeros((height, before), dtype)),
            x,
            constant(np.zeros((height, width - before - own), dtype)),
        ]
        rows.append(concat(*parts, axis=1))
        before += own
    return concat(*rows, axis=0) if len(rows) > 1 else rows[0]


block_diag.calls = [
    (((2, 2), (1, 3)), lambda a, b: block_diag(a, b)),
    (((2,), (0, 1), (1, 1)), lambda a, b, c: block_diag(a, b, c)),
]
