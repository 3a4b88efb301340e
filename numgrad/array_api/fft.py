"""Fourier transforms of the Array API standard, those of ``ng.fft``."""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

import numpy as _np

import numgrad as _ng
from numgrad.array_api.standard import check_device as _check_device
from numgrad.errors import NumgradAttributeError as _NumgradAttributeError

_SAME = """
fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftn
"""
_OURS: set[str] = set()
if _find_spec("numgrad.fft") is not None:
    _OURS = {*_SAME.split()} & set(_import_module("numgrad.fft").__all__)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies that ``fft`` of ``n`` samples at distances ``d`` belongs to.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    _check_device("fftfreq", device)
    return _ng.asarray(_np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies that ``rfft`` of ``n`` samples at distances ``d`` belongs to.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    """
    _check_device("rfftfreq", device)
    return _ng.asarray(_np.fft.rfftfreq(n, d), dtype)


def __getattr__(name: str) -> Any:
    if name not in _OURS:
        raise _NumgradAttributeError(f"array_api.fft: there is no {name!r}")
    value = globals()[name] = getattr(_import_module("numgrad.fft"), name)
    return value


__all__ = sorted(["fftfreq", "rfftfreq", *_OURS])  # pyright: ignore


def __dir__() -> list[str]:
    return __all__
