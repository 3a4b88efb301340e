"""What lies beyond the edges of an array, in the words of ``scipy.ndimage``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.errors import NumgradValueError
from numgrad.operations.extend import pad_constant
from numgrad.operations.take import take

MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""SciPy's modes -> NumPy's."""


def extended(
    name: str, x: Any, widths: Sequence[tuple[int, int]], modes: Sequence[str], cval: Any = 0.0
) -> Any:
    """The array with elements added at the ends of its axes, along each in a mode of its own."""
    for mode in modes:
        if mode not in MODES:
            raise NumgradValueError(f"{name}: mode {mode!r} is none of {', '.join(MODES)}")
    empty = 0 in x.shape  # then anything beyond the edges will do, in the right number
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        if width == (0, 0):
            continue
        if empty or MODES[mode] == "constant":
            here = [(0, 0)] * len(x.shape)
            here[axis] = width
            x = pad_constant(x, widths=tuple(here), values=cval)
        else:
            places = np.pad(np.arange(x.shape[axis]), width, mode=MODES[mode])  # pyright: ignore
            x = take(x, made(places), axis=axis)
    return x
