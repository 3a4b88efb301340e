"""Convolutions, filters and spectra of signals: functions of ``scipy.signal``, with gradients."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.operations.images.rank": "medfilt",
        "numgrad.operations.signal.convolution": "convolve2d correlate2d fftconvolve oaconvolve "
        "convolve=signal_convolve correlate=signal_correlate",
        "numgrad.operations.signal.filters": "filtfilt lfilter lfilter_zi savgol_coeffs "
        "savgol_filter sosfilt sosfilt_zi sosfiltfilt",
        "numgrad.operations.signal.spectral": "csd detrend get_window hilbert istft periodogram "
        "resample stft welch",
    },
    {"ShortTimeFFT": "stft and istft"},
)
