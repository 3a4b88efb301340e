"""Kullback-Leibler divergences of distributions with their parameters.

Note [Cross entropies]
----------------------
``KL(p || q) = -H(p) - E_p[log q]``. Numbers are taken in units of ``q``, so that this has location
0 and scale 1. The logarithm of such a density is a sum of few statistics: a row for ``q`` in
``CROSSED``, and one for the mean of a statistic by ``p`` in ``MEANS``, give all their pairs. Where
``p`` has numbers outside of the support of ``q`` the divergence is infinite. ``CLOSED`` has pairs
with a formula of their own, in which digits do not cancel.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError
from numgrad.operations.error_gamma_logistic import digamma, erf, gammaln
from numgrad.operations.shape import as_operand
from numgrad.operations.special_functions.gamma import betaln, multigammaln
from numgrad.operations.special_functions.scipy_elementary import xlogy
from numgrad.stats.distribution import Distribution, met
from numgrad.stats.frozen import Frozen
from numgrad.stats.line import EULER, LOG_ROOT_TWO_PI, log_tilt
from numgrad.stats.vectors import covariance_of, digammas


def kl_divergence(p: Any, q: Any) -> Any:
    """Kullback-Leibler divergence ``KL(p || q)``, the mean of ``log(p / q)`` over ``p``.

    Parameters
    ----------
    p, q
        Distributions with their parameters, as ``ng.stats.norm(0.0, 1.0)``.

    Returns
    -------
    float or Tensor
        One number for each distribution of a batch, with gradients in all parameters. It is
        infinite where ``p`` has numbers outside of the support of ``q``, and NaN where there is no
        closed form, as of gamma numbers of two locations, or binomial ones of more draws in ``q``.

    Raises
    ------
    NumgradTypeError
        If one has no parameters.
    NumgradNotImplementedError
        If there is no closed form for these families.

    Notes
    -----
    Normal, Laplace, Cauchy, Gumbel, uniform, exponential, gamma, beta, Pareto, half normal, log
    normal, Poisson, binomial, geometric, Dirichlet, Wishart, multivariate normal distributions and
    those of categories have one for two of their family, many of them for mixed pairs as well.

    Examples
    --------
    >>> import numgrad as ng
    >>> p, q = ng.stats.norm(0.0, 1.0), ng.stats.norm(1.0, 2.0)
    >>> float(ng.stats.kl_divergence(p, q))
    0.4431471805599453
    """
    if not (isinstance(p, Frozen) and isinstance(q, Frozen)):
        raise NumgradTypeError(
            "kl_divergence: takes distributions with their parameters, as ng.stats.norm(0.0, 1.0), "
            f"got {type(p).__name__} and {type(q).__name__}"
        )
    names = p.dist.name, q.dist.name
    if names[0] == names[1] and names[0] in VECTORS:
        return VECTORS[names[0]](*_parameters(p), *_parameters(q))
    if not (isinstance(p.dist, Distribution) and isinstance(q.dist, Distribution)):
        raise _lacking(*names)
    numbers, shapes = _in_units_of(p, q)
    low, high = q.dist._support(*shapes)
    line = isinstance(low, float) and (low, high) == (-math.inf, math.inf)
    inside: Any = line or as_operand((numbers.low >= low) & (numbers.high <= high))
    if inside is not True and met(inside) is False:
        each = [a.shape for a in (inside, *numbers.shapes, *shapes)]
        return np.broadcast_to(np.where(inside, 0.0, math.inf), np.broadcast_shapes(*each))
    if names in CLOSED:
        result = CLOSED[names](numbers, *shapes)
    elif q.dist.name in CROSSED:
        result = -numbers.entropy - CROSSED[q.dist.name](numbers, *shapes)
    else:
        raise _lacking(*names)
    return result if inside is True else np.where(inside, result, math.inf)


def _lacking(p: str, q: str) -> Exception:
    return NumgradNotImplementedError(
        f"kl_divergence: there is no closed form of {p} and {q} here; the mean of p.logpdf(x) - "
        "q.logpdf(x) over x = p.rvs(n) estimates it, with gradients"
    )


class _Numbers:
    """Numbers ``loc + scale * z`` of a family; means of statistics as attributes."""

    def __init__(self, family: Any, shapes: Any, loc: Any, scale: Any) -> None:
        self.family, self.shapes, self.loc, self.scale = family, shapes, loc, scale

    low = property(lambda self: self.loc + self.scale * self.family._support(*self.shapes)[0])
    high = property(lambda self: self.loc + self.scale * self.family._support(*self.shapes)[1])
    mean = property(lambda self: self.loc + self.scale * self.family._mean(*self.shapes))
    variance = property(lambda self: self.scale**2 * self.family._var(*self.shapes))
    entropy = property(lambda self: self.family._entropy(*self.shapes) + np.log(self.scale))

    def __getattr__(self, statistic: str) -> Any:
        if (self.family.name, statistic) not in MEANS:
            raise _lacking(self.family.name, f"densities with the mean of {statistic}(x)")
        return MEANS[self.family.name, statistic](self, *self.shapes)

    def at(self, loc: float, scale: Any, result: Any) -> Any:
        """A result where location and scale are these, else NaN."""
        ok = self.loc == loc
        return np.where(ok if scale is None else ok & (self.scale == scale), result, math.nan)


def _in_units_of(p: Frozen, q: Frozen) -> tuple[_Numbers, list[Any]]:
    """Numbers of ``p`` in units of ``q``, and the shape parameters of this."""
    _, own, (loc, *scale) = p.dist._check_arguments("kl_divergence", p.args, p.kwds)
    _, shapes, (start, *unit) = q.dist._check_arguments("kl_divergence", q.args, q.kwds)
    if scale and unit:
        return _Numbers(p.dist, own, (loc - start) / unit[0], scale[0] / unit[0]), shapes
    if scale or unit:
        raise _lacking(p.dist.name, q.dist.name)
    return _Numbers(p.dist, own, loc - start, 1.0), shapes


def _parameters(d: Frozen) -> Any:
    """All parameters in the order of the family's."""
    bound = d.dist.__signature__.bind(*d.args, **d.kwds)
    bound.apply_defaults()
    return bound.arguments.values()


def _term(p: Any, q: Any) -> Any:
    """``p * log(p / q)`` of probabilities: 0 where ``p`` is, infinite where ``q`` alone is."""
    endless = (p > 0) & (q == 0)
    apart = endless | (p == 0)
    p, q = np.where(apart, 1.0, p), np.where(apart, 1.0, q)
    return np.where(endless, math.inf, p * np.log(p / q))


def _coins(p: Any, q: Any) -> Any:
    return _term(p, q) + _term(1 - p, 1 - q)


def _dirichlets(a: Any, b: Any) -> Any:
    """Divergence of Dirichlet distributions of these concentrations."""
    a, b = as_operand(a), as_operand(b)
    total = np.sum(a, axis=-1, keepdims=True)
    lead = gammaln(total)[..., 0] - gammaln(np.sum(b, axis=-1))
    rest = gammaln(b) - gammaln(a) + (a - b) * (digamma(a) - digamma(total))
    return lead + np.sum(rest, axis=-1)


def _betas(x: Any, c: Any, d: Any) -> Any:
    a, b = x.shapes
    rest = (a - c) * digamma(a) + (b - d) * digamma(b)
    return betaln(c, d) - betaln(a, b) + rest + (c - a + d - b) * digamma(a + b)


def _normal_by_laplace(loc: Any, scale: Any) -> Any:
    """Divergence of a normal distribution from Laplace's of location 0 and scale 1."""
    near = scale * math.sqrt(2 / math.pi) * np.exp(-0.5 * (loc / scale) ** 2)
    mean = near + loc * erf(loc / (scale * math.sqrt(2)))  # of the absolute value
    return mean + math.log(2) - 0.5 - LOG_ROOT_TWO_PI - np.log(scale)


def _trace(a: Any, b: Any) -> Any:
    """Trace of one covariance times the inverse of another."""
    return np.sum(b.distances(a.root), axis=-1)


def _normal_vectors(mean: Any, cov: Any, other: Any, other_cov: Any) -> Any:
    a, b = covariance_of(cov, mean), covariance_of(other_cov, other)
    if a.rank != b.rank:
        raise NumgradValueError(
            f"kl_divergence: normal vectors of {a.rank} and {b.rank} numbers are of different "
            "event shapes; they have to be of one length"
        )
    away = 0.0 if mean is None and other is None else _or_zero(other) - _or_zero(mean)
    distance = b.distance(np.broadcast_to(away, (*np.shape(away)[:-1], a.rank)))
    return 0.5 * (b.log_pdet - a.log_pdet + _trace(a, b) + distance - a.rank)


def _or_zero(mean: Any) -> Any:
    return 0.0 if mean is None else as_operand(mean)


def _wisharts(df: Any, scale: Any, other: Any, other_scale: Any) -> Any:
    a, b = covariance_of(scale), covariance_of(other_scale)
    half, rest = 0.5 * as_operand(df), 0.5 * as_operand(other)
    slopes = (half - rest) * digammas(half, a.rank)
    powers = multigammaln(rest, a.rank) - multigammaln(half, a.rank) + slopes
    return rest * (b.log_pdet - a.log_pdet) + half * (_trace(a, b) - a.rank) + powers


VECTORS: dict[str, Callable[..., Any]] = {
    "categorical": lambda p, q: np.sum(_term(as_operand(p), as_operand(q)), axis=-1),
    "dirichlet": _dirichlets,
    "multivariate_normal": _normal_vectors,
    "wishart": _wisharts,
}
"""Divergences of two of one family of vectors, by the parameters of both."""


def _mean_log(low: Any, high: Any) -> Any:
    """Mean of the logarithm of numbers that are uniform from one to another."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


CLOSED: dict[tuple[str, str], Callable[..., Any]] = {
    ("norm", "norm"): lambda x: 0.5 * (x.scale**2 + x.loc**2 - 1) - np.log(x.scale),
    ("halfnorm", "halfnorm"): lambda x: x.at(0, None, 0.5 * (x.scale**2 - 1) - np.log(x.scale)),
    ("laplace", "laplace"): lambda x: (
        np.abs(x.loc) + x.scale * np.exp(-np.abs(x.loc) / x.scale) - 1 - np.log(x.scale)
    ),
    ("cauchy", "cauchy"): lambda x: np.log(((x.scale + 1) ** 2 + x.loc**2) / (4 * x.scale)),
    ("halfcauchy", "halfcauchy"): lambda x: x.at(
        0, None, np.log((x.scale + 1) ** 2 / (4 * x.scale))),
    ("norm", "laplace"): lambda x: _normal_by_laplace(x.loc, x.scale),
    ("expon", "expon"): lambda x: x.loc + x.scale - 1 - np.log(x.scale),
    ("gamma", "gamma"): lambda x, b: x.at(0, None, _gammas(x, b, x.scale)),
    ("invgamma", "invgamma"): lambda x, b: x.at(0, None, _gammas(x, b, 1 / x.scale)),
    ("beta", "beta"): lambda x, c, d: x.at(0, 1, _betas(x, c, d)),
    ("lognorm", "lognorm"): lambda x, s: x.at(
        0, None, 0.5 * ((x.shapes[0] / s) ** 2 + (np.log(x.scale) / s) ** 2 - 1)
        - np.log(x.shapes[0] / s),
    ),
    ("poisson", "poisson"): lambda x, mu: x.at(
        0, None, _term(x.shapes[0], mu) - x.shapes[0] + mu),
    ("bernoulli", "bernoulli"): lambda x, p: x.at(0, None, _coins(x.shapes[0], p)),
    ("bernoulli", "poisson"): lambda x, mu: x.at(
        0, None, -x.entropy - xlogy(x.shapes[0], mu) + mu),
    ("binom", "binom"): lambda x, n, p: np.where(
        x.shapes[0] == n, x.at(0, None, n * _coins(x.shapes[1], p)), math.nan),
    ("geom", "geom"): lambda x, p: x.at(0, None, _coins(x.shapes[0], p) / x.shapes[0]),
}  # fmt: skip
"""Divergences of numbers from a family of location 0 and scale 1, by its shape parameters."""


def _gammas(x: Any, b: Any, scale: Any) -> Any:
    (a,) = x.shapes
    rest = (a - b) * digamma(a) - gammaln(a) + gammaln(b)
    return rest - b * np.log(scale) + a * (scale - 1)


CROSSED: dict[str, Callable[..., Any]] = {
    "norm": lambda x: -0.5 * (x.variance + x.mean**2) - LOG_ROOT_TWO_PI,
    "expon": lambda x: -x.mean,
    "gamma": lambda x, a: (a - 1) * x.log - x.mean - gammaln(a),
    "beta": lambda x, a, b: (a - 1) * x.log + (b - 1) * x.log_rest - betaln(a, b),
    "gumbel_r": lambda x: -x.mean - x.exp_minus,
    "pareto": lambda x, b: np.log(b) - (b + 1) * x.log,
    "uniform": lambda x: 0.0,
    "continuous_bernoulli": lambda x, t: t * x.mean - log_tilt(t),
}
"""Means of the logarithm of a density of location 0 and scale 1."""
MEANS: dict[tuple[str, str], Callable[..., Any]] = {
    ("expon", "log"): lambda x: x.at(0, None, np.log(x.scale) - EULER),
    ("gamma", "log"): lambda x, a: x.at(0, None, np.log(x.scale) + digamma(a)),
    ("beta", "log"): lambda x, a, b: x.at(0, None, np.log(x.scale) + digamma(a) - digamma(a + b)),
    ("uniform", "log"): lambda x: _mean_log(x.low, x.high),
    ("pareto", "log"): lambda x, b: x.at(0, None, np.log(x.scale) + 1 / b),
    ("beta", "log_rest"): lambda x, a, b: x.at(0, 1, digamma(b) - digamma(a + b)),
    ("uniform", "log_rest"): lambda x: _mean_log(1 - x.high, 1 - x.low),
    ("norm", "exp_minus"): lambda x: np.exp(0.5 * x.scale**2 - x.loc),
    ("expon", "exp_minus"): lambda x: np.exp(-x.loc) / (1 + x.scale),
    ("gamma", "exp_minus"): lambda x, a: np.exp(-x.loc) * (1 + x.scale) ** -a,
    ("uniform", "exp_minus"): lambda x: -np.exp(-x.loc) * np.expm1(-x.scale) / x.scale,
    ("gumbel_r", "exp_minus"): lambda x: np.exp(gammaln(1 + x.scale) - x.loc),
}
"""Means of ``log(x)``, ``log(1 - x)`` and ``exp(-x)``."""
