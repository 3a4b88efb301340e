"""Eigenvalues, singular values and orthogonal factors of stacks of matrices, by LAPACK.

Their signs are those of NumPy's functions: Note [Signs of vectors] in ``decompositions``.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.kernels.matrices.stacks import StackKernel, run_with_room

_HOME = "numgrad.kernels.matrices"
_BLOCK = 64
"""Columns that LAPACK handles at once, with room for them."""


def _work_ns(m: int, n: int) -> float:
    return 2000.0 + 5.0 * m * n * min(m, n)


def _product_ns(m: int, n: int, k: int) -> float:
    return 200.0 + 1.5 * m * n * k


_EIGEN = {
    kind: StackKernel(
        f"{_HOME}.decompositions:{name}_eigen", "T3. R2 T3 int int", lapack, in_double=True
    )
    for kind, name, lapack in (("f", "real", "syevd"), ("c", "complex", "heevd"))
}
_SINGULAR = {
    kind: StackKernel(
        f"{_HOME}.decompositions:{name}_singular", "T3. T3 R2 T3 int", "gesdd", in_double=True
    )
    for kind, name in (("f", "real"), ("c", "complex"))
}
_EIGEN_GRADIENT = StackKernel(f"{_HOME}.decompositions:eigen_gradient", "T3 R2 T3 R2. T3. int")
_SINGULAR_GRADIENT = StackKernel(
    f"{_HOME}.decompositions:singular_gradient", "T3 T3 R2 T3 T3. R2. T3. int"
)


def eigen_of(
    shape: tuple[int, ...], dtype: np.dtype, upper: bool, vectors: bool = True
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, Any]]:
    """A function that finds eigenvalues, eigenvectors in columns, and info, of (..., n, n).

    Where no ``vectors`` are asked for, what stands in their place means nothing.
    """
    batch, n, values, real = shape[:-2], shape[-1], shape[:-1], real_dtype(dtype)
    if not prod(shape):
        return lambda a: (np.empty(values, real), np.empty(shape, dtype), 0)
    work_ns = _work_ns(n, n) if vectors else 0.4 * _work_ns(n, n)
    run = _EIGEN[dtype.kind].over(dtype, batch, n, work_ns)
    empty = np.empty

    def find(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
        w, v = empty(values, real), empty(shape, dtype)
        return w, v, run(a, w, v, upper, vectors)

    return find


def eigen_gradient(shape: tuple[int, ...], dtype: np.dtype) -> Callable[..., np.ndarray]:
    """A function that gives gradients of Hermitian matrices from those of ``eigen_of``'s results.

    It takes eigenvalues, eigenvectors, and their gradients of any strides, or None.
    """
    empty, n = np.empty, shape[-1]
    if not prod(shape):
        return lambda w, v, of_w, of_v: empty(shape, dtype)
    run = _EIGEN_GRADIENT.over(dtype, shape[:-2], n, _product_ns(n, n, n))

    def gradient(w: np.ndarray, v: np.ndarray, of_w: Any, of_v: Any) -> np.ndarray:
        out, has = empty(shape, dtype), 3
        if of_w is None:
            of_w, has = w, 2
        if of_v is None:
            of_v, has = v, has - 2
        run(out, w, v, of_w, of_v, has)
        return out

    return gradient


def singular_of(
    shape: tuple[int, ...], dtype: np.dtype, full: bool
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, Any]]:
    """A function that finds left vectors, values, right vectors in rows, and info of matrices."""
    *batch, m, n = shape
    small, real = min(m, n), real_dtype(dtype)
    left, values = (*batch, m, m if full else small), (*batch, small)
    right = (*batch, n if full else small, n)
    empty = np.empty

    if not prod(shape):
        return lambda a: _vectors_of_nothing(
            empty(left, dtype), empty(values, real), empty(right, dtype)
        )
    job = ord("A" if full else "S")
    run = _SINGULAR[dtype.kind].over(dtype, shape[:-2], max(m, n), 3 * _work_ns(m, n))

    def find(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
        u, s, vh = empty(left, dtype), empty(values, real), empty(right, dtype)
        return u, s, vh, run(a, u, s, vh, job)

    return find


def _vectors_of_nothing(
    u: np.ndarray, s: np.ndarray, vh: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    u[...], vh[...] = np.eye(*u.shape[-2:]), np.eye(*vh.shape[-2:])
    return u, s, vh, 0


def singular_values_alone(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """Singular values, and info, of a stack (count, m, n)."""
    count, m, n = a.shape
    s = np.empty((count, min(m, n)), real_dtype(a.dtype))
    if not s.size:
        return s, None
    nowhere = np.empty((count, 1, 1), a.dtype)
    kernel = _SINGULAR[a.dtype.kind]
    return s, kernel(a.dtype, max(m, n), _work_ns(m, n), a, nowhere, s, nowhere, ord("N"))


def singular_gradient(shape: tuple[int, ...], dtype: np.dtype) -> Callable[..., np.ndarray]:
    """A function that gives gradients of matrices from those of ``singular_of``, not ``full``.

    It takes left vectors, values, right vectors, and their gradients of any strides, or None.
    """
    m, n = shape[-2:]
    empty = np.empty
    if not prod(shape):
        return lambda factors, gradients: empty(shape, dtype)
    work_ns = 2 * _product_ns(m, n, min(m, n))
    run = _SINGULAR_GRADIENT.over(dtype, shape[:-2], max(m, n), work_ns)

    def gradient(factors: Sequence[np.ndarray], gradients: Sequence[Any]) -> np.ndarray:
        out, has = empty(shape, dtype), 7
        u, s, vh = factors
        of_u, of_s, of_vh = gradients
        if of_u is None:
            of_u, has = u, 6
        if of_s is None:
            of_s, has = s, has - 2
        if of_vh is None:
            of_vh, has = vh, has - 4
        run(out, u, s, vh, of_u, of_s, of_vh, has)
        return out

    return gradient


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
    run_with_room("geqrf", a.dtype, "", sizes, cost, work, scales, room, info)
    r[:, :small] = np.triu(work[:, :n, :small].mT)
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    sizes = (m, columns, length, small)
    run_with_room(name, a.dtype, "", sizes, cost, work, scales, room, info)
    return np.ascontiguousarray(work[:, :columns].mT), r
