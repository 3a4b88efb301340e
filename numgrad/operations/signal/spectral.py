"""Spectral densities of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.fourier.operands import resized
from numgrad.operations.shape import as_index, as_operand, copy
from numgrad.operations.signal.segments import Segments, floating


@composite(ref="scipy.signal.csd", method=False, smooth=True)
def csd(
    x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1,
):  # fmt: skip
    """Cross spectral density of two signals, the mean of that of segments.

    Parameters
    ----------
    x
        First signal.
    y
        Second one, of the same length.
    fs : float
        Number of elements in a unit of time.
    window : str, tuple or array_like
        Name of the window, or its weights.
    nperseg : int
        Length of a segment; by default 256.
    noverlap : int
        How many elements it shares with the next; by default half of them.
    nfft : int
        Length of its Fourier transform.
    detrend : {'constant', 'linear', False}
        What is removed from each segment.
    return_onesided : bool
        Whether frequencies of real signals that follow from others are left out.
    scaling : {'density', 'spectrum'}
        Whether it is divided by the width of a frequency.

    Returns
    -------
    pair of Tensors
        Frequencies, and the densities at them.

    Examples
    --------
    >>> x = np.sin(np.arange(8.0))
    >>> f, density = ng.signal.csd(x, 2 * x, nperseg=4)
    >>> f
    tensor([0.  , 0.25, 0.5 ])
    """
    x, y = floating(as_operand(x)), floating(as_operand(y))
    return _density(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )


def _density(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    trend: Any, onesided: bool, scaling: str, axis: Any,
) -> tuple[Any, Any]:  # fmt: skip
    (axis,) = normalize_axes(name, axis, len(x.shape))
    n = int(x.shape[axis])
    if y is not None and tuple(x.shape) != tuple(y.shape):
        raise NumgradValueError(
            f"{name}: signals of shapes {tuple(x.shape)} and {tuple(y.shape)}; they must be equal"
        )
    if n == 0:
        raise NumgradValueError(f"{name}: a signal of shape {tuple(x.shape)} has no elements")
    segments = Segments(name, window, nperseg, noverlap, nfft, n)
    onesided = onesided and x.dtype.kind != "c" and (y is None or y.dtype.kind != "c")
    first = segments.spectra(moveaxis(x, axis, -1), trend, onesided)
    multiply = OPS["multiply"]
    if y is None:
        power = OPS["add"](OPS["square"](first.real), OPS["square"](first.imag))
    else:
        second = segments.spectra(moveaxis(y, axis, -1), trend, onesided)
        power = multiply(np.conj(first), second)
    power = multiply(OPS["mean"](power, axis=-2), segments.scale(scaling, fs))
    if onesided:  # each stands for two
        weights = np.full(segments.points // 2 + 1, 2.0)
        weights[0] = 1
        if segments.points % 2 == 0:
            weights[-1] = 1
        weights = weights.astype(np.float32 if first.dtype == np.complex64 else np.float64)
        power = multiply(power, made(weights))
    frequencies = copy(made(segments.frequencies(fs, onesided)))
    return frequencies, moveaxis(power, -1, axis)


@composite(ref="scipy.signal.welch", method=False, smooth=True)
def welch(
    x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1,
):  # fmt: skip
    """Spectral density of a signal by Welch's method, the mean of that of segments.

    Parameters
    ----------
    x
        Signal.
    fs : float
        Number of elements in a unit of time.
    window : str, tuple or array_like
        Name of the window, or its weights.
    nperseg : int
        Length of a segment; by default 256.
    noverlap : int
        How many elements it shares with the next; by default half of them.
    nfft : int
        Length of its Fourier transform.
    detrend : {'constant', 'linear', False}
        What is removed from each segment.
    return_onesided : bool
        Whether frequencies of real signals that follow from others are left out.
    scaling : {'density', 'spectrum'}
        Whether it is divided by the width of a frequency.

    Returns
    -------
    pair of Tensors
        Frequencies, and the densities at them.

    Examples
    --------
    >>> f, density = ng.signal.welch(np.sin(np.arange(64.0)), nperseg=16)
    >>> int(density.argmax()), density.shape
    (3, (9,))
    """
    x = floating(as_operand(x))
    return _density(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
        axis,
    )  # fmt: skip


@composite(ref="scipy.signal.periodogram", method=False, smooth=True)
def periodogram(
    x, fs=1.0, window="boxcar", nfft=None, detrend="constant", return_onesided=True,
    scaling="density", axis=-1,
):  # fmt: skip
    """Spectral density of a whole signal.

    Parameters
    ----------
    x
        Signal.
    fs : float
        Number of elements in a unit of time.
    window : str, tuple or array_like
        Name of the window, or its weights.
    nfft : int
        Length of the Fourier transform: the signal is cut or filled up with zeros.
    detrend : {'constant', 'linear', False}
        What is removed from the signal.
    return_onesided : bool
        Whether frequencies of real signals that follow from others are left out.
    scaling : {'density', 'spectrum'}
        Whether it is divided by the width of a frequency.

    Returns
    -------
    pair of Tensors
        Frequencies, and the densities at them.

    Examples
    --------
    >>> f, density = ng.signal.periodogram(ng.tensor([1.0, -1.0, 1.0, -1.0]))
    >>> density
    tensor([0., 0., 4.])
    """
    x = floating(as_operand(x))
    (axis,) = normalize_axes("periodogram", axis, len(x.shape))
    n = x.shape[axis]
    if nfft is not None and as_index("periodogram", nfft, "nfft") < n:
        n = as_index("periodogram", nfft, "nfft")
        x = resized(x, (axis,), (n,))
    length = n if isinstance(window, str | tuple) else None
    return _density(
        "periodogram", x, None, fs, window, length, 0, nfft, detrend, return_onesided, scaling, axis
    )


csd.calls = [(((9,), (9,)), lambda x, y: csd(x, y, nperseg=4)[1])]
welch.calls = [(((2, 9),), lambda x: welch(x, nperseg=4, nfft=5, detrend="linear")[1])]
periodogram.calls = [(((6,),), lambda x: periodogram(x)[1])]
