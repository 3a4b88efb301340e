"""Functions of one matrix by its triangular form (I. Schur), which LAPACK finds.

Note [Transposes]
-----------------
What is row-major LAPACK takes for the transpose, and the vectors that it gives are read as
transposes too: ``a = v^H @ t @ v`` with ``t`` below the diagonal, and next above it where a real
matrix has a pair of complex eigenvalues.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs, sqrt
from numgrad.kernels.matrices.elementary import (
    NOT_FINITE,
    NOT_FOUND,
    NOT_REAL,
    SINGULAR,
    copy,
    is_finite,
    product,
)
from numgrad.kernels.products.blas import lapack
from numgrad.kernels.vmath.complex_inverse import sqrt_c128
from numgrad.kernels.vmath.roots import hypot_f64


@device
def _room(n):
    """The length of work space with which LAPACK takes columns together."""
    return 67 * n + (4224 if n > 16 else 0)


@outlined
def real_schur(t, v):
    """Put the triangular form in place of a matrix, and the vectors into ``v``."""
    n = t.shape[0]
    length = _room(n)
    values, work = np.empty(2 * n, t.dtype), np.empty(length, t.dtype)
    count, info = np.empty(1, np.int32), np.empty(1, np.int32)
    lapack(
        t.dtype, "gees", "V", "N", 0, n, t, n, count, values, values[n:], v, n, work, length, count,
        info,
    )  # fmt: skip
    return NOT_FOUND if info[0] != 0 else 0


@outlined
def complex_schur(t, v, like):
    """The same of a complex matrix."""
    n = t.shape[0]
    length = _room(n)
    values, work, reals = np.empty(n, t.dtype), np.empty(length, t.dtype), np.empty(n, like.dtype)
    count, info = np.empty(1, np.int32), np.empty(1, np.int32)
    lapack(
        t.dtype, "gees", "V", "N", 0, n, t, n, count, values, v, n, work, length, reals, count, info
    )
    return NOT_FOUND if info[0] != 0 else 0


@outlined
def turn_back(left, middle, right, work, out, alone):
    """Put ``left^H @ middle @ right`` into ``out``: from triangular forms to what they are of."""
    product(left, 2, middle, 0, work, 0, alone)
    product(work, 0, right, 0, out, 0, alone)


# ------------------------------------------------------------------------ Sylvester's equation


@outlined
def real_sylvester(a, b, q, x, like, alone):
    """The ``x`` of ``a @ x + x @ b = q``."""
    if not (is_finite(a) and is_finite(b) and is_finite(q)):
        return NOT_FINITE
    m, n = x.shape[0], x.shape[1]
    ta, va = np.empty((m, m), x.dtype), np.empty((m, m), x.dtype)
    tb, vb = np.empty((n, n), x.dtype), np.empty((n, n), x.dtype)
    copy(a, ta)
    copy(b, tb)
    if real_schur(ta, va) + real_schur(tb, vb) != 0:
        return NOT_FOUND
    return triangular_sylvester(ta, va, tb, vb, q, x, like, alone)


@outlined
def complex_sylvester(a, b, q, x, like, alone):
    """The same of complex matrices."""
    if not (is_finite(a) and is_finite(b) and is_finite(q)):
        return NOT_FINITE
    m, n = x.shape[0], x.shape[1]
    ta, va = np.empty((m, m), x.dtype), np.empty((m, m), x.dtype)
    tb, vb = np.empty((n, n), x.dtype), np.empty((n, n), x.dtype)
    copy(a, ta)
    copy(b, tb)
    if complex_schur(ta, va, like) + complex_schur(tb, vb, like) != 0:
        return NOT_FOUND
    return triangular_sylvester(ta, va, tb, vb, q, x, like, alone)


@outlined
def triangular_sylvester(ta, va, tb, vb, q, x, like, alone):
    """The same by triangular forms: Note [Transposes] in ``schur``."""
    m, n = x.shape[0], x.shape[1]
    f, work = np.empty((m, n), x.dtype), np.empty((m, n), x.dtype)
    scale, info = np.empty(1, like.dtype), np.empty(1, np.int32)
    copy(q, f)
    product(va, 0, f, 0, work, 0, alone)
    product(work, 0, vb, 2, f, 0, alone)
    lapack(x.dtype, "trsyl", "N", "N", 1, n, m, tb, n, ta, m, f, n, scale, info)
    turn_back(va, f, vb, work, x, alone)
    if scale[0] != 1.0:
        for i in range(m):
            for j in range(n):
                x[i, j] = np.divide(x[i, j], scale[0])
    return SINGULAR if info[0] != 0 else 0


# ------------------------------------------------------------------------------------- square roots


@outlined
def real_root(a, out, alone):
    """The principal square root, real; NaN of what is not finite.

    Blocks are taken as in N. Higham, "Computing real square roots of a real matrix", 1987.
    """
    if not is_finite(a):
        for i in range(a.shape[0]):
            for j in range(a.shape[0]):
                out[i, j] = np.nan
        return 0
    n = a.shape[0]
    t, v, r = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype), np.zeros((n, n), a.dtype)
    copy(a, t)
    if real_schur(t, v) != 0:
        return NOT_FOUND
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(fabs(t[i, i])))
    matrix, side = np.empty((4, 4)), np.empty(4)
    j = 0
    while j < n:
        size = 2 if j + 1 < n and t[j, min(j + 1, n - 1)] != 0.0 else 1
        if size == 1:
            d = float(t[j, j])
            if d < 0.0 and d < _SPURIOUS * largest:
                return NOT_REAL
            r[j, j] = sqrt(max(d, 0.0))
        else:
            root_of_pair(t, r, j)
        for p in range(size):
            for i in range(j):
                r[j + p, i] = t[j + p, i]
        k = j
        while k > 0:
            count = 2 if k > 1 and t[max(k - 2, 0), k - 1] != 0.0 else 1
            k -= count
            if beside(r, j, size, k, count, matrix, side) != 0:
                return SINGULAR
            for p in range(size):
                for c in range(count):
                    f = r[j + p, k + c]
                    for i in range(k):
                        r[j + p, i] -= f * r[k + c, i]
        j += size
    turn_back(v, r, v, t, out, alone)
    return 0


_SPURIOUS = -1e-25
"""Up to this times the largest a negative eigenvalue is taken for a zero."""


@outlined
def root_of_pair(t, r, j):
    """The root of a block of two rows, which has complex eigenvalues."""
    p, q, s, d = float(t[j, j]), float(t[j, j + 1]), float(t[j + 1, j]), float(t[j + 1, j + 1])
    middle, half = 0.5 * (p + d), 0.5 * (p - d)
    imag = sqrt(fabs(q)) * sqrt(fabs(s))
    imag = sqrt(max(0.0, (imag - half) * (imag + half)))
    whole = hypot_f64(middle, imag)
    if middle > 0.0:
        alpha = sqrt(0.5 * (middle + whole))
    else:
        alpha = imag / sqrt(2.0 * (whole - middle))
    twice = 2.0 * alpha
    r[j, j] = alpha + (p - middle) / twice
    r[j + 1, j + 1] = alpha + (d - middle) / twice
    r[j, j + 1] = q / twice
    r[j + 1, j] = s / twice


@outlined
def beside(r, j, size, k, count, matrix, side):
    """A block beside the diagonal, the solution of Sylvester's equation for two blocks on it."""
    if size == 1 and count == 1:
        d = r[j, j] + r[k, k]
        if d == 0.0:
            return 0 if r[j, k] == 0.0 else 1
        r[j, k] = r[j, k] / d
        return 0
    unknowns = size * count
    for row in range(unknowns):
        for column in range(unknowns):
            matrix[row, column] = 0.0
    for p in range(size):
        for c in range(count):
            row = p * count + c
            side[row] = r[j + p, k + c]
            for other in range(size):
                matrix[row, other * count + c] += r[j + p, j + other]
            for other in range(count):
                matrix[row, p * count + other] += r[k + other, k + c]
    for step in range(unknowns):
        best = step
        for row in range(step + 1, unknowns):
            if fabs(matrix[row, step]) > fabs(matrix[best, step]):
                best = row
        if matrix[best, step] == 0.0:
            return 1
        for column in range(unknowns):
            other = matrix[best, column]
            matrix[best, column] = matrix[step, column]
            matrix[step, column] = other
        moved = side[best]
        side[best] = side[step]
        side[step] = moved
        for row in range(step + 1, unknowns):
            f = matrix[row, step] / matrix[step, step]
            for column in range(step, unknowns):
                matrix[row, column] -= f * matrix[step, column]
            side[row] -= f * side[step]
    for back in range(unknowns):
        row = unknowns - 1 - back
        total = side[row]
        for column in range(row + 1, unknowns):
            total -= matrix[row, column] * side[column]
        side[row] = total / matrix[row, row]
    for p in range(size):
        for c in range(count):
            r[j + p, k + c] = side[p * count + c]
    return 0


@outlined
def triangular_root(t, r):
    """The root of a complex matrix without elements above the diagonal, where ``r`` has none."""
    n = t.shape[0]
    for j in range(n):
        r[j, j] = sqrt_c128(complex(float(t[j, j].real), float(t[j, j].imag)))
        for i in range(j):
            r[j, i] = t[j, i]
        for back in range(j):
            k = j - 1 - back
            d = r[j, j] + r[k, k]
            f = r[j, k]
            if d == 0.0:
                if f != 0.0:
                    return SINGULAR
            else:
                f = np.divide(f, d)
                r[j, k] = f
            for i in range(k):
                r[j, i] -= f * r[k, i]
    return 0


@outlined
def complex_root(a, out, like, alone):
    """The principal square root of a complex matrix."""
    if not is_finite(a):
        for i in range(a.shape[0]):
            for j in range(a.shape[0]):
                out[i, j] = np.nan
        return 0
    n = a.shape[0]
    t, v, r = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype), np.zeros((n, n), a.dtype)
    copy(a, t)
    if complex_schur(t, v, like) != 0:
        return NOT_FOUND
    if triangular_root(t, r) != 0:
        return SINGULAR
    turn_back(v, r, v, t, out, alone)
    return 0
