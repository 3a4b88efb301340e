"""Kernels along one axis whose elements need their neighbours: recurrences, short convolutions."""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

_SOURCE = """
from numba import {type}

def kernel(a, b, out, outer, length, inner, reverse):
    step = -inner if reverse else inner
    for block in range(outer):
        start = block * length * inner
        if reverse:
            start += (length - 1) * inner
        for j in range(start, start + inner):
            out[j] = b[j]
        for k in range(1, length):
            lo = start + k * step
            for j in range(lo, lo + inner):
                out[j] = {type}({type}(a[j] * out[j - step]) + b[j])
"""


@cache
def recurrence_kernel(dtype: np.dtype) -> Callable[..., None]:
    """Entry point for raveled a, b, out of shape (outer, length, inner), those sizes, reverse.

    With ``reverse`` the recurrence starts at the end: ``y[k] = a[k] y[k+1] + b[k]``.
    """
    name = type_name(dtype)
    return compile_kernel(
        f"recurrence_{short(dtype)}",
        _SOURCE.format(type=name),
        f"void({name}[::1], {name}[::1], {name}[::1], int64, int64, int64, boolean)",
    ).entry


_ALL_POLE = """
from numba import {type}

def kernel(x, a, out, outer, length, inner, order, reverse):
    step = -inner if reverse else inner
    for block in range(outer):
        start = block * length * inner
        if reverse:
            start += (length - 1) * inner
        for k in range(length):
            lo = start + k * step
            before = min(k, order)
            for j in range(lo, lo + inner):
                total = x[j]
                for i in range(before):
                    total = {type}(total - {type}(a[i] * out[j - (i + 1) * step]))
                out[j] = total
"""


@cache
def all_pole_kernel(dtype: np.dtype) -> Callable[..., None]:
    """The recurrence ``y[k] = x[k] - sum(a[i] y[k-1-i])`` along one axis.

    Entry point for raveled x, a, out of shape (outer, length, inner), those sizes, the length of a,
    reverse, with which it starts at the end.
    """
    name = type_name(dtype)
    return compile_kernel(
        f"all_pole_{short(dtype)}",
        _ALL_POLE.format(type=name),
        f"void({name}[::1], {name}[::1], {name}[::1], int64, int64, int64, int64, boolean)",
    ).entry


# The axis and those after it are one run of elements, in which a step along the axis is a constant
# distance; a piece of the run stays in cache for all weights.
_TAPS = """
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
        _TAPS.format(type=name),
        f"void({name}[::1], {name}[::1], {name}[::1], int64, int64, int64, int64)",
    ).entry
