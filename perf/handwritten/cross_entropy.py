"""Mean softmax cross-entropy of logits with class indices, and its gradient in the logits."""

import numpy as np
from numba import njit, prange

from handwritten import INNER, total
from numgrad.codegen.intrinsics import add_any_order
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.logarithm import log_f64


@njit(**INNER, fastmath={"nnan", "nsz"})
def largest_of(row):
    """Largest element of a row without NaN, in vectors."""
    largest = -np.inf
    for k in range(row.size):
        largest = max(largest, row[k])
    return largest


@njit(**INNER)
def fused(row, label, scale, out):
    """Loss of one row; ``out`` becomes its gradient times ``scale``."""
    largest = largest_of(row)
    mass = 0.0
    for k in range(row.size):
        e = exp_f64(row[k] - largest)
        out[k] = e
        mass = add_any_order(mass, e)
    factor = scale / mass
    for k in range(row.size):
        out[k] *= factor
    out[label] -= scale
    return log_f64(mass) - (row[label] - largest)


@njit(error_model="numpy")
def serial(x, labels):
    """Value and gradient on one thread."""
    grad, value = np.empty(x.shape), 0.0
    for i in range(x.shape[0]):
        value += fused(x[i], labels[i], 1.0 / x.shape[0], grad[i])
    return value / x.shape[0], grad


@njit(error_model="numpy", parallel=True)
def shared(x, labels, grad):
    """The value; writes the gradient, rows shared by the threads."""
    losses = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        losses[i] = fused(x[i], labels[i], 1.0 / x.shape[0], grad[i])
    return total(losses) / x.shape[0]


def parallel(x, labels):
    """Value and gradient, in an array of NumPy's own, which lies in huge pages."""
    grad = np.empty(x.shape)
    return shared(x, labels, grad), grad
