"""Activation functions as operations: formulas and their gradients.

Note [Parameters of activations]
--------------------------------
A slope, a bound or a scale is an operand: a Python number reaches the kernel as a scalar at run
time, an array broadcasts, and a Tensor gets its gradient like any other operand.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from numgrad.operations.error_gamma_logistic import (
    ndtr,
    normal_density,
    real_elementwise,
    scipy_special,
    sigmoid,
    softplus,
)

SELU_ALPHA = 1.6732632423543772848170429916717


SELU_SCALE = 1.0507009873554804934193349852946
"""Constants that keep mean and variance of a deep network: https://arxiv.org/abs/1706.02515."""


_activation = partial(real_elementwise, method=False)


@_activation(special=(0.0,), ref=lambda x, slope: np.where(x > 0, x, slope * x))
def leaky_relu(x, negative_slope=0.01):
    """The operand where it is positive, else ``negative_slope`` times it.

    Parameters
    ----------
    negative_slope
        Slope on the left.

    Examples
    --------
    >>> F.leaky_relu(ng.tensor([-100.0, 0.0, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return np.where(x > 0, x, x * negative_slope)


def _leak_vjp(g, x):
    return np.where(x > 0, 0, g * x)


leaky_relu.vjp(
    x=lambda g, x, negative_slope: np.where(x > 0, g, g * negative_slope), negative_slope=_leak_vjp
)


leaky_relu.kink(x=([0.0, -0.0, 2.0], [0.01, 0.01, 1]), negative_slope=(0.01, None))


@_activation(special=(0.0,), ref=lambda x, slope: np.where(x > 0, x, slope * x))
def prelu(x, weight):
    """The operand where it is positive, else ``weight`` times it; a slope that is learned.

    Parameters
    ----------
    weight
        Slope on the left; an array broadcasts and gets its gradient.

    Examples
    --------
    >>> slope = ng.tensor(0.25, requires_grad=True)
    >>> y = F.prelu(ng.tensor([-4.0, 2.0]), slope)
    >>> y.detach()
    tensor([-1.,  2.])
    >>> y.sum().backward()
    >>> slope.grad
    tensor(-4.)
    """
    return np.where(x > 0, x, x * weight)


prelu.vjp(x=lambda g, x, weight: np.where(x > 0, g, g * weight), weight=_leak_vjp)


prelu.kink(x=([0.0], [0.25]), weight=([0.25], [0]))


@_activation(special=(0.0,), ref=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)))
def elu(x, alpha=1.0):
    """The operand where it is positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha
        The negative of what it tends to on the left.

    Examples
    --------
    >>> F.elu(ng.tensor([-1e3, -1.0, 2.0]))
    tensor([-1.        , -0.63212056,  2.        ])
    """
    return np.where(x > 0, x, alpha * np.expm1(x))


elu.vjp(
    x=lambda g, x, alpha: np.where(x > 0, g, g * (alpha * np.exp(x))),
    alpha=lambda g, x: np.where(x > 0, 0, g * np.expm1(x)),
)


elu.kink(x=([0.0, -0.0, -np.inf], [1, 1, 0]), alpha=(1.0, None))


@_activation(
    special=(0.0,),
    ref=lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
)
def selu(x):
    """Scaled ``elu`` that keeps mean 0 and variance 1 through the layers of a network.

    Examples
    --------
    >>> F.selu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.11133074,  0.        ,  1.05070099])
    """
    return np.where(x > 0, SELU_SCALE * x, (SELU_SCALE * SELU_ALPHA) * np.expm1(x))


selu.vjp(x=lambda g, x: g * np.where(x > 0, SELU_SCALE, (SELU_SCALE * SELU_ALPHA) * np.exp(x)))


selu.kink(x=([0.0, -np.inf], [1.0507009873554805 * 1.6732632423543772, 0]))


@_activation(
    domain=(0.3, 2.0),
    special=(0.0,),
    ref=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
)
def celu(x, alpha=1.0):
    """The operand where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Parameters
    ----------
    alpha
        The negative of what it tends to on the left.

    Examples
    --------
    >>> F.celu(ng.tensor([-1e3, 0.0, 2.0]), alpha=3.0)
    tensor([-3.,  0.,  2.])
    """
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def _celu_vjp_alpha(g, x, alpha):
    scaled = x / alpha
    return np.where(x > 0, 0, g * (np.expm1(scaled) - scaled * np.exp(scaled)))


celu.vjp(x=lambda g, x, alpha: np.where(x > 0, g, g * np.exp(x / alpha)), alpha=_celu_vjp_alpha)


celu.kink(x=([0.0, -np.inf], [1, 0]), alpha=(2.0, None))


@_activation(ref=lambda x: x * scipy_special("ndtr")(x), scalar="gelu", smooth=True)
def gelu(x):
    """The operand times the probability that a standard normal number is smaller.

    Examples
    --------
    >>> F.gelu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.15865525,  0.        ,  0.84134475])
    """
    return x * ndtr(x)


gelu.vjp(x=lambda g, x: g * (ndtr(x) + x * normal_density(x)))


def _left(x):
    """``-abs(x)`` for both halves of a smooth formula: the derivative at 0 is that of one side."""
    return np.where(x > 0, -x, x)


_CUBIC = 0.044715  # of the approximation in https://arxiv.org/abs/1606.08415


def _gate_slope(x):
    return (2 * math.sqrt(2 / math.pi)) * (1 + (3 * _CUBIC) * (x * x))


@_activation(
    ref=lambda x: scipy_special("expit")(np.sqrt(8 / np.pi) * (x + 0.044715 * np.power(x, 3.0))),
    scalar="gelu_gate",
    internal=True,
    smooth=True,
)
def gelu_gate(x):
    """Factor by which ``gelu_tanh`` multiplies its operand."""
    # (1 + tanh(u)) / 2 is sigmoid(2 u), without cancellation
    return sigmoid((2 * math.sqrt(2 / math.pi)) * (x + _CUBIC * (x * x * x)))


gelu_gate.vjp(x=lambda g, x, y: g * (y * gelu_gate(-x) * _gate_slope(x)))


@_activation(
    ref=lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * np.power(x, 3.0)))),
    smooth=True,
)
def gelu_tanh(x):
    """``gelu`` by an approximation with one ``tanh``, which is right to 5e-4.

    Examples
    --------
    >>> ng.ops["gelu_tanh"](ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.15880801,  0.        ,  0.84119199])
    """
    return x * gelu_gate(x)


def _gelu_tanh_vjp(g, x):
    smaller = gelu_gate(_left(x))  # 1 minus the larger one would have lost it
    s = np.where(x > 0, 1 - smaller, smaller)
    return g * (s + x * (smaller * (1 - smaller)) * _gate_slope(x))


gelu_tanh.vjp(x=_gelu_tanh_vjp)


@_activation(ref=lambda x: x * scipy_special("expit")(x), smooth=True)
def silu(x):
    """The operand times its ``sigmoid``.

    Examples
    --------
    >>> F.silu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.26894142,  0.        ,  0.73105858])
    """
    return x * sigmoid(x)


def _both_sigmoids(x):
    """``sigmoid(x)`` and ``sigmoid(-x)``, of which 1 minus the other would lose the smaller one."""
    u = np.exp(_left(x))
    larger = 1 / (1 + u)
    return np.where(x > 0, larger, u * larger), np.where(x > 0, u * larger, larger)


def _silu_vjp(g, x):
    s, rest = _both_sigmoids(x)
    return g * (s * (1 + x * rest))


silu.vjp(x=_silu_vjp)


def _tanh_of_softplus(x):
    # ((1 + e)^2 - 1) / ((1 + e)^2 + 1) with e = exp(x), by exp(-|x|), which does not overflow
    u = np.exp(_left(x))
    top = np.where(x > 0, 1 + 2 * u, u * (u + 2))
    rest = np.where(x > 0, 2 * (u * u), 2)
    return top / (top + rest), rest / (top + rest)  # and 1 minus that


@_activation(ref=lambda x: x * np.tanh(np.logaddexp(x, 0.0)), smooth=True)
def mish(x):
    """The operand times ``tanh(softplus(x))``.

    Examples
    --------
    >>> F.mish(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.30340146,  0.        ,  0.86509839])
    """
    return x * _tanh_of_softplus(x)[0]


def _mish_vjp(g, x):
    t, rest = _tanh_of_softplus(x)
    return g * (t + x * (rest * (1 + t) * sigmoid(x)))


mish.vjp(x=_mish_vjp)


@_activation(special=(0.0,), ref=lambda x: x - np.tanh(x), smooth=True)
def tanhshrink(x):
    """``x - tanh(x)``.

    Examples
    --------
    >>> F.tanhshrink(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.23840584])
    """
    return x - np.tanh(x)


# 1 less the derivative of tanh would lose what is left near 0
tanhshrink.vjp(x=lambda g, x: g * np.square(np.tanh(x)))


@_activation(special=(0.0,), ref=lambda x: x / (1 + np.abs(x)), smooth=True)
def softsign(x):
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> F.softsign(ng.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5 ,  0.  ,  0.75])
    """
    return x / (1 + np.abs(x))


softsign.vjp(x=lambda g, x: g / np.square(1 + np.abs(x)))


@_activation(
    special=(-1.0, 1.0),
    ref=lambda x, low, high: np.where(x <= low, low, np.where(x >= high, high, x)),
)
def hardtanh(x, min_val=-1.0, max_val=1.0):
    """The operand limited to an interval; no gradient passes at its ends.

    Parameters
    ----------
    min_val
        Smallest result.
    max_val
        Largest result.

    Examples
    --------
    >>> x = ng.tensor([-2.0, 0.5, 1.0], requires_grad=True)
    >>> y = F.hardtanh(x)
    >>> y.detach()
    tensor([-1. ,  0.5,  1. ])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 1., 0.])
    """
    return np.where(x <= min_val, min_val, np.where(x >= max_val, max_val, x))


hardtanh.vjp(
    x=lambda g, x, min_val, max_val: np.where((x > min_val) & (x < max_val), g, 0),
    min_val=lambda g, x, min_val: np.where(x <= min_val, g, 0),
    max_val=lambda g, x, min_val, max_val: np.where((x > min_val) & (x >= max_val), g, 0),
)


hardtanh.kink(x=([0.0, 6.0, 3.0, -1.0], [0, 0, 1, 0]), min_val=(0.0, None), max_val=(6.0, None))


@_activation(
    internal=True,
    ref=lambda x, beta, threshold: np.where(
        x * beta > threshold, x, np.logaddexp(x * beta, 0.0) / beta
    ),
)
def softplus_scaled(x, beta, threshold):
    """``softplus(beta * x) / beta``, and ``x`` itself where ``beta * x`` is above a threshold."""
    return np.where(x * beta > threshold, x, softplus(x * beta) / beta)


softplus_scaled.vjp(
    x=lambda g, x, beta, threshold: np.where(x * beta > threshold, g, g * sigmoid(x * beta))
)


softplus_scaled.kink(
    x=([10.0, 11.0, -np.inf], [1 / (1 + np.exp(-20)), 1, 0]),
    beta=(2.0, None),
    threshold=(20.0, None),
)
