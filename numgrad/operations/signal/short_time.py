"""Spectra of the segments of a signal, and the signal from them."""

from __future__ import annotations

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.extend import pad, pad_constant
from numgrad.operations.fourier.transforms import ifft, irfft
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_operand, copy, reshape
from numgrad.operations.signal.segments import Segments, floating

_BOUNDARIES = {"zeros": "constant", "constant": "edge", "even": "reflect", "odd": "reflect"}


@composite(ref="scipy.signal.stft", method=False, smooth=True)
def stft(
    x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False,
    return_onesided=True, boundary="zeros", padded=True, axis=-1, scaling="spectrum",
):  # fmt: skip
    """Fourier transforms of the segments of a signal.

    Parameters
    ----------
    x
        Signal.
    fs : float
        Number of elements in a unit of time.
    window : str, tuple or array_like
        Name of the window, or its weights.
    nperseg : int
        Length of a segment.
    noverlap : int
        How many elements it shares with the next; by default half of them.
    nfft : int
        Length of its Fourier transform.
    detrend : {'constant', 'linear', False}
        What is removed from each segment.
    return_onesided : bool
        Whether frequencies of real signals that follow from others are left out.
    boundary : {'zeros', 'constant', 'even', 'odd', None}
        What the signal is continued by, half a segment at both ends.
    padded : bool
        Whether zeros make the last segment complete.
    scaling : {'spectrum', 'psd'}
        Whether squares are powers, or densities.

    Returns
    -------
    tuple of three Tensors
        Frequencies, times of the segments, and their spectra, time along the last axis.

    Examples
    --------
    >>> f, t, spectra = ng.signal.stft(np.sin(np.arange(16.0)), nperseg=8)
    >>> spectra.shape
    (5, 5)
    """
    name = "stft"
    x = floating(as_operand(x))
    (axis,) = normalize_axes(name, axis, len(x.shape))
    x = moveaxis(x, axis, -1)
    segments = Segments(name, window, nperseg, noverlap, nfft, int(x.shape[-1]))
    half = segments.length // 2
    none = [(0, 0)] * (len(x.shape) - 1)
    if boundary is not None:
        if boundary not in _BOUNDARIES:
            raise NumgradValueError(
                f"{name}: boundary is one of {', '.join(_BOUNDARIES)} or None, got {boundary!r}"
            )
        longer = pad(x, [*none, (half, half)], _BOUNDARIES[boundary])
        if boundary == "odd":
            edges = pad(x, [*none, (half, half)], "edge") * 2
            longer = concat(
                getitem(edges - longer, (Ellipsis, slice(0, half))),
                x,
                getitem(edges - longer, (Ellipsis, slice(half + x.shape[-1], None))),
                axis=-1,
            )
        x = longer
    if padded:
        missing = -(int(x.shape[-1]) - segments.length) % segments.step % segments.length
        x = pad_constant(x, widths=(*none, (0, missing))) if missing else x
    onesided = return_onesided and x.dtype.kind != "c"
    spectra = segments.spectra(x, detrend, onesided)
    spectra = OPS["multiply"](spectra, segments.scale(scaling, fs) ** 0.5)
    start = 0 if boundary is not None else segments.length / 2
    times = (start + segments.step * np.arange(spectra.shape[-2])) / fs
    found = moveaxis(moveaxis(spectra, -2, -1), -2, axis)
    return copy(made(segments.frequencies(fs, onesided))), copy(made(times)), found


@composite(ref="scipy.signal.istft", method=False, smooth=True)
def istft(
    Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True,
    boundary=True, time_axis=-1, freq_axis=-2, scaling="spectrum",
):  # fmt: skip
    """The signal whose segments have given Fourier transforms: inverse of ``stft``.

    Parameters
    ----------
    Zxx
        Spectra of the segments.
    fs : float
        Number of elements in a unit of time.
    window : str, tuple or array_like
        Name of the window, or its weights.
    nperseg : int
        Length of a segment.
    noverlap : int
        How many elements it shares with the next; by default half of them.
    nfft : int
        Length of its Fourier transform.
    input_onesided : bool
        Whether frequencies of real signals that follow from others are left out.
    boundary : bool
        Whether the signal was continued at its ends.
    time_axis : int
        Axis of the segments.
    freq_axis : int
        Axis of their frequencies.
    scaling : {'spectrum', 'psd'}
        Whether squares are powers, or densities.

    Returns
    -------
    pair of Tensors
        Times, and the signal at them.

    Examples
    --------
    >>> x = np.sin(np.arange(16.0))
    >>> t, y = ng.signal.istft(ng.signal.stft(x, nperseg=8)[2], nperseg=8)
    >>> bool(np.allclose(y, x))
    True
    """
    name = "istft"
    z = as_operand(Zxx)
    ndim = len(z.shape)
    if ndim < 2:
        raise NumgradValueError(f"{name}: spectra of shape {tuple(z.shape)} have two axes or more")
    (over,), (of,) = (normalize_axes(name, a, ndim) for a in (time_axis, freq_axis))
    if over == of:
        raise NumgradValueError(f"{name}: time_axis and freq_axis are the same, {over}")
    z = moveaxis(z, (over, of), (-2, -1))
    count, frequencies = int(z.shape[-2]), int(z.shape[-1])
    default = 2 * (frequencies - 1) if input_onesided else frequencies
    nperseg = default if nperseg is None else nperseg
    if nfft is None and input_onesided and nperseg == default + 1:  # an odd number of points
        nfft = nperseg
    segments = Segments(name, window, nperseg, noverlap, default if nfft is None else nfft)
    parts = irfft(z, segments.points) if input_onesided else ifft(z, segments.points)
    parts = getitem(parts, (Ellipsis, slice(0, segments.length)))
    total = segments.length + (count - 1) * segments.step
    parts = OPS["multiply"](parts, segments.window(parts.dtype))
    places = segments.places(total).ravel()
    shape = (*parts.shape[:-2], total)
    flat = reshape(parts, (*parts.shape[:-2], count * segments.length))
    signal = OPS["index_add"](made(np.zeros(shape, flat.dtype)), made(places), flat, axis=-1)
    norm = np.zeros(total)
    np.add.at(norm, places, np.tile(segments.weights**2, count))
    factor = segments.scale(scaling, fs) ** -0.5 / np.where(norm > 1e-10, norm, 1.0)
    if signal.dtype in (np.float32, np.complex64):
        factor = factor.astype(np.float32)
    signal = OPS["multiply"](signal, made(factor))
    if boundary:
        half = segments.length // 2
        signal = getitem(signal, (Ellipsis, slice(half, total - half)))
    times = np.arange(signal.shape[-1]) / fs
    return copy(made(times)), moveaxis(signal, -1, over - (of < over))


stft.calls = [(((7,),), lambda x: stft(x, nperseg=4)[2])]
istft.calls = [(((3, 3),), lambda z: istft(z, nperseg=4)[1])]
