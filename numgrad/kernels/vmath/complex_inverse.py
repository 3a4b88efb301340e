"""Inverse functions of complex numbers: roots, logarithms, arcs; magnitude, sign and reciprocal.

Powers of two keep squares within range. ``log |z|`` is half the logarithm of ``x**2 + y**2`` held
as a pair of floats, scaled by a power of two where a square would leave the range: nothing is lost
near ``|z| = 1``.

Inverse trigonometric and hyperbolic functions are Kahan's, "Branch cuts for complex elementary
functions" (1987): with ``a + i b`` and ``c + i d`` the roots of 1 - z and 1 + z, the parts of
arcsin and arccos are inverse functions of real sums of products such as ``a c - b d``, in which
nothing cancels, and zeros carry the side of the cut. Far out, where ``1 / z**2`` does not count,
they are logarithms. arctanh takes both parts from their closed forms. The others follow by a
quarter turn.

Values at infinity, NaN and signed zeros are those of C99, Annex G; of the sign and the reciprocal,
which it does not have, those of NumPy.
"""

import numpy as np

from numgrad.codegen import intrinsics
from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import copysign, fabs, select
from numgrad.kernels.vmath.error_free import fast_two_sum, two_prod_f64, two_sum
from numgrad.kernels.vmath.hyperbolic import asinh_f64
from numgrad.kernels.vmath.inverse_trigonometric import atan2_f64
from numgrad.kernels.vmath.logarithm import log1p_f64, log_f64, log_of_sum_f64
from numgrad.kernels.vmath.precision import float64s, of_parts, through_complex128
from numgrad.kernels.vmath.roots import hypot_f64

D_ZERO, D_HALF, D_ONE, D_TWO, D_INF, D_NAN = float64s("0.0 0.5 1.0 2.0 inf nan")
LARGE, SMALL = np.float64(2.0**1000), np.float64(2.0**-900)
QUARTER, UP, ROOT_DOWN, DOWN = (
    np.float64(2.0**-2),
    np.float64(2.0**60),
    np.float64(2.0**-30),
    np.float64(2.0**-60),
)


@device
def larger(a, b):
    """The larger of two magnitudes; the second if either is NaN."""
    return select(a > b, a, b)


@device
def sqrt_parts(x, y):
    """Square root of ``x + i y``."""
    a, b = fabs(x), fabs(y)
    most = larger(a, b)
    large, small = most > LARGE, most < SMALL
    scale = select(large, QUARTER, select(small, UP, D_ONE))
    back = select(large, D_TWO, select(small, ROOT_DOWN, D_ONE))
    a, b = a * scale, b * scale
    root = intrinsics.sqrt(D_HALF * (a + hypot_f64(a, b)))
    other = select(root == D_ZERO, b, b / (D_TWO * root))
    root, other = root * back, other * back
    positive = (x >= D_ZERO) | (x != x)
    real, imag = select(positive, root, other), select(positive, other, root)
    infinite = b == D_INF
    return select(infinite, b, real), copysign(select(infinite, b, imag), y)


sqrt_c128, sqrt_c64 = of_parts("sqrt", sqrt_parts)


@outlined
def reciprocal_c128(z):
    """``1 / z`` by Smith's method."""
    x, y = z.real, z.imag
    if fabs(y) <= fabs(x):
        r = y / x
        d = x + y * r
        return complex(D_ONE / d, -r / d)
    r = x / y
    d = x * r + y
    return complex(r / d, -D_ONE / d)


@device
def absolute_c128(z):
    """Magnitude of ``z``."""
    return hypot_f64(z.real, z.imag)


@device
def absolute_c64(z):
    """Magnitude of ``z``."""
    return np.float32(hypot_f64(np.float64(z.real), np.float64(z.imag)))


@outlined
def sign_c128(z):
    """``z / |z|``; of any zero 0, of an infinite part alone its sign, of two NaN."""
    x, y = z.real, z.imag
    a, b = fabs(x), fabs(y)
    most = larger(a, b)
    if a == D_ZERO and b == D_ZERO:
        return complex(D_ZERO, D_ZERO)
    if (a == D_INF) != (b == D_INF):
        x = select(a == D_INF, copysign(D_ONE, x), D_ZERO)
        return complex(x, select(b == D_INF, copysign(D_ONE, y), D_ZERO))
    scale = select(most > LARGE, DOWN, select(most < SMALL, UP, D_ONE))
    x, y = x * scale, y * scale
    modulus = hypot_f64(x, y)  # NaN if either part is
    return complex(x / modulus, y / modulus)


sign_c64, reciprocal_c64 = through_complex128(sign_c128), through_complex128(reciprocal_c128)


LOG_LARGE, LOG_SMALL = np.float64(2.0**500), np.float64(2.0**-400)
LOG_UP, LOG_DOWN, TWICE_K = np.float64(2.0**600), np.float64(2.0**-600), np.float64(1200.0)
LOG2_E, LOG10_E = float64s("1.4426950408889634 0.4342944819032518")


@device
def log_of_modulus(x, x_low, y):
    """``log |x + x_low + i y|``; x_low is below the last place of x, and 0 where x is large."""
    a, b = fabs(x), fabs(y)
    most = select(a > b, a, b)
    large, small = most > LOG_LARGE, most < LOG_SMALL
    scale = select(large, LOG_DOWN, select(small, LOG_UP, D_ONE))
    exponent = select(large, TWICE_K, select(small, -TWICE_K, D_ZERO))
    u, v = a * scale, b * scale
    p, p_low = two_prod_f64(u, u)
    q, q_low = two_prod_f64(v, v)
    s, s_low = two_sum(p, q)
    cross = D_TWO * u * select(x < D_ZERO, -x_low, x_low)  # x_low is 0 unless scale is 1
    s, s_low = fast_two_sum(s, (s_low + cross) + (p_low + q_low))
    y = D_HALF * log_of_sum_f64(s, s_low, exponent)
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
    u_low = select(fabs(u) < LOG_LARGE, u_low, D_ZERO)
    return complex(log_of_modulus(u, u_low, z.imag), atan2_f64(z.imag, u))


@outlined
def logit_c128(z):
    """``log(z / (1 - z))``, accurate near a half too."""
    x, y = z.real, z.imag
    w = D_ONE - x
    # |z / (1 - z)|**2 = 1 + (2 x - 1) / |1 - z|**2
    low = log_of_modulus(x, D_ZERO, y)
    u, u_low = two_sum(D_ONE, -x)
    u_low = select(fabs(u) < LOG_LARGE, u_low, D_ZERO)
    real = low - log_of_modulus(u, u_low, y)
    near = (D_TWO * x - D_ONE) / (w * w + y * y)
    real = select(fabs(near) < D_HALF, D_HALF * log1p_f64(near), real)
    return complex(real, atan2_f64(y, x) - atan2_f64(-y, w))


log_c64, log2_c64 = through_complex128(log_c128), through_complex128(log2_c128)
log10_c64 = through_complex128(log10_c128)
log1p_c64, logit_c64 = through_complex128(log1p_c128), through_complex128(logit_c128)


D_QUARTER, D_FOUR, PI_2, LN2 = float64s("0.25 4.0 1.5707963267948966 0.6931471805599453")
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


arcsin_c128, arcsin_c64 = of_parts("arcsin", arcsin_parts)
arccos_c128, arccos_c64 = of_parts("arccos", arccos_parts)
arctanh_c128, arctanh_c64 = of_parts("arctanh", arctanh_parts)
arcsinh_c128, arcsinh_c64 = of_parts("arcsinh", arcsin_parts, turned=True)
arctan_c128, arctan_c64 = of_parts("arctan", arctanh_parts, turned=True)


@outlined
def arccosh_c128(z):
    """Inverse hyperbolic cosine of ``z``: +-i arccos z, its real part not negative."""
    imag, real = arccos_parts(z.real, z.imag)
    return complex(fabs(real), copysign(imag, z.imag))


arccosh_c64 = through_complex128(arccosh_c128)
