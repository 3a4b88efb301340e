"""New arrays that are an operand with some of its elements written over: at indices, by masks.

Note [Writes]
-------------
Each of these returns a new array; what ``name_`` does in place follows from it. Two operations do
the work: ``index_put`` at a basic index, which writes through a view, and ``put`` at positions of
the flattened operand, to which every other index is translated. Where a position repeats, the last
value in C order stays, and only that one has a gradient: ``last_writes`` finds it again in the
backward. Values are converted to the dtype of the operand if that loses no more than precision
(NumPy's ``same_kind``).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import broadcast_lengths
from numgrad.core.axis import normalize_axes
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import OPS, Meta, bind, complete, composite, primitive, state
from numgrad.core.op import Op
from numgrad.core.primitive import Primitive, checked
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.kernels.index import scatter_add
from numgrad.operations.choice import where
from numgrad.operations.extend import pad_constant
from numgrad.operations.index import getitem, is_basic_part, plain_part, without_numbers
from numgrad.operations.shape import as_index, as_operand, astype, broadcast_to, ravel, reshape
from numgrad.operations.take import as_integers, check_integers, check_range, in_a_row, take

# ------------------------------------------------------------------------------ what is written


def check_cast(operation: str, values: Any, dtype: np.dtype) -> None:
    """Raise unless ``values`` may be written into an array of ``dtype``."""
    check_dtype(operation, dtype)
    if np.can_cast(values.dtype, dtype, "same_kind"):
        return
    if values.shape == () and values.dtype.kind in "iu" and dtype.kind in "iu":
        # a Python integer arrives as int64: what counts is its value
        bounds = np.iinfo(dtype)
        if bounds.min <= int(values) <= bounds.max:
            return
    raise NumgradTypeError(
        f"{operation}: values of dtype {values.dtype} cannot be written into an array of dtype "
        f"{dtype}; convert one of them with astype"
    )


def check_dtypes(operation: str, values: Meta, dtype: np.dtype) -> None:
    """``check_cast`` where the value of a single integer is not known yet."""
    if values.shape == () and values.dtype.kind in "iu" and dtype.kind in "iu":
        return
    check_cast(operation, values, dtype)


def converted(operation: str, values: Any, dtype: np.dtype) -> Any:
    """``values`` with the given dtype, where ``check_cast`` allows it."""
    check_cast(operation, values, dtype)
    return values if values.dtype == dtype else astype(values, dtype=dtype)


def as_number(operation: str, value: Any, dtype: np.dtype) -> Any:
    """A number or 0-d array as an operand with the given dtype."""
    value = as_operand(value)
    if tuple(value.shape) != ():
        raise NumgradValueError(
            f"{operation}: the value must be a number or 0-d, got shape {tuple(value.shape)}; use "
            "index_put or where to write several values"
        )
    return converted(operation, value, dtype)


def _fitted(operation: str, values: Any, shape: tuple[int, ...]) -> Any:
    """``values`` without leading axes of length 1 too many, if they broadcast to ``shape``."""
    lengths = tuple(values.shape)
    surplus = max(len(lengths) - len(shape), 0)
    trailing = lengths[surplus:]
    matches = all(n in (1, m) for n, m in zip(reversed(trailing), reversed(shape), strict=False))
    if not matches or any(n != 1 for n in lengths[:surplus]):
        raise NumgradValueError(
            f"{operation}: values of shape {lengths} do not broadcast to the shape {shape} of what "
            "is written; their axes, matched from the right, must be equal to it or 1"
        )
    return reshape(values, trailing) if surplus else values


# ---------------------------------------------------------------------------- at flat positions


def index_axis(operation: str, axis: Any, ndim: int) -> int:
    """An axis as an integer that is not negative."""
    return normalize_axes(operation, as_index(operation, axis), ndim)[0]


def check_indices(operation: str, indices: np.ndarray, shape: Any, axis: int | None) -> np.ndarray:
    """``indices`` as int64, in range for an axis or, without one, for all elements."""
    indices = as_integers(operation, indices)
    n = prod(shape) if axis is None else shape[axis]
    if indices.size and (int(indices.min()) < -n or int(indices.max()) >= n):
        n = int(n)
        outside = (indices < -n) | (indices >= n)
        check_range(operation, int(outside.argmax()), indices, shape, axis)
    return indices


@primitive(internal=True, differentiable=False, method=False)
def last_writes(indices, *, size):
    """Whether each index into ``size`` elements is the last of those that are equal to it."""
    flat = as_integers("last_writes", indices).ravel()
    order = np.arange(flat.size)
    writer = np.empty(size, np.int64)
    writer[flat] = order
    return (writer[flat] == order).reshape(indices.shape)


last_writes.shape(lambda indices, *, size: Meta(indices.shape, np.dtype(bool)))


@primitive(linear=True, method=False, keeps_dtype=True)
def put(x, indices, values, *, accumulate=False):
    """The operand with values written at indices into its elements in C order.

    Parameters
    ----------
    x
        Array of any shape.
    indices
        Integers of any shape; negative ones count from the end.
    values
        Taken in C order; if they are fewer than the indices, they are repeated as in ``np.put``.
    accumulate
        Add to what is there, also where an index repeats; otherwise the last value stays.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    NumgradIndexError
        If an index is out of range or no integer.
    NumgradTypeError
        If the values do not fit into the dtype of ``x``.
    NumgradValueError
        If there are more values than indices, or none for some.

    Examples
    --------
    >>> ng.put(ng.zeros((2, 3)), [0, -1], [1.0, 2.0])
    tensor([[1., 0., 0.],
            [0., 0., 2.]])
    """
    check_cast("put", values, x.dtype)
    if accumulate:  # the kernel checks the range
        indices = as_integers("put", indices)
    else:
        indices = check_indices("put", indices, x.shape, None)
    shape, indices = indices.shape, indices.ravel()
    if values.size > max(indices.size, 1) or (indices.size and not values.size):
        raise NumgradValueError(
            f"put: {values.size} values for {indices.size} indices; there must be as many, or "
            "fewer, which are repeated"
        )
    values = in_a_row(values.astype(x.dtype, copy=False))
    if values.size != indices.size:
        values = np.resize(values, indices.size)
    out = np.array(x, order="C")
    flat = out.reshape(-1)
    if accumulate:
        outside = scatter_add(values, indices, flat, 1, flat.size, 1)
        if outside >= 0:
            check_range("put", outside, indices.reshape(shape), x.shape, None)
    else:
        flat[indices] = values
    return out


@put.shape
def _put_result(x, indices, values, *, accumulate):
    check_integers("put", indices)
    check_dtypes("put", values, x.dtype)
    return x


def _put_values(g, indices, meta_x, meta_values, accumulate):
    selected = take(g, indices)
    if not accumulate:
        selected = where(last_writes(indices, size=prod(meta_x.shape)), selected, 0)
    size, count = prod(meta_values.shape), prod(selected.shape)
    if size == count:
        return reshape(selected, meta_values.shape)
    if size == 1:
        return reshape(OPS["sum"](selected), meta_values.shape)
    rounds = -(-count // size) if size else 0  # how often the values were repeated, rounded up
    padded = pad_constant(ravel(selected), widths=((0, rounds * size - count),))
    return reshape(OPS["sum"](reshape(padded, (rounds, size)), axis=0), meta_values.shape)


put.no_derivative("indices")
put.vjp(
    x=lambda g, indices, accumulate: g if accumulate else put(g, indices, 0), values=_put_values
)


@put.batch
def _batched_put(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, indices, values = operands
    count, given = prod(indices.shape), prod(values.shape)
    if indices.batched or given not in (1, count):
        return NotImplemented  # positions beyond an example would be those of the next
    source = values.flat().repeated(size)
    if given != count:
        source = apply("broadcast_to", source, shape=(size, count))
    written = x.flat().repeated(size), apply("reshape", indices.value, shape=(count,)), source
    out = apply("index_add" if params["accumulate"] else "index_copy", *written, axis=1)
    return apply("reshape", out, shape=(size, *x.shape))


def positions_of(shape: tuple[int, ...], select: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Positions in C order of the elements ``select`` picks from an array of ``shape``.

    Coordinates are picked one axis at a time, from arrays that are broadcast and take no memory.
    """
    positions = np.zeros(np.shape(select(np.broadcast_to(0, shape))), np.int64)
    stride = 1
    for axis in reversed(range(len(shape))):
        along = (np.arange(shape[axis]) * stride).reshape((-1, *(1,) * (len(shape) - axis - 1)))
        positions += select(np.broadcast_to(along, shape))
        stride *= shape[axis]
    positions.flags.writeable = False  # nothing changes it: it can be saved without a copy
    return positions


# ---------------------------------------------------------------------------------- at an index


class IndexPut(Primitive):
    """The operation behind ``x[index] = values``: Note [Writes]."""

    @property
    def entry(self) -> Any:
        return self.__call__

    def __call__(self, *args: Any, **params: Any) -> Any:
        (x, values), params = complete(self, args, params)
        x, values = as_operand(x), as_operand(values)
        shape = tuple(x.shape)
        entries = index_parts(self.name, shape, params["index"])
        check_cast(self.name, values, x.dtype)
        if all(map(is_basic_part, entries)):
            region = state.ground.selected_shape(self.name, shape, entries)
            return bind(self, (x, _fitted(self.name, values, region)), params | {"index": entries})
        if _is_mask(entries) and (
            len(values.shape) <= len(shape) - len(entries[0].shape) or without_numbers(entries[0])
        ):
            return _put_masked(x, values, entries[0], params["accumulate"])
        positions = state.ground.positions(self.name, shape, entries)
        region = tuple(positions.shape)
        values = _fitted(self.name, values, region)
        if tuple(values.shape) not in ((), region):
            values = broadcast_to(values, region)
        return put(x, positions, values, accumulate=params["accumulate"])


def _is_mask(entries: tuple) -> bool:
    return len(entries) == 1 and hasattr(entries[0], "grad_fn") and entries[0].dtype.kind == "b"


def _put_masked(x: Any, values: Any, mask: Any, accumulate: bool) -> Any:
    """``x`` with values where a mask is true that is known only later."""
    inner = len(x.shape) - len(mask.shape)
    if len(values.shape) > inner or tuple(x.shape[: len(mask.shape)]) != tuple(mask.shape):
        raise NumgradValueError(
            f"index_put: a mask of shape {tuple(mask.shape)} whose numbers are not known yet takes "
            "one value, or one for each of the axes behind it; use np.where(mask, values, x), or "
            "np.place(x, mask, values), which puts them one after the other"
        )
    mask = reshape(mask, (*mask.shape, *(1,) * inner))
    values = converted("index_put", values, x.dtype)
    return where(mask, x + values if accumulate else values, x)


def index_parts(
    operation: str, shape: tuple[int, ...], index: Any, plain: Callable[..., Any] = plain_part
) -> tuple:
    """An index in brackets as a tuple of parts, of which ``plain`` makes arrays."""
    try:
        return tuple([plain(p, shape) for p in (index if type(index) is tuple else (index,))])
    except NumgradIndexError as error:
        reason = str(error).removeprefix("getitem: ")
        raise NumgradIndexError(f"{operation}: {reason}") from None


def _index_put(**options: Any) -> Any:
    return lambda function: IndexPut(function, **options)


@_index_put(
    linear=True,
    samples=[
        (((3, 4), (2,)), {"index": (slice(None, None, -2), 1)}),
        (((3, 4), (3, 1)), {"index": Ellipsis, "accumulate": True}),
        (((3,), (1, 3)), {"index": None}),
        (((), ()), {"index": ()}),
    ],
    keeps_dtype=True,
)
def index_put(x, values, *, index, accumulate=False):
    """The operand with values written at an index, as ``x[index] = values`` does in place.

    Parameters
    ----------
    x
        Array of any shape.
    values
        Array that broadcasts to the shape of ``x[index]``.
    index
        Whatever may stand in brackets: integers, slices, None, Ellipsis, arrays of integers or
        booleans, and tuples of them.
    accumulate
        Add to what is there, also where an index repeats; otherwise the last value stays.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    NumgradIndexError
        If the index does not suit the shape of ``x``.
    NumgradTypeError
        If the values do not fit into the dtype of ``x``.
    NumgradValueError
        If the values do not broadcast to the shape of ``x[index]``.

    Examples
    --------
    >>> x = ng.zeros(4)
    >>> ng.index_put(x, [1.0, 2.0, 3.0], index=[0, 2, 2])
    tensor([1., 0., 3., 0.])
    >>> ng.index_put(x, [1.0, 2.0, 3.0], index=[0, 2, 2], accumulate=True)
    tensor([1., 0., 5., 0.])
    """
    out = np.array(x, order="C")
    if accumulate:
        out[index] += values.astype(x.dtype, copy=False)
    else:
        out[index] = values
    return out


@index_put.shape
def _index_put_result(x, values, *, index, accumulate):
    check_dtypes("index_put", values, x.dtype)
    return x


index_put.vjp(
    x=lambda g, index, accumulate: g if accumulate else index_put(g, 0, index=index),
    values=lambda g, index: getitem(g, index),
)


@index_put.batch
def _batched_index_put(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, values = operands
    entries = params["index"] if isinstance(params["index"], tuple) else (params["index"],)
    if not all(map(is_basic_part, entries)):
        return NotImplemented
    slices = sum(isinstance(part, slice) for part in entries)
    rest = x.ndim - sum(part is not None and part is not Ellipsis for part in entries)
    region = slices + rest + sum(part is None for part in entries)
    index = (slice(None), *entries)
    return bind(op, (x.repeated(size), values.aligned(region)), params | {"index": index})


@composite(method=False, keeps_dtype=True, smooth=True)
def fill(x, value):
    """An array of the shape and dtype of the operand, all elements equal to a number.

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
    >>> ng.fill(ng.zeros(2), 3.0)
    tensor([3., 3.])
    """
    x = as_operand(x)
    return index_put(x, as_number("fill", value, x.dtype), index=Ellipsis)


def _check_source(operation: str, x: Any, source: Any, shape: tuple[int, ...]) -> None:
    """Check the source, which must have the shape of what is written."""
    if tuple(source.shape) != shape:
        raise NumgradValueError(
            f"{operation}: source of shape {tuple(source.shape)} must have the shape {shape} of "
            "what is written; use broadcast_to or reshape"
        )
    check_cast(operation, source, x.dtype)


@composite(keeps_dtype=True, smooth=True)
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
    target = slice(start, end, step)
    length = len(checked("slice_scatter", x, range(x.shape[axis]).__getitem__, target))
    _check_source("slice_scatter", x, source, (*x.shape[:axis], length, *x.shape[axis + 1 :]))
    return index_put(x, source, index=(*(slice(None),) * axis, target))


@composite(keeps_dtype=True, smooth=True)
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


@composite(keeps_dtype=True, smooth=True)
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


def _mask(operation: str, mask: Any) -> Any:
    mask = as_operand(mask)
    if mask.dtype != np.bool_:
        raise NumgradTypeError(
            f"{operation}: the mask has dtype {mask.dtype} and must be boolean; compare, as in "
            "mask != 0"
        )
    return mask


def _common_shape(operation: str, x: Any, mask: Any) -> tuple[int, ...]:
    try:
        return broadcast_lengths(x.shape, mask.shape)
    except ValueError:
        raise NumgradValueError(
            f"{operation}: operand of shape {tuple(x.shape)} and mask of shape "
            f"{tuple(mask.shape)} do not broadcast; axes are matched from the right and must be "
            "equal or 1"
        ) from None


@composite(smooth=True, keeps_dtype=True)
def masked_fill(x, mask, value):
    """The operand with a number where a mask is true; both broadcast against each other.

    Parameters
    ----------
    x
        Array.
    mask
        Booleans.
    value
        Number or 0-d array, which may require grad.

    Returns
    -------
    Tensor
        Of the shape that ``x`` and ``mask`` broadcast to, and of the dtype of ``x``.

    Raises
    ------
    NumgradTypeError
        If the mask is not boolean, or the value does not fit into the dtype of ``x``.
    NumgradValueError
        If the value is not 0-d, or shapes do not broadcast.

    Examples
    --------
    >>> ng.masked_fill(ng.tensor([1.0, -2.0]), [False, True], 0.0)
    tensor([1., 0.])
    """
    x, mask = as_operand(x), _mask("masked_fill", mask)
    _common_shape("masked_fill", x, mask)
    return where(mask, as_number("masked_fill", value, x.dtype), x)


@primitive(internal=True, differentiable=False, method=False)
def mask_ranks(mask, *, size):
    """How many elements of a mask are true before each one, in C order; 0 where it is false."""
    counts = np.cumsum(mask).reshape(mask.shape)
    if mask.size and counts.flat[-1] > size:
        raise NumgradValueError(
            f"masked_scatter: the mask is true for {counts.flat[-1]} elements and the source has "
            f"{size}; it needs one for each"
        )
    return np.where(mask, counts - 1, 0)


mask_ranks.shape(lambda mask, *, size: Meta(mask.shape, np.dtype(np.int64)))


@composite(smooth=True, keeps_dtype=True)
def masked_scatter(x, mask, source):
    """The operand with the elements of another array, in order, where a mask is true.

    Parameters
    ----------
    x
        Array; it and the mask broadcast against each other.
    mask
        Booleans.
    source
        Array of at least as many elements as the mask has true ones; the rest is not used.

    Returns
    -------
    Tensor
        Of the shape that ``x`` and ``mask`` broadcast to, and of the dtype of ``x``.

    Raises
    ------
    NumgradTypeError
        If the mask is not boolean, or the source does not fit into the dtype of ``x``.
    NumgradValueError
        If the source has too few elements, or shapes do not broadcast.

    Examples
    --------
    >>> ng.masked_scatter(ng.zeros(3), [True, False, True], [1.0, 2.0])
    tensor([1., 0., 2.])
    """
    x, mask, source = as_operand(x), _mask("masked_scatter", mask), as_operand(source)
    shape = _common_shape("masked_scatter", x, mask)
    source = ravel(converted("masked_scatter", source, x.dtype))
    mask = broadcast_to(mask, shape)
    ranks = mask_ranks(mask, size=source.shape[0])
    if not source.shape[0]:  # nothing is written: any element will do to read
        source = broadcast_to(OPS["sum"](source), (1,))
    return where(mask, take(source, ranks), x)
