"""Layers that change the size of images."""

from __future__ import annotations

from typing import Any

from numgrad.nn.applied import Applied, applies
from numgrad.nn.interpolation import functional as F


class _Upsample(Applied):
    """What these layers have in common."""

    def _check_options(self, options: dict[str, Any]) -> None:
        name = type(self).__name__
        mode = options.get("mode", "nearest")
        F.check_mode(name, mode, options.get("align_corners"))
        factor = options["scale_factor"]
        if factor is not None:
            several = isinstance(factor, tuple | list)
            found = F.factors_of(name, factor, len(factor) if several else 1)
            options["scale_factor"] = found if several else found[0]

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        named = "size" if self.scale_factor is None else "scale_factor"
        return f"{named}={getattr(self, named)}, mode={self.mode!r}"


@applies(F.interpolate)
class Upsample(_Upsample):
    """Sequences, images or volumes of another size.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Upsample(scale_factor=2, mode="bilinear")
    >>> layer
    Upsample(scale_factor=2.0, mode='bilinear')
    >>> layer(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None


@applies(F.upsample_nearest, like=F.interpolate)
class UpsamplingNearest2d(_Upsample):
    """``Upsample`` with ``mode="nearest"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.UpsamplingNearest2d(scale_factor=2)(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    mode = "nearest"
    size: Any = None
    scale_factor: Any = None


@applies(F.upsample_bilinear, like=F.interpolate)
class UpsamplingBilinear2d(_Upsample):
    """``Upsample`` with ``mode="bilinear"`` and ``align_corners=True``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.UpsamplingBilinear2d(size=(8, 9))(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 9)
    """

    mode = "bilinear"
    size: Any = None
    scale_factor: Any = None
