"""The logarithm of one matrix, by inverse scaling and squaring of its triangular form.

Sizes of powers choose how many square roots are taken and the degree of Padé's approximant, which
is summed as partial fractions; the diagonal of the root less one, and what stands beside it, are
computed anew from the eigenvalues (A. Al-Mohy, N. Higham, "Improved inverse scaling and squaring
algorithms for the matrix logarithm", 2012). Triangular forms are below the diagonal: Note
[Transposes] in ``schur``.
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
from numgrad.kernels.matrices.matrix_exponential import magnitude, norm_of, root
from numgrad.kernels.matrices.schur import complex_schur, real_schur, triangular_root, turn_back
from numgrad.kernels.vmath.complex_exponential import exp_c128, sinh_c128
from numgrad.kernels.vmath.complex_inverse import arctanh_c128, log_c128, sqrt_c128
from numgrad.kernels.vmath.roots import hypot_f64

_REACH = np.array([0.0, 1.59e-5, 2.31e-3, 1.94e-2, 6.21e-2, 1.28e-1, 2.06e-1, 2.88e-1])
"""Sizes up to which an approximant of the degree is exact to rounding."""
_RULES = [np.polynomial.legendre.leggauss(degree) for degree in range(1, 8)]
_NODES = np.concatenate([(1 + nodes) / 2 for nodes, _ in _RULES])
_WEIGHTS = np.concatenate([weights / 2 for _, weights in _RULES])
"""Gauss's rules on (0, 1) of the degrees 1 to 7, one after the other."""
_MOST_ROOTS = 1100
_ROUNDING = 2.0**-53


@outlined
def less_one(a, roots):
    """``a**(2**-roots) - 1``, without cancellation (A. Al-Mohy, 2012)."""
    if roots == 0:
        return a - 1.0
    left = roots
    if a.real <= 0.0:
        a = sqrt_c128(a)
        left -= 1
    first = a - 1.0
    if left == 0:
        return first
    a = sqrt_c128(a)
    whole = 1.0 + a
    for _ in range(left - 1):
        a = sqrt_c128(a)
        whole = whole * (1.0 + a)
    return np.divide(first, whole)


@outlined
def half_difference(x, y, log_x, log_y):
    """Half of ``log(x) - log(y)`` for what is near, and whether it is taken so."""
    turns = np.floor((float(log_x.imag) - float(log_y.imag)) / (2.0 * np.pi) + 0.5)
    half = arctanh_c128(np.divide(x - y, x + y))
    return complex(float(half.real), float(half.imag) + np.pi * turns)


@outlined
def beside_root(x, y, t, roots):
    """The element of the root of ``[[y, 0], [t, x]]`` below its diagonal."""
    power = 2.0 ** float(-roots)
    log_x, log_y = log_c128(x), log_c128(y)
    if x == y:
        return t * power * exp_c128((power - 1.0) * log_x)
    if magnitude(x - y) > 0.5 * magnitude(x + y):
        return t * np.divide(exp_c128(power * log_x) - exp_c128(power * log_y), x - y)
    half = half_difference(x, y, log_x, log_y)
    mean = exp_c128((0.5 * power) * (log_x + log_y))
    return t * mean * np.divide(2.0 * sinh_c128(power * half), x - y)


@outlined
def beside_logarithm(x, y, t):
    """The element of the logarithm of ``[[y, 0], [t, x]]`` below its diagonal."""
    if x == y:
        return np.divide(t, x)
    log_x, log_y = log_c128(x), log_c128(y)
    if magnitude(x - y) > 0.5 * magnitude(x + y):
        return t * np.divide(log_x - log_y, x - y)
    return t * np.divide(2.0 * half_difference(x, y, log_x, log_y), x - y)


@outlined
def take_root(a, e, work):
    """Put the square root in place of ``a``, and that less one into ``e``."""
    n = a.shape[0]
    if triangular_root(a, work) != 0:
        return 1
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = work[i, j]
            e[i, j] = work[i, j]
        e[i, i] = work[i, i] - 1.0
    return 0


@outlined
def choose(a, e, p2, p3, p4, p5, sums, roots, alone):
    """The degree of the approximant, 0 if there is none, and how many roots were taken in all."""
    product(e, 0, e, 0, p2, 0, alone)
    product(p2, 0, e, 0, p3, 0, alone)
    size = max(root(norm_of(p2, sums), 2.0), root(norm_of(p3, sums), 3.0))
    for degree in range(1, 3):
        if size <= _REACH[degree]:
            return degree, roots
    extra_roots = 0
    while roots < _MOST_ROOTS:
        product(p2, 0, p2, 0, p4, 0, alone)
        d4 = root(norm_of(p4, sums), 4.0)
        size = max(root(norm_of(p3, sums), 3.0), d4)
        again = False
        if size <= _REACH[7]:
            degree = 3
            while size > _REACH[degree]:
                degree += 1
            if degree <= 6:
                return degree, roots
            again = size * 0.5 <= _REACH[5] and extra_roots < 2
        if again:
            extra_roots += 1
        else:
            product(p2, 0, p3, 0, p5, 0, alone)
            size = min(size, max(d4, root(norm_of(p5, sums), 5.0)))
            for degree in range(6, 8):
                if size <= _REACH[degree]:
                    return degree, roots
        if take_root(a, e, p5) != 0:
            return 0, roots
        roots += 1
        product(e, 0, e, 0, p2, 0, alone)
        product(p2, 0, e, 0, p3, 0, alone)
    return 0, roots


@outlined
def add_fraction(e, solved, out, node, weight):
    """Add ``weight * (1 + node * e)^-1 @ e``."""
    n = e.shape[0]
    for i in range(n):
        for j in range(i + 1):
            solved[i, j] = e[i, j]
        for k in range(i):
            f = node * e[i, k]
            for j in range(k + 1):
                solved[i, j] -= f * solved[k, j]
        d = 1.0 + node * e[i, i]
        for j in range(i + 1):
            solved[i, j] = np.divide(solved[i, j], d)
            out[i, j] += weight * solved[i, j]


@outlined
def triangular_logarithm(t, out, alone):
    """The principal logarithm of a complex matrix without elements above the diagonal."""
    n = t.shape[0]
    a, e = np.zeros((n, n), t.dtype), np.zeros((n, n), t.dtype)
    p2, p3 = np.zeros((n, n), t.dtype), np.zeros((n, n), t.dtype)
    p4, p5 = np.zeros((n, n), t.dtype), np.zeros((n, n), t.dtype)
    sums, d = np.empty(n), np.empty(n, t.dtype)
    principal = True
    for i in range(n):
        if t[i, i] == 0:
            return SINGULAR
        if t[i, i].real <= 0.0 and t[i, i].imag == 0.0:
            principal = False
        d[i] = t[i, i]
        for j in range(i + 1):
            a[i, j] = t[i, j]
            e[i, j] = t[i, j]
        e[i, i] -= 1.0
    roots, far = 0, 1.0
    while far > 0.0:
        far = 0.0
        for i in range(n):
            if magnitude(d[i] - 1.0) > _REACH[7]:
                far = 1.0
        if far > 0.0:
            roots += 1
            for i in range(n):
                d[i] = sqrt_c128(d[i])
    for _ in range(roots):
        if take_root(a, e, p5) != 0:
            return NOT_FOUND
    degree, roots = choose(a, e, p2, p3, p4, p5, sums, roots, alone)
    if degree == 0:
        return NOT_FOUND
    for i in range(n):
        e[i, i] = less_one(t[i, i], roots)
        if principal and roots > 0 and i > 0:
            e[i, i - 1] = beside_root(t[i, i], t[i - 1, i - 1], t[i, i - 1], roots)
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
    start = (degree - 1) * degree // 2
    for k in range(start, start + degree):
        add_fraction(e, p2, out, _NODES[k], _WEIGHTS[k])
    scale = 2.0 ** float(roots)
    for i in range(n):
        for j in range(i):
            out[i, j] = out[i, j] * scale
        out[i, i] = log_c128(t[i, i])
        if principal and i > 0:
            out[i, i - 1] = beside_logarithm(t[i, i], t[i - 1, i - 1], t[i, i - 1])
    return 0


@device
def sides(a):
    """Whether anything is not zero below the diagonal, and above it."""
    below, above = False, False
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            if a[i, j] != 0:
                below, above = below or i > j, above or i < j
    return below, above


@outlined
def real_logarithm(a, out, alone):
    """The principal logarithm, real."""
    if not is_finite(a):
        return NOT_FINITE
    n = a.shape[0]
    below, above = sides(a)
    t, v = np.zeros((n, n), np.complex128), np.zeros((n, n), np.complex128)
    whole = below and above
    if whole:
        real_t, real_v = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype)
        copy(a, real_t)
        if real_schur(real_t, real_v) != 0:
            return NOT_FOUND
        copy(real_t, t)
        copy(real_v, v)
    elif above:
        copy(a.T, t)
    else:
        copy(a, t)
    largest = 0.0
    for i in range(n):
        largest = max(largest, fabs(t[i, i].real))
    if whole:
        for k in range(n - 1):
            if t[n - 2 - k, n - 1 - k] != 0:
                separate(t, v, n - 1 - k)
    for i in range(n):
        if t[i, i].imag == 0.0 and t[i, i].real <= 0.0:
            small = -float(n) * _ROUNDING * largest
            return SINGULAR if t[i, i].real >= small else NOT_REAL
    logarithm, work = np.empty((n, n), np.complex128), np.empty((n, n), np.complex128)
    info = triangular_logarithm(t, logarithm, alone)
    if info != 0:
        return info
    if whole:
        turn_back(v, logarithm, v, work, logarithm, alone)
    for i in range(n):
        for j in range(n):
            out[i, j] = logarithm[j, i].real if above and not whole else logarithm[i, j].real
    return 0


@outlined
def separate(t, v, m):
    """Make the block of a pair of complex eigenvalues that ends in row ``m`` triangular."""
    n = t.shape[0]
    s = t[m - 1, m].real
    w = sqrt(fabs(s)) * sqrt(fabs(t[m, m - 1].real))
    r = hypot_f64(w, s)
    s, c = s / r, complex(0.0, w / r)
    for j in range(n):  # columns
        x, y = t[j, m - 1], t[j, m]
        t[j, m - 1] = np.conj(c) * x + s * y
        t[j, m] = c * y - s * x
    for j in range(n):  # rows
        x, y = t[m - 1, j], t[m, j]
        t[m - 1, j] = c * x + s * y
        t[m, j] = np.conj(c) * y - s * x
        x, y = v[m - 1, j], v[m, j]
        v[m - 1, j] = c * x + s * y
        v[m, j] = np.conj(c) * y - s * x
    t[m - 1, m] = 0.0


@outlined
def complex_logarithm(a, out, like, alone):
    """The principal logarithm of a complex matrix."""
    if not is_finite(a):
        return NOT_FINITE
    n = a.shape[0]
    below, above = sides(a)
    t, v = np.zeros((n, n), a.dtype), np.zeros((n, n), a.dtype)
    whole = below and above
    if above and not whole:
        copy(a.T, t)
    else:
        copy(a, t)
    if whole and complex_schur(t, v, like) != 0:
        return NOT_FOUND
    logarithm, work = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype)
    info = triangular_logarithm(t, logarithm, alone)
    if info != 0:
        return info
    if whole:
        turn_back(v, logarithm, v, work, out, alone)
    elif above:
        copy(logarithm.T, out)
    else:
        copy(logarithm, out)
    return 0
