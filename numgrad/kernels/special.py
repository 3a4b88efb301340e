"""Special functions that SciPy exports to compiled code, called inside kernels.

Their addresses change with every process, so machine code on disk refers to them by name; see
``linker``. They work in float64; float32 arguments are converted.
"""

import numpy as np

from numgrad.codegen.device import ExternalFunction, device, outlined
from numgrad.codegen.intrinsics import fabs, rint, select
from numgrad.codegen.linker import external_symbol, special_function
from numgrad.kernels.vmath.logarithm import log_f64
from numgrad.kernels.vmath.trigonometric import tan_f64


def exported(function: str, result: str, *beside: str) -> ExternalFunction:
    """A ``special_function`` with a result of a type; ``beside`` is what Cython has it take too."""
    types = function.partition("(")[2].rstrip(")")
    given = ", ".join((types, "int32", *beside))
    return ExternalFunction(external_symbol(function), f"{result}({given})")


def of_floats(name: str, count: int) -> ExternalFunction:
    """A special function of so many float64 arguments."""
    return exported(special_function(name, *["float64"] * count), "float64")


_gammaln, _gamma, _psi = of_floats("gammaln", 1), of_floats("gamma", 1), of_floats("psi", 1)
_NO = np.int32(0)  # Cython's second argument says whether to look for Python overrides

_PI, _QUARTER, _HALF = np.float64(np.pi), np.float64(0.25), np.float64(0.5)


@device
def scipy_gammaln_f64(x):
    """Logarithm of the absolute gamma function; the fast form is in ``vmath.gamma``."""
    return _gammaln(x, _NO)


@device
def gamma_f64(x):
    """Gamma function."""
    return _gamma(x, _NO)


@device
def scipy_digamma_f64(x):
    """Derivative of gammaln; below 0 by reflection, with the exact distance from the pole."""
    if not x < 0.0:
        return _psi(x, _NO)
    r = x - rint(x)
    if not fabs(r) > 0.0:  # a pole or infinity
        return np.nan
    a = fabs(r)
    # cot(pi r), whose argument is rounded where it is small
    tangent = tan_f64(_PI * select(a > _QUARTER, _HALF - a, a))
    cotangent = select(a > _QUARTER, tangent, 1.0 / tangent)
    return _psi(1.0 - x, _NO) - _PI * select(r < 0.0, -cotangent, cotangent)


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
    """Hurwitz zeta function for ``s > 1``; SciPy does not export its own."""
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


@device
def gamma_f32(x):
    """Gamma function."""
    return np.float32(_gamma(np.float64(x), _NO))


@device
def zeta_f32(s, x):
    """Hurwitz zeta function."""
    return np.float32(zeta_f64(np.float64(s), np.float64(x)))


@device
def zeta_s_f32(s, x):
    """Derivative of Hurwitz's zeta function with respect to ``s``."""
    return np.float32(zeta_s_f64(np.float64(s), np.float64(x)))


@device
def zeta_ss_f32(s, x):
    """Second derivative of Hurwitz's zeta function with respect to ``s``."""
    return np.float32(zeta_ss_f64(np.float64(s), np.float64(x)))
