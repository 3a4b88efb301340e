"""The same elements in other shapes, in memory of their own, with another dtype."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype, convert
from numgrad.core.abstract import AbstractLength, broadcast_lengths, refuse_abstract
from numgrad.core.batching import BatchOperand, apply, shifted, unchanged, with_parameters
from numgrad.core.declare import (
    OPS,
    Meta,
    Op,
    View,
    bind,
    composite,
    interpret,
    primitive,
    refuse_mask,
    view,
)  # fmt: skip
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shared_rules import integers


def holds_tensors(sequence: list | tuple) -> bool:
    """Whether there is a Tensor, or the length of an axis, in a sequence or those in it."""
    return any(
        isinstance(item, AbstractLength)
        or hasattr(item, "grad_fn")
        or (isinstance(item, list | tuple) and holds_tensors(item))
        for item in sequence
    )


def stacked(sequence: list | tuple) -> Any:
    """A nested sequence as one Tensor, through which gradients flow."""
    items = []
    for item in sequence:
        if isinstance(item, list | tuple):
            item = stacked(item) if holds_tensors(item) else np.asarray(item)
        items.append(item)
    return bind(OPS["stack"], tuple(items), {})


def as_operand(x: Any) -> Any:
    """``x`` with a ``shape``: composites look at shapes before they call an operation."""
    if hasattr(type(x), "shape") or hasattr(x, "shape"):  # of a class nothing is computed
        if x.__class__ is not np.ndarray and isinstance(x, np.ndarray):
            refuse_mask("", x)
        return x
    if isinstance(x, AbstractLength):
        return x.as_number()
    refuse_mask("", x)
    if isinstance(x, list | tuple) and holds_tensors(x):
        return stacked(x)
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(f"a {type(x).__name__} of dtype {array.dtype} is not numeric")
    return array


def as_array(x: Any) -> Any:
    """``x`` as ``np.asarray`` takes it: a Python number too has a dtype that counts."""
    x = as_operand(x)
    return astype(x, dtype=x.dtype, copy=False)


def as_index(operation: str, value: Any, what: str = "axis") -> int:
    """``value`` as a Python integer."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        refuse_abstract(f"{operation}: {what}", value)
        raise NumgradTypeError(f"{operation}: {what} must be an integer, got {value!r}") from None


def _as_shape(operation: str, shape: Any) -> tuple[int, ...]:
    if type(shape) is tuple and set(map(type, shape)) <= {int}:  # nearly always
        return shape
    if not isinstance(shape, tuple | list):
        shape = np.asarray(shape).tolist() if isinstance(shape, np.ndarray) else (shape,)
        shape = shape if isinstance(shape, list) else tuple(shape)
    return tuple([n if type(n) is int else as_index(operation, n, "a length") for n in shape])


class Spread(View):
    """A view whose tuple of integers may be written as separate arguments: ``x.reshape(2, 3)``."""

    @staticmethod
    def bind(op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Call the interpreter with integers as one argument, and orders as they are here."""
        if len(args) > 2 and all(hasattr(a, "__index__") for a in args[1:]):
            args = (args[0], args[1:])
        if len(args) > 1 and isinstance(args[-1], str) and "order" in op.params:
            args, params = args[:-1], {**params, "order": args[-1]}
        if params.get("order") in ("A", "K"):
            x = args[0] if args else params.get("x", params.get(op.spellings.get("x", "x")))
            params = {**params, "order": _memory_order(op.name, x, params["order"])}
        return interpret(op, args, params)


def _memory_order(operation: str, x: Any, order: str) -> str:
    """The order of elements in memory, in which the gradient has to come back."""
    array = getattr(x, "_array", x)
    if hasattr(array, "refuse"):
        array.refuse(f"{operation} with order={order!r}", "give order='C' or 'F'")
    flags = np.asarray(array).flags
    if order == "K" and not flags.forc:
        raise NumgradValueError(
            f"{operation}: order 'K' of an operand whose elements lie in neither order; give 'C' "
            "or 'F'"
        )
    return "F" if flags.fnc else "C"


def spread(**options: Any) -> Any:
    """Declare a ``Spread``."""
    return lambda function: Spread(function, **options)


# ------------------------------------------------------------------------------------- shapes


@spread(
    ref=np.reshape,
    linear=True,
    samples=[(((3, 4),), {"shape": (2, 6)}), (((3, 4),), {"shape": -1})],
)
def reshape(x, *, shape, order="C"):
    """The same elements in another shape; one length may be -1, meaning what is left.

    Examples
    --------
    >>> ng.reshape(ng.arange(6.0), (2, -1))
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """
    return np.reshape(x, _as_shape("reshape", shape), order=order)  # pyright: ignore


reshape.vjp(x=lambda g, meta_x, order: reshape(g, meta_x.shape, order=order))


@reshape.batch
@with_parameters
def _other_shape(x: BatchOperand, size: int, shape: Any, order: str) -> dict[str, Any]:
    shape = integers(shape)
    if not size and shape.count(-1) == 1:  # NumPy cannot tell what is left of an empty batch
        known = -prod(shape)
        shape = tuple([prod(x.shape) // max(known, 1) if n == -1 else n for n in shape])
    return {"shape": (size, *shape)}


@spread(ref=np.ravel, linear=True, samples=[(((3, 4),), {})])
def ravel(x, *, order="C"):
    """All elements along one axis, as a view where that is possible.

    Examples
    --------
    >>> ng.ravel(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 2., 3., 4.])
    """
    return np.reshape(x, (-1,), order=order)  # pyright: ignore


ravel.vjp(x=lambda g, meta_x, order: reshape(g, meta_x.shape, order=order))


@ravel.batch
def _batched_ravel(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    return apply("reshape", x.value, shape=(size, prod(x.shape)), **params)


@composite(smooth=True)
def flatten(x, order="C"):
    """A copy with all elements along one axis.

    Returns
    -------
    Tensor
        With one axis, of the dtype of ``x``.

    Examples
    --------
    >>> ng.flatten(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), order="F")
    tensor([1., 3., 2., 4.])
    """
    return copy(ravel(x, order=order))


@view(
    ref=np.expand_dims,
    linear=True,
    aliases=("unsqueeze",),
    samples=[(((3, 4),), {"axis": 1}), (((3, 4),), {"axis": (0, -1)})],
)
def expand_dims(x, *, axis):
    """New axes of length 1 at the given positions of the result.

    Parameters
    ----------
    axis : int or tuple of ints
        Positions of the new axes in the result.

    Examples
    --------
    >>> ng.expand_dims(ng.tensor([1.0, 2.0]), axis=1)
    tensor([[1.],
            [2.]])
    """
    return np.expand_dims(x, axis)


expand_dims.vjp(x=lambda g, meta_x: reshape(g, meta_x.shape))


@expand_dims.batch
@with_parameters
def _added_axes(x: BatchOperand, size: int, axis: Any) -> dict[str, Any]:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return {"axis": shifted(axis, x.ndim + count)}


@view(ref=np.squeeze, linear=True, samples=[(((3, 1, 4),), {}), (((3, 1, 4),), {"axis": 1})])
def squeeze(x, *, axis=None):
    """Without the given axes, which must have length 1; by default all of that length.

    Parameters
    ----------
    axis : int or tuple of ints
        Axes of length 1 to remove; by default all of them.

    Examples
    --------
    >>> ng.squeeze(ng.ones((1, 3, 1))).shape, ng.squeeze(ng.ones((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    return np.squeeze(x, axis if not isinstance(axis, list) else tuple(axis))


squeeze.vjp(x=lambda g, meta_x: reshape(g, meta_x.shape))


@squeeze.batch
@with_parameters
def _without_axes(x: BatchOperand, size: int, axis: Any) -> dict[str, Any]:
    return {"axis": x.axes([k for k, n in enumerate(x.shape) if n == 1] if axis is None else axis)}


@spread(
    ref=np.broadcast_to,
    linear=True,
    aliases=("expand",),
    samples=[(((3, 1),), {"shape": (2, 3, 4)}), (((),), {"shape": (2, 3)})],
)
def broadcast_to(x, *, shape):
    """The operand repeated along axes of length 1 and new leading axes, without a copy.

    Examples
    --------
    >>> x = ng.tensor([[1.0], [2.0]], requires_grad=True)
    >>> y = ng.broadcast_to(x, (2, 3))
    >>> y.detach()
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    >>> y.sum().backward()
    >>> x.grad
    tensor([[3.],
            [3.]])
    """
    return np.broadcast_to(x, _as_shape("broadcast_to", shape))


# the engine sums a gradient of a larger shape over the broadcast axes
broadcast_to.vjp(x=lambda g: g)


@broadcast_to.batch
def _batched_broadcast_to(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape = integers(params["shape"])
    return bind(op, (x.aligned(len(shape)),), {"shape": (size, *shape)})


@composite(ref=np.broadcast_arrays, method=False, smooth=True)
def broadcast_arrays(*arrays):
    """The operands broadcast against each other.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> a, b = ng.broadcast_arrays(ng.tensor([[1.0], [2.0]]), ng.tensor([10.0, 20.0]))
    >>> a
    tensor([[1., 1.],
            [2., 2.]])
    >>> b
    tensor([[10., 20.],
            [10., 20.]])
    """
    arrays = [as_operand(a) for a in arrays]
    try:
        shape = broadcast_lengths(*[a.shape for a in arrays])
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise NumgradValueError(
            f"broadcast_arrays: shapes {shapes} do not broadcast; axes are matched from the right "
            "and must be equal or 1"
        ) from None
    return tuple(broadcast_to(a, shape) for a in arrays)


def _at_least(x: Any, ndim: int) -> Any:
    x = as_operand(x)
    if len(x.shape) >= ndim and hasattr(x, "grad_fn"):  # an ndarray becomes a Tensor all the same
        return x
    if ndim == 3 and len(x.shape) == 2:
        return expand_dims(x, 2)
    if ndim == 3 and len(x.shape) == 1:
        return reshape(x, (1, -1, 1))
    return reshape(x, (1,) * (ndim - len(x.shape)) + tuple(x.shape))


@composite(ref=np.atleast_1d, method=False, smooth=True)
def atleast_1d(*arrays):
    """Each operand with at least one axis.

    Returns
    -------
    Tensor or tuple of Tensors

    Examples
    --------
    >>> ng.atleast_1d(3.0)
    tensor([3.])
    """
    result = tuple(_at_least(a, 1) for a in arrays)
    return result[0] if len(result) == 1 else result


@composite(ref=np.atleast_2d, method=False, smooth=True)
def atleast_2d(*arrays):
    """Each operand with at least two axes.

    Returns
    -------
    Tensor or tuple of Tensors

    Examples
    --------
    >>> ng.atleast_2d(ng.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    result = tuple(_at_least(a, 2) for a in arrays)
    return result[0] if len(result) == 1 else result


@composite(ref=np.atleast_3d, method=False, smooth=True)
def atleast_3d(*arrays):
    """Each operand with at least three axes.

    Returns
    -------
    Tensor or tuple of Tensors

    Examples
    --------
    >>> ng.atleast_3d(ng.tensor([1.0, 2.0])).shape
    (1, 2, 1)
    """
    result = tuple(_at_least(a, 3) for a in arrays)
    return result[0] if len(result) == 1 else result


# ------------------------------------------------------------------------------------- copies


@primitive(internal=True, differentiable=False, method=False)
def iota(*, length):
    """The integers below ``length``."""
    return np.arange(length)


iota.shape(lambda *, length: Meta((length,), np.dtype(np.int64)))


@primitive(ref=np.copy, linear=True, samples=[(((3, 4),), {})])
def copy(x):
    """The same elements in memory of their own.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0])
    >>> y = ng.copy(x)
    >>> y[0] = 5.0
    >>> x
    tensor([1., 2.])
    """
    return np.array(x, order="C")


copy.shape(lambda x: x)
copy.vjp(x=lambda g: g)
copy.batch(unchanged)


@view(ref="numpy.astype", linear=True, samples=[(((3, 4),), {"dtype": np.float32})])
def astype(x, *, dtype, copy=True):
    """The elements converted to ``dtype``; a complex operand gives its real part to a real one.

    ``copy=False`` gives the operand itself where it has that dtype already.

    Parameters
    ----------
    dtype : dtype_like
        Dtype of the result.
    copy
        Whether the result has memory of its own where the dtype is the same.

    Returns
    -------
    Tensor
        Of the shape of ``x`` and of that dtype.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.7], requires_grad=True)
    >>> y = ng.astype(x, dtype="float32")
    >>> y.detach()
    tensor([1. , 2.7], dtype=float32)
    >>> y.sum().backward()
    >>> x.grad.dtype
    dtype('float64')
    """
    dtype = np.dtype(dtype)
    check_dtype("astype", dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
        copy = True
    return convert(x, dtype, order="C" if copy else "K", copy=copy)


def _in_c_order(order: Any) -> dict[str, Any]:
    if order not in ("K", "A", "C"):
        raise NumgradValueError(
            f"astype: order={order!r} is not taken; results are in C order, as of 'K' and 'C'"
        )
    return {}


def _any_casting(casting: Any) -> dict[str, Any]:
    if casting != "unsafe":
        raise NumgradTypeError(
            f"astype: casting={casting!r} is not taken, but 'unsafe'; np.can_cast asks before"
        )
    return {}


astype.stand_ins = {"order": _in_c_order, "casting": _any_casting, "subok": lambda subok: {}}
# the engine converts a gradient to the dtype of its operand
astype.vjp(x=lambda g: g)
astype.batch(unchanged)
