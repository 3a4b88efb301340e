"""Convolutions, filters and spectra of signals: functions of ``scipy.signal``, with gradients."""

from numgrad.core.absent import absent as _absent
from numgrad.operations.images.rank import medfilt as medfilt
from numgrad.operations.signal.convolution import convolve2d as convolve2d
from numgrad.operations.signal.convolution import correlate2d as correlate2d
from numgrad.operations.signal.convolution import fftconvolve as fftconvolve
from numgrad.operations.signal.convolution import oaconvolve as oaconvolve
from numgrad.operations.signal.convolution import signal_convolve as convolve
from numgrad.operations.signal.convolution import signal_correlate as correlate
from numgrad.operations.signal.filters import filtfilt as filtfilt
from numgrad.operations.signal.filters import lfilter as lfilter
from numgrad.operations.signal.filters import lfilter_zi as lfilter_zi
from numgrad.operations.signal.filters import savgol_coeffs as savgol_coeffs
from numgrad.operations.signal.filters import savgol_filter as savgol_filter
from numgrad.operations.signal.filters import sosfilt as sosfilt
from numgrad.operations.signal.filters import sosfilt_zi as sosfilt_zi
from numgrad.operations.signal.filters import sosfiltfilt as sosfiltfilt
from numgrad.operations.signal.spectral import csd as csd
from numgrad.operations.signal.spectral import detrend as detrend
from numgrad.operations.signal.spectral import get_window as get_window
from numgrad.operations.signal.spectral import hilbert as hilbert
from numgrad.operations.signal.spectral import istft as istft
from numgrad.operations.signal.spectral import periodogram as periodogram
from numgrad.operations.signal.spectral import resample as resample
from numgrad.operations.signal.spectral import stft as stft
from numgrad.operations.signal.spectral import welch as welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "get_window",
    "hilbert",
    "istft",
    "lfilter",
    "lfilter_zi",
    "medfilt",
    "oaconvolve",
    "periodogram",
    "resample",
    "savgol_coeffs",
    "savgol_filter",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "stft",
    "welch",
]


__getattr__ = _absent(__name__, __all__, {"ShortTimeFFT": "stft and istft"})


def __dir__() -> list[str]:
    return __all__
