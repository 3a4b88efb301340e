"""Layers of pooling."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.module.module import Module
from numgrad.nn.pooling import functional


class _MaxPool(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _arguments(self) -> tuple:
        return (
            self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Largest element of windows of sequences: as ``MaxPool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MaxPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Any) -> Any:
        """Apply the layer."""
        return functional.max_pool1d(input, *self._arguments())


class MaxPool2d(_MaxPool):
    """Largest element of windows that slide over images.

    Parameters
    ----------
    kernel_size, stride, padding, dilation, return_indices, ceil_mode
        As in ``functional.max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.MaxPool2d(2)
    >>> layer
    MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(ng.ones((5, 16, 8, 8))).shape
    (5, 16, 4, 4)
    """

    def forward(self, input: Any) -> Any:
        """Apply the layer."""
        return functional.max_pool2d(input, *self._arguments())


class AvgPool1d(Module):
    """Mean of windows of sequences.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As in ``functional.avg_pool1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = along_axes("AvgPool1d", "kernel_size", kernel_size, 1, 1)
        stride = kernel_size if stride is None else stride
        self.stride = along_axes("AvgPool1d", "stride", stride, 1, 1)
        self.padding = along_axes("AvgPool1d", "padding", padding, 1, 0)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """Mean of windows that slide over images.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        As in ``functional.avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool2d(2)(ng.ones((5, 3, 8, 8))).shape
    (5, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return functional.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvgPool(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The argument of the constructor."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of a given number of parts of sequences, as ``functional.adaptive_avg_pool1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool1d(2)(ng.tensor([[1.0, 3.0, 2.0]]))
    tensor([[2. , 2.5]])
    """

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return functional.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of a given number of rows and columns, as ``functional.adaptive_avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool2d((1, None))(ng.ones((5, 3, 7, 7))).shape
    (5, 3, 1, 7)
    """

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return functional.adaptive_avg_pool2d(input, self.output_size)
