"""Matrices known by fewer numbers: of Toeplitz, of bands, of blocks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.kernels.matrices import elementary, functions
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.checks import (
    adjoint,
    as_stack,
    as_vectors,
    computing_dtype,
    constant,
    spread,
    stacks,
    which,
)
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, expand_dims, reshape, squeeze


def _raise_for(operation: str, info: Any, batch: tuple[int, ...]) -> None:
    """As SciPy does, which has another error for what is not finite."""
    if info is not None and (info == elementary.NOT_FINITE).any():
        raise NumgradValueError(f"{operation}: operands contain infinities or NaNs")
    if info is not None:
        raise NumgradLinAlgError(f"{operation}: {which(info != 0, batch)} is singular")


@primitive(internal=True, method=False, smooth=True)
def toeplitz_solution(c, r, b):
    """Solve with the matrix of first column ``c`` and first row ``r`` for the columns of ``b``."""
    shape = _toeplitz_shape(c, r, b)
    batch = shape.shape[:-2]
    c, r = (as_vectors(spread(x, batch, 1)) for x in (c, r))
    b = as_stack(spread(b, batch), shape.dtype)
    found, info = functions.toeplitz(c, r, b)
    _raise_for("solve_toeplitz", info, batch)
    return found.astype(shape.dtype, copy=False).reshape(shape.shape)


@toeplitz_solution.shape
def _toeplitz_shape(c, r, b):
    batch = stacks("solve_toeplitz", c.shape[:-1], r.shape[:-1], b.shape[:-2])
    return Meta((*batch, *b.shape[-2:]), computing_dtype("solve_toeplitz", c, r, b))


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
    return -_sums_of_diagonals(matmul(z, adjoint(y)))


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
    shape = _banded_shape(ab, b, below=below, above=above)
    batch = shape.shape[:-2]
    ab = as_stack(spread(ab, batch), shape.dtype)
    b = as_stack(spread(b, batch), shape.dtype)
    found, info = functions.banded(ab, b, below, above)
    _raise_for("solve_banded", info, batch)
    return found.reshape(shape.shape)


@banded_solution.shape
def _banded_shape(ab, b, *, below, above):
    batch = stacks("solve_banded", ab.shape[:-2], b.shape[:-2])
    return Meta((*batch, *b.shape[-2:]), computing_dtype("solve_banded", ab, b))


@banded_solution.batch
def _banded_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    ndim = max(x.ndim for x in operands)
    return bind(op, tuple([x.aligned(ndim) for x in operands]), params)


def _rows_of_bands(below: int, above: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of each element of ``ab``, and whether there is one."""
    rows = np.arange(n) + np.arange(-above, below + 1)[:, None]
    inside = (rows >= 0) & (rows < n)
    return constant(np.clip(rows, 0, max(n - 1, 0))), constant(inside)


def adjoint_bands(ab: Any, below: int, above: int) -> Any:
    """The bands of the adjoint: each diagonal moves along itself."""
    n = ab.shape[-1].__index__()
    columns, inside = _rows_of_bands(above, below, n)
    lines = np.repeat(np.arange(below + above, -1, -1)[:, None], n, axis=1)
    return np.conj(ab[..., constant(lines), columns] * inside)


def _banded_vjp_ab(g, ab, y, below, above):
    z = banded_solution(adjoint_bands(ab, below, above), g, below=above, above=below)
    rows, inside = _rows_of_bands(below, above, ab.shape[-1].__index__())
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
        rows.append(concat(parts, axis=1))
        before += own
    return concat(rows, axis=0) if len(rows) > 1 else rows[0]


block_diag.calls = [
    (((2, 2), (1, 3)), lambda a, b: block_diag(a, b)),
    (((2,), (0, 1), (1, 1)), lambda a, b, c: block_diag(a, b, c)),
]
