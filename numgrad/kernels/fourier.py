"""Fourier transforms of rows for loops of compiled functions, which call no library.

Note [Mixed radix]
------------------
Stockham's form of the fast Fourier transform with factors 4, 2, 3, 5 and any others (C. Van Loan,
Computational Frameworks for the Fast Fourier Transform, 1992, 1.7): a pass takes ``p`` blocks of a
row apart into sums and puts these in order, so that no pass reverses bits. Real and imaginary parts
lie in arrays of their own. All is computed in np.float64, roots of unity anew for each call, some
nanoseconds each. A factor that is a large prime takes as many operations as its square.
"""

import numpy as np

from numgrad.codegen.compile import KernelSource
from numgrad.codegen.device import instruction, outlined
from numgrad.kernels.vmath.trigonometric import cos_f64, sin_f64

TAU = 2 * np.pi
SINE_3 = np.sqrt(0.75)
COSINE_5, OTHER_COSINE_5 = (np.sqrt(5.0) - 1) / 4, -(np.sqrt(5.0) + 1) / 4
SINE_5, OTHER_SINE_5 = np.sqrt((5 + np.sqrt(5.0)) / 8), np.sqrt((5 - np.sqrt(5.0)) / 8)

FORWARD, TO_REAL, FROM_REAL, HALF = 1, 2, 4, 8
"""Bits of a transform: its direction; whether the result is real, of half a spectrum; whether the
operand is real, and whether half of its spectrum is stored."""
PLAIN, MEAN, UNITARY = 0, 1, 2
"""Scales: 1, 1/n, 1/sqrt(n)."""


@outlined
def roots_of_unity(cosines, sines, n, sign):
    """``exp(sign 2 pi i k / n)``: angles in the first half turn, mirrored in the second."""
    unit = TAU / n
    half = n // 2 + 1
    for k in range(half):
        cosines[k] = cos_f64(unit * k)
    for k in range(half):
        sines[k] = sign * sin_f64(unit * k)
    if n % 2 == 0:
        sines[n // 2] = 0.0
    for k in range(half, n):
        cosines[k] = cosines[n - k]
    for k in range(half, n):
        sines[k] = -sines[n - k]


@outlined
def pass_two(a, b, c, d, cosines, sines, m, s):
    """A pass of factor 2 over ``m`` pairs of blocks of ``s``, from ``a + bi`` to ``c + di``."""
    for q in range(m):
        u, v = cosines[q * s], sines[q * s]
        here, there = q * s, (q + m) * s
        first, second = 2 * q * s, (2 * q + 1) * s
        for j in range(s):
            x0, y0, x1, y1 = a[here + j], b[here + j], a[there + j], b[there + j]
            x, y = x0 - x1, y0 - y1
            c[first + j] = x0 + x1
            d[first + j] = y0 + y1
            c[second + j] = x * u - y * v
            d[second + j] = x * v + y * u


@outlined
def pass_three(a, b, c, d, cosines, sines, m, s, sign):
    """A pass of factor 3."""
    for q in range(m):
        u1, v1, u2, v2 = cosines[q * s], sines[q * s], cosines[2 * q * s], sines[2 * q * s]
        here, step, to = q * s, m * s, 3 * q * s
        for j in range(s):
            k = here + j
            x0, y0 = a[k], b[k]
            x1, y1, x2, y2 = a[k + step], b[k + step], a[k + 2 * step], b[k + 2 * step]
            xs, ys = x1 + x2, y1 + y2
            xd, yd = sign * SINE_3 * (x1 - x2), sign * SINE_3 * (y1 - y2)
            xh, yh = x0 - 0.5 * xs, y0 - 0.5 * ys
            c[to + j] = x0 + xs
            d[to + j] = y0 + ys
            x, y = xh - yd, yh + xd
            c[to + s + j] = x * u1 - y * v1
            d[to + s + j] = x * v1 + y * u1
            x, y = xh + yd, yh - xd
            c[to + 2 * s + j] = x * u2 - y * v2
            d[to + 2 * s + j] = x * v2 + y * u2


@outlined
def pass_four(a, b, c, d, cosines, sines, m, s, sign):
    """A pass of factor 4."""
    for q in range(m):
        u1, v1, u2, v2 = cosines[q * s], sines[q * s], cosines[2 * q * s], sines[2 * q * s]
        u3, v3 = cosines[3 * q * s], sines[3 * q * s]
        here, step, to = q * s, m * s, 4 * q * s
        for j in range(s):
            k = here + j
            x0, y0, x1, y1 = a[k], b[k], a[k + step], b[k + step]
            k += 2 * step
            x2, y2, x3, y3 = a[k], b[k], a[k + step], b[k + step]
            xa, ya, xb, yb = x0 + x2, y0 + y2, x0 - x2, y0 - y2
            xc, yc, xd, yd = x1 + x3, y1 + y3, sign * (x1 - x3), sign * (y1 - y3)
            c[to + j] = xa + xc
            d[to + j] = ya + yc
            x, y = xb - yd, yb + xd
            c[to + s + j] = x * u1 - y * v1
            d[to + s + j] = x * v1 + y * u1
            x, y = xa - xc, ya - yc
            c[to + 2 * s + j] = x * u2 - y * v2
            d[to + 2 * s + j] = x * v2 + y * u2
            x, y = xb + yd, yb - xd
            c[to + 3 * s + j] = x * u3 - y * v3
            d[to + 3 * s + j] = x * v3 + y * u3


@outlined
def pass_any(a, b, c, d, cosines, sines, m, s, p):
    """A pass of factor ``p``, by the definition."""
    n = m * s * p
    turn = n // p
    for q in range(m):
        for r in range(p):
            to, u, v = (q * p + r) * s, cosines[q * r * s], sines[q * r * s]
            for j in range(s):
                x, y, k = 0.0, 0.0, 0
                for i in range(p):
                    at = (q + m * i) * s + j
                    x += a[at] * cosines[k] - b[at] * sines[k]
                    y += a[at] * sines[k] + b[at] * cosines[k]
                    k += r * turn
                    if k >= n:
                        k -= n
                c[to + j] = x * u - y * v
                d[to + j] = x * v + y * u


@outlined
def transform_row(a, b, c, d, cosines, sines, n, sign):
    """Transform ``a + bi`` in place, with ``c + di`` as memory between passes."""
    left, s, there = n, 1, 0
    while left > 1:
        p = 4
        if left % 4 != 0:
            p = 2
            while left % p != 0:
                p += 1
                if p * p > left:
                    p = left
        left = left // p
        if there == 1:
            one_pass(c, d, a, b, cosines, sines, left, s, p, sign)
        else:
            one_pass(a, b, c, d, cosines, sines, left, s, p, sign)
        there = 1 - there
        s = s * p
    if there == 1:
        for k in range(n):
            a[k] = c[k]
        for k in range(n):
            b[k] = d[k]


@outlined
def one_pass(a, b, c, d, cosines, sines, m, s, p, sign):
    """A pass of any factor."""
    if p == 4:
        pass_four(a, b, c, d, cosines, sines, m, s, sign)
    elif p == 2:
        pass_two(a, b, c, d, cosines, sines, m, s)
    elif p == 3:
        pass_three(a, b, c, d, cosines, sines, m, s, sign)
    else:
        pass_any(a, b, c, d, cosines, sines, m, s, p)


@outlined
def mirror(a, b, n, factor):
    """Complete half a spectrum, of which frequencies that stand for two are multiplied."""
    b[0] = 0.0
    if n % 2 == 0:
        b[n // 2] = 0.0
    for k in range(1, (n + 1) // 2):
        x, y = a[k] * factor, b[k] * factor
        a[k] = x
        b[k] = y
        a[n - k] = x
        b[n - k] = -y


_SOURCE = """
import numpy as np
from numba import {dtype}, float64
from numgrad.codegen.intrinsics import load, store
from numgrad.kernels.fourier import mirror, roots_of_unity, transform_row

def kernel(x, y, rows, n, form, scale, middle):
    half = n // 2 + 1
    count = half if form & {to_real} else n
    stored = half if form & {half} else n
    factor, double = 1.0, 1.0
    if scale == 1:
        factor = 1.0 / n
    elif scale == 2:
        factor = 1.0 / np.sqrt(float64(n))
    for k in range(middle):
        double = double * 2.0
    for k in range(-middle):
        double = double * 0.5
    memory = np.empty(6 * n, np.float64)
    a, b, c, d = memory[:n], memory[n : 2 * n], memory[2 * n : 3 * n], memory[3 * n : 4 * n]
    cosines, sines = memory[4 * n : 5 * n], memory[5 * n :]
    roots_of_unity(cosines, sines, n, -1.0 if form & {forward} else 1.0)
    for row in range(rows):
        first = row * count
        if form & {from_real}:
            for k in range(count):
                a[k] = float64(load({dtype}, x, first + k, 0, 1))
            for k in range(count):
                b[k] = 0.0
        else:
            for k in range(first, first + count):
                a[k - first] = float64(load({dtype}, x, 2 * k, 0, 1))
                b[k - first] = float64(load({dtype}, x, 2 * k + 1, 0, 1))
        if form & {to_real}:
            mirror(a, b, n, double)
        transform_row(a, b, c, d, cosines, sines, n, -1.0 if form & {forward} else 1.0)
        if form & {from_real}:
            mirror(a, b, n, double)
        first = row * stored
        if form & {to_real}:
            for k in range(stored):
                store({dtype}(a[k] * factor), y, first + k, 0, 1)
        else:
            for k in range(first, first + stored):
                store({dtype}(a[k - first] * factor), y, 2 * k, 0, 1)
                store({dtype}(b[k - first] * factor), y, 2 * k + 1, 0, 1)
"""


@instruction
def fourier_rows(like, x, y, rows, n, form, scale, middle):
    """Transform rows at address ``x`` to rows of ``n`` numbers, or of half a spectrum, at ``y``.

    Parameters
    ----------
    like
        The type of real numbers, or of parts of complex ones: float32 or float64.
    form, scale
        Bits and a scale of this module.
    middle
        The power of two by which frequencies are multiplied that stand for two in half a spectrum.
    """


fourier_rows.external, fourier_rows.allocates = f"{__name__}:{{}}_{{}}".format, True


def native_source(function: str) -> KernelSource:
    """Source of the native function ``fourier_rows_<dtype>``."""
    dtype = function.rsplit("_", 1)[1]
    source = _SOURCE.format(
        dtype=dtype, forward=FORWARD, to_real=TO_REAL, from_real=FROM_REAL, half=HALF
    )
    return KernelSource(function, source, f"void({', '.join(['int64'] * 7)})")
