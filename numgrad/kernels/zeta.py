"""Hurwitz's zeta function, real and complex, and its derivatives with respect to ``s``.

SciPy does not export its own to compiled code.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs, floor, select
from numgrad.kernels.vmath.complex_exponential import exp_c128
from numgrad.kernels.vmath.complex_inverse import log_c128
from numgrad.kernels.vmath.logarithm import log_f64
from numgrad.kernels.vmath.precision import through_float64

D_ONE, D_HALF, D_FAR = np.float64(1.0), np.float64(0.5), np.float64(12.0)
# Bernoulli numbers B(2j) / (2j)!, j = 1 ... 12, from their definition
EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)  # fmt: skip


@outlined
def positive_zeta_f64(s, x):
    """The sum of ``(k + x)**-s``: terms up to an argument of 12, then Euler and Maclaurin.

    Their series needs an argument above ``s``, at which the terms of a large one have vanished.
    """
    total = 0.0
    far = select(s > 4.0, s + 8.0, 12.0)
    while x < far:
        term = x**-s
        total += term
        if x > 2.0 and not fabs(term) > 1e-19 * fabs(total):  # also where all of them underflow
            return total
        x += 1.0
    power = x**-s
    if power < 1e-290:  # that of its product with the argument need not underflow
        return total + x ** (1.0 - s) / (s - 1.0)
    total += x * power / (s - 1.0) + 0.5 * power
    factor = s * power / x
    for j in range(12):
        term = EULER_MACLAURIN[j] * factor
        total += term
        if abs(term) < 1e-17 * abs(total):
            break
        factor *= (s + 2 * j + 1.0) * (s + 2 * j + 2.0) / (x * x)
    return total


@outlined
def zeta_f64(s, x):
    """Hurwitz zeta function for ``s > 1``."""
    if not (s == s and x == x) or s < 1.0:
        return np.nan
    if s == 1.0:
        return np.inf
    if x <= 0.0:
        if x == np.floor(x):
            return np.inf
        if s != np.floor(s):
            return np.nan
    if x > -32.0:
        return positive_zeta_f64(s, x)
    # the terms on both sides of zero; of those far out there are too many to add up
    below = np.floor(x)
    near = positive_zeta_f64(s, x - below)
    other = positive_zeta_f64(s, (below + 1.0) - x) - positive_zeta_f64(s, 1.0 - x)
    return near + select(s * 0.5 == np.floor(s * 0.5), other, -other)


@outlined
def zeta_s_f64(s, x):
    """Derivative of Hurwitz's zeta function with respect to ``s``: its terms differentiated."""
    if not (s == s and x == x) or s < 1.0 or x < 0.0:
        return np.nan
    if s == 1.0:
        return -np.inf
    if x == 0.0:
        return np.inf
    if x - x != 0.0:
        return 0.0
    total, far = 0.0, select(s > 4.0, s + 8.0, 12.0)
    while x < far:
        term = -(log_f64(x) * x**-s)
        total += term
        if x > 2.0 and not fabs(term) > 1e-19 * fabs(total):
            return total
        x += 1.0
    log, power, inverse = log_f64(x), x**-s, 1.0 / (s - 1.0)
    total -= x ** (1.0 - s) * inverse * (log + inverse) + 0.5 * log * power
    factor, slope = s / x, 1.0 / x
    for j in range(12):
        total += EULER_MACLAURIN[j] * power * (slope - log * factor)
        a, b = s + 2 * j + 1.0, s + 2 * j + 2.0
        slope = (slope * a * b + factor * (a + b)) / (x * x)
        factor *= a * b / (x * x)
    return total


@outlined
def zeta_ss_f64(s, x):
    """Second derivative of Hurwitz's zeta function with respect to ``s``."""
    if not (s == s and x == x) or s < 1.0 or x < 0.0:
        return np.nan
    if s == 1.0 or x == 0.0:
        return np.inf
    if x - x != 0.0:
        return 0.0
    total, far = 0.0, select(s > 4.0, s + 8.0, 12.0)
    while x < far:
        log = log_f64(x)
        term = log * log * x**-s
        total += term
        if x > 2.0 and not term > 1e-19 * total:
            return total
        x += 1.0
    log, power, inverse = log_f64(x), x**-s, 1.0 / (s - 1.0)
    top = log * log + 2.0 * inverse * (log + inverse)
    total += x ** (1.0 - s) * inverse * top + 0.5 * log * log * power
    factor, slope, bend = s / x, 1.0 / x, 0.0
    for j in range(12):
        total += EULER_MACLAURIN[j] * power * (bend - 2.0 * log * slope + log * log * factor)
        a, b = s + 2 * j + 1.0, s + 2 * j + 2.0
        bend = (bend * a * b + 2.0 * slope * (a + b) + 2.0 * factor) / (x * x)
        slope = (slope * a * b + factor * (a + b)) / (x * x)
        factor *= a * b / (x * x)
    return total


zeta_f32 = through_float64(zeta_f64)
zeta_s_f32 = through_float64(zeta_s_f64)
zeta_ss_f32 = through_float64(zeta_ss_f64)


@device
def _power(z, s):
    """``z**-s``, by products for the small integers that derivatives of digamma have."""
    inverse = np.divide(complex(D_ONE, 0.0), z)
    if s == floor(s) and s >= 1.0 and s <= 16.0:
        power = inverse
        for _ in range(np.int64(s) - 1):
            power = power * inverse
        return power
    return exp_c128(log_c128(z) * complex(-s, 0.0))


@outlined
def half_plane_zeta_c128(s, z):
    """The sum of ``(k + z)**-s``: terms up to an argument of 12, then Euler and Maclaurin.

    As of real places: their series needs an argument above ``s``, if terms have not vanished.
    """
    total = complex(0.0, 0.0)
    one = complex(D_ONE, 0.0)
    far = select(s > 4.0, s + 8.0, D_FAR)
    if fabs(z.imag) < far or z.real < 0.0:
        while z.real < far:
            term = _power(z, s)
            total = total + term
            size, whole = fabs(term.real) + fabs(term.imag), fabs(total.real) + fabs(total.imag)
            if z.real > 2.0 and not size > np.float64(1e-19) * whole:
                return total
            z = z + one
    power = _power(z, s)
    inverse = np.divide(one, z)
    total = total + z * power * complex(D_ONE / (s - D_ONE), 0.0) + power * complex(D_HALF, 0.0)
    factor = power * inverse * complex(s, 0.0)
    square = inverse * inverse
    for j in range(12):
        total = total + factor * complex(EULER_MACLAURIN[j], 0.0)
        factor = factor * square * complex((s + 2 * j + 1.0) * (s + 2 * j + 2.0), 0.0)
    return total


@outlined
def zeta_c128(s, z):
    """Hurwitz zeta function of a complex place, for real ``s > 1``.

    Far on the left, for integers ``s``, as the sum over all integers less that over the others.
    """
    if not (s > 1.0 and z.real - z.real == 0.0 and z.imag - z.imag == 0.0):
        return complex(np.nan, np.nan)
    if z.real > -32.0:
        return half_plane_zeta_c128(s, z)
    if s != floor(s):
        return complex(np.nan, np.nan)
    sign = complex(D_ONE if s * D_HALF == floor(s * D_HALF) else -D_ONE, 0.0)
    one = complex(D_ONE, 0.0)
    near = complex(z.real - floor(z.real), z.imag)
    both = half_plane_zeta_c128(s, near) + sign * half_plane_zeta_c128(s, one - near)
    return both - sign * half_plane_zeta_c128(s, one - z)
