"""Decompositions of one matrix, by LAPACK, in the room that they ask for."""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.kernels.matrices.copying import copy, turn
from numgrad.kernels.matrices.fortran import lapack


@outlined
def real_eigen(a, w, v, upper, alone):
    """Eigenvalues, and eigenvectors in columns, of what one triangle says."""
    n = a.shape[0]
    copy(a, v)
    length, places = 1 + 70 * n + 2 * n * n, 3 + 5 * n
    work, room, info = (
        np.empty(length, a.dtype), np.empty(places, np.int32), np.empty(1, np.int32),
    )  # fmt: skip
    letter = 76 if upper else 85  # L, since what is row-major is transposed, else U
    lapack(a.dtype, "syevd", "V", letter, n, v, n, w, work, length, room, places, info)
    turn(v)
    return info[0]


@outlined
def complex_eigen(a, w, v, upper, alone):
    """The same of a Hermitian matrix, whose transpose has conjugate eigenvectors."""
    n = a.shape[0]
    copy(a, v)
    length, more, places = 1 + 70 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
    work, values = np.empty(length, a.dtype), np.empty(more, w.dtype)
    room, info = np.empty(places, np.int32), np.empty(1, np.int32)
    letter = 76 if upper else 85
    lapack(
        a.dtype, "heevd", "V", letter, n, v, n, w, work, length, values, more, room, places, info
    )
    turn(v)
    return info[0]


@outlined
def real_singular(a, u, s, vh, full, alone):
    """Singular values and vectors; left and right change places, so nothing is transposed."""
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    b, work = np.empty((m, n), a.dtype), np.empty(length, a.dtype)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a, b)
    letter = 65 if full else 83  # A, else S
    lapack(a.dtype, "gesdd", letter, n, m, b, n, s, vh, n, u, u.shape[1], work, length, room, info)
    return info[0]


@outlined
def complex_singular(a, u, s, vh, full, alone):
    """The same of a complex matrix."""
    m, n, k = a.shape[0], a.shape[1], s.shape[0]
    length = 4 * k * k + 7 * k + max(m, n) + 64 * (m + n)
    more = max(5 * k * (k + 1), 2 * k * (max(m, n) + k) + k)
    b, work, values = np.empty((m, n), a.dtype), np.empty(length, a.dtype), np.empty(more, s.dtype)
    room, info = np.empty(8 * k, np.int32), np.empty(1, np.int32)
    copy(a, b)
    letter = 65 if full else 83
    lapack(
        a.dtype, "gesdd", letter, n, m, b, n, s, vh, n, u, u.shape[1], work, length, values, room,
        info,
    )  # fmt: skip
    return info[0]
