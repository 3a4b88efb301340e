"""The block of twice the size whose function holds a derivative of the function."""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs
from numgrad.kernels.vmath.logarithm import log2_f64


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
