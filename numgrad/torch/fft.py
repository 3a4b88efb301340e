"""``torch.fft``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.torch import creation
from numgrad.torch.calls import publish, table
from numgrad.torch.table_elementwise import floating

__all__ = ["fftfreq", "rfftfreq"]
_one = "{0}(input, n=None, dim=-1, norm=None): ng.fft.{0}(floating(input), n, dim, norm)"
_two = "{0}(input, s=None, dim=(-2, -1), norm=None): ng.fft.{0}(floating(input), s, dim, norm)"
_all = "{0}(input, s=None, dim=None, norm=None): ng.fft.{0}(floating(input), s, dim, norm)"
TABLE = "\n".join(
    ["[same 1]"]
    + [_one.format(name) for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]]
    + [_two.format(f"{name}2") for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]]
    + [_all.format(f"{name}n") for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]]
    + [
        "fftshift(input, dim=None): ng.fft.fftshift(input, dim)",
        "ifftshift(input, dim=None): ng.fft.ifftshift(input, dim)",
    ]
)
assert floating
publish("fft", globals(), table("fft", globals(), TABLE))


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **options: Any) -> Any:
    """Return the frequencies of a transform of length ``n``."""
    return creation.tensor(ng.fft.fftfreq(n, d).tolist(), dtype=dtype, **options)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **options: Any) -> Any:
    """Return the frequencies of a transform of ``n`` real numbers."""
    return creation.tensor(ng.fft.rfftfreq(n, d).tolist(), dtype=dtype, **options)
