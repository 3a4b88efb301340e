"""Transposed convolutions, which are gradients of convolutions: functions and layers.

Shapes and options are in ``nn.convolution``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.applied import along_axes
from numgrad.nn.convolution import _Convolution, as_batch, check_output_padding
from numgrad.nn.convolution_primitives import convolution_input
from numgrad.operations.shape import reshape, squeeze
from numgrad.tensors.tensor import Tensor


def check_transposed(operation: str, x: Any, w: Any, b: Any, groups: int) -> None:
    """Raise unless channels and bias of a transposed convolution fit its weight."""
    if groups < 1 or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise NumgradValueError(
            f"{operation}: {x.shape[1]} channels of an input of shape {tuple(x.shape)} and a "
            f"weight of shape {tuple(w.shape)} do not fit for groups={groups}; the weight needs a "
            "shape (channels, outputs / groups, *kernel), channels divisible by groups"
        )
    outputs = w.shape[1] * groups
    if b is not None and b.shape != (outputs,):
        raise NumgradValueError(
            f"{operation}: a bias of shape {tuple(b.shape)} does not fit a weight of shape "
            f"{tuple(w.shape)}; it needs a number for each of the {outputs} outputs"
        )


def _transposed(
    rank: int,
    x: Any,
    w: Any,
    b: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    name = f"conv_transpose{rank}d"
    x, w, b, batched = as_batch(name, rank, x, w, b)
    stride = along_axes(name, "stride", stride, rank, 1)
    dilation = along_axes(name, "dilation", dilation, rank, 1)
    padding = along_axes(name, "padding", padding, rank, 0)
    extra = along_axes(name, "output_padding", output_padding, rank, 0)
    check_output_padding(name, extra, stride, dilation)
    check_transposed(name, x, w, b, groups)
    y = _transpose(name, x, w, stride, padding, extra, dilation, groups)
    if b is not None:
        y = y + reshape(b, (*b.shape, *(1,) * rank))
    return y if batched else squeeze(y, axis=0)


def _transpose(
    name: str, x: Any, w: Any, stride: Any, padding: Any, extra: Any, dilation: Any, groups: int
) -> Any:
    """The transposed convolution without its bias."""
    shape = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, e, d in zip(
            x.shape[2:], w.shape[2:], stride, padding, extra, dilation, strict=True
        )
    )
    if min(shape) < 1:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} and a weight of shape {tuple(w.shape)} "
            f"with padding {padding} give an output with axes {shape}; use less padding"
        )
    return convolution_input(
        x,
        w,
        shape=shape,
        stride=stride,
        padding=tuple((p, p - e) for p, e in zip(padding, extra, strict=True)),
        dilation=dilation,
        groups=groups,
    )


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution of a sequence: as ``conv_transpose2d``, along one axis.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.conv_transpose1d(ng.tensor([[1.0, 2.0]]), np.array([[[1.0, 10.0]]]))
    tensor([[ 1., 12., 20.]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to its input, as an operation of its own.

    Each element of the input adds a kernel, times that element, to the output; neighbours add
    theirs ``stride`` apart.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    weight
        Of shape (C, O / groups, rows, columns) and the dtype of the input.
    bias
        Of shape (O,), or None.
    stride, dilation, groups
        Those of the convolution.
    padding
        That of the convolution: what is taken off at both ends of each axis here.
    output_padding
        Number of positions added behind: with a stride, convolutions of several lengths have the
        same output. Less than stride or dilation.

    Returns
    -------
    Tensor
        Of shape (N, O, rows, columns), or without N; an axis has length
        ``(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises
    ------
    NumgradTypeError
        If the dtypes differ or are not floating.
    NumgradValueError
        If shapes and options do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([[[1.0, 2.0]]])
    >>> ng.nn.functional.conv_transpose2d(x, np.ones((1, 1, 2, 2)), stride=2)
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


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
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


_TRANSPOSE = (conv_transpose1d, conv_transpose2d, conv_transpose3d)


class _Transposed(_Convolution):
    """A transposed convolution."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the layer; ``output_size``, with or without other axes, chooses output padding.

        Raises
        ------
        NumgradValueError
            If no output padding gives that size.
        """
        extra = self.output_padding
        if output_size is not None:
            extra = self._output_padding(input.shape, tuple(output_size))
        transpose = _TRANSPOSE[self.rank - 1]
        return transpose(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _output_padding(self, shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
        name, rank = type(self).__name__, self.rank
        if len(size) == len(shape):
            size = size[len(shape) - rank :]
        least = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                shape[len(shape) - rank :], self.stride, self.padding, self.dilation,
                self.kernel_size, strict=True,
            )
        )  # fmt: skip
        most = tuple(n + s - 1 for n, s in zip(least, self.stride, strict=True))
        if len(size) != rank or any(
            not lo <= n <= hi for lo, n, hi in zip(least, size, most, strict=True)
        ):
            raise NumgradValueError(
                f"{name}: an input of shape {shape} cannot give output_size {size}; it can be from "
                f"{least} to {most}"
            )
        return tuple(n - lo for n, lo in zip(size, least, strict=True))


class ConvTranspose1d(_Transposed):
    """Transposed convolution of sequences: as ``ConvTranspose2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)(ng.ones((2, 3, 5))).shape
    (2, 8, 10)
    """

    rank = 1


class ConvTranspose2d(_Transposed):
    """Transposed convolution of images, with weights that are learned.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype
        As in ``Conv2d``.
    padding
        What is taken off at both ends of each axis.
    output_padding
        Number of positions added behind; less than stride or dilation.
    padding_mode
        ``"zeros"``.

    Attributes
    ----------
    weight
        Of shape (in_channels, out_channels / groups, rows, columns).
    bias
        Of shape (out_channels,), or None.

    Raises
    ------
    NumgradValueError
        If the options do not fit each other.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    >>> x = ng.ones((1, 4, 5, 5))
    >>> layer(x).shape, layer(x, output_size=(10, 10)).shape
    ((1, 2, 9, 9), (1, 2, 10, 10))
    """

    rank = 2


class ConvTranspose3d(_Transposed):
    """Transposed convolution of volumes: as ``ConvTranspose2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConvTranspose3d(4, 2, 2, stride=2)(ng.ones((1, 4, 3, 4, 5))).shape
    (1, 2, 6, 8, 10)
    """

    rank = 3
