"""Distributions of positive numbers and of the family of gamma and beta."""

import math
from typing import Any

import numpy as np

from numgrad.operations.error_gamma_logistic import digamma, erf, erfc, erfinv, gamma, gammaln, ndtr
from numgrad.operations.special_functions import distributions
from numgrad.operations.special_functions.distributions import erfcinv, log_ndtr, ndtri
from numgrad.operations.special_functions.gamma import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from numgrad.operations.special_functions.scipy_elementary import boxcox, boxcox1p, xlog1py, xlogy
from numgrad.stats.distribution import Continuous, above, formulas
from numgrad.stats.line import EULER, LOG_ROOT_TWO_PI, log1p_square
from numgrad.stats.numerics import log_beta_below, log_gamma_above, log_gamma_below, shares


class Positive(Continuous):
    """A family on the positive half-line."""

    def _support(self, *shapes: Any, **_: Any) -> tuple[Any, Any]:
        return 0.0, math.inf


@formulas(
    logpdf=lambda y: -y,
    cdf=lambda y: -np.expm1(-y),
    sf=lambda y: np.exp(-y),
    logsf=lambda y: -y,
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
    sample=lambda rng, size: rng.standard_exponential(size),
    mean=lambda: 1.0,
    var=lambda: 1.0,
    entropy=lambda: 1.0,
)
class Exponential(Positive):
    """Exponential distribution."""


@formulas(
    ppf=lambda q, s: np.exp(s * ndtri(q)),
    isf=lambda q, s: np.exp(-s * ndtri(q)),
    sample=lambda rng, size, s: np.exp(s * rng.standard_normal(size)),
    mean=lambda s: np.exp(0.5 * (s * s)),
    var=lambda s: np.expm1(s * s) * np.exp(s * s),
    entropy=lambda s: 0.5 + LOG_ROOT_TWO_PI + np.log(s),
)
class LogNormal(Positive):
    """Distribution of the exponential of a normal number of standard deviation ``s``."""

    shapes = ("s",)

    def _standard(self, y, s):
        """The normal number, and whether ``y`` is 0, where it has none."""
        zero = y == 0
        return zero, np.log(np.where(zero, 1.0, y)) / s

    def _logpdf(self, y, s):
        zero, z = self._standard(y, s)
        return np.where(zero, -math.inf, -0.5 * (z * z) - LOG_ROOT_TWO_PI - np.log(s) - z * s)

    def _cdf(self, y, s):
        zero, z = self._standard(y, s)
        return np.where(zero, 0.0, ndtr(z))

    def _sf(self, y, s):
        zero, z = self._standard(y, s)
        return np.where(zero, 1.0, ndtr(-z))

    def _logcdf(self, y, s):
        zero, z = self._standard(y, s)
        return np.where(zero, -math.inf, log_ndtr(z))

    def _logsf(self, y, s):
        zero, z = self._standard(y, s)
        return np.where(zero, 0.0, log_ndtr(-z))


@formulas(
    powers=lambda y, c: c * np.power(y, c - 1) * np.exp(-np.power(y, c)),
    ppf=lambda q, c: np.power(-np.log1p(-q), 1 / c),
    isf=lambda q, c: np.power(-np.log(q), 1 / c),
    sample=lambda rng, size, c: rng.weibull(c, size),
    mean=lambda c: gamma(1 + 1 / c),
    var=lambda c: gamma(1 + 2 / c) - gamma(1 + 1 / c) ** 2,
    entropy=lambda c: -EULER / c - np.log(c) + EULER + 1,
)
class Weibull(Positive):
    """Weibull distribution of minima."""

    shapes = ("c",)

    def _power(self, y, c):
        zero = y == 0
        return np.where(zero, 0.0, np.power(np.where(zero, 1.0, y), c))

    def _logpdf(self, y, c):
        return np.log(c) + xlogy(c - 1, y) - self._power(y, c)

    def _cdf(self, y, c):
        return -np.expm1(-self._power(y, c))

    def _sf(self, y, c):
        return np.exp(-self._power(y, c))

    def _logsf(self, y, c):
        return -self._power(y, c)


@formulas(
    support=lambda b: (1.0, math.inf),
    logpdf=lambda y, b: np.log(b) - (b + 1) * np.log(y),
    cdf=lambda y, b: -np.expm1(-b * np.log(y)),
    sf=lambda y, b: np.power(y, -b),
    logsf=lambda y, b: -b * np.log(y),
    ppf=lambda q, b: np.power(1 - q, -1 / b),
    isf=lambda q, b: np.power(q, -1 / b),
    sample=lambda rng, size, b: rng.pareto(b, size) + 1,
    mean=lambda b: above(1, b, lambda b: b / (b - 1)),
    var=lambda b: above(2, b, lambda b: b / ((b - 1) * (b - 1) * (b - 2))),
    entropy=lambda b: 1 + 1 / b - np.log(b),
)
class Pareto(Continuous):
    """Pareto distribution, from 1 on."""

    shapes = ("b",)
    inside = 2.0


@formulas(
    logpdf=lambda y: 0.5 * math.log(2 / math.pi) - 0.5 * (y * y),
    cdf=lambda y: erf(y * math.sqrt(0.5)),
    sf=lambda y: erfc(y * math.sqrt(0.5)),
    logsf=lambda y: math.log(2) + log_ndtr(-y),
    ppf=lambda q: math.sqrt(2) * erfinv(q),
    isf=lambda q: math.sqrt(2) * erfcinv(q),
    sample=lambda rng, size: np.abs(rng.standard_normal(size)),
    mean=lambda: math.sqrt(2 / math.pi),
    var=lambda: 1 - 2 / math.pi,
    entropy=lambda: 0.5 * math.log(math.pi / 2) + 0.5,
)
class HalfNormal(Positive):
    """Distribution of the absolute value of a normal number."""


@formulas(
    logpdf=lambda y: np.log(y) - 0.5 * (y * y),
    powers=lambda y: y * np.exp(-0.5 * (y * y)),
    cdf=lambda y: -np.expm1(-0.5 * (y * y)),
    sf=lambda y: np.exp(-0.5 * (y * y)),
    logsf=lambda y: -0.5 * (y * y),
    ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2 * np.log(q)),
    sample=lambda rng, size: rng.rayleigh(size=size),
    mean=lambda: math.sqrt(math.pi / 2),
    var=lambda: 2 - math.pi / 2,
    entropy=lambda: EULER / 2 + 1 - 0.5 * math.log(2),
)
class Rayleigh(Positive):
    """Rayleigh distribution."""


@formulas(
    logpdf=lambda y: math.log(2 / math.pi) - log1p_square(y),
    cdf=lambda y: np.arctan2(y, 1.0) * (2 / math.pi),
    sf=lambda y: np.arctan2(1.0, y) * (2 / math.pi),
    ppf=lambda q: np.tan(0.5 * math.pi * q),
    isf=lambda q: 1 / np.tan(0.5 * math.pi * q),
    mean=lambda: math.inf,
    var=lambda: math.inf,
    entropy=lambda: math.log(2 * math.pi),
)
class HalfCauchy(Positive):
    """Distribution of the absolute value of a Cauchy number."""


@formulas(
    valid=lambda c: [c == c],
    cdf=lambda y, c: -np.expm1(-_log_power(y, c)),
    sf=lambda y, c: np.exp(-_log_power(y, c)),
    logsf=lambda y, c: -_log_power(y, c),
    ppf=lambda q, c: boxcox1p(q / (1 - q), c),
    isf=lambda q, c: boxcox(1 / q, c),
    entropy=lambda c: 1 + c,
)
class GeneralizedPareto(Continuous):
    """Generalized Pareto distribution of excesses; of negative ``c`` it ends at ``-1 / c``."""

    shapes = ("c",)

    def _support(self, *shapes: Any, **_: Any) -> tuple[Any, Any]:
        (c,) = shapes
        return 0.0, np.where(c < 0, -1 / np.where(c < 0, c, -1.0), math.inf)

    def _logpdf(self, y, c):
        log = _log_power(y, c)
        uniform = (c == -1) & np.isinf(log)  # whose density is 1 at the end, too
        return -(1 + c) * np.where(uniform, 0.0, log)

    def _mean(self, c):
        finite = c < 1
        return np.where(finite, 1 / (1 - np.where(finite, c, 0.0)), math.inf)

    def _var(self, c):
        finite = c < 0.5
        c = np.where(finite, c, 0.0)
        return np.where(finite, 1 / ((1 - c) * (1 - c) * (1 - 2 * c)), math.inf)


def _log_power(y: Any, c: Any) -> Any:
    """``log1p(c * y) / c``, by its series where ``c * y`` is small."""
    endless = np.isinf(y)
    y = np.where(endless, 0.0, y)
    u = c * y
    near = np.abs(u) < 1e-3
    w = np.where(near, u, 0.0)
    series = 1 - w * (1 / 2 - w * (1 / 3 - w * (1 / 4 - w * (1 / 5 - w * (1 / 6 - w / 7)))))
    far = np.log1p(np.where(near, 1.0, u)) / np.where(near, 1.0, c)
    return np.where(endless, math.inf, np.where(near, y * series, far))


halfcauchy, genpareto = HalfCauchy("halfcauchy"), GeneralizedPareto("genpareto")
expon, lognorm, weibull_min = Exponential("expon"), LogNormal("lognorm"), Weibull("weibull_min")
pareto, halfnorm, rayleigh = Pareto("pareto"), HalfNormal("halfnorm"), Rayleigh("rayleigh")


@formulas(
    logpdf=lambda y, a: xlogy(a - 1, y) - y - gammaln(a),
    powers=lambda y, a: np.power(y, a - 1) * np.exp(-y - gammaln(a)),
    cdf=lambda y, a: gammainc(a, y),
    sf=lambda y, a: gammaincc(a, y),
    far_below=lambda tiny, y, a: log_gamma_below(a, np.where(tiny, y, 0.5 * a)),
    far_above=lambda tiny, y, a: log_gamma_above(a, np.where(tiny, y, 2 * a + 1)),
    ppf=lambda q, a: gammaincinv(a, q),
    isf=lambda q, a: gammainccinv(a, q),
    sample=lambda rng, size, a: rng.standard_gamma(a, size),
    mean=lambda a: a,
    var=lambda a: a,
    entropy=lambda a: a + gammaln(a) + (1 - a) * digamma(a),
)
class Gamma(Positive):
    """Gamma distribution of shape ``a``."""

    shapes = ("a",)


@formulas(
    support=lambda a, b: (0.0, 1.0),
    logpdf=lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b),
    powers=lambda y, a, b: np.power(y, a - 1) * np.power(1 - y, b - 1) * np.exp(-betaln(a, b)),
    cdf=lambda y, a, b: betainc(a, b, y),
    sf=lambda y, a, b: betaincc(a, b, y),
    ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: betainccinv(a, b, q),
    sample=lambda rng, size, a, b: rng.beta(a, b, size),
    mean=lambda a, b: a / (a + b),
)
class Beta(Continuous):
    """Beta distribution."""

    shapes = ("a", "b")

    def _far_below(self, tiny, y, a, b):
        y = np.where(tiny, y, 1e-3 * a / (a + b))
        return log_beta_below(a, b, y, 1 - y, (np.log(y), np.log1p(-y)))

    def _far_above(self, tiny, y, a, b):
        y = np.where(tiny, y, 1 - 1e-3 * b / (a + b))
        return log_beta_below(b, a, 1 - y, y, (np.log1p(-y), np.log(y)))

    def _var(self, a, b):
        total = a + b
        return a * b / (total * total * (total + 1))

    def _entropy(self, a, b):
        slopes = (a - 1) * digamma(a) + (b - 1) * digamma(b)
        return betaln(a, b) - slopes + (a + b - 2) * digamma(a + b)


@formulas(
    cdf=lambda y, df: distributions.chdtr(df, y),
    sf=lambda y, df: distributions.chdtrc(df, y),
    far_below=lambda tiny, y, df: log_gamma_below(0.5 * df, 0.5 * np.where(tiny, y, 0.5 * df)),
    far_above=lambda tiny, y, df: log_gamma_above(0.5 * df, 0.5 * np.where(tiny, y, 2 * df + 2)),
    ppf=lambda q, df: 2 * gammaincinv(0.5 * df, q),
    isf=lambda q, df: distributions.chdtri(df, q),
    sample=lambda rng, size, df: rng.chisquare(df, size),
    mean=lambda df: df,
    var=lambda df: 2 * df,
)
class ChiSquared(Positive):
    """Chi-squared distribution."""

    shapes = ("df",)

    def _logpdf(self, y, df):
        half = 0.5 * df
        return xlogy(half - 1, y) - 0.5 * y - gammaln(half) - math.log(2) * half

    def _powers(self, y, df):
        half = 0.5 * df
        return np.power(y, half - 1) * np.exp(-0.5 * y - gammaln(half) - math.log(2) * half)

    def _entropy(self, df):
        half = 0.5 * df
        return half + math.log(2) + gammaln(half) + (1 - half) * digamma(half)


@formulas(
    ppf=lambda q, a: 1 / gammainccinv(a, q),
    isf=lambda q, a: 1 / gammaincinv(a, q),
    sample=lambda rng, size, a: 1 / rng.standard_gamma(a, size),
    mean=lambda a: above(1, a, lambda a: 1 / (a - 1)),
    var=lambda a: above(2, a, lambda a: 1 / ((a - 1) * (a - 1) * (a - 2))),
    entropy=lambda a: a + gammaln(a) - (1 + a) * digamma(a),
)
class InverseGamma(Positive):
    """Distribution of the reciprocal of a gamma number of shape ``a``."""

    shapes = ("a",)

    def _inverse(self, y, power=1):
        """Where a power of the reciprocal overflows, as where it is 0; the reciprocal elsewhere."""
        zero = y <= float(np.finfo(y.dtype).max) ** (-1 / power)
        return zero, 1 / np.where(zero, 1.0, y)

    def _logpdf(self, y, a):
        zero, inverse = self._inverse(y)
        return np.where(zero, -math.inf, (a + 1) * np.log(inverse) - gammaln(a) - inverse)

    def _pdf(self, y, log_scale, a):
        zero, _ = self._inverse(y, 2)  # the derivative has the square
        log = self._logpdf(np.where(zero, 1.0, y), a) - log_scale
        return np.where(zero, 0.0, np.exp(log))

    def _cdf(self, y, a):
        zero, inverse = self._inverse(y, 2)
        return np.where(zero, 0.0, gammaincc(a, inverse))

    def _sf(self, y, a):
        zero, inverse = self._inverse(y, 2)
        return np.where(zero, 1.0, gammainc(a, inverse))

    def _far_below(self, tiny, y, a):
        zero, inverse = self._inverse(y)
        tail = log_gamma_above(a, np.where(tiny & ~zero, inverse, 2 * a + 1))
        return np.where(zero, -math.inf, tail)

    def _far_above(self, tiny, y, a):
        return log_gamma_below(a, np.where(tiny, self._inverse(y)[1], 0.5 * a))


@formulas(
    cdf=lambda y, dfn, dfd: distributions.fdtr(dfn, dfd, y),
    sf=lambda y, dfn, dfd: distributions.fdtrc(dfn, dfd, y),
    ppf=lambda q, dfn, dfd: distributions.fdtri(dfn, dfd, q),
    mean=lambda dfn, dfd: above(2, dfd, lambda d: d / (d - 2)),
)
class FisherF(Positive):
    """Fisher's F distribution."""

    shapes = ("dfn", "dfd")

    def _logpdf(self, y, dfn, dfd):
        n, d = 0.5 * dfn, 0.5 * dfd
        first = d * np.log(dfd) + n * np.log(dfn) + xlogy(n - 1, y)
        return first - (n + d) * np.log(dfd + dfn * y) - betaln(n, d)

    def _powers(self, y, dfn, dfd):
        n, d, ratio = 0.5 * dfn, 0.5 * dfd, dfn / dfd
        fall = np.power(ratio, n) * np.power(1 + ratio * y, -(n + d))
        return np.power(y, n - 1) * fall * np.exp(-betaln(n, d))

    def _far_below(self, tiny, y, dfn, dfd):
        # the share is within a thousandth of its mean's
        share, rest, *logs = shares(np.where(tiny, y * dfn / dfd, 1e-3 * dfn / (dfn + dfd)))
        return log_beta_below(0.5 * dfn, 0.5 * dfd, share, rest, logs)

    def _far_above(self, tiny, y, dfn, dfd):
        share, rest, *logs = shares(np.where(tiny, y * dfn / dfd, 1e3 * (dfn + dfd) / dfd))
        return log_beta_below(0.5 * dfd, 0.5 * dfn, rest, share, logs[::-1])

    def _sample(self, rng, size, dfn, dfd):
        return (rng.chisquare(dfn, size) / dfn) / (rng.chisquare(dfd, size) / dfd)

    def _var(self, dfn, dfd):
        return above(
            4, dfd, lambda d: 2 * (d * d) * (dfn + d - 2) / (dfn * ((d - 2) * (d - 2)) * (d - 4))
        )

    def _entropy(self, dfn, dfd):
        n, d = 0.5 * dfn, 0.5 * dfd
        slopes = (1 - n) * digamma(n) - (1 + d) * digamma(d) + (n + d) * digamma(n + d)
        return np.log(dfd) - np.log(dfn) + betaln(n, d) + slopes


gamma_, beta, chi2 = Gamma("gamma"), Beta("beta"), ChiSquared("chi2")
invgamma, f = InverseGamma("invgamma"), FisherF("f")
