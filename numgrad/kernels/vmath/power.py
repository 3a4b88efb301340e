"""Powers.

Method of pow: log2(x) as a sum of two floats, times y, then exp2. x = 2**k m; m lies near one of
four centres c, about 2**(j/4), chosen so that log2(c) is H, a short float, to 2**-68 (2**-35 in
float32). With s = (m - c) / (m + c), t = s**2 < 0.002 and C = 2 log2(e),
log2 x = (k + H) + s (C + t U(t)): so near the centre the term with U needs no low part, only the
quotient s and the product s C do. 2**w = 1 + w E(w) on |w| <= 1/2; in float32 with the rounding
error of 1 + w ln 2 carried along. Errors seen stay below 1.4 ulp (float64), 0.96 ulp (float32).

Note [Special values of pow]
pow_f64 and pow_f32 hold for normal x > 0 and powers that stay normal; all other arguments are rare
(a loop redoes its block with pow_slow_f64 if it meets one). ``pow_rare`` reads |log2 x| off the
bits of x: the significand is log2 within a factor of 1.45, and every x that is not a normal
positive float gives a large number. pow_slow does the same arithmetic with everything bounded, so
it has the same bits where pow holds. log2 of 0, inf and NaN is patched in as -inf, inf, NaN where
the whole part of the product comes from: that makes the power right by itself. What is left: 1
where y = 0 or |x| = 1, and a factor for negative x.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, estrin, fabs, from_bits, mul_add, rint, select
from numgrad.kernels.vmath.error_free import exact_mul_add_f32, exact_mul_add_f64
from numgrad.kernels.vmath.exponential import clamp, scale_f32, scale_f64
from numgrad.kernels.vmath.precision import FLOAT, INT, float32s, float64s, single

D_ZERO, D_HALF, D_ONE, D_TWO, D_INF, D_NAN = float64s("0.0 0.5 1.0 2.0 inf nan")
F_ZERO, F_HALF, F_ONE, F_INF, F_NAN = float32s("0.0 0.5 1.0 inf nan")
FRACTION_BITS = np.int64(52)
# log2(1 + ...) = s (C + t U(t)), relative error 2**-68; C = 2 log2(e) with its low part
C, C_LOW = np.float64.fromhex("0x1.71547652b82fep+1"), np.float64.fromhex("0x1.777d0ffda0d24p-55")
U = float64s("""
    0.9617966939259758 0.5770780163546069 0.4121985855033547 0.32059634599048065
    0.26354338010612127""")
# Centres besides 1 and their logarithms to base 2; borders between the four, bits of the lowest.
C1, H1 = np.float64.fromhex("0x1.306fe0d70871fp+0"), np.float64.fromhex("0x1.000000fbfap-2")
C2, H2 = np.float64.fromhex("0x1.6a09e69a03247p+0"), np.float64.fromhex("0x1.0000006623p-1")
C3, H3 = np.float64.fromhex("0x1.ae89f9a9d5556p+0"), np.float64.fromhex("0x1.8000002295p-1")
BORDER1, BORDER2, BORDER3 = (np.float64(2.0**e) for e in (0.125, 0.375, 0.625))
LOWEST = np.float64(2.0**-0.125).view(np.int64)
# (2**w - 1) / w on |w| <= 1/2, relative error of 2**w 2**-56
E = float64s("""
    0.6931471805599457 0.24022650695910097 0.05550410866479039 0.009618129107607003
    0.0013333558153440085 0.0001540353044157094 1.5252727384994885e-05 1.3215442675909473e-06
    1.0180647772562977e-07 7.072570316554937e-09 4.0780510169429663e-10""")
F_C, F_C_LOW = np.float32(2.885390043258667), np.float32(3.851926e-08)
F_U = (np.float32(0.961796), np.float32(0.57820934))
F_C1, F_H1 = float32s("0x1.2f47b2p+0 0x1.f4cp-3")
F_C2, F_H2 = float32s("0x1.6a13b4p+0 0x1.0014p-1")
F_C3, F_H3 = float32s("0x1.adcaf6p+0 0x1.7eb8p-1")
F_LOWEST = np.float32(2.0**-0.1262512).view(np.int32)
F_BORDER1, F_BORDER2, F_BORDER3 = (  # bits above those of the lowest
    np.float32(2.0**e).view(np.int32) - F_LOWEST for e in (0.1222534, 0.3723297, 0.6238251)
)
F_E0 = np.float32(0.6931472)
# ((2**w - 1) / w - F_E0) / w, relative error of 2**w 2**-30
F_E = float32s("""
    0.2402265 0.055504058 0.009618071 0.0013337075 0.0001545798 1.4581015e-05""")
WHOLE, F_WHOLE = np.float64(1.5 * 2.0**52), np.float32(1.5 * 2.0**23)  # leave no fraction bits
WHOLE_LOW, WHOLE_HIGH = WHOLE - np.float64(1080), WHOLE + np.float64(1028)
F_WHOLE_LOW, F_WHOLE_HIGH = F_WHOLE - np.float32(160), F_WHOLE + np.float32(132)
FOUR_BIASES, F_FOUR_BIASES = np.int64(2046), np.int32(254)
Y_MOST, F_Y_MOST = np.float64(2.0**64), np.float32(2.0**35)  # beyond: 0, 1 or inf
RARE, F_RARE = np.float64(707 * 2.0**52), np.float32(87 * 2.0**23)
F_TWO, D_LEAST_K, F_LEAST_K = np.float32(2.0), np.float64(-54.0), np.float32(-24.0)
D_NOTHING, F_NOTHING = np.float64(-0.0), np.float32(-0.0)
I_ZERO, F_I_ZERO = np.int64(0), np.int32(0)
LEAST_NORMAL, SUBNORMAL_SCALE = np.float64(2.0**-1022), np.float64(2.0**54)
F_FRACTION_BITS, F_FRACTION, F_ONE_BITS = np.int32(23), np.int32(0x7FFFFF), np.int32(0x3F800000)
F_LEAST_NORMAL, F_SUBNORMAL_SCALE = np.float32(2.0**-126), np.float32(2.0**24)
FRACTION, ONE_BITS = np.int64(0x000FFFFFFFFFFFFF), np.int64(0x3FF0000000000000)
INT_IN_FLOAT, BIAS_IN_FLOAT = np.int64(0x4330000000000000), np.float64(2.0**52 + 1023)


@device
def log2_terms_f64(a, offset):
    """``log2(a) + offset`` for normal ``a > 0``: large and small part, and a sum good to 2**-9."""
    i = bits(a) + (ONE_BITS - LOWEST)
    k = from_bits((i >> FRACTION_BITS) | INT_IN_FLOAT) - BIAS_IN_FLOAT + offset
    m = from_bits((i & FRACTION) + LOWEST)
    above1, above2, above3 = m > BORDER1, m > BORDER2, m > BORDER3
    c = select(above2, select(above3, C3, C2), select(above1, C1, D_ONE))
    h = select(above1, k + H1, k)
    h = select(above2, k + H2, h)
    h = select(above3, k + H3, h)
    f, b = m - c, m + c
    b_low = (c - b) + m
    s = f / b
    t = s * s
    rest = mul_add(-s, b_low, exact_mul_add_f64(-s, b, f))
    first = s * C
    high = h + first
    low = mul_add(s, C_LOW, exact_mul_add_f64(s, C, -first))
    slope = C / b
    low = mul_add(rest, mul_add(slope, t, slope), low) + (first - (high - h))
    cube = s * t
    return high, mul_add(cube, estrin(t, U), low), mul_add(cube, U[0], high)


@device
def pow_f64(x, y):
    """``x`` to the power ``y`` where ``pow_rare_f64`` does not hold."""
    high, low, rough = log2_terms_f64(x, D_NOTHING)
    t = mul_add(y, rough, WHOLE)
    w = mul_add(y, low, exact_mul_add_f64(y, high, WHOLE - t))
    return from_bits(bits(mul_add(w, estrin(w, E), D_ONE)) + (bits(t) << FRACTION_BITS))


@device
def pow_rare_f64(x, y):
    """Whether ``pow_f64`` may fail; see Note [Special values of pow]."""
    size = fabs(FLOAT(INT(bits(x) - ONE_BITS)))
    return not (mul_add(fabs(y), size, size) < RARE)


pow_rare_f32 = single(pow_rare_f64)


@device
def pow_any_f64(a, y):
    """``a`` to the power ``y`` for ``a >= 0`` and ``|y| <= Y_MOST``."""
    subnormal = a < LEAST_NORMAL
    normal = select(subnormal, a * SUBNORMAL_SCALE, a)
    high, low, rough = log2_terms_f64(normal, select(subnormal, D_LEAST_K, D_NOTHING))
    rough = select((a > D_ZERO) & (a < D_INF), rough, (a - D_ONE) * D_INF)
    t = clamp(mul_add(y, rough, WHOLE), WHOLE_LOW, WHOLE_HIGH)
    w = mul_add(y, low, exact_mul_add_f64(y, high, WHOLE - t))
    w = clamp(w, -D_TWO, D_TWO)
    z = mul_add(w, estrin(w, E), D_ONE)
    return scale_f64(z, from_bits(bits(t) + FOUR_BIASES))


@device
def sign_of_power_f64(x, even, whole):
    """1, or for negative x: -1 for odd powers and NaN for broken ones of finite x."""
    broken = select((x < D_ZERO) & (x > -D_INF), D_NAN, D_ONE)
    factor = select(whole, select(even, D_ONE, -D_ONE), broken)
    return select(bits(x) < I_ZERO, factor, D_ONE)


sign_of_power_f32 = single(sign_of_power_f64)


@device
def pow_slow_f64(x, y):
    """``x`` to the power ``y``, with the special values of C99."""
    a = fabs(x)
    z = pow_any_f64(a, clamp(y, -Y_MOST, Y_MOST))
    z = select((y == D_ZERO) | (a == D_ONE), D_ONE, z)
    half = y * D_HALF
    return z * sign_of_power_f64(x, rint(half) == half, rint(y) == y)


@device
def log2_terms_f32(a, offset):
    """``log2(a) + offset`` for normal ``a > 0``: large and small part."""
    i = np.int32(bits(a) - F_LOWEST)
    k = np.float32(np.int32(i >> F_FRACTION_BITS)) + offset
    j = np.int32(i & F_FRACTION)
    m = from_bits(np.int32(j + F_LOWEST))
    above1, above2, above3 = j > F_BORDER1, j > F_BORDER2, j > F_BORDER3
    c = select(above2, select(above3, F_C3, F_C2), select(above1, F_C1, F_ONE))
    h = k + select(above2, select(above3, F_H3, F_H2), select(above1, F_H1, F_ZERO))
    f, b = m - c, m + c
    b_low = (c - b) + m
    s = f / b
    t = s * s
    rest = mul_add(-s, b_low, exact_mul_add_f32(-s, b, f))
    first = s * F_C
    high = h + first
    low = mul_add(s, F_C_LOW, exact_mul_add_f32(s, F_C, -first))
    slope = F_C / b
    low = mul_add(rest, mul_add(slope, t, slope), low + (first - (high - h)))
    return high, mul_add(s * t, estrin(t, F_U), low)


@device
def exp2_near_zero_f32(w):
    """``2**w`` for ``|w|`` up to a little above 1/2."""
    high = mul_add(w, F_E0, F_ONE)
    low = exact_mul_add_f32(w, F_E0, F_ONE - high)
    return high + mul_add(w * w, estrin(w, F_E), low)


@device
def pow_f32(x, y):
    """``x`` to the power ``y`` where ``pow_rare_f32`` does not hold."""
    high, low = log2_terms_f32(x, F_NOTHING)
    t = mul_add(y, high, F_WHOLE)
    z = exp2_near_zero_f32(mul_add(y, low, exact_mul_add_f32(y, high, F_WHOLE - t)))
    return from_bits(np.int32(bits(z) + np.int32(bits(t) << F_FRACTION_BITS)))


@device
def pow_any_f32(a, y):
    """``a`` to the power ``y`` for ``a >= 0`` and ``|y| <= F_Y_MOST``."""
    subnormal = a < F_LEAST_NORMAL
    normal = select(subnormal, a * F_SUBNORMAL_SCALE, a)
    high, low = log2_terms_f32(normal, select(subnormal, F_LEAST_K, F_NOTHING))
    rough = select((a > F_ZERO) & (a < F_INF), high, (a - F_ONE) * F_INF)
    t = clamp(mul_add(y, rough, F_WHOLE), F_WHOLE_LOW, F_WHOLE_HIGH)
    w = mul_add(y, low, exact_mul_add_f32(y, high, F_WHOLE - t))
    w = clamp(w, -F_TWO, F_TWO)
    z = exp2_near_zero_f32(w)
    return scale_f32(z, from_bits(np.int32(bits(t) + F_FOUR_BIASES)))


@device
def pow_slow_f32(x, y):
    """``x`` to the power ``y``, with the special values of C99."""
    a = fabs(x)
    z = pow_any_f32(a, clamp(y, -F_Y_MOST, F_Y_MOST))
    z = select((y == F_ZERO) | (a == F_ONE), F_ONE, z)
    half = y * F_HALF
    return z * sign_of_power_f32(x, rint(half) == half, rint(y) == y)
