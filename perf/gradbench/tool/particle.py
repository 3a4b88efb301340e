"""The charge that makes a particle hit the origin: descent through a path of Euler's method."""

import numpy as np
from descent import argmin
from timing import timed

import numgrad as ng


def miss(w, differentiate):
    """The square of where a particle crosses the axis, by Euler's method."""
    w = w[0]
    charges = np.stack([np.stack([10.0 + 0 * w, 10 - w]), np.array([10.0, 0.0])])

    def potential(x):
        return np.sum(1 / np.sqrt(np.sum((x - charges) ** 2, axis=1)))

    force, dt = differentiate(potential), 0.1

    def above(state):
        x, v = state
        return x[1] + dt * v[1] > 0

    def step(state):
        x, v = state
        return x + dt * v, v - dt * force(x)

    x, v = ng.while_loop(above, step, (np.array([0.0, 8.0]), np.array([0.75, 0.0])))
    x = x + dt * v
    return (x[0] - x[1] / v[1] * v[0]) ** 2


def variant(outer, inner):
    @ng.jit
    def solve(w):
        return argmin(lambda w: miss(w, inner), w, outer)[0]

    return timed(lambda message: np.array([message["w"]]), float)(solve)


ff = variant(ng.jacfwd, ng.jacfwd)
fr = variant(ng.jacfwd, ng.grad)
rf = variant(ng.grad, ng.jacfwd)
rr = variant(ng.grad, ng.grad)
