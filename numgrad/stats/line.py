"""Distributions on the line or an interval."""

import math
from typing import Any

import numpy as np

from numgrad.operations.error_gamma_logistic import (
    digamma,
    log_sigmoid,
    logistic as logistic_function,
    ndtr,
)
from numgrad.operations.special_functions import distributions
from numgrad.operations.special_functions.bessel import i0, i0e, i1, i1e
from numgrad.operations.special_functions.distributions import log_ndtr, ndtri, ndtri_exp, owens_t
from numgrad.operations.special_functions.gamma import betaln
from numgrad.stats.distribution import Continuous, above, formulas
from numgrad.stats.numerics import angle_variance, log_beta_below, over_normals, shares, truncated

LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015328606


def log1p_square(u: Any) -> Any:
    """``log(1 + u * u)``, where the square overflows too."""
    large = np.abs(u) > 1e9
    near = np.where(large, 1.0, u)
    return np.where(large, 2 * np.log(np.abs(np.where(large, u, 1.0))), np.log1p(near * near))


class Symmetric(Continuous):
    """A family that is symmetric about its location."""

    def _sf(self, *arguments: Any, **_: Any) -> Any:
        y, *shapes = arguments
        return self._cdf(-y, *shapes)

    def _logsf(self, *arguments: Any, **_: Any) -> Any:
        y, *shapes = arguments
        return self._logcdf(-y, *shapes)

    def _isf(self, *arguments: Any, **_: Any) -> Any:
        return -self._ppf(*arguments)


@formulas(
    logpdf=lambda y: -0.5 * (y * y) - LOG_ROOT_TWO_PI,
    cdf=ndtr,
    logcdf=log_ndtr,
    ppf=ndtri,
    sample=lambda rng, size: rng.standard_normal(size),
    mean=lambda: 0.0,
    var=lambda: 1.0,
    entropy=lambda: 0.5 + LOG_ROOT_TWO_PI,
)
class Normal(Symmetric):
    """Normal distribution."""


@formulas(
    cdf=lambda y, df: distributions.stdtr(df, y),
    ppf=lambda q, df: distributions.stdtrit(df, q),
    sample=lambda rng, size, df: rng.standard_t(df, size),
    mean=lambda df: np.where(df > 1, 0.0, math.inf),
)
class StudentT(Symmetric):
    """Student's t distribution; with endless degrees of freedom the normal one."""

    shapes = ("df",)

    def _logpdf(self, y, df):
        endless = np.isinf(df)
        normal = -0.5 * (y * y) - LOG_ROOT_TWO_PI
        df = np.where(endless, 1.0, df)
        tail = 0.5 * (df + 1) * log1p_square(y / np.sqrt(df))
        return np.where(endless, normal, -betaln(0.5, 0.5 * df) - 0.5 * np.log(df) - tail)

    def _far_below(self, tiny, y, df):
        endless, y = np.isinf(df), np.where(tiny, y, -40.0)
        df = np.where(endless, 1.0, df)
        root = np.sqrt(df)
        square, rest, log_square, log_rest = shares(np.where(tiny & ~endless, -y / root, 1e3), 2)
        tail = log_beta_below(0.5 * df, 0.5, rest, square, (log_rest, log_square))
        return np.where(endless, log_ndtr(y), tail - math.log(2))

    def _var(self, df):
        return np.where(df > 1, above(2, df, lambda df: df / (df - 2)), math.nan)

    def _entropy(self, df):
        large = df > 100
        few, r = np.where(large, 1.0, df), 1 / np.where(large, df, 100.0)
        slopes = digamma(0.5 * (few + 1)) - digamma(0.5 * few)
        result = 0.5 * (few + 1) * slopes + 0.5 * np.log(few) + betaln(0.5, 0.5 * few)
        # the series in which digits do not cancel, of which less than 1e-14 is left
        terms = r * (1 + r * (1 / 4 - r * (1 / 6 + r * (1 / 8 - r * (3 / 10 + r / 4)))))
        return np.where(large, 0.5 + LOG_ROOT_TWO_PI + terms, result)


@formulas(
    logpdf=lambda y: log_sigmoid(y) + log_sigmoid(-y),
    cdf=logistic_function,
    logcdf=log_sigmoid,
    ppf=lambda q: np.log(q) - np.log1p(-q),
    sample=lambda rng, size: rng.logistic(size=size),
    mean=lambda: 0.0,
    var=lambda: math.pi**2 / 3,
    entropy=lambda: 2.0,
)
class Logistic(Symmetric):
    """Logistic distribution."""


@formulas(
    logpdf=lambda y: -math.log(2) - np.abs(y),
    sample=lambda rng, size: rng.laplace(size=size),
    mean=lambda: 0.0,
    var=lambda: 2.0,
    entropy=lambda: math.log(2) + 1,
)
class Laplace(Symmetric):
    """Laplace distribution."""

    def _cdf(self, y):
        # not by the absolute value, whose derivative at 0 is none of the distribution function's
        right = y > 0
        tail = 0.5 * np.exp(np.where(right, -y, y))
        return np.where(right, 1 - tail, tail)

    def _logcdf(self, y):
        right = y > 0
        tail = np.where(right, -y, y) - math.log(2)
        return np.where(right, np.log1p(-np.exp(tail)), tail)

    def _ppf(self, q):
        low = q < 0.5
        tail = np.log(2 * np.where(low, q, 1 - q))
        return np.where(low, tail, -tail)


@formulas(
    logpdf=lambda y: -math.log(math.pi) - log1p_square(y),
    cdf=lambda y: np.arctan2(1.0, -y) / math.pi,
    mean=lambda: math.nan,
    var=lambda: math.nan,
    entropy=lambda: math.log(4 * math.pi),
)
class Cauchy(Symmetric):
    """Cauchy distribution."""

    def _ppf(self, q):
        upper, middle = q > 0.5, np.abs(q - 0.5) < 0.25
        near = np.tan(math.pi * (np.where(middle, q, 0.5) - 0.5))
        tail = np.where(upper, 1 - q, q)  # exact where it is used
        far = 1 / np.tan(math.pi * np.where(middle, 0.25, tail))
        return np.where(middle, near, np.where(upper, far, -far))


@formulas(
    logpdf=lambda y: -(y + np.exp(-y)),
    cdf=lambda y: np.exp(-np.exp(-y)),
    sf=lambda y: -np.expm1(-np.exp(-y)),
    logcdf=lambda y: -np.exp(-y),
    far_above=lambda tiny, y: -np.where(tiny, y, 1.0),
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
    sample=lambda rng, size: rng.gumbel(size=size),
    mean=lambda: EULER,
    var=lambda: math.pi**2 / 6,
    entropy=lambda: EULER + 1,
)
class Gumbel(Continuous):
    """Gumbel distribution of maxima."""


@formulas(
    valid=lambda a: [a == a],
    logpdf=lambda y, a: math.log(2) - 0.5 * (y * y) - LOG_ROOT_TWO_PI + log_ndtr(a * y),
    mean=lambda a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a),
    var=lambda a: 1 - (2 / math.pi) * (a * a) / (1 + a * a),
)
class SkewNormal(Continuous):
    """Skew normal distribution.

    Where probabilities underflow, or are lost in the difference that they are, gradients of their
    logarithms are NaN.
    """

    shapes = ("a",)

    def _cdf(self, y, a):
        result = ndtr(y) - 2 * owens_t(y, a)
        return np.where(result < 0, 0.0, result)

    def _sf(self, y, a):
        result = ndtr(-y) + 2 * owens_t(y, a)
        return np.where(result < 0, 0.0, result)

    def _sample(self, rng, size, a):
        half_normal = np.abs(rng.standard_normal(size))
        return (a * half_normal + rng.standard_normal(size)) / np.sqrt(1 + a * a)

    def _entropy(self, a):
        # both factors of the density together fall off as that of a normal number v
        each, scale = np.expand_dims(a, -1), np.sqrt(1 + np.expand_dims(a, -1) ** 2)

        def integrand(v):
            y = v / scale
            log = log_ndtr(each * y)
            return np.exp(log - 0.5 * (y * y) - LOG_ROOT_TWO_PI) * log / scale

        mean = 2 * over_normals(integrand, a.dtype)
        return 0.5 + LOG_ROOT_TWO_PI - math.log(2) - mean


def _scaled_i0(kappa: Any) -> tuple[Any, Any]:
    """Logarithm of ``i0(kappa) * exp(-kappa)`` from 0 on, and ``i1(kappa) / i0(kappa)``.

    Scaled functions have a kink at 0, which these have not, so they are for large numbers only.
    """
    large = kappa > 1
    near, far = np.where(large, 1.0, kappa), np.where(large, kappa, 1.0)
    log = np.where(large, np.log(i0e(far)), np.log(i0(near)) - near)
    return log, np.where(large, i1e(far) / i0e(far), i1(near) / i0(near))


@formulas(
    valid=lambda kappa: [kappa >= 0],
    sample=lambda rng, size, kappa: rng.vonmises(0.0, kappa, size),
    mean=lambda kappa: 0.0 * kappa,
    var=angle_variance,
)
class VonMises(Symmetric):
    """Von Mises distribution of angles; its distribution function grows by 1 with each turn.

    Probabilities and quantiles are right to about 14 digits, also where SciPy approximates.
    """

    shapes = ("kappa",)
    reach = math.pi
    not_fitted = ("scale",)

    def _logpdf(self, y, kappa):
        # cos(y) - 1 without cancellation
        half = np.sin(0.5 * y)
        return -2 * kappa * (half * half) - math.log(2 * math.pi) - _scaled_i0(kappa)[0]

    def _cdf(self, y, kappa):
        endless = np.isinf(y)
        turns, angle = distributions.turned(np.where(endless, 0.0, y))
        left = angle < 0
        tail = distributions.angle_tail(
            kappa, np.where(left, -angle, angle)
        )  # not abs, which has a kink
        result = turns + np.where(left, tail, 1 - tail)
        return np.where(endless & (y > 0), 1.0, np.where(endless, 0.0, result))

    def _ppf(self, q, kappa):
        low = q < 0.5
        result = distributions.angle_exceeded(kappa, np.where(low, q, 1 - q))
        return np.where(low, -result, result)

    def _entropy(self, kappa):
        log, ratio = _scaled_i0(kappa)
        return -kappa * ratio + math.log(2 * math.pi) + log + kappa


@formulas(
    support=lambda: (0.0, 1.0),
    logpdf=lambda y: 0.0 * y,
    cdf=lambda y: y,
    sf=lambda y: 1 - y,
    ppf=lambda q: q,
    mean=lambda: 0.5,
    var=lambda: 1 / 12,
    entropy=lambda: 0.0,
)
class Uniform(Continuous):
    """Uniform distribution over ``loc`` to ``loc + scale``."""


_TILT = (0, 1 / 2, 1 / 24, 0, -1 / 2880, 0, 1 / 181440, 0, -1 / 9676800, 0, 1 / 479001600)
"""Coefficients of Taylor's series of ``log_tilt``."""


def log_tilt(t: Any, order: int = 0) -> Any:
    """Derivative of an order up to 2 of ``log((exp(t) - 1) / t)``; its series where ``t`` is small.

    Of densities proportional to ``exp(t x)`` on [0, 1] it is the logarithm of the normalizer, the
    mean and the variance.
    """
    near = np.abs(t) < 0.3
    few, many = np.where(near, t, 0.0), np.where(near, 1.0, t)
    series = 0.0
    for coefficient in np.polynomial.polynomial.polyder(_TILT, order)[::-1].tolist():
        series = series * few + coefficient
    if order == 0:
        size = np.abs(many)
        formula = 0.5 * (many + size) + np.log(-np.expm1(-size) / size)
    elif order == 1:
        formula = 0.5 * (1 + 1 / np.tanh(0.5 * many)) - 1 / many
    else:
        formula = 1 / many**2 - 0.25 * (1 / np.tanh(0.5 * many) ** 2 - 1)
    return np.where(near, series, formula)


@formulas(
    valid=lambda logits: [logits == logits],
    support=lambda logits: (0.0, 1.0),
    logpdf=lambda y, logits: logits * y - log_tilt(logits),
    cdf=lambda y, logits: y * np.exp(log_tilt(logits * y) - log_tilt(logits)),
    mean=lambda logits: log_tilt(logits, 1),
    var=lambda logits: log_tilt(logits, 2),
    entropy=lambda logits: log_tilt(logits) - logits * log_tilt(logits, 1),
)
class ContinuousBernoulli(Continuous):
    """Continuous Bernoulli distribution: densities proportional to ``exp(logits * x)`` on [0, 1].

    It is the likelihood of grey values that a Bernoulli distribution is of black and white ones
    (Loaiza-Ganem, Cunningham, "The continuous Bernoulli", 2019).
    """

    shapes = ("logits",)

    def _sf(self, y, logits):
        return self._cdf(1 - y, -logits)

    def _ppf(self, q, logits):
        near, rising = np.abs(logits) < np.finfo(logits.dtype).eps ** 0.25, logits > 0
        p = np.where(rising, 1 - q, q)
        series = q + q * (1 - q) * (0.5 * logits + logits**2 * (1 - 2 * q) / 6)
        falling = -np.abs(np.where(near, 1.0, logits))
        formula = np.log1p(p * np.expm1(falling)) / falling
        return np.where(near, series, np.where(rising, 1 - formula, formula))


def _log_interval(low: Any, high: Any) -> Any:
    """Logarithm of the probability of an interval in the left half."""
    whole = np.isinf(low)
    log = log_ndtr(high)
    ratio = log_ndtr(np.where(whole, high - 1, low)) - log
    return np.where(whole, log, log + np.log(-np.expm1(ratio)))


def log_mass(a: Any, b: Any) -> Any:
    """Logarithm of the probability of a standard normal number between ``a`` and ``b``."""
    right, left = a > 0, b <= 0
    # the interval in the left half, where the tails are accurate
    tail = right | left
    low = np.where(right, -b, np.where(left, a, -2.0))
    high = np.where(right, -a, np.where(left, b, -1.0))
    outer = _log_interval(low, high)
    around = np.log1p(-ndtr(np.where(tail, -1.0, a)) - ndtr(-np.where(tail, 1.0, b)))
    return np.where(tail, outer, around)


def _accurate(log: Any, other: Any) -> Any:
    """Logarithm of a probability; near 0 by that of the complement."""
    near = log > -0.1
    return np.where(near, np.log1p(-np.exp(np.where(near, other, -1.0))), log)


@formulas(
    valid=lambda a, b: [a < b],
    stand_in=lambda: (-1.0, 1.0),
    support=lambda a, b: (a, b),
    inner=lambda low, high: np.where(low > 0, low, np.where(high < 0, high, 0.0)),
    logpdf=lambda y, a, b: -0.5 * (y * y) - LOG_ROOT_TWO_PI - log_mass(a, b),
)
class TruncatedNormal(Continuous):
    """Normal distribution restricted to ``a`` to ``b``, in units of the scale around ``loc``."""

    shapes = ("a", "b")

    def _parts(self, y, a, b):
        """Logarithms of the shares of what is below and above, of which one may be near 0."""
        first, last, mass = y == a, y == b, log_mass(a, b)
        below = log_mass(a, np.where(first, b, y)) - mass
        above = log_mass(np.where(last, a, y), b) - mass
        return (np.where(first, -math.inf, below), np.where(last, -math.inf, above))

    def _logcdf(self, y, a, b):
        below, above = self._parts(y, a, b)
        return _accurate(below, above)

    def _logsf(self, y, a, b):
        below, above = self._parts(y, a, b)
        return _accurate(above, below)

    def _cdf(self, y, a, b):
        return np.exp(self._logcdf(y, a, b))

    def _sf(self, y, a, b):
        return np.exp(self._logsf(y, a, b))

    def _mean(self, a, b):
        low, distance, chance, _ = truncated(a, b)
        return low + np.sum(chance * distance, axis=-1)

    def _var(self, a, b):
        _, distance, chance, _ = truncated(a, b)
        deviation = distance - np.sum(chance * distance, axis=-1, keepdims=True)
        return np.sum(chance * (deviation * deviation), axis=-1)

    def _entropy(self, a, b):
        *_, chance, log = truncated(a, b)
        return -np.sum(chance * log, axis=-1)

    def _ppf(self, q, a, b):
        mass, left = log_mass(a, b), a < 0
        end = np.where(left, a, -b)
        endless = np.isinf(end)
        end = np.where(endless, -math.inf, log_ndtr(np.where(endless, 0.0, end)))
        log_share = np.where(left, np.log(q), np.log1p(-q)) + mass
        result = ndtri_exp(np.logaddexp(end, log_share))
        return np.where(left, result, -result)

    def _isf(self, q, a, b):
        return -self._ppf(q, -b, -a)


norm, t, logistic, laplace = Normal("norm"), StudentT("t"), Logistic("logistic"), Laplace("laplace")
cauchy, gumbel_r, uniform = Cauchy("cauchy"), Gumbel("gumbel_r"), Uniform("uniform")
skewnorm, vonmises = SkewNormal("skewnorm"), VonMises("vonmises")
truncnorm = TruncatedNormal("truncnorm")
continuous_bernoulli = ContinuousBernoulli("continuous_bernoulli")
