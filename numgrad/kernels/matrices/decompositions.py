"""Decompositions of one matrix, by LAPACK, in the room that they ask for, and their gradients.

Note [Signs of vectors]
-----------------------
Eigenvectors and singular vectors are unique up to a sign or a phase, which LAPACK leaves as its
reflections and rotations made it. NumPy's functions give LAPACK the matrix as it stands, by
columns, in double precision. So do these, also where elements are float32: with the transpose, or
in single precision, some signs are others (of float32 matrices 8 x 8 in 42 of 60). The library is
SciPy's: with NumPy's the threads of two would keep each other from the cores. Where these have
different versions (NumPy 2.5, SciPy 1.18), one sign is another in a tenth of real matrices of 64
rows or more that ``svd`` is given, and in a third of complex ones.

Gradients of eigenvalues, singular values and their vectors, of one matrix.

The formulas are those of ``operations.linear_algebra``; ``has`` says which gradients there are.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.kernels.matrices.elementary import copy, product
from numgrad.kernels.products.blas import lapack


@outlined
def real_eigen(a, w, v, upper, vectors, alone):
    """Eigenvalues, and in ``v`` eigenvectors in columns if asked for, of what one triangle says."""
    n = a.shape[0]
    length, integers = 1 + 70 * n + 2 * n * n, 3 + 5 * n
    b, values = np.empty((n, n), np.float64), np.empty(n, np.float64)
    work, room, info = (
        np.empty(length, np.float64), np.empty(integers, np.int32), np.empty(1, np.int32),
    )  # fmt: skip
    job = 86 if vectors else 78  # V, N
    letter = 85 if upper else 76  # U, L
    copy(a.T, b)
    lapack(b.dtype, "syevd", job, letter, n, b, n, values, work, length, room, integers, info)
    for i in range(n):
        w[i] = values[i]
    if vectors:
        copy(b.T, v)
    return info[0]


@outlined
def complex_eigen(a, w, v, upper, vectors, alone):
    """The same of a Hermitian matrix."""
    n = a.shape[0]
    length, real_length, integers = 1 + 70 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
    b, values = np.empty((n, n), np.complex128), np.empty(n, np.float64)
    work, reals = np.empty(length, np.complex128), np.empty(real_length, np.float64)
    room, info = np.empty(integers, np.int32), np.empty(1, np.int32)
    job = 86 if vectors else 78
    letter = 85 if upper else 76
    copy(a.T, b)
    lapack(
        b.dtype, "heevd", job, letter, n, b, n, values, work, length, reals, real_length, room,
        integers, info,
    )  # fmt: skip
    for i in range(n):
        w[i] = values[i]
    if vectors:
        copy(b.T, v)
    return info[0]


@outlined
def real_singular(a, u, s, vh, job, alone):
    """Singular values and vectors.

    ``job`` is the code of LAPACK's letter: A for all vectors, S for as many as values, N for none.
    """
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    b, work = np.empty((n, m), np.float64), np.empty(length, np.float64)
    left = np.empty((u.shape[1], u.shape[0]), np.float64)
    right = np.empty((vh.shape[1], vh.shape[0]), np.float64)
    values = np.empty(k, np.float64)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a.T, b)
    lapack(
        b.dtype, "gesdd", job, m, n, b, m, values, left, u.shape[0], right, vh.shape[0], work,
        length, room, info,
    )  # fmt: skip
    return put(values, left, right, u, s, vh, job, info[0])


@outlined
def complex_singular(a, u, s, vh, job, alone):
    """The same of a complex matrix."""
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    real_length = max(5 * k * (k + 1), 2 * k * (max(m, n) + k) + k)
    b, work = np.empty((n, m), np.complex128), np.empty(length, np.complex128)
    reals = np.empty(real_length, np.float64)
    left = np.empty((u.shape[1], u.shape[0]), np.complex128)
    right = np.empty((vh.shape[1], vh.shape[0]), np.complex128)
    values = np.empty(k, np.float64)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a.T, b)
    lapack(
        b.dtype, "gesdd", job, m, n, b, m, values, left, u.shape[0], right, vh.shape[0], work,
        length, reals, room, info,
    )  # fmt: skip
    return put(values, left, right, u, s, vh, job, info[0])


@outlined
def put(values, left, right, u, s, vh, job, info):
    """Singular values and vectors, which stand by columns, to where they are wanted."""
    for i in range(s.shape[0]):
        s[i] = values[i]
    if job != 78:
        copy(left.T, u)
        copy(right.T, vh)
    return info


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
