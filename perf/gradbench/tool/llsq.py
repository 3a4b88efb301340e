"""Least squares: a polynomial with coefficients ``x`` beside the sign, at ``n`` points."""

import numpy as np
from timing import as_lists, timed

import numgrad as ng


def read(message):
    return np.array(message["x"]), message["n"]


@ng.kernel
def misfit(x, n):
    total = 0.0
    for i in range(n):
        t = -1 + 2 * i / (n - 1)
        residual = np.sign(t)
        power = 1.0
        for coefficient in x:
            residual -= coefficient * power
            power *= t
        total += residual**2
    return total / 2


slope = ng.grad(misfit)


@timed(read, float)
def primal(message):
    return misfit(*message)


@timed(read, as_lists)
def gradient(message):
    return slope(*message)
