"""Gradients of eigenvalues, singular values and their vectors, of one matrix.

The formulas are those of ``operations.linear_algebra``; ``has`` says which gradients there are.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.kernels.matrices.copying import copy
from numgrad.kernels.matrices.products import product


@outlined
def eigen_gradient(out, w, v, of_w, of_v, has, alone):
    """The gradient of a Hermitian matrix, Hermitian."""
    n = w.shape[0]
    if has == 1:
        half = np.empty((n, n), v.dtype)
        for i in range(n):
            for j in range(n):
                half[i, j] = v[i, j] * of_w[j]
        product(half, 0, v, 2, out, 0, alone)
        return 0
    inner, half = np.empty((n, n), v.dtype), np.empty((n, n), v.dtype)
    copy(of_v, half)
    product(v, 2, half, 0, inner, 0, alone)
    for i in range(n):
        for j in range(n):
            if i != j:
                inner[i, j] = np.divide(inner[i, j], w[j] - w[i])
        inner[i, i] = 0
        if has & 1:
            inner[i, i] = of_w[i]
    product(v, 0, inner, 0, half, 0, alone)
    product(half, 0, v, 2, out, 0, alone)
    for i in range(n):
        for j in range(i + 1):
            mean = (out[i, j] + np.conj(out[j, i])) * 0.5
            out[i, j] = mean
            out[j, i] = np.conj(mean)
    return 0


@device
def apart(s, i, j):
    """The difference of two squares, without the squares, which would overflow."""
    return (s[j] - s[i]) * (s[j] + s[i])


@outlined
def singular_gradient(out, u, s, vh, of_u, of_s, of_vh, has, alone):
    """The gradient of a matrix of which there are as many vectors as values."""
    m, n, k = u.shape[0], vh.shape[1], s.shape[0]
    left, inner = np.empty((m, k), u.dtype), np.empty((k, k), u.dtype)
    if has == 2:
        for i in range(m):
            for j in range(k):
                left[i, j] = u[i, j] * of_s[j]
        product(left, 0, vh, 0, out, 0, alone)
        return 0
    inside, g = np.empty((k, k), u.dtype), np.empty((m, k), u.dtype)
    for i in range(k):
        for j in range(k):
            inner[i, j] = 0
        if has & 2:
            inner[i, i] = of_s[i]
    if has & 1:
        copy(of_u, g)
        product(u, 2, g, 0, inside, 0, alone)
        for i in range(k):
            for j in range(k):
                if i != j:
                    skew = inside[i, j] - np.conj(inside[j, i])
                    inner[i, j] += np.divide(skew, apart(s, i, j)) * s[j]
            # phases of vectors are one choice for both sides
            skew = inside[i, i] - np.conj(inside[i, i])
            inner[i, i] += np.divide(skew, 2 * s[i])
    if has & 4:
        h, of_inside = np.empty((k, n), u.dtype), np.empty((k, k), u.dtype)
        copy(of_vh, h)
        product(vh, 0, h, 2, of_inside, 0, alone)
        for i in range(k):
            for j in range(k):
                if i != j:
                    skew = of_inside[i, j] - np.conj(of_inside[j, i])
                    inner[i, j] += s[i] * np.divide(skew, apart(s, i, j))
        if n > k:  # the part of the gradient outside of what the vectors span
            for i in range(k):
                for j in range(k):
                    of_inside[i, j] = -of_inside[i, j]
            product(of_inside, 2, vh, 0, h, 1, alone)
            for i in range(k):
                for j in range(n):
                    h[i, j] = np.divide(h[i, j], s[i])
            product(u, 0, h, 0, out, 0, alone)
    product(u, 0, inner, 0, left, 0, alone)
    if has & 1 and m > k:
        for i in range(k):
            for j in range(k):
                inside[i, j] = -inside[i, j]
        product(u, 0, inside, 0, g, 1, alone)
        for i in range(m):
            for j in range(k):
                left[i, j] += np.divide(g[i, j], s[j])
    product(left, 0, vh, 0, out, (has & 4) != 0 and n > k, alone)
    return 0
