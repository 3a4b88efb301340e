"""Convolutions of volumes, through convolutions of their slices.

Note [Depth as channels]
------------------------
What a kernel covers along the first axis of positions is laid beside the channels: ``(N, C, D, H,
W)`` becomes ``(N * D', C * kernel, H, W)``, and weights ``(O, C / groups, kernel, ...)`` are those
of images as they lie in memory. A transposed convolution makes such channels and adds them up.
"""

from __future__ import annotations

from operator import index
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.convolution.functional import (
    along_axes,
    as_batch,
    check_output_padding,
    check_transposed,
    conv_transpose2d,
    pairs_of,
)
from numgrad.nn.convolution.operation import convolution
from numgrad.nn.padding import pad
from numgrad.operations.arrangement import moveaxis, permute_dims
from numgrad.operations.index import getitem
from numgrad.operations.scatter import index_add
from numgrad.operations.shape import reshape, squeeze
from numgrad.operations.take import take
from numgrad.tensors.creation import arange, zeros
from numgrad.tensors.tensor import Tensor


def _places(count: int, stride: int, kernel: int, dilation: int) -> Any:
    """Where the elements of each kernel lie along an axis, one kernel after another."""
    return reshape(reshape(arange(count) * stride, (-1, 1)) + arange(kernel) * dilation, (-1,))


def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlation of volumes with kernels: as ``conv2d``, along three axes.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.conv3d(ng.ones((1, 1, 2, 3, 3)), np.ones((1, 1, 2, 2, 2)))
    tensor([[[[[8., 8.],
               [8., 8.]]]]])
    """
    name = "conv3d"
    x, w, b, batched = as_batch(name, 3, input, weight, bias)
    stride = along_axes(name, "stride", stride, 3, 1)
    dilation = along_axes(name, "dilation", dilation, 3, 1)
    kernel = tuple(map(index, w.shape[2:]))
    pairs = pairs_of(name, padding, kernel, stride, dilation)
    samples, channels, depth, *area = x.shape
    count = (index(depth) + sum(pairs[0]) - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    if count < 1 or channels != w.shape[1] * groups:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)}, a weight of shape {tuple(w.shape)}, "
            f"padding {pairs}, dilation {dilation} and groups={groups} do not fit; the weight has "
            "shape (outputs, channels / groups, *kernel), the kernel is within the padded input"
        )
    if any(pairs[0]):
        x = pad(x, (0, 0, 0, 0, *pairs[0]))
    x = take(x, _places(count, stride[0], kernel[0], dilation[0]), axis=2)
    x = reshape(x, (samples, channels, count, kernel[0], *area))
    x = permute_dims(x, axes=(0, 2, 1, 3, 4, 5))
    y = convolution(
        reshape(x, (samples * count, channels * kernel[0], *area)),
        reshape(w, (w.shape[0], w.shape[1] * kernel[0], *kernel[1:])),
        b,
        stride=stride[1:],
        padding=pairs[1:],
        dilation=dilation[1:],
        groups=groups,
    )
    y = moveaxis(reshape(y, (samples, count, *y.shape[1:])), source=1, destination=2)
    return y if batched else squeeze(y, axis=0)


def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of ``conv3d`` with respect to its input: as ``conv_transpose2d``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.ones((1, 1, 2, 3, 3))
    >>> ng.nn.functional.conv_transpose3d(x, np.ones((1, 2, 2, 2, 2)), stride=2).shape
    (1, 2, 4, 6, 6)
    """
    name = "conv_transpose3d"
    x, w, b, batched = as_batch(name, 3, input, weight, bias)
    stride = along_axes(name, "stride", stride, 3, 1)
    dilation = along_axes(name, "dilation", dilation, 3, 1)
    padding = along_axes(name, "padding", padding, 3, 0)
    extra = along_axes(name, "output_padding", output_padding, 3, 0)
    check_output_padding(name, extra, stride, dilation)
    check_transposed(name, x, w, b, groups)
    kernel = tuple(map(index, w.shape[2:]))
    samples, channels, depth, *area = x.shape
    depth = index(depth)
    reach = (depth - 1) * stride[0] + dilation[0] * (kernel[0] - 1) + 1 + extra[0]
    if reach - 2 * padding[0] < 1:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} and a weight of shape {tuple(w.shape)} "
            f"with padding {padding} give no output; use less padding"
        )
    x = reshape(moveaxis(x, source=2, destination=1), (samples * depth, channels, *area))
    y = conv_transpose2d(
        x, reshape(w, (channels, w.shape[1] * kernel[0], *kernel[1:])), None, stride[1:],
        padding[1:], extra[1:], groups, dilation[1:],
    )  # fmt: skip
    outputs = w.shape[1] * groups
    area = y.shape[2:]
    y = reshape(y, (samples, depth, outputs, kernel[0], *area))
    y = permute_dims(y, axes=(0, 2, 1, 3, 4, 5))
    y = reshape(y, (samples, outputs, depth * kernel[0], *area))
    empty = zeros((samples, outputs, reach, *area), dtype=y.dtype)
    y = index_add(empty, _places(depth, stride[0], kernel[0], dilation[0]), y, axis=2)
    if padding[0]:
        y = getitem(y, (slice(None), slice(None), slice(padding[0], reach - padding[0])))
    if b is not None:
        y = y + reshape(b, (outputs, 1, 1, 1))
    return y if batched else squeeze(y, axis=0)
