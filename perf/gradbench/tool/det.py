"""The determinant by expansion by minors.

The minors of the last rows are computed from those of one row less, each once: there is one for
each choice of columns. GradBench's other tools expand each as often as it occurs.
"""

from itertools import combinations

import numpy as np
from timing import timed

import numgrad as ng


def read(message):
    return np.array(message["A"]).reshape(message["ell"], message["ell"])


def determinant(a):
    n = len(a)
    minors, smaller = np.ones(1), {(): 0}
    for size in range(1, n + 1):
        choices = np.array(list(combinations(range(n), size)))
        without = [[smaller[(*c[:j], *c[j + 1 :])] for j in range(size)] for c in choices.tolist()]
        signs = (-1.0) ** np.arange(size)
        minors = np.sum(signs * a[n - size][choices] * minors[np.array(without)], axis=1)
        smaller = {tuple(c): k for k, c in enumerate(choices.tolist())}
    return minors[0]


primal = timed(read, float)(ng.jit(determinant))
gradient = timed(read, lambda g: g.ravel().tolist())(ng.jit(ng.grad(determinant)))
