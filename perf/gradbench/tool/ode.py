"""Runge-Kutta's classical method for ``y[i]' = x[i] y[i-1]``, ``y[0]' = x[0]``, until 2."""

import numpy as np
from timing import as_lists, timed

import numgrad as ng


def read(message):
    return np.array(message["x"]), message["s"]


def solution(x, steps):
    h = 2.0 / steps

    def slope(y):
        return np.concatenate([x[:1], x[1:] * y[:-1]])

    def step(_, y):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return ng.fori_loop(0, steps, step, np.zeros_like(x))


solve = ng.jit(solution)
last = ng.jit(ng.grad(lambda x, steps: solution(x, steps)[-1]))


@timed(read, as_lists)
def primal(message):
    return solve(*message)


@timed(read, as_lists)
def gradient(message):
    return last(*message)
