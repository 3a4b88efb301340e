"""Error-free transformations: a sum or product as a rounded value and its exact error.

Dekker (1971), A floating-point technique for extending the available precision.

Note [Exact multiply-add]
-------------------------
``exact_mul_add`` is for uses in which the rounding error of the product must not be lost. Where the
CPU has FMA it is one instruction. Elsewhere (Note [Multiply-add without hardware] of
``intrinsics``) the product is taken with its error: exact if the sum cancels the leading half of
the product, which is what error terms, remainders and argument reductions need.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import HAS_FMA, bits, fma, from_bits
from numgrad.kernels.vmath.precision import INT, single


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


_TOP_HALF_F64, _TOP_HALF_F32 = np.int64(-(1 << 27)), np.int32(-(1 << 12))


@device
def two_prod_f64(a, b):
    """``a * b`` and its error."""
    p = a * b
    return p, fma(a, b, -p)


@device
def exact_mul_add_f64(a, b, c):
    """``a * b + c`` without the rounding error of the product: Note [Exact multiply-add]."""
    return fma(a, b, c)


@device
def _dekker_prod_f64(a, b):
    """``a * b`` and its error by Dekker; the halves come from a mask, which cannot overflow."""
    p = a * b
    ah = from_bits(INT(bits(a) & _TOP_HALF_F64))
    bh = from_bits(INT(bits(b) & _TOP_HALF_F64))
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@device
def _dekker_mul_add_f64(a, b, c):
    """``a * b + c`` without the rounding error of the product, by Dekker's."""
    high, low = _dekker_prod_f64(a, b)
    return (high + c) + low


two_prod_f32 = single(two_prod_f64)
exact_mul_add_f32 = single(exact_mul_add_f64)
_dekker_prod_f32 = single(_dekker_prod_f64)
_dekker_mul_add_f32 = single(_dekker_mul_add_f64)

for _function, _other in (
    (two_prod_f64, _dekker_prod_f64),
    (two_prod_f32, _dekker_prod_f32),
    (exact_mul_add_f64, _dekker_mul_add_f64),
    (exact_mul_add_f32, _dekker_mul_add_f32),
):
    _function.without_fma = _other
    if not HAS_FMA:
        _function.for_numba = _other.py_func
