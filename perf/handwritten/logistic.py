"""Value and gradient of the mean logistic loss ``mean(softplus(x @ w) - y * (x @ w))``."""

import numpy as np
from numba import njit, prange

from handwritten import INNER, SUMS
from numgrad.codegen.intrinsics import add_any_order
from numgrad.kernels.vmath.exponential import sigmoid_f64, softplus_f64

BLOCK = 128
"""Rows that are read twice, the second time from cache."""


@njit(**INNER, fastmath=SUMS)
def products(rows, w, z):
    """``z = rows @ w``, four rows at a time."""
    whole = rows.shape[0] // 4
    for k in range(whole):
        r0, r1, r2, r3 = rows[4 * k], rows[4 * k + 1], rows[4 * k + 2], rows[4 * k + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(w.size):
            s0 += r0[j] * w[j]
            s1 += r1[j] * w[j]
            s2 += r2[j] * w[j]
            s3 += r3[j] * w[j]
        z[4 * k], z[4 * k + 1], z[4 * k + 2], z[4 * k + 3] = s0, s1, s2, s3
    for k in range(4 * whole, rows.shape[0]):
        row = rows[k]
        s0 = 0.0
        for j in range(w.size):
            s0 += row[j] * w[j]
        z[k] = s0


@njit(**INNER, fastmath=SUMS)
def add_products(rows, residual, grad):
    """``grad += residual @ rows``, four rows at a time."""
    whole = rows.shape[0] // 4
    for k in range(whole):
        r0, r1, r2, r3 = rows[4 * k], rows[4 * k + 1], rows[4 * k + 2], rows[4 * k + 3]
        c0, c1 = residual[4 * k], residual[4 * k + 1]
        c2, c3 = residual[4 * k + 2], residual[4 * k + 3]
        for j in range(grad.size):
            grad[j] += (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j])
    for k in range(4 * whole, rows.shape[0]):
        row, c0 = rows[k], residual[k]
        for j in range(grad.size):
            grad[j] += c0 * row[j]


@njit(**INNER)
def losses(z, y):
    """Sum of the losses; leaves their derivatives in ``z``."""
    total = 0.0
    for i in range(z.size):
        total = add_any_order(total, softplus_f64(z[i]) - y[i] * z[i])
        z[i] = sigmoid_f64(z[i]) - y[i]
    return total


@njit(**INNER)
def fused(w, x, y, grad):
    """Sum of the losses of some rows; their gradient goes to ``grad``."""
    total = 0.0
    grad[:] = 0.0
    z = np.empty(BLOCK)
    for lo in range(0, x.shape[0], BLOCK):
        hi = min(lo + BLOCK, x.shape[0])
        part = z[: hi - lo]
        products(x[lo:hi], w, part)
        total += losses(part, y[lo:hi])
        add_products(x[lo:hi], part, grad)
    return total


@njit(**INNER)
def mean(values, grads, count):
    """Value and gradient from the sums of several parts."""
    for k in range(1, values.size):
        values[0] += values[k]
        grads[0] += grads[k]
    return values[0] / count, grads[0] / count


@njit(error_model="numpy")
def serial(w, x, y):
    """Value and gradient on one thread."""
    grad = np.empty(w.size)
    total = fused(w, x, y, grad)
    return total / y.size, grad / y.size


@njit(error_model="numpy", parallel=True)
def parallel(w, x, y):
    """Value and gradient, eight parts shared by the threads."""
    parts = 8
    grads, values = np.empty((parts, w.size)), np.empty(parts)
    rows = -(-y.size // parts)
    for k in prange(parts):
        lo, hi = min(k * rows, y.size), min(k * rows + rows, y.size)
        values[k] = fused(w, x[lo:hi], y[lo:hi], grads[k])
    return mean(values, grads, y.size)
