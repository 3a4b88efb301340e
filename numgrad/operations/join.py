"""Joining arrays and taking them apart."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import broadcast_lengths
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.batching import BatchOperand, shifted, with_parameters
from numgrad.core.declare import OPS, Call, Meta, Op, Primitive, bind, composite, view
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import swapaxes
from numgrad.operations.index import getitem
from numgrad.operations.shape import (
    as_index,
    as_operand,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    reshape,
)


class Join(Primitive):
    """An operation on any number of arrays, called with a sequence of them as in NumPy."""

    implied = ("index", "metas")

    @property
    def entry(self) -> Any:
        return self.__call__

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        if (
            arrays
            and isinstance(arrays[0], list | tuple)
            and (len(arrays) == 1 or (not params and _is_axis(arrays[1])))
        ):
            if len(arrays) > 1:
                params = {**dict(zip(self.params, arrays[1:], strict=False)), **params}
            arrays = tuple(arrays[0])  # pyright: ignore
        elif len(arrays) == 1 and len(getattr(arrays[0], "shape", ())) > 0:
            arrays = tuple(arrays[0])  # the first axis of an array is a sequence too
        if not arrays:
            raise NumgradValueError(f"{self.name}: needs at least one array, got none")
        return bind(self, arrays, params)

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        args = [a if isinstance(a, np.ndarray) else np.asarray(a) for a in args]
        for a in args:
            check_dtype(self.name, a.dtype)
        return super().run(args, params)


def _is_axis(value: Any) -> bool:
    return value is None or isinstance(value, int | np.integer)


def _join(**options: Any) -> Any:
    return lambda function: Join(function, **options)


@_join(
    ref=np.concatenate,
    linear=True,
    aliases=("concatenate", "cat"),
    method=False,
    samples=[
        (((2, 3), (4, 3)), {}),
        (((2, 3), (2, 1)), {"axis": -1}),
        (((2,), (3, 1)), {"axis": None}),
    ],
)
def concat(*inputs, axis=0):
    """Arrays one after another along an axis they have; with ``axis=None`` all flattened.

    Returns
    -------
    Tensor
        As long as all of them together along the axis, of the dtype they promote to.

    Examples
    --------
    >>> a = ng.tensor([[1.0, 2.0]])
    >>> ng.concat([a, 10 * a])
    tensor([[ 1.,  2.],
            [10., 20.]])
    >>> ng.concat([a, 10 * a], axis=1)
    tensor([[ 1.,  2., 10., 20.]])
    """
    if axis is None:
        return np.concatenate([a.ravel() for a in inputs])
    return np.concatenate(inputs, _common_axis(inputs, axis))


@concat.shape
def _concat_result(*inputs, axis):
    dtype = np.result_type(*[a.dtype for a in inputs])
    if axis is None:
        return Meta((sum(prod(a.shape) for a in inputs),), dtype)
    axis, shape = _common_axis(inputs, axis), inputs[0].shape
    length = sum(a.shape[axis] for a in inputs)
    return Meta((*shape[:axis], length, *shape[axis + 1 :]), dtype)


def _common_axis(inputs: Sequence[Any], axis: Any) -> int:
    """The axis along which arrays are joined, from the front."""
    first = inputs[0]
    if first.ndim == 0:
        raise NumgradValueError("concat: 0-d arrays have no axis to join along; use stack")
    axis = one_axis("concat", as_index("concat", axis), first.ndim)
    rest = first.shape[:axis] + first.shape[axis + 1 :]
    for a in inputs:
        if a.ndim != first.ndim or a.shape[:axis] + a.shape[axis + 1 :] != rest:
            shapes = ", ".join(str(a.shape) for a in inputs)
            raise NumgradValueError(
                f"concat: shapes {shapes} differ in more than axis {axis}; only that one may"
            )
    return axis


def _part(g: Any, index: int, metas: Sequence[Any], axis: int | None) -> Any:
    """The part of ``g`` that belongs to one of the joined arrays."""
    if axis is None:
        sizes = [int(np.prod(m.shape)) for m in metas]
        start = sum(sizes[:index])
        return reshape(getitem(g, slice(start, start + sizes[index])), metas[index].shape)
    axis %= len(metas[0].shape)
    start = sum(m.shape[axis] for m in metas[:index])
    stop = start + metas[index].shape[axis]
    return getitem(g, (slice(None),) * axis + (slice(start, stop),))


concat.vjp(inputs=_part)


@concat.batch
def _batched_concat(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    axis = params["axis"]
    if axis is None:
        operands, axis = [o.flat() for o in operands], 0
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": operands[0].axes(axis)})


@_join(
    ref=np.stack,
    linear=True,
    method=False,
    samples=[(((2, 3), (2, 3)), {}), (((2, 3), (2, 3)), {"axis": -1})],
)
def stack(*inputs, axis=0):
    """Arrays of one shape along a new axis.

    Returns
    -------
    Tensor
        With one axis more than the arrays, of the dtype they promote to.

    Examples
    --------
    >>> a = ng.tensor([1.0, 2.0])
    >>> ng.stack([a, 10 * a])
    tensor([[ 1.,  2.],
            [10., 20.]])
    >>> ng.stack([a, 10 * a], axis=1)
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    _new_axis(inputs, axis)
    return np.stack(inputs, axis)


def _new_axis(inputs: Sequence[Any], axis: Any) -> int:
    """The axis along which arrays of one shape are stacked, from the front."""
    first = inputs[0]
    if any(a.ndim != first.ndim or a.shape != first.shape for a in inputs):
        shapes = ", ".join(str(a.shape) for a in inputs)
        raise NumgradValueError(f"stack: shapes {shapes} differ; they must be equal")
    return normalize_axes("stack", as_index("stack", axis), first.ndim + 1)[0]


@stack.shape
def _stack_result(*inputs, axis):
    axis, shape = _new_axis(inputs, axis), inputs[0].shape
    dtype = np.result_type(*[a.dtype for a in inputs])
    return Meta((*shape[:axis], len(inputs), *shape[axis:]), dtype)


stack.vjp(
    inputs=lambda g, index, metas, axis: getitem(
        g, (slice(None),) * (axis % (len(metas[0].shape) + 1)) + (index,)
    )
)


@stack.batch
def _batched_stack(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": shifted(params["axis"], operands[0].ndim + 1)})


def _arrays(operation: str, arrays: Any) -> list[Any]:
    if len(arrays) == 1 and (isinstance(arrays[0], list | tuple) or hasattr(arrays[0], "shape")):
        arrays = arrays[0]
    results = [as_operand(a) for a in arrays]
    if not results:
        raise NumgradValueError(f"{operation}: needs at least one array, got none")
    return results


@composite(ref=np.hstack, method=False, smooth=True)
def hstack(*arrays):
    """Arrays one after another along the second axis; those of one axis along it.

    Returns
    -------
    Tensor
        With as many axes as the arrays, of the dtype they promote to.

    Examples
    --------
    >>> ng.hstack(([1.0, 2.0], [3.0, 4.0]))
    tensor([1., 2., 3., 4.])
    """
    arrays = [atleast_1d(a) for a in _arrays("hstack", arrays)]
    return concat(arrays, axis=0 if len(arrays[0].shape) == 1 else 1)


@composite(ref=np.vstack, method=False, smooth=True)
def vstack(*arrays):
    """Arrays one after another along the first axis; those of one axis become rows.

    Returns
    -------
    Tensor
        With two axes or more, of the dtype the arrays promote to.

    Examples
    --------
    >>> ng.vstack(([1.0, 2.0], [3.0, 4.0]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return concat([atleast_2d(a) for a in _arrays("vstack", arrays)], axis=0)


@composite(ref=np.dstack, method=False, smooth=True)
def dstack(*arrays):
    """Arrays one after another along the third axis.

    Returns
    -------
    Tensor
        With three axes or more, of the dtype the arrays promote to.

    Examples
    --------
    >>> ng.dstack(([1.0, 2.0], [3.0, 4.0])).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(a) for a in _arrays("dstack", arrays)], axis=2)


@composite(ref=np.column_stack, method=False, smooth=True)
def column_stack(*arrays):
    """Arrays one after another along the second axis; those of one axis become columns.

    Returns
    -------
    Tensor
        With two axes or more, of the dtype the arrays promote to.

    Examples
    --------
    >>> ng.column_stack(([1.0, 2.0], [3.0, 4.0]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    result = _arrays("column_stack", arrays)
    columns = [reshape(a, (-1, 1)) if len(a.shape) < 2 else a for a in result]
    return concat(columns, axis=1)


@composite(ref=np.meshgrid, method=False, smooth=True)
def meshgrid(*arrays, copy=True, sparse=False, indexing="xy"):
    """Coordinate arrays of the grid that vectors span.

    Parameters
    ----------
    arrays
        Vectors, one for each axis of the grid.
    copy
        Whether the results have memory of their own.
    sparse
        Whether results keep length 1 along the axes of the others.
    indexing : {'xy', 'ij'}
        Whether the first vector runs along the second axis (xy) or the first (ij).

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> x, y = ng.meshgrid([1.0, 2.0, 3.0], [10.0, 20.0])
    >>> x
    tensor([[1., 2., 3.],
            [1., 2., 3.]])
    >>> y
    tensor([[10., 10., 10.],
            [20., 20., 20.]])
    """
    if indexing not in ("xy", "ij"):
        raise NumgradValueError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    results = [as_operand(a) for a in arrays]
    rank = len(results)
    grids = []
    for k, a in enumerate(results):
        if len(a.shape) > 1:
            raise NumgradValueError(f"meshgrid: operand {k} has shape {a.shape}; give vectors")
        grids.append(reshape(a, (1,) * k + (-1,) + (1,) * (rank - k - 1)))
    if indexing == "xy" and rank > 1:
        grids = [swapaxes(grid, 0, 1) for grid in grids]
    if not sparse:
        shape = broadcast_lengths(*[grid.shape for grid in grids])
        grids = [broadcast_to(grid, shape) for grid in grids]
    return tuple(OPS["copy"](grid) for grid in grids) if copy else tuple(grids)


def _cuts(operation: str, n: int, sections: Any, equal: bool) -> tuple[int, ...]:
    """Where the parts begin and end along an axis of length ``n``."""
    if sections is None:
        raise NumgradTypeError(f"{operation}: give the number of parts, or where to cut")
    if not isinstance(sections, tuple | list | np.ndarray):
        count = as_index(operation, sections, "the number of parts")
        if count <= 0:
            raise NumgradValueError(f"{operation}: the number of parts must be positive")
        if equal and n % count:
            raise NumgradValueError(
                f"{operation}: an axis of length {n} cannot be split into {count} equal parts; "
                "use array_split"
            )
        small, extra = divmod(n, count)
        lengths = [small + (k < extra) for k in range(count)]
        return (0, *np.cumsum(lengths).tolist())
    cuts = [as_index(operation, k, "a place to cut") for k in sections]
    return (0, *cuts, n)


def _split(x: np.ndarray, cuts: tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    lead = (slice(None),) * axis
    stops = cuts[1:]
    return tuple([x[(*lead, slice(a, b))] for a, b in zip(cuts, stops, strict=False)])


@view(
    internal=True, linear=True, method=False, samples=[(((3, 4),), {"cuts": (0, 1, 4), "axis": 1})]
)
def split_at(x, *, cuts, axis=0):
    """Adjacent parts of an axis, as views, that together are the whole of it."""
    return _split(x, cuts, axis)


split_at.vjp(x=lambda g, axis: concat(g, axis=axis))
split_at.batch(with_parameters(lambda x, size, cuts, axis: {"axis": x.axes(axis)}))


def _parts(operation: str, x: Any, sections: Any, axis: int, equal: bool) -> tuple:
    x = as_operand(x)
    axis = one_axis(operation, as_index(operation, axis), len(x.shape))
    n = x.shape[axis]
    cuts = _cuts(operation, n, sections, equal)
    if all(0 <= a <= b <= n for a, b in pairwise(cuts)):
        return split_at(x, cuts=cuts, axis=axis)
    # cuts that are negative, beyond the end or not in order: each part as NumPy slices it
    lead = (slice(None),) * axis
    pairs = pairwise(cuts)
    return tuple(getitem(x, (*lead, slice(a, b))) for a, b in pairs)


@composite(ref=np.split, smooth=True)
def split(x, indices_or_sections, axis=0):
    """Parts along an axis: a number of equal ones, or cut at the given indices.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.split(ng.arange(4.0), 2), ng.split(ng.arange(4.0), [1])
    ((tensor([0., 1.]), tensor([2., 3.])), (tensor([0.]), tensor([1., 2., 3.])))
    """
    return _parts("split", x, indices_or_sections, axis, True)


@composite(ref=np.array_split, smooth=True)
def array_split(x, indices_or_sections, axis=0):
    """Split into parts that need not be equal: the first ones are longer by one.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.array_split(ng.arange(5.0), 2)
    (tensor([0., 1., 2.]), tensor([3., 4.]))
    """
    return _parts("array_split", x, indices_or_sections, axis, False)


@composite(ref=np.hsplit, method=False, smooth=True)
def hsplit(x, indices_or_sections):
    """Parts along the second axis; of an array of one axis along that.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.hsplit(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 2)[0]
    tensor([[1.],
            [3.]])
    """
    x = as_operand(x)
    return _parts("hsplit", x, indices_or_sections, min(1, len(x.shape) - 1), True)


@composite(ref=np.vsplit, method=False, smooth=True)
def vsplit(x, indices_or_sections):
    """Parts along the first axis.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.vsplit(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 2)[1]
    tensor([[3., 4.]])
    """
    return _parts("vsplit", x, indices_or_sections, 0, True)


@composite(ref=np.dsplit, method=False, smooth=True)
def dsplit(x, indices_or_sections):
    """Parts along the third axis.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> [part.shape for part in ng.dsplit(ng.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _parts("dsplit", x, indices_or_sections, 2, True)


@view(ref="numpy.unstack", linear=True, aliases=("unbind",), samples=[(((3, 4),), {"axis": 1})])
def unstack(x, *, axis=0):
    """The slices along an axis, as a tuple of views.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.unstack(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (tensor([1., 2.]), tensor([3., 4.]))
    """
    axis = one_axis("unstack", axis, x.ndim)
    lead = (slice(None),) * axis
    return tuple([x[(*lead, k, Ellipsis)] for k in range(x.shape[axis])])


unstack.vjp(x=lambda g, axis: stack(g, axis=axis))
unstack.batch(with_parameters(lambda x, size, axis: {"axis": x.axes(axis)}))
