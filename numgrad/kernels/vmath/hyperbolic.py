"""Hyperbolic functions and their inverses: sinh, cosh, tanh, asinh, acosh, atanh.

Method: with |x| = k ln 2 + r as in exponential.py, and cosh(r), sinh(r) from the even and odd parts
of its polynomial, sinh |x| = A cosh r + B sinh r and cosh x = B cosh r + A sinh r, where
A, B = (2**k -+ 2**-k) / 2 are exact or nearly so: no division, no cancellation near zero.
tanh |x| = n / d, n = exp(2 |x|) - 1 and d = n + 2, both with low parts, one division.
The inverse functions are logarithms of u + u_low, a pair that holds |x| + sqrt(x**2 +- 1) or
(1 + |x|) / (1 - |x|) to twice the precision, so that nothing is lost where u is near one.

Note [tanh in float32]
tanh a is b + b n / d with one division: below 0.95 b is a and n / d rational in a**2, above b is 1,
n is -2 and d is exp(2 a) + 1. The second term is at most 0.4 of the result, so that its roundings
count less. The last bits of the coefficients were searched for; all arguments were tried: 0.96 ulp.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import (
    bits,
    copysign,
    estrin,
    fabs,
    from_bits,
    mul_add,
    select,
    sqrt,
)
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum, two_prod_f64, two_sum
from numgrad.kernels.vmath.exponential import (
    C0,
    C1,
    C2,
    C3,
    C4,
    C5,
    F_C1,
    F_C2,
    F_S0,
    F_S1,
    F_S2,
    F_SHIFT,
    F_SHIFT_ONCE,
    S0,
    S1,
    S2,
    S3,
    S4,
    SHIFT,
    SHIFT_ONCE,
    power_of_two_f32,
    power_of_two_f64,
    reduce_f32,
    reduce_f64,
    square_terms_f64,
)
from numgrad.kernels.vmath.logarithm import log_of_sum_f64, special_cases_f64
from numgrad.kernels.vmath.precision import float32s, float64s, single

D_ZERO, D_HALF, D_ONE, D_TWO, D_INF, D_NAN = float64s("0.0 0.5 1.0 2.0 inf nan")
FRACTION_BITS = np.int64(52)
SINH_HIGH, TANH_HIGH = np.float64(710.6), np.float64(44.0)
LAST_K = np.float64(60.0)  # beyond it 2**-k does not count
TINY = np.float64(2.0**-27)  # below it x**3 / 6 does not count
BIG = np.float64(2.0**28)  # above it the root of x**2 +- 1 is |x|
F_ZERO, F_HALF, F_ONE, F_TWO, F_INF, F_NAN = float32s("0.0 0.5 1.0 2.0 inf nan")
F_FRACTION_BITS = np.int32(23)
F_SINH_HIGH, F_TANH_HIGH, F_TANH_SMALL = np.float32(89.5), np.float32(10.0), np.float32(0.95)
F_TWO_LOG2E, F_HALF_LN2 = np.float32(2.88539), np.float32(0.3465736)
# (tanh(a) / a - 1) / t = (N1 t - 1) / (3 + D1 t + D2 t**2), t = a**2 < 0.91: error 2**-32
F_N1, F_D0, F_D1, F_D2 = float32s("-0.044123143 3.0 1.3323692 0.04723462")
F_EXP_2R = (  # (exp(2 r) - 1 - 2 r) / r**2 on |r| <= ln(2) / 4
    np.float32(1.9999999),
    np.float32(1.333321),
    np.float32(0.6666972),
    np.float32(0.26780868),
    np.float32(0.08834761),
)
F_LAST_K = np.float32(40.0)
F_TINY, F_BIG = np.float32(2.0**-13), np.float32(2.0**13)


@device
def halves_f64(a):
    """For ``a >= 0``: ``(up, down, r, c, cosh(r) - 1, sinh(r) - r)``, A, B = 2 (up -+ down)."""
    _, k, r, c = reduce_f64(select(a > SINH_HIGH, SINH_HIGH, a), SHIFT)
    up = power_of_two_f64(k - D_TWO)
    down = power_of_two_f64(-select(k > LAST_K, LAST_K, k) - D_TWO)
    t = r * r
    t2 = t * t
    even = mul_add(t2, mul_add(t2, mul_add(t, C5, C4), mul_add(t, C3, C2)), mul_add(t, C1, C0))
    odd = mul_add(t2, mul_add(t2, S4, mul_add(t, S3, S2)), mul_add(t, S1, S0))
    return up, down, r, c, t * even, (r * t) * odd


@device
def halves_f32(a):
    """For ``a >= 0``: ``(up, down, r, c, cosh(r) - 1, sinh(r) - r)``, A, B = 2 (up -+ down)."""
    _, k, r, c = reduce_f32(select(a > F_SINH_HIGH, F_SINH_HIGH, a), F_SHIFT)
    up = power_of_two_f32(k - F_TWO)
    down = power_of_two_f32(-select(k > F_LAST_K, F_LAST_K, k) - F_TWO)
    t = r * r
    even = mul_add(t, mul_add(t, F_C2, F_C1), F_HALF)
    odd = mul_add(t, mul_add(t, F_S2, F_S1), F_S0)
    return up, down, r, c, t * even, (r * t) * odd


@device
def combine_f64(up, down, b, r, even, odd):
    """``2 ((up + down) (1 + even) + b (r + odd))``, large terms summed without error."""
    a, a_low = fast_two_sum(up, down)
    p, p_low = two_prod_f64(b, r)
    s, s_low = fast_two_sum(a, p)
    return D_TWO * (s + mul_add(a, even, mul_add(b, odd, (p_low + a_low) + s_low)))


combine_f32 = single(combine_f64)


@device
def sinh_f64(x):
    """Hyperbolic sine of ``x``."""
    a = fabs(x)
    up, down, r, c, even, odd = halves_f64(a)
    y = combine_f64(up, -down, up + down, r, even, odd + c)
    return copysign(select(a < TINY, a, y), x)


sinh_f32 = single(sinh_f64)


@device
def cosh_f64(x):
    """Hyperbolic cosine of ``x``."""
    up, down, r, c, even, odd = halves_f64(fabs(x))
    return combine_f64(up, down, up - down, r, even, odd + c)


cosh_f32 = single(cosh_f64)


@device
def tanh_f64(x):
    """Hyperbolic tangent of ``x``."""
    a = fabs(x) * D_TWO
    t, _, r, c = reduce_f64(select(a > TANH_HIGH, TANH_HIGH, a), SHIFT_ONCE)
    s = from_bits(bits(t) << FRACTION_BITS)
    q = square_terms_f64(r) + c
    w = r + q
    base = s - D_ONE
    n = mul_add(s, w, base)
    d = mul_add(s, w, s + D_ONE)
    n_low = mul_add(s, q, mul_add(s, r, base - n))
    d_low = mul_add(s, w, (s - d) + D_ONE)
    reciprocal = D_ONE / d
    y = n * reciprocal
    rest = mul_add(-y, d_low, exact_mul_add_f64(-y, d, n) + n_low)
    return copysign(mul_add(reciprocal, rest, y), x)


@device
def tanh_f32(x):
    """Hyperbolic tangent of ``x``; see Note [tanh in float32]."""
    a = fabs(x)
    t = a * a
    n = mul_add(t * t, F_N1, -t)
    d = mul_add(t, mul_add(t, F_D2, F_D1), F_D0)
    b = select(a > F_TANH_HIGH, F_TANH_HIGH, a)
    shifted = mul_add(b, F_TWO_LOG2E, F_SHIFT_ONCE)
    r = mul_add(shifted - F_SHIFT_ONCE, -F_HALF_LN2, b)
    s = from_bits(np.int32(bits(shifted) << F_FRACTION_BITS))
    e = mul_add(s, mul_add(r * r, estrin(r, F_EXP_2R), r + r), s + F_ONE)  # exp(2 a) + 1
    small = a < F_TANH_SMALL
    base = select(small, a, F_ONE)
    return copysign(mul_add(base, select(small, n, -F_TWO) / select(small, d, e), base), x)


@device
def root_with_low_f64(h, h_low):
    """Square root of ``h + h_low`` as a pair."""
    root = sqrt(h)
    rest = exact_mul_add_f64(-root, root, h) + h_low
    return root, select(h > D_ZERO, rest * (D_HALF / root), D_ZERO)


root_with_low_f32 = single(root_with_low_f64)


@device
def asinh_f64(x):
    """Inverse hyperbolic sine of ``x``."""
    a = fabs(x)
    big = a > BIG
    b = select(big, BIG, a)
    p, p_low = two_prod_f64(b, b)
    h, h_low = two_sum(p, D_ONE)
    root, root_low = root_with_low_f64(h, h_low + p_low)
    u, u_low = two_sum(b, root)
    u = select(big, a, u)
    u_low = select(big, D_ZERO, u_low + root_low)
    y = special_cases_f64(u, log_of_sum_f64(u, u_low, select(big, D_ONE, D_ZERO)))
    return copysign(select(a < TINY, a, y), x)


asinh_f32 = single(asinh_f64)


@device
def acosh_f64(x):
    """Inverse hyperbolic cosine of ``x``; NaN below 1."""
    big = x > BIG
    b = select(big, BIG, x)
    p, p_low = two_prod_f64(b, b)
    h, h_low = two_sum(p, -D_ONE)
    root, root_low = root_with_low_f64(h, h_low + p_low)
    u, u_low = fast_two_sum(b, root)
    u = select(big, x, u)
    u_low = select(big, D_ZERO, u_low + root_low)
    y = special_cases_f64(u, log_of_sum_f64(u, u_low, select(big, D_ONE, D_ZERO)))
    return select(x >= D_ONE, y, D_NAN)


acosh_f32 = single(acosh_f64)


@device
def atanh_f64(x):
    """Inverse hyperbolic tangent of ``x``; NaN outside [-1, 1]."""
    a = fabs(x)
    n, n_low = two_sum(D_ONE, a)
    d, d_low = two_sum(D_ONE, -a)
    reciprocal = D_ONE / d
    u = n * reciprocal
    u_low = reciprocal * (mul_add(-u, d_low, exact_mul_add_f64(-u, d, n)) + n_low)
    y = D_HALF * special_cases_f64(u, log_of_sum_f64(u, u_low, D_ZERO))
    return copysign(select(a < TINY, a, y), x)


atanh_f32 = single(atanh_f64)
