"""Reading elements at integers along an axis, and the writes that are the gradients of that."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import Meta, Op, bind, broadcast_lengths, composite, one_axis, primitive
from numgrad.errors import NumgradIndexError, NumgradValueError
from numgrad.kernels import index as kernels
from numgrad.operations.shape import as_operand, broadcast_to, reshape


def outer_inner(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """How many elements are before an axis, along it, and after it."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def check_range(operation: str, bad: int, indices: np.ndarray, shape: Any, axis: Any) -> None:
    """Raise for the index at place ``bad`` of the flat indices, which is -1 if none is."""
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


def as_integers(operation: str, indices: np.ndarray) -> np.ndarray:
    """Indices as contiguous int64."""
    check_integers(operation, indices)
    return np.asarray(indices, np.int64, order="C")  # ascontiguousarray gives 0-d an axis


def in_a_row(array: np.ndarray) -> np.ndarray:
    """The elements in a row, a view where they lie so."""
    return (array if array.flags.c_contiguous else np.ascontiguousarray(array)).ravel()


@primitive(ref=np.take, linear=True, samples=[])
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
    indices = as_integers("take", indices)
    if axis is None:
        shape, sizes = indices.shape, (1, x.size, 1)
    else:
        axis = one_axis("take", axis, x.ndim)
        shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
        sizes = outer_inner(x.shape, axis)
    out = np.empty(shape, x.dtype)
    bad = kernels.gather(in_a_row(x), indices.ravel(), out.ravel(), *sizes)
    check_range("take", bad, indices, x.shape, axis)
    return out


@take.shape
def _take_result(x, indices, *, axis):
    check_integers("take", indices)
    if axis is None:
        return Meta(indices.shape, x.dtype)
    axis = one_axis("take", axis, x.ndim)
    return Meta(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)


take.no_derivative("indices")
take.vjp(x=lambda g, indices, meta_x, axis: take_backward(g, indices, meta_x.shape, axis))


@take.batch
def _batched_take(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, indices = operands
    axis = params["axis"]
    if axis is None:
        x, axis = x.flat(), 0
    axis = one_axis(op.name, axis, x.ndim)
    if not indices.batched:
        return bind(op, (x.value, indices.value), {"axis": axis + 1})
    if not x.batched:
        out = bind(op, (x.value, indices.value), {"axis": axis})
        return apply("moveaxis", out, source=axis, destination=0)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    where = _along_examples(indices, (*before, prod(indices.shape), *after), axis, size)
    out = apply("gather_along", x.value, where, axis=axis + 1)
    return apply("reshape", out, shape=(size, *before, *indices.shape, *after))


def _along_examples(indices: BatchOperand, shape: tuple[int, ...], axis: int, size: int) -> Any:
    """Indices into ``axis`` of each example, one for each element: as ``gather_along`` has them.

    ``shape`` is that of the examples with the indices, flattened, along ``axis``.
    """
    count = shape[axis]
    lonely = (size, *(1,) * axis, count, *(1,) * (len(shape) - axis - 1))
    value = apply("reshape", indices.value, shape=lonely)
    return apply("broadcast_to", value, shape=(size, *shape))


@primitive(internal=True, linear=True, method=False)
def take_backward(x, indices, *, shape, axis=None):
    """Zeros of ``shape`` to which the operand is added at integer indices along an axis."""
    indices = as_integers("take_backward", indices)
    out = np.zeros(shape, x.dtype)
    if axis is None:
        sizes = (1, out.size, 1)
    else:
        axis = one_axis("take_backward", axis, len(shape))
        sizes = outer_inner(shape, axis)
    bad = kernels.scatter_add(in_a_row(x), indices.ravel(), out.ravel(), *sizes)
    check_range("take_backward", bad, indices, shape, axis)
    return out


take_backward.shape(lambda x, indices, *, shape, axis: Meta(tuple(shape), x.dtype))
take_backward.no_derivative("indices")
take_backward.vjp(x=lambda g, indices, axis: take(g, indices, axis=axis))


@take_backward.batch
def _batched_take_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, indices = operands
    axis, target = params["axis"], tuple(params["shape"])
    shape = target
    if axis is None:
        shape, axis = (prod(target),), 0
    axis = one_axis(op.name, axis, len(shape))
    whole = {"shape": (size, *shape), "axis": axis + 1}
    if indices.batched:
        around = (*shape[:axis], prod(indices.shape), *shape[axis + 1 :])
        value = apply("reshape", x.repeated(size), shape=(size, *around))
        where = _along_examples(indices, around, axis, size)
        out = apply("gather_along_backward", value, where, **whole)
    else:
        out = bind(op, (x.value, indices.value), whole)
    return out if shape == target else apply("reshape", out, shape=(size, *target))


def _shared_axis(operation: str, shape: Any, indices: Any, axis: int) -> int:
    """``axis`` from the front, if it is the only one along which shape and indices differ."""
    axis = one_axis(operation, axis, len(shape))
    if (*shape[:axis], *shape[axis + 1 :]) != (*indices[:axis], *indices[axis + 1 :]):
        raise NumgradValueError(
            f"{operation}: operand of shape {tuple(shape)} and indices of shape {tuple(indices)} "
            f"may differ along axis {axis} only; take_along_axis broadcasts them"
        )
    return axis


@primitive(internal=True, linear=True, method=False)
def gather_along(x, indices, *, axis):
    """Elements at indices along an axis, one index for each element of the result."""
    indices = as_integers("take_along_axis", indices)
    axis = _shared_axis("gather_along", x.shape, indices.shape, axis)
    o, n, r = outer_inner(x.shape, axis)
    out = np.empty(indices.shape, x.dtype)
    bad = kernels.gather_along(
        in_a_row(x), indices.ravel(), out.ravel(), o, n, indices.shape[axis], r
    )
    check_range("take_along_axis", bad, indices, x.shape, axis)
    return out


@gather_along.shape
def _gather_along_result(x, indices, *, axis):
    check_integers("take_along_axis", indices)
    _shared_axis("gather_along", x.shape, indices.shape, axis)
    return Meta(indices.shape, x.dtype)


gather_along.no_derivative("indices")
gather_along.vjp(
    x=lambda g, indices, meta_x, axis: gather_along_backward(g, indices, meta_x.shape, axis)
)


@primitive(internal=True, linear=True, method=False)
def gather_along_backward(x, indices, *, shape, axis):
    """Zeros of ``shape`` to which the operand is added at indices along an axis."""
    indices = as_integers("take_along_axis", indices)
    axis = _shared_axis("gather_along_backward", shape, indices.shape, axis)
    o, n, r = outer_inner(shape, axis)
    out = np.zeros(shape, x.dtype)
    bad = kernels.scatter_add_along(
        in_a_row(x), indices.ravel(), out.ravel(), o, n, indices.shape[axis], r
    )
    check_range("take_along_axis", bad, indices, shape, axis)
    return out


gather_along_backward.shape(lambda x, indices, *, shape, axis: Meta(tuple(shape), x.dtype))
gather_along_backward.no_derivative("indices")
gather_along_backward.vjp(x=lambda g, indices, axis: gather_along(g, indices, axis=axis))


@primitive(internal=True, linear=True, method=False, keeps_dtype=True)
def add_along(x, indices, source, *, axis, caller):
    """The operand to which another is added at indices along an axis, one for each element."""
    indices = as_integers(caller, indices)
    axis = _shared_axis(caller, x.shape, indices.shape, axis)
    o, n, r = outer_inner(x.shape, axis)
    out = np.array(x, order="C")
    source = in_a_row(source.astype(x.dtype, copy=False))
    bad = kernels.scatter_add_along(
        source, indices.ravel(), out.reshape(-1), o, n, indices.shape[axis], r
    )
    check_range(caller, bad, indices, x.shape, axis)
    return out


@add_along.shape
def _add_along_result(x, indices, source, *, axis, caller):
    check_integers(caller, indices)
    _shared_axis(caller, x.shape, indices.shape, axis)
    return x


add_along.no_derivative("indices")
add_along.vjp(x=lambda g: g, source=lambda g, indices, axis: gather_along(g, indices, axis=axis))


@add_along.vjp_kernel
def _add_along_backward(call, mask, g, indices=None):
    selected = gather_along(g, indices, axis=call.params["axis"]) if mask & 4 else None
    return [np.array(g) if mask & 1 else None, None, selected]  # new arrays: not copied once more


@gather_along.batch
@gather_along_backward.batch
@add_along.batch
def _batched_along(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    changed = params | {"axis": operands[1].axes(params["axis"])}
    if "shape" in params:  # gather_along_backward
        changed["shape"] = (size, *params["shape"])
    return bind(op, tuple([o.repeated(size) for o in operands]), changed)


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
    axis = one_axis("take_along_axis", axis, len(x.shape))
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
