"""Linear algebra written as loops."""

import math

import numpy as np

from .cases import case


def _positive(rng, n):
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


@case(
    lambda rng, n: (
        rng.normal(size=n),
        4 + rng.random(n),
        rng.normal(size=n),
        rng.normal(size=n),
        np.zeros(n),
    ),
    ("b", "d", "x"),
    8,
    1_000_000,
)
def thomas(a, b, c, d, x):
    """A tridiagonal system; the diagonal and the right side are overwritten."""
    n = d.shape[0]
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    x[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]


@case(lambda rng, n: (_positive(rng, n),), ("a",), 5, 150)
def cholesky(a):
    """The lower factor in place, and the logarithm of the determinant."""
    n = a.shape[0]
    logarithm = 0.0
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(a[j, j])
        logarithm += 2.0 * math.log(a[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for i in range(j):
            a[i, j] = 0.0
    return logarithm


@case(lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=n)), ("a", "b"), 5, 150)
def solve_pivoted(a, b):
    """Elimination with exchange of rows, then substitution backwards."""
    n = a.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        if best != k:
            for j in range(n):
                a[k, j], a[best, j] = a[best, j], a[k, j]
            b[k], b[best] = b[best], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            b[i] -= factor * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]


@case(lambda rng, n: (_positive(rng, n), rng.normal(size=n), 1e-9, n - 2), size=5, large=300)
def conjugate_gradient(a, b, tolerance, most):
    """Steps until the residual is small."""
    n = b.shape[0]
    x = np.zeros(n)
    r = b.copy()
    p = b.copy()
    ap = np.empty(n)
    rr = 0.0
    for i in range(n):
        rr += r[i] * r[i]
    count = 0
    while rr > tolerance and count < most:
        pap = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += a[i, j] * p[j]
            ap[i] = total
            pap += p[i] * total
        step = rr / pap
        new = 0.0
        for i in range(n):
            x[i] += step * p[i]
            r[i] -= step * ap[i]
            new += r[i] * r[i]
        for i in range(n):
            p[i] = r[i] + new / rr * p[i]
        rr = new
        count += 1
    return x


@case(lambda rng, n: (rng.normal(size=(n, 3)),), ("a",), 5, 20_000)
def gram_schmidt(a):
    """Orthonormal columns in place, the modified form; returns the triangle."""
    n, m = a.shape
    r = np.zeros((m, m))
    for k in range(m):
        norm = 0.0
        for i in range(n):
            norm += a[i, k] ** 2
        r[k, k] = math.sqrt(norm)
        a[:, k] /= r[k, k]
        for j in range(k + 1, m):
            for i in range(n):
                r[k, j] += a[i, k] * a[i, j]
            for i in range(n):
                a[i, j] -= r[k, j] * a[i, k]
    return r


@case(lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=n), 12), size=4, large=300)
def power_iteration(a, x, steps):
    """The dominant eigenvalue of a symmetric part, with products of whole arrays."""
    n = a.shape[0]
    v = x.copy()
    value = 0.0
    for _ in range(steps):
        w = a @ v + v @ a
        norm = math.sqrt(np.dot(w, w))
        value = np.dot(v, w) / np.dot(v, v)
        for i in range(n):
            v[i] = w[i] / norm
    return value


@case(
    lambda rng, n: (
        rng.normal(size=4 * n),
        rng.integers(0, n, 4 * n),
        np.arange(0, 4 * n + 1, 4),
        rng.normal(size=n),
        3,
    ),
    size=6,
    large=200_000,
)
def sparse_products(data, columns, starts, x, times):
    """Powers of a compressed sparse matrix times a vector."""
    n = x.shape[0]
    v = x.copy()
    w = np.zeros(n)
    for _ in range(times):
        for i in range(n):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += data[k] * v[columns[k]]
            w[i] = math.tanh(total)
        v, w = w, v
    return v
