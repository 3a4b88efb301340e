"""Functions of one or two scalars that are not elementary: remainders, signs, log-sums."""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import copysign, fabs, floor, select
from numgrad.kernels.vmath.exponential import exp2_f32, exp2_f64, exp_f32, exp_f64
from numgrad.kernels.vmath.logarithm import log1p_f32, log1p_f64

_0f, _1f = np.float32(0.0), np.float32(1.0)
_INF = np.float64(np.inf)
_INV_LN2_64, _INV_LN2_32 = 1.4426950408889634, np.float32(1.4426950408889634)


@device
def sign_f64(x):
    """-1, 0 or 1; NaN stays NaN."""
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x + 0.0))


@device
def sign_f32(x):
    """-1, 0 or 1; NaN stays NaN."""
    return select(x > _0f, _1f, select(x < _0f, -_1f, x + _0f))


@device
def fmax_f64(x, y):
    """Larger of two, a NaN losing."""
    return select((x >= y) | (y != y), x, y)


@device
def fmax_f32(x, y):
    """Larger of two, a NaN losing."""
    return select((x >= y) | (y != y), x, y)


@device
def fmin_f64(x, y):
    """Smaller of two, a NaN losing."""
    return select((x <= y) | (y != y), x, y)


@device
def fmin_f32(x, y):
    """Smaller of two, a NaN losing."""
    return select((x <= y) | (y != y), x, y)


# The remainder is exact (LLVM's frem); quotients follow from it, as in NumPy, so that
# ``floor_divide(x, y) * y + remainder(x, y)`` gives x back.


@device
def fmod_f64(x, y):
    """Remainder with the sign of ``x``."""
    return np.fmod(x, y)


@device
def fmod_f32(x, y):
    """Remainder with the sign of ``x``."""
    return np.fmod(x, y)


@device
def remainder_f64(x, y):
    """Remainder with the sign of ``y``."""
    r = np.fmod(x, y)
    return select(r == 0.0, copysign(0.0, y), select((r < 0.0) != (y < 0.0), r + y, r))


@device
def remainder_f32(x, y):
    """Remainder with the sign of ``y``."""
    r = np.fmod(x, y)
    return select(r == _0f, copysign(_0f, y), select((r < _0f) != (y < _0f), r + y, r))


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
    gap = select(high == low, 0.0, low - high)
    return select(x + y != x + y, select(high == -low, high, x + y), high + log1p_f64(exp_f64(gap)))


@device
def logaddexp_f32(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = select(x > y, x, y), select(x > y, y, x)
    gap = select(high == low, _0f, low - high)
    return select(x + y != x + y, select(high == -low, high, x + y), high + log1p_f32(exp_f32(gap)))


@device
def logaddexp2_f64(x, y):
    """``log2(2**x + 2**y)``."""
    high, low = select(x > y, x, y), select(x > y, y, x)
    gap = select(high == low, 0.0, low - high)
    value = high + log1p_f64(exp2_f64(gap)) * _INV_LN2_64
    return select(x + y != x + y, select(high == -low, high, x + y), value)


@device
def logaddexp2_f32(x, y):
    """``log2(2**x + 2**y)``."""
    high, low = select(x > y, x, y), select(x > y, y, x)
    gap = select(high == low, _0f, low - high)
    value = high + log1p_f32(exp2_f32(gap)) * _INV_LN2_32
    return select(x + y != x + y, select(high == -low, high, x + y), value)
