"""The exponential of one matrix, by scaling and squaring.

Sizes of powers choose Padé's approximant and the scaling; of triangular matrices the diagonals are
computed anew at each squaring (A. Al-Mohy, N. Higham, "A new scaling and squaring algorithm for the
matrix exponential", 2009).
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs
from numgrad.kernels.matrices.elementary import copy, product, turn
from numgrad.kernels.products.blas import lapack
from numgrad.kernels.vmath.complex_exponential import exp_c128, sinh_c128
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.logarithm import log2_f64, log_f64
from numgrad.kernels.vmath.roots import hypot_f64

_DEGREES = np.array([3, 5, 7, 9, 13])
_REACH = np.array(
    [1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1, 2.097847961257068, 4.25]
)
"""Sizes up to which an approximant of the degree is exact to rounding."""
_ERRORS = np.array(
    [
        1 / 100800.0,
        1 / 10059033600.0,
        1 / 4487938430976000.0,
        1 / 5914384781877411840000.0,
        1 / 113250775606021113483283660800000000.0,
    ]
)
"""The first coefficient of what each neglects."""
_PADE = np.array(
    [
        120.0, 60.0, 12.0, 1.0,
        30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0,
        17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0,
        17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0,
        3960.0, 90.0, 1.0,
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
        129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
        40840800.0, 960960.0, 16380.0, 182.0, 1.0,
    ]
)  # fmt: skip
_STARTS = np.array([0, 4, 10, 18, 28])
_ROUNDING = 2.0**-53
_AT_ONCE = 16.0
"""Halvings before the powers of what is huge are tried again."""


@outlined
def magnitude(x):
    """The absolute value, real or complex."""
    if x.imag == 0:  # which of a real number is known
        return fabs(float(x.real))
    return hypot_f64(float(x.real), float(x.imag))


@outlined
def norm_of(a, sums):
    """The largest sum of magnitudes of a column, by room for as many numbers."""
    n = a.shape[0]
    for j in range(n):
        sums[j] = 0.0
    for i in range(n):
        for j in range(n):
            sums[j] += magnitude(a[i, j])
    largest = 0.0
    for j in range(n):
        if not sums[j] <= largest:
            largest = sums[j]
    return largest


@outlined
def neglected(sizes, room, norm, scale, choice):
    """The number of halvings by which an approximant of ``scale * a`` neglects too much."""
    n = sizes.shape[0]
    if norm == 0.0:
        return 0
    power, after = room[0], room[1]
    for i in range(n):
        power[i] = 1.0
    steps = 2 * _DEGREES[choice] + 1
    logarithm = 0.0  # of what was taken out, since powers overflow
    for _ in range(steps):
        for j in range(n):
            after[j] = 0.0
        for i in range(n):
            f = power[i]
            for j in range(n):
                after[j] += f * sizes[i, j]
        largest = 0.0
        for j in range(n):
            largest = max(largest, after[j])
        if largest == 0.0:
            return 0
        logarithm += log2_f64(largest)
        for j in range(n):
            power[j] = after[j] / largest
    # of the power of the scaled matrix, divided by its norm
    logarithm += (steps - 1) * log2_f64(scale) - log2_f64(norm)
    logarithm += log2_f64(_ERRORS[choice] / _ROUNDING)
    return max(0, int(np.ceil(logarithm / (2 * _DEGREES[choice]))))


@outlined
def root(norm, degree):
    """The root of a norm of a power."""
    return exp_f64(log_f64(norm) / degree) if norm > 0.0 else 0.0


@outlined
def choose(b, b2, b4, b6, b8, sizes, room, norm, alone):
    """The approximant and how often to halve; the powers that it takes, of what is halved so.

    The approximant is -1 if powers overflow.
    """
    n = b.shape[0]
    product(b, 0, b, 0, b2, 0, alone)
    product(b2, 0, b2, 0, b4, 0, alone)
    product(b4, 0, b2, 0, b6, 0, alone)
    d6 = root(norm_of(b6, room[0]), 6.0)
    eta = max(root(norm_of(b4, room[0]), 4.0), d6)
    if eta < _REACH[0] and neglected(sizes, room, norm, 1.0, 0) == 0:
        return 0, 0
    if eta < _REACH[1] and neglected(sizes, room, norm, 1.0, 1) == 0:
        return 1, 0
    product(b4, 0, b4, 0, b8, 0, alone)
    d8 = root(norm_of(b8, room[0]), 8.0)
    eta = max(d6, d8)
    if eta < _REACH[2] and neglected(sizes, room, norm, 1.0, 2) == 0:
        return 2, 0
    if eta < _REACH[3] and neglected(sizes, room, norm, 1.0, 3) == 0:
        return 3, 0
    product(b6, 0, b4, 0, b8, 0, alone)
    eta = min(eta, max(d8, root(norm_of(b8, room[0]), 10.0)))
    if not eta < np.inf:
        return -1, 0
    halvings = 0
    if eta > _REACH[4]:
        halvings = int(np.ceil(log2_f64(eta / _REACH[4])))
    halvings += neglected(sizes, room, norm, 2.0 ** float(-halvings), 4)
    scale = 2.0 ** float(-halvings)
    for i in range(n):
        for j in range(n):
            b[i, j] = b[i, j] * scale
            b2[i, j] = b2[i, j] * scale * scale
            b4[i, j] = b4[i, j] * scale * scale * scale * scale
            b6[i, j] = b6[i, j] * scale * scale * scale * scale * scale * scale
    return 4, halvings


@outlined
def polynomials(b, b2, b4, b6, b8, u, work, choice, alone):
    """Odd and even part of the numerator: into ``u``, and in place of ``b8``."""
    n = b.shape[0]
    c = _STARTS[choice]
    if choice == 4:
        for i in range(n):
            for j in range(n):
                x2, x4, x6 = b2[i, j], b4[i, j], b6[i, j]
                u[i, j] = _PADE[c + 13] * x6 + _PADE[c + 11] * x4 + _PADE[c + 9] * x2
                b8[i, j] = _PADE[c + 7] * x6 + _PADE[c + 5] * x4 + _PADE[c + 3] * x2
            b8[i, i] += _PADE[c + 1]
        product(b6, 0, u, 0, b8, 1, alone)
        product(b, 0, b8, 0, u, 0, alone)
        for i in range(n):
            for j in range(n):
                x2, x4, x6 = b2[i, j], b4[i, j], b6[i, j]
                work[i, j] = _PADE[c + 12] * x6 + _PADE[c + 10] * x4 + _PADE[c + 8] * x2
                b8[i, j] = _PADE[c + 6] * x6 + _PADE[c + 4] * x4 + _PADE[c + 2] * x2
            b8[i, i] += _PADE[c]
        product(b6, 0, work, 0, b8, 1, alone)
        return 0
    for i in range(n):
        for j in range(n):
            odd, even = _PADE[c + 3] * b2[i, j], _PADE[c + 2] * b2[i, j]
            if choice > 0:
                odd, even = odd + _PADE[c + 5] * b4[i, j], even + _PADE[c + 4] * b4[i, j]
            if choice > 1:
                odd, even = odd + _PADE[c + 7] * b6[i, j], even + _PADE[c + 6] * b6[i, j]
            if choice > 2:
                odd, even = odd + _PADE[c + 9] * b8[i, j], even + _PADE[c + 8] * b8[i, j]
            work[i, j], b8[i, j] = odd, even
        work[i, i] += _PADE[c + 1]
        b8[i, i] += _PADE[c]
    product(b, 0, work, 0, u, 0, alone)
    return 0


@device
def exponential_of(x, scale):
    """The exponential of a real or a complex number times a real one."""
    return exp_c128(complex(float(x.real) * scale, float(x.imag) * scale))


@outlined
def mean_exponential(x, y, scale):
    """The mean of ``exp`` between two numbers times a real one, without cancellation."""
    gap = y - x
    half = complex(0.5 * scale * float(gap.real), 0.5 * scale * float(gap.imag))
    if half == 0:
        return exponential_of(x, scale)
    if magnitude(half) < 1.0:
        return exponential_of(x + 0.5 * gap, scale) * np.divide(sinh_c128(half), half)
    return np.divide(exponential_of(y, scale) - exponential_of(x, scale), 2.0 * half)


@outlined
def diagonals(a, out, scale, below, beside):
    """The diagonal of a triangular matrix's exponential, and the one beside it."""
    n = a.shape[0]
    for i in range(n):
        out[i, i] = exponential_of(a[i, i], scale)
    if beside:
        for i in range(n - 1):
            mean = mean_exponential(a[i, i], a[i + 1, i + 1], scale)
            if below:
                out[i + 1, i] = mean * a[i + 1, i] * scale
            else:
                out[i, i + 1] = mean * a[i, i + 1] * scale
    return 0


@outlined
def exponential(a, out, alone):
    """``exp(a)``."""
    n = a.shape[0]
    below, above = 0, 0
    for i in range(n):
        for j in range(n):
            if a[i, j] != 0 and i > j:
                below = 1
            if a[i, j] != 0 and i < j:
                above = 1
    if below == 0 and above == 0:
        for i in range(n):
            for j in range(n):
                out[i, j] = 0
            out[i, i] = exponential_of(a[i, i], 1.0)
        return 0
    sizes, room = np.empty((n, n)), np.empty((2, n))
    for i in range(n):
        for j in range(n):
            sizes[i, j] = magnitude(a[i, j])
    norm = norm_of(a, room[0])
    if not norm < np.inf:
        for i in range(n):
            for j in range(n):
                out[i, j] = np.nan
        return 0
    b, b2, b4 = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype), np.empty((n, n), a.dtype)
    b6, b8, u = np.empty((n, n), a.dtype), np.empty((n, n), a.dtype), np.empty((n, n), a.dtype)
    pivots, info = np.empty(n, np.int32), np.empty(1, np.int32)
    copy(a, b)
    first = 0
    choice, further = choose(b, b2, b4, b6, b8, sizes, room, norm, alone)
    while choice < 0:  # powers overflow
        first += int(_AT_ONCE)
        scale = 2.0 ** float(-first)
        for i in range(n):
            for j in range(n):
                b[i, j] = a[i, j] * scale
                sizes[i, j] *= 2.0**-_AT_ONCE
        norm *= 2.0**-_AT_ONCE
        choice, further = choose(b, b2, b4, b6, b8, sizes, room, norm, alone)
    halvings = first + further
    polynomials(b, b2, b4, b6, b8, u, out, choice, alone)
    v = b8
    for i in range(n):
        for j in range(n):
            b[i, j] = v[i, j] - u[i, j]
            out[i, j] = v[i, j] + u[i, j]
    # LAPACK takes transposes, which swaps the sides, and these commute; what is triangular it must
    # see as upper, where nothing is eliminated: rows exchanged below would cost many digits
    if below == 0:
        turn(b)
        turn(out)
    lapack(a.dtype, "gesv", n, n, b, n, pivots, out, n, info)
    if below == 0:
        turn(out)
    if below == 0 or above == 0:
        diagonals(a, out, 2.0 ** float(-halvings), below, 0)
    for k in range(halvings):
        product(out, 0, out, 0, u, 0, alone)
        copy(u, out)
        if below == 0 or above == 0:
            diagonals(a, out, 2.0 ** float(k + 1 - halvings), below, 1)
    if below == 0 or above == 0:
        for i in range(n):
            for j in range(i):
                if below == 0:
                    out[i, j] = 0
                else:
                    out[j, i] = 0
    return 0
