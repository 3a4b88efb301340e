"""Layers of pooling."""

from __future__ import annotations

from typing import Any

from numgrad.core.options import option
from numgrad.nn.applied import Applied, applies
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.pooling import functional as F
from numgrad.nn.pooling import volume as V

_LEAST = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


class _Pool(Applied):
    """What layers with windows have in common."""

    shown = ("kernel_size", "stride", "padding")
    rank = 2

    def _check_options(self, options: dict[str, Any]) -> None:
        if options["stride"] is None:
            options["stride"] = options["kernel_size"]
        name = type(self).__name__
        found = {
            key: along_axes(name, key, options.get(key, 1), self.rank, least)
            for key, least in _LEAST.items()
        }
        reach = F.spans(found["kernel_size"], found["dilation"])
        F.check_padding(name, found["padding"], reach)
        F.check_divisor(name, options.get("divisor_override"))


class _MaxPool(_Pool):
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


@applies(F.max_pool1d, like=F.max_pool2d)
class MaxPool1d(_MaxPool):
    """Largest element of windows of sequences: as ``MaxPool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MaxPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    rank = 1
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@applies(F.max_pool2d)
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

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@applies(F.avg_pool1d, like=F.avg_pool2d)
class AvgPool1d(_Pool):
    """Mean of windows of sequences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool1d(2)(ng.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    rank = 1
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        for name in ("kernel_size", "stride", "padding"):
            options[name] = along_axes("AvgPool1d", name, options[name], 1, _LEAST[name])


@applies(F.avg_pool2d)
class AvgPool2d(_Pool):
    """Mean of windows that slide over images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool2d(2)(ng.ones((5, 3, 8, 8))).shape
    (5, 3, 4, 4)
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class AdaptivePool(Applied):
    """What layers with parts have in common."""

    rank = 2

    def _check_options(self, options: dict[str, Any]) -> None:
        F.parts(type(self).__name__, options["output_size"], (1,) * self.rank)


@applies(F.adaptive_avg_pool1d)
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


@applies(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(AdaptivePool):
    """Means of a given number of rows and columns, as ``functional.adaptive_avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AdaptiveAvgPool2d((1, None))(ng.ones((5, 3, 7, 7))).shape
    (5, 3, 1, 7)
    """

    output_size: Any


@applies(V.max_pool3d, like=F.max_pool2d)
class MaxPool3d(_MaxPool):
    """Largest element of windows that slide over volumes: as ``MaxPool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MaxPool3d(2)(ng.ones((5, 3, 8, 8, 6))).shape
    (5, 3, 4, 4, 3)
    """

    rank = 3
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@applies(V.avg_pool3d, like=F.avg_pool2d)
class AvgPool3d(_Pool):
    """Mean of windows that slide over volumes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AvgPool3d(2)(ng.ones((5, 3, 8, 8, 6))).shape
    (5, 3, 4, 4, 3)
    """

    rank = 3
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


@applies(V.adaptive_avg_pool3d, like=F.adaptive_avg_pool2d)
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
