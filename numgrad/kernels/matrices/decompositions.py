"""Decompositions of one matrix, by LAPACK, in the room that they ask for.

Note [Signs of vectors]
-----------------------
Eigenvectors and singular vectors are unique up to a sign or a phase, which LAPACK leaves as its
reflections and rotations made it. NumPy's functions give LAPACK the matrix as it stands, by
columns, in double precision. So do these, also where elements are float32: with the transpose, or
in single precision, some signs are others (of float32 matrices 8 x 8 in 42 of 60). The library is
SciPy's: with NumPy's the threads of two would keep each other from the cores. Where these have
different versions (NumPy 2.5, SciPy 1.18), one sign is another in a tenth of real matrices of 64
rows or more that ``svd`` is given, and in a third of complex ones.
"""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.kernels.fortran import lapack
from numgrad.kernels.matrices.copying import copy


@outlined
def real_eigen(a, w, v, upper, vectors, alone):
    """Eigenvalues, and in ``v`` eigenvectors in columns if asked for, of what one triangle says."""
    n = a.shape[0]
    length, places = 1 + 70 * n + 2 * n * n, 3 + 5 * n
    b, values = np.empty((n, n), np.float64), np.empty(n, np.float64)
    work, room, info = (
        np.empty(length, np.float64), np.empty(places, np.int32), np.empty(1, np.int32),
    )  # fmt: skip
    job = 86 if vectors else 78  # V, N
    letter = 85 if upper else 76  # U, L
    copy(a.T, b)
    lapack(b.dtype, "syevd", job, letter, n, b, n, values, work, length, room, places, info)
    for i in range(n):
        w[i] = values[i]
    if vectors:
        copy(b.T, v)
    return info[0]


@outlined
def complex_eigen(a, w, v, upper, vectors, alone):
    """The same of a Hermitian matrix."""
    n = a.shape[0]
    length, more, places = 1 + 70 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
    b, values = np.empty((n, n), np.complex128), np.empty(n, np.float64)
    work, reals = np.empty(length, np.complex128), np.empty(more, np.float64)
    room, info = np.empty(places, np.int32), np.empty(1, np.int32)
    job = 86 if vectors else 78
    letter = 85 if upper else 76
    copy(a.T, b)
    lapack(
        b.dtype, "heevd", job, letter, n, b, n, values, work, length, reals, more, room, places,
        info,
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
    more = max(5 * k * (k + 1), 2 * k * (max(m, n) + k) + k)
    b, work = np.empty((n, m), np.complex128), np.empty(length, np.complex128)
    reals = np.empty(more, np.float64)
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
