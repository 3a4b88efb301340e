"""Writing along an axis, at the same indices for all or at one index for each element.

Duplicates, the conversion of values and what a gradient reaches are those of Note [Writes].
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.axis import normalize_axes
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import Meta, bind, composite, ones, primitive, state
from numgrad.core.op import Op
from numgrad.errors import NumgradValueError
from numgrad.kernels.index import scatter_add as add_rows
from numgrad.operations import write
from numgrad.operations.arrangement import roll
from numgrad.operations.choice import where
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_operand, broadcast_to, ravel, reshape
from numgrad.operations.take import add_along, check_integers, in_a_row, outer_inner, take

# ------------------------------------------------------------------- the same indices for all


def _along(operation: str, x: np.ndarray, index: np.ndarray, axis: Any) -> tuple[np.ndarray, int]:
    """Indices with one axis, in range, and the axis they are for, not negative."""
    axis = write.index_axis(operation, axis, x.ndim)
    if index.ndim > 1:
        raise _several_axes(operation, index.shape)
    return write.check_indices(operation, index, x.shape, axis).reshape(-1), axis


def _check_source(
    operation: str, x: np.ndarray, index: np.ndarray, source: np.ndarray, axis: int
) -> None:
    write.check_cast(operation, source, x.dtype)
    _check_shapes(operation, x, index, source, axis)


def _check_shapes(operation: str, x: Any, index: Any, source: Any, axis: int) -> None:
    count = prod(index.shape)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if source.ndim != len(shape) or source.shape != shape:
        raise NumgradValueError(
            f"{operation}: {count} indices along axis {axis} of shape {x.shape} need a source "
            f"of shape {shape}, got {source.shape}; use broadcast_to or reshape"
        )


def _along_result(operation: str, x: Meta, index: Meta, source: Meta | None, axis: Any) -> Meta:
    """Checks of shapes and dtypes; the result is like ``x``."""
    axis = write.index_axis(operation, axis, x.ndim)
    check_integers(operation, index)
    if index.ndim > 1:
        raise _several_axes(operation, index.shape)
    if source is not None:
        write.check_dtypes(operation, source, x.dtype)
        _check_shapes(operation, x, index, source, axis)
    return x


def _several_axes(operation: str, shape: Any) -> NumgradValueError:
    return NumgradValueError(
        f"{operation}: the index must have one axis, got shape {shape}; use scatter for an index "
        "for each element"
    )


def _written(x: np.ndarray, index: np.ndarray, source: np.ndarray, axis: int) -> np.ndarray:
    out = np.array(x, order="C")
    out[(slice(None),) * axis + (index,)] = source
    return out


def _kept_values(g: Any, index: Any, meta_x: Any, axis: int) -> Any:
    """Gradient of what was written at indices of an axis: of each last write, else zero."""
    size = meta_x.shape[axis]
    index = reshape(index, (-1,))
    lengths = (-1, *(1,) * (meta_x.ndim - 1 - axis % meta_x.ndim))
    last = reshape(write.last_writes(index, size=size), lengths)
    return where(last, take(g, index, axis=axis), 0)


@primitive(linear=True, keeps_dtype=True)
def index_add(x, index, source, *, axis, alpha=1):
    """The operand with an array, times ``alpha``, added at indices of an axis.

    Parameters
    ----------
    x
        Array with axes.
    index
        Integers along one axis; negative ones count from the end, all that repeat are added.
    source
        Array of the shape of ``x``, with the length of ``index`` along ``axis``.
    axis
        What the indices are for.
    alpha
        Number.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    NumgradIndexError
        If an index is out of range or no integer.
    NumgradTypeError
        If ``alpha * source`` does not fit into the dtype of ``x``.
    NumgradValueError
        If the shapes do not match.

    Examples
    --------
    >>> ng.index_add(ng.zeros((2, 2)), [1, 1], ng.ones((2, 2)), axis=0)
    tensor([[0., 0.],
            [2., 2.]])
    """
    index, axis = _along("index_add", x, index, axis)
    if alpha != 1:
        source = source * alpha
    _check_source("index_add", x, index, source, axis)
    out = np.array(x, order="C")
    values = in_a_row(source.astype(x.dtype, copy=False))
    add_rows(values, index, out.reshape(-1), *outer_inner(x.shape, axis))
    return out


def _added(g, index, axis, alpha):
    selected = take(g, reshape(index, (-1,)), axis=axis)
    return selected if alpha == 1 else selected * alpha.conjugate()


@index_add.shape
def _index_add_result(x, index, source, *, axis, alpha):
    dtype = source.dtype if alpha == 1 else np.result_type(source.dtype, alpha)
    return _along_result("index_add", x, index, Meta(source.shape, dtype), axis)


index_add.no_derivative("index")
index_add.vjp(x=lambda g: g, source=_added)


@primitive(linear=True, keeps_dtype=True)
def index_copy(x, index, source, *, axis):
    """The operand with an array written at indices of an axis.

    Parameters and errors are those of ``index_add``. Where an index repeats, the last write stays.

    Parameters
    ----------
    source
        Array of the shape of ``x``, but along the axis of the length of ``index``.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.index_copy(ng.zeros(3), [0, -1], [1.0, 2.0], axis=0)
    tensor([1., 0., 2.])
    """
    index, axis = _along("index_copy", x, index, axis)
    _check_source("index_copy", x, index, source, axis)
    return _written(x, index, source, axis)


index_copy.shape(
    lambda x, index, source, *, axis: _along_result("index_copy", x, index, source, axis)
)
index_copy.no_derivative("index")
index_copy.vjp(x=lambda g, index, axis: index_fill(g, index, 0, axis=axis), source=_kept_values)


@primitive(linear=True, keeps_dtype=True)
def index_fill(x, index, value, *, axis):
    """The operand with a number written at indices of an axis.

    Indices and errors are those of ``index_add``; the value may be a 0-d array that requires grad.

    Parameters
    ----------
    value
        Number, or array without axes.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.index_fill(ng.zeros(3), [0, -1], 5.0, axis=0)
    tensor([5., 0., 5.])
    """
    if value.ndim:
        raise _no_number(value.shape)
    index, axis = _along("index_fill", x, index, axis)
    write.check_cast("index_fill", value, x.dtype)
    return _written(x, index, value, axis)


@index_fill.shape
def _index_fill_result(x, index, value, *, axis):
    if value.ndim:
        raise _no_number(value.shape)
    write.check_dtypes("index_fill", value, x.dtype)
    return _along_result("index_fill", x, index, None, axis)


def _no_number(shape: Any) -> NumgradValueError:
    return NumgradValueError(
        f"index_fill: the value must be a number or 0-d, got shape {shape}; use index_copy to "
        "write an array"
    )


index_fill.no_derivative("index")
index_fill.vjp(x=lambda g, index, axis: index_fill(g, index, 0, axis=axis), value=_kept_values)


@index_add.batch
@index_copy.batch
@index_fill.batch
def _batched_writes(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, index, values = operands
    if index.batched or (values.batched and op is index_fill):
        return NotImplemented
    (axis,) = normalize_axes(op.name, params["axis"], x.ndim)
    source = values.value if op is index_fill else values.repeated(size)
    return bind(op, (x.repeated(size), index.value, source), params | {"axis": axis + 1})


# ---------------------------------------------------------------- an index for each element


@primitive(internal=True, differentiable=False, method=False)
def flat_positions(indices, *, shape, axis, caller):
    """Positions in C order of what indices for one axis, and their own place, point at."""
    indices = write.check_indices(caller, indices, shape, axis)
    wrapped = indices
    if indices.size and indices.min() < 0:
        wrapped = np.where(indices < 0, indices + shape[axis], indices)
    if len(shape) == 1:
        return wrapped.copy()
    stride = 1
    positions = np.zeros(indices.shape, np.int64)
    for k in reversed(range(len(shape))):
        lengths = (-1, *(1,) * (len(shape) - k - 1))
        positions += stride * (
            wrapped if k == axis else np.arange(indices.shape[k]).reshape(lengths)
        )
        stride *= shape[k]
    return positions


@flat_positions.shape
def _positions_result(indices, *, shape, axis, caller):
    check_integers(caller, indices)
    return Meta(indices.shape, np.dtype(np.int64))


def scattered(operation: str, x: Any, index: Any, source: Any, axis: Any) -> tuple[Any, Any, Any]:
    """Operand, positions and what to write there, checked."""
    x, index, source, axis = _fitting(operation, x, index, source, axis)
    shape = tuple(x.shape)
    return x, flat_positions(index, shape=shape, axis=axis, caller=operation), source


def _fitting(operation: str, x: Any, index: Any, source: Any, axis: Any) -> tuple:
    """Operand, indices, what to write there, and the axis, checked but for the indices' range."""
    x, index, source = as_operand(x), as_operand(index), as_operand(source)
    shape, lengths = tuple(x.shape), tuple(index.shape)
    axis = write.index_axis(operation, axis, len(shape))
    write.check_cast(operation, source, x.dtype)
    extent = tuple(source.shape)
    if len(lengths) != len(shape) or any(
        m > n for k, (m, n) in enumerate(zip(lengths, shape, strict=True)) if k != axis
    ):
        raise NumgradValueError(
            f"{operation}: an index of shape {lengths} does not fit an operand of shape {shape}; "
            f"it needs as many axes, none of them longer but axis {axis}"
        )
    if extent and (
        len(extent) != len(lengths) or any(m > n for m, n in zip(lengths, extent, strict=True))
    ):
        raise NumgradValueError(
            f"{operation}: an index of shape {lengths} reaches outside a source of shape {extent}; "
            "the source needs as many axes, none of them shorter"
        )
    if extent and extent != lengths:
        source = getitem(source, tuple([slice(m) for m in lengths]))
    return x, index, source, axis


def _added_along(operation: str, x: Any, index: Any, source: Any, axis: Any) -> Any:
    """The operand with a source added, which needs no positions where indices cover the rest."""
    x, index, source, axis = _fitting(operation, x, index, source, axis)
    shape, lengths = tuple(x.shape), tuple(index.shape)
    if (
        tuple(source.shape) == lengths
        and shape[:axis] == lengths[:axis]
        and (shape[axis + 1 :] == lengths[axis + 1 :])
    ):
        return add_along(x, index, source, axis=axis, caller=operation)
    positions = flat_positions(index, shape=shape, axis=axis, caller=operation)
    return write.put(x, positions, source, accumulate=True)


@composite(smooth=True, keeps_dtype=True)
def scatter(x, index, source, *, axis, reduce=None):
    """The operand with elements of another array written at one index each along an axis.

    For two axes and ``axis=0`` the result has ``out[index[i, j], j] = source[i, j]``.

    Parameters
    ----------
    x
        Array with axes.
    index
        Integers, negative ones counting from the end, with as many axes as ``x``, none of them
        longer than in ``x`` (but ``axis``) or in ``source``.
    source
        Array of which the part that ``index`` covers is used, or a number.
    axis
        What the indices are for.
    reduce
        ``"add"`` or ``"multiply"`` what is there by the source, also where an index repeats;
        by default the source replaces it, where an index repeats the last one.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    NumgradIndexError
        If an index is out of range or no integer.
    NumgradTypeError
        If the source does not fit into the dtype of ``x``.
    NumgradValueError
        If the shapes do not match, or ``reduce`` is something else.

    Examples
    --------
    >>> x = ng.ones((2, 3))
    >>> ng.scatter(x, [[0, 1, 1]], [[5.0, 6.0, 7.0]], axis=0)
    tensor([[5., 1., 1.],
            [1., 6., 7.]])
    >>> ng.scatter(x, [[0, 0]], 3.0, axis=1, reduce="multiply")
    tensor([[9., 1., 1.],
            [1., 1., 1.]])
    """
    if reduce not in (None, "add", "multiply"):
        raise NumgradValueError(
            f"scatter: reduce {reduce!r} is not available; use 'add', 'multiply' or None"
        )
    if reduce == "add":
        return _added_along("scatter", x, index, source, axis)
    x, positions, source = scattered("scatter", x, index, source, axis)
    return multiply_at(x, positions, source) if reduce else write.put(x, positions, source)


@composite(smooth=True, keeps_dtype=True)
def scatter_add(x, index, source, *, axis):
    """The operand with elements of another array added at one index each along an axis.

    As ``scatter`` with ``reduce="add"``.

    Parameters
    ----------
    source
        As in ``scatter``.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.scatter_add(ng.zeros(3), [0, 0, 2], [1.0, 2.0, 3.0], axis=0)
    tensor([3., 0., 3.])
    """
    return _added_along("scatter_add", x, index, source, axis)


@primitive(internal=True, method=False, smooth=True, keeps_dtype=True)
def multiply_at(x, positions, values):
    """The operand with factors at positions of its elements in C order."""
    out = np.array(x, order="C")
    factors = np.broadcast_to(values.astype(x.dtype, copy=False), positions.shape)
    np.multiply.at(out.reshape(-1), positions.ravel(), factors.ravel())
    return out


@primitive(internal=True, differentiable=False, method=False, outputs=True)
def group_ranks(positions):
    """Positions sorted into groups of equal ones.

    The order that sorts them, how many of its group are before and behind each in that order, and
    the order that sorts back.
    """
    flat = positions.ravel()
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    each = np.arange(flat.size)
    before = each - np.searchsorted(flat, flat, "left")
    behind = np.searchsorted(flat, flat, "right") - 1 - each
    return order, before, behind, np.argsort(order)


@group_ranks.shape
def _ranks_result(positions):
    return (Meta((prod(positions.shape),), np.dtype(np.int64)),) * 4


def _products_before(factors: Any, rank: Any, back: int) -> Any:
    """Product of the factors of the same group before each one, exclusive.

    ``rank`` counts them from 0; ``back`` is 1, or -1 for the factors that follow. The number of
    factors in a product doubles in each round.
    """
    before = where(rank >= 1, roll(factors, back), 1)
    known = state.ground.numbers(rank)
    reach, longest = 1, factors.shape[0] - 1 if known is None else int(np.max(known, initial=0))
    while reach < longest:
        # ``where`` beside the factor, so that an infinite one stays in its group
        before = before * where(rank > reach, roll(before, back * reach), 1)
        reach *= 2
    return before


def _factors(g, x, positions, values):
    """Gradient of the factors: the operand times the other factors, without a division."""
    shape = tuple(positions.shape)
    order, before, behind, back = group_ranks(positions)
    targets = take(ravel(positions), order)
    factors = take(ravel(broadcast_to(values, shape)), order)
    others = _products_before(factors, before, 1) * _products_before(factors, behind, -1)
    result = take(g, targets) * np.conj(take(x, targets) * others)
    return reshape(take(result, back), shape)


multiply_at.shape(lambda x, positions, values: x)
multiply_at.no_derivative("positions")
multiply_at.vjp(
    x=lambda g, meta_x, positions, values: (
        g * np.conj(multiply_at(ones(meta_x.shape, meta_x.dtype), positions, values))
    ),
    values=_factors,
)
