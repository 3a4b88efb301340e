"""Functions of stacks of square matrices, and what else their triangular forms give.

Where a result comes with info, that is None, or for each matrix a number of ``outcomes``.
"""

from typing import Any

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.kernels.matrices.elementary import NOT_FINITE, NOT_FOUND
from numgrad.kernels.matrices.stacks import StackKernel

_HOME = "numgrad.kernels.matrices"
_EXPONENTIAL = StackKernel(f"{_HOME}.matrix_exponential:exponential", "T3. T3", "gesv")
_SYLVESTER = {
    "f": StackKernel(f"{_HOME}.schur:real_sylvester", "T3. T3. T3. T3 R2", "gees trsyl"),
    "c": StackKernel(f"{_HOME}.schur:complex_sylvester", "T3. T3. T3. T3 R2", "gees trsyl"),
}
_ROOT = {
    "f": StackKernel(f"{_HOME}.schur:real_root", "T3. T3", "gees"),
    "c": StackKernel(f"{_HOME}.schur:complex_root", "T3. T3 R2", "gees"),
}
_LOGARITHM = {
    "f": StackKernel(f"{_HOME}.logarithm:real_logarithm", "T3. T3", "gees", "C"),
    "c": StackKernel(f"{_HOME}.logarithm:complex_logarithm", "T3. T3 R2", "gees"),
}
_DOUBLED = StackKernel(f"{_HOME}.elementary:doubled", "T3. T3. T3 R2 int")
_BANDED = StackKernel(f"{_HOME}.structured:banded", "T3. T3. T3 int int", "gbsv gtsv")
_TOEPLITZ = StackKernel(f"{_HOME}.structured:toeplitz", "T2. T2. T3. T3")


def _schur_ns(n: int) -> float:
    return 3000.0 + 25.0 * n**3


def exponentials(a: np.ndarray) -> np.ndarray:
    """Exponentials of a stack (count, n, n)."""
    out = np.empty(a.shape, a.dtype)
    if out.size:
        n = a.shape[-1]
        _EXPONENTIAL(a.dtype, n, 3000.0 + 10.0 * n**3, a, out)
    return out


def doubled(a: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of twice the size (count, 2 n, 2 n) of stacks, and the scales (count, 1) in them."""
    count, n, _ = a.shape
    block, scale = (
        np.empty((count, 2 * n, 2 * n), a.dtype),
        np.ones((count, 1), real_dtype(a.dtype)),
    )
    if block.size:
        most = np.finfo(scale.dtype).maxexp - 2
        _DOUBLED(a.dtype, n, 20.0 + 4.0 * n**2, a, t, block, scale, most)
    return block, scale


def general_eigen(a: np.ndarray, vectors: bool) -> tuple[np.ndarray, Any, Any]:
    """Eigenvalues, eigenvectors in columns if asked for, and info, of a stack (count, n, n).

    NumPy finds them: their order and signs differ between versions of LAPACK, of which it has one
    and SciPy another. It costs 3 us more than a call from a kernel.
    """
    dtype = np.result_type(a.dtype, np.complex64)
    try:
        w, v = np.linalg.eig(a) if vectors else (np.linalg.eigvals(a), None)
    except np.linalg.LinAlgError:
        finite = np.isfinite(a).all((-2, -1))
        info = np.where(finite, 0, NOT_FINITE) if not finite.all() else [_outcome(x) for x in a]
        return a, None, np.asarray(info)
    return w.astype(dtype, copy=False), None if v is None else v.astype(dtype, copy=False), None


def _outcome(matrix: np.ndarray) -> int:
    try:
        np.linalg.eigvals(matrix)
    except np.linalg.LinAlgError:
        return NOT_FOUND
    return 0


def sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, Any]:
    """The solutions of ``a @ x + x @ b = q``, of stacks, and info."""
    x = np.empty(q.shape, q.dtype)
    if not x.size:
        return x, None
    m, n = q.shape[1:]
    kernel = _SYLVESTER[x.dtype.kind]
    return x, kernel(x.dtype, max(m, n), _schur_ns(m) + _schur_ns(n), a, b, q, x, _like(x))


def roots(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """Principal square roots of a stack (count, n, n), and info."""
    out, n = np.empty(a.shape, a.dtype), a.shape[-1]
    if not out.size:
        return out, None
    like = () if a.dtype.kind == "f" else (_like(out),)
    return out, _ROOT[a.dtype.kind](a.dtype, n, _schur_ns(n), a, out, *like)


def logarithms(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """Principal logarithms of a stack (count, n, n), and info.

    They are computed in float64 or complex128.
    """
    a = a.astype(np.result_type(a.dtype, np.float64), copy=False)
    out, n = np.empty(a.shape, a.dtype), a.shape[-1]
    if not out.size:
        return out, None
    like = () if a.dtype.kind == "f" else (_like(out),)
    return out, _LOGARITHM[a.dtype.kind](a.dtype, n, 4 * _schur_ns(n), a, out, *like)


def banded(ab: np.ndarray, b: np.ndarray, below: int, above: int) -> tuple[np.ndarray, Any]:
    """Solutions for stacks of diagonals and of right sides (count, n, k), and info."""
    x = np.empty(b.shape, b.dtype)
    if not x.size:
        return x, None
    work = 1000.0 + 4.0 * ab.shape[2] * ab.shape[1] * (below + b.shape[2])
    return x, _BANDED(b.dtype, 1, work, ab, b, x, below, above)


def toeplitz(c: np.ndarray, r: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
    """Solutions for stacks of columns and rows (count, n) and right sides (count, n, k), and info.

    They are computed in float64 or complex128.
    """
    dtype = np.result_type(b.dtype, np.float64)
    c, r, b = (x.astype(dtype, copy=False) for x in (c, r, b))
    x = np.empty(b.shape, dtype)
    if not x.size:
        return x, None
    work = 200.0 + (3.0 + 2.0 * b.shape[2]) * b.shape[1] ** 2
    return x, _TOEPLITZ(dtype, 1, work, c, r, b, x)


def _like(x: np.ndarray) -> np.ndarray:
    """An empty array that tells a kernel the dtype of magnitudes."""
    return np.empty((len(x), 1), real_dtype(x.dtype))
