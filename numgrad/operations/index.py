"""Reading elements by index, and the writes that are the gradients of that.

Note [Indices]
--------------
A basic index (integers, slices, None, Ellipsis) gives a view: ``getitem``. Any other is split: its
basic part is applied first, the axes that have index arrays are brought together and merged into
one, and ``take`` reads along that. All of these are operations with gradients, so an advanced index
needs no gradient of its own.
"""

# Parts of an index are told apart by their type at run time.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength, broadcast_lengths
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.view import View
from numgrad.errors import NumgradIndexError, NumgradValueError
from numgrad.kernels.index import (
    gather_along_kernel,
    gather_kernel,
    scatter_add_along_kernel,
    scatter_add_kernel,
)
from numgrad.operations.arrangement import permute_dims
from numgrad.operations.shape import as_operand, broadcast_to, reshape

# What these operations, and those that write by index, are tried with.
INDICES = np.array([2, 0, 0])
ALONG = np.array([[2, 0], [1, 1]])

_MASK = (
    "the shape of what it selects depends on them; use np.where(mask, x, 0), or compute the mask "
    "with NumPy from what is known when the function is compiled"
)
_BASIC = (int, slice, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis, and gives a view."""
    kind = type(index)
    if kind is slice or kind is int or index is None or index is Ellipsis:
        return True
    if kind is tuple:
        for part in index:
            kind = type(part)
            if not (kind is slice or kind is int or part is None or part is Ellipsis):
                return False
        return True
    return False


def is_basic_part(part: Any) -> bool:
    """Whether a part of an index is an integer, a slice, None or Ellipsis."""
    return type(part) in _BASIC or isinstance(part, AbstractLength)


class Subscript(View):
    """The operation behind ``x[index]``: Note [Indices]."""

    @property
    def entry(self) -> Any:
        return self.__call__

    def __call__(self, x: Any, index: Any) -> Any:
        x = as_operand(x)
        parts = index if type(index) is tuple else (index,)
        if not all(map(is_basic_part, parts)):
            parts = tuple([_plain(part, x.shape) for part in parts])
            if not all(map(is_basic_part, parts)):
                return _advanced(x, parts)
        return bind(self, (x,), {"index": parts})


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
    errors=[(((3, 4),), {"index": (3,)}, "NumgradIndexError")],
)
def getitem(x, *, index):
    """Elements at an index, as with ``x[index]``: a view for slices and integers, else a copy."""
    if type(index) is not tuple:
        index = (index,)
    out = x[index]
    return out if isinstance(out, np.ndarray) else x[(*index, Ellipsis)]


getitem.vjp(x=lambda g, meta_x, index: getitem_backward(g, meta_x.shape, index))
getitem.calls = [
    (((3, 2),), lambda x: getitem(x, slice(0, 0))),
]


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


# ------------------------------------------------------------------------------- along an axis


def _outer_inner(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _check_range(operation: str, bad: int, indices: np.ndarray, shape: Any, axis: Any) -> None:
    if bad >= 0:
        value = indices.ravel()[bad]
        raise NumgradIndexError(
            f"{operation}: index {value} is out of range for "
            + (f"axis {axis} of shape {shape}" if axis is not None else f"{prod(shape)} elements")
            + "; indices run from -n to n - 1 for n elements"
        )


def check_integers(operation: str, indices: Any) -> None:
    """Raise unless ``indices``, an array or a ``Meta``, are integers or an empty list."""
    if indices.dtype.kind not in "iu":
        if indices.dtype == np.float64 and prod(indices.shape) == 0:
            return
        raise NumgradIndexError(
            f"{operation}: indices must be integers, got dtype {indices.dtype}; convert them with "
            "astype(int)"
        )


def _integers(operation: str, indices: np.ndarray) -> np.ndarray:
    check_integers(operation, indices)
    return np.asarray(indices, np.int64, order="C")  # ascontiguousarray gives 0-d an axis


def _flat(array: np.ndarray) -> np.ndarray:
    return (array if array.flags.c_contiguous else np.ascontiguousarray(array)).ravel()


@primitive(
    ref=np.take,
    linear=True,
    samples=[],
    errors=[],
)
def take(x, indices, *, axis=None):
    """Elements at integer indices along an axis; without one, of all elements in order.

    The axis is replaced by the axes of ``indices``. An index may repeat; negative ones count from
    the end.

    Returns
    -------
    Tensor
        Of the shape of ``x`` with the axis replaced by those of ``indices``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = ng.take(x, [2, 0, 2])
    >>> y.detach()
    tensor([3., 1., 3.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 0., 2.])
    """
    indices = _integers("take", indices)
    if axis is None:
        shape, sizes = indices.shape, (1, x.size, 1)
    else:
        (axis,) = normalize_axes("take", axis, x.ndim)
        shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
        sizes = _outer_inner(x.shape, axis)
    out = np.empty(shape, x.dtype)
    bad = gather_kernel(x.dtype)(_flat(x), indices.ravel(), out.ravel(), *sizes)
    _check_range("take", bad, indices, x.shape, axis)
    return out


@take.shape
def _take_result(x, indices, *, axis):
    check_integers("take", indices)
    if axis is None:
        return Meta(indices.shape, x.dtype)
    (axis,) = normalize_axes("take", axis, x.ndim)
    return Meta(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)


take.vjp(x=lambda g, indices, meta_x, axis: take_backward(g, indices, meta_x.shape, axis))
take.calls = [
    (((3, 2),), lambda x: take(x, INDICES, axis=0)),
    (((2, 3),), lambda x: take(x, np.array([[-1, 0], [5, 5]]))),
    (((3, 2),), lambda x: take(x, np.zeros(0, int), axis=0)),
]


@primitive(internal=True, linear=True, method=False)
def take_backward(x, indices, *, shape, axis=None):
    """Zeros of ``shape`` to which the operand is added at integer indices along an axis."""
    indices = _integers("take_backward", indices)
    out = np.zeros(shape, x.dtype)
    if axis is None:
        sizes = (1, out.size, 1)
    else:
        (axis,) = normalize_axes("take_backward", axis, len(shape))
        sizes = _outer_inner(shape, axis)
    bad = scatter_add_kernel(x.dtype)(_flat(x), indices.ravel(), out.ravel(), *sizes)
    _check_range("take_backward", bad, indices, shape, axis)
    return out


take_backward.shape(lambda x, indices, *, shape, axis: Meta(tuple(shape), x.dtype))
take_backward.vjp(x=lambda g, indices, axis: take(g, indices, axis=axis))
take_backward.calls = [
    (((3, 2),), lambda x: take_backward(x, INDICES, shape=(4, 2), axis=0)),
    (((3,),), lambda x: take_backward(x, INDICES, shape=(2, 2))),
]


def _shared_axis(operation: str, shape: Any, indices: Any, axis: int) -> int:
    """``axis`` from the front, if it is the only one along which shape and indices differ."""
    (axis,) = normalize_axes(operation, axis, len(shape))
    if (*shape[:axis], *shape[axis + 1 :]) != (*indices[:axis], *indices[axis + 1 :]):
        raise NumgradValueError(
            f"{operation}: operand of shape {tuple(shape)} and indices of shape {tuple(indices)} "
            f"may differ along axis {axis} only; take_along_axis broadcasts them"
        )
    return axis


@primitive(internal=True, linear=True, method=False)
def gather_along(x, indices, *, axis):
    """Elements at indices along an axis, one index for each element of the result."""
    indices = _integers("take_along_axis", indices)
    axis = _shared_axis("gather_along", x.shape, indices.shape, axis)
    o, n, r = _outer_inner(x.shape, axis)
    out = np.empty(indices.shape, x.dtype)
    bad = gather_along_kernel(x.dtype)(
        _flat(x), indices.ravel(), out.ravel(), o, n, indices.shape[axis], r
    )
    _check_range("take_along_axis", bad, indices, x.shape, axis)
    return out


@gather_along.shape
def _gather_along_result(x, indices, *, axis):
    check_integers("take_along_axis", indices)
    _shared_axis("gather_along", x.shape, indices.shape, axis)
    return Meta(indices.shape, x.dtype)


gather_along.vjp(
    x=lambda g, indices, meta_x, axis: gather_along_backward(g, indices, meta_x.shape, axis)
)
gather_along.calls = [
    (((2, 3),), lambda x: gather_along(x, ALONG, axis=1)),
    (((3, 2),), lambda x: gather_along(x, np.zeros((0, 2), int), axis=0)),
]


@primitive(internal=True, linear=True, method=False)
def gather_along_backward(x, indices, *, shape, axis):
    """Zeros of ``shape`` to which the operand is added at indices along an axis."""
    indices = _integers("take_along_axis", indices)
    axis = _shared_axis("gather_along_backward", shape, indices.shape, axis)
    o, n, r = _outer_inner(shape, axis)
    out = np.zeros(shape, x.dtype)
    bad = scatter_add_along_kernel(x.dtype)(
        _flat(x), indices.ravel(), out.ravel(), o, n, indices.shape[axis], r
    )
    _check_range("take_along_axis", bad, indices, shape, axis)
    return out


gather_along_backward.shape(
    lambda x, indices, *, shape, axis: Meta(tuple(shape), x.dtype),
)
gather_along_backward.vjp(x=lambda g, indices, axis: gather_along(g, indices, axis=axis))
gather_along_backward.calls = [
    (((2, 2),), lambda x: gather_along_backward(x, ALONG, shape=(2, 3), axis=1)),
]


@composite(ref=np.take_along_axis, smooth=True)
def take_along_axis(x, indices, axis=-1):
    """Elements at indices along an axis, as ``argsort`` and its like give them.

    Operand and indices have the same number of axes and broadcast against each other along all but
    ``axis``. With ``axis=None`` the operand is flattened and indices have one axis.

    Returns
    -------
    Tensor
        Of the length of ``indices`` along the axis.

    Examples
    --------
    >>> x = ng.tensor([[3.0, 1.0, 2.0]])
    >>> ng.take_along_axis(x, np.argsort(x.numpy(), axis=1), axis=1)
    tensor([[1., 2., 3.]])
    """
    x, indices = as_operand(x), as_operand(indices)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if len(x.shape) != len(indices.shape):
        raise NumgradValueError(
            f"take_along_axis: operand of shape {x.shape} and indices of shape {indices.shape} "
            "need the same number of axes; add axes of length 1"
        )
    (axis,) = normalize_axes("take_along_axis", axis, len(x.shape))
    try:
        around = broadcast_lengths(
            (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
            (*indices.shape[:axis], 1, *indices.shape[axis + 1 :]),
        )
    except ValueError:
        raise NumgradValueError(
            f"take_along_axis: operand of shape {x.shape} and indices of shape {indices.shape} do "
            f"not broadcast along the axes besides {axis}"
        ) from None
    for_x = (*around[:axis], x.shape[axis], *around[axis + 1 :])
    for_indices = (*around[:axis], indices.shape[axis], *around[axis + 1 :])
    if x.shape != for_x:
        x = broadcast_to(x, for_x)
    if indices.shape != for_indices:
        indices = broadcast_to(indices, for_indices)
    return gather_along(x, indices, axis=axis)


take_along_axis.calls = [
    (((2, 3),), lambda x: take_along_axis(x, ALONG, axis=1)),
]


# ------------------------------------------------------------------------------ any other index


def _plain(part: Any, shape: tuple[int, ...]) -> Any:
    """A part of an index as an integer, slice, None, Ellipsis, array of integers or of bools."""
    if is_basic_part(part) or isinstance(part, slice):
        return part
    return state.ground.index_part(part, shape)


def index_array(part: Any, shape: tuple[int, ...]) -> Any:
    """A part of an index as an integer or an array of integers or bools."""
    array = getattr(part, "_array", None)
    if array is None:
        if isinstance(part, list | tuple):
            part = [getattr(p, "_array", p) for p in part]
        try:
            array = np.asarray(part)
        except ValueError as error:
            raise NumgradIndexError(f"getitem: {part!r} is no index: {error}") from None
        if array.size == 0 and isinstance(part, list):
            array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        kind = f"of dtype {array.dtype}" if array.dtype.kind in "fc" else type(part).__name__
        raise NumgradIndexError(
            f"getitem: an index {kind} into shape {shape}; indices are integers, slices, None, "
            "Ellipsis, and arrays of integers or booleans"
        )
    if array.ndim == 0 and array.dtype.kind in "iu":
        return int(array)
    # the caller may change the array before the backward reads it
    return array.copy() if array is part or hasattr(part, "_array") else array


def _advanced(x: Any, parts: tuple) -> Any:
    shape = tuple(x.shape)
    parts = _expand(parts, shape)
    # the basic part keeps the axes that arrays index, masks expanded to one array for each axis
    basic: list[Any] = []
    arrays: list[tuple[int, np.ndarray]] = []  # axis of the view, indices
    axis = source = 0  # in the view, in ``x``
    first = last = None  # positions of the first and last array part, as written
    separated = False
    for position, part in enumerate(parts):
        if isinstance(part, AbstractLength):
            part = part.as_number()
        if _is_array(part) or type(part) is int:
            if last is not None and position != last + 1:
                separated = True
            first = position if first is None else first
            last = position
        if part is None:
            basic.append(None)
            axis += 1
        elif isinstance(part, slice):
            basic.append(part)
            axis += 1
            source += 1
        elif type(part) is int:
            arrays.append((axis, np.asarray(part)))
            basic.append(slice(None))
            axis += 1
            source += 1
        elif part.dtype.kind == "b" and not isinstance(part, np.ndarray):
            part._array.refuse("indexing with a mask", _MASK)
        elif part.dtype.kind == "b":
            span = part.ndim
            if part.shape != shape[source : source + span]:
                raise NumgradIndexError(
                    f"getitem: a mask of shape {part.shape} meets axes of lengths "
                    f"{shape[source : source + span]} of shape {shape}; they must be equal"
                )
            if span == 0:  # x[True] is x[None], x[False] is empty
                basic.append(None)
                arrays.append((axis, np.arange(int(part))))
                axis += 1
            for found in part.nonzero() if span else ():
                arrays.append((axis, found))
                basic.append(slice(None))
                axis += 1
                source += 1
        else:
            arrays.append((axis, part))
            basic.append(slice(None))
            axis += 1
            source += 1
    if any(b is None or b != slice(None) for b in basic):
        x = getitem(x, tuple(basic))
    axes = [a for a, _ in arrays]
    flat = _merge(shape, [(x.shape[a], found) for a, found in arrays])
    # NumPy puts the new axes first if something stands between the arrays
    place = 0 if separated else axes[0]
    rest = [a for a in range(len(x.shape)) if a not in axes]
    order = (*rest[:place], *axes, *rest[place:])
    if order != tuple(range(len(order))):
        x = permute_dims(x, order)
    if len(axes) > 1:
        inside = prod(x.shape[place : place + len(axes)])
        x = reshape(x, (*x.shape[:place], inside, *x.shape[place + len(axes) :]))
    return take(x, flat, axis=place)


def _is_array(part: Any) -> bool:
    """Whether a part of an index is an array; in a trace, one of which the numbers come later."""
    return isinstance(part, np.ndarray) or hasattr(part, "grad_fn")


def _expand(parts: tuple, shape: tuple[int, ...]) -> tuple:
    """The index with Ellipsis replaced by slices, covering every axis."""
    used = sum(
        (p.ndim if _is_array(p) and p.dtype.kind == "b" else 1)
        for p in parts
        if p is not None and p is not Ellipsis
    )
    if used > len(shape):
        raise NumgradIndexError(
            f"getitem: {used} indices for an operand of shape {shape}, which has {len(shape)} axes"
        )
    dots = [k for k, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        raise NumgradIndexError("getitem: an index can have one Ellipsis (...) only")
    fill = (slice(None),) * (len(shape) - used)
    if dots:
        return (*parts[: dots[0]], *fill, *parts[dots[0] + 1 :]) if fill else _no_dots(parts)
    return (*parts, *fill)


def _no_dots(parts: tuple) -> tuple:
    return tuple(p for p in parts if p is not Ellipsis)


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
    """As ``_merge`` of unknown numbers: what is out of range becomes an index beyond the end."""
    flat: Any = 0
    outside: Any = False
    size: Any = 1
    for n, a in arrays:
        outside = outside | (a < -n) | (a >= n)
        flat = flat * n + np.where(a < 0, a + n, a)
        size = size * n
    return np.where(outside, size, flat)
