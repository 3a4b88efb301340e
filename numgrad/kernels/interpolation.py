"""Kernels of the piecewise linear function through given points.

Note [Places of numbers]
------------------------
The place of ``x`` is the number of the last point that is not behind it: from there to the next one
is the interval that it lies in. It is -1 before the first point, and the last point's for NaN. The
value at NaN is NaN, but where there is one point alone the function is constant, at NaN too, as
NumPy's.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel

PIECE = 4096
"""Numbers that a thread takes at a time."""
PARTS = 8
"""Sums of the gradients of the points, each of a part of the numbers; one if there are few."""
_FOUND_NS, _ADDED_NS = 8.0, 4.0

_VALUES = """
from numba import int64, prange
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import select
from numgrad.kernels.sorting import places_of_floats

@outlined
def some(x, xp, fp, out, place):
    n = xp.size
    places_of_floats(xp, x, place, True)
    for i in range(x.size):
        v = x[i]
        p = place[i] - 1
        place[i] = p
        j = max(p, 0)
        k = min(j + 1, n - 1)
        inside = (p >= 0) & (k > j)
        x0, x1, f0, f1 = xp[j], xp[k], fp[j], fp[k]
        slope = (f1 - f0) / select(inside, x1 - x0, 1.0)
        y = slope * (v - x0) + f0
        again = slope * (v - x1) + f1
        again = select((again != again) & (f0 == f1), f0, again)
        y = select(y != y, again, y)  # of infinite points, as NumPy has it
        y = select(inside & (v != x0), y, f0)
        out[i] = select((v != v) & (n > 1), v, y)

def kernel(x, xp, fp, out, place):
    for task in {range}(-(-x.size // {piece})):
        lo = int64(task) * {piece}
        hi = min(lo + {piece}, x.size)
        some(x[lo:hi], xp, fp, out[lo:hi], place[lo:hi])
"""

_GRADIENTS = """
from numba import int64, prange
from numgrad.codegen.device import outlined

@outlined
def some(x, xp, fp, place, g, gx, gxp, gfp, lo, hi):
    n = xp.size
    for i in range(lo, hi):
        j = place[i]
        v = x[i]
        if v != v and n > 1:
            gx[i] = g[i]
        elif j < 0 or j == n - 1:
            gx[i] = 0.0
            gfp[max(j, 0)] += g[i]
        else:
            width = xp[j + 1] - xp[j]
            slope = (fp[j + 1] - fp[j]) / width
            t = (v - xp[j]) / width
            behind = g[i] * t
            before = g[i] * (1.0 - t)
            gx[i] = g[i] * slope
            gfp[j] += before
            gfp[j + 1] += behind
            gxp[j] -= before * slope
            gxp[j + 1] -= behind * slope

def kernel(x, xp, fp, place, g, gx, gxp, gfp):
    parts = gxp.shape[0]
    for task in {range}(parts):
        t = int64(task)
        lo = t * x.size // parts
        some(x, xp, fp, place, g, gx, gxp[t], gfp[t], lo, (t + 1) * x.size // parts)
"""

_ROW, _ROWS, _PLACES = "float64[::1]", "float64[:,::1]", "int64[::1]"


@cache
def _kernel(gradients: bool, parallel: bool) -> Callable[..., None]:
    name, source, types = "interp", _VALUES, [_ROW] * 4 + [_PLACES]
    if gradients:
        name, source = "interp_backward", _GRADIENTS
        types = [_ROW, _ROW, _ROW, _PLACES, _ROW, _ROW, _ROWS, _ROWS]
    return compile_kernel(
        f"{name}{'_p' if parallel else ''}",
        source.format(range="prange" if parallel else "range", piece=PIECE),
        f"void({', '.join(types)})",
        parallel=parallel,
    ).entry


def _choose_kernel(gradients: bool, work_ns: float) -> Callable[..., None]:
    kernel = partial(_kernel, gradients)
    return threads.choose(partial(kernel, False), partial(kernel, True), work_ns)


def interpolate(x: np.ndarray, xp: np.ndarray, fp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values at ``x``, and their places: Note [Places of numbers]; all on one axis, of float64."""
    out, interval = np.empty(x.size), np.empty(x.size, np.int64)
    _choose_kernel(False, x.size * _FOUND_NS)(x, xp, fp, out, interval)
    return out, interval


def interpolate_backward(
    x: np.ndarray, xp: np.ndarray, fp: np.ndarray, interval: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of ``x`` and of the points."""
    chunks = PARTS if x.size >= PARTS * max(xp.size, PIECE) else 1
    gx, gxp, gfp = np.empty(x.size), np.zeros((chunks, xp.size)), np.zeros((chunks, xp.size))
    work_ns = x.size * _ADDED_NS if chunks > 1 else 0.0
    _choose_kernel(True, work_ns)(x, xp, fp, interval, g, gx, gxp, gfp)
    return gx, gxp.sum(0), gfp.sum(0)
