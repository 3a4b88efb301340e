"""Signals, images, tables, polynomials."""

import math

import numpy as np

from .cases import case


@case(lambda rng, n: (rng.normal(size=n) + 1j * rng.normal(size=n),), ("x",), 8, 1 << 16)
def fourier(x):
    """Cooley and Tukey's transform in place: order by reversed bits, then butterflies."""
    n = x.shape[0]
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    size = 2
    while size <= n:
        angle = -2.0 * math.pi / size
        turn = complex(math.cos(angle), math.sin(angle))
        for start in range(0, n, size):
            w = 1.0 + 0.0j
            for k in range(size // 2):
                even = x[start + k]
                odd = x[start + k + size // 2] * w
                x[start + k] = even + odd
                x[start + k + size // 2] = even - odd
                w = w * turn
        size *= 2


@case(lambda rng, n: (rng.normal(size=6), rng.normal(size=n)), size=5, large=300_000)
def horner(coefficients, x):
    """A polynomial and its derivative, by one loop each from the highest power down."""
    out = np.zeros((2, x.shape[0]))
    for i in range(x.shape[0]):
        value = 0.0
        slope = 0.0
        for k in range(len(coefficients) - 1, -1, -1):
            slope = slope * x[i] + value
            value = value * x[i] + coefficients[k]
        out[0, i] = value
        out[1, i] = slope
    return out


@case(
    lambda rng, n: (
        np.sort(rng.random(7)) + 0.1 * np.arange(7),
        rng.normal(size=7),
        0.2 + 0.8 * rng.random(n),
    ),
    size=6,
    large=200_000,
)
def spline(knots, values, at):
    """A natural cubic spline: its moments by a tridiagonal sweep, then its values by bisection."""
    n = knots.shape[0]
    moments = np.zeros(n)
    diagonal = np.ones(n)
    right = np.zeros(n)
    for i in range(1, n - 1):
        left_gap = knots[i] - knots[i - 1]
        right_gap = knots[i + 1] - knots[i]
        slope = (values[i + 1] - values[i]) / right_gap - (values[i] - values[i - 1]) / left_gap
        diagonal[i] = 2.0 * (left_gap + right_gap)
        right[i] = 6.0 * slope
        if i > 1:
            w = left_gap / diagonal[i - 1]
            diagonal[i] -= w * left_gap
            right[i] -= w * right[i - 1]
    for i in range(n - 2, 0, -1):
        moments[i] = (right[i] - (knots[i + 1] - knots[i]) * moments[i + 1]) / diagonal[i]
    total = 0.0
    for p in range(at.shape[0]):
        low = 0
        high = n - 1
        while high - low > 1:
            middle = (low + high) // 2
            if knots[middle] > at[p]:
                high = middle
            else:
                low = middle
        gap = knots[high] - knots[low]
        a = (knots[high] - at[p]) / gap
        b = (at[p] - knots[low]) / gap
        bend = (a**3 - a) * moments[low] + (b**3 - b) * moments[high]
        total += a * values[low] + b * values[high] + bend * gap * gap / 6.0
    return total


@case(
    lambda rng, n: (rng.normal(size=(5, 6)), 4 * rng.random(n), 5 * rng.random(n)),
    size=7,
    large=500_000,
)
def table_lookup(table, x, y):
    """Bilinear interpolation; what lies outside takes the edge's value."""
    n, m = table.shape
    out = np.empty(x.shape[0])
    for p in range(x.shape[0]):
        i = min(max(int(x[p]), 0), n - 2)
        j = min(max(int(y[p]), 0), m - 2)
        u = x[p] - i
        v = y[p] - j
        top = (1.0 - v) * table[i, j] + v * table[i, j + 1]
        low = (1.0 - v) * table[i + 1, j] + v * table[i + 1, j + 1]
        out[p] = (1.0 - u) * top + u * low
    return out


@case(
    lambda rng, n: (
        rng.random((n, n, n)),
        np.array([0.23, 0.31, 0.12]),
        np.array([0.52, 0.45, 0.78]),
        0.3,
        25,
    ),
    size=4,
    large=60,
)
def ray(density, origin, direction, step, most):
    """Light through a cloud until little is left or the ray leaves."""
    n = density.shape[0]
    x, y, z = origin[0], origin[1], origin[2]
    through = 1.0
    light = 0.0
    for _ in range(most):
        i, j, k = int(x), int(y), int(z)
        if i >= n or j >= n or k >= n:
            break
        rho = density[i, j, k]
        absorbed = 1.0 - math.exp(-rho * step)
        light += through * absorbed * (0.3 + 0.7 * rho)
        through *= 1.0 - absorbed
        if through < 0.02:
            return light
        x += step * direction[0]
        y += step * direction[1]
        z += step * direction[2]
    return light + through * 0.1


@case(lambda rng, n: (rng.random(n), np.linspace(0, 1, 6), 0.15), size=9, large=100_000)
def soft_histogram(x, centres, width):
    """Each value shared among bins by weights that sum to one."""
    bins = centres.shape[0]
    counts = np.zeros(bins)
    weight = np.empty(bins)
    for i in range(len(x)):
        total = 0.0
        for k in range(bins):
            weight[k] = math.exp(-0.5 * ((x[i] - centres[k]) / width) ** 2)
            total += weight[k]
        for k in range(bins):
            counts[k] += weight[k] / total
    return counts


@case(
    lambda rng, n: (rng.normal(size=(2, n, n)), rng.normal(size=(2, 2, 3, 3)), rng.normal(size=2)),
    size=5,
    large=128,
)
def convolution(image, weights, bias):
    """Two channels into two, three by three, with a rectifier."""
    channels, n, m = image.shape
    out = np.zeros((weights.shape[0], n - 2, m - 2))
    for o in range(weights.shape[0]):
        for i in range(n - 2):
            for j in range(m - 2):
                total = bias[o]
                for c in range(channels):
                    for p in range(3):
                        for q in range(3):
                            total += image[c, i + p, j + q] * weights[o, c, p, q]
                out[o, i, j] = total if total > 0.0 else 0.1 * total
    return out


@case(lambda rng, n: (rng.uniform(0.5, 1.5, n),), size=8, large=1_000_000)
def cumulative_products(x):
    """Products of all before, and of all others without a division."""
    n = x.shape[0]
    before = np.ones(n)
    for i in range(1, n):
        before[i] = before[i - 1] * x[i - 1]
    after = 1.0
    others = np.empty(n)
    for i in range(n - 1, -1, -1):
        others[i] = before[i] * after
        after *= x[i]
    return others, after


@case(
    lambda rng, n: (rng.uniform(-2.0, 0.5, n) + 1j * rng.uniform(-1.0, 1.0, n), 12),
    size=8,
    large=50_000,
)
def smooth_escape(c, most):
    """How soon points leave the Mandelbrot iteration, without steps between the counts."""
    out = np.zeros(c.shape[0])
    for i in range(c.shape[0]):
        z = 0.0 + 0.0j
        count = 0
        while count < most and abs(z) < 8.0:
            z = z * z + c[i]
            count += 1
        if abs(z) < 8.0:
            out[i] = z.real * z.imag + abs(z)
        else:
            out[i] = count + 1.0 - math.log(math.log(abs(z))) / math.log(2.0)
    return out


@case(lambda rng, n: (rng.normal(size=(n, n)), 0.8, 0.5), size=5, large=300)
def bilateral(image, reach, contrast):
    """A blur that keeps edges; the image is padded by its rim."""
    n, m = image.shape
    out = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            total = 0.0
            weights = 0.0
            for p in range(-1, 2):
                for q in range(-1, 2):
                    k = min(max(i + p, 0), n - 1)
                    r = min(max(j + q, 0), m - 1)
                    gap = image[k, r] - image[i, j]
                    w = math.exp(-(p * p + q * q) / reach**2 - gap * gap / contrast)
                    total += w * image[k, r]
                    weights += w
            out[i, j] = total / weights
    return out


@case(
    lambda rng, n: (rng.normal(size=n), np.array([0.2, 0.3, 0.2]), np.array([-0.4, 0.15])),
    size=10,
    large=1_000_000,
)
def recursive_filter(x, b, a):
    """A filter with feedback, its memory shifted by a tuple."""
    y = np.zeros_like(x)
    w1, w2 = 0.0, 0.0
    for t in range(x.shape[0]):
        w0 = x[t] - a[0] * w1 - a[1] * w2
        y[t] = b[0] * w0 + b[1] * w1 + b[2] * w2
        w1, w2 = w0, w1
    return y
