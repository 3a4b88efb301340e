"""Pooling of volumes: of their slices, then across these.

Note [Pooling in two steps]
---------------------------
A mean, or a largest element, of a box is that of the means, or largest elements, of its slices. The
divisor of a mean is a product of one factor for each axis. Of equal elements the first slice comes
first, and in it the first place: the order of the flattened volume.
"""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.pooling import operation as ops
from numgrad.nn.pooling.functional import (
    as_image,
    check_divisor,
    check_padding,
    divided,
    parts,
    spans,
    windows_along,
    windows_of_average,
)
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.take import take_along_axis
from numgrad.tensors.tensor import Tensor


def _averaged(x: Any, windows: tuple[ops.Axis, ...]) -> Any:
    """Means over the last three axes: Note [Pooling in two steps]."""
    x = ops.average_windows(x, windows=windows[1:])
    x = moveaxis(x, source=-3, destination=-1)
    return moveaxis(ops.average_windows(x, windows=windows[:1]), source=-1, destination=-3)


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
    name = "avg_pool3d"
    x = as_image(name, 3, input)
    kernel, stride, padding = windows_along(name, 3, kernel_size, stride, padding)
    check_padding(name, padding, kernel)
    check_divisor(name, divisor_override)
    lengths = tuple(x.shape[-3:])
    windows = windows_of_average(
        name, lengths, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad),
        divisor_override,
    )  # fmt: skip
    return _averaged(x, windows)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that divide volumes into given numbers of parts: as in two dimensions.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_avg_pool3d(ng.ones((2, 3, 4, 6, 8)), (1, 2, None)).shape
    (2, 3, 1, 2, 8)
    """
    name = "adaptive_avg_pool3d"
    x = as_image(name, 3, input)
    lengths = tuple(x.shape[-3:])
    output = parts(name, output_size, lengths)
    if 0 in lengths:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has nothing to average"
        )
    return _averaged(x, divided(lengths, output))


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
    name = "max_pool3d"
    x = as_image(name, 3, input)
    kernel, stride, padding = windows_along(name, 3, kernel_size, stride, padding)
    dilation = along_axes(name, "dilation", dilation, 3, 1)
    check_padding(name, padding, spans(kernel, dilation))

    def options(first: int, last: int) -> dict[str, Any]:
        return {
            "kernel": kernel[first:last],
            "stride": stride[first:last],
            "padding": padding[first:last],
            "dilation": dilation[first:last],
            "ceil_mode": bool(ceil_mode),
        }

    slices = ops.max_pool(x, **options(1, 3))
    across = moveaxis(slices, source=-3, destination=-1)
    y = moveaxis(ops.max_pool(across, **options(0, 1)), source=-1, destination=-3)
    if not return_indices:
        return y
    area = x.shape[-2] * x.shape[-1]
    inside = moveaxis(ops.max_pool_indices(x, **options(1, 3)), source=-3, destination=-1)
    which = ops.max_pool_indices(across, **options(0, 1))
    places = which * area + take_along_axis(inside, which, axis=-1)
    return y, moveaxis(places, source=-1, destination=-3)
