"""Square root, magnitude, sign and reciprocal of complex numbers.

Powers of two keep squares within range. Values at infinity, NaN and signed zeros are those of C99,
Annex G; of the sign and the reciprocal, which it does not have, those of NumPy.
"""

import numpy as np

from numgrad.codegen import intrinsics
from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import copysign, fabs, select
from numgrad.kernels.vmath.complex_single import single
from numgrad.kernels.vmath.roots import hypot_f64

D_ZERO, D_HALF, D_ONE, D_TWO = (
    np.float64(0.0),
    np.float64(0.5),
    np.float64(1.0),
    np.float64(2.0),
)
D_INF = np.float64(np.inf)
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


@outlined
def sqrt_c128(z):
    """Square root of ``z``, its real part not negative."""
    real, imag = sqrt_parts(z.real, z.imag)
    return complex(real, imag)


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


sqrt_c64, sign_c64, reciprocal_c64 = single(sqrt_c128), single(sign_c128), single(reciprocal_c128)
