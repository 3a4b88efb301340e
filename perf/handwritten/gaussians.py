"""Residuals of a sum of two Gaussians ``a exp(-((x - c) / w)**2)`` and their Jacobian.

Parameters are ``a, c, w`` of the first peak, then of the second; the Jacobian is ``(points, 6)``.
"""

import numpy as np
from numba import njit, prange

from handwritten import INNER
from numgrad.kernels.vmath.exponential import exp_f64

BLOCK = 128
"""Points whose columns are computed side by side before they are written as rows."""


@njit(**INNER)
def peak(x, amplitude, centre, width, wrt_amplitude, wrt_centre, wrt_width):
    """Derivatives of one peak at all points in its three parameters."""
    reciprocal = 1.0 / width
    factor = 2.0 * amplitude * reciprocal
    for i in range(x.size):
        u = (x[i] - centre) * reciprocal
        e = exp_f64(-(u * u))
        inner = factor * u * e
        wrt_amplitude[i] = e
        wrt_centre[i] = inner
        wrt_width[i] = inner * u


@njit(**INNER)
def write_rows(columns, out):
    """``out = columns.T``."""
    c0, c1, c2, c3, c4, c5 = columns
    flat = out.reshape(out.size)
    for i in range(out.shape[0]):
        k = np.uint64(6) * np.uint64(i)
        flat[k] = c0[i]
        flat[k + np.uint64(1)] = c1[i]
        flat[k + np.uint64(2)] = c2[i]
        flat[k + np.uint64(3)] = c3[i]
        flat[k + np.uint64(4)] = c4[i]
        flat[k + np.uint64(5)] = c5[i]


@njit(**INNER)
def fused(p, x, columns, out):
    """The rows of one block of points."""
    n = x.size
    c = (columns[0, :n], columns[1, :n], columns[2, :n], columns[3, :n], columns[4, :n],
         columns[5, :n])  # fmt: skip
    peak(x, p[0], p[1], p[2], c[0], c[1], c[2])
    peak(x, p[3], p[4], p[5], c[3], c[4], c[5])
    write_rows(c, out)


@njit(error_model="numpy")
def serial(p, x, y):
    """Jacobian on one thread; the observations ``y`` do not enter it."""
    out, columns = np.empty((x.size, 6)), np.empty((6, BLOCK))
    for lo in range(0, x.size, BLOCK):
        hi = min(lo + BLOCK, x.size)
        fused(p, x[lo:hi], columns, out[lo:hi])
    return out


@njit(error_model="numpy", parallel=True)
def parallel(p, x, y):
    """Jacobian, blocks shared by the threads."""
    out = np.empty((x.size, 6))
    for k in prange(-(-x.size // BLOCK)):
        lo, hi = k * BLOCK, min(k * BLOCK + BLOCK, x.size)
        fused(p, x[lo:hi], np.empty((6, BLOCK)), out[lo:hi])
    return out
