"""Exponential functions: exp, exp2, expm1, sigmoid, softplus, and products and sums inside them.

Method: x = k ln 2 + r with an integer k and |r| <= ln(2) / 2. k comes from adding 1.5 * 2**52
(2**23 in float32), which leaves it in the low bits of the sum; ln 2 is split in two parts, the
first with trailing zeros so that k times it is exact. Then exp(r) = 1 + r + r**2 P(r), where P has
degree 10 (float64, error 2**-61) or 5 (float32, 2**-33; 2**-28 with degree 4 in exp). Its even
coefficients are those of a minimax fit of cosh, its odd ones of sinh, so that hyperbolic.py shares
them. The rounding errors of r and of 1 + r are carried along where a later step would amplify them.

Note [Scaling in two steps]
2**k does not fit one float for the k of a subnormal or of a nearly infinite result. The bits of k,
biased twice, are halved and the significand is multiplied by two powers of two: the first product
is exact, so the result is rounded once, gradual underflow and overflow come by themselves, and
NaN stays NaN.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, fabs, from_bits, mul_add, select
from numgrad.kernels.vmath.error_free import (
    exact_mul_add_f32,
    exact_mul_add_f64,
    fast_two_sum,
    two_prod_f64,
    two_sum,
)
from numgrad.kernels.vmath.precision import INT, float32s, float64s, single

D_ONE, D_TWO, LOG2E = float64s("1.0 2.0 1.4426950408889634")
LN2_HI = np.float64.fromhex("0x1.62e42feep-1")  # 32 bits: k * LN2_HI is exact for |k| < 2**21
LN2_LO, LN2 = float64s("0x1.a39ef35793c76p-33 0x1.62e42fefa39efp-1")
LN2_TAIL = np.float64.fromhex("0x1.abc9e3b39803fp-56")  # ln 2 - LN2
# The low 12 bits of SHIFT are 2 * 1023, the two exponent biases of Note [Scaling in two steps].
SHIFT = np.float64(1.5 * 2.0**52 + 2046)
SHIFT_ONCE = np.float64(1.5 * 2.0**52 + 1023)
SHIFT_HALF = np.float64(1.5 * 2.0**52 + 1022)  # 2**(k - 1)
SHIFT_SIGMOID = np.float64(1.5 * 2.0**52 + 1023 - 64)
EXP_HIGH, EXP_LOW, EXP2_HIGH, EXP2_LOW = float64s("710.0 -746.0 1025.0 -1080.0")
FRACTION_BITS, I1 = np.int64(52), np.int64(1)
EXPONENT_MASK = np.int64(0x7FF0000000000000)
# cosh(r) = 1 + r**2 (C0 + C1 r**2 + ...), error 2**-69; sinh(r) = r + r**3 (S0 + ...), 2**-61
C0, C1, C2, C3, C4, C5 = float64s("""
    0.5 0x1.5555555555558p-5 0x1.6c16c16c14ffap-10 0x1.a01a01ad808ffp-16 0x1.27e4cc0cfd37ap-22
    0x1.1f8be227dc394p-29""")
S0, S1, S2, S3, S4 = float64s("""
    0x1.5555555555559p-3 0x1.111111110f62ap-7 0x1.a01a01b01b320p-13 0x1.71ddf7ccb99f3p-19
    0x1.af5fa59c6d2b8p-26""")
SIGMOID_HIGH = np.float64(50.0)  # above it the result is 1
BOOST_BELOW, BOOST, UNBOOST = np.float64(-650.0), np.float64(64.0), np.float64(2.0**-64)
D_ZERO = np.float64(0.0)
# 2 sqrt(2 / pi) and 0.044715 times that, as pairs
D_GATE_LINEAR, D_GATE_LINEAR_LOW = float64s("1.5957691216057308 -9.96930880911092e-17")
D_GATE_CUBIC, D_GATE_CUBIC_LOW = float64s("0.07135481627260025 -4.1218577217431825e-18")
D_GATE_MOST = np.float64(23.0)  # beyond it the gate is 0 or 1
# log(1 + e) = 2 s + s**3 (L0 + L1 s**2 + ...), s = e / (2 + e), on 0 <= e <= 1: error 2**-64
L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = float64s("""
    0x1.5555555555556p-1 0x1.9999999999656p-2 0x1.24924924ba525p-2 0x1.c71c71a9a9af3p-3
    0x1.745d1d718d4e7p-3 0x1.3b12e3a25b7bep-3 0x1.11226c874198bp-3 0x1.dff3fbc7d466dp-4
    0x1.c100ed797a129p-4 0x1.200e5c12753bfp-4 0x1.5004bd6ad37c8p-3""")
EXPM1_LOW = np.float64(-40.0)
TINY = np.float64(2.0**-54)
F_ZERO, F_ONE, F_TWO, F_LOG2E = float32s("0.0 1.0 2.0 1.44269504")
F_LN2_HI = np.float32(0.693145751953125)  # 16 bits
F_LN2_LO, F_LN2 = float32s("1.4286068203094173e-06 0.6931471805599453")
F_LN2_TAIL = np.float32(0.6931471805599453 - float(np.float32(0.6931471805599453)))
F_SHIFT = np.float32(1.5 * 2.0**23 + 254)
F_SHIFT_ONCE = np.float32(1.5 * 2.0**23 + 127)
F_SHIFT_HALF = np.float32(1.5 * 2.0**23 + 126)
F_SHIFT_SIGMOID = np.float32(1.5 * 2.0**23 + 127 - 32)
F_EXP_HIGH, F_EXP_LOW, F_EXP2_HIGH, F_EXP2_LOW = float32s("89.0 -105.0 129.0 -155.0")
F_EXPM1_LOW, F_UNREDUCED = float32s("-20.0 0.45")
F_TINY = np.float32(2.0**-25)
F_FRACTION_BITS, F_I1, F_EXPONENT_MASK = np.int32(23), np.int32(1), np.int32(0x7F800000)
# exp(r) - 1 - r = r**2 (P0 + P1 r + ...), error 2**-28
F_P0, F_P1, F_P2, F_P3, F_P4 = float32s("""
    0.49999994 0.16666517 0.041668247 0.008369085 0.0013817343""")
# cosh and sinh as above, errors 2**-33 and 2**-34
F_HALF, F_C1, F_C2 = float32s("0.5 0.04166646 0.0013935429")
F_S0, F_S1, F_S2 = float32s("0.16666667 0.0083331754 0.00019974097")
F_SIGMOID_HIGH = np.float32(25.0)
# 2 sqrt(2 / pi) and 0.044715 times that, as pairs
F_GATE_LINEAR, F_GATE_LINEAR_LOW = float32s("1.5957691669464111 -4.534068054340423e-08")
F_GATE_CUBIC, F_GATE_CUBIC_LOW = float32s("0.07135481387376785 2.3988324659995897e-09")
F_GATE_MOST = np.float32(12.0)  # beyond it the gate is 0 or 1
F_BOOST_BELOW, F_BOOST, F_UNBOOST = np.float32(-60.0), np.float32(32.0), np.float32(2.0**-32)
# log(1 + e) as above, error 2**-33
F_L0, F_L1, F_L2, F_L3, F_L4 = float32s("0.66666675 0.3999895 0.28615215 0.21443817 0.24245642")


@device
def subtract_ln2_f64(x, k):
    """``(r, c)`` with ``x = k ln 2 + r + c``."""
    high = mul_add(k, -LN2_HI, x)
    low = k * LN2_LO
    r = high - low
    return r, (high - r) - low


subtract_ln2_f32 = single(subtract_ln2_f64)


@device
def reduce_f64(x, shift):
    """``(t, k, r, c)``: x = k ln 2 + r + c, c the rounding error of r, t = k + shift."""
    t = mul_add(x, LOG2E, shift)
    k = t - shift
    high = mul_add(k, -LN2_HI, x)  # as subtract_ln2 does, but exp is to be written in place
    low = k * LN2_LO
    r = high - low
    return t, k, r, (high - r) - low


reduce_f32 = single(reduce_f64)


@device
def square_terms_f64(r):
    """``exp(r) - 1 - r`` for ``|r| <= ln(2) / 2``."""
    r2 = r * r
    r4 = r2 * r2
    a = mul_add(r, S0, C0)
    b = mul_add(r, S1, C1)
    c = mul_add(r, S2, C2)
    d = mul_add(r, S3, C3)
    e = mul_add(r, S4, C4)
    e = mul_add(r2, C5, e)
    return r2 * mul_add(r4, mul_add(r4, e, mul_add(r2, d, c)), mul_add(r2, b, a))


@device
def square_terms_f32(r):
    """``exp(r) - 1 - r`` for ``|r| <= ln(2) / 2``."""
    r2 = r * r
    b = mul_add(r, F_S1, F_C1)
    c = mul_add(r, F_S2, F_C2)
    return mul_add(r2, mul_add(r2, mul_add(r2, c, b), r * F_S0), r2 * F_HALF)


@device
def short_square_terms_f64(r, c):
    """``exp(r) - 1 - r + c``."""
    return square_terms_f64(r) + c


@device
def short_square_terms_f32(r, c):
    """``exp(r) - 1 - r + c``, absolute error 2**-28."""
    r2 = r * r
    q = mul_add(r2, mul_add(r2, F_P4, mul_add(r, F_P3, F_P2)), mul_add(r, F_P1, F_P0))
    return mul_add(r2, q, c)


@device
def power_of_two_f64(k):
    """``2**k`` for a float ``k`` with integral value from -1022 to 1023."""
    return from_bits(INT(bits(k + SHIFT_ONCE) << FRACTION_BITS))


power_of_two_f32 = single(power_of_two_f64)


@device
def scale_f64(p, t):
    """``p * 2**k`` for ``t = k + SHIFT``; see Note [Scaling in two steps]."""
    both = INT(bits(t) << FRACTION_BITS)
    first = INT((both >> I1) & EXPONENT_MASK)
    return (p * from_bits(first)) * from_bits(INT(both - first))


scale_f32 = single(scale_f64)


@device
def clamp(x, low, high):
    """``x`` within ``[low, high]``; NaN passes."""
    x = select(x > high, high, x)
    return select(x < low, low, x)


@device
def exp_f64(x):
    """Exponential of ``x``."""
    t, _, r, c = reduce_f64(clamp(x, EXP_LOW, EXP_HIGH), SHIFT)
    return scale_f64(D_ONE + (r + (square_terms_f64(r) + c)), t)


@device
def exp_f32(x):
    """Exponential of ``x``."""
    t, _, r, c = reduce_f32(clamp(x, F_EXP_LOW, F_EXP_HIGH), F_SHIFT)
    return scale_f32(F_ONE + (r + short_square_terms_f32(r, c)), t)


@device
def exp_product_f64(a, b):
    """``exp(a * b)``, the rounding error of the product carried along."""
    p, p_low = two_prod_f64(a, b)
    t, _, r, c = reduce_f64(clamp(p, EXP_LOW, EXP_HIGH), SHIFT)
    p_low = select((p > EXP_LOW) & (p < EXP_HIGH), p_low, D_ZERO)
    w = r + (square_terms_f64(r) + c)
    return scale_f64(D_ONE + mul_add(p_low, D_ONE + w, w), t)


exp_product_f32 = single(exp_product_f64)


@device
def exp2_f64(x):
    """Two to the power ``x``."""
    x = clamp(x, EXP2_LOW, EXP2_HIGH)
    t = x + SHIFT
    f = x - (t - SHIFT)
    r, c = two_prod_f64(f, LN2)
    c = mul_add(f, LN2_TAIL, c)
    return scale_f64(D_ONE + (r + short_square_terms_f64(r, c)), t)


exp2_f32 = single(exp2_f64)


@device
def expm1_f64(x):
    """``exp(x) - 1``, accurate near zero."""
    t, _, r, c = reduce_f64(clamp(x, EXPM1_LOW, EXP_HIGH), SHIFT_HALF)
    q = square_terms_f64(r) + c
    # Half of 2**k, doubled at the end, so that k = 1024 fits.
    half = from_bits(bits(t) << FRACTION_BITS)
    high, low = fast_two_sum(half - C0, half * r)
    y = D_TWO * (high + mul_add(half, q, low))
    return select(fabs(x) < TINY, x, y)


@device
def expm1_f32(x):
    """``exp(x) - 1``, accurate near zero."""
    z = clamp(x, F_EXPM1_LOW, F_EXP_HIGH)
    k = mul_add(z, F_LOG2E, F_SHIFT) - F_SHIFT
    # Just above ln(2) / 2 the sum 1 + 2 r would cancel: leave x whole there.
    k = select((k > F_ZERO) & (x < F_UNREDUCED), F_ZERO, k)
    r, c = subtract_ln2_f32(z, k)
    q = square_terms_f32(r) + c
    half = power_of_two_f32(k - F_ONE)
    base, base_low = two_sum(half, -F_HALF)
    high, low = fast_two_sum(base, half * r)
    y = F_TWO * (high + mul_add(half, q, low + base_low))
    return select(fabs(x) < F_TINY, x, y)


@device
def exp_of_minus_f64(z):
    """``(e, low)``: e + low = exp(z) for z <= 0, times 2**64 where z < BOOST_BELOW."""
    boosted = z < BOOST_BELOW
    _, k, r, c = reduce_f64(select(z < EXP_LOW, EXP_LOW, z), SHIFT)
    s = power_of_two_f64(k + select(boosted, BOOST, D_ZERO))
    high, low = fast_two_sum(D_ONE, r)
    high, low2 = fast_two_sum(high, square_terms_f64(r))
    return s * high, s * (low + low2 + c)


exp_of_minus_f32 = single(exp_of_minus_f64)


@device
def sigmoid_f64(x):
    """``1 / (1 + exp(-x))``, accurate in both tails."""
    # 1 and exp(-x) are divided by 2**64: a subnormal result is rounded at the very end.
    x = clamp(x, EXP_LOW, SIGMOID_HIGH)
    t, _, r, c = reduce_f64(-x, SHIFT_SIGMOID)
    s = from_bits(bits(t) << FRACTION_BITS)
    w = r + (square_terms_f64(r) + c)
    base = UNBOOST + s
    d = base + mul_add(s, w, UNBOOST - (base - s))
    return (D_ONE / d) * UNBOOST


@device
def sigmoid_f32(x):
    """``1 / (1 + exp(-x))``, accurate in both tails."""
    # 1 and exp(-x) are divided by 2**32: a subnormal result is rounded at the very end.
    x = clamp(x, F_EXP_LOW, F_SIGMOID_HIGH)
    t = mul_add(x, -F_LOG2E, F_SHIFT_SIGMOID)
    k = t - F_SHIFT_SIGMOID
    r = mul_add(k, -F_LN2_LO, mul_add(k, -F_LN2_HI, -x))
    s = from_bits(np.int32(bits(t) << F_FRACTION_BITS))
    w = short_square_terms_f32(r, r)
    d = mul_add(s, w, F_UNBOOST + s)
    d_low = mul_add(s, w, (s - d) + F_UNBOOST)
    q = F_ONE / d
    q = mul_add(q, mul_add(-q, d_low, exact_mul_add_f32(-q, d, F_ONE)), q)
    return q * F_UNBOOST


@device
def gelu_gate_f64(x):
    """``sigmoid(2 u)``, where u is the cubic of the approximation of ``gelu`` by ``tanh(u)``.

    In the tail an error of the argument is one of the exponential, so it is kept as a pair.
    """
    b = clamp(x, -D_GATE_MOST, D_GATE_MOST)
    p, p_low = two_prod_f64(b, b)
    q, q_low = two_prod_f64(p, D_GATE_CUBIC)
    q_low = q_low + mul_add(p_low, D_GATE_CUBIC, p * D_GATE_CUBIC_LOW)
    w, w_low = two_sum(D_GATE_LINEAR, q)
    w_low = w_low + (q_low + D_GATE_LINEAR_LOW)
    u, u_low = two_prod_f64(w, b)
    u_low = mul_add(w_low, b, u_low)
    y = sigmoid_f64(u)
    return mul_add(y * (D_ONE - y), u_low, y)


gelu_gate_f32 = single(gelu_gate_f64)


@device
def log_series_f64(t):
    """``L0 + L1 t + ...`` of ``log(1 + e)``."""
    t2 = t * t
    t4 = t2 * t2
    a = mul_add(t2, mul_add(t, L3, L2), mul_add(t, L1, L0))
    b = mul_add(t2, mul_add(t, L7, L6), mul_add(t, L5, L4))
    c = mul_add(t2, L10, mul_add(t, L9, L8))
    return mul_add(t4, mul_add(t4, c, b), a)


@device
def log_series_f32(t):
    """``L0 + L1 t + ...`` of ``log(1 + e)``."""
    return mul_add(t * t, mul_add(t * t, F_L4, mul_add(t, F_L3, F_L2)), mul_add(t, F_L1, F_L0))


@device
def log1p_exp_parts_f64(z):
    """``(s, low, factor)``: (2 s + low) factor = log(1 + exp(z)) for z <= 0."""
    e, e_low = exp_of_minus_f64(z)
    d, d_low = fast_two_sum(D_TWO, e)
    reciprocal = D_ONE / d
    s = e * reciprocal
    s_low = reciprocal * mul_add(-s, d_low + e_low, exact_mul_add_f64(-s, d, e) + e_low)
    t = s * s
    low = mul_add(s * t, log_series_f64(t), s_low + s_low)
    return s, low, select(z < BOOST_BELOW, UNBOOST, D_ONE)


log1p_exp_parts_f32 = single(log1p_exp_parts_f64)


@device
def log1p_exp_f64(z):
    """``log(1 + exp(z))`` for z <= 0."""
    s, low, factor = log1p_exp_parts_f64(z)
    return mul_add(D_TWO, s, low) * factor


log1p_exp_f32 = single(log1p_exp_f64)


@device
def softplus_f64(x):
    """``log(1 + exp(x))``, accurate in both tails."""
    z = -fabs(x)
    s, low, factor = log1p_exp_parts_f64(z)
    base = select(x > D_ZERO, x, D_ZERO)
    high, low2 = two_sum(base, D_TWO * s)
    both = high + (low2 + low)
    y = mul_add(D_TWO, s, low) * factor
    return select(x > D_ZERO, select(z < BOOST_BELOW, x, both), y)


softplus_f32 = single(softplus_f64)
