"""Derivatives with respect to parameters for which no closed formula holds everywhere.

Note [Differences in a parameter]
---------------------------------
They are central differences of order ten, the linear combination of differences over 1, 2, 3, 4 and
5 steps from which Richardson's extrapolation has removed the terms up to the tenth power of the
step. The functions are SciPy's, right to some units of the last place, so a step ``h`` loses that
over ``h``: with ``h = 1 / 32`` two digits. Positive functions are followed by their logarithm,
which is tame where the function decays like a power or an exponential of the parameter; of a
probability and its complement the smaller one is followed. Steps shrink with a parameter that has a
pole at zero, and grow with the width of the distribution where that is large. Compared with mpmath,
first derivatives are right to about eleven digits. Where the function is below ``1e-250`` its
derivative counts as 0.

Second derivatives of probabilities are ``f (l'' + l' l')`` of their logarithm ``l``, whose second
derivative is a combination of the same differences: in far tails, where ``f`` changes by powers of
ten over a step, it is ``l`` that is tame. They are right to about eleven digits too, against the
larger of the two terms. With a small parameter the probability's complement is about proportional
to it, so what is left of its curvature would be rounding over the square of a small step; there the
parameter is raised by one, as the recurrence says, whose other term has closed derivatives.

Note [Series of incomplete functions]
-------------------------------------
``gammainc(a, x)`` is the sum over n of ``x**(a + n) exp(-x) / gamma(a + n + 1)``, ``betainc(a, b,
x)`` that of ``x**(a + n) (1 - x)**b gamma(a + b + n) / (gamma(a + n + 1) gamma(b))`` (DLMF 8.7.1,
8.17.8). Terms are positive, and so each has a logarithm whose derivative follows from the one
before it by the recurrence of digamma: first derivatives cost a sum of some tens of terms, a
thirtieth of eleven values of SciPy's. Where that lost more than four digits to cancellation, in far
tails, or does not converge soon, differences are taken.
"""

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.device import DeviceFunction, outlined
from numgrad.codegen.intrinsics import fabs, select, sqrt
from numgrad.kernels.scipy_functions import of_floats
from numgrad.kernels.vmath import library as _library  # noqa: F401 (what is external there)
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.gamma import digamma_slow_f64, gammaln_slow_f64
from numgrad.kernels.vmath.logarithm import log1p_f64, log_f64
from numgrad.kernels.vmath.precision import through_float64
from numgrad.kernels.zeta import zeta_f64

WEIGHTS = (5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260)
_LEAST = 1e-250
STEP = 0.03125
_NO = np.int32(0)


_OUTWARD = (8.0, -28.0, 56.0, -70.0, 56.0, -28.0, 8.0, -1.0)
"""Weights by which eight numbers at distances 1 to 8 give the one at 0."""
_NEAR = 1 / 256
_BENDING = (5 / 3, -5 / 21, 5 / 126, -5 / 1008, 1 / 3150)
_LITTLE = 0.5


@outlined
def _width(a):
    """Step in a shape parameter of a distribution."""
    return select(a < 4.0, a * STEP, sqrt(fabs(a)) * 0.0625)


@outlined
def _share(a):
    """Step in a positive number that the function has a scale of its own in."""
    return a * STEP


@outlined
def _constant(v):
    """Step in an order."""
    return STEP


def difference(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The derivative of a function of three numbers with respect to the first."""

    @outlined
    def slope(p, x, y):
        h = step(p)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += WEIGHTS[k] * (f(p + t, x, y) - f(p - t, x, y))
        return total / h

    return slope


def log_slope(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The derivative of the logarithm of a positive function with respect to the first number."""

    @outlined
    def slope(p, x, y):
        h = step(p)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += WEIGHTS[k] * log_f64(f(p + t, x, y) / f(p - t, x, y))
        return total / h

    return slope


def log_difference(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The derivative of a positive function, by its logarithm."""
    of_log = log_slope(f, step)

    @outlined
    def slope(p, x, y):
        value = f(p, x, y)
        if value < _LEAST:
            return 0.0
        return value * of_log(p, x, y)

    return slope


def log_bend(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The second derivative of a positive function, by its logarithm."""
    slope = log_slope(f, step)

    @outlined
    def bend(p, x, y):
        value = f(p, x, y)
        if value < _LEAST:
            return 0.0
        h = step(p)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += _BENDING[k] * (
                log_f64(f(p + t, x, y) / value) + log_f64(f(p - t, x, y) / value)
            )
        first = slope(p, x, y)
        return value * (total / (h * h) + first * first)

    return bend


def log_mixed(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The second derivative of a positive function in its first two numbers, by its logarithm."""
    by_first = log_slope(f, step)

    @outlined
    def turned(y, p, x):
        return f(p, y, x)

    by_second = log_slope(turned, step)

    @outlined
    def mixed(p, y, x):
        value = f(p, y, x)
        if value < _LEAST:
            return 0.0
        h = step(y)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += WEIGHTS[k] * (by_first(p, y + t, x) - by_first(p, y - t, x))
        return value * (total / h + by_first(p, y, x) * by_second(y, p, x))

    return mixed


def of_smaller(
    f: DeviceFunction,
    complement: DeviceFunction,
    of_itself: DeviceFunction,
    of_other: DeviceFunction,
) -> DeviceFunction:
    """A derivative of a probability: its own, or that of its complement where this is smaller."""

    @outlined
    def slope(p, x, y):
        if f(p, x, y) > complement(p, x, y):
            return -of_other(p, x, y)
        return of_itself(p, x, y)

    return slope


def probability_derivatives(
    f: DeviceFunction, complement: DeviceFunction, step: DeviceFunction, term: DeviceFunction
) -> tuple[DeviceFunction, DeviceFunction]:
    """First and second derivative of a probability, of which the complement is known as well.

    ``term`` is the second derivative of what ``f`` at a parameter has more than at one above it.
    """
    first = of_smaller(f, complement, log_difference(f, step), log_difference(complement, step))
    bend = of_smaller(f, complement, log_bend(f, step), log_bend(complement, step))

    @outlined
    def from_end(p, x, y):
        if p == 0.0:  # from where one of both grows in proportion to the parameter
            total = 0.0
            direct = f(_NEAR, x, y) < complement(_NEAR, x, y)
            for k in range(8):
                t = (k + 1) * _NEAR
                if direct:
                    total += _OUTWARD[k] * (f(t, x, y) / t)
                else:
                    total -= _OUTWARD[k] * (complement(t, x, y) / t)
            return total
        return first(p, x, y)

    @outlined
    def second(p, x, y):
        if p < _LITTLE:
            return bend(p + 1.0, x, y) + term(p, x, y)
        return bend(p, x, y)

    return from_end, second


# -------------------------------------------------------------------------- incomplete functions

_gammainc, _gammaincc = of_floats("gammainc", 2), of_floats("gammaincc", 2)
_betainc = of_floats("betainc", 3)
_betaincc = of_floats("betaincc", 3)


@outlined
def _lower(a, x, y):
    return _gammainc(a, x, _NO)


@outlined
def _upper(a, x, y):
    return _gammaincc(a, x, _NO)


@outlined
def _below(a, b, x):
    return _betainc(a, b, x, _NO)


@outlined
def _above(a, b, x):
    return _betaincc(a, b, x, _NO)


@outlined
def _below_by_b(b, a, x):
    return _betainc(a, b, x, _NO)


@outlined
def _above_by_b(b, a, x):
    return _betaincc(a, b, x, _NO)


@outlined
def _gamma_term(a, x, y):
    """The second derivative of ``x**a exp(-x) / gamma(a + 1)``."""
    if not x > 0.0 or x > 1e4:
        return 0.0 if x >= 0.0 else np.nan
    log = log_f64(x)
    slope = log - digamma_slow_f64(a + 1.0)
    height = exp_f64(a * log - x - gammaln_slow_f64(a + 1.0))
    return height * (slope * slope - zeta_f64(2.0, a + 1.0))


@outlined
def _beta_term(p, q, log_x, log_y):
    """The second derivative in ``p`` of ``x**p y**q / (p beta(p, q))``, by logarithms."""
    height = gammaln_slow_f64(p + q) - gammaln_slow_f64(p + 1.0) - gammaln_slow_f64(q)
    slope = log_x + digamma_slow_f64(p + q) - digamma_slow_f64(p + 1.0)
    bend = zeta_f64(2.0, p + q) - zeta_f64(2.0, p + 1.0)
    return exp_f64(p * log_x + q * log_y + height) * (slope * slope + bend)


@outlined
def _term_by_a(a, b, x):
    if not (x > 0.0 and x < 1.0):
        return 0.0 if x == 0.0 or x == 1.0 else np.nan
    return _beta_term(a, b, log_f64(x), log1p_f64(-x))


@outlined
def _term_by_b(b, a, x):
    if not (x > 0.0 and x < 1.0):
        return 0.0 if x == 0.0 or x == 1.0 else np.nan
    return -_beta_term(b, a, log1p_f64(-x), log_f64(x))


_MOST = 400
"""Terms of a series."""


@outlined
def _gammainc_series(a, x):
    """Derivative of gammainc in ``a``: Note [Series of incomplete functions]. NaN if not there."""
    if not (a > 0.0 and x > 0.0 and x < a + 100.0 and a < 1e4):
        return np.nan
    log = log_f64(x)
    term = exp_f64(a * log - x - gammaln_slow_f64(a + 1.0))
    slope = log - digamma_slow_f64(a + 1.0)
    total, size = term * slope, term * fabs(slope)
    for n in range(1, _MOST):
        term *= x / (a + n)
        slope -= 1.0 / (a + n)
        total += term * slope
        size += term * fabs(slope)
        if x < a + n and term * (1.0 + fabs(slope)) <= 1e-18 * size:
            return total if fabs(total) > 1e-4 * size else np.nan
    return np.nan


@outlined
def _betainc_series(a, b, x, log_x, log_y, by_a):
    """Derivative of betainc in ``a``, or in ``b``, in the same way; ``log_y`` is of ``1 - x``."""
    top = digamma_slow_f64(a + b)
    height = gammaln_slow_f64(a + b) - gammaln_slow_f64(a + 1.0) - gammaln_slow_f64(b)
    term = exp_f64(a * log_x + b * log_y + height)
    slope = top + (log_x - digamma_slow_f64(a + 1.0) if by_a else log_y - digamma_slow_f64(b))
    total, size = term * slope, term * fabs(slope)
    for n in range(1, _MOST):
        ratio = x * (a + b + (n - 1)) / (a + n)
        term *= ratio
        slope += 1.0 / (a + b + (n - 1)) - (1.0 / (a + n) if by_a else 0.0)
        total += term * slope
        size += term * fabs(slope)
        if ratio < 1.0 and term * (1.0 + fabs(slope)) <= 1e-18 * size * (1.0 - ratio):
            return total if fabs(total) > 1e-4 * size else np.nan
    return np.nan


@outlined
def _betainc_slope(a, b, x, y, by_a):
    """The same by the series of ``x``, or of ``y = 1 - x``, of which the terms fall sooner."""
    if not (a > 0.0 and b > 0.0 and x > 0.0 and y > 0.0 and a + b < 1e4):
        return np.nan
    log_x, log_y = log_f64(x), log1p_f64(-x)
    if x * (a + b + 2.0) <= a + 1.0:
        return _betainc_series(a, b, x, log_x, log_y, by_a)
    return -_betainc_series(b, a, y, log_y, log_x, not by_a)


_gammainc_a, _gammainc_aa = probability_derivatives(_lower, _upper, _width, _gamma_term)
_betainc_a, _betainc_aa = probability_derivatives(_below, _above, _width, _term_by_a)
_betainc_b, _betainc_bb = probability_derivatives(_below_by_b, _above_by_b, _width, _term_by_b)
_betainc_ab = of_smaller(_below, _above, log_mixed(_below, _width), log_mixed(_above, _width))


@outlined
def gammainc_a_f64(a, x):
    """Derivative of gammainc with respect to ``a``."""
    series = _gammainc_series(a, x)
    if series == series:
        return series
    return _gammainc_a(a, x, 0.0)


@outlined
def gammainc_aa_f64(a, x):
    """Second derivative of gammainc with respect to ``a``."""
    return _gammainc_aa(a, x, 0.0)


@outlined
def betainc_a_f64(a, b, x):
    """Derivative of betainc with respect to ``a``."""
    series = _betainc_slope(a, b, x, 1.0 - x, True)
    if series == series:
        return series
    return _betainc_a(a, b, x)


@outlined
def betainc_b_f64(a, b, x):
    """Derivative of betainc with respect to ``b``."""
    series = _betainc_slope(a, b, x, 1.0 - x, False)
    if series == series:
        return series
    return _betainc_b(b, a, x)


@outlined
def betainc_aa_f64(a, b, x):
    """Second derivative of betainc with respect to ``a``."""
    return _betainc_aa(a, b, x)


@outlined
def betainc_ab_f64(a, b, x):
    """Second derivative of betainc with respect to ``a`` and ``b``."""
    return _betainc_ab(a, b, x)


@outlined
def betainc_bb_f64(a, b, x):
    """Second derivative of betainc with respect to ``b``."""
    return _betainc_bb(b, a, x)


# ------------------------------------------------------- noncentral chi-squared

_chndtr = of_floats("chndtr", 3)


@outlined
def _by_freedom(df, x, nc):
    return _chndtr(x, df, nc, _NO)


_chndtr_df = difference(_by_freedom, _share)


@outlined
def chndtr_df_f64(x, df, nc):
    """Derivative of chndtr with respect to ``df``."""
    return _chndtr_df(df, x, nc)


# --------------------------------------------------------------------------- Bessel in the order


def _by_order(f: DeviceFunction, tame: bool) -> tuple[DeviceFunction, DeviceFunction]:
    """First and second derivative in the order of a function that has a sign where that is large.

    J and Y keep theirs from where the order exceeds the argument, I and K always.
    """
    plain, by_log = difference(f, _constant), log_difference(f, _constant)
    factor = 0.0 if tame else 1.0

    @outlined
    def slope(v, x, y):
        if x > 0.0 and v > factor * x + 1.0:
            return by_log(v, x, y)
        return plain(v, x, y)

    return slope, difference(slope, _constant)


def _bessel(name: str) -> None:
    """Enter the derivatives of a Bessel function in its order."""
    exported = of_floats(name, 2)
    sign = -1.0 if name[0] == "y" else 1.0

    @outlined
    def f(v, x, y):
        return sign * exported(v, x, _NO)

    for suffix, derivative in zip(("v", "vv"), _by_order(f, name[0] in "ik"), strict=True):
        _enter_order(f"{name}_{suffix}", derivative, sign, name)


def _enter_order(name: str, derivative: DeviceFunction, sign: float, source: str) -> None:
    @outlined
    def f64(v, x):
        return sign * derivative(v, x, 0.0)

    globals()[f"{name}_f64"] = f64
    _SOURCES[name] = (source,)


_SOURCES: dict[str, tuple[str, ...]] = {
    "gammainc_a": ("gammainc", "gammaincc", "gammaln", "digamma"),
    "gammainc_aa": ("gammainc", "gammaincc", "gammaln", "digamma"),
    "chndtr_df": ("chndtr",),
    "betainc_ab": ("betainc", "betaincc"),
    **{
        f"betainc_{p}": ("betainc", "betaincc", "gammaln", "digamma")
        for p in ("a", "b", "aa", "bb")
    },
}
for _name in ("jv", "yv", "iv", "kv", "ive", "kve"):
    _bessel(_name)
for _name, _sources in _SOURCES.items():
    globals()[f"{_name}_f32"] = through_float64(globals()[f"{_name}_f64"])
    library.LIBRARY[_name] = (__name__, _name)
    library.EXTERNALS[_name] = tuple(s for source in _sources for s in library.EXTERNALS[source])
