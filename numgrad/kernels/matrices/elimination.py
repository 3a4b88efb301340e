"""Triangular factors of real matrices of medium size, in one thread.

LAPACK's libraries take several threads from 200 rows, which costs more than it brings up to some
hundred. Here a block of rows is factored, then each pair of rows below is brought up to date by it
while it is in the fastest cache, four rows of the block at a time, so that an element is read once
for four products.
"""

from numgrad.codegen.accumulation import maximum
from numgrad.codegen.device import contracted, outlined

BLOCK = 16
"""Rows factored before others are brought up to date: with the pair they fit into the cache."""


@outlined
def exchange_columns(row, pivots, lo, hi):
    """Exchange elements of a row as columns ``lo`` to ``hi`` were."""
    for k in range(lo, hi):
        p = pivots[k] - 1
        if p != k:
            other = row[p]
            row[p] = row[k]
            row[k] = other


@contracted
def subtract_row(row, upper, f, lo):
    """Subtract a multiple of a row from another one behind ``lo``."""
    for j in range(lo, row.size):
        row[j] -= f * upper[j]


@contracted
def subtract_eight(a, k, row):
    """Subtract multiples of eight rows from another one, so that all before ``k + 8`` are final."""
    u0, u1, u2, u3 = a[k], a[k + 1], a[k + 2], a[k + 3]
    u4, u5, u6, u7 = a[k + 4], a[k + 5], a[k + 6], a[k + 7]
    f0 = row[k]
    f1 = row[k + 1] - f0 * u0[k + 1]
    f2 = row[k + 2] - f0 * u0[k + 2] - f1 * u1[k + 2]
    f3 = row[k + 3] - f0 * u0[k + 3] - f1 * u1[k + 3] - f2 * u2[k + 3]
    f4 = row[k + 4] - f0 * u0[k + 4] - f1 * u1[k + 4] - f2 * u2[k + 4] - f3 * u3[k + 4]
    f5 = row[k + 5] - f0 * u0[k + 5] - f1 * u1[k + 5] - f2 * u2[k + 5] - f3 * u3[k + 5]
    f5 = f5 - f4 * u4[k + 5]
    f6 = row[k + 6] - f0 * u0[k + 6] - f1 * u1[k + 6] - f2 * u2[k + 6] - f3 * u3[k + 6]
    f6 = f6 - f4 * u4[k + 6] - f5 * u5[k + 6]
    f7 = row[k + 7] - f0 * u0[k + 7] - f1 * u1[k + 7] - f2 * u2[k + 7] - f3 * u3[k + 7]
    f7 = f7 - f4 * u4[k + 7] - f5 * u5[k + 7] - f6 * u6[k + 7]
    row[k + 1], row[k + 2], row[k + 3] = f1, f2, f3
    row[k + 4], row[k + 5], row[k + 6], row[k + 7] = f4, f5, f6, f7
    for j in range(k + 8, row.size):
        x = row[j] - f0 * u0[j] - f1 * u1[j] - f2 * u2[j] - f3 * u3[j]
        row[j] = x - f4 * u4[j] - f5 * u5[j] - f6 * u6[j] - f7 * u7[j]


@contracted
def subtract_four(a, k, row):
    """Subtract multiples of four rows from another one, which are zero then up to the diagonal."""
    u0, u1, u2, u3 = a[k], a[k + 1], a[k + 2], a[k + 3]
    f0 = row[k]
    f1 = row[k + 1] - f0 * u0[k + 1]
    f2 = row[k + 2] - f0 * u0[k + 2] - f1 * u1[k + 2]
    f3 = row[k + 3] - f0 * u0[k + 3] - f1 * u1[k + 3] - f2 * u2[k + 3]
    row[k + 1], row[k + 2], row[k + 3] = f1, f2, f3
    for j in range(k + 4, row.size):
        row[j] = row[j] - f0 * u0[j] - f1 * u1[j] - f2 * u2[j] - f3 * u3[j]


@outlined
def pivot_of(row, k):
    """The place of the largest element of a row from ``k`` on, the first of several; not NaN."""
    best = abs(row[k])
    for j in range(k + 1, row.size):
        best = maximum(best, abs(row[j]))
    for j in range(k, row.size):
        if abs(row[j]) == best:
            return j
    p = k
    best = abs(row[k])
    for j in range(k + 1, row.size):
        if abs(row[j]) > best:
            best = abs(row[j])
            p = j
    return p


@outlined
def divide_row(row, d, lo):
    """Divide a row by a number behind ``lo``."""
    for j in range(lo, row.size):
        row[j] = row[j] / d


@outlined
def factor_block(a, pivots, lo, hi):
    """Factor rows ``lo`` to ``hi``, which are brought up to date by those before."""
    info = 0
    for k in range(lo, hi):
        row = a[k]
        exchange_columns(row, pivots, lo, k)
        q = lo
        while q + 4 <= k:
            subtract_four(a, q, row)
            q += 4
        while q < k:
            subtract_row(row, a[q], row[q], q + 1)
            q += 1
        p = pivot_of(row, k)
        pivots[k] = p + 1
        for i in range(lo, k + 1):
            exchange_columns(a[i], pivots, k, k + 1)
        d = row[k]
        if d == 0.0:
            if info == 0:
                info = k + 1
        else:
            divide_row(row, d, k + 1)
    return info


@outlined
def factor(a, pivots, alone):
    """Factor in place as ``small.factor`` does."""
    n = a.shape[0]
    info = 0
    lo = 0
    while lo < n:
        hi = min(lo + BLOCK, n)
        sign = factor_block(a, pivots, lo, hi)
        if info == 0:
            info = sign
        for i in range(lo):
            exchange_columns(a[i], pivots, lo, hi)
        for i in range(hi, n):
            row = a[i]
            exchange_columns(row, pivots, lo, hi)
            for k in range(lo, hi, 8):
                subtract_eight(a, k, row)
        lo = hi
    return info
