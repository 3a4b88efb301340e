"""Copies, products, outcomes and blocks of twice the size that functions of one matrix share."""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs
from numgrad.kernels.products.blas import gemm
from numgrad.kernels.vmath.logarithm import log2_f64


@outlined
def copy(a, out):
    """The elements of a matrix."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[i, j]


@outlined
def copy_packed(a, out):
    """The same of matrices without strides."""
    n = out.shape[0] * out.shape[1]
    source, target = a.reshape(n), out.reshape(n)
    for i in range(n):
        target[i] = source[i]


@outlined
def turn(a):
    """Transpose a square matrix in place, and conjugate it."""
    for i in range(a.shape[0]):
        a[i, i] = np.conj(a[i, i])
        for j in range(i):
            other = np.conj(a[i, j])
            a[i, j] = np.conj(a[j, i])
            a[j, i] = other


@outlined
def is_finite(a):
    """Whether all elements are finite."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if not np.isfinite(a[i, j]):
                return False
    return True


NOT_FINITE, NOT_FOUND, SINGULAR, NOT_REAL = -1, 1, 2, 3
"""Infinities or NaNs; an iteration without end; no solution; a complex one of what is real."""


@device
def product(a, trans_a, b, trans_b, out, add, alone):
    """``out = op(a) @ op(b)`` of row-major matrices; ``op`` 2 is the adjoint."""
    inner = a.shape[0] if trans_a else a.shape[1]
    gemm(
        a.dtype, trans_a, trans_b, out.shape[0], out.shape[1], inner, a.ctypes.data, a.shape[1],
        b.ctypes.data, b.shape[1], out.ctypes.data, out.shape[1], add, alone,
    )  # fmt: skip


@device
def largest_part(a):
    """The largest of all real and imaginary parts, NaN or infinite if one is."""
    largest = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            here = max(fabs(float(a[i, j].real)), fabs(float(a[i, j].imag)))
            if not here <= largest:
                largest = here
            if not np.isfinite(here):
                return np.nan
    return largest


@outlined
def doubled(a, t, block, scale, most, alone):
    """``[[a, t s**2], [0, a]]`` with a power of two ``s`` that brings ``t`` to the size of ``a``.

    It is at most ``2**most``, 1 where there is nothing to bring, and NaN where ``t`` is not finite,
    which then counts as 0.
    """
    n = a.shape[0]
    whole, moved = largest_part(a), largest_part(t)
    s = 1.0
    if moved > 0.0 and whole > 0.0:
        half = np.floor(0.5 * (log2_f64(whole) - log2_f64(moved)))
        s = 2.0 ** max(min(half, float(most)), -float(most))
    for i in range(n):
        for j in range(n):
            block[i, j] = a[i, j]
            block[n + i, n + j] = a[i, j]
            block[n + i, j] = 0.0
            block[i, n + j] = 0.0
            if moved == moved:
                block[i, n + j] = t[i, j] * s * s
    scale[0] = s if moved == moved else np.nan
    return 0
