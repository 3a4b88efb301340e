"""Decompositions of one matrix, by LAPACK, in the room that they ask for."""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.kernels.matrices.copying import copy, turn
from numgrad.kernels.matrices.fortran import lapack


@outlined
def real_eigen(a, w, v, upper, vectors, alone):
    """Eigenvalues, and in ``v`` eigenvectors in columns if asked for, of what one triangle says."""
    n = a.shape[0]
    copy(a, v)
    length, places = 1 + 70 * n + 2 * n * n, 3 + 5 * n
    work, room, info = (
        np.empty(length, a.dtype), np.empty(places, np.int32), np.empty(1, np.int32),
    )  # fmt: skip
    job = 86 if vectors else 78  # V, N
    letter = 76 if upper else 85  # L, since what is row-major is transposed, else U
    lapack(a.dtype, "syevd", job, letter, n, v, n, w, work, length, room, places, info)
    if vectors:
        turn(v)
    return info[0]


@outlined
def complex_eigen(a, w, v, upper, vectors, alone):
    """The same of a Hermitian matrix, whose transpose has conjugate eigenvectors."""
    n = a.shape[0]
    copy(a, v)
    length, more, places = 1 + 70 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
    work, values = np.empty(length, a.dtype), np.empty(more, w.dtype)
    room, info = np.empty(places, np.int32), np.empty(1, np.int32)
    job = 86 if vectors else 78
    letter = 76 if upper else 85
    lapack(
        a.dtype, "heevd", job, letter, n, v, n, w, work, length, values, more, room, places, info
    )
    if vectors:
        turn(v)
    return info[0]


@outlined
def real_singular(a, u, s, vh, job, alone):
    """Singular values and vectors; left and right change places, so nothing is transposed.

    ``job`` is the code of LAPACK's letter: A for all vectors, S for as many as values, N for none.
    """
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    b, work = np.empty((m, n), a.dtype), np.empty(length, a.dtype)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a, b)
    lapack(a.dtype, "gesdd", job, n, m, b, n, s, vh, n, u, u.shape[1], work, length, room, info)
    return info[0]


@outlined
def complex_singular(a, u, s, vh, job, alone):
    """The same of a complex matrix."""
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    more = max(5 * k * (k + 1), 2 * k * (max(m, n) + k) + k)
    b, work, values = np.empty((m, n), a.dtype), np.empty(length, a.dtype), np.empty(more, s.dtype)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a, b)
    lapack(
        a.dtype, "gesdd", job, n, m, b, n, s, vh, n, u, u.shape[1], work, length, values, room,
        info,
    )  # fmt: skip
    return info[0]
