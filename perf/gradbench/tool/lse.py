"""The logarithm of a sum of exponentials."""

import numpy as np
from timing import as_lists, timed

import numgrad as ng


def read(message):
    return np.array(message["x"])


def logsumexp(x):
    largest = np.max(x)
    return np.log(np.sum(np.exp(x - largest))) + largest


primal = timed(read, float)(ng.jit(logsumexp))
gradient = timed(read, as_lists)(ng.jit(ng.grad(logsumexp)))
