"""Losses of one prediction and one target, element by element; ``nn.functional`` reduces them.

Targets have gradients too. A loss whose target is a probability has ``x`` first, as the others.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.core.declare import elementwise, primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradValueError
from numgrad.operations.real import real_elementwise, scipy_special
from numgrad.operations.special import sigmoid, softplus

_loss = partial(real_elementwise, method=False, internal=True)

LOWEST_LOG = -100.0
"""Logarithms of probabilities are not taken as smaller, so that a wrong certainty stays finite."""
SMALLEST_VARIANCE = 1e-12
"""Of a Bernoulli variable, in a denominator."""


@_loss(ref=lambda x, t: np.square(x - t), smooth=True)
def squared_error(x, target):
    """Square of the difference."""
    return np.square(x - target)


squared_error.vjp(
    x=lambda g, x, target: g * (2 * (x - target)),
    target=lambda g, x, target: g * (2 * (target - x)),
)


def _magnitude_types(operands):
    loop, dtype = resolve(np.true_divide, operands)  # floating or complex
    return loop, resolve(np.absolute, [dtype])[1]


@elementwise(
    types=_magnitude_types,
    method=False,
    internal=True,
    special=(0.0,),
    ref=lambda x, t: np.abs(x - 1.0 * t),
)
def absolute_error(x, target):
    """Magnitude of the difference, of complex operands too."""
    return np.abs(x - target)


absolute_error.vjp(
    x=lambda g, x, target: g * np.sign(x - target),
    target=lambda g, x, target: g * np.sign(target - x),
)
absolute_error.kink(x=([2.0, 3.0], [0, 1]), target=([2.0, 2.0], [0, -1]))


@_loss(
    domain=(0.3, 3.0),
    ref=lambda x, t, beta: np.where(
        np.abs(x - t) < beta,
        np.square(x - t) / 2 / beta,
        np.abs(x - t) - beta / 2,
    ),
)
def smooth_absolute_error(x, target, beta):
    """Half the square of the difference over ``beta`` where it is smaller, else linear."""
    d = np.abs(x - target)
    return np.where(d < beta, 0.5 * (d * d) / _divisor(beta), d - 0.5 * beta)


def _divisor(beta):
    return np.where(beta == 0, 1, beta)  # the branch that is not taken must not be infinite


def _smooth_slope(x, target, beta):
    d = x - target
    return np.where(np.abs(d) < beta, d / _divisor(beta), np.sign(d))


smooth_absolute_error.vjp(
    x=lambda g, x, target, beta: g * _smooth_slope(x, target, beta),
    target=lambda g, x, target, beta: g * _smooth_slope(target, x, beta),
)
smooth_absolute_error.kink(
    x=([1.0, 0.0, -1.0], [1, 0, -1]), target=([0.0, 0.0, 0.0], [-1, 0, 1]), beta=(1.0, None)
)
smooth_absolute_error.kink(x=([1.0, 0.0], [1, 0]), target=([0.0, 0.0], [-1, 0]), beta=(0.0, None))


@_loss(domain=(0.3, 3.0), ref=lambda x, t, delta: scipy_special("huber")(delta, x - t))
def huber_error(x, target, delta):
    """Half the square of the difference up to ``delta``, linear with that slope above."""
    d = np.abs(x - target)
    return np.where(d <= delta, 0.5 * (d * d), delta * (d - 0.5 * delta))


def _huber_slope(x, target, delta):
    d = x - target
    return np.where(np.abs(d) <= delta, d, delta * np.sign(d))


huber_error.vjp(
    x=lambda g, x, target, delta: g * _huber_slope(x, target, delta),
    target=lambda g, x, target, delta: g * _huber_slope(target, x, delta),
)
huber_error.kink(
    x=([2.0, 0.0, -5.0], [2, 0, -2]), target=([0.0, 0.0, 0.0], [-2, 0, 2]), delta=(2.0, None)
)

# -------------------------------------------------------------------------------- probabilities


def _clamped(logarithm):
    return np.where(logarithm < LOWEST_LOG, LOWEST_LOG, logarithm)


@_loss(
    domain=(0.05, 0.95),
    ref=lambda x, t: (
        -(t * np.maximum(np.log(x), -100) + (1.0 - t) * np.maximum(np.log1p(-x), -100))
    ),
)
def bernoulli_error(x, target):
    """Negative log-likelihood of a probability ``x`` for a target between 0 and 1."""
    return (target - 1) * _clamped(np.log1p(-x)) - target * _clamped(np.log(x))


def _bernoulli_vjp(g, x, target):
    variance = x * (1 - x)
    return g * ((x - target) / np.where(variance < SMALLEST_VARIANCE, SMALLEST_VARIANCE, variance))


bernoulli_error.vjp(
    x=_bernoulli_vjp, target=lambda g, x: g * (_clamped(np.log1p(-x)) - _clamped(np.log(x)))
)
bernoulli_error.kink(x=([0.0, 1.0, 0.5], [-1e12, 1e12, 0]), target=([1.0, 0.0, 0.5], None))
bernoulli_error.kink(x=([0.0, 1.0], None), target=([1.0, 0.0], [100, -100]))


@_loss(ref=lambda x, t: (1.0 - t) * x + np.logaddexp(-x, 0.0))
def bernoulli_logit_error(x, target):
    """``bernoulli_error`` of ``sigmoid(x)``, without its roundings."""
    return (1 - target) * x + softplus(-x)


bernoulli_logit_error.vjp(
    x=lambda g, x, target: g * ((1 - target) - sigmoid(-x)), target=lambda g, x: -(g * x)
)
bernoulli_logit_error.kink(
    x=([800.0, -800.0, -800.0], [0, -1, 0]), target=([1.0, 1.0, 0.0], [-800, 800, 800])
)


@_loss(
    ref=lambda x, t, w: (1.0 - t) * np.logaddexp(x, 0.0) + t * w * np.logaddexp(-x, 0.0),
    smooth=True,
)
def weighted_bernoulli_logit_error(x, target, weight):
    """``bernoulli_logit_error`` in which the target 1 counts ``weight`` times."""
    return (1 - target) * x + (1 + (weight - 1) * target) * softplus(-x)


weighted_bernoulli_logit_error.vjp(
    x=lambda g, x, target, weight: g * ((1 - target) - (1 + (weight - 1) * target) * sigmoid(-x)),
    target=lambda g, x, weight: g * ((weight - 1) * softplus(-x) - x),
    weight=lambda g, x, target: g * (target * softplus(-x)),
)


@primitive(
    internal=True,
    differentiable=False,
    method=False,
    effects=True,
    lowering="numgrad.nn.lowerings",
)
def require_between(x, *, low, high, problem):
    """Raise, and say what the problem is, unless all elements lie between two bounds."""
    if x.size and not (x.min() >= low and x.max() <= high):
        raise NumgradValueError(f"{problem} (elements run from {x.min()} to {x.max()})")
    return np.ones((), np.bool_)


require_between.shape(lambda x, *, low, high, problem: Meta((), np.dtype(bool)))


@_loss(domain=(0.1, 2.0), special=(0.0,), ref=lambda x, t: scipy_special("xlogy")(t, t) - t * x)
def divergence_error(x, target):
    """``target * (log(target) - x)``, 0 where the target is; ``x`` is a logarithm."""
    zero = target == 0
    return target * np.log(np.where(zero, 1, target)) - target * x


divergence_error.vjp(
    x=lambda g, target: -(g * target), target=lambda g, x, target: g * (np.log(target) + 1 - x)
)
divergence_error.kink(x=([-1.0, -2.0], [0, 0]), target=([0.0, 0.0], None))
divergence_error.kink(x=([-1.0], None), target=([0.0], [-np.inf]))


@_loss(ref=lambda x, t: np.exp(t) * (t - x), smooth=True)
def log_divergence_error(x, target):
    """``divergence_error`` of a target that is a logarithm too."""
    return np.exp(target) * (target - x)


log_divergence_error.vjp(
    x=lambda g, target: -(g * np.exp(target)),
    target=lambda g, x, target: g * (np.exp(target) * (target - x + 1)),
)

# ---------------------------------------------------------------------------------- likelihoods


@_loss(ref=lambda x, t: np.exp(x) - t * x, smooth=True)
def poisson_log_error(x, target):
    """Negative log-likelihood of a count for the logarithm ``x`` of a rate, without Stirling's."""
    return np.exp(x) - target * x


poisson_log_error.vjp(x=lambda g, x, target: g * (np.exp(x) - target), target=lambda g, x: -(g * x))


@_loss(domain=(0.2, 3.0), ref=lambda x, t, eps: x - t * np.log(x + eps), smooth=True)
def poisson_error(x, target, eps):
    """``poisson_log_error`` of ``log(x + eps)``, for a rate ``x``."""
    return x - target * np.log(x + eps)


poisson_error.vjp(
    x=lambda g, x, target, eps: g * (1 - target / (x + eps)),
    target=lambda g, x, eps: -(g * np.log(x + eps)),
)


@_loss(
    domain=(1.1, 4.0),
    special=(0.0, 1.0),
    ref=lambda x: np.where(
        x > 1, x * np.log(np.maximum(x, 1)) - x + np.log(2 * np.pi * np.maximum(x, 1)) / 2, 0
    ),
)
def stirling(x):
    """Stirling's approximation of ``log(x!)`` where ``x`` is above 1, else 0."""
    safe = np.where(x > 1, x, 1)
    return np.where(x > 1, safe * np.log(safe) - safe + 0.5 * np.log((2 * math.pi) * safe), 0)


def _stirling_vjp(g, x):
    safe = np.where(x > 1, x, 1)
    return np.where(x > 1, g * (np.log(safe) + 0.5 / safe), 0)


stirling.vjp(x=_stirling_vjp)
stirling.kink(x=([1.0, 0.0, 2.0], [0, 0, np.log(2) + 0.25]))


@_loss(
    domain=(0.3, 2.0),
    ref=lambda x, t, var, eps: (
        (np.log(np.maximum(var, eps)) + np.square(x - t) / np.maximum(var, eps)) / 2
    ),
)
def gaussian_error(x, target, var, eps):
    """Negative log-likelihood of a normal variable, without its constant.

    A variance below ``eps`` counts as ``eps``, and its gradient is the one there.
    """
    v = np.where(var < eps, eps, var)
    return 0.5 * (np.log(v) + np.square(x - target) / v)


def _gaussian_slope(x, target, var, eps):
    return (x - target) / np.where(var < eps, eps, var)


def _gaussian_vjp_var(g, x, target, var, eps):
    v = np.where(var < eps, eps, var)
    return g * (0.5 * (1 - np.square(x - target) / v) / v)


gaussian_error.vjp(
    x=lambda g, x, target, var, eps: g * _gaussian_slope(x, target, var, eps),
    target=lambda g, x, target, var, eps: g * _gaussian_slope(target, x, var, eps),
    var=_gaussian_vjp_var,
)
gaussian_error.calls = [
    (((2, 3),) * 3, lambda x, t, var: gaussian_error(x, t, var, 0.1)),
]
gaussian_error.kink(x=([1.0], [2]), target=([0.0], [-2]), var=([0.0], [-1]), eps=(0.5, None))
