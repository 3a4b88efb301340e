"""Logarithms: log, log2, log10, log1p, logit.

Method: x = 2**k m with sqrt(1/2) <= m < sqrt(2), read off the bits; subnormal x is first multiplied
by a power of two. With f = m - 1 and s = f / (2 + f), log m = 2 atanh s = f - f**2 / 2 + low, where
low = s (f**2 / 2 + s**2 L(s**2)) and L has 8 coefficients in float64 (relative error 2**-62), 3 in
float32 (2**-30). k log 2 is added in two parts, the first exact. All sums of large terms keep their
rounding errors (except in log_f64, for speed: 1.1 ulp), so that errors stay near half an ulp and
powers of two and ten give integers. Comparisons are dear in AVX-512: special cases take three.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, fabs, from_bits, mul_add, select
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum, two_prod_f64, two_sum
from numgrad.kernels.vmath.precision import INT, float32s, float64s, single

D_ZERO, D_HALF, D_ONE, D_TWO, D_INF, D_NAN = float64s("0.0 0.5 1.0 2.0 inf nan")
LEAST_NORMAL = np.float64(2.0**-1022)
SUBNORMAL_SCALE, SUBNORMAL_K = np.float64(2.0**54), np.float64(-54.0)
TINY = np.float64(2.0**-54)
ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
TO_ONE = np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
FRACTION = np.int64(0x000FFFFFFFFFFFFF)
FRACTION_BITS, TWO_BIASES = np.int64(52), np.int64(2047)
INT_IN_FLOAT = np.int64(0x4330000000000000)  # bits of 2**52: or-ing n < 2**52 in gives 2**52 + n
BIAS_IN_FLOAT = np.float64(2.0**52 + 1023)
LN2_HI, LN2_LO = float64s("0x1.62e42feep-1 0x1.a39ef35793c76p-33")
LOG10_2_HI, LOG10_2_LO = float64s("0x1.34413508p-2 0x1.f79fef311f12bp-34")
LOG2_E, LOG2_E_LO = float64s("0x1.71547652b82fep+0 0x1.777d0ffda0d24p-56")
LOG10_E, LOG10_E_LO = float64s("0x1.bcb7b1526e50ep-2 0x1.95355baaafad3p-57")
L0, L1, L2, L3, L4, L5, L6, L7 = float64s("""
    0x1.5555555555555p-1 0x1.9999999999cccp-2 0x1.2492492439f66p-2 0x1.c71c7254ef57bp-3
    0x1.745cdb00df08ap-3 0x1.3b21f8f89c038p-3 0x1.0f2fadc743c12p-3 0x1.117ba750c51e3p-3""")
F_ZERO, F_HALF, F_ONE, F_TWO, F_INF, F_NAN = float32s("0.0 0.5 1.0 2.0 inf nan")
F_LEAST_NORMAL = np.float32(2.0**-126)
F_SUBNORMAL_SCALE, F_SUBNORMAL_K = np.float32(2.0**25), np.float32(-25.0)
F_TINY = np.float32(2.0**-25)
F_ROOT_HALF = np.int32(0x3F3504F3)
F_TO_ONE = np.int32(0x3F800000 - 0x3F3504F3)
F_FRACTION = np.int32(0x007FFFFF)
F_FRACTION_BITS, F_TWO_BIASES = np.int32(23), np.int32(255)
F_INT_IN_FLOAT = np.int32(0x4B000000)
F_BIAS_IN_FLOAT = np.float32(2.0**23 + 127)
F_LN2_HI, F_LN2_LO = float32s("0.693115234375 3.1946184945309415e-05")
F_LOG10_2_HI, F_LOG10_2_LO = float32s("0.301025390625 4.605038981195214e-06")
F_LOG2_E, F_LOG2_E_LO = np.float32(1.4426950216293335), np.float32(1.9259629911266175e-08)
F_LOG10_E, F_LOG10_E_LO = float32s("0.4342944920063019 -1.0103050052231683e-08")
F_L0, F_L1, F_L2 = float32s("0.66666776 0.39977568 0.2987146")


@device
def split_f64(x):
    """``(k, m, e)`` with ``x = 2**k m``, ``e`` the biased ``k``, for normal ``x > 0``."""
    i = INT(bits(x) + TO_ONE)
    e = INT(i >> FRACTION_BITS)
    return (
        from_bits(INT(e | INT_IN_FLOAT)) - BIAS_IN_FLOAT,
        from_bits(INT((i & FRACTION) + ROOT_HALF)),
        e,
    )


split_f32 = single(split_f64)


@device
def split_any_f64(x):
    """``(k, m)`` with ``x = 2**k m``, subnormal numbers included."""
    subnormal = x < LEAST_NORMAL
    k, m, _ = split_f64(select(subnormal, x * SUBNORMAL_SCALE, x))
    return k + select(subnormal, SUBNORMAL_K, D_ZERO), m


split_any_f32 = single(split_any_f64)


@device
def low_terms_f64(f):
    """``log(1 + f) = f - f**2 / 2 + s inner``: the triple ``(f**2 / 2, s, inner)``."""
    s = f / (D_TWO + f)
    half_square = (D_HALF * f) * f
    t = s * s
    t2 = t * t
    a = mul_add(t2, mul_add(t, L3, L2), mul_add(t, L1, L0))
    b = mul_add(t2, mul_add(t, L7, L6), mul_add(t, L5, L4))
    series = mul_add(t2 * t2, b, a)
    return half_square, s, mul_add(t, series, half_square)


@device
def low_terms_f32(f):
    """``log(1 + f) = f - f**2 / 2 + s inner``: the triple ``(f**2 / 2, s, inner)``."""
    s = f / (F_TWO + f)
    half_square = (F_HALF * f) * f
    t = s * s
    series = mul_add(t, mul_add(t, F_L2, F_L1), F_L0)
    return half_square, s, mul_add(t, series, half_square)


@device
def special_cases_f64(x, y):
    """``y`` with the values of a logarithm at 0, below it, at infinity and at NaN put in."""
    y = select(x > D_ZERO, y, select(x == D_ZERO, -D_INF, D_NAN))
    return select(x == D_INF, x, y)


special_cases_f32 = single(special_cases_f64)


@device
def log_f64(x):
    """Natural logarithm of ``x``."""
    k, m = split_any_f64(x)
    f = m - D_ONE
    half_square, s, inner = low_terms_f64(f)
    low = mul_add(k, LN2_LO, mul_add(s, inner, -half_square))
    y = mul_add(k, LN2_HI, f + low)
    return special_cases_f64(x, y)


@device
def log_f32(x):
    """Natural logarithm of ``x``."""
    k, m = split_any_f32(x)
    f = m - F_ONE
    half_square, s, inner = low_terms_f32(f)
    low = mul_add(s, inner, -half_square)
    high, high_low = fast_two_sum(k * F_LN2_HI, f)
    y = high + (high_low + mul_add(k, F_LN2_LO, low))
    return special_cases_f32(x, y)


@device
def log_times_f64(x, scale, scale_low, k_high, k_low):
    """Logarithm in another base: ``k (k_high + k_low) + log(m) (scale + scale_low)``."""
    k, m = split_any_f64(x)
    f = m - D_ONE
    half_square, s, inner = low_terms_f64(f)
    a = f - half_square
    a, b = fast_two_sum(a, mul_add(s, inner, (f - a) - half_square))
    p, p_low = two_prod_f64(a, scale)
    p_low = mul_add(a, scale_low, mul_add(b, scale, p_low))
    high, high_low = fast_two_sum(k * k_high, p)
    return special_cases_f64(x, high + (high_low + mul_add(k, k_low, p_low)))


log_times_f32 = single(log_times_f64)


@device
def log2_f64(x):
    """Logarithm of ``x`` to base 2."""
    return log_times_f64(x, LOG2_E, LOG2_E_LO, D_ONE, D_ZERO)


log2_f32 = single(log2_f64)


@device
def log10_f64(x):
    """Logarithm of ``x`` to base 10."""
    return log_times_f64(x, LOG10_E, LOG10_E_LO, LOG10_2_HI, LOG10_2_LO)


log10_f32 = single(log10_f64)


@device
def log_of_sum_f64(u, u_low, exponent):
    """``log(2**more (u + u_low))`` for a normal ``u > 0``, ``u_low`` below its last place."""
    k, m, e = split_f64(u)
    k = k + exponent
    correction = (D_HALF * u_low) * from_bits(
        INT((TWO_BIASES - e) << FRACTION_BITS)
    )  # u_low / 2**k
    f, f_low = fast_two_sum(m - D_ONE, correction)
    half_square, s, inner = low_terms_f64(f)
    low = mul_add(s, inner, mul_add(-f, f_low, f_low))  # f_low / (1 + f), nearly
    high, high_low = fast_two_sum(k * LN2_HI, f)
    return high + (high_low + mul_add(k, LN2_LO, low - half_square))


log_of_sum_f32 = single(log_of_sum_f64)


@device
def log1p_f64(x):
    """``log(1 + x)``, accurate near zero."""
    u, u_low = two_sum(x, D_ONE)
    y = special_cases_f64(u, log_of_sum_f64(u, u_low, D_ZERO))
    return select(fabs(x) < TINY, x, y)


log1p_f32 = single(log1p_f64)


@device
def logit_f64(x):
    """``log(x / (1 - x))``, accurate near a half too; NaN outside [0, 1]."""
    d, d_low = two_sum(D_ONE, -x)
    subnormal = x < LEAST_NORMAL
    n = select(subnormal, x * SUBNORMAL_SCALE, x)
    reciprocal = D_ONE / d
    u = n * reciprocal
    u_low = reciprocal * mul_add(-u, d_low, exact_mul_add_f64(-u, d, n))
    exponent = select(subnormal, SUBNORMAL_K, D_ZERO)
    return special_cases_f64(u, log_of_sum_f64(u, u_low, exponent))


logit_f32 = single(logit_f64)
