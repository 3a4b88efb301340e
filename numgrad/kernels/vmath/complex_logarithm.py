"""Logarithms of complex numbers.

Method: ``log |z|`` is half the logarithm of ``x**2 + y**2`` held as a pair of floats, scaled by a
power of two where a square would leave the range: nothing is lost near ``|z| = 1``. Values at
infinity, NaN and signed zeros are those of C99, Annex G.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs, select
from numgrad.kernels.vmath.complex_single import single
from numgrad.kernels.vmath.double_double import fast_two_sum, two_prod_f64, two_sum
from numgrad.kernels.vmath.inverse_trigonometric import atan2_f64
from numgrad.kernels.vmath.logarithm import log1p_f64, log_of_sum_f64

D_ZERO, D_HALF, D_ONE, D_TWO = (
    np.float64(0.0),
    np.float64(0.5),
    np.float64(1.0),
    np.float64(2.0),
)
D_INF, D_NAN = np.float64(np.inf), np.float64(np.nan)
LARGE, SMALL = np.float64(2.0**500), np.float64(2.0**-400)
UP, DOWN, TWICE_K = np.float64(2.0**600), np.float64(2.0**-600), np.float64(1200.0)
LOG2_E = np.float64(1.4426950408889634)
LOG10_E = np.float64(0.4342944819032518)


@device
def log_of_modulus(x, x_low, y):
    """``log |x + x_low + i y|``; x_low is below the last place of x, and 0 where x is large."""
    a, b = fabs(x), fabs(y)
    most = select(a > b, a, b)
    large, small = most > LARGE, most < SMALL
    scale = select(large, DOWN, select(small, UP, D_ONE))
    more = select(large, TWICE_K, select(small, -TWICE_K, D_ZERO))
    u, v = a * scale, b * scale
    p, p_low = two_prod_f64(u, u)
    q, q_low = two_prod_f64(v, v)
    s, s_low = two_sum(p, q)
    cross = D_TWO * u * select(x < D_ZERO, -x_low, x_low)  # x_low is 0 unless scale is 1
    s, s_low = fast_two_sum(s, (s_low + cross) + (p_low + q_low))
    y = D_HALF * log_of_sum_f64(s, s_low, more)
    y = select(most == D_ZERO, -D_INF, y)
    y = select((a != a) | (b != b), D_NAN, y)
    return select((a == D_INF) | (b == D_INF), D_INF, y)


@outlined
def log_c128(z):
    """Natural logarithm of ``z``."""
    return complex(log_of_modulus(z.real, D_ZERO, z.imag), atan2_f64(z.imag, z.real))


@outlined
def log2_c128(z):
    """Logarithm of ``z`` to base 2."""
    real, imag = log_of_modulus(z.real, D_ZERO, z.imag), atan2_f64(z.imag, z.real)
    return complex(real * LOG2_E, imag * LOG2_E)


@outlined
def log10_c128(z):
    """Logarithm of ``z`` to base 10."""
    real, imag = log_of_modulus(z.real, D_ZERO, z.imag), atan2_f64(z.imag, z.real)
    return complex(real * LOG10_E, imag * LOG10_E)


@outlined
def log1p_c128(z):
    """``log(1 + z)``, accurate near zero."""
    u, u_low = two_sum(z.real, D_ONE)
    u_low = select(fabs(u) < LARGE, u_low, D_ZERO)
    return complex(log_of_modulus(u, u_low, z.imag), atan2_f64(z.imag, u))


@outlined
def logit_c128(z):
    """``log(z / (1 - z))``, accurate near a half too."""
    x, y = z.real, z.imag
    w = D_ONE - x
    # |z / (1 - z)|**2 = 1 + (2 x - 1) / |1 - z|**2
    low = log_of_modulus(x, D_ZERO, y)
    u, u_low = two_sum(D_ONE, -x)
    u_low = select(fabs(u) < LARGE, u_low, D_ZERO)
    real = low - log_of_modulus(u, u_low, y)
    near = (D_TWO * x - D_ONE) / (w * w + y * y)
    real = select(fabs(near) < D_HALF, D_HALF * log1p_f64(near), real)
    return complex(real, atan2_f64(y, x) - atan2_f64(-y, w))


log_c64, log2_c64, log10_c64 = single(log_c128), single(log2_c128), single(log10_c128)
log1p_c64, logit_c64 = single(log1p_c128), single(logit_c128)
