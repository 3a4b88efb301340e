"""Inverse trigonometric and hyperbolic functions of complex numbers.

Method: Kahan's, "Branch cuts for complex elementary functions" (1987): with ``a + i b`` and
``c + i d`` the square roots of 1 - z and 1 + z, the parts of arcsin and arccos are inverse
functions of real sums of products such as ``a c - b d``, in which nothing cancels, and zeros carry
the side of the cut. Far out, where ``1 / z**2`` does not count, they are logarithms. arctanh takes
both parts from their closed forms. The others follow by a quarter turn. Values at infinity, NaN
and signed zeros are those of C99, Annex G.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import copysign, fabs, select
from numgrad.kernels.vmath.complex_logarithm import log_of_modulus
from numgrad.kernels.vmath.complex_parts import sqrt_parts
from numgrad.kernels.vmath.complex_single import single
from numgrad.kernels.vmath.hyperbolic import asinh_f64
from numgrad.kernels.vmath.inverse_trigonometric import atan2_f64
from numgrad.kernels.vmath.logarithm import log1p_f64, log_f64

D_ZERO, D_HALF, D_ONE, D_TWO = (
    np.float64(0.0),
    np.float64(0.5),
    np.float64(1.0),
    np.float64(2.0),
)
D_QUARTER, D_FOUR = np.float64(0.25), np.float64(4.0)
D_INF, D_NAN = np.float64(np.inf), np.float64(np.nan)
PI_2, LN2 = np.float64(1.5707963267948966), np.float64(0.6931471805599453)
FAR, NEAR = np.float64(2.0**28), np.float64(2.0**-28)  # 1 / z**2, or z**2, does not count
VERY_FAR = np.float64(2.0**60)  # 1 / z does not count
LEAST = np.float64(2.0**-500)  # its square is a normal number


@device
def both_roots(x, y):
    """Square roots ``a + i b`` of 1 - z and ``c + i d`` of 1 + z."""
    a, b = sqrt_parts(D_ONE - x, -y)
    c, d = sqrt_parts(D_ONE + x, y)
    return a, b, c, d


@device
def arcsin_parts(x, y):
    """``arcsin(x + i y)``."""
    if (fabs(x) > FAR) | (fabs(y) > FAR):
        real = atan2_f64(x, fabs(y))
        return real, copysign(log_of_modulus(x, D_ZERO, y) + LN2, y)
    if (fabs(x) < NEAR) & (fabs(y) < NEAR):
        return x, y
    a, b, c, d = both_roots(x, y)
    real, imag = atan2_f64(x, a * c - b * d), asinh_f64(a * d - b * c)
    return select(x == D_ZERO, x, real), copysign(imag, y)


@device
def arccos_parts(x, y):
    """``arccos(x + i y)``."""
    if (fabs(x) > FAR) | (fabs(y) > FAR):
        real = atan2_f64(fabs(y), x)
        return real, -copysign(log_of_modulus(x, D_ZERO, y) + LN2, y)
    a, b, c, d = both_roots(x, y)
    real, imag = D_TWO * atan2_f64(a, c), asinh_f64(b * c - a * d)
    return select(x == D_ZERO, PI_2, real), copysign(imag, -y)


@device
def arctanh_parts(x, y):
    """``arctanh(x + i y)``."""
    a, b = fabs(x), fabs(y)
    most = select(a > b, a, b)
    if (a > VERY_FAR) | (b > VERY_FAR):
        s, t = a / most, b / most
        real = (s / (s * s + t * t)) / most
        real = select((a == D_INF) | (b == D_INF), D_ZERO, real)
        return copysign(real, x), select(
            (y == y) & ((x == x) | (b == D_INF)), copysign(PI_2, y), D_NAN
        )
    w = D_ONE - a
    d = w * w + y * y
    if (w == D_ZERO) & (b < LEAST):
        real = D_HALF * (LN2 - log_f64(b))
    else:
        real = D_QUARTER * log1p_f64(D_FOUR * a / d)
    imag = D_HALF * atan2_f64(D_TWO * y, w * (D_ONE + a) - y * y)
    near = (a < NEAR) & (b < NEAR)
    return copysign(select(near | (a == D_ZERO), a, real), x), select(near, y, imag)


@outlined
def arcsin_c128(z):
    """Inverse sine of ``z``."""
    real, imag = arcsin_parts(z.real, z.imag)
    return complex(real, imag)


@outlined
def arccos_c128(z):
    """Inverse cosine of ``z``."""
    real, imag = arccos_parts(z.real, z.imag)
    return complex(real, imag)


@outlined
def arctan_c128(z):
    """Inverse tangent of ``z``: arctan z = -i arctanh(i z)."""
    imag, real = arctanh_parts(z.imag, z.real)
    return complex(real, imag)


@outlined
def arcsinh_c128(z):
    """Inverse hyperbolic sine of ``z``: i arcsinh z = arcsin(i z)."""
    imag, real = arcsin_parts(z.imag, z.real)
    return complex(real, imag)


@outlined
def arccosh_c128(z):
    """Inverse hyperbolic cosine of ``z``: +-i arccos z, its real part not negative."""
    imag, real = arccos_parts(z.real, z.imag)
    return complex(fabs(real), copysign(imag, z.imag))


@outlined
def arctanh_c128(z):
    """Inverse hyperbolic tangent of ``z``."""
    real, imag = arctanh_parts(z.real, z.imag)
    return complex(real, imag)


arcsin_c64, arccos_c64, arctan_c64 = single(arcsin_c128), single(arccos_c128), single(arctan_c128)
arcsinh_c64, arccosh_c64 = single(arcsinh_c128), single(arccosh_c128)
arctanh_c64 = single(arctanh_c128)
