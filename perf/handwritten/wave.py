"""A wave with fixed ends and a cubic force: ``sum(u**2)`` at the end, the way back gathered too."""

import numpy as np
from numba import njit

from handwritten import INNER
from numgrad.codegen.accumulation import no_inline


@njit(**INNER)
def forward(before, now, left, right, c, out):
    """The inner points of a step."""
    no_inline()
    for i in range(c.size):
        u = now[i]
        out[i] = 2.0 * u - before[i] + (c[i] * (right[i] - 2.0 * u + left[i]) - 0.01 * u * u * u)


@njit(**INNER)
def scaled(now, left, right, c, g, grad, other, out):
    """Adds to the gradient of ``c`` and to the cotangent of ``now``, and makes ``c * g``."""
    no_inline()
    for i in range(c.size):
        u = now[i]
        grad[i] += (right[i] - 2.0 * u + left[i]) * g[i]
        other[i] += (2.0 - 0.03 * u * u) * g[i]
        out[i] = c[i] * g[i]


@njit(**INNER)
def gathered(h, left, right, g, other):
    """The cotangents before a step, which change places: of ``now``, and of ``before``."""
    no_inline()
    for i in range(g.size):
        of_now = other[i] + (left[i] - 2.0 * h[i] + right[i])
        other[i] = -g[i]
        g[i] = of_now


@njit(error_model="numpy")
def serial(c, start, steps=1000):
    """Value and gradient in ``c``."""
    n = c.size
    inner = c[1:-1]
    kept = np.zeros((steps + 2, n))
    kept[0] = start
    kept[1] = start
    for t in range(steps):
        u = kept[t + 1]
        forward(kept[t, 1:-1], u[1:-1], u[:-2], u[2:], inner, kept[t + 2, 1:-1])
    last = kept[steps + 1]
    value, g, other = np.sum(last * last), 2.0 * last, np.zeros(n)
    grad, h = np.zeros(n), np.zeros(n)
    for t in range(steps - 1, -1, -1):
        u = kept[t + 1]
        scaled(u[1:-1], u[:-2], u[2:], inner, g[1:-1], grad[1:-1], other[1:-1], h[1:-1])
        gathered(h[1:-1], h[:-2], h[2:], g[1:-1], other[1:-1])
    return value, grad
