"""Systems of equations of matrices known by fewer numbers."""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.kernels.matrices.copying import is_finite
from numgrad.kernels.matrices.fortran import lapack
from numgrad.kernels.matrices.outcomes import NOT_FINITE, SINGULAR


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
    are the first and the last column of the inverse.
    """
    n, columns = x.shape[0], x.shape[1]
    if not is_finite(b):
        return NOT_FINITE
    for i in range(n):
        if not (np.isfinite(c[i]) and np.isfinite(r[i])):
            return NOT_FINITE
    if c[0] == 0:
        return SINGULAR
    first, last = np.empty(n, x.dtype), np.empty(n, x.dtype)
    sums = np.empty(columns, x.dtype)
    first[0] = np.divide(1.0, c[0])
    last[0] = first[0]
    for k in range(columns):
        x[0, k] = np.divide(b[0, k], c[0])
    for m in range(1, n):
        over, under = c[m] * first[0], r[1] * last[0]
        for i in range(1, m):
            over += c[m - i] * first[i]
            under += r[i + 1] * last[i]
        d = 1.0 - over * under
        if d == 0:
            return SINGULAR
        first[m], before = first[0] * 0, last[0] * 0
        for i in range(m + 1):
            f, g = first[i], before
            if i < m:
                before = last[i]
            first[i] = np.divide(f - over * g, d)
            last[i] = np.divide(g - under * f, d)
        for k in range(columns):
            sums[k] = b[m, k]
            x[m, k] = 0
        for i in range(m):
            f = c[m - i]
            for k in range(columns):
                sums[k] -= f * x[i, k]
        for i in range(m + 1):
            f = last[i]
            for k in range(columns):
                x[i, k] += sums[k] * f
    return 0
