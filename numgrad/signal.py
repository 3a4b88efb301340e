"""Convolutions, filters and spectra of signals: functions of ``scipy.signal``, with gradients."""

from numgrad.operations.images.rank import medfilt as medfilt
from numgrad.operations.signal.filters import filtfilt as filtfilt
from numgrad.operations.signal.filters import lfilter as lfilter
from numgrad.operations.signal.filters import lfilter_zi as lfilter_zi
from numgrad.operations.signal.filters import sosfilt as sosfilt
from numgrad.operations.signal.filters import sosfilt_zi as sosfilt_zi
from numgrad.operations.signal.filters import sosfiltfilt as sosfiltfilt
from numgrad.operations.signal.products import convolve2d as convolve2d
from numgrad.operations.signal.products import correlate2d as correlate2d
from numgrad.operations.signal.products import fftconvolve as fftconvolve
from numgrad.operations.signal.products import oaconvolve as oaconvolve
from numgrad.operations.signal.products import signal_convolve as convolve
from numgrad.operations.signal.products import signal_correlate as correlate

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "fftconvolve",
    "filtfilt",
    "lfilter",
    "lfilter_zi",
    "medfilt",
    "oaconvolve",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
]


def __dir__() -> list[str]:
    return __all__
