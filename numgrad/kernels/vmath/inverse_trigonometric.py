"""Inverse sine, cosine and tangent, and the angle of a point.

Arc sine: ``asin s = s + s**3 P(s**2)`` on ``s <= 1/2``; above, ``pi/2 - 2 asin s`` with
``s = sqrt((1 - |x|) / 2)``. Both are ``base + m (s + tail)`` with ``base`` a multiple of pi/2 in
two parts, the arc cosine only has other bases and factors. The rounding error of the square root
goes into the tail; it needs the reciprocal of the root to a few per cent only, which comes from
the exponent trick ``magic - (bits(z) >> 1)``. P has degree 11 (float64) or 4 (float32), relative
errors 2**-56 and 2**-27.

Note [Arc tangent of a quotient]
For ``0 <= low <= high`` let ``t = low / high``, or ``t = (low - high) / (low + high)`` with pi/4
added to the result where ``low / high > tan(pi/8)``. Then ``|t| <= tan(pi/8)`` and
``atan t = t + t**3 P(t**2)``, degree 10 or 4, relative errors 2**-59 and 2**-30. The rounding
errors of sum, difference and quotient go into a tail. Octants and half-planes turn the result into
``j pi/4 + t`` or ``j pi/4 - t`` with ``j`` from 0 to 4, pi/4 in two parts. ``atan x`` is the case
(1, x). ``atan2`` first scales its operands, so that the reciprocal of the larger one is normal and
remainders do not underflow, and puts finite numbers for infinities and for 0/0.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, estrin, fabs, from_bits, mul_add, select, sqrt
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum
from numgrad.kernels.vmath.precision import INT, float32s, float64s, single

_ZERO_F64, _HALF_F64, _ONE_F64, _TWO_F64, _FOUR_F64, _INF_F64 = float64s("0.0 0.5 1.0 2.0 4.0 inf")
_PI_F64, _PI_LOW_F64 = np.float64(3.141592653589793), np.float64(1.2246467991473532e-16)
_PIO2_F64, _PIO2_LOW_F64 = np.float64(1.5707963267948966), np.float64(6.123233995736766e-17)
_PIO4_F64, _PIO4_LOW_F64 = np.float64(0.7853981633974483), np.float64(3.061616997868383e-17)
_TAN_PIO8_F64 = np.float64(0.41421356237309503)
_ATAN_MOST_F64 = np.float64(2.0**80)  # the arc tangent of more is pi/2 rounded
_LARGE_F64, _SMALL_F64 = np.float64(2.0**900), np.float64(2.0**100)
_SCALE_DOWN_F64, _SCALE_UP_F64 = np.float64(2.0**-100), np.float64(2.0**200)
_SIGN_F64, _SIGN_F32 = -1 << 63, -1 << 31
_ROOT_MAGIC_F64 = np.int64(0x5FE6EB50C7B537A9)  # reciprocal root within 3.5 %
# (asin s - s) / s**3 in s**2 on s <= 1/2
_ASIN_F64 = float64s("""
    0.16666666666665383 0.07500000000342935 0.04464285682355502 0.030381959328706087
    0.02237175357744511 0.017359770364791804 0.013884605221925663 0.012173238221464308
    0.006511018756501515 0.01957348325111719 -0.016293451711947102 0.03195856514763106""")
# (atan t - t) / t**3 in t**2 on t <= tan(pi/8)
_ATAN_F64 = float64s("""
    -0.333333333333332 0.19999999999953805 -0.14285714280218256 0.11111110784530559
    -0.09090897787903314 0.07692060737243041 -0.06663109785355795 0.058479293574157744
    -0.050394769359976575 0.03806871901771638 -0.017911521473853404""")
_ZERO_F32, _HALF_F32, _ONE_F32, _TWO_F32, _FOUR_F32, _INF_F32 = float32s("0.0 0.5 1.0 2.0 4.0 inf")
_PI_F32, _PI_LOW_F32 = np.float32(3.1415927410125732), np.float32(-8.742277657347586e-08)
_PIO2_F32, _PIO2_LOW_F32 = np.float32(1.5707963705062866), np.float32(-4.371138828673793e-08)
_PIO4_F32, _PIO4_LOW_F32 = np.float32(0.7853981852531433), np.float32(-2.1855694143368964e-08)
_TAN_PIO8_F32 = np.float32(0.41421356)
_ATAN_MOST_F32 = np.float32(2.0**40)  # the arc tangent of more is pi/2 rounded
_LARGE_F32, _SMALL_F32 = np.float32(2.0**90), np.float32(2.0**24)
_SCALE_DOWN_F32, _SCALE_UP_F32 = np.float32(2.0**-30), np.float32(2.0**60)
_ROOT_MAGIC_F32 = np.int32(0x5F3759DF)  # reciprocal root within 3.5 %
_ASIN_F32 = (  # (asin s - s) / s**3 in s**2 on s <= 1/2
    np.float32(0.16666753590106964),
    np.float32(0.07495252043008804),
    np.float32(0.0454760417342186),
    np.float32(0.024152075871825218),
    np.float32(0.04221183806657791),
)
_ATAN_F32 = (  # (atan t - t) / t**3 in t**2 on t <= tan(pi/8)
    np.float32(-0.33333316445350647),
    np.float32(0.1999853104352951),
    np.float32(-0.1424446702003479),
    np.float32(0.10599762946367264),
    np.float32(-0.060915395617485046),
)


@device
def _asin_parts_f64(a):
    """``(s, tail)``: arc sine of ``a``, for ``a > 1/2`` of ``sqrt((1 - a) / 2)``."""
    large = a > _HALF_F64
    z = select(large, _HALF_F64 * (_ONE_F64 - a), a * a)
    root = sqrt(z)
    reciprocal = from_bits(INT(_ROOT_MAGIC_F64 - (bits(z) >> 1)))
    root_low = exact_mul_add_f64(-root, root, z) * (_HALF_F64 * reciprocal)
    s = select(large, root, a)
    return s, mul_add(s * z, estrin(z, _ASIN_F64), select(large, root_low, _ZERO_F64))


_asin_parts_f32 = single(_asin_parts_f64)


@device
def asin_f64(x):
    """Arc sine; NaN outside [-1, 1]."""
    a = fabs(x)
    large = a > _HALF_F64
    s, tail = _asin_parts_f64(a)
    factor = select(large, -_TWO_F64, _ONE_F64)
    high, low = fast_two_sum(select(large, _PIO2_F64, _ZERO_F64), factor * s)
    y = high + mul_add(factor, tail, low + select(large, _PIO2_LOW_F64, _ZERO_F64))
    return from_bits(INT(bits(y) | (bits(x) & _SIGN_F64)))


asin_f32 = single(asin_f64)


@device
def acos_f64(x):
    """Arc cosine; NaN outside [-1, 1]."""
    a = fabs(x)
    large = a > _HALF_F64
    negative = x < _ZERO_F64
    s, tail = _asin_parts_f64(a)
    factor = select(large, _TWO_F64, -_ONE_F64)
    factor = select(negative, -factor, factor)
    base = select(large, select(negative, _PI_F64, _ZERO_F64), _PIO2_F64)
    base_low = select(large, select(negative, _PI_LOW_F64, _ZERO_F64), _PIO2_LOW_F64)
    high, low = fast_two_sum(base, factor * s)
    return high + mul_add(factor, tail, low + base_low)


acos_f32 = single(acos_f64)


@device
def _atan_quotient_f64(low, high):
    """``(middle, t, tail)``: arc tangent of ``low / high``, plus pi/4 where ``middle``."""
    middle = low > _TAN_PIO8_F64 * high
    n, n_low = fast_two_sum(-high, low)
    d, d_low = fast_two_sum(high, low)
    n = select(middle, n, low)
    d = select(middle, d, high)
    n_low = select(middle, n_low, _ZERO_F64)
    d_low = select(middle, d_low, _ZERO_F64)
    inverse = _ONE_F64 / d
    t = n * inverse
    t_low = (exact_mul_add_f64(-t, d, n) + mul_add(-t, d_low, n_low)) * inverse
    z = t * t
    return middle, t, mul_add(t * z, estrin(z, _ATAN_F64), t_low)


_atan_quotient_f32 = single(_atan_quotient_f64)


@device
def atan_f64(x):
    """Arc tangent."""
    a = fabs(x)
    mirrored = a > _ONE_F64
    low = select(mirrored, _ONE_F64, a)
    high = select(a > _ATAN_MOST_F64, _ATAN_MOST_F64, select(mirrored, a, _ONE_F64))
    middle, t, tail = _atan_quotient_f64(low, high)
    base = select(middle, _PIO4_F64, select(mirrored, _PIO2_F64, _ZERO_F64))
    base_low = select(middle, _PIO4_LOW_F64, select(mirrored, _PIO2_LOW_F64, _ZERO_F64))
    sign = select(mirrored, -_ONE_F64, _ONE_F64)
    y, y_low = fast_two_sum(base, sign * t)
    y = y + mul_add(sign, tail, y_low + base_low)
    return from_bits(INT(bits(y) | (bits(x) & _SIGN_F64)))


atan_f32 = single(atan_f64)


@device
def atan2_f64(y, x):
    """Angle of the point ``(x, y)`` in [-pi, pi], with the signs of zeros as in C99."""
    a = fabs(y)
    b = fabs(x)
    mirrored = a > b
    high = select(mirrored, a, b)
    low = select(mirrored, b, a)
    scale = select(high < _SMALL_F64, _SCALE_UP_F64, _ONE_F64)
    scale = select(high > _LARGE_F64, _SCALE_DOWN_F64, scale)
    infinite = high == _INF_F64
    # low * 0 is 0, or NaN for a NaN beside an infinity
    finite_low = select(low == _INF_F64, _ONE_F64, low * _ZERO_F64)
    low = select(infinite, finite_low, low * scale)
    high = select(infinite | (high == _ZERO_F64), _ONE_F64, high * scale)
    middle, t, tail = _atan_quotient_f64(low, high)
    negative = bits(x) < 0
    j = select(middle, _ONE_F64, _ZERO_F64)
    j = select(mirrored, _TWO_F64 - j, j)
    j = select(negative, _FOUR_F64 - j, j)
    base = j * _PIO4_F64
    base_low = mul_add(j, _PIO4_LOW_F64, exact_mul_add_f64(j, _PIO4_F64, -base))
    sign = select(mirrored != negative, -_ONE_F64, _ONE_F64)
    angle, angle_low = fast_two_sum(base, sign * t)
    angle = angle + mul_add(sign, tail, angle_low + base_low)
    return from_bits(INT(bits(angle) | (bits(y) & _SIGN_F64)))


atan2_f32 = single(atan2_f64)
