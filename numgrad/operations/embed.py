"""Arrays written into a part of another: into a slice, at one index, on a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.core.view import checked
from numgrad.errors import NumgradValueError
from numgrad.operations.shape import as_index, as_operand
from numgrad.operations.write import (
    check_cast,
    check_indices,
    index_axis,
    index_put,
    positions_of,
    put,
)


def _check_source(operation: str, x: Any, source: Any, shape: tuple[int, ...]) -> None:
    """Check the source, which must have the shape of what is written."""
    if tuple(source.shape) != shape:
        raise NumgradValueError(
            f"{operation}: source of shape {tuple(source.shape)} must have the shape {shape} of "
            "what is written; use broadcast_to or reshape"
        )
    check_cast(operation, source, x.dtype)


@composite(
    errors=[(((3, 4), (1, 4)), {"end": 2}, "NumgradValueError")], keeps_dtype=True, smooth=True
)
def slice_scatter(x, source, *, axis=0, start=None, end=None, step=1):
    """The operand with an array written into a slice of an axis.

    The source has the shape of the slice, ``x[start:end:step]`` along ``axis``.

    Parameters
    ----------
    source
        Array of the shape of the slice.
    start : int
        Where the slice starts; by default at the start of the axis.
    end : int
        Where it ends; by default at the end of the axis.
    step : int
        Places from one element to the next.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.slice_scatter(ng.zeros(4), ng.ones(2), end=2)
    tensor([1., 1., 0., 0.])
    """
    x, source = as_operand(x), as_operand(source)
    axis = index_axis("slice_scatter", axis, len(x.shape))
    part = slice(start, end, step)
    length = len(checked("slice_scatter", x, range(x.shape[axis]).__getitem__, part))
    _check_source("slice_scatter", x, source, (*x.shape[:axis], length, *x.shape[axis + 1 :]))
    return index_put(x, source, index=(*(slice(None),) * axis, part))


slice_scatter.calls = [
    (((2, 3), (2, 2)), lambda x, v: slice_scatter(x, v, axis=1, step=2)),
]


@composite(
    errors=[
        (((3, 4), (3,)), {"axis": 0, "index": 1}, "NumgradValueError"),
        (((3, 4), (4,)), {"axis": 0, "index": 3}, "NumgradIndexError"),
    ],
    keeps_dtype=True,
    smooth=True,
)
def select_scatter(x, source, *, axis, index):
    """The operand with an array written at one index of an axis.

    The source has the shape of the operand without that axis.

    Parameters
    ----------
    source
        Array of the shape of the operand without the axis.
    index : int
        Where along the axis.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.select_scatter(ng.zeros((2, 2)), ng.ones(2), axis=1, index=-1)
    tensor([[0., 1.],
            [0., 1.]])
    """
    x, source = as_operand(x), as_operand(source)
    axis = index_axis("select_scatter", axis, len(x.shape))
    index = as_index("select_scatter", index, "the index")
    if not -x.shape[axis] <= index < x.shape[axis]:
        check_indices("select_scatter", np.asarray(index), tuple(x.shape), axis)
    _check_source("select_scatter", x, source, (*x.shape[:axis], *x.shape[axis + 1 :]))
    return index_put(x, source, index=(*(slice(None),) * axis, index))


select_scatter.calls = [
    (((2, 3), (2,)), lambda x, v: select_scatter(x, v, axis=1, index=-1)),
]


@composite(
    errors=[
        (((3, 4), (4,)), {}, "NumgradValueError"),
        (((3, 4), (3,)), {"axis1": 2}, "NumgradIndexError"),
    ],
    keeps_dtype=True,
    smooth=True,
)
def diagonal_scatter(x, source, *, offset=0, axis1=0, axis2=1):
    """The operand with an array written on a diagonal.

    The source has the shape of ``diagonal(x, offset, axis1, axis2)``.

    Parameters
    ----------
    source
        Array of the shape of that diagonal.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.diagonal_scatter(ng.zeros((2, 3)), [1.0, 2.0], offset=1)
    tensor([[0., 1., 0.],
            [0., 0., 2.]])
    """
    x, source = as_operand(x), as_operand(source)
    shape = tuple(x.shape)
    positions = checked(
        "diagonal_scatter", x, positions_of, shape, lambda a: np.diagonal(a, offset, axis1, axis2)
    )
    _check_source("diagonal_scatter", x, source, positions.shape)
    return put(x, positions, source)


diagonal_scatter.calls = [
    (((2, 3), (2,)), lambda x, v: diagonal_scatter(x, v, offset=1)),
]
