"""Triangular factors of stacks of matrices, and systems of equations with them.

Note [Factors]
--------------
What is row-major here LAPACK takes for the transpose. So ``getrf`` gives ``a = lower @ upper @
P.T``: columns are exchanged, and ``upper`` has ones on its diagonal. Both triangles are read by
``trsm`` where they lie, with right sides in row-major order, so nothing is ever transposed.

Real matrices up to ``SMALL`` are factored and solved by loops of our own, thousands of them in
parallel: ``small``, and for many systems of few unknowns ``unrolled``. Up to ``MEDIUM`` they are
factored by ``elimination``. Others are left to LAPACK, one after the other, with the threads it has
itself.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.kernels.matrices import stacks, unrolled
from numgrad.kernels.matrices.stacks import StackKernel, with_batch

SMALL = 16
"""Rows up to which real matrices are handled by loops of our own."""
MEDIUM = 256
"""Rows up to which one thread factors real matrices at least as fast as LAPACK does with several:
at 200 rows in 0.12 ms against 0.22 on two idle cores, 12 on busy ones."""

_HOME = "numgrad.kernels.matrices.small"
_FACTOR = StackKernel(f"{_HOME}:factor", "T3 N2")
_FACTOR_BLOCKS = StackKernel("numgrad.kernels.matrices.elimination:factor", "T3 N2")
_SOLVE = StackKernel(f"{_HOME}:solve", "T3 T3 T3 N2 T3")
_SOLVE_BACKWARD = StackKernel(f"{_HOME}:solve_backward", "T3 N2 T3 T3 T3")
_SUBSTITUTE = StackKernel(f"{_HOME}:substitute", "T3 N2 T3 int")
_TRIANGLE = StackKernel(f"{_HOME}:triangle", "T3 T3 bool bool bool")
_EXCHANGE = StackKernel(f"{_HOME}:exchange", "T3 N2 int")
_CLEAR = StackKernel(f"{_HOME}:clear", "T3")
_CHOLESKY = StackKernel(f"{_HOME}:cholesky", "T3")
_CHOLESKY_BACKWARD = StackKernel(f"{_HOME}:cholesky_backward", "T3 T3")


def is_small(a: np.ndarray) -> bool:
    """Whether loops of our own are faster than LAPACK."""
    return is_small_of(a.shape[-1], a.dtype)


def is_small_of(n: int, dtype: np.dtype) -> bool:
    """The same for matrices of so many rows."""
    return n <= SMALL and dtype.kind == "f"


def _factor_ns(a: np.ndarray) -> float:
    return 20.0 + float(a.shape[-1]) ** 3


def factored(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """Factor a stack in place, (count, n, n): pivots, and where a pivot is zero: Note [Factors]."""
    count, n, _ = a.shape
    pivots = np.empty((count, n), np.int32)
    if not a.size:
        return pivots, None
    if is_small(a):
        return pivots, _FACTOR(a.dtype, n, _factor_ns(a), a, pivots)
    if n <= MEDIUM and a.dtype.kind == "f":
        work_ns = float(n * n) * (1.0 + 0.01 * n)
        return pivots, _FACTOR_BLOCKS(a.dtype, 1, work_ns, a, pivots)
    info = np.zeros(count, np.int32)
    stacks.run("getrf", a.dtype, "", (n,), a, pivots, info)
    return pivots, info if info.any() else None


def solving(
    batch: tuple[int, ...], n: int, columns: int, dtype: np.dtype
) -> Callable[..., Any] | None:
    """A solver of systems by loops of our own, or None where LAPACK is faster.

    It takes matrices (*batch, n, n), right sides (*batch, n, columns), room for factors, pivots and
    solutions, and says where a pivot is zero, as ``StackKernel.over`` does.
    """
    count = prod(batch)
    if not (is_small_of(n, dtype) and count * n * columns):
        return None
    if unrolled.suits(count, n, columns, dtype):
        return with_batch(unrolled.bound("solve", count, n, columns, dtype), batch)
    work = 20.0 + float(n) ** 3 + 2.0 * n * n * columns
    return _SOLVE.over(dtype, batch, n, work)


def solved(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Solutions, factors, pivots and info of stacks (count, n, n) and (count, n, k)."""
    count, n, columns = b.shape
    solve = solving((count,), n, columns, a.dtype)
    if solve is None:
        factors, x = np.array(a, order="C"), np.array(b, order="C")
        pivots, info = factored(factors)
        substitute(factors, pivots, x, False)
        return x, factors, pivots, info
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    pivots, factors, x = (
        np.empty((count, n), np.int32),
        np.empty(a.shape, a.dtype),
        np.empty(b.shape, a.dtype),
    )
    return x, factors, pivots, as_info(solve(a, b, factors, pivots, x))


def as_info(outcome: Any) -> np.ndarray | None:
    """The outcomes that ``StackKernel.over`` returns as an array, or None if nothing went wrong."""
    return np.asarray(outcome) if outcome else None


def substitute(a: np.ndarray, pivots: np.ndarray, b: np.ndarray, adjoint: bool) -> None:
    """Solve with what ``factored`` gave, or with the conjugate transpose, in place of ``b``."""
    if not b.size:
        return
    count, n, columns = b.shape
    if unrolled.suits(count, n, columns, a.dtype):
        what = "substitute_adjoint" if adjoint else "substitute"
        unrolled.bound(what, count, n, columns, a.dtype)(a, pivots, b)
    elif is_small(a):
        work = 20.0 + 2.0 * n**2 * columns
        _SUBSTITUTE(a.dtype, n, work, a, pivots, b, adjoint)
    elif adjoint:
        _exchange(b, pivots, False)
        solve_triangles(a, b, lower=False, trans="C", unit=True)
        solve_triangles(a, b, lower=True, trans="C")
    else:
        solve_triangles(a, b, lower=True)
        solve_triangles(a, b, lower=False, unit=True)
        _exchange(b, pivots, True)


def _exchange(b: np.ndarray, pivots: np.ndarray, backward: bool) -> None:
    _EXCHANGE(b.dtype, 1, 2.0 * b[0].size, b, pivots, backward)


def permutations(pivots: np.ndarray) -> np.ndarray:
    """The permutation of rows by the exchanges that LAPACK notes: ``x[permutation]``."""
    count, n = pivots.shape
    order = np.tile(np.arange(n), (count, 1))
    every = np.arange(count)
    for k in range(n):
        p = pivots[:, k] - 1
        order[every, k], order[every, p] = order[every, p], order[every, k].copy()
    return order


def solving_backward(
    batch: tuple[int, ...], n: int, columns: int, dtype: np.dtype
) -> Callable[..., Any] | None:
    """A function that gives the gradients of systems that ``solving`` solves, else None.

    It takes factors, pivots, the gradient of the solutions, in whose place it puts that of the
    right sides, the solutions, and room for the gradients of the matrices.
    """
    count = prod(batch)
    if not (is_small_of(n, dtype) and count * n * columns):
        return None
    if unrolled.suits(count, n, columns, dtype):
        return with_batch(unrolled.bound("solve_backward", count, n, columns, dtype), batch)
    return _SOLVE_BACKWARD.over(dtype, batch, n, 20.0 + 4.0 * n**2 * columns)


def triangles(
    batch: tuple[int, ...],
    n: int,
    columns: int,
    dtype: np.dtype,
    lower: bool,
    of_adjoint: bool,
    unit: bool,
) -> Callable[[np.ndarray, np.ndarray], Any]:
    """A solver with triangles (*batch, n, n) in place of right sides (*batch, n, columns)."""
    if not prod(batch) * n * columns:
        return lambda a, b: 0
    if unrolled.suits(prod(batch), n, columns, dtype):
        what = unrolled.triangle(lower, of_adjoint, unit)
        return with_batch(unrolled.bound(what, prod(batch), n, columns, dtype), batch)
    if is_small_of(n, dtype):
        run = _TRIANGLE.over(dtype, batch, n, 20.0 + float(n) ** 2 * columns)
        return lambda a, b: run(a, b, lower, of_adjoint, unit)
    trans = "C" if of_adjoint else "N"

    def solve(a: np.ndarray, b: np.ndarray) -> None:
        a, b = a.reshape(-1, n, n), b.reshape(-1, n, columns)
        solve_triangles(a, b, lower=lower, trans=trans, unit=unit)

    return solve


def solve_triangles(
    a: np.ndarray, b: np.ndarray, *, lower: bool, trans: str = "N", unit: bool = False
) -> None:
    """Solve triangular systems in place of ``b``: with ``a``, its transpose (T) or adjoint (C)."""
    if not b.size:
        return
    if is_small(a):
        work = 20.0 + float(a.shape[-1]) ** 2 * b.shape[2]
        _TRIANGLE(a.dtype, a.shape[-1], work, a, b, lower, trans != "N", unit)
        return
    codes = ("U" if lower else "L") + trans + ("U" if unit else "N")
    if b.shape[2] > 1:
        stacks.run("trsm", a.dtype, "R" + codes, b.shape[1:], np.ones(1, a.dtype), a, b)
        return
    conjugate = trans == "C" and a.dtype.kind == "c"
    if conjugate:
        np.conjugate(b, out=b)
    codes = codes[0] + ("T" if trans == "N" else "N") + codes[2]
    stacks.run("trsv", a.dtype, codes, (b.shape[1], 1), a, b)
    if conjugate:
        np.conjugate(b, out=b)


def cholesky_of(
    batch: tuple[int, ...], n: int, dtype: np.dtype
) -> Callable[[np.ndarray], tuple[np.ndarray, Any]]:
    """A function that finds lower factors of matrices (*batch, n, n) whose lower triangles count.

    The outcome besides is as of ``StackKernel.over``.
    """
    count = prod(batch)
    if unrolled.is_long(count, n, dtype):
        run = with_batch(unrolled.bound("cholesky", count, n, n, dtype), batch)

        def find(a: np.ndarray) -> tuple[np.ndarray, Any]:
            factors = np.empty(a.shape, dtype)
            return factors, run(np.ascontiguousarray(a, dtype), factors)

        return find
    if not is_small_of(n, dtype) or not count * n:
        return partial(_by_potrf, dtype)
    alone = _CHOLESKY.over(dtype, batch, n, 20.0 + n**3 / 2)
    array = np.array

    def find_small(a: np.ndarray) -> tuple[np.ndarray, Any]:
        factors = array(a, dtype, order="C")
        return factors, alone(factors)

    return find_small


def _by_potrf(dtype: np.dtype, a: np.ndarray) -> tuple[np.ndarray, Any]:
    factors, n = np.array(a, dtype, order="C"), a.shape[-1]
    if not a.size:
        return factors, 0
    stack = factors.reshape(-1, n, n)
    info = np.zeros(len(stack), np.int32)
    stacks.run("potrf", dtype, "U", (n,), stack, info)
    _CLEAR(dtype, 1, float(n * n), stack)
    return factors, info.tolist() if info.any() else 0


def cholesky_backward(batch: tuple[int, ...], n: int, dtype: np.dtype) -> Callable[..., Any] | None:
    """A function that puts gradients of small matrices in place of their factors', else None.

    It takes the factors and their gradients.
    """
    if not (is_small_of(n, dtype) and prod(batch) * n):
        return None
    return _CHOLESKY_BACKWARD.over(dtype, batch, n, 20.0 + float(n) ** 3)
