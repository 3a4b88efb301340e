"""Layers that choose the largest of parts, put it back, or take norms of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.nn.applied import Applied, applies
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.module.module import Module
from numgrad.nn.pooling import places as F
from numgrad.nn.pooling.module import AdaptivePool
from numgrad.tensors.tensor import Tensor


class _AdaptiveMaxPool(AdaptivePool):
    shown = ("output_size",)


@applies(F.adaptive_max_pool1d, like=F.adaptive_max_pool2d)
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool1d(2)(ng.tensor([[1.0, 3.0, 2.0]]))
    tensor([[3., 3.]])
    """

    rank = 1
    output_size: Any
    return_indices: bool = False


@applies(F.adaptive_max_pool2d, like=F.adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool2d((1, None))(ng.ones((5, 3, 7, 7))).shape
    (5, 3, 1, 7)
    """

    rank = 2
    output_size: Any
    return_indices: bool = False


@applies(F.adaptive_max_pool3d, like=F.adaptive_max_pool2d)
class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Largest elements of given numbers of parts of volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveMaxPool3d((1, None, 2))(ng.ones((5, 3, 7, 7, 8))).shape
    (5, 3, 1, 7, 2)
    """

    rank = 3
    output_size: Any
    return_indices: bool = False


class _MaxUnpool(Module):
    """What the layers that put largest elements back have in common."""

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
        back = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.rank - 1]
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


class _LPPool(Applied):
    """What layers of norms have in common."""

    rank: int
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def _check_options(self, options: dict[str, Any]) -> None:
        name = type(self).__name__
        along_axes(name, "kernel_size", options["kernel_size"], self.rank, 1)
        if options["stride"] is not None:
            along_axes(name, "stride", options["stride"], self.rank, 1)


@applies(F.lp_pool1d, like=F.lp_pool2d)
class LPPool1d(_LPPool):
    """Norms of windows that slide over sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool1d(2, 2)(ng.ones((1, 4))).shape
    (1, 2)
    """

    rank = 1
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@applies(F.lp_pool2d, like=F.lp_pool2d)
class LPPool2d(_LPPool):
    """Norms of windows that slide over images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool2d(2, 2)(ng.ones((1, 4, 6))).shape
    (1, 2, 3)
    """

    rank = 2
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@applies(F.lp_pool3d, like=F.lp_pool2d)
class LPPool3d(_LPPool):
    """Norms of windows that slide over volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LPPool3d(2, 2)(ng.ones((1, 2, 4, 6))).shape
    (1, 1, 2, 3)
    """

    rank = 3
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False
