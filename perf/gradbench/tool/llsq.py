"""Least squares: a polynomial with coefficients ``x`` beside the sign, at ``n`` points."""

import numpy as np
from timing import as_lists, timed

import numgrad as ng


def read(message):
    return np.array(message["x"]), message["n"]


def misfit(x, n):
    t = np.linspace(-1, 1, n)
    values, _ = ng.scan(lambda y, c: (y * t + c, None), np.zeros(n), x, reverse=True)  # Horner
    return np.sum((np.sign(t) - values) ** 2) / 2


value = ng.jit(misfit, static_argnums=1)
slope = ng.jit(ng.grad(misfit), static_argnums=1)


@timed(read, float)
def primal(message):
    return value(*message)


@timed(read, as_lists)
def gradient(message):
    return slope(*message)
