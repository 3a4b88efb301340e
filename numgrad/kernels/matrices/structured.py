"""Systems of equations of matrices known by fewer numbers."""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import add_any_order
from numgrad.kernels.matrices.elementary import NOT_FINITE, SINGULAR, is_finite
from numgrad.kernels.products.blas import lapack


@outlined
def banded(ab, b, x, below, above, alone):
    """Solve with the matrix of diagonals ``ab``, the highest first."""
    if not (is_finite(ab) and is_finite(b)):
        return NOT_FINITE
    n, columns = x.shape[0], x.shape[1]
    if n == 1:
        for c in range(columns):
            x[0, c] = np.divide(b[0, c], ab[above, 0])
        return 0
    width = 2 * below + above + 1
    bands, sides = np.empty((n, width), x.dtype), np.empty((columns, n), x.dtype)
    pivots, info = np.empty(n, np.int32), np.empty(1, np.int32)
    for j in range(n):
        for c in range(columns):
            sides[c, j] = b[j, c]
    if below == 1 and above == 1:
        diagonals = np.empty((3, n), x.dtype)
        for j in range(n):
            diagonals[1, j] = ab[1, j]
        for j in range(n - 1):
            diagonals[0, j] = ab[2, j]
            diagonals[2, j] = ab[0, j + 1]
        lapack(x.dtype, "gtsv", n, columns, diagonals, diagonals[1], diagonals[2], sides, n, info)
    else:
        for j in range(n):
            for k in range(below + above + 1):
                bands[j, below + k] = ab[k, j]
        lapack(x.dtype, "gbsv", n, below, above, columns, bands, width, pivots, sides, n, info)
    for j in range(n):
        for c in range(columns):
            x[j, c] = sides[c, j]
    return SINGULAR if info[0] != 0 else 0


@outlined
def toeplitz(c, r, b, x, alone):
    """Solve with the matrix of first column ``c`` and first row ``r`` (N. Levinson, 1947).

    Systems of the leading rows and columns are solved one after the other; ``first`` and ``last``
    are the first and the last column of the inverse, that one after a zero.
    """
    n, columns = x.shape[0], x.shape[1]
    if not is_finite(b):
        return NOT_FINITE
    for i in range(n):
        if not (np.isfinite(c[i]) and np.isfinite(r[i])):
            return NOT_FINITE
    if c[0] == 0:
        return SINGULAR
    before, after = np.zeros((2, n + 1), x.dtype), np.empty((2, n + 1), x.dtype)
    before[0, 0] = np.divide(1.0, c[0])
    before[1, 1] = before[0, 0]
    for k in range(columns):
        x[0, k] = np.divide(b[0, k], c[0])
    for m in range(1, n):
        first, last = before[0], before[1]
        over, under = first[m], first[m]  # zeros
        for i in range(m):
            over = add_any_order(over, c[m - i] * first[i])
            under = add_any_order(under, r[i + 1] * last[i + 1])
        d = 1.0 - over * under
        if d == 0:
            return SINGULAR
        scale = np.divide(1.0, d)
        new_first, new_last = after[0], after[1]
        for i in range(m + 1):
            new_first[i] = (first[i] - over * last[i]) * scale
            new_last[i + 1] = (last[i] - under * first[i]) * scale
        for k in range(columns):
            rest = b[m, k]
            for i in range(m):
                rest -= c[m - i] * x[i, k]
            x[m, k] = 0
            for i in range(m + 1):
                x[i, k] += rest * new_last[i + 1]
        for i in range(m + 1):
            first[i] = new_first[i]
            last[i + 1] = new_last[i + 1]
    return 0
