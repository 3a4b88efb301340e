"""Distributions of counts and of probabilities between: rows, of ``probs`` or ``logits``."""

from __future__ import annotations

import math  # noqa: F401 - a name of formulas
from typing import Any

from numgrad.errors import NumgradNotImplementedError
from numgrad.torch.distributions import distribution
from numgrad.torch.distributions.constraints import (  # noqa: F401 - names of formulas
    boolean,
    integer_interval,
    nonnegative_integer,
    torch,
    unit_interval,
)  # fmt: skip
from numgrad.torch.distributions.distribution import (  # noqa: F401
    drawn,
    given_parameter,
    inner_probs,
    inner_uniform,
)  # fmt: skip
from numgrad.torch.nn.functional import softplus


def log_chosen(n: Any, k: Any) -> Any:
    """Logarithm of the binomial coefficient."""
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


def binary_entropy(logits: Any, probs: Any) -> Any:
    """Entropy of a coin, of its ``logits`` and ``probs``."""
    return softplus(-logits) + (1 - probs) * torch.where(torch.isinf(logits), 0.0, logits)


def coin_log_prob(logits: Any, value: Any) -> Any:
    """Logarithm of the probability of 1 or 0; ``value`` may be between them."""
    return value * logits - softplus(logits)


def binomial_entropy(self: Any) -> Any:
    """Entropy of binomial distributions with one number of draws, by their support."""
    log_prob = self.log_prob(self.enumerate_support(False))
    return -(log_prob.exp() * log_prob).sum(0)


def counts_to(total_count: Any) -> Any:
    """The integers to a number of draws, which has to be one for the whole batch."""
    n = int(total_count.max())
    if int(total_count.min()) != n:
        raise NumgradNotImplementedError(
            "Inhomogeneous total count not supported by `enumerate_support`."
        )
    return torch.arange(1 + n, dtype=total_count.dtype)


TABLE = """
Bernoulli(probs: unit_interval | logits: real) on boolean
  mean: probs
  mode: torch.where(probs == 0.5, math.nan, (probs >= 0.5).to(probs.dtype))
  variance: probs * (1 - probs)
  log_prob: torch.where(torch.isinf(logits), torch.where(
    (logits > 0) == (value == 1), 0.0, -math.inf), coin_log_prob(
    torch.where(torch.isinf(logits), 0.0, logits), value))
  entropy: binary_entropy(logits, probs)
  sample: torch.bernoulli(probs.expand(shape))
  values: torch.arange(2, dtype=given_parameter(self).dtype)
Binomial(total_count: nonnegative_integer = 1, probs: unit_interval | logits: real)
    on integer_interval(0, total_count)
  mean: total_count * probs
  mode: torch.where(probs == 1, total_count, ((total_count + 1) * probs).floor())
  variance: total_count * probs * (1 - probs)
  log_prob: log_chosen(total_count, value) + torch.where(value == 0, 0.0, value) * logits - (
    total_count * softplus(logits))
  entropy: binomial_entropy(self)
  sample: drawn("binomial", shape, total_count.long(), probs).to(probs.dtype)
  values: counts_to(total_count)
NegativeBinomial(total_count: greater_than_eq(0), probs: half_open_interval(0.0, 1.0)
    | logits: real) on nonnegative_integer
  mean: total_count * logits.exp()
  mode: ((total_count - 1) * logits.exp()).floor().clamp(min=0)
  variance: total_count * logits.exp() * (1 + logits.exp())
  log_prob: torch.where(total_count + value == 0, 0.0, -total_count * softplus(logits) + (
    value * -softplus(-logits)) + torch.lgamma(total_count + value) - torch.lgamma(
    1 + value) - torch.lgamma(total_count))
  sample: drawn("poisson", shape, drawn("standard_gamma", shape, total_count) * logits.exp()).to(
    logits.dtype)
Geometric(probs: unit_interval | logits: real) on nonnegative_integer
  _check: given_parameter(self) > (0 if 'probs' in vars(self) else -math.inf)
  mean: 1 / probs - 1
  mode: torch.zeros_like(probs)
  variance: (1 / probs - 1) / probs
  log_prob: value * torch.log1p(-torch.where((probs == 1) & (value == 0), 0.0, probs)) + probs.log()
  entropy: binary_entropy(logits, probs) / probs
  sample: (inner_uniform(shape, probs).log() / torch.log1p(-probs)).floor()
Poisson(rate: nonnegative) on nonnegative_integer
  mean: rate
  mode: rate.floor()
  variance: rate
  log_prob: torch.xlogy(value, rate) - rate - torch.lgamma(value + 1)
  sample: torch.poisson(rate.expand(shape))
"""
CLASSES = {cls.__name__: cls for cls in distribution.declare(TABLE, globals())}
