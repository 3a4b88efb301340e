"""Functions of scalars that are not elementary: remainders, signs, log-sums, conversions.

The remainder is exact (LLVM's frem); quotients follow from it, as in NumPy, so that
``floor_divide(x, y) * y + remainder(x, y)`` gives x back.

Note [Floats as integers]
C leaves a conversion out of range undefined. Here it is what NumPy gives on x86: there it is the
smallest integer, as for NaN. Shorter integers are what is left of one of 32 bits; unsigned ones of
32 and 64 bits are as far above half their range as the float is. (Of 32 unsigned bits NumPy's own
answers depend on where in an array a number lies.)
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import copysign, fabs, floor, select
from numgrad.kernels.vmath.exponential import exp2_f64, log1p_exp_f64
from numgrad.kernels.vmath.logarithm import log1p_f64
from numgrad.kernels.vmath.precision import single

D_ZERO, F_ZERO = np.float64(0.0), np.float32(0.0)
D_ONE, F_ONE = np.float64(1.0), np.float32(1.0)
_INF = np.float64(np.inf)
INV_LN2, F_INV_LN2 = 1.4426950408889634, np.float32(1.4426950408889634)


@device
def sign_f64(x):
    """-1, 0 or 1; NaN stays NaN."""
    return select(x > D_ZERO, D_ONE, select(x < D_ZERO, -D_ONE, x + D_ZERO))


sign_f32 = single(sign_f64)


@device
def fmax_f64(x, y):
    """Larger of two, a NaN losing."""
    return select((x >= y) | (y != y), x, y)


fmax_f32 = single(fmax_f64)


@device
def fmin_f64(x, y):
    """Smaller of two, a NaN losing."""
    return select((x <= y) | (y != y), x, y)


fmin_f32 = single(fmin_f64)


@device
def fmod_f64(x, y):
    """Remainder with the sign of ``x``."""
    return np.fmod(x, y)


fmod_f32 = single(fmod_f64)


@device
def remainder_f64(x, y):
    """Remainder with the sign of ``y``."""
    r = np.fmod(x, y)
    return select(r == D_ZERO, copysign(D_ZERO, y), select((r < D_ZERO) != (y < D_ZERO), r + y, r))


remainder_f32 = single(remainder_f64)


@device
def floor_divide_f64(x, y):
    """Quotient rounded down; of infinities that of the limit, where NumPy has NaN and -1."""
    r = np.fmod(x, y)
    quotient = (x - r) / y
    quotient = select((r != 0.0) & ((r < 0.0) != (y < 0.0)), quotient - 1.0, quotient)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = select(quotient == 0.0, copysign(0.0, x / y), whole)
    limit = (y == 0.0) | (fabs(x) == _INF) | (fabs(y) == _INF)
    return select(limit, x / y, whole)


@device
def floor_divide_f32(x, y):
    """Quotient rounded down."""
    return np.float32(floor_divide_f64(np.float64(x), np.float64(y)))


@device
def logaddexp_f64(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = select(x > y, x, y), select(x > y, y, x)
    # equal infinities: their difference would be NaN
    gap = select(high == low, D_ZERO, low - high)
    return select(x + y != x + y, select(high == -low, high, x + y), high + log1p_exp_f64(gap))


logaddexp_f32 = single(logaddexp_f64)


@device
def logaddexp2_f64(x, y):
    """``log2(2**x + 2**y)``."""
    high, low = select(x > y, x, y), select(x > y, y, x)
    gap = select(high == low, D_ZERO, low - high)
    value = high + log1p_f64(exp2_f64(gap)) * INV_LN2
    return select(x + y != x + y, select(high == -low, high, x + y), value)


logaddexp2_f32 = single(logaddexp2_f64)


_HALF_32, _HALF_64 = 2.0**31, 2.0**63
_HALF = np.int64(2**31)
_LEAST = np.int64(-(2**63))


@device
def to_int32_f64(x):
    """The integer of 32 bits, in 64."""
    return np.int64(select((x > -_HALF_32 - 1.0) & (x < _HALF_32), x, -_HALF_32))


@device
def to_int64_f64(x):
    """The integer of 64 bits."""
    return np.int64(select((x >= -_HALF_64) & (x < _HALF_64), x, -_HALF_64))


@device
def to_uint32_f64(x):
    """The lower 32 bits of the result are the unsigned integer."""
    if x >= _HALF_32:
        return to_int32_f64(x - _HALF_32) + _HALF
    return to_int32_f64(x)


@device
def to_uint64_f64(x):
    """The unsigned integer's bits."""
    if x >= _HALF_64:
        return to_int64_f64(x - _HALF_64) ^ _LEAST
    return to_int64_f64(x)


@device
def to_int32_f32(x):
    """The integer of 32 bits, in 64."""
    return to_int32_f64(np.float64(x))


@device
def to_int64_f32(x):
    """The integer of 64 bits."""
    return to_int64_f64(np.float64(x))


@device
def to_uint32_f32(x):
    """The lower 32 bits of the result are the unsigned integer."""
    return to_uint32_f64(np.float64(x))


@device
def to_uint64_f32(x):
    """The unsigned integer's bits."""
    return to_uint64_f64(np.float64(x))
