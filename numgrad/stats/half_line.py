"""Distributions of positive numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.operations.real import ndtr
from numgrad.operations.special import erf, erfc, erfinv, gamma
from numgrad.operations.special_functions.convex import xlogy
from numgrad.operations.special_functions.error import erfcinv, log_ndtr, ndtri
from numgrad.stats.distribution import Continuous, by_powers
from numgrad.stats.line import EULER, LOG_ROOT_TWO_PI


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
