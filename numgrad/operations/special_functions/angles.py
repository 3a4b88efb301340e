"""Von Mises' distribution of angles, whose density is an exponential of the cosine.

Note [Moments of angles] of ``kernels.von_mises`` says how integrals are computed, and why they have
derivatives of any order.
"""

import math

import numpy as np

from numgrad.kernels import von_mises as _von_mises  # noqa: F401 (what kernels call)
from numgrad.operations.special_functions.declare import derivative


@derivative(domain=(0.3, 3.0))
def angles_within(n, kappa, x):
    """Integral of ``(1 - cos(t))**n exp(kappa (cos(t) - 1))`` from 0 to ``x``."""


@derivative(domain=(0.3, 3.0))
def angles_beyond(n, kappa, x):
    """The same integral from ``x`` to pi."""


@derivative(domain=(0.1, 0.4))
def angle_exceeded(kappa, q):
    """Angle beyond which there is a probability ``q``, of at most one half."""


def _weight(n, kappa, x):
    sine = np.sin(0.5 * x)
    square = sine * sine
    return np.power(2 * square, n) * np.exp(-2 * kappa * square)


angles_within.vjp(
    kappa=lambda g, n, kappa, x: -g * angles_within(n + 1, kappa, x),
    x=lambda g, n, kappa, x: g * _weight(n, kappa, x),
)
angles_beyond.vjp(
    kappa=lambda g, n, kappa, x: -g * angles_beyond(n + 1, kappa, x),
    x=lambda g, n, kappa, x: -g * _weight(n, kappa, x),
)


def _parts(kappa, x):
    """Whether the angle is near 0, ones for both cases, and the integral over all angles."""
    sine = np.sin(0.5 * x)
    near = 2 * sine * sine * (1 + kappa) < 1
    whole = 2 * angles_within(0, kappa, math.pi)
    return near, np.where(near, x, 0), np.where(near, math.pi, x), whole


def angle_density(kappa, x):
    """Density of the distribution at an angle."""
    sine = np.sin(0.5 * x)
    return np.exp(-2 * kappa * (sine * sine)) / (2 * angles_within(0, kappa, math.pi))


def angle_tail(kappa, x):
    """Probability of an angle between ``x``, which is from 0 to pi, and pi."""
    near, inner, outer, whole = _parts(kappa, x)
    return np.where(
        near, 0.5 - angles_within(0, kappa, inner) / whole, angles_beyond(0, kappa, outer) / whole
    )


def angle_tail_slope(kappa, x):
    """Derivative of ``angle_tail`` in ``kappa``, from what does not cancel."""
    near, inner, outer, whole = _parts(kappa, x)
    mean = 2 * angles_within(1, kappa, math.pi) / whole
    within = mean * angles_within(0, kappa, inner) - angles_within(1, kappa, inner)
    beyond = mean * angles_beyond(0, kappa, outer) - angles_beyond(1, kappa, outer)
    return np.where(near, -within, beyond) / whole


angle_exceeded.vjp(
    kappa=lambda g, kappa, y: g * angle_tail_slope(kappa, y) / angle_density(kappa, y),
    q=lambda g, kappa, y: -g / angle_density(kappa, y),
)


def turned(x):
    """Whole turns in an angle, and the rest of it, between -pi and pi."""
    turns = np.rint(x / (2 * math.pi))
    return turns, x - 2 * math.pi * turns
