"""Sine, cosine and tangent.

Note [Reduction by multiples of pi/2]
``|x| = k pi/2 + r + e`` with ``|r| < 0.8``; pi/2 is kept in three parts of full width. The product
with the first is exact after the subtraction (the difference is a multiple of the last bit of that
part and below 1), the rounding error of the product with the second is recovered, and what is
rounded off goes into ``e`` with the third part: ``r + e`` has twice the width of the type even
beside a multiple of pi/2. ``k`` comes out of the low bits of ``|x| 2/pi + 1.5 * 2**52`` (2**23 in
float32). Arguments beyond ``FAST_LIMIT`` are "rare": a loop redoes its block with ``*_slow`` where
``*_rare`` holds. That takes all arguments, reduces the huge ones by 2/pi to 1,200 bits and is
accurate for them too; float32 goes through float64 there. Infinities are not rare: ``inf - inf``
makes them NaN on the way.

Polynomials on ``|r| < 0.797``: sine to r**13 and r**7, cosine to r**14 and r**8 (float64 and
float32), relative errors 2**-57 and 2**-63, 2**-27 and 2**-32. The tangent divides the two as sums
of two floats and corrects the quotient by its remainder.

Note [Huge arguments]
By the method of Payne and Hanek (1983): for ``a = m 2**q`` only some 190 bits of 2/pi matter for
``a 2/pi`` modulo 4: those before give multiples of 4, those after are below 2**-137. libm is no
substitute: glibc 2.36 errs by up to 100,000 ulp on the float64 numbers that are closest to
multiples of pi/2.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import bits, estrin, fabs, from_bits, mul_add, select
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum, two_prod_f64
from numgrad.kernels.vmath.precision import INT, float32s, float64s, single, through_float64

_TWO_OVER_PI = np.array(  # 64 bits a word, after a word of zeros for the arguments below 2**55
    [
        0x0000000000000000,
        0xA2F9836E4E441529,
        0xFC2757D1F534DDC0,
        0xDB6295993C439041,
        0xFE5163ABDEBBC561,
        0xB7246E3A424DD2E0,
        0x06492EEA09D1921C,
        0xFE1DEB1CB129A73E,
        0xE88235F52EBB4484,
        0xE99C7026B45F7E41,
        0x3991D639835339F4,
        0x9C845F8BBDF9283B,
        0x1FF897FFDE05980F,
        0xEF2F118B5A0A6D1F,
        0x6D367ECF27CB09B7,
        0x4F463F669E5FEA2D,
        0x7527BAC7EBE5F17B,
        0x3D0739F78A5292EA,
        0x6BFB5FB11F8D5D08,
        0x56033046FC7B6BAB,
    ],
    np.uint64,
)
_PIO2, _PIO2_LOW = np.float64(1.5707963267948966), np.float64(6.123233995736766e-17)
_SCALES = tuple(np.float64(2.0**-i) for i in (32, 64, 96, 128))
_U0, _U1, _U2, _U32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
_U6, _U62, _U63 = np.uint64(6), np.uint64(62), np.uint64(63)
_LOW32 = np.uint64(0xFFFFFFFF)
_FRACTION, _IMPLICIT = np.int64(0x000FFFFFFFFFFFFF), np.int64(0x0010000000000000)


@device
def _high_product(a, b):
    """The upper 64 bits of the product of two uint64."""
    a1, a0 = a >> _U32, a & _LOW32
    b1, b0 = b >> _U32, b & _LOW32
    cross = a1 * b0 + (a0 * b0 >> _U32)
    other = a0 * b1 + (cross & _LOW32)
    return a1 * b1 + (cross >> _U32) + (other >> _U32)


@device
def _window(start):
    """64 bits of the table from bit ``start`` on."""
    word, shift = start >> _U6, start & _U63
    # two shifts, as one by 64 is undefined
    following = (_TWO_OVER_PI[word + _U1] >> _U1) >> (_U63 - shift)
    return (_TWO_OVER_PI[word] << shift) | following


@device
def reduce_huge_f64(a):
    """``(k, r, e)`` with ``a = k pi/2 + r + e`` modulo 2 pi, for finite ``a >= 2**30``."""
    pattern = bits(a)
    m = np.uint64((pattern & _FRACTION) | _IMPLICIT)
    start = np.uint64((pattern >> 52) - 1075 - 2 + 64)
    w2 = _window(start + np.uint64(128))
    w1 = _window(start + np.uint64(64))
    x1 = m * w1 + _high_product(m, w2)
    carry = select(x1 < m * w1, _U1, _U0)
    x0 = m * _window(start) + _high_product(m, w1) + carry
    # a 2/pi modulo 4 in units of 2**-190, from here on k + fraction with a signed fraction
    high = (x0 << _U2) | (x1 >> _U62)
    low = (x1 << _U2) | ((m * w2) >> _U62)
    negative = (high >> _U63) != _U0
    k = np.int64((x0 >> _U62) + (high >> _U63))
    high = select(negative, ~high, high)
    low = select(negative, ~low, low)  # one unit short: 2**-66 of the least fraction
    f, f_low = fast_two_sum(
        np.float64(np.int64(high >> _U32)) * _SCALES[0],
        np.float64(np.int64(high & _LOW32)) * _SCALES[1],
    )
    g, g_low = fast_two_sum(
        np.float64(np.int64(low >> _U32)) * _SCALES[2],
        np.float64(np.int64(low & _LOW32)) * _SCALES[3],
    )
    f, f_low = fast_two_sum(f, f_low + g)
    r, r_low = two_prod_f64(f, _PIO2)
    r_low = mul_add(f_low + g_low, _PIO2, mul_add(f, _PIO2_LOW, r_low))
    r, r_low = fast_two_sum(r, r_low)
    return k, select(negative, -r, r), select(negative, -r_low, r_low)


FAST_LIMIT_F64 = np.float64(2.0**30)  # k stays below 2**30: x 2/pi is then known to 2**-22
FAST_LIMIT_F32 = np.float32(2.0**17)  # k 4.4e-8 (the second part) must stay small against 1
_INF_F64 = np.float64(np.inf)
_TOP_F64, _TOP_F32 = 63, 31
_SIGN_F64, _SIGN_F32 = -1 << 63, -1 << 31
_ONE_F64, _HALF_F64, _TWO_OVER_PI_F64 = float64s("1.0 0.5 0.6366197723675814")
_SHIFT_F64 = np.float64(1.5 * 2.0**52)
_PIO2_1_F64, _PIO2_2_F64 = float64s("1.5707963267948966 6.123233995736766e-17")
_PIO2_3_F64 = np.float64(-1.4973849048591698e-33)
# (sin r - r) / r**3 in r**2; relative error of sin r 4.6e-18
_SIN_F64 = float64s("""
    -0.16666666666666624 0.00833333333332037 -0.00019841269828121564 2.7557313092349666e-06
    -2.5050662308640822e-08 1.589114729334662e-10""")
# (cos r - 1 + r**2 / 2) / r**4 in r**2; relative error of cos r 8.0e-20
_COS_F64 = float64s("""
    0.04166666666666659 -0.0013888888888871998 2.4801587288083076e-05 -2.755731393118124e-07
    2.0875664079196937e-09 -1.1356496525257206e-11""")
_INF_F32, _ONE_F32, _HALF_F32, _TWO_OVER_PI_F32 = float32s("inf 1.0 0.5 0.6366197723675814")
_SHIFT_F32 = np.float32(1.5 * 2.0**23)
_PIO2_1_F32, _PIO2_2_F32 = float32s("1.5707963705062866 -4.371138828673793e-08")
_PIO2_3_F32 = np.float32(-1.7151245100058819e-15)
_SIN_F32 = (  # relative error of sin r 4.3e-9
    np.float32(-0.16666653752326965),
    np.float32(0.008332101628184319),
    np.float32(-0.00019506846729200333),
)
_COS_F32 = (  # relative error of cos r 1.5e-10
    np.float32(0.04166664555668831),
    np.float32(-0.0013887295499444008),
    np.float32(2.4429540644632652e-05),
)


@device
def _reduce_f64(a):
    """``a >= 0`` as ``(k, r, e)`` of Note [Reduction by multiples of pi/2]; low bits of k only."""
    shifted = mul_add(a, _TWO_OVER_PI_F64, _SHIFT_F64)
    k = shifted - _SHIFT_F64
    r1 = exact_mul_add_f64(-k, _PIO2_1_F64, a)
    p = k * _PIO2_2_F64
    p_low = exact_mul_add_f64(k, _PIO2_2_F64, -p)
    r = r1 - p
    e = mul_add(-k, _PIO2_3_F64, ((r1 - r) - p) - p_low)
    return bits(shifted), r, e


_reduce_f32 = single(_reduce_f64)


@device
def _sin_tail_f64(r, e):
    """``sin(r + e) - r``."""
    z = r * r
    return mul_add(r * z, estrin(z, _SIN_F64), mul_add(e * -_HALF_F64, z, e))


_sin_tail_f32 = single(_sin_tail_f64)


@device
def _cos_parts_f64(r, e):
    """``cos(r + e)`` as a sum of two, the first of them ``1 - r**2 / 2`` rounded."""
    z = r * r
    head = mul_add(-_HALF_F64, z, _ONE_F64)
    cut = mul_add(-_HALF_F64, z, _ONE_F64 - head)
    return head, mul_add(z * z, estrin(z, _COS_F64), mul_add(-r, e, cut))


_cos_parts_f32 = single(_cos_parts_f64)


@device
def _reduce_any_f64(a):
    """``_reduce_f64`` for any ``a >= 0``; NaN for infinity and NaN."""
    near = a <= FAST_LIMIT_F64
    finite = a < _INF_F64
    k, r, e = _reduce_f64(a)
    far_k, far_r, far_e = reduce_huge_f64(select(finite & ~near, a, FAST_LIMIT_F64))
    k, r, e = select(near, k, far_k), select(near, r, far_r), select(near, e, far_e)
    return k, r + (a - a), e


@device
def _sin_of_reduced_f64(x, k, r, e):
    """Sine of ``x`` from the reduction of ``|x|``."""
    cos_head, cos_tail = _cos_parts_f64(r, e)
    y = select((k & 1) != 0, cos_head + cos_tail, r + _sin_tail_f64(r, e))
    return from_bits(INT(bits(y) ^ ((k >> 1) << _TOP_F64) ^ (bits(x) & _SIGN_F64)))


_sin_of_reduced_f32 = single(_sin_of_reduced_f64)


@device
def _cos_of_reduced_f64(k, r, e):
    """Cosine from the reduction of ``|x|``."""
    cos_head, cos_tail = _cos_parts_f64(r, e)
    y = select((k & 1) != 0, r + _sin_tail_f64(r, e), cos_head + cos_tail)
    return from_bits(INT(bits(y) ^ (((k + 1) >> 1) << _TOP_F64)))


_cos_of_reduced_f32 = single(_cos_of_reduced_f64)


@device
def _tan_of_reduced_f64(x, k, r, e):
    """Tangent of ``x`` from the reduction of ``|x|``."""
    head, tail = _cos_parts_f64(r, e)
    cos1 = head + tail
    cos2 = (head - cos1) + tail
    tail = _sin_tail_f64(r, e)
    sin1 = r + tail
    sin2 = (r - sin1) + tail
    odd = (k & 1) != 0
    n = select(odd, cos1, sin1)
    d = select(odd, sin1, cos1)
    n_low = select(odd, cos2, sin2)
    d_low = select(odd, sin2, cos2)
    inverse = _ONE_F64 / d
    q = n * inverse
    remainder = exact_mul_add_f64(-q, d, n) + mul_add(-q, d_low, n_low)
    y = mul_add(remainder, inverse, q)
    return from_bits(INT(bits(y) ^ (k << _TOP_F64) ^ (bits(x) & _SIGN_F64)))


_tan_of_reduced_f32 = single(_tan_of_reduced_f64)


@device
def sin_f64(x):
    """Sine for ``|x| <= FAST_LIMIT_F64``."""
    k, r, e = _reduce_f64(fabs(x))
    return _sin_of_reduced_f64(x, k, r, e)


sin_f32 = single(sin_f64)


@device
def cos_f64(x):
    """Cosine for ``|x| <= FAST_LIMIT_F64``."""
    k, r, e = _reduce_f64(fabs(x))
    return _cos_of_reduced_f64(k, r, e)


cos_f32 = single(cos_f64)


@device
def tan_f64(x):
    """Tangent for ``|x| <= FAST_LIMIT_F64``."""
    k, r, e = _reduce_f64(fabs(x))
    return _tan_of_reduced_f64(x, k, r, e)


tan_f32 = single(tan_f64)


@device
def sin_rare_f64(x):
    """Whether ``sin_f64`` and its like are too coarse for ``x``."""
    return (fabs(x) > FAST_LIMIT_F64) & (fabs(x) < _INF_F64)


sin_rare_f32 = single(sin_rare_f64)


cos_rare_f64 = sin_rare_f64


tan_rare_f64 = sin_rare_f64


@device
def sin_slow_f64(x):
    """Sine of any argument."""
    k, r, e = _reduce_any_f64(fabs(x))
    return _sin_of_reduced_f64(x, k, r, e)


sin_slow_f32 = through_float64(sin_slow_f64)


@device
def cos_slow_f64(x):
    """Cosine of any argument."""
    k, r, e = _reduce_any_f64(fabs(x))
    return _cos_of_reduced_f64(k, r, e)


cos_slow_f32 = through_float64(cos_slow_f64)


@device
def tan_slow_f64(x):
    """Tangent of any argument."""
    k, r, e = _reduce_any_f64(fabs(x))
    return _tan_of_reduced_f64(x, k, r, e)


tan_slow_f32 = through_float64(tan_slow_f64)


@outlined
def sincos_f64(x):
    """Sine and cosine of any argument, for loops that are not vectorised anyway."""
    a = fabs(x)
    if a <= FAST_LIMIT_F64:
        k, r, e = _reduce_f64(a)
    else:
        k, r, e = _reduce_any_f64(a)
    return _sin_of_reduced_f64(x, k, r, e), _cos_of_reduced_f64(k, r, e)


cos_rare_f32 = sin_rare_f32


tan_rare_f32 = sin_rare_f32
