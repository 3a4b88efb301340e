"""Error-free transformations: a sum or product as a rounded value and its exact error.

References: Dekker (1971), A floating-point technique for extending the available precision.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import HAS_FMA, bits, fma, from_bits


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


def _two_prod(word, top):
    """``two_prod`` for one float type: its integer, and a mask of the upper half of its bits."""
    if HAS_FMA:

        @device
        def two_prod(a, b):
            """``a * b`` and its error."""
            p = a * b
            return p, fma(a, b, -p)
    else:
        # Dekker's product; the halves come from a mask, which cannot overflow.
        @device
        def two_prod(a, b):
            """``a * b`` and its error."""
            p = a * b
            ah, bh = from_bits(word(bits(a) & top)), from_bits(word(bits(b) & top))
            al, bl = a - ah, b - bh
            return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl

    return two_prod


two_prod_f64 = _two_prod(np.int64, np.int64(-(1 << 27)))
two_prod_f32 = _two_prod(np.int32, np.int32(-(1 << 12)))
