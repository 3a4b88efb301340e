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
from numgrad.operations.special_functions.scipy_elementary import xlog1py, xlogy
from numgrad.stats.distribution import Continuous, by_powers
from numgrad.stats.line import EULER, LOG_ROOT_TWO_PI
from numgrad.stats.numerics import log_beta_below, log_gamma_above, log_gamma_below, shares


class Positive(Continuous):
    """A family on the positive half-line."""

    def _support(self, *shapes: Any, **_: Any) -> tuple[Any, Any]:
        return 0.0, math.inf


class Exponential(Positive):
    """Exponential distribution."""

    def _logpdf(self, y):
        return -y

    def _cdf(self, y):
        return -np.expm1(-y)

    def _sf(self, y):
        return np.exp(-y)

    def _logsf(self, y):
        return -y

    def _ppf(self, q):
        return -np.log1p(-q)

    def _isf(self, q):
        return -np.log(q)

    def _sample(self, rng, size):
        return rng.standard_exponential(size)

    def _mean(self):
        return 1.0

    def _var(self):
        return 1.0

    def _entropy(self):
        return 1.0


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

    def _ppf(self, q, s):
        return np.exp(s * ndtri(q))

    def _isf(self, q, s):
        return np.exp(-s * ndtri(q))

    def _sample(self, rng, size, s):
        return np.exp(s * rng.standard_normal(size))

    def _mean(self, s):
        return np.exp(0.5 * (s * s))

    def _var(self, s):
        return np.expm1(s * s) * np.exp(s * s)

    def _entropy(self, s):
        return 0.5 + LOG_ROOT_TWO_PI + np.log(s)


class Weibull(Positive):
    """Weibull distribution of minima."""

    shapes = ("c",)

    def _power(self, y, c):
        zero = y == 0
        return np.where(zero, 0.0, np.power(np.where(zero, 1.0, y), c))

    def _logpdf(self, y, c):
        return np.log(c) + xlogy(c - 1, y) - self._power(y, c)

    def _pdf(self, y, log_scale, c):
        return by_powers(
            y == 0, y, 0.5,
            lambda y: self._logpdf(y, c) - log_scale,
            lambda y: c * np.power(y, c - 1) * np.exp(-np.power(y, c) - log_scale),
        )  # fmt: skip

    def _cdf(self, y, c):
        return -np.expm1(-self._power(y, c))

    def _sf(self, y, c):
        return np.exp(-self._power(y, c))

    def _logsf(self, y, c):
        return -self._power(y, c)

    def _ppf(self, q, c):
        return np.power(-np.log1p(-q), 1 / c)

    def _isf(self, q, c):
        return np.power(-np.log(q), 1 / c)

    def _sample(self, rng, size, c):
        return rng.weibull(c, size)

    def _mean(self, c):
        return gamma(1 + 1 / c)

    def _var(self, c):
        return gamma(1 + 2 / c) - gamma(1 + 1 / c) ** 2

    def _entropy(self, c):
        return -EULER / c - np.log(c) + EULER + 1


class Pareto(Continuous):
    """Pareto distribution, from 1 on."""

    shapes = ("b",)
    inside = 2.0

    def _support(self, b):
        return 1.0, math.inf

    def _logpdf(self, y, b):
        return np.log(b) - (b + 1) * np.log(y)

    def _cdf(self, y, b):
        return -np.expm1(-b * np.log(y))

    def _sf(self, y, b):
        return np.power(y, -b)

    def _logsf(self, y, b):
        return -b * np.log(y)

    def _ppf(self, q, b):
        return np.power(1 - q, -1 / b)

    def _isf(self, q, b):
        return np.power(q, -1 / b)

    def _sample(self, rng, size, b):
        return rng.pareto(b, size) + 1

    def _mean(self, b):
        finite = b > 1
        return np.where(finite, b / np.where(finite, b - 1, 1.0), math.inf)

    def _var(self, b):
        finite = b > 2
        b = np.where(finite, b, 3.0)
        return np.where(finite, b / ((b - 1) * (b - 1) * (b - 2)), math.inf)

    def _entropy(self, b):
        return 1 + 1 / b - np.log(b)


class HalfNormal(Positive):
    """Distribution of the absolute value of a normal number."""

    def _logpdf(self, y):
        return 0.5 * math.log(2 / math.pi) - 0.5 * (y * y)

    def _cdf(self, y):
        return erf(y * math.sqrt(0.5))

    def _sf(self, y):
        return erfc(y * math.sqrt(0.5))

    def _logsf(self, y):
        return math.log(2) + log_ndtr(-y)

    def _ppf(self, q):
        return math.sqrt(2) * erfinv(q)

    def _isf(self, q):
        return math.sqrt(2) * erfcinv(q)

    def _sample(self, rng, size):
        return np.abs(rng.standard_normal(size))

    def _mean(self):
        return math.sqrt(2 / math.pi)

    def _var(self):
        return 1 - 2 / math.pi

    def _entropy(self):
        return 0.5 * math.log(math.pi / 2) + 0.5


class Rayleigh(Positive):
    """Rayleigh distribution."""

    def _logpdf(self, y):
        return np.log(y) - 0.5 * (y * y)

    def _pdf(self, y, log_scale):
        return by_powers(
            y == 0,
            y,
            0.5,
            lambda y: self._logpdf(y) - log_scale,
            lambda y: y * np.exp(-0.5 * (y * y) - log_scale),
        )

    def _cdf(self, y):
        return -np.expm1(-0.5 * (y * y))

    def _sf(self, y):
        return np.exp(-0.5 * (y * y))

    def _logsf(self, y):
        return -0.5 * (y * y)

    def _ppf(self, q):
        return np.sqrt(-2 * np.log1p(-q))

    def _isf(self, q):
        return np.sqrt(-2 * np.log(q))

    def _sample(self, rng, size):
        return rng.rayleigh(size=size)

    def _mean(self):
        return math.sqrt(math.pi / 2)

    def _var(self):
        return 2 - math.pi / 2

    def _entropy(self):
        return EULER / 2 + 1 - 0.5 * math.log(2)


expon, lognorm, weibull_min = Exponential("expon"), LogNormal("lognorm"), Weibull("weibull_min")
pareto, halfnorm, rayleigh = Pareto("pareto"), HalfNormal("halfnorm"), Rayleigh("rayleigh")


class Gamma(Positive):
    """Gamma distribution of shape ``a``."""

    shapes = ("a",)

    def _logpdf(self, y, a):
        return xlogy(a - 1, y) - y - gammaln(a)

    def _pdf(self, y, log_scale, a):
        return by_powers(
            y == 0, y, 0.5,
            lambda y: self._logpdf(y, a) - log_scale,
            lambda y: np.power(y, a - 1) * np.exp(-y - gammaln(a) - log_scale),
        )  # fmt: skip

    def _cdf(self, y, a):
        return gammainc(a, y)

    def _sf(self, y, a):
        return gammaincc(a, y)

    def _far_below(self, tiny, y, a):
        return log_gamma_below(a, np.where(tiny, y, 0.5 * a))

    def _far_above(self, tiny, y, a):
        return log_gamma_above(a, np.where(tiny, y, 2 * a + 1))

    def _ppf(self, q, a):
        return gammaincinv(a, q)

    def _isf(self, q, a):
        return gammainccinv(a, q)

    def _sample(self, rng, size, a):
        return rng.standard_gamma(a, size)

    def _mean(self, a):
        return a

    def _var(self, a):
        return a

    def _entropy(self, a):
        return a + gammaln(a) + (1 - a) * digamma(a)


class Beta(Continuous):
    """Beta distribution."""

    shapes = ("a", "b")

    def _support(self, a, b):
        return 0.0, 1.0

    def _logpdf(self, y, a, b):
        return xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)

    def _pdf(self, y, log_scale, a, b):
        return by_powers(
            (y == 0) | (y == 1), y, 0.5,
            lambda y: self._logpdf(y, a, b) - log_scale,
            lambda y: np.power(y, a - 1)
            * np.power(1 - y, b - 1)
            * np.exp(-betaln(a, b) - log_scale),
        )  # fmt: skip

    def _cdf(self, y, a, b):
        return betainc(a, b, y)

    def _sf(self, y, a, b):
        return betaincc(a, b, y)

    def _far_below(self, tiny, y, a, b):
        y = np.where(tiny, y, 1e-3 * a / (a + b))
        return log_beta_below(a, b, y, 1 - y, (np.log(y), np.log1p(-y)))

    def _far_above(self, tiny, y, a, b):
        y = np.where(tiny, y, 1 - 1e-3 * b / (a + b))
        return log_beta_below(b, a, 1 - y, y, (np.log1p(-y), np.log(y)))

    def _ppf(self, q, a, b):
        return betaincinv(a, b, q)

    def _isf(self, q, a, b):
        return betainccinv(a, b, q)

    def _sample(self, rng, size, a, b):
        return rng.beta(a, b, size)

    def _mean(self, a, b):
        return a / (a + b)

    def _var(self, a, b):
        total = a + b
        return a * b / (total * total * (total + 1))

    def _entropy(self, a, b):
        slopes = (a - 1) * digamma(a) + (b - 1) * digamma(b)
        return betaln(a, b) - slopes + (a + b - 2) * digamma(a + b)


class ChiSquared(Positive):
    """Chi-squared distribution."""

    shapes = ("df",)

    def _logpdf(self, y, df):
        half = 0.5 * df
        return xlogy(half - 1, y) - 0.5 * y - gammaln(half) - math.log(2) * half

    def _pdf(self, y, log_scale, df):
        return by_powers(
            y == 0, y, 0.5,
            lambda y: self._logpdf(y, df) - log_scale,
            lambda y: np.power(y, 0.5 * df - 1)
            * np.exp(-0.5 * y - gammaln(0.5 * df) - (0.5 * math.log(2)) * df - log_scale),
        )  # fmt: skip

    def _cdf(self, y, df):
        return distributions.chdtr(df, y)

    def _sf(self, y, df):
        return distributions.chdtrc(df, y)

    def _far_below(self, tiny, y, df):
        return log_gamma_below(0.5 * df, 0.5 * np.where(tiny, y, 0.5 * df))

    def _far_above(self, tiny, y, df):
        return log_gamma_above(0.5 * df, 0.5 * np.where(tiny, y, 2 * df + 2))

    def _ppf(self, q, df):
        return 2 * gammaincinv(0.5 * df, q)

    def _isf(self, q, df):
        return distributions.chdtri(df, q)

    def _sample(self, rng, size, df):
        return rng.chisquare(df, size)

    def _mean(self, df):
        return df

    def _var(self, df):
        return 2 * df

    def _entropy(self, df):
        half = 0.5 * df
        return half + math.log(2) + gammaln(half) + (1 - half) * digamma(half)


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

    def _ppf(self, q, a):
        return 1 / gammainccinv(a, q)

    def _isf(self, q, a):
        return 1 / gammaincinv(a, q)

    def _sample(self, rng, size, a):
        return 1 / rng.standard_gamma(a, size)

    def _mean(self, a):
        finite = a > 1
        return np.where(finite, 1 / np.where(finite, a - 1, 1.0), math.inf)

    def _var(self, a):
        finite = a > 2
        a = np.where(finite, a, 3.0)
        return np.where(finite, 1 / ((a - 1) * (a - 1) * (a - 2)), math.inf)

    def _entropy(self, a):
        return a + gammaln(a) - (1 + a) * digamma(a)


class FisherF(Positive):
    """Fisher's F distribution."""

    shapes = ("dfn", "dfd")

    def _logpdf(self, y, dfn, dfd):
        n, d = 0.5 * dfn, 0.5 * dfd
        first = d * np.log(dfd) + n * np.log(dfn) + xlogy(n - 1, y)
        return first - (n + d) * np.log(dfd + dfn * y) - betaln(n, d)

    def _pdf(self, y, log_scale, dfn, dfd):
        return by_powers(
            y == 0, y, 0.5,
            lambda y: self._logpdf(y, dfn, dfd) - log_scale,
            lambda y: np.power(y, 0.5 * dfn - 1)
            * np.power(dfn / dfd, 0.5 * dfn)
            * np.power(1 + (dfn / dfd) * y, -0.5 * (dfn + dfd))
            * np.exp(-betaln(0.5 * dfn, 0.5 * dfd) - log_scale),
        )  # fmt: skip

    def _cdf(self, y, dfn, dfd):
        return distributions.fdtr(dfn, dfd, y)

    def _sf(self, y, dfn, dfd):
        return distributions.fdtrc(dfn, dfd, y)

    def _far_below(self, tiny, y, dfn, dfd):
        # the share is within a thousandth of its mean's
        share, rest, *logs = shares(np.where(tiny, y * dfn / dfd, 1e-3 * dfn / (dfn + dfd)))
        return log_beta_below(0.5 * dfn, 0.5 * dfd, share, rest, logs)

    def _far_above(self, tiny, y, dfn, dfd):
        share, rest, *logs = shares(np.where(tiny, y * dfn / dfd, 1e3 * (dfn + dfd) / dfd))
        return log_beta_below(0.5 * dfd, 0.5 * dfn, rest, share, logs[::-1])

    def _ppf(self, q, dfn, dfd):
        return distributions.fdtri(dfn, dfd, q)

    def _sample(self, rng, size, dfn, dfd):
        return (rng.chisquare(dfn, size) / dfn) / (rng.chisquare(dfd, size) / dfd)

    def _mean(self, dfn, dfd):
        finite = dfd > 2
        return np.where(finite, dfd / np.where(finite, dfd - 2, 1.0), math.inf)

    def _var(self, dfn, dfd):
        finite = dfd > 4
        d = np.where(finite, dfd, 5.0)
        result = 2 * (d * d) * (dfn + d - 2) / (dfn * ((d - 2) * (d - 2)) * (d - 4))
        return np.where(finite, result, math.inf)

    def _entropy(self, dfn, dfd):
        n, d = 0.5 * dfn, 0.5 * dfd
        slopes = (1 - n) * digamma(n) - (1 + d) * digamma(d) + (n + d) * digamma(n + d)
        return np.log(dfd) - np.log(dfn) + betaln(n, d) + slopes


gamma_, beta, chi2 = Gamma("gamma"), Beta("beta"), ChiSquared("chi2")
invgamma, f = InverseGamma("invgamma"), FisherF("f")
