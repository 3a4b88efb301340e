"""The forward algorithm of a hidden Markov model in logarithms, and its gradient.

A step scales by the largest number, which has no gradient of its own: what it adds it takes away.
States and their sums are kept; the gradient of the matrix is one product of these at the end.
"""

import numpy as np
from numba import njit

from handwritten import INNER
from numgrad.codegen.accumulation import no_inline
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.logarithm import log_f64


@njit(**INNER)
def scaled(likely, top, out):
    """Probabilities in units of the largest one."""
    no_inline()
    for i in range(likely.size):
        out[i] = exp_f64(likely[i] - top)


@njit(**INNER)
def add_row(factor, row, out):
    """A row of a matrix, times a number."""
    no_inline()
    for j in range(out.size):
        out[j] += factor * row[j]


@njit(**INNER)
def logarithms(moved, top, emitted, out):
    """The next state."""
    no_inline()
    for j in range(out.size):
        out[j] = log_f64(moved[j]) + top + emitted[j]


@njit(fastmath={"reassoc", "contract"}, **INNER)
def product(a, b):
    """Sum of products."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(**INNER)
def shares(x):
    """Rows of ``x`` as logarithms of probabilities, and these."""
    logs, parts = np.empty(x.shape), np.empty(x.shape)
    for i in range(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            total += exp_f64(x[i, j] - top)
        total = log_f64(total) + top
        for j in range(x.shape[1]):
            logs[i, j] = x[i, j] - total
            parts[i, j] = exp_f64(logs[i, j])
    return logs, parts


@njit(error_model="numpy")
def serial(moves, emits, seen):
    """Value and gradients in ``moves`` and ``emits``."""
    n, steps = moves.shape[0], seen.size
    weights, (logs, emitted) = shares(moves)[1], shares(emits)
    table = np.ascontiguousarray(logs.T)
    likely = table[seen[0]] - np.log(n)
    kept, moved = np.empty((steps - 1, n)), np.zeros((steps - 1, n))
    for t in range(steps - 1):
        top = likely.max()
        scaled(likely, top, kept[t])
        for i in range(n):
            add_row(kept[t, i], weights[i], moved[t])
        logarithms(moved[t], top, table[seen[t + 1]], likely)
    top = likely.max()
    value = np.log(np.sum(np.exp(likely - top))) + top
    g = np.exp(likely - value)
    of_table = np.zeros(table.shape)
    for t in range(steps - 2, -1, -1):
        add_row(1.0, g, of_table[seen[t + 1]])
        for j in range(n):
            moved[t, j] = g[j] / moved[t, j]
        for i in range(n):
            g[i] = product(weights[i], moved[t]) * kept[t, i]
    add_row(1.0, g, of_table[seen[0]])
    of_moves = np.dot(kept.T, moved) * weights
    of_emits = np.ascontiguousarray(of_table.T)
    for i in range(n):
        of_moves[i] -= weights[i] * of_moves[i].sum()
        of_emits[i] -= emitted[i] * of_emits[i].sum()
    return value, (of_moves, of_emits)
