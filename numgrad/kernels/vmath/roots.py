"""Roots: sqrt, cbrt, hypot.

cbrt: x = 2**(3 k) m, 1 <= m < 8; a polynomial for m**(-1/3) on [1, 2) times a power of 2**(-1/3),
one or two Newton steps, in float64 one more for the root itself with an exact residual.
hypot: x**2 + y**2 in double-double after scaling by a power of two, root with a correction.
"""

import numpy as np

from numgrad.codegen import intrinsics
from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, copysign, fabs, from_bits, mul_add, rint, select
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum, two_prod_f64
from numgrad.kernels.vmath.exponential import SHIFT_ONCE
from numgrad.kernels.vmath.precision import float64s, single

D_ZERO, D_HALF, D_ONE, D_TWO = (np.float64(0.0), np.float64(0.5), np.float64(1.0), np.float64(2.0))
D_INF, F_ZERO, F_INF = np.float64(np.inf), np.float32(0.0), np.float32(np.inf)
FRACTION_BITS = np.int64(52)
# m**(-1/3) on [1, 2]
B0, B1, B2, B3, B4, B5 = float64s("""
    0x1.c7f35f91f93f7p+0 -0x1.90e72bbb4469ap+0 0x1.3e689a3e95f20p+0 -0x1.321c332652d93p-1
    0x1.3fa22e9bc59a1p-3 -0x1.16d6b22dc6d05p-6""")
D_THREE, D_FOUR, THIRD = np.float64(3.0), np.float64(4.0), np.float64(1 / 3)
ROOT_2, ROOT_4 = np.float64(2.0 ** (-1 / 3)), np.float64(2.0 ** (-2 / 3))
LEAST_NORMAL, SUBNORMAL_SCALE = np.float64(2.0**-1022), np.float64(2.0**54)
ROOT_OF_SCALE = np.float64(2.0**-18)
FRACTION, ONE_BITS = np.int64(0x000FFFFFFFFFFFFF), np.int64(0x3FF0000000000000)
INT_IN_FLOAT, BIAS_IN_FLOAT = np.int64(0x4330000000000000), np.float64(2.0**52 + 1023)
LARGE, MIDDLE, SMALL = np.float64(2.0**500), np.float64(2.0**-300), np.float64(2.0**-450)
SCALE_UP, SCALE_DOWN = np.float64(2.0**600), np.float64(2.0**-600)


@device
def sqrt_f64(x):
    """Square root of ``x``, correctly rounded."""
    return intrinsics.sqrt(x)


sqrt_f32 = single(sqrt_f64)


@device
def inverse_root(a):
    """``(m, y, 2**k)``: ``a = 2**(3 k) m`` normal, ``y`` near ``m**(-1/3)``, error 2**-33."""
    i = bits(a)
    e = from_bits((i >> FRACTION_BITS) | INT_IN_FLOAT) - BIAS_IN_FLOAT
    m = from_bits((i & FRACTION) | ONE_BITS)  # [1, 2)
    k = rint(mul_add(e, THIRD, -THIRD))  # floor(e / 3)
    j = mul_add(k, -D_THREE, e)  # 0, 1, 2
    m2 = m * m
    y = mul_add(m2, mul_add(m2, mul_add(m, B5, B4), mul_add(m, B3, B2)), mul_add(m, B1, B0))
    y = y * select(j == D_ZERO, D_ONE, select(j == D_ONE, ROOT_2, ROOT_4))
    m = m * select(j == D_ZERO, D_ONE, select(j == D_ONE, D_TWO, D_FOUR))
    y = mul_add(y * THIRD, mul_add(-m * y, y * y, D_ONE), y)
    return m, y, from_bits(bits(k + SHIFT_ONCE) << FRACTION_BITS)


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
