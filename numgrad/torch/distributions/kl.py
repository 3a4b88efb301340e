"""Kullback-Leibler divergences: formulas by pairs of classes, and users' own.

Note [Cross entropies]
----------------------
``KL(p || q) = -H(p) - E_p[log q]``. The logarithm of a density ``q`` is a sum of few statistics, so
that a row for ``q`` in ``CROSSED`` and one for the mean of a statistic by ``p`` in ``MEANS`` give
all their pairs; where ``p`` has numbers outside of the support of ``q`` it is infinite. ``TABLE``
has pairs with a formula of their own, in which digits do not cancel. ``A|B`` stands for several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError
from numgrad.torch.distributions import utils, vectors
from numgrad.torch.distributions.composed import Independent, TransformedDistribution
from numgrad.torch.distributions.distribution import Distribution, ExponentialFamily
from numgrad.torch.distributions.univariate import tilted  # noqa: F401 - names of formulas
from numgrad.torch.distributions.utils import torch
from numgrad.torch.distributions.vectors import CLASSES, HALF_LOG_2PI  # noqa: F401

KL_REGISTRY: dict[tuple[type, type], Callable[..., Any]] = {}
"""Formulas by pairs of classes."""


def register_kl(type_p: Any, type_q: Any) -> Callable[..., Any]:
    """Give the divergence of two classes, as a decorator of a function of ``p`` and ``q``."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise NumgradTypeError(f"Expected a Distribution subclass but got {kind!r}")

    def decorator(function: Any) -> Any:
        KL_REGISTRY[type_p, type_q] = function
        return function

    return decorator


def kl_divergence(p: Any, q: Any) -> Any:
    """Kullback-Leibler divergence ``KL(p || q)``, one number for each of the batch.

    The formula is that of the nearest classes among the bases, those of ``p`` first.

    Raises
    ------
    NumgradNotImplementedError
        If there is none; ``register_kl`` adds one.

    Examples
    --------
    >>> from numgrad.torch.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    return _formula(KL_REGISTRY, p, q)(p, q)


def _formula(table: Any, p: Any, *q: Any) -> Callable[..., Any]:
    """The entry of a table for the nearest classes of distributions."""
    for kinds in product(*[type(d).__mro__ for d in (p, *q)]):
        if kinds in table:
            return table[kinds]
    names = " and q type ".join(type(d).__name__ for d in (p, *q))
    raise NumgradNotImplementedError(
        f"No KL(p || q) is implemented for p type {names}; add it by register_kl"
    )


def _dirichlets(a: Any, b: Any) -> Any:
    """Divergence of Dirichlet distributions of these concentrations."""
    total = a.sum(-1, True)
    lead = torch.lgamma(total).squeeze(-1) - torch.lgamma(b.sum(-1))
    rest = torch.lgamma(b) - torch.lgamma(a) + (a - b) * (torch.digamma(a) - torch.digamma(total))
    return lead + rest.sum(-1)


def _weighted(weight: Any, log: Any) -> Any:
    """``weight * log`` where there is a weight, else 0."""
    none = weight == 0
    return torch.where(none, 0.0, weight * torch.where(none, 0.0, log))


def _classes(p: Any, q: Any) -> Any:
    """Divergence of categories, infinite where ``q`` lacks one that ``p`` has."""
    terms = _weighted(p.probs, p.logits - q.logits)
    return torch.where((q.probs == 0) & (p.probs > 0), math.inf, terms).sum(-1)


def _coins(p: Any, q: Any) -> Any:
    """Divergence of Bernoulli distributions."""
    return _weighted(p.probs, (p.probs / q.probs).log()) + _weighted(
        1 - p.probs, ((1 - p.probs) / (1 - q.probs)).log()
    )


def _binomials(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NumgradNotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    return torch.where(p.total_count > q.total_count, math.inf, p.total_count * _coins(p, q))


def _normal_vectors(p: Any, q: Any) -> Any:
    """Divergence of normal vectors, by Cholesky factors of their covariances."""
    if p.event_shape != q.event_shape:
        raise NumgradValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            "cannot be computed"
        )
    distance = vectors._quadratic(q.scale_tril, q.loc - p.loc)
    rest = _trace(p, q) + distance - p.event_shape[0]
    return q._log_scale() - p._log_scale() + 0.5 * rest


def _trace(p: Any, q: Any) -> Any:
    """Trace of the covariance of ``p`` times the inverse of that of ``q``."""
    a, b = torch.broadcast_tensors(p.scale_tril, q.scale_tril)
    return torch.linalg.solve_triangular(b, a, upper=False).pow(2).sum((-2, -1))


def _wisharts(p: Any, q: Any) -> Any:
    n, half, other = p._size, 0.5 * p.df, 0.5 * q.df
    return (
        q.df * (q._log_scale() - p._log_scale()) + half * (_trace(p, q) - n)
        + torch.mvlgamma(other, n) - torch.mvlgamma(half, n)
        + (half - other) * vectors._mvdigamma(half, n)
    )  # fmt: skip


def _infinite(p: Any, q: Any) -> Any:
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    return torch.full(shape, math.inf, dtype=p.mean.dtype)


TABLE = """
Normal: 0.5 * ((p.scale / q.scale) ** 2 + ((p.loc - q.loc) / q.scale) ** 2 - 1) - (
    p.scale / q.scale).log()
HalfNormal: 0.5 * ((p.scale / q.scale) ** 2 - 1) - (p.scale / q.scale).log()
Laplace: (q.scale / p.scale).log() + (p.loc - q.loc).abs() / q.scale + p.scale / q.scale * (
    -(p.loc - q.loc).abs() / p.scale).exp() - 1
Cauchy: (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()
Beta: _dirichlets(*(torch.stack([d.concentration1, d.concentration0], -1) for d in (p, q)))
Exponential: (p.rate / q.rate).log() + q.rate / p.rate - 1
Gamma: (p.concentration - q.concentration) * torch.digamma(p.concentration) - torch.lgamma(
    p.concentration) + torch.lgamma(q.concentration) + q.concentration * (
    p.rate / q.rate).log() + p.concentration * (q.rate / p.rate - 1)
Normal Laplace: (2 * q.scale).log() - p.entropy() + (p.scale * math.sqrt(2 / math.pi) * (
    -0.5 * ((p.loc - q.loc) / p.scale) ** 2).exp() + (p.loc - q.loc) * torch.erf(
    (p.loc - q.loc) / (p.scale * math.sqrt(2)))) / q.scale
Poisson: p.rate * (p.rate / q.rate).log() - (p.rate - q.rate)
Bernoulli: _coins(p, q)
Binomial: _binomials(p, q)
Categorical|OneHotCategorical: _classes(p, q)
Dirichlet: _dirichlets(p.concentration, q.concentration)
MultivariateNormal|LowRankMultivariateNormal MultivariateNormal|LowRankMultivariateNormal:
    _normal_vectors(p, q)
Wishart: _wisharts(p, q)
Poisson Bernoulli|Binomial: _infinite(p, q)
"""
CROSSED = """
Normal: -0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.scale**2 - q.scale.log() - HALF_LOG_2PI
Exponential: q.rate.log() - q.rate * p.mean
Gamma: q.concentration * q.rate.log() - torch.lgamma(q.concentration) + (
    q.concentration - 1) * mean("log", p) - q.rate * p.mean
Beta: (q.concentration1 - 1) * mean("log", p) + (q.concentration0 - 1) * mean("log1m", p) - (
    torch.lgamma(q.concentration1) + torch.lgamma(q.concentration0) - torch.lgamma(
    q.concentration1 + q.concentration0))
Gumbel: (q.loc - p.mean) / q.scale - q.scale.log() - (q.loc / q.scale).exp() * mean(
    "exp", p, -1 / q.scale)
ContinuousBernoulli: q._tilt * p.mean - tilted(q, 0)
Pareto: q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * mean("log", p)
Uniform: -(q.high - q.low).log()
Geometric: p.mean * torch.log1p(-q.probs) + q.probs.log()
Poisson: p.mean * q.rate.log() - q.rate
"""
MEANS = """
log Exponential: -euler_constant - p.rate.log()
log Gamma: torch.digamma(p.concentration) - p.rate.log()
log Beta: torch.digamma(p.concentration1) - torch.digamma(p.concentration1 + p.concentration0)
log Uniform: _mean_log(p.low, p.high)
log Pareto: p.scale.log() + 1 / p.alpha
log1m Beta: torch.digamma(p.concentration0) - torch.digamma(p.concentration1 + p.concentration0)
log1m Uniform: _mean_log(1 - p.high, 1 - p.low)
exp Normal: (t * p.loc + 0.5 * (t * p.scale) ** 2).exp()
exp Exponential: p.rate / (p.rate - t)
exp Gamma: (1 - t / p.rate) ** -p.concentration
exp Uniform: ((t * p.high).exp() - (t * p.low).exp()) / (t * (p.high - p.low))
exp Gumbel: (t * p.loc + torch.lgamma(1 - t * p.scale)).exp()
"""


def _mean_log(low: Any, high: Any) -> Any:
    """Mean of the logarithm of numbers that are uniform from one to another."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


def mean(statistic: str, p: Any, t: Any = None) -> Any:
    """Mean of ``log(x)``, of ``log(1 - x)``, or of ``exp(t x)``."""
    return _formula(_MEANS[statistic], p)(p, t)


def _crossed(p: Any, q: Any) -> Any:
    """Divergence by the cross entropy: Note [Cross entropies]."""
    (low, high), (least, most) = [
        (getattr(d.support, "lower_bound", -math.inf), getattr(d.support, "upper_bound", math.inf))
        for d in (p, q)
    ]
    inside = torch.as_tensor((low >= least) & (high <= most) | p.support.is_discrete)
    if not inside.any():
        return _infinite(p, q)
    return torch.where(inside, -p.entropy() - _formula(_CROSSED, q)(p, q), math.inf)


def _entries(text: str, operands: str) -> list[tuple[list[str], Callable[..., Any]]]:
    """Heads of rows, in words, and functions."""
    lines = [row.split(": ", 1) for (row,) in utils.rows(text)]
    return [
        (head.split(), eval(f"lambda {operands}: {formula}", _scope)) for head, formula in lines
    ]


_scope = vars(utils) | CLASSES | globals()
_CROSSED = {(CLASSES[q],): formula for (q,), formula in _entries(CROSSED, "p, q")}
_MEANS: dict[str, dict[Any, Any]] = {"log": {}, "log1m": {}, "exp": {}}
for (_name, _kind), _function in _entries(MEANS, "p, t"):
    _MEANS[_name][CLASSES[_kind],] = _function
_BOTH = "Beta|ContinuousBernoulli|Exponential|Gamma|Normal|Pareto|Uniform"
_PAIRS = f"""
{_BOTH}|Gumbel|Laplace {_BOTH}: _crossed(p, q)
Gumbel|Exponential|Gamma|Normal|Uniform Gumbel: _crossed(p, q)
Geometric: _crossed(p, q)
Bernoulli Poisson: _crossed(p, q)
"""
for (_p, *_rest), _function in _entries(_PAIRS + TABLE.lstrip(), "p, q"):
    for _a in _p.split("|"):
        for _b in _rest[0].split("|") if _rest else [_a]:
            register_kl(CLASSES[_a], CLASSES[_b])(_function)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NumgradNotImplementedError("the numbers of axes of the events differ")
    return utils.sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NumgradNotImplementedError("the transforms differ")
    base = kl_divergence(p.base_dist, q.base_dist)
    return utils.sum_rightmost(base, base.dim() - len(p.batch_shape))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Any:
    """Bregman divergence of the normalizer."""
    if type(p) is not type(q):
        raise NumgradNotImplementedError("the exponential families differ")
    log, slopes = p._slopes()
    result = q._log_normalizer(*q._natural_params) - log
    for (own, slope), other in zip(slopes, q._natural_params, strict=True):
        result = result - utils.sum_rightmost((other - own) * slope, len(q.event_shape))
    return result
