"""Spectra of signals: windows, segments, spectral densities, short-time transforms, resampling."""

from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, composite, made, normalize_axes, one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.extend import pad, pad_constant
from numgrad.operations.fourier.spectra import resized
from numgrad.operations.fourier.transforms import fft, ifft, irfft, rfft
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, copy, reshape
from numgrad.operations.shared_rules import numbers_of
from numgrad.operations.take import take


@composite(ref="scipy.signal.get_window", method=False, differentiable=False)
def get_window(window, Nx, fftbins=True):
    """The weights of a window, by its name.

    Parameters
    ----------
    window : str or tuple
        Name, such as ``"hann"``; with parameters, as ``("kaiser", 4.0)``.
    Nx : int
        Number of weights.
    fftbins : bool
        Whether it is periodic, for Fourier transforms; else symmetric.

    Returns
    -------
    Tensor
        Weights without a gradient.

    Examples
    --------
    >>> ng.signal.get_window("hann", 4)
    tensor([0. , 0.5, 1. , 0.5])
    """
    return copy(made(_window("get_window", window, Nx, fftbins)))


def _window(name: str, window: Any, n: Any, periodic: bool = True) -> np.ndarray:
    import scipy.signal

    n = as_index(name, n, "the number of weights")
    try:
        return np.asarray(scipy.signal.get_window(window, n, periodic))
    except ValueError as error:
        raise NumgradValueError(f"{name}: no window {window!r} of {n} weights: {error}") from None


def _removed(name: str, x: Any, kind: Any) -> Any:
    """Segments along the last axis without their mean, or their straight line."""
    if kind is False or kind is None:
        return x
    if callable(kind):
        return kind(x)
    if kind in ("constant", "c"):
        return OPS["subtract"](x, OPS["mean"](x, axis=-1, keepdims=True))
    if kind not in ("linear", "l"):
        raise NumgradValueError(f"{name}: detrend is 'constant', 'linear' or False, got {kind!r}")
    n = int(x.shape[-1])
    lines = np.stack([np.arange(1.0, n + 1) / n, np.ones(n)], axis=1)
    lines = np.linalg.qr(lines)[0]
    if x.dtype in (np.float32, np.complex64):
        lines = lines.astype(np.float32)
    matmul = OPS["matmul"]
    return OPS["subtract"](x, matmul(matmul(x, made(lines)), made(lines.T)))


@composite(ref="scipy.signal.detrend", method=False, smooth=True)
def detrend(data, axis=-1, type="linear", bp=0):
    """A signal without its straight line, or its mean.

    Parameters
    ----------
    data
        Signal.
    type : {'linear', 'constant'}
        What is removed.
    bp : int or sequence of ints
        Where other lines begin.

    Returns
    -------
    Tensor
        Of the shape of the signal.

    Examples
    --------
    >>> ng.signal.detrend(ng.tensor([1.0, 2.0, 3.0, 5.0]), type="constant")
    tensor([-1.75, -0.75,  0.25,  2.25])
    """
    x = floating(as_operand(data))
    axis = one_axis("detrend", axis, len(x.shape))
    x = moveaxis(x, axis, -1)
    n = x.shape[-1]
    if type in ("constant", "c"):
        return moveaxis(_removed("detrend", x, type), -1, axis)
    if n == 0:
        raise NumgradValueError(
            f"detrend: no elements along axis {axis}, through which no straight line goes"
        )
    starts = sorted({0, n, *[as_index("detrend", b, "bp") for b in np.atleast_1d(bp).tolist()]})
    if starts[0] < 0 or starts[-1] > n:
        raise NumgradValueError(f"detrend: bp={bp!r} lies outside of {n} elements")
    pieces = [
        _removed("detrend", getitem(x, (Ellipsis, slice(a, b))), type) for a, b in pairwise(starts)
    ]
    return moveaxis(concat(pieces, axis=-1) if len(pieces) > 1 else pieces[0], -1, axis)


def floating(x: Any) -> Any:
    """A signal to compute with: integers as float64."""
    return x if x.dtype.kind in "fc" else OPS["astype"](x, dtype=np.float64)


class Segments:
    """How a signal is cut into segments: their length, weights, distance, Fourier transforms.

    Attributes
    ----------
    length, step, points
        Elements of a segment, from one to the next, and of its transform.
    """

    def __init__(
        self, name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, n: int | None = None
    ) -> None:
        self.name = name
        if isinstance(window, str | tuple):
            length = 256 if nperseg is None else as_index(name, nperseg, "nperseg")
            if n is not None:
                length = min(length, n)
            if length < 1:
                raise NumgradValueError(f"{name}: nperseg={length}; there must be at least one")
            self.weights = _window(name, window, length)
        else:
            self.weights = numbers_of(name, window)
            length = self.weights.size
            if self.weights.ndim != 1 or nperseg not in (None, length):
                raise NumgradValueError(
                    f"{name}: a window of shape {self.weights.shape} and nperseg={nperseg}; they "
                    "must have the same length"
                )
            if n is not None and length > n:
                raise NumgradValueError(f"{name}: a window of {length} weights for {n} elements")
        overlap = length // 2 if noverlap is None else as_index(name, noverlap, "noverlap")
        self.points = length if nfft is None else as_index(name, nfft, "nfft")
        if self.points < length:
            raise NumgradValueError(f"{name}: nfft={self.points} is less than nperseg={length}")
        if not 0 <= overlap < length:
            raise NumgradValueError(
                f"{name}: noverlap={overlap}; it must be below nperseg={length}, and not negative"
            )
        self.length, self.step = length, length - overlap

    def scale(self, scaling: str, fs: float) -> float:
        """Factor of the squares of a spectrum."""
        if scaling in ("density", "psd"):
            return 1 / (fs * float(np.sum(self.weights**2)))
        if scaling == "spectrum":
            return 1 / float(np.sum(self.weights)) ** 2
        raise NumgradValueError(f"{self.name}: scaling={scaling!r} is not known")

    def window(self, dtype: np.dtype) -> Any:
        """The weights, in the precision of a signal."""
        single = dtype in (np.float32, np.complex64)
        return made(self.weights.astype(np.float32 if single else np.float64))

    def places(self, n: int) -> np.ndarray:
        """The elements of each segment."""
        starts = np.arange(0, n - self.length + 1, self.step)
        return starts[:, None] + np.arange(self.length)

    def frequencies(self, fs: float, onesided: bool) -> np.ndarray:
        """The frequencies of the transform."""
        function = np.fft.rfftfreq if onesided else np.fft.fftfreq
        return function(self.points, 1 / fs)

    def spectra(self, x: Any, trend: Any, onesided: bool) -> Any:
        """Transforms of the segments of the last axis, which becomes segments and frequencies."""
        n = int(x.shape[-1])
        if n < self.length:
            raise NumgradValueError(f"{self.name}: {n} elements are less than a segment")
        x = take(x, made(self.places(n)), axis=-1)
        x = OPS["multiply"](_removed(self.name, x, trend), self.window(x.dtype))
        return (rfft if onesided else fft)(x, self.points)


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
    axis = one_axis(name, axis, len(x.shape))
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
    axis = one_axis("periodogram", axis, len(x.shape))
    n = x.shape[axis]
    if nfft is not None and as_index("periodogram", nfft, "nfft") < n:
        n = as_index("periodogram", nfft, "nfft")
        x = resized(x, (axis,), (n,))
    length = n if isinstance(window, str | tuple) else None
    return _density(
        "periodogram", x, None, fs, window, length, 0, nfft, detrend, return_onesided, scaling, axis
    )


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
    axis = one_axis(name, axis, len(x.shape))
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
    result = moveaxis(moveaxis(spectra, -2, -1), -2, axis)
    return copy(made(segments.frequencies(fs, onesided))), copy(made(times)), result


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
    frames = irfft(z, segments.points) if input_onesided else ifft(z, segments.points)
    frames = getitem(frames, (Ellipsis, slice(0, segments.length)))
    total = segments.length + (count - 1) * segments.step
    frames = OPS["multiply"](frames, segments.window(frames.dtype))
    positions = segments.places(total).ravel()
    shape = (*frames.shape[:-2], total)
    flat = reshape(frames, (*frames.shape[:-2], count * segments.length))
    signal = OPS["index_add"](made(np.zeros(shape, flat.dtype)), made(positions), flat, axis=-1)
    norm = np.zeros(total)
    np.add.at(norm, positions, np.tile(segments.weights**2, count))
    factor = segments.scale(scaling, fs) ** -0.5 / np.where(norm > 1e-10, norm, 1.0)
    if signal.dtype in (np.float32, np.complex64):
        factor = factor.astype(np.float32)
    signal = OPS["multiply"](signal, made(factor))
    if boundary:
        half = segments.length // 2
        signal = getitem(signal, (Ellipsis, slice(half, total - half)))
    times = np.arange(signal.shape[-1]) / fs
    return copy(made(times)), moveaxis(signal, -1, over - (of < over))


@composite(ref="scipy.signal.hilbert", method=False, smooth=True)
def hilbert(x, N=None, axis=-1):
    """The analytic signal: without negative frequencies.

    Parameters
    ----------
    x
        Signal, real.
    N : int
        Number of points: the signal is cut or filled up with zeros.

    Returns
    -------
    Tensor
        Complex, of length ``N`` along the axis.

    Examples
    --------
    >>> ng.signal.hilbert(ng.tensor([1.0, 0.0, -1.0, 0.0])).imag
    tensor([ 0.,  1.,  0., -1.])
    """
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(
            "hilbert: the operand is complex; the analytic signal is of a real one"
        )
    axis = one_axis("hilbert", axis, len(x.shape))
    spectrum = fft(x, N, axis)
    n = int(spectrum.shape[axis])
    weights = np.zeros(n, np.float32 if spectrum.dtype == np.complex64 else np.float64)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    shape = [1] * len(x.shape)
    shape[axis] = n
    return ifft(OPS["multiply"](spectrum, made(weights.reshape(shape))), axis=axis)


@composite(ref="scipy.signal.resample", method=False, smooth=True)
def resample(x, num, t=None, axis=0):
    """A periodic signal at other, equally spaced points, by its Fourier transform.

    Parameters
    ----------
    x
        Signal.
    num : int
        Number of points.
    t : array_like
        Places of the given points; the new ones are returned too.

    Returns
    -------
    Tensor
        Of length ``num`` along the axis; with ``t`` a pair of that and the places.

    Examples
    --------
    >>> ng.signal.resample(ng.tensor([1.0, 0.0, -1.0, 0.0]), 8).round(6)
    tensor([ 1.      ,  0.707107,  0.      , -0.707107, -1.      , -0.707107,
             0.      ,  0.707107])
    """
    x = floating(as_operand(x))
    axis = one_axis("resample", axis, len(x.shape))
    num = as_index("resample", num, "num")
    n = int(x.shape[axis])
    if num < 1 or n < 1:
        raise NumgradValueError(f"resample: {n} points to {num}; both must be at least one")
    x = moveaxis(x, axis, -1)
    common = min(n, num)
    middle, paired = common // 2, common % 2 == 0 and n != num
    multiply = OPS["multiply"]
    if x.dtype.kind != "c":
        spectrum = getitem(rfft(x), (Ellipsis, slice(0, middle + 1)))
        if paired:
            weights = np.ones(middle + 1, x.dtype)
            weights[-1] = 2 if num < n else 0.5
            spectrum = multiply(spectrum, made(weights))
        y = irfft(resized(spectrum, (len(x.shape) - 1,), (num // 2 + 1,)), num)
    else:
        spectrum = fft(x)
        first = getitem(spectrum, (Ellipsis, slice(0, (common + 1) // 2)))
        last = getitem(spectrum, (Ellipsis, slice(n - (common - 1) // 2, n)))
        bands = [first]
        if common % 2 == 0:
            both = getitem(spectrum, (Ellipsis, slice(middle, middle + 1)))
            if num < n:
                both = both + getitem(spectrum, (Ellipsis, slice(n - middle, n - middle + 1)))
            bands.append(both / 2 if num > n else both)
        if num > n:
            twice = common % 2 == 0
            zeros = num - common - twice
            bands.append(made(np.zeros((*x.shape[:-1], zeros), spectrum.dtype)))
            if twice:
                bands.append(bands[1])
        y = ifft(concat(*bands, last, axis=-1))
    y = moveaxis(multiply(y, num / n), -1, axis)
    if t is None:
        return y
    t = np.asarray(t)
    return y, copy(made(t[0] + np.arange(num) * (t[1] - t[0]) * n / num))
