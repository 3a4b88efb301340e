"""Heat on a ring, ``u + c * (left - 2 u + right)``: ``sum(u**2)`` at the end.

The way back gathers too: the transposed stencil reads ``c`` times the cotangent of both neighbours.
"""

import numpy as np
from numba import njit

from handwritten import INNER
from numgrad.codegen.accumulation import no_inline


@njit(**INNER)
def forward(now, left, right, c, out):
    """The inner points of a step."""
    no_inline()
    for i in range(c.size):
        out[i] = now[i] + c[i] * (left[i] - 2.0 * now[i] + right[i])


@njit(**INNER)
def scaled(now, left, right, c, g, grad, out):
    """Adds to the gradient of ``c``, and makes ``c * g``."""
    no_inline()
    for i in range(c.size):
        grad[i] += (left[i] - 2.0 * now[i] + right[i]) * g[i]
        out[i] = c[i] * g[i]


@njit(**INNER)
def gathered(h, left, right, g):
    """The cotangent before a step."""
    no_inline()
    for i in range(g.size):
        g[i] += left[i] - 2.0 * h[i] + right[i]


@njit(error_model="numpy")
def serial(c, start, steps=1000):
    """Value and gradient in ``c``."""
    n = c.size
    # a row has a neighbour more at each end
    kept = np.empty((steps + 1, n + 2))
    kept[0, 1:-1] = start
    for t in range(steps):
        u = kept[t]
        u[0], u[n + 1] = u[n], u[1]
        forward(u[1:-1], u[:-2], u[2:], c, kept[t + 1, 1:-1])
    last = kept[steps, 1:-1]
    value, g = np.sum(last * last), 2.0 * last
    grad, h = np.zeros(n), np.empty(n + 2)
    for t in range(steps - 1, -1, -1):
        u = kept[t]
        scaled(u[1:-1], u[:-2], u[2:], c, g, grad, h[1:-1])
        h[0], h[n + 1] = h[n], h[1]
        gathered(h[1:-1], h[:-2], h[2:], g)
    return value, grad
