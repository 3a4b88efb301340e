"""Functions of explicit loops that steps of loops call."""

import numpy as np

import numgrad as ng

PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.8]])
SPEEDS = np.array([[0.0, -0.2], [0.0, 0.9], [-0.7, 0.0]])
SCALES = np.full(1, 0.99)


@ng.kernel
def pulls(q, m):
    a = np.zeros_like(q)
    for i in range(len(m)):
        for j in range(len(m)):
            if i != j:
                d = q[j] - q[i]
                a[i] += m[j] * d / (d @ d + 1e-3) ** 1.5
    return a


def plain(q, m):
    """The same by NumPy."""
    a = np.zeros_like(q)
    for i in range(3):
        for j in range(3):
            if i != j:
                d = q[j] - q[i]
                a[i] += m[j] * d / (d @ d + 1e-3) ** 1.5
    return a


@ng.kernel
def mixed(a, b):
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = 0.5 * a[i] + 0.25 * b[len(a) - 1 - i]
    return out


def plain_mixed(a, b):
    """The same by NumPy."""
    return 0.5 * a + 0.25 * b[::-1]


@ng.kernel
def shrunk(x):
    return x - 0.1 * x


@ng.kernel
def decay(y, rate):
    out = np.empty(len(y))
    for i in range(len(y)):
        out[i] = -rate * y[i]
    return out


@ng.kernel
def following(x, k):
    return k + 1 + int(0.0 * np.sum(x[: min(k, 100)] * x[:k]))


@ng.kernel
def by_captured(x):
    return x * SCALES[0]
