"""Distributions of one number with a density: Note [Rows of distributions] in ``distribution``."""

from __future__ import annotations

import math
from typing import Any

from numgrad.torch.distributions import distribution
from numgrad.torch.distributions.constraints import (  # noqa: F401 - names of formulas
    greater_than,
    greater_than_eq,
    half_open_interval,
    interval,
    positive,
    real,
    torch,
)  # fmt: skip
from numgrad.torch.distributions.distribution import (  # noqa: F401
    EULER,
    HALF_LOG_2PI,
    ROOT2,
    above_zero,
    beta_drawn,
    drawn,
    inner_probs,
    inner_uniform,
)  # fmt: skip
from numgrad.torch.nn.functional import binary_cross_entropy_with_logits, softplus  # noqa: F401


def betaln(a: Any, b: Any) -> Any:
    """Logarithm of the beta function."""
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


def log_i0(x: Any) -> Any:
    """Logarithm of the modified Bessel function of order 0."""
    return torch.log(torch.special.i0e(x)) + x


def nan_unless(ok: Any, value: Any, otherwise: float = math.nan) -> Any:
    """A moment where there is one."""
    return torch.where(ok, value, torch.full_like(value, otherwise))


def moment(a: Any, b: Any, n: int) -> Any:
    """Moment of a Kumaraswamy distribution."""
    return (b.log() + betaln(1 + n / a, b)).exp()


TABLE = """
Normal(loc: real, scale: positive) on real
  mean: loc
  mode: loc
  variance: scale.pow(2)
  log_prob: -0.5 * ((value - loc) / scale) ** 2 - scale.log() - HALF_LOG_2PI
  cdf: 0.5 * (1 + torch.erf((value - loc) / (scale * ROOT2)))
  icdf: loc + scale * torch.erfinv(2 * value - 1) * ROOT2
  entropy: 0.5 + HALF_LOG_2PI + scale.log()
  rsample: loc + scale * torch.randn(shape, dtype=loc.dtype)
LogNormal(loc: real, scale: positive) on positive
  mean: (loc + 0.5 * scale**2).exp()
  mode: (loc - scale**2).exp()
  variance: torch.expm1(scale**2) * (2 * loc + scale**2).exp()
  log_prob: -0.5 * ((value.log() - loc) / scale) ** 2 - scale.log() - HALF_LOG_2PI - value.log()
  cdf: 0.5 * (1 + torch.erf((value.log() - loc) / (scale * ROOT2)))
  icdf: (loc + scale * torch.erfinv(2 * value - 1) * ROOT2).exp()
  entropy: 0.5 + HALF_LOG_2PI + scale.log() + loc
  rsample: (loc + scale * torch.randn(shape, dtype=loc.dtype)).exp()
HalfNormal(scale: positive) on greater_than_eq(0.0)
  mean: scale * math.sqrt(2 / math.pi)
  mode: torch.zeros_like(scale)
  variance: scale**2 * (1 - 2 / math.pi)
  log_prob: torch.where(value >= 0,
    -0.5 * (value / scale) ** 2 - scale.log() - HALF_LOG_2PI + math.log(2), -math.inf)
  cdf: torch.erf(value / (scale * ROOT2)).clamp(min=0)
  icdf: scale * torch.erfinv(value) * ROOT2
  entropy: 0.5 + HALF_LOG_2PI + scale.log() - math.log(2)
  rsample: (scale * torch.randn(shape, dtype=scale.dtype)).abs()
Cauchy(loc: real, scale: positive) on real
  mean: torch.full_like(loc, math.nan)
  mode: loc
  variance: torch.full_like(loc, math.inf)
  log_prob: -math.log(math.pi) - scale.log() - torch.log1p(((value - loc) / scale) ** 2)
  cdf: torch.atan((value - loc) / scale) / math.pi + 0.5
  icdf: torch.tan(math.pi * (value - 0.5)) * scale + loc
  entropy: math.log(4 * math.pi) + scale.log()
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
Laplace(loc: real, scale: positive) on real
  mean: loc
  mode: loc
  variance: 2 * scale.pow(2)
  log_prob: -torch.log(2 * scale) - (value - loc).abs() / scale
  cdf: 0.5 - 0.5 * (value - loc).sign() * torch.expm1(-(value - loc).abs() / scale)
  icdf: loc - scale * (value - 0.5).sign() * torch.log1p(-2 * (value - 0.5).abs())
  entropy: 1 + torch.log(2 * scale)
  rsample: loc + scale * drawn("laplace", shape).to(loc.dtype)
Uniform(low: _dependent(is_discrete=False, event_dim=0),
    high: _dependent(is_discrete=False, event_dim=0)) on interval(low, high)
  _check: low < high
  mean: (low + high) / 2
  mode: torch.full_like(low, math.nan)
  variance: (high - low).pow(2) / 12
  log_prob: torch.where((low <= value) & (value < high), 0.0, -math.inf) - (high - low).log()
  cdf: ((value - low) / (high - low)).clamp(0, 1)
  icdf: value * (high - low) + low
  entropy: (high - low).log()
  rsample: low + torch.rand(shape, dtype=low.dtype) * (high - low)
Exponential(rate: positive) on greater_than_eq(0.0)
  mean: rate.reciprocal()
  mode: torch.zeros_like(rate)
  variance: rate.pow(-2)
  log_prob: rate.log() - rate * value
  cdf: -torch.expm1(-rate * value)
  icdf: -torch.log1p(-value) / rate
  entropy: 1 - rate.log()
  rsample: torch.empty(shape, dtype=rate.dtype).exponential_() / rate
Gamma(concentration: positive, rate: positive) on greater_than_eq(0.0)
  mean: concentration / rate
  mode: ((concentration - 1) / rate).clamp(min=0)
  variance: concentration / rate.pow(2)
  log_prob: torch.xlogy(concentration, rate) + torch.xlogy(
    concentration - 1, value) - rate * value - torch.lgamma(concentration)
  cdf: torch.special.gammainc(concentration, rate * value)
  entropy: concentration - rate.log() + torch.lgamma(
    concentration) + (1 - concentration) * torch.digamma(concentration)
  rsample: above_zero(drawn("standard_gamma", shape, concentration) / rate)
Chi2(df: positive) on greater_than_eq(0.0)
  mean: df
  mode: (df - 2).clamp(min=0)
  variance: 2 * df
  log_prob: -0.5 * df * math.log(2) + torch.xlogy(
    0.5 * df - 1, value) - 0.5 * value - torch.lgamma(0.5 * df)
  cdf: torch.special.gammainc(0.5 * df, 0.5 * value)
  entropy: 0.5 * df + math.log(2) + torch.lgamma(
    0.5 * df) + (1 - 0.5 * df) * torch.digamma(0.5 * df)
  rsample: above_zero(2 * drawn("standard_gamma", shape, 0.5 * df))
Beta(concentration1: positive, concentration0: positive) on unit_interval
  mean: concentration1 / (concentration1 + concentration0)
  mode: torch.where((concentration1 <= 1) & (concentration0 <= 1), math.nan, torch.where(
    (concentration1 < 1) | (concentration0 < 1), (concentration1 > concentration0).to(
    concentration1.dtype), (concentration1 - 1) / (concentration1 + concentration0 - 2)))
  variance: concentration1 * concentration0 / (
    (concentration1 + concentration0) ** 2 * (concentration1 + concentration0 + 1))
  log_prob: torch.xlogy(concentration1 - 1, value) + torch.special.xlog1py(
    concentration0 - 1, -value) - betaln(concentration1, concentration0)
  entropy: betaln(concentration1, concentration0) - (concentration1 - 1) * torch.digamma(
    concentration1) - (concentration0 - 1) * torch.digamma(concentration0) + (
    concentration1 + concentration0 - 2) * torch.digamma(concentration1 + concentration0)
  rsample: beta_drawn(shape, concentration1, concentration0)
StudentT(df: positive, loc: real = 0.0, scale: positive = 1.0) on real
  mean: nan_unless(df > 1, loc)
  mode: loc
  variance: nan_unless(df > 1, nan_unless(df > 2, scale**2 * df / (df - 2), math.inf))
  log_prob: -0.5 * (df + 1) * torch.log1p(((value - loc) / scale) ** 2 / df) - scale.log() - (
    0.5 * df.log()) - betaln(0.5 * df, torch.full_like(df, 0.5))
  entropy: scale.log() + 0.5 * (df + 1) * (torch.digamma(0.5 * (df + 1)) - torch.digamma(
    0.5 * df)) + 0.5 * df.log() + betaln(0.5 * df, torch.full_like(df, 0.5))
  rsample: loc + scale * drawn("standard_t", shape, df)
Gumbel(loc: real, scale: positive) on real
  mean: loc + scale * EULER
  mode: loc
  variance: scale**2 * (math.pi**2 / 6)
  log_prob: (loc - value) / scale - ((loc - value) / scale).exp() - scale.log()
  cdf: (-((loc - value) / scale).exp()).exp()
  icdf: loc - scale * (-value.log()).log()
  entropy: scale.log() + (1 + EULER)
  rsample: loc - scale * (-inner_uniform(shape, loc).log()).log()
Weibull(scale: positive, concentration: positive) on positive
  mean: scale * torch.lgamma(1 + 1 / concentration).exp()
  mode: scale * ((concentration - 1).clamp(min=0) / concentration) ** (1 / concentration)
  variance: scale**2 * (torch.lgamma(1 + 2 / concentration).exp() - (
    2 * torch.lgamma(1 + 1 / concentration)).exp())
  log_prob: (concentration / scale).log() + (concentration - 1) * (value / scale).log() - (
    value / scale) ** concentration
  cdf: -torch.expm1(-((value / scale) ** concentration))
  icdf: scale * (-torch.log1p(-value)) ** (1 / concentration)
  entropy: EULER * (1 - 1 / concentration) + (scale / concentration).log() + 1
  rsample: scale * above_zero(-inner_uniform(shape, scale).log()) ** (1 / concentration)
Pareto(scale: positive, alpha: positive) on greater_than_eq(scale)
  mean: torch.where(alpha > 1, alpha * scale / (alpha - 1), math.inf)
  mode: scale
  variance: torch.where(alpha > 2,
    scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2)), math.inf)
  log_prob: (alpha / scale).log() - (alpha + 1) * (value / scale).log()
  cdf: 1 - (scale / value) ** alpha
  icdf: scale * (-torch.log1p(-value) / alpha).exp()
  entropy: (scale / alpha).log() + 1 + 1 / alpha
  rsample: scale * (torch.empty(shape, dtype=scale.dtype).exponential_() / alpha).exp()
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
VonMises(loc: real, concentration: positive) on real
  mean: loc
  mode: loc
  variance: 1 - torch.special.i1e(concentration) / torch.special.i0e(concentration)
  log_prob: concentration * torch.cos(value - loc) - math.log(
    2 * math.pi) - log_i0(concentration)
  entropy: math.log(2 * math.pi) + log_i0(concentration) - concentration * (
    torch.special.i1e(concentration) / torch.special.i0e(concentration))
  sample: drawn("vonmises", shape, loc, concentration)
"""
CLASSES = {cls.__name__: cls for cls in distribution.declare(TABLE, globals())}
