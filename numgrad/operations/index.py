"""Reading elements by an index in brackets.

Note [Indices]
--------------
A basic index (integers, slices, None, Ellipsis) gives a view: ``getitem``. Any other is split: its
basic part is applied first, the axes that have index arrays are brought together and merged into
one, and ``take`` reads along that. All of these are operations with gradients, so an advanced index
needs no gradient of its own.
"""

# Parts of an index are told apart by their type at run time.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength, broadcast_lengths, made
from numgrad.core.batching import BatchOperand, with_parameters
from numgrad.core.declare import (
    OPS,
    Meta,
    Op,
    View,
    bind,
    interpret,
    primitive,
    refuse_mask,
    state,
)  # fmt: skip
from numgrad.errors import NumgradError, NumgradIndexError
from numgrad.operations.arrangement import permute_dims
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.take import take

_MASK = (
    "the shape of what it selects depends on them; index with the mask alone, use "
    "np.where(mask, x, 0), or compute the mask with NumPy from what is known when the function is "
    "compiled"
)
_BASIC = (int, slice, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis, and gives a view."""
    kind = type(index)
    if kind is slice or kind is int or index is None or index is Ellipsis:
        return True
    if kind is tuple:
        for entry in index:
            kind = type(entry)
            if not (kind is slice or kind is int or entry is None or entry is Ellipsis):
                return False
        return True
    return False


def is_basic_part(entry: Any) -> bool:
    """Whether a part of an index is an integer, a slice, None or Ellipsis."""
    return type(entry) in _BASIC or isinstance(entry, AbstractLength)


class Subscript(View):
    """The operation behind ``x[index]``: Note [Indices]."""

    @property
    def entry(self) -> Any:
        return self.__call__

    def __call__(self, x: Any, index: Any) -> Any:
        x = as_operand(x)
        entries = index if type(index) is tuple else (index,)
        if not all(map(is_basic_part, entries)):
            entries = tuple([plain_part(entry, x.shape) for entry in entries])
            if not all(map(is_basic_part, entries)):
                return _advanced(x, entries)
        return interpret(self, (x,), {"index": entries})


def _subscript(**options: Any) -> Any:
    return lambda function: Subscript(function, **options)


@_subscript(
    internal=True,
    linear=True,
    method=False,
    samples=[
        (((3, 4),), {"index": (slice(None, None, -1), 1)}),
        (((3, 4),), {"index": (Ellipsis, None, slice(1, 3))}),
    ],
)
def getitem(x, *, index):
    """Elements at an index, as with ``x[index]``: a view for slices and integers, else a copy."""
    if type(index) is not tuple:
        index = (index,)
    out = x[index]
    return out if isinstance(out, np.ndarray) else x[(*index, Ellipsis)]


getitem.vjp(x=lambda g, meta_x, index: getitem_backward(g, meta_x.shape, index))
getitem.batch(with_parameters(lambda x, size, index: {"index": (slice(None), *_as_tuple(index))}))


def _as_tuple(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


@primitive(
    internal=True,
    linear=True,
    method=False,
    samples=[(((3,),), {"shape": (3, 4), "index": (Ellipsis, 1)})],
)
def getitem_backward(x, *, shape, index):
    """Zeros of ``shape`` with the operand written at a basic index."""
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


getitem_backward.shape(lambda x, *, shape, index: Meta(tuple(shape), x.dtype))
getitem_backward.vjp(x=lambda g, index: getitem(g, index))


@getitem_backward.batch
def _batched_getitem_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape, index = params["shape"], _as_tuple(params["index"])
    written = np.broadcast_to(np.empty(()), shape)[index].ndim
    changed = {"shape": (size, *shape), "index": (slice(None), *index)}
    return bind(op, (x.aligned(written),), changed)


# ------------------------------------------------------------------------------ any other index


def plain_part(entry: Any, shape: tuple[int, ...]) -> Any:
    """A part of an index as an integer, slice, None, Ellipsis, array of integers or of bools."""
    if is_basic_part(entry) or isinstance(entry, slice):
        return entry
    return state.ground.index_part(entry, shape)


def index_array(entry: Any, shape: tuple[int, ...]) -> Any:
    """A part of an index as an integer or an array of integers or bools."""
    array = getattr(entry, "_array", None)
    if array is None:
        if entry.__class__ is not np.ndarray:
            refuse_mask("getitem", entry)
        if isinstance(entry, list | tuple):
            entry = [getattr(p, "_array", p) for p in entry]
        try:
            array = np.asarray(entry)
        except ValueError as error:
            raise NumgradIndexError(f"getitem: {entry!r} is no index: {error}") from None
        if array.size == 0 and isinstance(entry, list):
            array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        kind = f"of dtype {array.dtype}" if array.dtype.kind in "fc" else type(entry).__name__
        raise NumgradIndexError(
            f"getitem: an index {kind} into shape {shape}; indices are integers, slices, None, "
            "Ellipsis, and arrays of integers or booleans"
        )
    if array.ndim == 0 and array.dtype.kind in "iu":
        return int(array)
    # the caller may change the array before the backward reads it
    return array.copy() if array is entry or hasattr(entry, "_array") else array


def _advanced(x: Any, entries: tuple) -> Any:
    whole, shape = x, tuple(x.shape)
    if len(entries) == 1 and without_numbers(entries[0]):
        return state.ground.selected(x, entries[0])
    entries = _expand(entries, shape)
    # the basic part keeps the axes that arrays index, masks expanded to one array for each axis
    basic: list[Any] = []
    arrays: list[tuple[int, np.ndarray]] = []  # axis of the view, indices
    axis = source = 0  # in the view, in ``x``
    first = last = None  # positions of the first and last array part, as written
    separated = compared = False
    for position, entry in enumerate(entries):
        if isinstance(entry, AbstractLength):
            entry = entry.as_number()
        if _is_array(entry) or type(entry) is int:
            if last is not None and position != last + 1:
                separated = True
            first = position if first is None else first
            last = position
        if entry is Ellipsis:
            continue
        if entry is None:
            basic.append(None)
            axis += 1
        elif isinstance(entry, slice):
            basic.append(entry)
            axis += 1
            source += 1
        elif type(entry) is int:
            arrays.append((axis, np.asarray(entry)))
            basic.append(slice(None))
            axis += 1
            source += 1
        elif entry.dtype.kind == "b":
            if not isinstance(entry, np.ndarray):
                entry = entry._array.outside("indexing with a mask", _MASK)
                compared = True
            span = entry.ndim
            lengths = shape[source : source + span]
            if entry.shape != lengths and not _chooses_nothing(entry.shape, lengths):
                raise NumgradIndexError(
                    f"getitem: a mask of shape {entry.shape} meets axes of lengths "
                    f"{lengths} of shape {shape}; they must be equal"
                )
            if span == 0:  # x[True] is x[None], x[False] is empty
                basic.append(None)
                arrays.append((axis, np.arange(int(entry))))
                axis += 1
            for result in entry.nonzero() if span else ():
                arrays.append((axis, result))
                basic.append(slice(None))
                axis += 1
                source += 1
        else:
            arrays.append((axis, entry))
            basic.append(slice(None))
            axis += 1
            source += 1
    if any(b is None or b != slice(None) for b in basic):
        x = getitem(x, tuple(basic))
    axes = [a for a, _ in arrays]
    flat = _merge(shape, [(x.shape[a], result) for a, result in arrays])
    if compared and isinstance(flat, np.ndarray):
        flat = made(flat)
    # NumPy puts the new axes first if something stands between the arrays
    target = 0 if separated else axes[0]
    rest = [a for a in range(len(x.shape)) if a not in axes]
    order = (*rest[:target], *axes, *rest[target:])
    if order != tuple(range(len(order))):
        x = permute_dims(x, order)
    if len(axes) > 1:
        inside = prod(x.shape[target : target + len(axes)])
        x = reshape(x, (*x.shape[:target], inside, *x.shape[target + len(axes) :]))
    result = take(x, flat, axis=target)
    if all(len(a.shape) == 0 for _, a in arrays) and not isinstance(flat, np.ndarray):
        state.ground.shows_row(whole, result)
    return result


def _chooses_nothing(mask: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    """Whether a mask without elements fits these axes, as in NumPy where it has none of them."""
    empty = len(mask) == len(lengths) and 0 in mask
    return empty and all(k == 0 or k == n for k, n in zip(mask, lengths, strict=True))


def without_numbers(entry: Any) -> bool:
    """Whether a part of an index is a mask whose numbers come later, or differ by example."""
    if isinstance(entry, np.ndarray) or not _is_array(entry) or entry.dtype.kind != "b":
        return False
    try:
        entry._array.outside("indexing with a mask", _MASK)
    except NumgradError:
        return True
    return False


def _is_array(entry: Any) -> bool:
    """Whether a part of an index is an array; in a trace, one of which the numbers come later."""
    return isinstance(entry, np.ndarray) or hasattr(entry, "grad_fn")


def _expand(entries: tuple, shape: tuple[int, ...]) -> tuple:
    """The index with slices for what Ellipsis stands for, covering every axis."""
    used = sum(
        (p.ndim if _is_array(p) and p.dtype.kind == "b" else 1)
        for p in entries
        if p is not None and p is not Ellipsis
    )
    if used > len(shape):
        raise NumgradIndexError(
            f"getitem: {used} indices for an operand of shape {shape}, which has {len(shape)} axes"
        )
    dots = [k for k, p in enumerate(entries) if p is Ellipsis]
    if len(dots) > 1:
        raise NumgradIndexError("getitem: an index can have one Ellipsis (...) only")
    fill = (slice(None),) * (len(shape) - used)
    if not dots:
        return (*entries, *fill)
    # an Ellipsis of no axes stays: it stands between what is written before and after it
    return (*entries[: dots[0]], *(fill or (Ellipsis,)), *entries[dots[0] + 1 :])


def _merge(shape: tuple[int, ...], arrays: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Index arrays of adjacent axes as one array of indices into the merged axis."""
    if len(arrays) == 1:
        return arrays[0][1]
    try:
        broadcast_lengths(*[a.shape for _, a in arrays])
    except ValueError:
        shapes = ", ".join(str(a.shape) for _, a in arrays)
        raise NumgradIndexError(
            f"getitem: index arrays of shapes {shapes} do not broadcast against each other"
        ) from None
    if not all(isinstance(a, np.ndarray) for _, a in arrays):
        return _merge_later(arrays)
    flat: Any = 0
    for n, a in arrays:
        a = a.astype(np.int64)
        outside = (a < -n) | (a >= n)
        if outside.any():
            raise NumgradIndexError(
                f"getitem: index {a[outside].ravel()[0]} is out of range for an axis of length {n} "
                f"of shape {shape}"
            )
        flat = flat * n + np.where(a < 0, a + n, a)
    return flat


def _merge_later(arrays: list[tuple[Any, Any]]) -> Any:
    """Merge indices of unknown values; one out of range becomes one beyond the end."""
    flat: Any = 0
    outside: Any = False
    size: Any = 1
    for n, a in arrays:
        a = OPS["astype"](a, np.int64)
        outside = outside | (a < -n) | (a >= n)
        flat = flat * n + np.where(a < 0, a + n, a)
        size = size * n
    return np.where(outside, size, flat)
