"""Exponential, trigonometric and hyperbolic functions of complex numbers, powers, logistic ones.

Method: each part is a product of real functions of ``x`` and ``y``, or a quotient whose denominator
is a sum of squares, so that the parts are accurate one by one; where a part is a sum that cancels
on a curve (expm1), the error there is small against the whole. Values at infinity, NaN and signed
zeros are those of C99, Annex G; those of functions that it does not have follow from ``exp``'s.
A sine that is zero makes the part zero even if it is multiplied by infinity, since that infinity is
the exponential of something finite, clamped: see ``grown``.

Note [Beyond the range of exp]
``exp(x)`` may overflow, or be subnormal, where its product with a small sine is neither. So it
stays ``p 2**k`` until it is multiplied.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import copysign, fabs, floor, rint, select
from numgrad.kernels.vmath.complex_inverse import log_of_modulus
from numgrad.kernels.vmath.error_free import two_prod_f64
from numgrad.kernels.vmath.exponential import (
    D_ONE,
    D_TWO,
    D_ZERO,
    LN2,
    LN2_TAIL,
    SHIFT,
    clamp,
    exp_f64,
    expm1_f64,
    reduce_f64,
    scale_f64,
    square_terms_f64,
)
from numgrad.kernels.vmath.hyperbolic import cosh_f64, sinh_f64
from numgrad.kernels.vmath.inverse_trigonometric import atan2_f64
from numgrad.kernels.vmath.logarithm import log1p_f64
from numgrad.kernels.vmath.power import pow_slow_f64
from numgrad.kernels.vmath.precision import float64s, of_parts, through_complex128
from numgrad.kernels.vmath.roots import hypot_f64
from numgrad.kernels.vmath.trigonometric import sincos_f64

D_HALF, D_FOUR, D_INF, D_NAN = float64s("0.5 4.0 inf nan")
MOST_PRODUCTS = np.float64(100.0)  # the largest exponent of a power taken by products
LOW, HIGH = np.float64(-800.0), np.float64(1460.0)  # exp times any sine is 0, or infinite
LOW_2, HIGH_2 = np.float64(-1150.0), np.float64(2106.0)
MOST_K = np.float64(2040.0)  # of ``scale_f64``
SMALL, LIFT, LIFT_K = np.float64(2.0**-900), np.float64(2.0**200), np.float64(200.0)
ONE_SIDED = np.float64(22.0)  # beyond it one of exp(x) and exp(-x) does not count
ALL_EXP = np.float64(40.0)  # beyond it 1 does not count against exp(x)


@device
def parts_of_exp(x):
    """``(p, k)``: ``exp(x) = p 2**k`` with p near one: Note [Beyond the range of exp]."""
    _, k, r, c = reduce_f64(clamp(x, LOW, HIGH), SHIFT)
    return D_ONE + (r + (square_terms_f64(r) + c)), k


@device
def grown(p, k, c):
    """``p c 2**k`` for ``|c| <= 1``; infinite only if that is, and zero if c is."""
    small = fabs(c) < SMALL
    k = k - select(small, LIFT_K, D_ZERO)
    k = select(k > MOST_K, MOST_K, k)
    return scale_f64(p * select(small, c * LIFT, c), k + SHIFT)


@device
def is_finite(x):
    """Whether ``x`` is neither infinite nor NaN."""
    return x - x == D_ZERO


@device
def exp_of(p, k, x, y, s, c):
    """``exp(x) (c + i s)`` for ``exp(x) = p 2**k`` and the cosine and sine of a multiple of y."""
    real, imag = grown(p, k, c), grown(p, k, s)
    if not is_finite(y):
        if x == -D_INF:
            real, imag = D_ZERO, copysign(D_ZERO, y)
        elif x == D_INF:
            real = x
    return real, select(y == D_ZERO, y, imag)


@outlined
def exp_c128(z):
    """Exponential of ``z``."""
    s, c = sincos_f64(z.imag)
    p, k = parts_of_exp(z.real)
    real, imag = exp_of(p, k, z.real, z.imag, s, c)
    return complex(real, imag)


@outlined
def exp2_c128(z):
    """Two to the power ``z``; the angle ``y ln 2`` is known to 106 bits."""
    x, y = z.real, z.imag
    b = clamp(x, LOW_2, HIGH_2)
    k = rint(b)
    f = b - k
    r, low = two_prod_f64(f, LN2)
    p = D_ONE + (r + (square_terms_f64(r) + (low + f * LN2_TAIL)))
    h, low = two_prod_f64(y, LN2)
    low = low + y * LN2_TAIL
    s, c = sincos_f64(h)
    s_low, c_low = sincos_f64(select(is_finite(h), low, h))
    real, imag = exp_of(p, k, x, y, s * c_low + c * s_low, c * c_low - s * s_low)
    return complex(real, imag)


@outlined
def expm1_c128(z):
    """``exp(z) - 1``, accurate near zero."""
    x, y = z.real, z.imag
    s, c = sincos_f64(y)
    p, k = parts_of_exp(x)
    real, imag = exp_of(p, k, x, y, s, c)
    if is_finite(y) and fabs(x) < ALL_EXP:
        half, _ = sincos_f64(D_HALF * y)
        real = expm1_f64(x) * c - (D_TWO * half) * half  # cos(y) = 1 - 2 sin(y / 2)**2
        real = select(y == D_ZERO, expm1_f64(x), real)
    else:
        real = real - D_ONE
    return complex(real, imag)


@device
def cosh_parts(x, y):
    """``cosh(x + i y)``."""
    s, c = sincos_f64(y)
    if fabs(x) > ONE_SIDED:
        p, k = parts_of_exp(fabs(x))
        real, imag = grown(p, k - D_ONE, c), grown(p, k - D_ONE, s * copysign(D_ONE, x))
        real = select((fabs(x) == D_INF) & (c != c), D_INF, real)
    else:
        real, imag = cosh_f64(x) * c, sinh_f64(x) * s
    imag = select((x == D_ZERO) & (s != s), D_ZERO, imag)
    return real, select((y == D_ZERO) & (x != x), y, imag)


@device
def sinh_parts(x, y):
    """``sinh(x + i y)``."""
    s, c = sincos_f64(y)
    if fabs(x) > ONE_SIDED:
        p, k = parts_of_exp(fabs(x))
        real, imag = copysign(D_ONE, x) * grown(p, k - D_ONE, c), grown(p, k - D_ONE, s)
        real = select((fabs(x) == D_INF) & (c != c), D_INF, real)
    else:
        real, imag = sinh_f64(x) * c, cosh_f64(x) * s
        real = select((x == D_ZERO) & (c != c), x, real)
    return real, select(y == D_ZERO, y, imag)


@device
def tanh_parts(x, y):
    """``tanh(x + i y)`` by ``(sinh x cosh x + i sin y cos y) / (sinh(x)**2 + cos(y)**2)``."""
    s, c = sincos_f64(y)
    a = fabs(x)
    if a > ONE_SIDED:
        real, imag = copysign(D_ONE, x), D_FOUR * (s * c) * exp_f64(-D_TWO * a)
        imag = select(a == D_INF, copysign(D_ZERO, y), imag)  # the sign of sin(2 y) is no limit
        real = select(imag == imag, real, imag)
    else:
        sinh = sinh_f64(x)
        d = sinh * sinh + c * c
        real, imag = sinh * cosh_f64(x) / d, s * c / d
        real = select((x == D_ZERO) & (c != c), x, real)
    return real, select(y == D_ZERO, y, imag)


cosh_c128, cosh_c64 = of_parts("cosh", cosh_parts)
sinh_c128, sinh_c64 = of_parts("sinh", sinh_parts)
tanh_c128, tanh_c64 = of_parts("tanh", tanh_parts)
sin_c128, sin_c64 = of_parts("sin", sinh_parts, turned=True)
tan_c128, tan_c64 = of_parts("tan", tanh_parts, turned=True)


@outlined
def cos_c128(z):
    """Cosine of ``z``: cos z = cosh(i z)."""
    real, imag = cosh_parts(-z.imag, z.real)
    return complex(real, imag)


@device
def one_plus_exp(x, y):
    """``(c, s, a, b)``: ``exp(x + i y) = c + i s``, a = 1 + c, b = c + exp(2 x)."""
    s, c = sincos_f64(y)
    e = exp_f64(x)
    zero = e == D_ZERO
    s, c = select(zero, copysign(D_ZERO, y), s), select(zero, D_ZERO, c)
    _, half = sincos_f64(D_HALF * y)
    half = (D_TWO * half) * half  # 1 + cos(y)
    growth = expm1_f64(x)
    near = c < D_ZERO
    a = select(near, half + growth * c, D_ONE + e * c)
    return e * c, e * s, a, e * select(near, half + growth, c + e)


@outlined
def sigmoid_c128(z):
    """``1 / (1 + exp(-z))``."""
    x, y = z.real, z.imag
    if x >= D_ZERO:
        _, s, a, _ = one_plus_exp(-x, -y)
        d = a * a + s * s
        return complex(a / d, -s / d)
    _, s, a, b = one_plus_exp(x, y)  # w / (1 + w) = w conj(1 + w) / |1 + w|**2
    d = a * a + s * s
    return complex(b / d, s / d)


@outlined
def softplus_c128(z):
    """``log(1 + exp(z))``."""
    x, y = z.real, z.imag
    if x > ALL_EXP:  # log(exp(z)) + exp(-z), its angle between -pi and pi
        s, c = sincos_f64(y)
        e = exp_f64(-x)
        angle = select(y == D_ZERO, y, atan2_f64(s, c) - e * s)
        return complex(x + select(e == D_ZERO, D_ZERO, e * c), angle)
    c, s, a, b = one_plus_exp(x, y)
    excess = c + b  # |1 + w|**2 - 1
    if excess > -D_HALF:
        real = D_HALF * log1p_f64(excess)
    else:
        real = log_of_modulus(a, D_ZERO, s)
    return complex(real, atan2_f64(s, a))


@outlined
def product_power_c128(z, n):
    """``z`` to the power of an int64 ``n >= 1``, by products."""
    power, square = z, z
    n = n - 1
    while n > 0:
        if (n & 1) != 0:
            power = power * square
        n = n >> 1
        square = square * square
    return power


@outlined
def power_c128(z, w):
    """``z`` to the power ``w``: by products for small integers, else ``exp(w log z)``.

    The power 0 is 1; zero to another one is zero if its real part is positive, else NaN.
    """
    x, y, p, q = z.real, z.imag, w.real, w.imag
    if p == D_ZERO and q == D_ZERO:
        return complex(D_ONE, D_ZERO)
    if x == D_ZERO and y == D_ZERO:
        nothing = select(p > D_ZERO, D_ZERO, D_NAN)
        return complex(nothing, nothing)
    if q == D_ZERO and p == floor(p) and fabs(p) <= MOST_PRODUCTS:
        power = product_power_c128(z, np.int64(fabs(p)))
        if p < D_ZERO:
            power = np.divide(complex(D_ONE, D_ZERO), power)
        if (p > D_ZERO and p <= D_TWO) or (is_finite(power.real) and is_finite(power.imag)):
            return power
    angle, size = atan2_f64(y, x), log_of_modulus(x, D_ZERO, y)
    turned = select(q == D_ZERO, D_ZERO, q * size) + p * angle
    modulus = pow_slow_f64(hypot_f64(x, y), p)
    if q != D_ZERO:
        modulus = modulus * exp_f64(-q * angle)
        if modulus == D_ZERO or not is_finite(modulus):
            return exp_c128(complex(p * size - q * angle, turned))
    s, c = sincos_f64(turned)
    return complex(modulus * c, modulus * s)


float_power_c128 = power_c128


@device
def power_c64(z, w):
    """``z`` to the power ``w``."""
    return np.complex64(power_c128(np.complex128(z), np.complex128(w)))


float_power_c64 = power_c64

exp_c64, exp2_c64 = through_complex128(exp_c128), through_complex128(exp2_c128)
expm1_c64, cos_c64 = through_complex128(expm1_c128), through_complex128(cos_c128)
sigmoid_c64, softplus_c64 = through_complex128(sigmoid_c128), through_complex128(softplus_c128)
