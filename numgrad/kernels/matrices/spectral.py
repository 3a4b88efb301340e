"""Eigenvalues, singular values and orthogonal factors of stacks of matrices, by LAPACK.

What is row-major here LAPACK takes for the transpose: of a Hermitian matrix that is the conjugate,
whose eigenvectors are conjugates; of ``u @ diag(s) @ vh`` it is ``vh.T @ diag(s) @ u.T``, so left
and right change places and nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.kernels.matrices import lapack
from numgrad.kernels.matrices.stacks import StackKernel, real_dtype

_HOME = "numgrad.kernels.matrices"
_BLOCK = 64
"""Columns that LAPACK handles at once, with room for them."""


def _work_ns(m: int, n: int) -> float:
    return 2000.0 + 5.0 * m * n * min(m, n)


def _product_ns(m: int, n: int, k: int) -> float:
    return 200.0 + 1.5 * m * n * k


_EIGEN = {
    kind: StackKernel(f"{_HOME}.decompositions:{name}_eigen", "T3. R2 T3 int int", lapack)
    for kind, name, lapack in (("f", "real", "syevd"), ("c", "complex", "heevd"))
}
_SINGULAR = {
    kind: StackKernel(f"{_HOME}.decompositions:{name}_singular", "T3. T3 R2 T3 int", "gesdd")
    for kind, name in (("f", "real"), ("c", "complex"))
}
_EIGEN_GRADIENT = StackKernel(f"{_HOME}.spectral_gradients:eigen_gradient", "T3 R2 T3 R2. T3. int")
_SINGULAR_GRADIENT = StackKernel(
    f"{_HOME}.spectral_gradients:singular_gradient", "T3 T3 R2 T3 T3. R2. T3. int"
)


def hermitian_eigen(
    a: np.ndarray, upper: bool, vectors: bool = True
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Eigenvalues, eigenvectors in columns, and info, of a stack (count, n, n).

    Where no ``vectors`` are asked for, what stands in their place means nothing.
    """
    count, n, _ = a.shape
    w, v = np.empty((count, n), real_dtype(a.dtype)), np.empty(a.shape, a.dtype)
    info = None
    if a.size:
        work_ns = _work_ns(n, n) if vectors else 0.4 * _work_ns(n, n)
        info = _EIGEN[a.dtype.kind](a.dtype, n, work_ns, a, w, v, upper, vectors)
    return w, v, info


def eigen_gradient(
    w: np.ndarray, v: np.ndarray, of_w: np.ndarray | None, of_v: np.ndarray | None
) -> np.ndarray:
    """The gradient of a stack of Hermitian matrices from those of what ``hermitian_eigen`` gave."""
    has, n = (of_w is not None) + 2 * (of_v is not None), w.shape[1]
    out = np.empty(v.shape, v.dtype)
    if out.size:
        given = w if of_w is None else of_w, v if of_v is None else of_v
        _EIGEN_GRADIENT(v.dtype, n, _product_ns(n, n, n), out, w, v, *given, has)
    return out


def singular_values(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Left vectors, values, right vectors in rows, and info, of a stack (count, m, n)."""
    count, m, n = a.shape
    small = min(m, n)
    s = np.empty((count, small), real_dtype(a.dtype))
    u = np.empty((count, m, m if full else small), a.dtype)
    vh = np.empty((count, n if full else small, n), a.dtype)
    if not a.size:
        u[...], vh[...] = np.eye(*u.shape[1:]), np.eye(*vh.shape[1:])
        return u, s, vh, None
    work_ns = 3 * _work_ns(m, n)
    job = ord("A" if full else "S")
    info = _SINGULAR[a.dtype.kind](a.dtype, max(m, n), work_ns, a, u, s, vh, job)
    return u, s, vh, info


def singular_values_alone(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """Singular values, and info, of a stack (count, m, n)."""
    count, m, n = a.shape
    s = np.empty((count, min(m, n)), real_dtype(a.dtype))
    if not s.size:
        return s, None
    nowhere = np.empty((count, 1, 1), a.dtype)
    kernel = _SINGULAR[a.dtype.kind]
    return s, kernel(a.dtype, max(m, n), _work_ns(m, n), a, nowhere, s, nowhere, ord("N"))


def singular_gradient(
    found: Sequence[np.ndarray], gradients: Sequence[np.ndarray | None]
) -> np.ndarray:
    """The gradient of a stack from those of what ``singular_values`` gave, not ``full``."""
    u, s, vh = found
    m, n = u.shape[1], vh.shape[2]
    out = np.empty((len(s), m, n), u.dtype)
    if out.size:
        has = sum(1 << k for k, g in enumerate(gradients) if g is not None)
        given = [x if g is None else g for x, g in zip(found, gradients, strict=True)]
        _SINGULAR_GRADIENT(
            u.dtype, max(m, n), 2 * _product_ns(m, n, s.shape[1]), out, *found, *given, has
        )
    return out


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
