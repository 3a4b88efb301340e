"""Lorenz's system by the classical method of Runge and Kutta: ``sum(state**2)`` at the end.

The way back keeps the states alone: a step's stages are computed again.
"""

import numpy as np
from numba import njit

from handwritten import INNER

STEP = 0.001


@njit(**INNER)
def slope(x, y, z, s, r, b):
    """The right-hand side."""
    return s * (y - x), x * (r - z) - y, x * y - b * z


@njit(**INNER)
def pulled(x, y, z, s, r, b, u, v, w):
    """Its transposed derivatives, of the state and of the parameters."""
    return (
        (r - z) * v - s * u + y * w,
        s * u - v + x * w,
        -x * v - b * w,
        (y - x) * u,
        x * v,
        -z * w,
    )


@njit(error_model="numpy")
def serial(p, steps=10_000):
    """Value and gradient in the three parameters."""
    s, r, b = p[0], p[1], p[2]
    x, y, z = 1.0, 2.0, 20.0
    half, sixth, third = 0.5 * STEP, STEP / 6.0, STEP / 3.0
    kept = np.empty((steps, 3))
    for i in range(steps):
        row = kept[i]
        row[0], row[1], row[2] = x, y, z
        a0, a1, a2 = slope(x, y, z, s, r, b)
        b0, b1, b2 = slope(x + half * a0, y + half * a1, z + half * a2, s, r, b)
        c0, c1, c2 = slope(x + half * b0, y + half * b1, z + half * b2, s, r, b)
        d0, d1, d2 = slope(x + STEP * c0, y + STEP * c1, z + STEP * c2, s, r, b)
        x += sixth * (a0 + 2.0 * b0 + 2.0 * c0 + d0)
        y += sixth * (a1 + 2.0 * b1 + 2.0 * c1 + d1)
        z += sixth * (a2 + 2.0 * b2 + 2.0 * c2 + d2)
    value = x * x + y * y + z * z
    u, v, w = 2.0 * x, 2.0 * y, 2.0 * z
    gs = gr = gb = 0.0
    for i in range(steps - 1, -1, -1):
        row = kept[i]
        x, y, z = row[0], row[1], row[2]
        a0, a1, a2 = slope(x, y, z, s, r, b)
        x2, y2, z2 = x + half * a0, y + half * a1, z + half * a2
        b0, b1, b2 = slope(x2, y2, z2, s, r, b)
        x3, y3, z3 = x + half * b0, y + half * b1, z + half * b2
        c0, c1, c2 = slope(x3, y3, z3, s, r, b)
        x4, y4, z4 = x + STEP * c0, y + STEP * c1, z + STEP * c2
        d0, d1, d2, s4, r4, q4 = pulled(x4, y4, z4, s, r, b, sixth * u, sixth * v, sixth * w)
        c0, c1, c2, s3, r3, q3 = pulled(
            x3, y3, z3, s, r, b, third * u + STEP * d0, third * v + STEP * d1, third * w + STEP * d2
        )
        b0, b1, b2, s2, r2, q2 = pulled(
            x2, y2, z2, s, r, b, third * u + half * c0, third * v + half * c1, third * w + half * c2
        )
        a0, a1, a2, s1, r1, q1 = pulled(
            x, y, z, s, r, b, sixth * u + half * b0, sixth * v + half * b1, sixth * w + half * b2
        )
        u += a0 + b0 + c0 + d0
        v += a1 + b1 + c1 + d1
        w += a2 + b2 + c2 + d2
        gs += s1 + s2 + s3 + s4
        gr += r1 + r2 + r3 + r4
        gb += q1 + q2 + q3 + q4
    return value, np.array([gs, gr, gb])
