"""What a resized axis reads of the given one: places and weights, as PyTorch chooses them."""

from __future__ import annotations

from functools import lru_cache
from math import floor
from typing import Any

import numpy as np

Taps = tuple[tuple[np.ndarray, np.ndarray | None], ...]
"""Places to read for each element and their weights, for one term of the sum after the other."""

_SHARPNESS = -0.75
_SHARPNESS_ANTIALIASED = -0.5
"""The parameter of cubic convolution: https://doi.org/10.1109/TASSP.1981.1163711."""


def _step(n: int, m: int, scale: float | None, align_corners: bool) -> float:
    """Distance in the given axis of neighbours in the new one."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else n / m


def _centers(n: int, m: int, scale: float | None, align_corners: bool) -> np.ndarray:
    step = _step(n, m, scale, align_corners)
    places = np.arange(m)
    return places * step if align_corners else (places + 0.5) * step - 0.5


@lru_cache(256)
def nearest_taps(n: int, m: int, scale: float | None, exact: bool) -> Taps:
    """The element that is nearest, or the one before."""
    step = _step(n, m, scale, False)
    at = (np.arange(m) + (0.5 if exact else 0.0)) * step
    found = np.floor(at.astype(np.float32))  # so that what rounding leaves below a number counts
    return ((np.minimum(found, n - 1).astype(np.int64), None),)


@lru_cache(256)
def linear_taps(n: int, m: int, scale: float | None, align_corners: bool) -> Taps:
    """Two neighbours, by their distances."""
    at = np.maximum(_centers(n, m, scale, align_corners), 0.0)
    low = np.minimum(at.astype(np.int64), n - 1)
    part = at - low
    return ((low, 1 - part), (np.minimum(low + 1, n - 1), part))


def _inner(x: Any, a: float) -> Any:
    """Weight of a neighbour at a distance ``x`` up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _outer(x: Any, a: float) -> Any:
    """Weight of a neighbour at a distance ``x`` from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(t: Any) -> tuple[Any, ...]:
    """Weights of four neighbours of a place ``t`` behind the second of them."""
    a = _SHARPNESS
    return _outer(t + 1, a), _inner(t, a), _inner(1 - t, a), _outer(2 - t, a)


@lru_cache(256)
def cubic_taps(n: int, m: int, scale: float | None, align_corners: bool) -> Taps:
    """Four neighbours, those outside replaced by the ends."""
    at = _centers(n, m, scale, align_corners)
    low = np.floor(at)
    return tuple(
        (np.clip(low + (k - 1), 0, n - 1).astype(np.int64), weight)
        for k, weight in enumerate(cubic_weights(at - low))
    )


@lru_cache(64)
def antialiased_weights(n: int, m: int, scale: float | None, align_corners: bool, mode: str) -> np.ndarray:
    """A matrix (new, given) whose rows average over what a new element covers."""
    step = _step(n, m, scale, align_corners)
    stretch = max(step, 1.0)
    support = (1.0 if mode == "linear" else 2.0) * stretch
    matrix = np.zeros((m, n))
    for k in range(m):
        center = step * (k + 0.5)
        low = max(floor(center - support + 0.5), 0)
        high = min(floor(center + support + 0.5), n)
        far = np.abs((np.arange(low, high) - center + 0.5) / stretch)
        if mode == "linear":
            row = np.maximum(1 - far, 0)
        else:
            a = _SHARPNESS_ANTIALIASED
            row = np.where(far < 1, _inner(far, a), np.where(far < 2, _outer(far, a), 0))
        matrix[k, low:high] = row / row.sum()
    return matrix
