"""Pooling by means and by means of powers of windows, as functions and layers."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, along_axes, applies
from numgrad.nn.pooling_windows import (
    _LEAST,
    EACH,
    AdaptivePool,
    Axis,
    _Pool,
    as_image,
    average_windows,
    check_divisor,
    check_padding,
    parts,
    sliding_average,
    windows_along,
)
from numgrad.operations.error_gamma_logistic import relu
from numgrad.operations.shape import reshape
from numgrad.tensors.tensor import Tensor


def _averaged(x: Any, windows: tuple[Axis, ...]) -> Any:
    """Means over the last axes, of three: Note [Pooling in two steps]."""
    if len(windows) < 3:
        return average_windows(x, windows=windows)
    x = average_windows(x, windows=windows[1:])
    lines = reshape(x, (*x.shape[:-2], prod(x.shape[-2:])))
    y = average_windows(lines, windows=(windows[0], EACH))
    return reshape(y, (*y.shape[:-1], *x.shape[-2:]))


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
    windows = sliding_average(
        kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor
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
    windows = parts(name, output_size, rank, x.shape[:-rank])
    if 0 in x.shape[-rank:]:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has nothing to average"
        )
    return _averaged(x, windows)


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
