"""Distributions of one number with a density: Note [Rows of distributions] in ``distribution``."""

from __future__ import annotations

import math
from typing import Any

from numgrad.torch.distributions import distribution
from numgrad.torch.distributions.constraints import torch
from numgrad.torch.distributions.distribution import (  # noqa: F401 - names of formulas
    EULER,
    HALF_LOG_2PI,
    above_zero,
    beta_drawn,
    drawn,
    inner_probs,
    inner_uniform,
)  # fmt: skip

ROOT2 = math.sqrt(2)


def nan_unless(ok: Any, value: Any, otherwise: float = math.nan) -> Any:
    """A moment where there is one."""
    return torch.where(ok, value, torch.full_like(value, otherwise))


def moment(a: Any, b: Any, n: int) -> Any:
    """Moment of a Kumaraswamy distribution."""
    at = 1 + n / a
    return (b.log() + torch.lgamma(at) + torch.lgamma(b) - torch.lgamma(at + b)).exp()


TABLE = """
Normal(loc: real, scale: positive) on real by norm(loc, scale)
  mode: loc
  rsample: loc + scale * torch.randn(shape, dtype=loc.dtype)
LogNormal(loc: real, scale: positive) on positive by lognorm(0, loc.exp(), scale)
  mode: (loc - scale**2).exp()
  log_prob: -0.5 * ((value.log() - loc) / scale) ** 2 - scale.log() - HALF_LOG_2PI - value.log()
  cdf: 0.5 * (1 + torch.erf((value.log() - loc) / (scale * ROOT2)))
  entropy: 0.5 + HALF_LOG_2PI + scale.log() + loc
HalfNormal(scale: positive) on greater_than_eq(0.0) by halfnorm(0, scale)
  mode: torch.zeros_like(scale)
  log_prob: torch.where(value >= 0,
    -0.5 * (value / scale) ** 2 - scale.log() - HALF_LOG_2PI + math.log(2), -math.inf)
  cdf: torch.erf(value / (scale * ROOT2)).clamp(min=0)
Cauchy(loc: real, scale: positive) on real by cauchy(loc, scale)
  mode: loc
  mean: torch.full_like(loc, math.nan)
  variance: torch.full_like(loc, math.inf)
  rsample: loc + scale * torch.empty(shape, dtype=loc.dtype).cauchy_()
HalfCauchy(scale: positive) on greater_than_eq(0.0)
  mean: torch.full_like(scale, math.inf)
  mode: torch.zeros_like(scale)
  variance: torch.full_like(scale, math.inf)
  log_prob: torch.where(value >= 0,
    math.log(2 / math.pi) - scale.log() - torch.log1p((value / scale) ** 2), -math.inf)
  cdf: (torch.atan(value / scale) * (2 / math.pi)).clamp(min=0)
  icdf: torch.tan(math.pi / 2 * value) * scale
  entropy: math.log(2 * math.pi) + scale.log()
  rsample: (scale * torch.empty(shape, dtype=scale.dtype).cauchy_()).abs()
Laplace(loc: real, scale: positive) on real by laplace(loc, scale)
  mode: loc
Uniform(low: _dependent(is_discrete=False, event_dim=0),
    high: _dependent(is_discrete=False, event_dim=0)) on interval(low, high)
    by uniform(low, high - low)
  _check: low < high
  mode: torch.full_like(low, math.nan)
  log_prob: torch.where((low <= value) & (value < high), 0.0, -math.inf) - (high - low).log()
  cdf: ((value - low) / (high - low)).clamp(0, 1)
Exponential(rate: positive) on greater_than_eq(0.0) by expon(0, 1 / rate)
  mode: torch.zeros_like(rate)
Gamma(concentration: positive, rate: positive) on greater_than_eq(0.0)
    by gamma(0, 1 / rate, concentration)
  mode: ((concentration - 1) / rate).clamp(min=0)
  rsample: above_zero(drawn("standard_gamma", shape, concentration) / rate)
Chi2(df: positive) on greater_than_eq(0.0) by chi2(0, 1, df)
  mode: (df - 2).clamp(min=0)
  rsample: above_zero(2 * drawn("standard_gamma", shape, 0.5 * df))
Beta(concentration1: positive, concentration0: positive) on unit_interval
    by beta(0, 1, concentration1, concentration0)
  mode: torch.where((concentration1 <= 1) & (concentration0 <= 1), math.nan, torch.where(
    (concentration1 < 1) | (concentration0 < 1), (concentration1 > concentration0).to(
    concentration1.dtype), (concentration1 - 1) / (concentration1 + concentration0 - 2)))
  rsample: beta_drawn(shape, concentration1, concentration0)
StudentT(df: positive, loc: real = 0.0, scale: positive = 1.0) on real by t(loc, scale, df)
  mean: nan_unless(df > 1, loc)
  mode: loc
Gumbel(loc: real, scale: positive) on real by gumbel_r(loc, scale)
  mode: loc
Weibull(scale: positive, concentration: positive) on positive
    by weibull_min(0, scale, concentration)
  mode: scale * ((concentration - 1).clamp(min=0) / concentration) ** (1 / concentration)
  rsample: scale * above_zero(-inner_uniform(shape, scale).log()) ** (1 / concentration)
Pareto(scale: positive, alpha: positive) on greater_than_eq(scale) by pareto(0, scale, alpha)
  mode: scale
Kumaraswamy(concentration1: positive, concentration0: positive) on unit_interval
  mean: moment(concentration1, concentration0, 1)
  mode: nan_unless((concentration1 >= 1) & (concentration0 >= 1) & (
    concentration1 * concentration0 != 1), ((concentration1 - 1) / (
    concentration1 * concentration0 - 1)) ** (1 / concentration1))
  variance: moment(concentration1, concentration0, 2) - moment(
    concentration1, concentration0, 1) ** 2
  log_prob: (concentration1 * concentration0).log() + (concentration1 - 1) * value.log() + (
    concentration0 - 1) * torch.log1p(-(value**concentration1))
  cdf: 1 - (1 - value**concentration1) ** concentration0
  icdf: (-torch.expm1(torch.log1p(-value) / concentration0)) ** (1 / concentration1)
  entropy: 1 - 1 / concentration0 + (1 - 1 / concentration1) * (torch.digamma(
    concentration0 + 1) + EULER) - (concentration1 * concentration0).log()
  rsample: inner_probs((-torch.expm1(torch.log(inner_uniform(
    shape, concentration1)) / concentration0)) ** (1 / concentration1))
VonMises(loc: real, concentration: positive) on real by vonmises(loc, 1, concentration)
  mode: loc
  variance: 1 - torch.special.i1e(concentration) / torch.special.i0e(concentration)
  sample: drawn("vonmises", shape, loc, concentration)
"""
CLASSES = {cls.__name__: cls for cls in distribution.declare(TABLE, globals())}
