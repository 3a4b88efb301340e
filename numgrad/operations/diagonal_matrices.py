"""Matrices with given diagonals."""

from __future__ import annotations

import numpy as np

from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis, permute_dims
from numgrad.operations.diagonal import diag, diagonal_backward
from numgrad.operations.shape import as_index, as_operand, ravel


@composite(smooth=True, keeps_dtype=True)
def diag_embed(x, offset=0, axis1=-2, axis2=-1):
    """Matrices with the last axis of the operand on a diagonal, else zero.

    Parameters
    ----------
    axis1 : int
        Axis of the result that counts rows.
    axis2 : int
        Axis of the result that counts columns.

    Returns
    -------
    Tensor
        With one axis more, of the dtype of ``x``.

    Examples
    --------
    >>> ng.diag_embed(ng.tensor([[1.0, 2.0]]), offset=1)[0]
    tensor([[0., 1., 0.],
            [0., 0., 2.],
            [0., 0., 0.]])
    """
    x = as_operand(x)
    rank = len(x.shape) + 1
    if rank == 1:
        raise NumgradValueError("diag_embed: needs an operand with axes, got a 0-d one")
    offset = as_index("diag_embed", offset, "offset")
    (rows,), (columns,) = (normalize_axes("diag_embed", a, rank) for a in (axis1, axis2))
    if rows == columns:
        raise NumgradValueError(f"diag_embed: axis1 and axis2 are both {rows}; they must differ")
    n = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for k in sorted((rows, columns)):
        shape.insert(k, n)
    return diagonal_backward(x, shape=tuple(shape), offset=offset, axis1=rows, axis2=columns)


diag_embed.calls = [
    (((2, 3),), lambda x: diag_embed(x)),
    (((2, 3),), lambda x: diag_embed(x, -1, 0, 2)),
]


@composite(ref=np.diagflat, method=False, smooth=True, keeps_dtype=True)
def diagflat(x, k=0):
    """The matrix with all elements of the operand, flattened, on its ``k``-th diagonal.

    Returns
    -------
    Tensor
        A matrix of the dtype of ``x``.

    Examples
    --------
    >>> ng.diagflat([[1.0], [2.0]])
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag(ravel(as_operand(x)), k)


diagflat.calls = [
    (((2, 2),), lambda x: diagflat(x, 1)),
]


@composite(ref=np.rollaxis, method=False, smooth=True)
def rollaxis(x, axis, start=0):
    """An axis moved back until it lies before another; ``moveaxis`` says it more plainly.

    Parameters
    ----------
    start : int
        The axis before which it comes to lie.

    Returns
    -------
    Tensor
        A view of ``x``.

    Examples
    --------
    >>> ng.rollaxis(ng.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_operand(x)
    rank = len(x.shape)
    axis = one_axis("rollaxis", as_index("rollaxis", axis), rank)
    start = as_index("rollaxis", start, "start")
    place = one_axis("rollaxis", start, rank + 1) if start >= 0 else start + rank
    if place < 0:
        raise NumgradValueError(f"rollaxis: start {start} of an operand of {rank} axes")
    place -= axis < place
    return permute_dims(x, tuple(range(rank))) if place == axis else moveaxis(x, axis, place)


rollaxis.calls = [
    (((2, 3, 4),), lambda x: rollaxis(x, 2, 1)),
]
