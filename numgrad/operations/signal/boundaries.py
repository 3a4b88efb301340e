"""What lies beyond the edges of an array, in the words of ``scipy.ndimage``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.core.declare import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.extend import pad

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
    if 0 in x.shape:
        return x
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        if tuple(width) == (0, 0):
            continue
        here = [(0, 0)] * len(x.shape)
        here[axis] = tuple(width)
        kind = MODES[mode]
        if kind == "constant":
            x = pad(x, here, constant_values=OPS["astype"].compute((cval,), {"dtype": x.dtype}))
        else:
            x = pad(x, here, kind)
    return x
