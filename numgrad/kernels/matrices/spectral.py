"""Eigenvalues, singular values and orthogonal factors of stacks of matrices, by LAPACK.

What is row-major here LAPACK takes for the transpose: of a Hermitian matrix that is the conjugate,
whose eigenvectors are conjugates; of ``u @ diag(s) @ vh`` it is ``vh.T @ diag(s) @ u.T``, so left
and right change places and nothing is transposed.
"""

from __future__ import annotations

import numpy as np

from numgrad.kernels.matrices import lapack

_BLOCK = 64
"""Columns that LAPACK handles at once, with room for them."""


def _real(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _work_ns(m: int, n: int) -> float:
    return 2000.0 + 5.0 * m * n * min(m, n)


def hermitian_eigen(a: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenvectors in columns, and info, of a stack (count, n, n) that is used up."""
    count, n, _ = a.shape
    real = _real(a.dtype)
    w, info = np.empty((count, n), real), np.zeros(count, np.int32)
    if not a.size:
        return w, a, info
    more = (real, 1 + 5 * n + 2 * n * n)
    lengths = 1 + (6 + _BLOCK) * n + 2 * n * n, 3 + 5 * n, more[1]
    room = [(a.dtype, lengths[0]), (np.dtype(np.int32), lengths[1])]
    complex_ = a.dtype.kind == "c"
    if complex_:
        room.insert(1, more)
    codes = "V" + ("L" if upper else "U")
    name = "heevd" if complex_ else "syevd"
    sizes = (n, lengths[0], lengths[1], lengths[2])
    lapack.run_with_room(name, a.dtype, codes, sizes, _work_ns(n, n), a, w, *room, info)
    vectors = np.ascontiguousarray(np.conj(a.mT) if complex_ else a.mT)
    return w, vectors, info


def singular_values(
    a: np.ndarray, full: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Left vectors, values, right vectors in rows, and info, of a stack that is used up."""
    count, m, n = a.shape
    small, large = min(m, n), max(m, n)
    real = _real(a.dtype)
    s, info = np.empty((count, small), real), np.zeros(count, np.int32)
    u = np.empty((count, m, m if full else small), a.dtype)
    vh = np.empty((count, n if full else small, n), a.dtype)
    if not a.size:
        u[...], vh[...] = np.eye(*u.shape[1:]), np.eye(*vh.shape[1:])
        return u, s, vh, info
    length = 4 * small * small + 7 * small + large + _BLOCK * (small + large)
    room = [(a.dtype, length), (np.dtype(np.int32), 8 * small)]
    if a.dtype.kind == "c":
        room.insert(1, (real, max(5 * small * (small + 1), 2 * small * (large + small) + small)))
    codes, sizes = "A" if full else "S", (n, m, u.shape[2], length)
    lapack.run_with_room(
        "gesdd", a.dtype, codes, sizes, 3 * _work_ns(m, n), a, s, vh, u, *room, info
    )
    return u, s, vh, info


def orthogonal_factors(a: np.ndarray, complete: bool) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal and upper triangular factors of a stack (count, m, n)."""
    count, m, n = a.shape
    small = min(m, n)
    columns = m if complete else small
    # column-major, with room for all columns of the orthogonal factor
    work = np.zeros((count, max(columns, n), m), a.dtype)
    work[:, :n] = a.mT
    r = np.zeros((count, columns, n), a.dtype)
    if not (work.size and small):
        q = np.zeros((count, m, columns), a.dtype)
        q[...] = np.eye(m, columns)
        return q, r
    scales, info = np.zeros((count, small), a.dtype), np.zeros(count, np.int32)
    length = _BLOCK * max(columns, n, 1)
    room = (a.dtype, length)
    cost = _work_ns(m, n)
    sizes = (m, n, length)
    lapack.run_with_room("geqrf", a.dtype, "", sizes, cost, work, scales, room, info)
    r[:, :small] = np.triu(work[:, :n, :small].mT)
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    sizes = (m, columns, length, small)
    lapack.run_with_room(name, a.dtype, "", sizes, cost, work, scales, room, info)
    return np.ascontiguousarray(work[:, :columns].mT), r
