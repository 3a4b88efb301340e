"""Pooling: means, means of powers and largest elements of windows, as functions and layers.

Fractional pooling has its windows at random places (Graham, 2014).

Note [Pooling in two steps]
---------------------------
A mean, or a largest element, of a box is that of the means, or largest elements, of its slices. The
divisor of a mean is a product of one factor for each axis. Of equal elements the first slice comes
first, and in it the first place: the order of the flattened volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, ClassVar

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.applied import Applied, along_axes, applies
from numgrad.nn.module.module import Module
from numgrad.nn.pooling_windows import (
    _LEAST,
    AdaptivePool,
    Axis,
    _Pool,
    as_image,
    average_windows,
    check_divisor,
    check_padding,
    divided,
    max_pool,
    max_pool_indices,
    parts,
    spans,
    windows_along,
    windows_of_average,
)
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.error_gamma_logistic import relu
from numgrad.operations.join import concat
from numgrad.operations.reduce import argmax
from numgrad.operations.scatter import scatter
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.take import take, take_along_axis
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import arange, asarray, tensor, zeros
from numgrad.tensors.tensor import Tensor


def _averaged(x: Any, windows: tuple[Axis, ...]) -> Any:
    """Means over the last axes, of three: Note [Pooling in two steps]."""
    if len(windows) < 3:
        return average_windows(x, windows=windows)
    x = average_windows(x, windows=windows[1:])
    x = moveaxis(x, source=-3, destination=-1)
    return moveaxis(average_windows(x, windows=windows[:1]), source=-1, destination=-3)


def _avg_pool(
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    name = f"avg_pool{rank}d"
    x = as_image(name, rank, x)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    check_padding(name, padding, kernel)
    check_divisor(name, divisor)
    lengths = tuple(x.shape[-rank:])
    windows = windows_of_average(
        name, lengths, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor
    )
    return _averaged(x, windows)


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of windows of a sequence: as ``avg_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.avg_pool1d(ng.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of windows that slide over images.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    kernel_size
        Shape of the windows: an integer or a tuple, as stride and padding.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    padding
        Zeros added at both ends of each axis, at most half of a window.
    ceil_mode
        Whether windows that begin in the input, or the padding before it, may end behind it.
    count_include_pad
        Whether the zeros of the padding count as elements.
    divisor_override
        What sums are divided by, instead of the number of elements.

    Returns
    -------
    Tensor
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the dtype is not floating.
    NumgradValueError
        If the options do not fit the shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.avg_pool2d(x, 2)
    tensor([[[ 2.5,  4.5],
             [10.5, 12.5]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of windows that slide over volumes: as ``avg_pool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.avg_pool3d(ng.ones((2, 3, 4, 6, 8)), 2).shape
    (2, 3, 2, 3, 4)
    """
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _adaptive_avg_pool(rank: int, x: Any, output_size: Any) -> Tensor:
    name = f"adaptive_avg_pool{rank}d"
    x = as_image(name, rank, x)
    lengths = tuple(x.shape[-rank:])
    output = parts(name, output_size, lengths)
    if 0 in lengths:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has nothing to average"
        )
    return _averaged(x, divided(lengths, output))


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of a given number of parts of a sequence: as ``adaptive_avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_avg_pool1d(ng.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[2. , 2.5]])
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that divide images into a given number of rows and columns.

    Window ``k`` of ``m`` along an axis of length ``n`` reaches from ``floor(k n / m)`` to
    ``ceil((k + 1) n / m)``.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    output_size
        Numbers of rows and columns; one for both, None for that of the input.

    Returns
    -------
    Tensor
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the dtype is not floating.
    NumgradValueError
        If the input has other axes, or empty ones.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.adaptive_avg_pool2d(x, (1, None))
    tensor([[[6., 7., 8., 9.]]])
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that divide volumes into given numbers of parts: as in two dimensions.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_avg_pool3d(ng.ones((2, 3, 4, 6, 8)), (1, 2, None)).shape
    (2, 3, 1, 2, 8)
    """
    return _adaptive_avg_pool(3, input, output_size)


# ------------------------------------------------------------------------------ means of powers


def _lp_pool(
    rank: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    name = f"lp_pool{rank}d"
    x = as_image(name, rank, input)
    if not norm_type:
        raise NumgradValueError(f"{name}: norm_type must not be 0")
    kernel = along_axes(name, "kernel_size", kernel_size, rank, 1)
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    means = pool(x**norm_type, kernel, stride, 0, ceil_mode)
    # so that the gradient where all is 0 is 0, as in PyTorch
    positive = np.sign(means.detach()) * relu(np.abs(means))
    return (positive * prod(kernel)) ** (1.0 / norm_type)


def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows of sequences: as ``lp_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool1d(ng.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    tensor([[5., 1.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """``(sum of x**p) ** (1 / p)`` over windows that slide over images.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    norm_type
        The power ``p``; 1 gives sums.
    kernel_size
        Shape of the windows: an integer or a tuple.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    ceil_mode
        Whether windows that begin in the input may end behind it.

    Raises
    ------
    NumgradValueError
        If the options do not fit the shape, or ``norm_type`` is 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool2d(ng.tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows of volumes: as ``lp_pool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool3d(ng.ones((1, 2, 2, 4)), 1, 2)
    tensor([[[[8., 8.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


@applies(avg_pool2d)
class _AvgPool(_Pool):
    """Base of layers that take means of windows."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@applies(avg_pool1d)
class AvgPool1d(_AvgPool):
    """Mean of windows of sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    rank = 1

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        for name in ("kernel_size", "stride", "padding"):
            options[name] = along_axes("AvgPool1d", name, options[name], 1, _LEAST[name])


@applies(avg_pool2d)
class AvgPool2d(_AvgPool):
    """Mean of windows that slide over images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool2d(2)(ng.ones((5, 3, 8, 8))).shape
    (5, 3, 4, 4)
    """

    divisor_override: int | None = None


@applies(avg_pool3d, like=avg_pool2d)
class AvgPool3d(_AvgPool):
    """Mean of windows that slide over volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool3d(2)(ng.ones((5, 3, 8, 8, 6))).shape
    (5, 3, 4, 4, 3)
    """

    rank = 3
    divisor_override: int | None = None


@applies(adaptive_avg_pool1d)
class AdaptiveAvgPool1d(AdaptivePool):
    """Means of a given number of parts of sequences, as ``functional.adaptive_avg_pool1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool1d(2)(ng.tensor([[1.0, 3.0, 2.0]]))
    tensor([[2. , 2.5]])
    """

    rank = 1
    output_size: Any = option(doc="Number of parts.")


@applies(adaptive_avg_pool2d)
class AdaptiveAvgPool2d(AdaptivePool):
    """Means of a given number of rows and columns, as ``functional.adaptive_avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool2d((1, None))(ng.ones((5, 3, 7, 7))).shape
    (5, 3, 1, 7)
    """

    output_size: Any


@applies(adaptive_avg_pool3d, like=adaptive_avg_pool2d)
class AdaptiveAvgPool3d(AdaptivePool):
    """Means of given numbers of parts of volumes, as ``functional.adaptive_avg_pool3d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool3d((1, None, 2))(ng.ones((5, 3, 7, 7, 8))).shape
    (5, 3, 1, 7, 2)
    """

    rank = 3
    output_size: Any = option(doc="Numbers of parts along the axes, one for all; None keeps one.")


@applies(lp_pool2d)
class _LPPool(Applied):
    """Base of layers that take norms of windows."""

    rank: ClassVar[int]
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        name = type(self).__name__
        along_axes(name, "kernel_size", options["kernel_size"], self.rank, 1)
        if options["stride"] is not None:
            along_axes(name, "stride", options["stride"], self.rank, 1)


@applies(lp_pool1d)
class LPPool1d(_LPPool):
    """Norms of windows that slide over sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool1d(2, 2)(ng.ones((1, 4))).shape
    (1, 2)
    """

    rank = 1


@applies(lp_pool2d)
class LPPool2d(_LPPool):
    """Norms of windows that slide over images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool2d(2, 2)(ng.ones((1, 4, 6))).shape
    (1, 2, 3)
    """

    rank = 2


@applies(lp_pool3d)
class LPPool3d(_LPPool):
    """Norms of windows that slide over volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool3d(2, 2)(ng.ones((1, 2, 4, 6))).shape
    (1, 1, 2, 3)
    """

    rank = 3


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

    def options(axes: slice) -> dict[str, Any]:
        return {
            "kernel": kernel[axes],
            "stride": stride[axes],
            "padding": padding[axes],
            "dilation": dilation[axes],
            "ceil_mode": bool(ceil_mode),
        }

    if rank < 3:
        whole = options(slice(None))
        y = max_pool(x, **whole)
        return (y, max_pool_indices(x, **whole)) if return_indices else y
    # in two steps, as means: see the note above
    area, depth = options(slice(1, 3)), options(slice(0, 1))
    across = moveaxis(max_pool(x, **area), source=-3, destination=-1)
    y = moveaxis(max_pool(across, **depth), source=-1, destination=-3)
    if not return_indices:
        return y
    inside = moveaxis(max_pool_indices(x, **area), source=-3, destination=-1)
    which = max_pool_indices(across, **depth)
    places = which * (x.shape[-2] * x.shape[-1]) + take_along_axis(inside, which, axis=-1)
    return y, moveaxis(places, source=-1, destination=-3)


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
    """The largest element along one axis after the other; the first of equal ones."""
    name = f"adaptive_max_pool{rank}d"
    x = as_image(name, rank, input)
    if x.dtype.kind not in "iuf":
        raise NumgradTypeError(f"{name}: elements of dtype {x.dtype} have no order")
    lengths = tuple(map(index, x.shape[-rank:]))
    output = parts(name, output_size, lengths)
    if 0 in lengths:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has no largest element"
        )
    windows = divided(lengths, output)
    places = broadcast_to(reshape(arange(prod(lengths)), lengths), tuple(x.shape))
    for axis in range(-1, -rank - 1, -1):
        if not output[axis]:
            x, places = take(x, tensor(np.zeros(0, np.int64)), axis=axis), places
            places = take(places, tensor(np.zeros(0, np.int64)), axis=axis)
            continue
        bounds = np.array([window[:2] for window in windows[axis]])
        longest = int((bounds[:, 1] - bounds[:, 0]).max())
        # a window that is shorter ends with its last element again
        table = np.minimum(bounds[:, :1] + np.arange(longest), bounds[:, 1:] - 1)
        flat, k = tensor(table.ravel()), len(x.shape) + axis
        shape = (*x.shape[:k], len(table), longest, *x.shape[k + 1 :])
        x, places = (reshape(take(a, flat, axis=axis), shape) for a in (x, places))
        best = argmax(x, axis=k + 1, keepdims=True)
        reduced = (*shape[: k + 1], *shape[k + 2 :])
        x, places = (reshape(take_along_axis(a, best, axis=k + 1), reduced) for a in (x, places))
    return (x, places) if return_indices else x


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


def _lengths(
    name: str, x: Any, rank: int, kernel: Sequence[int], output_size: Any, output_ratio: Any
) -> tuple[int, ...]:
    if (output_size is None) == (output_ratio is None):
        raise NumgradValueError(f"{name}: give one of output_size and output_ratio")
    lengths = x.shape[-rank:]
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * rank
        if len(ratios) != rank or not all(0 < r < 1 for r in ratios):
            raise NumgradValueError(
                f"{name}: output_ratio is a number between 0 and 1, or {rank}; got {output_ratio}"
            )
        output_size = [int(int(n) * r) for n, r in zip(lengths, ratios, strict=True)]
    counts = along_axes(name, "output_size", output_size, rank, 1)
    for n, k, out in zip(lengths, kernel, counts, strict=True):
        if out + k - 1 > n:
            raise NumgradValueError(
                f"{name}: {out} windows of length {k} do not begin at different places of an axis "
                f"of length {n}"
            )
    return counts


def _begins(sample: Any, length: Any, kernel: int, out: int) -> Any:
    """Where windows begin: steps that are one of two neighbours, the last one at the end."""
    sample = sample[..., None]
    last = (0 * sample).astype(np.int64) + (length - kernel)
    if out == 1:
        return last
    step = (length - kernel) / (out - 1)
    places = (tensor(np.arange(out - 1.0)) + sample) * step
    return concat([places.astype(np.int64) - (sample * step).astype(np.int64), last], axis=-1)


def _pool(
    rank: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Any,
) -> Any:  # fmt: skip
    name = f"fractional_max_pool{rank}d"
    x = as_image(name, rank, input)
    kernel = along_axes(name, "kernel_size", kernel_size, rank, 1)
    output = _lengths(name, x, rank, kernel, output_size, output_ratio)
    single = len(x.shape) == rank + 1
    x = x[None] if single else x
    count, channels, lengths = x.shape[0], x.shape[1], x.shape[2:]
    if samples is None:
        samples = Generator(generator_of(name, None)).random((count, channels, rank))
    drawn = asarray(samples).detach()
    if drawn.shape != (count, channels, rank):
        raise NumgradValueError(
            f"{name}: needs random samples of shape {(count, channels, rank)}, got {drawn.shape}"
        )
    # the flat place of each element of each window, from the first axis on
    places: Any = 0
    for k, (n, size, out) in enumerate(zip(lengths, kernel, output, strict=True)):
        # samples are in the order x, y, of volumes in that of the axes
        sample = drawn[..., k if rank == 3 else rank - 1 - k]
        along = _begins(sample, n, size, out)[..., None] + tensor(np.arange(size))
        shape = [count, channels, *(1,) * (2 * rank)]
        shape[2 + k], shape[2 + rank + k] = out, size
        places = places * n + reshape(along, shape)
    flat = reshape(x, (count, channels, -1))
    table = reshape(places, (count, channels, -1))
    windows = reshape(
        take_along_axis(flat, table, axis=2), (count, channels, int(np.prod(output)), -1)
    )
    best = argmax(windows, axis=-1, keepdims=True)
    shape = (count, channels, *output)[single:]
    out = reshape(take_along_axis(windows, best, axis=-1), shape)
    if not return_indices:
        return out
    return out, reshape(take_along_axis(reshape(table, windows.shape), best, axis=-1), shape)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Largest elements of windows of images that begin at random places.

    Parameters
    ----------
    input
        Images, of shape ``(samples, channels, height, width)``, or without samples.
    kernel_size
        Rows and columns of a window.
    output_size
        How many windows there are along each axis.
    output_ratio
        The same as a part of the lengths, between 0 and 1.
    return_indices
        Whether to return where in the flattened image each element was as well.
    _random_samples
        Numbers from 0 to 1, of shape (samples, channels, axes), that say where windows begin; by
        default they are drawn.

    Returns
    -------
    Tensor or tuple
        The elements, or these and their places.

    Raises
    ------
    NumgradValueError
        If not one of ``output_size`` and ``output_ratio`` is given, or windows do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.fractional_max_pool2d(ng.ones((2, 3, 8, 8)), 2, output_size=5).shape
    (2, 3, 5, 5)
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Largest elements of windows of volumes that begin at random places.

    Parameters are those of ``fractional_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.fractional_max_pool3d(ng.ones((1, 4, 4, 4)), 2, output_ratio=0.5).shape
    (1, 2, 2, 2)
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@applies(fractional_max_pool2d)
class _FractionalMaxPool(Applied):
    """Base of layers that take the largest element of windows at random places."""

    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Any = None


@applies(fractional_max_pool2d)
class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest elements of windows of images that begin at random places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.FractionalMaxPool2d(3, output_size=(13, 12))(ng.ones((2, 4, 50, 32))).shape
    (2, 4, 13, 12)
    """


@applies(fractional_max_pool3d)
class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest elements of windows of volumes that begin at random places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.FractionalMaxPool3d(3, output_size=4)(ng.ones((1, 2, 9, 9, 9))).shape
    (1, 2, 4, 4, 4)
    """
