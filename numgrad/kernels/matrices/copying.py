"""Elements of one matrix moved."""

import numpy as np

from numgrad.codegen.device import outlined


@outlined
def copy(a, out):
    """The elements of a matrix."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[i, j]


@outlined
def copy_packed(a, out):
    """The same of matrices without strides."""
    n = out.shape[0] * out.shape[1]
    source, target = a.reshape(n), out.reshape(n)
    for i in range(n):
        target[i] = source[i]


@outlined
def turn(a):
    """Transpose a square matrix in place, and conjugate it."""
    for i in range(a.shape[0]):
        a[i, i] = np.conj(a[i, i])
        for j in range(i):
            other = np.conj(a[i, j])
            a[i, j] = np.conj(a[j, i])
            a[j, i] = other


@outlined
def is_finite(a):
    """Whether all elements are finite."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if not np.isfinite(a[i, j]):
                return False
    return True
