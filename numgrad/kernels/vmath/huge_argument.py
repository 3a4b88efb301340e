"""Reduction of huge arguments by multiples of pi/2: the method of Payne and Hanek (1983).

For ``a = m 2**q`` only some 190 bits of 2/pi matter for ``a 2/pi`` modulo 4: those before give
multiples of 4, those after are below 2**-137. libm is no substitute: glibc 2.36 errs by up to
100,000 ulp on the float64 numbers that are closest to multiples of pi/2.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, mul_add, select
from numgrad.kernels.vmath.double_double import fast_two_sum, two_prod_f64

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
