"""Error-free transformations: a sum or product as a rounded value and its exact error.

References: Dekker (1971), A floating-point technique for extending the available precision.
"""

import numpy as np

from numgrad.kernels.intrinsics import HAS_FMA, fma
from numgrad.kernels.jit import device


@device
def fast_two_sum(a, b):
    """``a + b`` and its error, for ``|a| >= |b|`` or ``a == 0``."""
    s = a + b
    return s, b - (s - a)


@device
def two_sum(a, b):
    """``a + b`` and its error, for operands in any order."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_prod(splitter):
    """``two_prod`` for one float type; ``splitter`` is 2**ceil(p / 2) + 1."""
    if HAS_FMA:

        @device
        def two_prod(a, b):
            """``a * b`` and its error."""
            p = a * b
            return p, fma(a, b, -p)
    else:

        @device
        def two_prod(a, b):
            """``a * b`` and its error, by Dekker's splitting (operands below 2**996 or 2**115)."""
            p = a * b
            ca, cb = splitter * a, splitter * b
            ah, bh = ca - (ca - a), cb - (cb - b)
            al, bl = a - ah, b - bh
            return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl

    return two_prod


two_prod_f64 = _two_prod(np.float64(2.0**27 + 1))
two_prod_f32 = _two_prod(np.float32(2.0**12 + 1))
