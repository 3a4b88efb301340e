"""Pooling by largest elements of windows, and its inverse, as functions and layers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.applied import along_axes, applies
from numgrad.nn.module.module import Module
from numgrad.nn.pooling_windows import (
    EACH,
    AdaptivePool,
    Axis,
    _Pool,
    as_image,
    check_padding,
    max_pool,
    max_pool_indices,
    parts,
    spans,
    windows_along,
)
from numgrad.operations.scatter import scatter
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.take import take_along_axis
from numgrad.tensors.creation import zeros
from numgrad.tensors.tensor import Tensor


def _largest(x: Any, windows: tuple[Axis, ...], return_indices: bool) -> Any:
    """Largest elements, and their places; of volumes by Note [Pooling in two steps]."""
    if len(windows) < 3:
        y = max_pool(x, windows=windows)
        return (y, max_pool_indices(x, windows=windows)) if return_indices else y
    planes = max_pool(x, windows=windows[1:])
    area = planes.shape[-2:]
    lines = reshape(planes, (*planes.shape[:-2], prod(area)))
    y = max_pool(lines, windows=(windows[0], EACH))
    shape = (*y.shape[:-1], *area)
    if not return_indices:
        return reshape(y, shape)
    which = max_pool_indices(lines, windows=(windows[0], EACH))
    inside = max_pool_indices(x, windows=windows[1:])
    inside = reshape(inside, (*x.shape[:-3], prod(inside.shape[-3:])))
    flat = reshape(which, (*x.shape[:-3], prod(shape[-3:])))
    places = take_along_axis(inside, flat, axis=-1) + flat // prod(area) * prod(x.shape[-2:])
    return reshape(y, shape), reshape(places, shape)


def _max_pool(
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    name = f"max_pool{rank}d"
    x = as_image(name, rank, x)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    dilation = along_axes(name, "dilation", dilation, rank, 1)
    check_padding(name, padding, spans(kernel, dilation))

    ceil = (bool(ceil_mode),) * rank
    windows = tuple(zip(kernel, stride, padding, dilation, ceil, strict=True))
    return _largest(x, windows, return_indices)


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of windows of a sequence: as ``max_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.max_pool1d(ng.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of windows that slide over images.

    NaN counts as largest. The first of equal elements gets the whole gradient.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), of real numbers.
    kernel_size
        Shape of the windows: an integer or a tuple, as all that follow.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    padding
        Positions added at both ends of each axis, never chosen; at most half of what a window
        spans.
    dilation
        Distance of neighbours in a window.
    ceil_mode
        Whether windows that begin in the input, or the padding before it, may end behind it.
    return_indices
        Whether to return also the place of each element in its flattened image.

    Returns
    -------
    Tensor or tuple of two
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the elements are no real numbers.
    NumgradValueError
        If the options do not fit the shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> y, indices = ng.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> y
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    >>> indices.tolist()
    [[[5, 7], [13, 15]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of windows that slide over volumes: as ``max_pool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.max_pool3d(ng.ones((2, 3, 4, 6, 8)), 2).shape
    (2, 3, 2, 3, 4)
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _adaptive_max_pool(rank: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    name = f"adaptive_max_pool{rank}d"
    x = as_image(name, rank, input)
    windows = parts(name, output_size, rank, x.shape[:-rank])
    if 0 in x.shape[-rank:]:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has no largest element"
        )
    return _largest(x, windows, return_indices)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of a given number of parts of a sequence: as ``adaptive_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_max_pool1d(ng.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[3., 3.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of windows that divide images into a given number of rows and columns.

    The windows are those of ``adaptive_avg_pool2d``. The first of equal elements gets the whole
    gradient.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), of real numbers.
    output_size
        Numbers of rows and columns; one for both, None for that of the input.
    return_indices
        Whether to return also the place of each element in its flattened image.

    Returns
    -------
    Tensor or tuple of two
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the elements are no real numbers.
    NumgradValueError
        If the input has other axes, or empty ones.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.adaptive_max_pool2d(x, (1, None))
    tensor([[[12., 13., 14., 15.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of given numbers of parts of volumes: as ``adaptive_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_max_pool3d(ng.ones((2, 3, 4, 6, 8)), (1, 2, None)).shape
    (2, 3, 1, 2, 8)
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)


# ------------------------------------------------------------------------------------- back


def _max_unpool(
    rank: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{rank}d"
    x, indices = as_image(name, rank, input), as_operand(indices)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    if tuple(indices.shape) != tuple(x.shape):
        raise NumgradValueError(
            f"{name}: indices of shape {tuple(indices.shape)} for an input of shape "
            f"{tuple(x.shape)}; they need the same shape"
        )
    lead, lengths = tuple(x.shape[:-rank]), tuple(map(index, x.shape[-rank:]))
    usual = tuple(
        (n - 1) * s - 2 * p + k for n, s, p, k in zip(lengths, stride, padding, kernel, strict=True)
    )
    size = usual
    if output_size is not None:
        size = along_axes(name, "output_size", tuple(output_size)[-rank:], rank, 1)
        if any(abs(n - m) >= s for n, m, s in zip(size, usual, stride, strict=True)):
            raise NumgradValueError(
                f"{name}: output_size {tuple(output_size)} is not what an input of shape "
                f"{tuple(x.shape)} can come from; each length is within a stride {stride} of "
                f"{usual}"
            )
    count = prod(lengths)
    flat, places = (reshape(a, (*lead, count)) for a in (x, indices))
    empty = zeros((*lead, prod(size)), dtype=x.dtype)
    return reshape(scatter(empty, places, flat, axis=-1), (*lead, *size))


def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put largest elements of sequences back: as ``max_unpool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> y, indices = ng.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> ng.nn.functional.max_unpool1d(y, indices, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put what ``max_pool2d`` chose back to where it was, among zeros.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W).
    indices
        Places in flattened images, of the same shape.
    kernel_size, stride, padding
        Those of the pooling.
    output_size
        Lengths of the result, where pooling gives the same for several; other axes may come first.

    Returns
    -------
    Tensor
        Of the shape that was pooled.

    Raises
    ------
    NumgradIndexError
        If an index is outside of the result.
    NumgradValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(4.0).reshape(1, 2, 2))
    >>> y, indices = ng.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> ng.nn.functional.max_unpool2d(y, indices, 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put largest elements of volumes back: as ``max_unpool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, indices = ng.nn.functional.max_pool3d(ng.ones((1, 2, 2, 4)), 2, return_indices=True)
    >>> ng.nn.functional.max_unpool3d(y, indices, 2).shape
    (1, 2, 2, 4)
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


@applies(max_pool2d)
class _MaxPool(_Pool):
    """Base of layers that take the largest element of windows."""

    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@applies(max_pool1d)
class MaxPool1d(_MaxPool):
    """Largest element of windows of sequences: as ``MaxPool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MaxPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    rank = 1


@applies(max_pool2d)
class MaxPool2d(_MaxPool):
    """Largest element of windows that slide over images.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.MaxPool2d(2)
    >>> layer
    MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(ng.ones((5, 16, 8, 8))).shape
    (5, 16, 4, 4)
    """


@applies(max_pool3d)
class MaxPool3d(_MaxPool):
    """Largest element of windows that slide over volumes: as ``MaxPool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MaxPool3d(2)(ng.ones((5, 3, 8, 8, 6))).shape
    (5, 3, 4, 4, 3)
    """

    rank = 3


@applies(adaptive_max_pool2d)
class _AdaptiveMaxPool(AdaptivePool):
    """Base of layers that take the largest element of each part."""

    shown = ("output_size",)
    output_size: Any
    return_indices: bool = False


@applies(adaptive_max_pool1d)
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool1d(2)(ng.tensor([[1.0, 3.0, 2.0]]))
    tensor([[3., 3.]])
    """

    rank = 1


@applies(adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool2d((1, None))(ng.ones((5, 3, 7, 7))).shape
    (5, 3, 1, 7)
    """

    rank = 2


@applies(adaptive_max_pool3d)
class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool3d((1, None, 2))(ng.ones((5, 3, 7, 7, 8))).shape
    (5, 3, 1, 7, 2)
    """

    rank = 3


class _MaxUnpool(Module):
    """Base of layers that put largest elements back."""

    rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        name, rank = type(self).__name__, self.rank
        self.kernel_size = along_axes(name, "kernel_size", kernel_size, rank, 1)
        stride = self.kernel_size if stride is None else stride
        self.stride = along_axes(name, "stride", stride, rank, 1)
        self.padding = along_axes(name, "padding", padding, rank, 0)

    def forward(self, input: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Put elements at their places among zeros: see ``functional.max_unpool2d``."""
        back = (max_unpool1d, max_unpool2d, max_unpool3d)[self.rank - 1]
        return back(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Put what ``MaxPool1d`` chose of sequences back to where it was, among zeros.

    Parameters
    ----------
    kernel_size, stride, padding
        Those of the pooling.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, indices = ng.nn.MaxPool1d(2, return_indices=True)(ng.ones((1, 4)))
    >>> ng.nn.MaxUnpool1d(2)(y, indices).shape
    (1, 4)
    """

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Put what ``MaxPool2d`` chose of images back: as ``MaxUnpool1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, indices = ng.nn.MaxPool2d(2, return_indices=True)(ng.ones((1, 4, 6)))
    >>> ng.nn.MaxUnpool2d(2)(y, indices).shape
    (1, 4, 6)
    """

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Put what ``MaxPool3d`` chose of volumes back: as ``MaxUnpool1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, indices = ng.nn.MaxPool3d(2, return_indices=True)(ng.ones((1, 2, 4, 6)))
    >>> ng.nn.MaxUnpool3d(2)(y, indices).shape
    (1, 2, 4, 6)
    """

    rank = 3
