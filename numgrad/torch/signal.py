"""``torch.signal.windows``, windows of the topmost module, and short-time Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.torch import creation
from numgrad.torch.calls import table

_DEFAULTS: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "hamming": {}, "hann": {}, "nuttall": {},
    "exponential": {"center": None, "tau": 1.0}, "gaussian": {"std": 1.0}, "kaiser": {"beta": 12.0},
    "general_cosine": {"a": None}, "general_hamming": {"alpha": 0.54},
}  # fmt: skip
"""Windows that SciPy has, and the values of their parameters in PyTorch."""


class LengthError(NumgradValueError, NumgradRuntimeError):
    """A negative length, which PyTorch's functions refuse by one class or the other."""


def _window(name: str) -> Callable[..., Any]:
    def window(M: int, *, sym: bool = True, d: Any = None, **given: Any) -> Any:
        from scipy.signal import windows

        if M < 0:
            raise LengthError(f"{name} requires non-negative window length, got M={M}")
        if d is not None and d.kind != "f":
            raise NumgradRuntimeError(f"{name} expects a floating point dtype, got {d}")
        array = getattr(windows, name)(M, sym=sym, **{**_DEFAULTS[name], **given})
        return array.astype(creation.default(d))

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"Return the window ``{name}`` of M elements."
    return creation.maker(window)


windows = SimpleNamespace(**{name: _window(name) for name in _DEFAULTS})
"""``torch.signal.windows``."""


def _periodic(name: str) -> Callable[..., Any]:
    def function(window_length: int, periodic: bool = True, **rest: Any) -> Any:
        return getattr(windows, name)(window_length, sym=not periodic, **rest)

    function.__name__ = function.__qualname__ = f"{name}_window"
    function.__doc__ = f"Return the window ``{name}``, one period of it by default."
    return function


hann_window, bartlett_window, blackman_window = map(_periodic, ("hann", "bartlett", "blackman"))


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **rest: Any
) -> Any:
    """Return the window ``hamming`` of free coefficients, one period of it by default."""
    return windows.general_cosine(window_length, a=[alpha, beta], sym=not periodic, **rest)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **rest: Any
) -> Any:
    """Return the window ``kaiser``, one period of it by default."""
    return windows.kaiser(window_length, beta=beta, sym=not periodic, **rest)


def _padded_window(window: Any, length: int, n_fft: int, d: Any) -> Any:
    window = ng.ones(length, d) if window is None else window
    left = (n_fft - length) // 2
    return ng.pad(window, [(left, n_fft - length - left)])


def _stft(
    x: Any, n_fft: int, hop: Any, length: Any, window: Any, center: bool, mode: str,
    normalized: bool, onesided: Any, as_complex: Any,
) -> Any:  # fmt: skip
    """Transforms of frames that overlap, the frequencies before the frames."""
    hop, length = hop or n_fft // 4, length or n_fft
    single = x.ndim == 1
    rows = ng.expand_dims(x, 0) if single else x
    if center:
        rows = ng.nn.functional.pad(ng.expand_dims(rows, 1), (n_fft // 2, n_fft // 2), mode)[:, 0]
    frames = ng.unfold(rows, -1, n_fft, hop) * _padded_window(
        window, length, n_fft, np.dtype(x.dtype.type(0).real.dtype)
    )
    if onesided is None:
        onesided = x.dtype.kind != "c" and frames.dtype.kind != "c"
    out = (ng.fft.rfft if onesided else ng.fft.fft)(frames, norm="ortho" if normalized else None)
    out = ng.swapaxes(out, -1, -2)
    out = out[0] if single else out
    return out if as_complex is not False else ng.stack([ng.real(out), ng.imag(out)], axis=-1)


def _istft(
    x: Any, n_fft: int, hop: Any, win_length: Any, window: Any, center: bool, normalized: bool,
    onesided: Any, length: Any, as_complex: bool,
) -> Any:  # fmt: skip
    """The sum of the frames' inverses, divided by that of the windows' squares."""
    hop, win_length = hop or n_fft // 4, win_length or n_fft
    single = x.ndim == 2
    spectrum = ng.swapaxes(ng.expand_dims(x, 0) if single else x, -1, -2)
    inverse = ng.fft.ifft if as_complex else ng.fft.irfft  # which reads one side of two
    frames = inverse(spectrum, n_fft, norm="ortho" if normalized else None)
    real = np.dtype(frames.dtype.type(0).real.dtype)
    shape = _padded_window(window, win_length, n_fft, real)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    places = np.arange(n_fft) + hop * np.arange(count)[:, None]
    flat = ng.reshape(frames * shape, (frames.shape[0], -1))
    signal = OPS["index_add"](ng.zeros((flat.shape[0], total), flat.dtype), places.ravel(), flat, 1)
    squares = ng.reshape(ng.broadcast_to(shape * shape, places.shape), (-1,))
    envelope = OPS["index_add"](ng.zeros(total, squares.dtype), places.ravel(), squares, 0)
    start = n_fft // 2 if center else 0
    end = total - (n_fft // 2 if center else 0) if length is None else start + length
    signal, envelope = signal[:, start:end], envelope[start:end]
    signal = signal / envelope
    if length is not None and length > signal.shape[-1]:
        signal = ng.pad(signal, [(0, 0), (0, length - signal.shape[-1])])
    return signal[0] if single else signal


table(
    "",
    globals(),
    """
[same 1]
stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
    normalized=False, onesided=None, return_complex=None): _stft(input, n_fft, hop_length,
    win_length, window, center, pad_mode, normalized, onesided, return_complex)
istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,
    onesided=None, length=None, return_complex=False): _istft(input, n_fft, hop_length, win_length,
    window, center, normalized, onesided, length, return_complex)
""",
)
