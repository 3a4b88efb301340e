"""Small real matrices, factored and solved by plain loops: a call of LAPACK costs more.

Matrices are row-major. ``factor`` exchanges columns, as LAPACK does on what it takes for the
transpose: ``a = lower @ upper @ P.T``, with ones on the diagonal of ``upper``, whose other elements
stand above those of ``lower``.
"""

from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import select, sqrt
from numgrad.kernels.matrices.elementary import copy_packed


@outlined
def factor(a, pivots, alone):
    """Factor in place; 1 more than the first place on the diagonal that is zero, else 0."""
    n = a.shape[0]
    info = 0
    for k in range(n):
        row = a[k]
        p = k
        best = abs(row[k])
        for j in range(k + 1, n):
            size = abs(row[j])
            larger = size > best  # no branch, which would be guessed wrong
            best = select(larger, size, best)
            p = select(larger, j, p)
        pivots[k] = p + 1
        if best == 0.0:
            if info == 0:
                info = k + 1
        else:
            for i in range(n):
                other = a[i, p]
                a[i, p] = a[i, k]
                a[i, k] = other
            d = row[k]
            for j in range(k + 1, n):
                row[j] = row[j] / d
            for i in range(k + 1, n):
                below = a[i]
                f = below[k]
                for j in range(k + 1, n):
                    below[j] -= f * row[j]
    return info


@outlined
def solve(a, b, factors, pivots, x, alone):
    """Factor a copy and put the solutions into ``x``; what ``factor`` says."""
    copy_packed(a, factors)
    copy_packed(b, x)
    info = factor(factors, pivots, alone)
    substitute(factors, pivots, x, 0, alone)
    return info


@outlined
def substitute(a, pivots, b, of_adjoint, alone):
    """Solve by the factors, or with the transpose, in place of ``b``."""
    n = a.shape[0]
    if of_adjoint:
        exchange(b, pivots, 0, alone)
        if b.shape[1] == 1:
            x = b.reshape(n)
            triangle_of_one(a, x, False, True, True)
            triangle_of_one(a, x, True, True, False)
        else:
            triangle(a, b, False, True, True, alone)
            triangle(a, b, True, True, False, alone)
    else:
        if b.shape[1] == 1:
            x = b.reshape(n)
            triangle_of_one(a, x, True, False, False)
            triangle_of_one(a, x, False, False, True)
        else:
            triangle(a, b, True, False, False, alone)
            triangle(a, b, False, False, True, alone)
        exchange(b, pivots, 1, alone)
    return 0


@outlined
def solve_backward(factors, pivots, z, x, ga, alone):
    """Gradients of what ``solve`` was given: that of the right side in place of that of ``x``."""
    substitute(factors, pivots, z, 1, alone)
    for i in range(z.shape[0]):
        row = ga[i]
        for j in range(x.shape[0]):
            total = z[i, 0] * x[j, 0]
            for k in range(1, z.shape[1]):
                total += z[i, k] * x[j, k]
            row[j] = -total
    return 0


@outlined
def exchange(b, pivots, backward, alone):
    """Exchange rows as ``factor`` did, or back."""
    n = b.shape[0]
    for step in range(n):
        k = n - 1 - step if backward else step
        p = pivots[k] - 1
        if p != k:
            for c in range(b.shape[1]):
                other = b[k, c]
                b[k, c] = b[p, c]
                b[p, c] = other
    return 0


@outlined
def clear(a, alone):
    """Zeros above the diagonal."""
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[0]):
            a[i, j] = 0
    return 0


@outlined
def triangle(a, b, lower, trans, unit, alone):
    """Solve ``a @ x = b``, or with the transpose, in place of ``b``, a matrix."""
    n = a.shape[0]
    count = b.shape[1]
    forward = lower != trans
    for step in range(n):
        i = step if forward else n - 1 - step
        lo = 0 if lower else i + 1
        hi = i if lower else n
        d = a[i, i]
        if trans:
            if not unit:
                for c in range(count):
                    b[i, c] = b[i, c] / d
            for j in range(lo, hi):
                f = a[i, j]
                for c in range(count):
                    b[j, c] -= f * b[i, c]
        else:
            for j in range(lo, hi):
                f = a[i, j]
                for c in range(count):
                    b[i, c] -= f * b[j, c]
            if not unit:
                for c in range(count):
                    b[i, c] = b[i, c] / d
    return 0


@outlined
def triangle_of_one(a, b, lower, trans, unit):
    """The same of a vector."""
    n = a.shape[0]
    forward = lower != trans
    for step in range(n):
        i = step if forward else n - 1 - step
        lo = 0 if lower else i + 1
        hi = i if lower else n
        row = a[i]
        f = b[i]
        if trans:
            if not unit:
                f = f / row[i]
                b[i] = f
            for j in range(lo, hi):
                b[j] -= row[j] * f
        else:
            for j in range(lo, hi):
                f -= row[j] * b[j]
            b[i] = f if unit else f / row[i]


@outlined
def cholesky(a, alone):
    """Lower factor of what the lower triangle says, in place; info as of ``factor``."""
    n = a.shape[0]
    info = 0
    for i in range(n):
        row = a[i]
        for j in range(i):
            other = a[j]
            total = row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j]
        total = row[i]
        for k in range(i):
            total -= row[k] * row[k]
        if not total > 0.0 and info == 0:
            info = i + 1
        row[i] = sqrt(total)
        for j in range(i + 1, n):
            row[j] = 0.0
    return info


@outlined
def cholesky_backward(factor, g, alone):
    """Turn the gradient of the factor into that of the matrix, symmetric, in its place.

    The factor's elements are gone through from the last to the first (I. Murray, "Differentiation
    of the Cholesky decomposition", 2016).
    """
    n = factor.shape[0]
    for back in range(n):
        j = n - 1 - back
        row = factor[j]
        d = row[j]
        total = g[j, j]
        for i in range(j + 1, n):
            c = g[i, j] / d
            g[i, j] = c
            total -= c * factor[i, j]
        total = total / d
        g[j, j] = total
        for k in range(j):
            g[j, k] -= total * row[k]
        for i in range(j + 1, n):
            c = g[i, j]
            below = factor[i]
            for k in range(j):
                g[j, k] -= c * below[k]
                g[i, k] -= c * row[k]
        g[j, j] = total * 0.5
    for i in range(n):
        for j in range(i):
            half = g[i, j] * 0.5
            g[i, j] = half
            g[j, i] = half
    return 0
