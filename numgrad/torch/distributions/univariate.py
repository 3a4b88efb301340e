"""Distributions of one number: Note [Rows of distributions] in ``tables``."""

from __future__ import annotations

import math
from typing import Any

from numgrad.errors import NumgradNotImplementedError
from numgrad.tensors.reparameterised import PATHS
from numgrad.torch.distributions import tables
from numgrad.torch.distributions.utils import torch
from numgrad.torch.nn.functional import softplus
from numgrad.torch.wrapping import wrap


def nan_unless(ok: Any, value: Any) -> Any:
    """A moment where there is one."""
    return torch.where(ok, value, torch.full_like(value, math.nan))


def beta_path(x: Any, a: Any, b: Any) -> Any:
    """Beta numbers ``x``, with their implicit gradients in the parameters."""
    given = [p.double()._tensor for p in (a, b)]
    return wrap(PATHS["beta"](x.double()._tensor, (), *given)).to(a.dtype)


def moment(a: Any, b: Any, n: int) -> Any:
    """Moment of a Kumaraswamy distribution."""
    at = 1 + n / a
    return (b.log() + torch.lgamma(at) + torch.lgamma(b) - torch.lgamma(at + b)).exp()


def log_chosen(n: Any, k: Any) -> Any:
    """Logarithm of the binomial coefficient."""
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


def coin_entropy(logits: Any, probs: Any) -> Any:
    """Entropy of a coin, of its ``logits`` and ``probs``."""
    return softplus(-logits) + (1 - probs) * torch.where(torch.isinf(logits), 0.0, logits)


def counts_to(total_count: Any) -> Any:
    """The integers to a number of draws, which has to be one for the whole batch."""
    n = int(total_count.max())
    if int(total_count.min()) != n:
        raise NumgradNotImplementedError(
            "Inhomogeneous total count not supported by `enumerate_support`."
        )
    return torch.arange(1 + n, dtype=total_count.dtype)


TABLE = """
Normal(loc: real, scale: positive) on real by norm(loc, scale)
  mode: loc
  rsample: loc + scale * torch.randn(shape, dtype=loc.dtype)
LogNormal(loc: real, scale: positive) on positive
  base_dist: Normal(loc, scale)
  transforms: [ExpTransform()]
  mean: (loc + 0.5 * scale**2).exp()
  mode: (loc - scale**2).exp()
  variance: torch.expm1(scale**2) * (2 * loc + scale**2).exp()
  entropy: self.base_dist.entropy() + loc
HalfNormal(scale: positive) on nonnegative by halfnorm(0, scale)
  mode: torch.zeros_like(scale)
  inside: value >= 0
Cauchy(loc: real, scale: positive) on real by cauchy(loc, scale)
  mode: loc
  mean: torch.full_like(loc, math.nan)
  variance: torch.full_like(loc, math.inf)
  rsample: loc + scale * torch.empty(shape, dtype=loc.dtype).cauchy_()
HalfCauchy(scale: positive) on nonnegative by halfcauchy(0, scale)
  rsample: scale * torch.empty(shape, dtype=scale.dtype).cauchy_().abs()
  mean: torch.full_like(scale, math.inf)
  mode: torch.zeros_like(scale)
  variance: torch.full_like(scale, math.inf)
  inside: value >= 0
Laplace(loc: real, scale: positive) on real by laplace(loc, scale)
  mode: loc
Uniform(low: less_than(high), high: greater_than(low)) on interval(low, high)
    by uniform(low, high - low)
  mode: torch.full_like(low, math.nan)
  inside: (low <= value) & (value < high)
  cdf: ((value - low) / (high - low)).clamp(0, 1)
Exponential(rate: positive) on nonnegative by expon(0, 1 / rate)
  mode: torch.zeros_like(rate)
Gamma(concentration: positive, rate: positive) on nonnegative
    by gamma(0, 1 / rate, concentration)
  _takes_numbers: True
  mode: ((concentration - 1) / rate).clamp(min=0)
Chi2(df: positive) on nonnegative as Gamma
  concentration: 0.5 * df
  rate: torch.full_like(df, 0.5)
InverseGamma(concentration: positive, rate: positive) on positive
    by invgamma(0, rate, concentration)
  mode: rate / (concentration + 1)
Beta(concentration1: positive, concentration0: positive) on unit_interval
    by beta(0, 1, concentration1, concentration0)
  mode: torch.where((concentration1 <= 1) & (concentration0 <= 1), math.nan, torch.where(
    (concentration1 < 1) | (concentration0 < 1), (concentration1 > concentration0).to(
    concentration1.dtype), (concentration1 - 1) / (concentration1 + concentration0 - 2)))
  rsample: beta_path(inside(self.support, drawn("beta", shape, concentration1.detach(),
    concentration0.detach())), concentration1, concentration0)
FisherSnedecor(df1: positive, df2: positive) on positive by f(0, 1, df1, df2)
  mean: nan_unless(df2 > 2, df2 / (df2 - 2))
  mode: nan_unless(df1 > 2, (df1 - 2) / df1 * df2 / (df2 + 2))
  variance: nan_unless(df2 > 4, 2 * df2**2 * (df1 + df2 - 2) / (
    df1 * (df2 - 2) ** 2 * (df2 - 4)))
StudentT(df: positive, loc: real = 0.0, scale: positive = 1.0) on real by t(loc, scale, df)
  mean: nan_unless(df > 1, loc)
  mode: loc
Gumbel(loc: real, scale: positive) on real by gumbel_r(loc, scale)
  mode: loc
Weibull(scale: positive, concentration: positive) on positive
    by weibull_min(0, scale, concentration)
  mode: scale * ((concentration - 1).clamp(min=0) / concentration) ** (1 / concentration)
Pareto(scale: positive, alpha: positive) on greater_than_eq(scale) by pareto(0, scale, alpha)
  mode: scale
GeneralizedPareto(loc: real, scale: positive, concentration: real) on interval(
    loc, torch.where(concentration < 0, loc - scale / concentration, torch.inf))
    by genpareto(loc, scale, concentration)
  mean: nan_unless(concentration < 1, loc + scale / (1 - concentration))
  mode: loc
  variance: nan_unless(concentration < 0.5, scale**2 / (
    (1 - concentration) ** 2 * (1 - 2 * concentration)))
Kumaraswamy(concentration1: positive, concentration0: positive) on unit_interval
  base_dist: Uniform(torch.zeros_like(concentration0), 1)
  transforms: [PowerTransform(1 / concentration0), AffineTransform(1, -1),
    PowerTransform(1 / concentration1)]
  mean: moment(concentration1, concentration0, 1)
  mode: nan_unless((concentration1 >= 1) & (concentration0 >= 1) & (
    concentration1 * concentration0 != 1), ((concentration1 - 1) / (
    concentration1 * concentration0 - 1)) ** (1 / concentration1))
  variance: moment(concentration1, concentration0, 2) - self.mean**2
  entropy: 1 - 1 / concentration0 + (1 - 1 / concentration1) * (torch.digamma(
    concentration0 + 1) + euler_constant) - (concentration1 * concentration0).log()
VonMises(loc: real, concentration: positive) on real by vonmises(loc, 1, concentration)
  mode: loc
  variance: 1 - torch.special.i1e(concentration) / torch.special.i0e(concentration)
  sample: drawn("vonmises", shape, loc, concentration)
Bernoulli(probs: unit_interval | logits: real) on boolean by bernoulli(0, 1, probs)
  mode: torch.where(probs == 0.5, math.nan, (probs >= 0.5).to(probs.dtype))
  log_prob: torch.where(torch.isinf(logits), -softplus((1 - 2 * value) * logits),
    value * logits - softplus(logits))
  entropy: coin_entropy(logits, probs)
  sample: torch.bernoulli(probs.expand(shape))
  values: torch.arange(2, dtype=self._param.dtype)
ContinuousBernoulli(probs: unit_interval | logits: real, lims = (0.499, 0.501)) on unit_interval
    by continuous_bernoulli(0, 1, probs_to_logits(probs, True))
Binomial(total_count: nonnegative_integer = 1, probs: unit_interval | logits: real)
    on integer_interval(0, total_count) by binom(0, 1, total_count, probs)
  mode: torch.where(probs == 1, total_count, ((total_count + 1) * probs).floor())
  log_prob: log_chosen(total_count, value) + torch.where(value == 0, 0.0, value) * logits - (
    total_count * softplus(logits))
  sample: drawn("binomial", shape, total_count.long(), probs).to(probs.dtype)
  values: counts_to(total_count)
NegativeBinomial(total_count: greater_than_eq(0), probs: half_open_interval(0.0, 1.0)
    | logits: real) on nonnegative_integer
  mean: total_count * logits.exp()
  mode: ((total_count - 1) * logits.exp()).floor().clamp(min=0)
  variance: self.mean / torch.sigmoid(-logits)
  log_prob: torch.where(total_count + value == 0, 0.0, -total_count * softplus(logits) + (
    value * -softplus(-logits)) + torch.lgamma(total_count + value) - torch.lgamma(
    1 + value) - torch.lgamma(total_count))
  sample: drawn("poisson", shape, drawn("standard_gamma", shape, total_count) * logits.exp()).to(
    logits.dtype)
Geometric(probs: unit_interval | logits: real) on nonnegative_integer by geom(-1, 1, probs)
  _check: (self._alternative == 'logits') | (probs > 0)
  mode: torch.zeros_like(probs)
  log_prob: value * torch.log1p(-torch.where((probs == 1) & (value == 0), 0.0, probs)) + probs.log()
  entropy: coin_entropy(logits, probs) / probs
  sample: (inner_uniform(shape, probs).log() / torch.log1p(-probs)).floor()
Poisson(rate: nonnegative) on nonnegative_integer by poisson(0, 1, rate)
  mode: rate.floor()
  log_prob: torch.xlogy(value, rate) - rate - torch.lgamma(value + 1)
  sample: torch.poisson(rate.expand(shape))
LogitRelaxedBernoulli(temperature, probs: unit_interval | logits: real) on real
    by logistic(logits / temperature, 1 / temperature)
RelaxedBernoulli(temperature, probs: unit_interval | logits: real) on unit_interval
  base_dist: LogitRelaxedBernoulli(temperature, **self._given)
  transforms: [SigmoidTransform()]
"""
CLASSES = tables.declare(TABLE, globals())
globals().update(CLASSES)
