"""Powers and roots: pow, powi, sqrt, cbrt, hypot.

Method of pow_f64: log2(x) in double-double, times y in double-double, then exp2.
x = 2**k m with sqrt(1/2) <= m < sqrt(2); s = (m - 1) / (m + 1) as a double-double s + s_low; with
t = s**2 and c = 2 log2(e), log2 m = s (c + t (c/3 + t R(t))), where R has 7 coefficients (relative
error of the logarithm 2**-66) and is evaluated in float64, all that follows with low parts.
pow_f32 works in float64 throughout: relative error 2**-29 before its only rounding.
cbrt: x = 2**(3 k) m, 1 <= m < 8; a polynomial for m**(-1/3) on [1, 2) times a power of 2**(-1/3),
one or two Newton steps, in float64 one more for the root itself with an exact residual.
hypot: x**2 + y**2 in double-double after scaling by a power of two, root with a correction.

Note [Special values of pow]
log2 of 0, inf and NaN is patched in as -inf, inf, NaN, which makes the product and the power come
out right by themselves. What is left: 1 where y = 0 or |x| = 1, and a factor for negative x.
"""

import numpy as np

from numgrad.kernels import intrinsics
from numgrad.kernels.intrinsics import bits, copysign, fabs, from_bits, mul_add, rint, select
from numgrad.kernels.jit import device
from numgrad.kernels.vmath.double_double import fast_two_sum, two_prod_f64
from numgrad.kernels.vmath.exponential import (
    LN2,
    LN2_TAIL,
    SHIFT,
    SHIFT_ONCE,
    clamp,
    scale_f64,
    square_terms_f64,
)
from numgrad.kernels.vmath.logarithm import split_any_f64, split_f64
from numgrad.kernels.vmath.multiply_add import exact_mul_add_f64

D_ZERO, D_HALF, D_ONE, D_TWO = (
    np.float64(0.0),
    np.float64(0.5),
    np.float64(1.0),
    np.float64(2.0),
)
D_INF, D_NAN = np.float64(np.inf), np.float64(np.nan)
F_ZERO, F_HALF, F_ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
F_INF, F_NAN = np.float32(np.inf), np.float32(np.nan)
I52, LOW_32 = np.int64(52), np.int64(0xFFFFFFFF)
C, C_LOW = np.float64.fromhex("0x1.71547652b82fep+1"), np.float64.fromhex("0x1.777d0ffda0d24p-55")
C3, C3_LOW = np.float64.fromhex("0x1.ec709dc3a03fdp-1"), np.float64.fromhex("0x1.d27f05548af0cp-55")
# R(t), error of the logarithm from it 2**-66; C = 2 log2(e) and C3 = C / 3 with low parts
R0 = np.float64.fromhex("0x1.2776c50ef9d26p-1")
R1 = np.float64.fromhex("0x1.a61762a759059p-2")
R2 = np.float64.fromhex("0x1.484b1421f5af6p-2")
R3 = np.float64.fromhex("0x1.0c9a63b5b8b5fp-2")
R4 = np.float64.fromhex("0x1.c69f986e18b1fp-3")
R5 = np.float64.fromhex("0x1.87af989c2eb30p-3")
R6 = np.float64.fromhex("0x1.85f43746f9560p-3")
# log2(m) = s (Q0 + Q1 t + ...), relative error 2**-45
Q0 = np.float64.fromhex("0x1.71547652b8250p+1")
Q1 = np.float64.fromhex("0x1.ec709dc53e777p-1")
Q2 = np.float64.fromhex("0x1.2776c290bf8f1p-1")
Q3 = np.float64.fromhex("0x1.a61a30e03ab04p-2")
Q4 = np.float64.fromhex("0x1.4794fbf40cde2p-2")
Q5 = np.float64.fromhex("0x1.21b63336faebep-2")
# 2**f on |f| <= 1/2, relative error 2**-29
E0 = np.float64.fromhex("0x1.000000026235dp+0")
E1 = np.float64.fromhex("0x1.62e430c8296c0p-1")
E2 = np.float64.fromhex("0x1.ebfbdadb203b2p-3")
E3 = np.float64.fromhex("0x1.c6aed4615769fp-5")
E4 = np.float64.fromhex("0x1.3b2dbc66b62ccp-7")
E5 = np.float64.fromhex("0x1.5f45973b18cc0p-10")
E6 = np.float64.fromhex("0x1.41d30be0c1561p-13")
# m**(-1/3) on [1, 2]
B0 = np.float64.fromhex("0x1.c7f35f91f93f7p+0")
B1 = np.float64.fromhex("-0x1.90e72bbb4469ap+0")
B2 = np.float64.fromhex("0x1.3e689a3e95f20p+0")
B3 = np.float64.fromhex("-0x1.321c332652d93p-1")
B4 = np.float64.fromhex("0x1.3fa22e9bc59a1p-3")
B5 = np.float64.fromhex("-0x1.16d6b22dc6d05p-6")
PRODUCT_LOW, PRODUCT_HIGH = np.float64(-1080.0), np.float64(1028.0)
EXP2_LOW_F32, EXP2_HIGH_F32 = np.float64(-160.0), np.float64(130.0)
I_ZERO, I_ONE, I_ZERO_32 = np.int64(0), np.int64(1), np.int32(0)
D_THREE, D_FOUR, THIRD = np.float64(3.0), np.float64(4.0), np.float64(1 / 3)
ROOT_2, ROOT_4 = np.float64(2.0 ** (-1 / 3)), np.float64(2.0 ** (-2 / 3))
LEAST_NORMAL, SUBNORMAL_SCALE = np.float64(2.0**-1022), np.float64(2.0**54)
ROOT_OF_SCALE = np.float64(2.0**-18)
FRACTION, ONE_BITS = np.int64(0x000FFFFFFFFFFFFF), np.int64(0x3FF0000000000000)
INT_IN_FLOAT, BIAS_IN_FLOAT = np.int64(0x4330000000000000), np.float64(2.0**52 + 1023)
LARGE, MIDDLE, SMALL = np.float64(2.0**500), np.float64(2.0**-300), np.float64(2.0**-450)
SCALE_UP, SCALE_DOWN = np.float64(2.0**600), np.float64(2.0**-600)


@device
def log2_pair_f64(a):
    """``log2(a)`` for ``a >= 0`` as a double-double, relative error near 2**-65."""
    k, m = split_any_f64(a)
    f = m - D_ONE
    b, b_low = fast_two_sum(D_TWO, f)
    reciprocal = D_ONE / b
    s = f * reciprocal
    s_low = mul_add(-s, b_low, exact_mul_add_f64(-s, b, f)) * reciprocal
    # Everything that does not wait for the polynomial: s c, k + s c and s**3, with low parts.
    first, first_low = two_prod_f64(s, C)
    first_low = mul_add(s_low, C, mul_add(s, C_LOW, first_low))
    h, h_low = fast_two_sum(k, first)
    h_low = h_low + first_low
    t, t_low = two_prod_f64(s, s)
    cube, cube_low = two_prod_f64(t, s)
    cube_low = mul_add(D_THREE * t, s_low, mul_add(t_low, s, cube_low))
    t2 = t * t
    z = mul_add(t2, mul_add(t, R3, R2), mul_add(t, R1, R0))
    z = mul_add(t2 * t2, mul_add(t2, R6, mul_add(t, R5, R4)), z)
    u = mul_add(t, z, C3)
    u_low = mul_add(t, z, C3 - u) + C3_LOW
    v, v_low = two_prod_f64(cube, u)
    high, low = fast_two_sum(h, v)
    low = low + mul_add(cube_low, u, mul_add(cube, u_low, h_low + v_low))
    edge = (a - D_ONE) * D_INF  # -inf, inf, NaN at 0, inf, NaN
    return select((a > D_ZERO) & (a < D_INF), high, edge), low


@device
def exp2_of_product_f64(y, y_low, g, g_low):
    """``2**((y + y_low) (g + g_low))``."""
    p, p_low = two_prod_f64(y, g)
    p_low = mul_add(y, g_low, mul_add(y_low, g, p_low))
    # Where p is out of range p_low may be anything: bound it, with NaN becoming 1.
    p_low = select(p_low < D_ONE, p_low, D_ONE)
    p_low = select(p_low > -D_ONE, p_low, -D_ONE)
    p = clamp(p, PRODUCT_LOW, PRODUCT_HIGH)
    t = p + SHIFT
    f = p - (t - SHIFT)
    r, c = two_prod_f64(f, LN2)
    c = mul_add(p_low, LN2, mul_add(f, LN2_TAIL, c))
    q = square_terms_f64(r)
    return scale_f64(D_ONE + (r + (q + mul_add(c, r + q, c))), t)


@device
def sign_of_power_f64(x, even, whole):
    """1, or for negative x: -1 for odd powers and NaN for broken ones of finite x."""
    broken = select((x < D_ZERO) & (x > -D_INF), D_NAN, D_ONE)
    factor = select(whole, select(even, D_ONE, -D_ONE), broken)
    return select(bits(x) < I_ZERO, factor, D_ONE)


@device
def pow_f64(x, y):
    """``x`` to the power ``y``, with the special values of C99."""
    a = fabs(x)
    g, g_low = log2_pair_f64(a)
    z = exp2_of_product_f64(y, D_ZERO, g, g_low)
    z = select((y == D_ZERO) | (a == D_ONE), D_ONE, z)
    half = y * D_HALF
    return z * sign_of_power_f64(x, rint(half) == half, rint(y) == y)


@device
def powi_f64(x, n):
    """``x`` to the power of an int64 ``n``."""
    a = fabs(x)
    upper = np.float64(n - (n & LOW_32))
    y, y_low = fast_two_sum(upper, np.float64(n & LOW_32))
    g, g_low = log2_pair_f64(a)
    z = exp2_of_product_f64(y, y_low, g, g_low)
    z = select((n == I_ZERO) | (a == D_ONE), D_ONE, z)
    return z * sign_of_power_f64(x, (n & I_ONE) == I_ZERO, True)


@device
def log2_coarse_f64(a):
    """``log2(a)`` of a float32 widened to float64, relative error 2**-45."""
    k, m, _ = split_f64(a)
    f = m - D_ONE
    s = f / (D_TWO + f)
    t = s * s
    t2 = t * t
    q = mul_add(t2, mul_add(t, Q5, Q4), mul_add(t, Q3, Q2))
    g = mul_add(s, mul_add(t2, q, mul_add(t, Q1, Q0)), k)
    return select((a > D_ZERO) & (a < D_INF), g, (a - D_ONE) * D_INF)


@device
def exp2_to_f32(p):
    """``2**p`` rounded to float32."""
    p = clamp(p, EXP2_LOW_F32, EXP2_HIGH_F32)
    t = p + SHIFT_ONCE
    f = p - (t - SHIFT_ONCE)
    f2 = f * f
    e = mul_add(f2, mul_add(f2, E6, mul_add(f, E5, E4)), mul_add(f, E3, E2))
    e = mul_add(f2, e, mul_add(f, E1, E0))
    return np.float32(e * from_bits(bits(t) << I52))


@device
def sign_of_power_f32(x, even, whole):
    """1, or for negative x: -1 for odd powers and NaN for broken ones of finite x."""
    broken = select((x < F_ZERO) & (x > -F_INF), F_NAN, F_ONE)
    factor = select(whole, select(even, F_ONE, -F_ONE), broken)
    return select(bits(x) < I_ZERO_32, factor, F_ONE)


@device
def pow_f32(x, y):
    """``x`` to the power ``y``, with the special values of C99."""
    a = fabs(x)
    z = exp2_to_f32(np.float64(y) * log2_coarse_f64(np.float64(a)))
    z = select((y == F_ZERO) | (a == F_ONE), F_ONE, z)
    half = y * F_HALF
    return z * sign_of_power_f32(x, rint(half) == half, rint(y) == y)


@device
def powi_f32(x, n):
    """``x`` to the power of an int64 ``n``."""
    a = fabs(x)
    z = exp2_to_f32(np.float64(n) * log2_coarse_f64(np.float64(a)))
    z = select((n == I_ZERO) | (a == F_ONE), F_ONE, z)
    return z * sign_of_power_f32(x, (n & I_ONE) == I_ZERO, True)


@device
def sqrt_f64(x):
    """Square root of ``x``, correctly rounded."""
    return intrinsics.sqrt(x)


@device
def sqrt_f32(x):
    """Square root of ``x``, correctly rounded."""
    return intrinsics.sqrt(x)


@device
def inverse_root(a):
    """``(m, y, 2**k)``: ``a = 2**(3 k) m`` normal, ``y`` near ``m**(-1/3)``, error 2**-33."""
    i = bits(a)
    e = from_bits((i >> I52) | INT_IN_FLOAT) - BIAS_IN_FLOAT
    m = from_bits((i & FRACTION) | ONE_BITS)  # [1, 2)
    k = rint(mul_add(e, THIRD, -THIRD))  # floor(e / 3)
    j = mul_add(k, -D_THREE, e)  # 0, 1, 2
    m2 = m * m
    y = mul_add(m2, mul_add(m2, mul_add(m, B5, B4), mul_add(m, B3, B2)), mul_add(m, B1, B0))
    y = y * select(j == D_ZERO, D_ONE, select(j == D_ONE, ROOT_2, ROOT_4))
    m = m * select(j == D_ZERO, D_ONE, select(j == D_ONE, D_TWO, D_FOUR))
    y = mul_add(y * THIRD, mul_add(-m * y, y * y, D_ONE), y)
    return m, y, from_bits(bits(k + SHIFT_ONCE) << I52)


@device
def cbrt_f64(x):
    """Cube root of ``x``."""
    a = fabs(x)
    subnormal = a < LEAST_NORMAL
    m, y, scale = inverse_root(select(subnormal, a * SUBNORMAL_SCALE, a))
    y = mul_add(y * THIRD, mul_add(-m * y, y * y, D_ONE), y)
    root = (m * y) * y
    square, square_low = two_prod_f64(root, root)
    rest = exact_mul_add_f64(-root, square, m)
    rest = mul_add(-root, square_low, rest)
    root = mul_add(rest * (y * y), THIRD, root)
    root = root * scale
    root = copysign(root * select(subnormal, ROOT_OF_SCALE, D_ONE), x)
    return select((a > D_ZERO) & (a < D_INF), root, x)


@device
def cbrt_f32(x):
    """Cube root of ``x``."""
    a = fabs(x)
    m, y, scale = inverse_root(np.float64(a))
    root = copysign(np.float32((m * y) * (y * scale)), x)
    return select((a > F_ZERO) & (a < F_INF), root, x)


@device
def hypot_f64(x, y):
    """``sqrt(x**2 + y**2)`` without overflow or underflow."""
    x, y = fabs(x), fabs(y)
    a = select(x > y, x, y)
    b = select(x > y, y, x)
    huge, tiny = a > LARGE, b < SMALL
    up = select(tiny, SCALE_UP, D_ONE)
    scale = select(huge, SCALE_DOWN, up)
    back = select(huge, SCALE_UP, select(tiny, SCALE_DOWN, D_ONE))
    # b tiny beside a larger a: scaling up must not overflow a, and b does not count.
    lone = a > MIDDLE
    scale = select(lone & tiny & (a <= LARGE), D_ONE, scale)
    back = select(lone & tiny & (a <= LARGE), D_ONE, back)
    p, q = a * scale, b * scale
    p2, p2_low = two_prod_f64(p, p)
    q2, q2_low = two_prod_f64(q, q)
    h, h_low = fast_two_sum(p2, q2)
    h_low = h_low + (p2_low + q2_low)
    root = intrinsics.sqrt(h)
    rest = exact_mul_add_f64(-root, root, h) + h_low
    better = mul_add(rest, D_HALF / root, root) * back
    z = select((h > D_ZERO) & (h < D_INF), better, x + y)
    return select((x == D_INF) | (y == D_INF), D_INF, z)


@device
def hypot_f32(x, y):
    """``sqrt(x**2 + y**2)``, computed in float64, where it cannot overflow or underflow."""
    a, b = np.float64(x), np.float64(y)
    z = np.float32(intrinsics.sqrt(mul_add(a, a, b * b)))
    return select((fabs(x) == F_INF) | (fabs(y) == F_INF), F_INF, z)
