"""``torch.fft``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

import numgrad as ng  # noqa: F401 (in the tables)
from numgrad.torch import creation
from numgrad.torch.calls import publish, table

__all__ = ["fftfreq", "rfftfreq"]
TABLE = """
[float 1]
{fft ifft rfft irfft hfft ihfft}(input, n=None, dim=-1, norm=None): ng.fft.@(input, n, dim, norm)
{fft2 ifft2 rfft2 irfft2 hfft2 ihfft2}(input, s=None, dim=(-2, -1), norm=None): ng.fft.@(
    input, s, dim, norm)
{fftn ifftn rfftn irfftn hfftn ihfftn}(input, s=None, dim=None, norm=None): ng.fft.@(
    input, s, dim, norm)
[same 1]
{fftshift ifftshift}(input, dim=None): ng.fft.@(input, dim)
"""
publish("fft", globals(), table("fft", globals(), TABLE))

fftfreq, rfftfreq = creation.makers(globals(), "{fftfreq rfftfreq}(n, d=1.0): ng.fft.@(n, d)")
