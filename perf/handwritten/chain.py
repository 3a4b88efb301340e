"""Value and gradient of ``sum(exp(tanh(a * b) + a))``, in one pass over the operands."""

import numpy as np
from numba import njit, prange

from handwritten import INNER, total
from numgrad.codegen.intrinsics import add_any_order
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.hyperbolic import tanh_f64

BLOCK = 4096


@njit(**INNER)
def fused(a, b, grad_a, grad_b):
    """The sum over one block; writes its gradients."""
    value = 0.0
    for i in range(a.size):
        t = tanh_f64(a[i] * b[i])
        e = exp_f64(t + a[i])
        inner = e * (1.0 - t * t)
        grad_a[i] = inner * b[i] + e
        grad_b[i] = inner * a[i]
        value = add_any_order(value, e)
    return value


@njit(error_model="numpy")
def serial(a, b):
    """Value and both gradients on one thread."""
    grad_a, grad_b = np.empty(a.size), np.empty(a.size)
    return fused(a, b, grad_a, grad_b), grad_a, grad_b


@njit(error_model="numpy", parallel=True)
def shared(a, b, grad_a, grad_b):
    """The sum; writes the gradients, blocks shared by the threads."""
    totals = np.empty(-(-a.size // BLOCK))
    for k in prange(totals.size):
        lo, hi = k * BLOCK, min(k * BLOCK + BLOCK, a.size)
        totals[k] = fused(a[lo:hi], b[lo:hi], grad_a[lo:hi], grad_b[lo:hi])
    return total(totals)


def parallel(a, b):
    """Value and both gradients, in arrays of NumPy's own, which lie in huge pages.

    Of ten million elements the page faults of arrays that a kernel makes take three times as long
    as the arithmetic.
    """
    grad_a, grad_b = np.empty(a.size), np.empty(a.size)
    return shared(a, b, grad_a, grad_b), grad_a, grad_b
