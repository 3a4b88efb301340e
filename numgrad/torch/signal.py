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

_NAMES = (
    "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann "
    "kaiser nuttall"
)
_DEFAULTS = {"gaussian": {"std": 1.0}, "kaiser": {"beta": 12.0}, "general_hamming": {"alpha": 0.54}}
"""Parameters that have values in PyTorch and none in SciPy."""


class LengthError(NumgradValueError, NumgradRuntimeError):
    """A negative length, which PyTorch's functions refuse by one class or the other."""


def _window(name: str) -> Callable[..., Any]:
    def window(M: int, *, sym: bool = True, dtype: Any = None, **given: Any) -> Any:
        from scipy.signal import windows

        if M < 0:
            raise LengthError(f"{name} requires non-negative window length, got M={M}")
        if dtype is not None and dtype.kind != "f":
            raise NumgradRuntimeError(f"{name} expects a floating point dtype, got {dtype}")
        return getattr(windows, name)(M, sym=sym, **{**_DEFAULTS.get(name, {}), **given})

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"Return the window ``{name}`` of M elements."
    return creation.maker(window)


windows = SimpleNamespace(**{name: _window(name) for name in _NAMES.split()})
"""``torch.signal.windows``."""


def _periodic(name: str, *parameters: str) -> Callable[..., Any]:
    def function(window_length: int, periodic: bool = True, *given: Any, **rest: Any) -> Any:
        rest |= dict(zip(parameters, given, strict=False))
        return getattr(windows, name)(window_length, sym=not periodic, **rest)

    function.__name__ = function.__qualname__ = f"{name}_window"
    function.__doc__ = f"Return the window ``{name}``, one period of it by default."
    return function


hann_window, bartlett_window, blackman_window = map(_periodic, ("hann", "bartlett", "blackman"))
kaiser_window = _periodic("kaiser", "beta")


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **rest: Any
) -> Any:
    """Return the window ``hamming`` of free coefficients, one period of it by default."""
    return windows.general_cosine(window_length, a=[alpha, beta], sym=not periodic, **rest)


def _padded_window(window: Any, length: Any, n_fft: int, like: Any) -> Any:
    length = length or n_fft
    window = ng.ones(length, like.dtype.type(0).real.dtype) if window is None else window
    left = (n_fft - length) // 2
    return ng.pad(window, [(left, n_fft - length - left)])


_PADS = {"replicate": "edge", "circular": "wrap"}
"""PyTorch's names of ways to continue a signal, and NumPy's."""


def _stft(
    x: Any, n_fft: int, hop: Any, length: Any, window: Any, center: bool, mode: str,
    normalized: bool, onesided: Any, as_complex: Any,
) -> Any:  # fmt: skip
    """Transforms of frames that overlap, the frequencies before the frames."""
    if center:
        ends = [*[(0, 0)] * (x.ndim - 1), (n_fft // 2, n_fft // 2)]
        x = ng.pad(x, ends, _PADS.get(mode, mode))
    frames = ng.unfold(x, -1, n_fft, hop or n_fft // 4) * _padded_window(window, length, n_fft, x)
    if onesided is None:
        onesided = frames.dtype.kind != "c"
    out = (ng.fft.rfft if onesided else ng.fft.fft)(frames, norm="ortho" if normalized else None)
    out = ng.swapaxes(out, -1, -2)
    return out if as_complex is not False else ng.stack([ng.real(out), ng.imag(out)], axis=-1)


def _istft(
    x: Any, n_fft: int, hop: Any, win_length: Any, window: Any, center: bool, normalized: bool,
    onesided: Any, length: Any, as_complex: bool,
) -> Any:  # fmt: skip
    """The sum of the frames' inverses, divided by that of the windows' squares."""
    inverse = ng.fft.ifft if as_complex else ng.fft.irfft  # which reads one side of two
    frames = inverse(ng.swapaxes(x, -1, -2), n_fft, norm="ortho" if normalized else None)
    window = _padded_window(window, win_length, n_fft, frames)
    places = np.arange(n_fft) + (hop or n_fft // 4) * np.arange(frames.shape[-2])[:, None]
    total, start = int(places[-1, -1]) + 1, n_fft // 2 if center else 0
    end = total - start if length is None else start + length

    def overlapping(parts: Any) -> Any:
        parts = ng.reshape(parts, (*parts.shape[:-2], -1))
        sums = ng.zeros((*parts.shape[:-1], total), parts.dtype)
        return OPS["index_add"](sums, places.ravel(), parts, -1)[..., start:end]

    squares = overlapping(ng.broadcast_to(window * window, places.shape))
    signal = overlapping(frames * window) / squares
    missing = 0 if length is None else max(length - signal.shape[-1], 0)
    return ng.pad(signal, [*[(0, 0)] * (signal.ndim - 1), (0, missing)]) if missing else signal


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
