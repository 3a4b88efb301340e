"""Sample calls of operations: signal."""

from typing import Any

import numpy as np

from numgrad.operations.join import concat
from numgrad.operations.signal.convolution import (
    convolve2d,
    correlate2d,
    fftconvolve,
    oaconvolve,
    signal_convolve,
    signal_correlate,
)
from numgrad.operations.signal.filters import (
    filtfilt,
    lfilter,
    lfilter_zi,
    savgol_filter,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from numgrad.operations.signal.spectral import (
    csd,
    detrend,
    hilbert,
    istft,
    periodogram,
    resample,
    stft,
    welch,
)


def _coefficients_near(a: Any) -> Any:
    """A stable denominator near 1."""
    return concat(np.ones(1), a * 0.5, axis=0)


def _rows(b: Any, a: Any) -> Any:
    return concat(b, np.ones((b.shape[0], 1)), a * 0.5, axis=1)


CALLS = {
    # numgrad.operations.signal.convolution
    signal_convolve: [
        (((3, 2), (2, 3)), lambda a, b: signal_convolve(a, b, "same")),
        (((), ()), lambda a, b: signal_convolve(a, b)),
    ],
    signal_correlate: [(((2,), (4,)), lambda a, b: signal_correlate(a, b, "valid"))],
    fftconvolve: [(((2, 3), (2, 2)), lambda a, b: fftconvolve(a, b, axes=1))],
    oaconvolve: [(((3,), (2,)), lambda a, b: oaconvolve(a, b))],
    convolve2d: [
        (((2, 3), (2, 2)), lambda a, b: convolve2d(a, b, "same", "symm")),
        (((2, 3), (2, 2)), lambda a, b: convolve2d(a, b, "full", "fill", 2.0)),
    ],
    correlate2d: [(((2, 3), (1, 2)), lambda a, b: correlate2d(a, b, "full", "wrap"))],
    # numgrad.operations.signal.filters
    lfilter: [
        (((2,), (2,), (2, 4)), lambda b, a, x: lfilter(b, _coefficients_near(a), x)),
        (
            ((3,), (1,), (4, 1), (2, 1)),
            lambda b, a, x, z: concat(lfilter(b, _coefficients_near(a), x, 0, z), axis=0),
        ),
    ],
    lfilter_zi: [(((3,), (1,)), lambda b, a: lfilter_zi(b, _coefficients_near(a)))],
    sosfilt: [
        (((2, 3), (2, 2), (4,)), lambda b, a, x: sosfilt(_rows(b, a), x)),
        (
            ((1, 3), (1, 2), (4,), (1, 2)),
            lambda b, a, x, z: sosfilt(_rows(b, a), x, zi=z)[1],
        ),
    ],
    sosfilt_zi: [(((2, 3), (2, 2)), lambda b, a: sosfilt_zi(_rows(b, a)))],
    filtfilt: [
        (((2,), (1,), (5,)), lambda b, a, x: filtfilt(b, _coefficients_near(a), x, padlen=2))
    ],
    sosfiltfilt: [
        (
            ((1, 3), (1, 2), (5,)),
            lambda b, a, x: sosfiltfilt(_rows(b, a), x, padtype="even", padlen=2),
        )
    ],
    savgol_filter: [
        (((2, 6),), lambda x: savgol_filter(x, 5, 2, 1)),
        (((6,),), lambda x: savgol_filter(x, 3, 1, mode="wrap")),
    ],
    # numgrad.operations.signal.spectral
    detrend: [
        (((2, 5),), lambda x: detrend(x, bp=2)),
        (((4,),), lambda x: detrend(x, type="constant")),
    ],
    csd: [(((9,), (9,)), lambda x, y: csd(x, y, nperseg=4)[1])],
    welch: [(((2, 9),), lambda x: welch(x, nperseg=4, nfft=5, detrend="linear")[1])],
    periodogram: [(((6,),), lambda x: periodogram(x)[1])],
    stft: [(((7,),), lambda x: stft(x, nperseg=4)[2])],
    istft: [(((3, 3),), lambda z: istft(z, nperseg=4)[1])],
    hilbert: [(((2, 5),), lambda x: hilbert(np.real(x)))],
    resample: [
        (((4, 2),), lambda x: resample(x, 6)),
        (((6,),), lambda x: resample(x, 4)),
    ],
}
