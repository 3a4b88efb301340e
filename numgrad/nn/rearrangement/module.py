"""Layers that move elements of images between places and channels."""

from __future__ import annotations

from typing import Any

from numgrad.core.options import option
from numgrad.nn.applied import Applied, applies
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.rearrangement import functional as F


@applies(F.pixel_shuffle)
class PixelShuffle(Applied):
    """Channels laid out as blocks of places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PixelShuffle(3)(ng.ones((2, 18, 4, 5))).shape
    (2, 2, 12, 15)
    """

    upscale_factor: int = option(above=0)


@applies(F.pixel_unshuffle)
class PixelUnshuffle(Applied):
    """Blocks of places as channels.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PixelUnshuffle(3)(ng.ones((2, 2, 12, 15))).shape
    (2, 18, 4, 5)
    """

    downscale_factor: int = option(above=0)


@applies(F.channel_shuffle)
class ChannelShuffle(Applied):
    """Channels of several groups dealt out anew.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ChannelShuffle(2)(ng.ones((2, 4, 3, 3))).shape
    (2, 4, 3, 3)
    """

    groups: int = option(above=0)


class _OfPatches(Applied):
    """What layers with patches have in common."""

    def _check_options(self, options: dict[str, Any]) -> None:
        least = {"output_size": 1, "kernel_size": 1, "dilation": 1, "padding": 0, "stride": 1}
        for name, value in options.items():
            along_axes(type(self).__name__, name, value, 2, least[name])


@applies(F.unfold)
class Unfold(_OfPatches):
    """Patches of images as columns.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Unfold(kernel_size=(2, 3))(ng.ones((2, 5, 3, 4))).shape
    (2, 30, 4)
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@applies(F.fold)
class Fold(_OfPatches):
    """Images that columns, patch by patch, are added up to.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(ng.ones((1, 12, 12))).shape
    (1, 3, 4, 5)
    """

    output_size: Any
    kernel_size: Any = option(doc="Shape of the patches: an integer or a tuple.")
    dilation: Any = option(default=1, doc="Distance of neighbours in a patch.")
    padding: Any = option(default=0, doc="Zeros that were added at both ends of each axis.")
    stride: Any = option(default=1, doc="Distance of neighbouring patches.")
