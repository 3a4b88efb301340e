"""Filters that choose one of the neighbours: largest, smallest, median."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, BatchOperand, Meta, composite, primitive, with_parameters
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.images.operands import cast, each, extended
from numgrad.operations.index import getitem
from numgrad.operations.join import stack
from numgrad.operations.shape import as_index, as_operand, expand_dims


@primitive(
    internal=True,
    real_only=True,
    method=False,
    auxiliaries=("selected",),
    samples=[(((3, 4),), {"axis": 0, "rank": 1})],
)
def order_statistic(x, *, axis, rank):
    """The element of a rank along an axis, which gets the gradient."""
    if x.dtype.kind == "c":
        raise NumgradTypeError("median_filter: complex numbers have no order")
    position = np.expand_dims(np.take(np.argpartition(x, rank, axis=axis), rank, axis=axis), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    selected = np.arange(x.shape[axis]).reshape(shape) == position
    return np.take_along_axis(x, position, axis).squeeze(axis), (selected,)


@order_statistic.shape
def _statistic(x, *, axis, rank):
    selected = Meta(x.shape, np.dtype(np.bool_))
    return Meta((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype), (selected,)


order_statistic.vjp(x=lambda g, selected, axis: np.where(selected, expand_dims(g, axis), 0))


@order_statistic.batch
@with_parameters
def _of_batches(x: BatchOperand, size: int, axis: int, rank: int) -> dict[str, Any]:
    return {"axis": axis + 1}


def _neighbours(
    name: str, x: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any
) -> list[Any]:
    """The image once for each neighbour, moved so that this comes to every place."""
    ndim = len(x.shape)
    if footprint is None:
        if size is None:
            raise NumgradValueError(f"{name}: give size or footprint")
        sizes = [as_index(name, n, "size") for n in each(name, size, ndim, "size")]
        mask = np.ones(sizes if min(sizes, default=1) > 0 else 0, bool)
    else:
        mask = np.asarray(footprint, bool)
    if mask.ndim != ndim or not mask.any():
        raise NumgradValueError(
            f"{name}: size={size!r}, footprint of shape {mask.shape} for an image of shape "
            f"{tuple(x.shape)}; it has as many axes and at least one place"
        )
    widths = []
    for n, shift in zip(mask.shape, each(name, origin, ndim, "origin"), strict=True):
        before = n // 2 + as_index(name, shift, "origin")
        if not 0 <= before < n:
            raise NumgradValueError(f"{name}: origin={origin!r} lies outside of {mask.shape}")
        widths.append((before, n - 1 - before))
    longer = extended(name, x, widths, each(name, mode, ndim, "mode"), cval)
    return [
        getitem(longer, tuple([slice(s, s + n) for s, n in zip(start, x.shape, strict=True)]))
        for start in product(*map(range, mask.shape))
        if mask[start]
    ]


def _extreme(
    name: str, kind: str, x: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any,
    origin: Any,
) -> Any:  # fmt: skip
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"{name}: complex numbers have no order")
    ndim, out = len(x.shape), x
    passes: Sequence[Any] = [(size, footprint, mode, origin)]
    if footprint is None and size is not None:  # one axis after the other
        values = [each(name, v, ndim, w) for v, w in (
            (size, "size"), (mode, "mode"), (origin, "origin"),
        )]  # fmt: skip
        passes = []
        for k, (n, edge, shift) in enumerate(zip(*values, strict=True)):
            alone = [0] * ndim
            alone[k] = shift
            passes.append(([n if a == k else 1 for a in range(ndim)], None, edge, alone))
    for sizes, mask, edge, shifts in passes:
        first, *others = _neighbours(name, out, sizes, mask, edge, cval, shifts)
        for other in others:
            first = OPS[kind](first, other)
        out = first
    return cast(out, x.dtype, output)


@composite(ref="scipy.ndimage.maximum_filter", method=False, real_only=True)
def maximum_filter(
    input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0
):
    """The largest of the neighbours.

    Parameters
    ----------
    input
        Image, of any number of axes.
    size : int or sequence of ints
        Number of neighbours along all axes or each.
    footprint : array_like of bool
        Which places are neighbours, in place of ``size``.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the neighbours are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.maximum_filter(ng.tensor([1.0, 3.0, 2.0, 0.0]), 3)
    tensor([3., 3., 3., 2.])
    """
    name = "maximum_filter"
    return _extreme(name, "maximum", input, size, footprint, output, mode, cval, origin)


@composite(ref="scipy.ndimage.minimum_filter", method=False, real_only=True)
def minimum_filter(
    input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0
):
    """The smallest of the neighbours.

    Parameters
    ----------
    input
        Image, of any number of axes.
    size : int or sequence of ints
        Number of neighbours along all axes or each.
    footprint : array_like of bool
        Which places are neighbours, in place of ``size``.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the neighbours are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.minimum_filter(ng.tensor([1.0, 3.0, 2.0, 0.0]), 3)
    tensor([1., 1., 0., 0.])
    """
    name = "minimum_filter"
    return _extreme(name, "minimum", input, size, footprint, output, mode, cval, origin)


def _median(neighbours: list[Any]) -> Any:
    return order_statistic(stack(neighbours), axis=0, rank=len(neighbours) // 2)


@composite(ref="scipy.ndimage.median_filter", method=False, real_only=True)
def median_filter(
    input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0
):
    """The median of the neighbours, of an even number the greater one.

    Parameters
    ----------
    input
        Image, of any number of axes.
    size : int or sequence of ints
        Number of neighbours along all axes or each.
    footprint : array_like of bool
        Which places are neighbours, in place of ``size``.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the neighbours are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.median_filter(ng.tensor([1.0, 9.0, 2.0, 3.0]), 3)
    tensor([1., 2., 3., 3.])
    """
    x = as_operand(input)
    result = _neighbours("median_filter", x, size, footprint, mode, cval, origin)
    return cast(_median(result), x.dtype, output)


@composite(ref="scipy.signal.medfilt", method=False, real_only=True)
def medfilt(volume, kernel_size=3):
    """The median of neighbours, beyond the edges of which are zeros.

    Parameters
    ----------
    volume
        Array, of any number of axes.
    kernel_size : int or sequence of ints
        Number of neighbours along all axes or each, odd.

    Returns
    -------
    Tensor
        Of the shape of the operand.

    Examples
    --------
    >>> ng.signal.medfilt(ng.tensor([1.0, 9.0, 2.0, 3.0]))
    tensor([1., 2., 3., 2.])
    """
    x = as_operand(volume)
    sizes = [
        as_index("medfilt", n, "kernel_size")
        for n in each("medfilt", kernel_size, len(x.shape), "kernel_size")
    ]
    if any(n % 2 == 0 for n in sizes):
        raise NumgradValueError(f"medfilt: kernel_size={kernel_size!r}; its numbers must be odd")
    return _median(_neighbours("medfilt", x, sizes, None, "constant", 0, 0))


order_statistic.kink(x=([1.0, 1.0], [1, 0]), params={"axis": 0, "rank": 0})
maximum_filter.kink(input=([1.0, 1.0], [0.75, 1.25]), params={"size": 3})
minimum_filter.kink(input=([1.0, 1.0], [0.75, 1.25]), params={"size": 3})
median_filter.kink(input=([1.0, 1.0], [1, 1]), params={"size": 3})
medfilt.kink(volume=([1.0, 1.0], [2, 0]))
