"""Arrays with elements added, left out or repeated, and matrices with given diagonals."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import checked, composite, made, normalize_axes, one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import moveaxis, permute_dims
from numgrad.operations.diagonal import diag, diagonal_backward
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, astype, copy, ravel, reshape
from numgrad.operations.shared_rules import numbers_of
from numgrad.operations.take import take


def rearranged(operation: str, move: Callable[..., np.ndarray], *operands: Any) -> Any:
    """Elements of operands where ``move``, which gets arrays of their numbers, puts these."""
    starts = [sum(prod(a.shape) for a in operands[:k]) for k in range(len(operands))]
    numbered = [
        np.arange(start, start + prod(a.shape)).reshape(a.shape)
        for start, a in zip(starts, operands, strict=True)
    ]
    positions = checked(operation, operands[0], move, *numbered)
    flat = [ravel(a) for a in operands]
    return take(flat[0] if len(flat) == 1 else concat(flat), made(positions))


@composite(ref=np.append, method=False, smooth=True)
def append(x, values, axis=None):
    """One array after another along an axis; without one both are flattened.

    Parameters
    ----------
    values : array_like
        What comes after.

    Returns
    -------
    Tensor
        Of the dtype both promote to.

    Examples
    --------
    >>> ng.append(ng.tensor([1.0, 2.0]), 3.0)
    tensor([1., 2., 3.])
    """
    x, values = as_operand(x), as_operand(values)
    if axis is None:
        return concat(ravel(x), ravel(values))
    return concat(x, values, axis=axis)


@composite(ref=np.insert, method=False, smooth=True, keeps_dtype=True)
def insert(x, obj, values, axis=None):
    """The operand with values inserted before indices of an axis; without one, flattened.

    Parameters
    ----------
    obj : int, slice, sequence of ints or of bools
        Before which elements of the operand.
    values : array_like
        What is inserted, converted to the dtype of ``x``.

    Returns
    -------
    Tensor
        Longer along the axis, of the dtype of ``x``.

    Examples
    --------
    >>> ng.insert(ng.tensor([1.0, 2.0, 3.0]), [1, 3], [10.0, 20.0])
    tensor([ 1., 10.,  2.,  3., 20.])
    """
    x, values = as_operand(x), as_operand(values)
    if values.dtype.kind == "c" and x.dtype.kind != "c":
        raise NumgradTypeError(
            f"insert: complex values do not go into an array of dtype {x.dtype}; convert it first"
        )
    if values.dtype != x.dtype:
        values = astype(values, dtype=x.dtype)
    if not isinstance(obj, slice):
        obj = numbers_of("insert", obj)
    return rearranged("insert", lambda a, b: np.insert(a, obj, b, axis), x, values)


@composite(ref=np.delete, method=False, smooth=True, keeps_dtype=True)
def delete(x, obj, axis=None):
    """The operand without the elements at indices of an axis; without one, flattened.

    Parameters
    ----------
    obj : int, slice, sequence of ints or of bools
        What is left out.

    Returns
    -------
    Tensor
        Shorter along the axis, of the dtype of ``x``.

    Examples
    --------
    >>> ng.delete(ng.tensor([1.0, 2.0, 3.0]), [0, -1])
    tensor([2.])
    """
    x = as_operand(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = one_axis("delete", axis, len(x.shape))
    if not isinstance(obj, slice):
        obj = numbers_of("delete", obj) if np.size(obj) else np.asarray(obj, np.intp)
    remaining = checked("delete", x, np.delete, np.arange(x.shape[axis]), obj)
    return take(x, made(remaining), axis=axis)


@composite(ref=np.resize, method=False, smooth=True, keeps_dtype=True)
def resize(x, new_shape):
    """The elements in C order in an array of another size, begun again where they end.

    Parameters
    ----------
    new_shape : int or tuple of ints
        Lengths of the axes of the result.

    Returns
    -------
    Tensor
        Of that shape and the dtype of ``x``; zeros if ``x`` has no elements.

    Examples
    --------
    >>> ng.resize(ng.tensor([1.0, 2.0, 3.0]), (2, 2))
    tensor([[1., 2.],
            [3., 1.]])
    """
    x = as_operand(x)
    lengths = new_shape if isinstance(new_shape, tuple | list) else (new_shape,)
    if not prod(x.shape):
        return concat(ravel(x), np.zeros(prod(lengths), x.dtype)).reshape(tuple(lengths))
    return rearranged("resize", lambda a: np.resize(a, new_shape), x)


@composite(ref=np.trim_zeros, method=False, keeps_dtype=True, smooth=True)
def trim_zeros(x, trim="fb", axis=None):
    """The operand without zeros at the front and back of its axes.

    Parameters
    ----------
    trim : {'fb', 'f', 'b'}
        Where to trim: front, back or both.
    axis : int or sequence of ints
        Axes to trim; by default all.

    Returns
    -------
    Tensor
        A view of the rest.

    Examples
    --------
    >>> ng.trim_zeros(ng.tensor([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]))
    tensor([1., 0., 2.])
    """
    x = as_operand(x)
    sides = trim.lower() if isinstance(trim, str) else trim
    if sides not in ("fb", "bf", "f", "b"):
        raise NumgradValueError(f"trim_zeros: trim is 'f', 'b' or 'fb', got {trim!r}")
    axes = normalize_axes("trim_zeros", axis, len(x.shape))
    positions = np.argwhere(numbers_of("trim_zeros", x))
    slices = [slice(None)] * len(x.shape)
    for k in axes:
        if len(positions):
            low, high = int(positions[:, k].min()), int(positions[:, k].max()) + 1
        else:  # nothing but zeros: trimmed from the back, or from the front, all are gone
            low, high = (x.shape[k], x.shape[k]) if sides == "f" else (0, 0)
        slices[k] = slice(low if "f" in sides else None, high if "b" in sides else None)
    return getitem(x, tuple(slices))


def _depth(arrays: Any) -> int:
    """How deeply lists are nested, which must be the same everywhere."""
    if isinstance(arrays, tuple):
        raise NumgradTypeError(
            "block: a tuple in the nesting; give lists of arrays, and as arrays no tuples"
        )
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise NumgradValueError("block: an empty list in the nesting has no shape")
    depths = {_depth(item) for item in arrays}
    if len(depths) > 1:
        raise NumgradValueError(
            f"block: lists are nested to depths {sorted(depths)}; every array must be as deep"
        )
    return depths.pop() + 1


def _assembled(arrays: Any, rank: int, level: int) -> Any:
    if not isinstance(arrays, list):
        array = as_operand(arrays)
        return reshape(array, (1,) * (rank - len(array.shape)) + tuple(array.shape))
    blocks = [_assembled(item, rank, level - 1) for item in arrays]
    return blocks[0] if len(blocks) == 1 else concat(blocks, axis=-level)


def _ranks(arrays: Any) -> list[int]:
    if isinstance(arrays, list):
        return [rank for item in arrays for rank in _ranks(item)]
    return [len(as_operand(arrays).shape)]


@composite(ref=np.block, method=False, smooth=True)
def block(arrays):
    """An array of nested lists of blocks: the innermost lists run along the last axis.

    Parameters
    ----------
    arrays : nested list of array_like
        Blocks, all nested equally deep.

    Returns
    -------
    Tensor
        With as many axes as lists are deep, or as the blocks have.

    Examples
    --------
    >>> a = ng.tensor([[1.0]])
    >>> ng.block([[a, 2 * a], [3 * a, 4 * a]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    depth = _depth(arrays)
    return copy(_assembled(arrays, max(depth, *_ranks(arrays)), depth))


@composite(ref=np.ix_, method=False, aliases=("ix_",), smooth=True)
def ix_(*arrays):
    """Vectors shaped so that together they index a grid; booleans become indices.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> rows, columns = ng.ix_([0, 1], [True, False, True])
    >>> rows.shape, columns
    ((2, 1), tensor([[0, 2]]))
    """
    results = []
    for k, array in enumerate(arrays):
        a = as_operand(array)
        if len(a.shape) != 1:
            raise NumgradValueError(f"ix_: operand {k} has shape {tuple(a.shape)}; give vectors")
        if a.dtype.kind == "b":
            a = numbers_of("ix_", a).nonzero()[0]
        elif not isinstance(array, np.ndarray) and a.shape[0] == 0:
            a = np.zeros(0, np.int64)
        results.append(reshape(a, (1,) * k + (-1,) + (1,) * (len(arrays) - k - 1)))
    return tuple(results)


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
    target = one_axis("rollaxis", start, rank + 1) if start >= 0 else start + rank
    if target < 0:
        raise NumgradValueError(f"rollaxis: start {start} of an operand of {rank} axes")
    target -= axis < target
    return permute_dims(x, tuple(range(rank))) if target == axis else moveaxis(x, axis, target)
