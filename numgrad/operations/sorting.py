"""Sorted elements, and the orders that sort them.

Note [Order]
------------
Elements are ordered as NumPy does: NaN is last, complex numbers are compared by their real, then by
their imaginary part. ``descending`` gives the exact reverse, equal elements apart, so NaN is first.
The gradient goes through the stable order: of equal elements, the first in ``x`` is that in front.
"""

from collections.abc import Sequence
from functools import wraps
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.declare import BatchOperand, Meta, Op, bind, composite, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.sorting import LEAST, can_order, sorted_rows, stable_order as order_row
from numgrad.operations.join import stack
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.shared_rules import along_axis
from numgrad.operations.take import gather_along_backward, take_along_axis

_INT64 = np.dtype(np.int64)
_FEW = 4096
"""Below so many elements the second sort of ``_order_of_groups`` costs more than it saves."""
_MANY = 1 << 14
"""Elements from which on the stable order takes no longer than NumPy's order of any kind."""


def plain_axis(operation: str, x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    """The operand and the axis along which it is ordered."""
    check_dtype(operation, x.dtype)
    if axis is None:
        return x.reshape(-1), 0
    if isinstance(axis, tuple | list):
        raise NumgradTypeError(f"{operation}: axis must be one integer or None, got {axis!r}")
    return x, normalize_axes(operation, axis, x.ndim)[0]


def ordered_shape(operation: str, x: Any, axis: int | None) -> tuple:
    """The shape of what is ordered along an axis, or as a row."""
    if axis is None:
        return (prod(x.shape),)
    normalize_axes(operation, axis, x.ndim)
    return x.shape


class _OneElement(NamedTuple):
    """A number as NumPy's functions that give places see it: a row of one element."""

    shape: tuple = (1,)
    ndim: int = 1


def _places_shape(operation: str, x: Any, axis: int | None) -> tuple:
    """The shape of places, by ``ordered_shape``."""
    return ordered_shape(operation, x if len(x.shape) else _OneElement(), axis)


def _places_along_axis(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    if x.ndim == 0 and params["axis"] is not None:
        normalize_axes(op.name, params["axis"], 1)
        params = {**params, "axis": None}
    return along_axis(op, operands, params, size)


def _of_numpy(operation: str) -> Any:
    """Let errors of NumPy's be ours, with the operation named."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def wrapped(*args: Any, **params: Any) -> Any:
            try:
                return function(*args, **params)
            except (TypeError, ValueError) as error:
                kind = NumgradTypeError if isinstance(error, TypeError) else NumgradValueError
                raise kind(f"{operation}: {error}") from None

        return wrapped

    return decorate


# ---------------------------------------------------------------------------------- whole orders


def stable_order(x: np.ndarray, axis: int) -> np.ndarray:
    """Places in stable order: ``np.argsort(x, axis, kind="stable")``."""
    if not can_order(x.dtype, x.shape[axis]):
        return _order_of_groups(x, axis)
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    out = np.empty(rows.shape, np.int64)
    length = rows.shape[-1]
    for row, indices in zip(rows.reshape(-1, length), out.reshape(-1, length), strict=True):
        order_row(row, indices)
    return np.moveaxis(out, -1, axis)


def _order_of_groups(x: np.ndarray, axis: int) -> np.ndarray:
    """The stable order along a short axis.

    NumPy's fast sorts are not stable: what is equal is put in order by a second one, of integers
    that tell groups of equal elements and places apart.
    """
    if x.size < _FEW or x.dtype.itemsize not in (4, 8) or x.dtype.kind == "c":
        return np.argsort(x, axis=axis, kind="stable")
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    order = np.argsort(x, axis=-1)
    y = np.take_along_axis(x, order, -1)
    before, after = y[..., :-1], y[..., 1:]
    rises = after > before
    if y.dtype.kind == "f":
        rises |= np.isnan(after) > np.isnan(before)
    if not rises.all():
        groups = np.zeros(x.shape, np.int64)
        np.cumsum(rises, axis=-1, out=groups[..., 1:])
        groups *= n
        order += groups
        order.sort(axis=-1)
        order -= groups
    return np.moveaxis(order, -1, axis)


def _order(x: np.ndarray, axis: int, kind: Any, stable: Any, descending: bool) -> np.ndarray:
    if descending:
        n = x.shape[axis]
        return n - 1 - np.flip(_order(np.flip(x, axis), axis, kind, True, False), axis)
    if stable or kind in ("stable", "mergesort"):
        return stable_order(x, axis)
    if x.shape[axis] < _MANY:
        return np.argsort(x, axis=axis, kind=kind, stable=stable)
    np.argsort(x[:0], axis=axis, kind=kind, stable=stable)  # to refuse what is no kind
    return stable_order(x, axis)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    ref=np.argsort,
    differentiable=False,
    samples=[(((3, 4),), {"axis": 0}), (((3, 4),), {"axis": None})],
)
def argsort(x, *, axis=-1, kind=None, stable=None, descending=False):
    """Indices that sort along an axis, NaN last; without one, those of the flattened operand.

    Parameters
    ----------
    kind : {None, 'quicksort', 'mergesort', 'heapsort', 'stable'}
        NumPy's name of an algorithm.
    stable : bool
        Whether equal elements stay in their order, which None leaves open.
    descending : bool
        Whether the largest comes first; equal elements stay in their order then, NaN is first.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of ``x``, or with one axis, as of a number.

    Examples
    --------
    >>> ng.argsort(ng.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    >>> ng.argsort(ng.tensor([3.0, 1.0, 3.0]), descending=True)
    tensor([0, 2, 1])
    """
    x, axis = plain_axis("argsort", np.atleast_1d(x), axis)
    return _of_numpy("argsort")(_order)(x, axis, kind, stable, descending)


argsort.shape(
    lambda x, *, axis, kind, stable, descending: Meta(_places_shape("argsort", x, axis), _INT64)
)
argsort.batch(_places_along_axis)


def _sorted(x: np.ndarray, axis: int, kind: Any, stable: Any) -> np.ndarray:
    if x.dtype.kind not in "fiu" or axis != x.ndim - 1 or x.size < 2 * LEAST:
        return np.sort(x, axis=axis, kind=kind, stable=stable)
    np.sort(x[:0], axis=axis, kind=kind, stable=stable)  # to refuse what is no kind
    return sorted_rows(x)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    ref=np.sort,
    samples=[(((3, 4),), {"axis": 0}), (((3, 4),), {"axis": None, "descending": False})],
)
def sort(x, *, axis=-1, kind=None, stable=None, descending=False):
    """Elements in order along an axis, NaN last; without one, those of the flattened operand.

    The method gives a sorted copy too, where NumPy's sorts in place. ``argsort`` gives the indices,
    and of equal elements the gradient goes to the places that its stable order names.

    Parameters
    ----------
    kind : {None, 'quicksort', 'mergesort', 'heapsort', 'stable'}
        NumPy's name of an algorithm; results do not depend on it.
    stable : bool
        As ``kind``.
    descending : bool
        Whether the largest comes first, and NaN before it.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis.

    Examples
    --------
    >>> x = ng.tensor([3.0, 1.0, 2.0], requires_grad=True)
    >>> y = ng.sort(x)
    >>> y.detach()
    tensor([1., 2., 3.])
    >>> (y * y.detach()).sum().backward()
    >>> x.grad
    tensor([3., 1., 2.])
    """
    x, axis = plain_axis("sort", x, axis)
    y = _of_numpy("sort")(_sorted)(x, axis, kind, stable)
    return np.ascontiguousarray(np.flip(y, axis)) if descending else y


sort.shape(
    lambda x, *, axis, kind, stable, descending: Meta(ordered_shape("sort", x, axis), x.dtype)
)
sort.batch(along_axis)


def _sort_vjp(g, x, axis, descending):
    flat = reshape(x, (-1,)) if axis is None else x
    along = 0 if axis is None else axis
    order = argsort(flat, axis=along, stable=True, descending=descending)
    back = gather_along_backward(g, order, shape=tuple(flat.shape), axis=along)
    return reshape(back, tuple(x.shape)) if axis is None else back


def _sort_jvp(t_x, x, axis, descending):
    if axis is None:
        t_x, x, axis = reshape(t_x, (-1,)), reshape(x, (-1,)), 0
    order = argsort(x, axis=axis, stable=True, descending=descending)
    return take_along_axis(t_x, order, axis=axis)


sort.vjp(x=_sort_vjp).jvp(_sort_jvp)
sort.kink(x=([1.0, np.nan, 1.0, 0.0], [1, 1, 1, 1]))


@composite(ref="numpy.sort_complex", method=False, smooth=True)
def sort_complex(x):
    """Elements in order along the last axis, as complex numbers.

    Returns
    -------
    Tensor
        Of the shape of ``x`` and of complex dtype.

    Examples
    --------
    >>> ng.sort_complex(ng.tensor([2.0 + 1j, 2.0 - 1j, 1.0]))
    tensor([1.+0.j, 2.-1.j, 2.+1.j], dtype=complex128)
    """
    y = sort(as_operand(x), axis=-1)
    if y.dtype.kind == "c":
        return y
    single = y.dtype.itemsize <= 2 and y.dtype.kind in "iu"
    return y.astype(np.complex64 if single else np.complex128)


@primitive(internal=True, method=False, differentiable=False)
def lexical_order(keys, *, axis):
    """Indices that sort by the last of several keys, what is equal there by the one before."""
    return np.lexsort(keys, axis=axis)


lexical_order.shape(lambda keys, *, axis: Meta(keys.shape[1:], _INT64))


@composite(ref=np.lexsort, method=False, differentiable=False)
def lexsort(keys, axis=-1):
    """Indices that sort by several keys: by the last one, equal elements by the one before it.

    Parameters
    ----------
    keys
        Sequence of arrays of the same shape, or an array with one more axis in front.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of a key.

    Examples
    --------
    >>> ng.lexsort([ng.tensor([3, 1, 2]), ng.tensor([1.0, 1.0, 0.0])])
    tensor([2, 1, 0])
    """
    if isinstance(keys, list | tuple):
        keys = [as_operand(key) for key in keys]
        if not keys:
            raise NumgradTypeError("lexsort: needs at least one key")
        if len({tuple(key.shape) for key in keys}) > 1:
            shapes = ", ".join(str(tuple(key.shape)) for key in keys)
            raise NumgradValueError(f"lexsort: keys have shapes {shapes}, which must be the same")
        keys = stack(keys)
    keys = as_operand(keys)
    if len(keys.shape) < 2:
        keys = reshape(keys, (*keys.shape, 1))  # each number is a key of one element
        return reshape(lexical_order(keys, axis=-1), ())
    axis = one_axis("lexsort", axis, len(keys.shape) - 1)
    return lexical_order(keys, axis=axis)


# --------------------------------------------------------------------------------- parts of orders


@primitive(
    lowering="numgrad.compiler.lower.library_calls", ref=np.argpartition, differentiable=False
)
def argpartition(x, *, kth, axis=-1, kind="introselect"):
    """Indices that put an element at the place it has in order, smaller ones before it.

    Parameters
    ----------
    kth : int or sequence of ints
        Places that are to hold the elements of the sorted operand.
    kind : {'introselect'}
        NumPy's name of the algorithm.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of ``x``, or with one axis, as of a number.

    Examples
    --------
    >>> i = ng.argpartition(ng.tensor([7.0, 1.0, 5.0, 3.0]), 1)
    >>> i[1]
    tensor(3)
    """
    x, axis = plain_axis("argpartition", np.atleast_1d(x), axis)
    return _of_numpy("argpartition")(np.argpartition)(x, kth, axis=axis, kind=kind)


argpartition.shape(
    lambda x, *, kth, axis, kind: Meta(_places_shape("argpartition", x, axis), _INT64)
)
argpartition.batch(_places_along_axis)


@composite(ref=np.partition)
def partition(x, kth, axis=-1, kind="introselect"):
    """The operand with an element at the place it has in order, smaller ones before it.

    The method gives a copy too, where NumPy's changes the array.

    Parameters
    ----------
    kth : int or sequence of ints
        Places that are to hold the elements of the sorted operand.
    kind : {'introselect'}
        NumPy's name of the algorithm.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis.

    Examples
    --------
    >>> ng.partition(ng.tensor([7.0, 1.0, 5.0, 3.0]), 2)[2]
    tensor(5.)
    """
    x = as_operand(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return take_along_axis(x, argpartition(x, kth=kth, axis=axis, kind=kind), axis=axis)


partition.kink(x=([2.0, 1.0, 1.0], [1, 1, 1]), params={"kth": 0})


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    method=False,
    differentiable=False,
)
def argtopk(x, *, k, axis, largest, ordered):
    """Indices of the ``k`` largest or smallest elements along an axis, in order or in any."""
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    if k > n // 8:  # one sort is cheaper than a partition and a sort
        result = _order(x, x.ndim - 1, None, True, largest)[..., :k]
    else:
        rank = max(k - 1, 0)
        partition = np.argpartition(x, n - 1 - rank if largest else rank, axis=-1)
        result = partition[..., n - k :] if largest else partition[..., :k]
        if ordered:
            result = np.sort(result, axis=-1)
            order = _order(np.take_along_axis(x, result, -1), x.ndim - 1, None, True, largest)
            result = np.take_along_axis(result, order, -1)
    return np.ascontiguousarray(np.moveaxis(result, -1, axis))


@argtopk.shape
def _argtopk_result(x, *, k, axis, largest, ordered):
    return Meta((*x.shape[:axis], k, *x.shape[axis + 1 :]), _INT64)


@argtopk.batch
def _batched_argtopk(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    return bind(op, (operands[0].value,), {**params, "axis": params["axis"] + 1})


class TopK(NamedTuple):
    """The largest or smallest elements along an axis, and where they are."""

    values: Any
    indices: Any


@composite(smooth=True)
def topk(x, k, axis=-1, largest=True, sorted=True):
    """The ``k`` largest elements along an axis, and their indices.

    Parameters
    ----------
    k : int
        Number of elements.
    largest : bool
        False for the smallest ones. NaN counts as larger than any number.
    sorted : bool
        Whether the largest (or smallest) comes first; else they come in any order.

    Returns
    -------
    TopK
        ``values`` and ``indices``, with length ``k`` along the axis.

    Raises
    ------
    NumgradValueError
        If there are fewer than ``k`` elements along the axis.

    Examples
    --------
    >>> x = ng.tensor([1.0, 5.0, 3.0], requires_grad=True)
    >>> values, indices = ng.topk(x, 2)
    >>> values.detach(), indices
    (tensor([5., 3.]), tensor([1, 2]))
    >>> values.sum().backward()
    >>> x.grad
    tensor([0., 1., 1.])
    """
    x, k = as_operand(x), as_index("topk", k, "k")
    if not len(x.shape):
        raise NumgradValueError("topk: needs an axis, got a 0-d operand")
    axis = one_axis("topk", axis, len(x.shape))
    if not (k >= 0 and k <= x.shape[axis]):
        raise NumgradValueError(
            f"topk: k={k} of an axis of length {x.shape[axis]} of shape {tuple(x.shape)}; it is "
            "between 0 and the length"
        )
    indices = argtopk(x, k=k, axis=axis, largest=bool(largest), ordered=bool(sorted))
    return TopK(take_along_axis(x, indices, axis=axis), indices)
