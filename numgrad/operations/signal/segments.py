"""Windows, trends, and how a signal is cut into segments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import one_axis
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.data_dependent import numbers_of
from numgrad.operations.fourier.transforms import fft, rfft
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, copy
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
    parts = [
        _removed("detrend", getitem(x, (Ellipsis, slice(a, b))), type) for a, b in pairwise(starts)
    ]
    return moveaxis(concat(parts, axis=-1) if len(parts) > 1 else parts[0], -1, axis)


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
        """What squares of a spectrum are multiplied by."""
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
        """Those of the transform."""
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


detrend.calls = [
    (((2, 5),), lambda x: detrend(x, bp=2)),
    (((4,),), lambda x: detrend(x, type="constant")),
]
