"""Kullback-Leibler divergences: formulas by pairs of classes, and users' own.

Rows are ``P Q: formula``, of the parameters of ``p`` and ``q``; without ``Q`` both are of one
class, and ``A|B`` stands for several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import product
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from numgrad.torch.distributions import counts, line, vectors
from numgrad.torch.distributions.composed import Independent, TransformedDistribution
from numgrad.torch.distributions.constraints import torch
from numgrad.torch.distributions.distribution import EULER, HALF_LOG_2PI, Distribution  # noqa: F401
from numgrad.torch.distributions.transforms import sum_rightmost

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
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in KL_REGISTRY:
                return KL_REGISTRY[a, b](p, q)
    raise NumgradNotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
        f"{type(q).__name__}; add it by register_kl"
    )


def _as_gamma(d: Any) -> tuple[Any, Any]:
    """Concentration and rate of a distribution that is one of the gamma family."""
    a = 0.5 * d.df if hasattr(d, "df") else getattr(d, "concentration", None)
    rate = d.rate if hasattr(d, "rate") else torch.full_like(d.df, 0.5)
    return torch.ones_like(rate) if a is None else a, rate


def _gammas(p: Any, q: Any) -> Any:
    """Divergence of two of the gamma family."""
    (a, rate), (b, other) = _as_gamma(p), _as_gamma(q)
    return (
        (a - b) * torch.digamma(a) - torch.lgamma(a) + torch.lgamma(b)
        + b * (rate / other).log() + a * (other / rate - 1)
    )  # fmt: skip


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
    if (p.total_count > q.total_count).any():
        return torch.full_like(p.probs + q.probs, math.inf)
    if (p.total_count < q.total_count).any():
        raise NumgradNotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    return p.total_count * _coins(p, q)


def _normal_vectors(p: Any, q: Any) -> Any:
    """Divergence of normal vectors, by Cholesky factors of their covariances."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    n, (a, b) = p.event_shape[0], (d.scale_tril for d in (p, q))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    ratio = torch.linalg.solve_triangular(b.expand(shape), a.expand(shape), upper=False)
    trace = ratio.pow(2).sum((-2, -1))
    distance = vectors._quadratic(b, q.loc - p.loc)
    return vectors._half_log_det(b) - vectors._half_log_det(a) + 0.5 * (trace + distance - n)


def _to_normal(p: Any, q: Any) -> Any:
    """Divergence of a normal distribution from one with a mean and a variance."""
    log = q.scale.log() + HALF_LOG_2PI
    return log - p.entropy() + 0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.scale**2


def _infinite(p: Any, q: Any) -> Any:
    """Divergence where ``p`` has numbers outside of the support of ``q``."""
    return torch.full(torch.broadcast_shapes(p.batch_shape, q.batch_shape), math.inf)


TABLE = """
Normal: 0.5 * ((p.scale / q.scale) ** 2 + ((p.loc - q.loc) / q.scale) ** 2 - 1) - (
    p.scale / q.scale).log()
LogNormal: kl_divergence(_NORMAL(p.loc, p.scale), _NORMAL(q.loc, q.scale))
HalfNormal: 0.5 * ((p.scale / q.scale) ** 2 - 1) - (p.scale / q.scale).log()
Laplace: (q.scale / p.scale).log() + (p.loc - q.loc).abs() / q.scale + p.scale / q.scale * (
    -(p.loc - q.loc).abs() / p.scale).exp() - 1
Cauchy: (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()
Uniform: torch.where((q.low > p.low) | (q.high < p.high), math.inf, (
    (q.high - q.low) / (p.high - p.low)).log())
Beta: _dirichlets(*(torch.stack([d.concentration1, d.concentration0], -1) for d in (p, q)))
Gumbel: (q.scale / p.scale).log() + EULER * (p.scale / q.scale - 1) + (p.loc - q.loc) / q.scale + (
    (q.loc - p.loc) / q.scale + torch.lgamma(1 + p.scale / q.scale)).exp() - 1
Pareto: torch.where(p.scale < q.scale, math.inf, q.alpha * (p.scale / q.scale).log() + (
    p.alpha / q.alpha).log() + q.alpha / p.alpha - 1)
Normal Laplace: (2 * q.scale).log() - p.entropy() + (p.scale * math.sqrt(2 / math.pi) * (
    -0.5 * ((p.loc - q.loc) / p.scale) ** 2).exp() + (p.loc - q.loc) * torch.erf(
    (p.loc - q.loc) / (p.scale * math.sqrt(2)))) / q.scale
Laplace|Uniform|Exponential|Gamma|Gumbel|Beta|Chi2|Pareto Normal: _to_normal(p, q)
Exponential|Gamma|Chi2 Exponential|Gamma|Chi2: _gammas(p, q)
Poisson: p.rate * (p.rate / q.rate).log() - (p.rate - q.rate)
Geometric: -p.entropy() - torch.log1p(-q.probs) * p.mean - q.probs.log()
Bernoulli: _coins(p, q)
Binomial: _binomials(p, q)
Categorical: _classes(p, q)
OneHotCategorical: _classes(p, q)
Dirichlet: _dirichlets(p.concentration, q.concentration)
MultivariateNormal|LowRankMultivariateNormal MultivariateNormal|LowRankMultivariateNormal:
    _normal_vectors(p, q)
Normal|Laplace|Gumbel Uniform|Exponential|Gamma|Chi2|Beta|Pareto: _infinite(p, q)
Exponential|Gamma|Chi2|Pareto Uniform|Beta: _infinite(p, q)
Exponential|Gamma|Chi2|Beta Pareto: _infinite(p, q)
Poisson Bernoulli|Binomial: _infinite(p, q)
"""
_KINDS = {**line.CLASSES, **counts.CLASSES, **vectors.CLASSES}
_NORMAL: Any = _KINDS["Normal"]
for _row in re.split(r"\n(?=\w)", TABLE.strip()):
    _pair, _text = re.sub(r"\s+", " ", _row).split(": ", 1)
    _first, *_rest = _pair.split()
    _formula = eval(f"lambda p, q: {_text}", globals())
    _pairs = product(_first.split("|"), _rest[0].split("|")) if _rest else [(_first, _first)]
    for _p, _q in _pairs:
        register_kl(_KINDS[_p], _KINDS[_q])(_formula)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NumgradNotImplementedError("the numbers of axes of the events differ")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NumgradNotImplementedError("the transforms differ")
    base = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(base, base.dim() - len(p.batch_shape))
