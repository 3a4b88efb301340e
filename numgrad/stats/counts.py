"""Distributions of integers."""

import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.operations.error_gamma_logistic import gammaln
from numgrad.operations.shape import as_operand
from numgrad.operations.special_functions import gamma
from numgrad.operations.special_functions.inverse_parameters import bdtrik, nbdtrik, pdtrik
from numgrad.operations.special_functions.scipy_elementary import xlog1py, xlogy
from numgrad.random.generator import checked_parameter, drawn_shape, generator_from
from numgrad.stats.distribution import Discrete, Family, formulas
from numgrad.stats.numerics import (
    log_beta_below,
    log_gamma_above,
    log_gamma_below,
    mean_log_factorial,
    over_times,
)


def _log_below(tiny: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Logarithm of ``betainc(a, b, x)`` where it is ``tiny``; ``y`` is ``1 - x``."""
    few = 1e-3 * a / (a + b)
    return log_beta_below(a, b, np.where(tiny, x, few), np.where(tiny, y, 1 - few))


@formulas(
    valid=lambda mu: [mu >= 0],
    support=lambda mu: (0.0, math.inf),
    logpmf=lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    powers=lambda k, mu: np.power(mu, k) * np.exp(-mu - gammaln(k + 1)),
    cdf=lambda k, mu: gamma.gammaincc(k + 1, mu),
    sf=lambda k, mu: gamma.gammainc(k + 1, mu),
    far_below=lambda tiny, k, mu: log_gamma_above(k + 1, np.where(tiny, mu, 2 * k + 3)),
    far_above=lambda tiny, k, mu: log_gamma_below(k + 1, np.where(tiny, mu, 0.5 * (k + 1))),
    ppf=pdtrik,
    sample=lambda rng, size, mu: rng.poisson(mu, size),
    mean=lambda mu: mu,
    var=lambda mu: mu,
)
class Poisson(Discrete):
    """Poisson distribution."""

    shapes = ("mu",)

    def _entropy(self, mu):
        large = mu > 1000
        few, many = np.where(large, 1.0, mu), np.where(large, mu, 1000.0)
        rate = np.expand_dims(few, -1)
        mean = mean_log_factorial(few, lambda u: -np.expm1(-rate * u))
        r = 1 / many  # the asymptotic series, of which less than 1e-13 is left
        series = 0.5 * np.log(2 * math.pi * math.e * many)
        series = series - r * (1 / 12 + r * (1 / 24 + r * (19 / 360 + r * (9 / 80))))
        return np.where(large, series, few - xlogy(few, few) + mean)


def _mean_log_factorial(n: Any, p: Any) -> Any:
    """``E[log k!]`` of binomial ``k``."""
    each, chance = np.expand_dims(n, -1), np.expand_dims(p, -1)
    return mean_log_factorial(n * p, lambda u: -np.expm1(each * np.log1p(-chance * u)))


@formulas(
    valid=lambda n, p: [n >= 0, n == np.floor(n), p >= 0, p <= 1],
    stand_in=lambda: (1.0, 0.5),
    support=lambda n, p: (0.0, n),
    ways=lambda k, n: -gamma.betaln(n - k + 1, k + 1) - np.log(n + 1),
    ppf=bdtrik,
    sample=lambda rng, size, n, p: rng.binomial(n.astype(np.int64), p, size),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1 - p),
)
class Binomial(Discrete):
    """Binomial distribution of ``n`` trials of probability ``p``."""

    shapes = ("n", "p")

    def _logpmf(self, k, n, p):
        return self._ways(k, n) + xlogy(k, p) + xlog1py(n - k, -p)

    def _powers(self, k, n, p):
        return np.exp(self._ways(k, n)) * np.power(p, k) * np.power(1 - p, n - k)

    def _shared(self, k, n):
        last = k >= n
        return last, np.where(last, 0.0, k) + 1, np.where(last, 1.0, n - k)

    def _cdf(self, k, n, p):
        last, a, b = self._shared(k, n)
        return np.where(last, 1.0, gamma.betaincc(a, b, p))

    def _sf(self, k, n, p):
        last, a, b = self._shared(k, n)
        return np.where(last, 0.0, gamma.betainc(a, b, p))

    def _far_below(self, tiny, k, n, p):
        _, a, b = self._shared(k, n)
        return _log_below(tiny, b, a, 1 - p, p)

    def _far_above(self, tiny, k, n, p):
        last, a, b = self._shared(k, n)
        return np.where(last, -math.inf, _log_below(tiny & ~last, a, b, p, 1 - p))

    def _entropy(self, n, p):
        both = _mean_log_factorial(n, p) + _mean_log_factorial(n, 1 - p)
        return both - gammaln(n + 1) - n * (xlogy(p, p) + xlog1py(1 - p, -p))


@formulas(
    valid=lambda p: [p >= 0, p <= 1],
    stand_in=lambda: (0.5,),
    support=lambda p: (0.0, 1.0),
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    pmf=lambda k, p: np.where(k == 1, p, np.where(k == 0, 1 - p, k)),
    cdf=lambda k, p: np.where(k >= 1, 1.0, 1 - p),
    sf=lambda k, p: np.where(k >= 1, 0.0, p),
    ppf=lambda q, p: np.where(q > 1 - p, 1.0, 0.0),
    sample=lambda rng, size, p: rng.binomial(1, p, size),
    mean=lambda p: p,
    var=lambda p: p * (1 - p),
    entropy=lambda p: -xlogy(p, p) - xlog1py(1 - p, -p),
)
class Bernoulli(Discrete):
    """Bernoulli distribution: 1 with probability ``p``, else 0."""

    shapes = ("p",)


@formulas(
    valid=lambda n, p: [n > 0, p > 0, p <= 1],
    stand_in=lambda: (1.0, 0.5),
    support=lambda n, p: (0.0, math.inf),
    ways=lambda k, n: gammaln(n + k) - gammaln(k + 1) - gammaln(n),
    cdf=lambda k, n, p: gamma.betainc(n, k + 1, p),
    sf=lambda k, n, p: gamma.betaincc(n, k + 1, p),
    far_below=lambda tiny, k, n, p: _log_below(tiny, n, k + 1, p, 1 - p),
    far_above=lambda tiny, k, n, p: _log_below(tiny, k + 1, n, 1 - p, p),
    ppf=nbdtrik,
    sample=lambda rng, size, n, p: rng.negative_binomial(n, p, size),
    mean=lambda n, p: n * (1 - p) / p,
    var=lambda n, p: n * (1 - p) / (p * p),
)
class NegativeBinomial(Discrete):
    """Failures before the ``n``-th success of probability ``p``."""

    shapes = ("n", "p")

    def _logpmf(self, k, n, p):
        return self._ways(k, n) + n * np.log(p) + xlog1py(k, -p)

    def _powers(self, k, n, p):
        return np.exp(self._ways(k, n)) * np.power(p, n) * np.power(1 - p, k)

    def _entropy(self, n, p):
        # the means of log k! and of log gamma(n + k) / gamma(n) have one integral
        each, odds = np.expand_dims(n, -1), np.expand_dims((1 - p) / p, -1)

        def integrand(t, u):
            missing = -np.expm1(-each * np.log1p(u * odds))
            return (np.exp(-each * t) - np.exp(-t)) * missing / u

        means = over_times(integrand, n.dtype)
        return means - n * np.log(p) - xlog1py(n * (1 - p) / p, -p)


@formulas(
    valid=lambda p: [p > 0, p <= 1],
    stand_in=lambda: (0.5,),
    support=lambda p: (1.0, math.inf),
    logpmf=lambda k, p: xlog1py(k - 1, -p) + np.log(p),
    powers=lambda k, p: p * np.power(1 - p, k - 1),
    cdf=lambda k, p: -np.expm1(xlog1py(k, -p)),
    sf=lambda k, p: np.exp(xlog1py(k, -p)),
    logsf=lambda k, p: xlog1py(k, -p),
    ppf=lambda q, p: np.log1p(-q) / np.log1p(-np.where(p < 1, p, 0.5)),
    sample=lambda rng, size, p: rng.geometric(p, size),
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    entropy=lambda p: -np.log(p) - xlog1py((1 - p) / p, -p),
)
class Geometric(Discrete):
    """Trials until the first success of probability ``p``."""

    shapes = ("p",)


class Categorical(Family):
    """One of the classes ``0, 1, ...`` with the probabilities along the last axis of ``p``."""

    def logpmf(self, k: Any, p: Any) -> Any:
        """Logarithm of the probability of class ``k``; ``-inf`` where there is no such class."""
        value = self.pmf(k, p)
        empty = value == 0
        return np.where(empty, -math.inf, np.log(np.where(empty, 1.0, value)))

    def pmf(self, k: Any, p: Any) -> Any:
        """Probability of class ``k``; 0 where there is no such class."""
        p, k = as_operand(p), as_operand(k)
        is_drawn = np.expand_dims(k, -1) == np.arange(p.shape[-1])
        return np.sum(np.where(is_drawn, p, 0.0), axis=-1)

    def entropy(self, p: Any) -> Any:
        """Entropy."""
        p = as_operand(p)
        return -np.sum(xlogy(p, p), axis=-1)

    def rvs(self, p: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random classes, by default one for each row of probabilities."""
        p = as_operand(checked_parameter(p))
        size = drawn_shape("categorical.rvs", size, p.shape[:-1])
        chance = generator_from("categorical.rvs", random_state).random(size)
        sums = np.cumsum(p, axis=-1)  # of which rounding may leave the last one below 1
        reached = sums[..., :-1] <= np.expand_dims(chance, -1) * sums[..., -1:]
        return np.sum(reached, axis=-1)


class Multinomial(Family):
    """Counts of ``n`` draws of the classes, of probabilities ``p`` along the last axis."""

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Logarithm of the probability of counts ``x``."""
        inside, n, counts, p = self._check_arguments("logpmf", x, n, p)
        return np.where(inside, self._log(counts, n, p), -math.inf)

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """Probability of counts ``x``."""
        inside, n, counts, p = self._check_arguments("pmf", x, n, p)
        none = np.any(p == 0, axis=-1)
        scale = np.where(np.expand_dims(none, -1), p, 1.0)
        powers = np.exp(self._log(counts, n, 1.0)) * np.prod(np.power(scale, counts), axis=-1)
        regular = np.exp(self._log(counts, n, np.where(np.expand_dims(none, -1), 1.0, p)))
        return np.where(inside, np.where(none, powers, regular), 0.0)

    def _check_arguments(self, what: str, x: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any]:
        """Whether counts are ones, ``n``, counts that are, and the probabilities."""
        x, p, n = as_operand(x), as_operand(p), as_operand(n)
        if x.shape[-1:] != p.shape[-1:]:
            raise NumgradValueError(
                f"multinomial.{what}: the last axes of x {tuple(x.shape)} and p {tuple(p.shape)} "
                "differ; both are the classes"
            )
        inside = np.all((x >= 0) & (x == np.floor(x)), axis=-1) & (np.sum(x, axis=-1) == n)
        return inside, n, np.where(np.expand_dims(inside, -1), x, 0.0), p

    def _log(self, counts: Any, n: Any, p: Any) -> Any:
        return gammaln(n + 1.0) + np.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)

    def mean(self, n: Any, p: Any) -> Any:
        """Mean."""
        return np.expand_dims(as_operand(n), -1) * as_operand(p)

    def cov(self, n: Any, p: Any) -> Any:
        """Covariances, along the last two axes."""
        n, p = as_operand(n), as_operand(p)
        column = np.expand_dims(p, -1)
        return np.expand_dims(n, (-2, -1)) * column * (np.eye(p.shape[-1]) - np.expand_dims(p, -2))

    def entropy(self, n: Any, p: Any) -> Any:
        """Entropy."""
        n, p = as_operand(n), as_operand(p)
        each = _mean_log_factorial(np.expand_dims(n, -1), p) - np.expand_dims(n, -1) * xlogy(p, p)
        return np.sum(each, axis=-1) - gammaln(n + 1.0)

    def rvs(self, n: Any, p: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random counts."""
        return generator_from("multinomial.rvs", random_state).multinomial(n, p, size)

    _mean, _entropy = mean, entropy


poisson, binom, bernoulli = Poisson("poisson"), Binomial("binom"), Bernoulli("bernoulli")
nbinom, geom = NegativeBinomial("nbinom"), Geometric("geom")
categorical, multinomial = Categorical("categorical"), Multinomial("multinomial")
