"""Kernel of a convolution with few weights along one axis, of the places where all of them meet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

# The axis and those after it are one run of elements, in which a step along the axis is a constant
# distance; a piece of the run stays in cache for all weights.
_SOURCE = """
from numba import {type}

def kernel(x, weights, out, outer, length, inner, taps):
    size = (length - taps + 1) * inner
    for block in range(outer):
        start = block * length * inner
        target = block * size
        for lo in range(0, size, 1024):
            hi = min(lo + 1024, size)
            last = weights[taps - 1]
            for t in range(lo, hi):
                out[target + t] = {type}(last * x[start + t])
            for i in range(1, taps):
                weight = weights[taps - 1 - i]
                shifted = start + i * inner
                for t in range(lo, hi):
                    out[target + t] += {type}(weight * x[shifted + t])
"""


@cache
def taps_kernel(dtype: np.dtype) -> Callable[..., None]:
    """Entry point for raveled x, weights, out; x of shape (outer, length, inner); and taps."""
    name = type_name(dtype)
    return compile_kernel(
        f"taps_{short(dtype)}",
        _SOURCE.format(type=name),
        f"void({name}[::1], {name}[::1], {name}[::1], int64, int64, int64, int64)",
    ).entry
