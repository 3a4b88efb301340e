"""Triangular factors of stacks of matrices, and systems of equations with them.

Note [Factors]
--------------
What is row-major here LAPACK takes for the transpose. So ``getrf`` gives ``a = lower @ upper @
P.T``: columns are exchanged, and ``upper`` has ones on its diagonal. Both triangles are read by
``trsm`` where they lie, with right sides in row-major order, so nothing is ever transposed.

Real matrices up to ``SMALL`` are factored and solved by loops of our own (``small``), thousands of
them in parallel; others by LAPACK one after the other, with the threads it has itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.matrices import lapack

SMALL = 16
"""Rows up to which real matrices are handled by loops of our own."""

_HEADER = """
from numba import prange
from numgrad.codegen.device import outlined
from numgrad.kernels.matrices.small import (
    cholesky, cholesky_backward, factor, triangle, triangle_of_one
)
"""

_EXCHANGE = """
@outlined
def exchange(b, pivots, backward):
    n = b.shape[0]
    for step in range(n):
        k = n - 1 - step if backward else step
        p = pivots[k] - 1
        if p != k:
            for c in range(b.shape[1]):
                other = b[k, c]
                b[k, c] = b[p, c]
                b[p, c] = other

"""

_CLEAR = """
@outlined
def clear(a):
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[0]):
            a[i, j] = 0

"""

_SOLVE_SMALL = """
@outlined
def substitute(a, pivots, b):
    n = a.shape[0]
    if b.shape[1] == 1:
        x = b.reshape(n)
        triangle_of_one(a, x, True, False, False)
        triangle_of_one(a, x, False, False, True)
    else:
        triangle(a, b, True, False, False)
        triangle(a, b, False, False, True)
    exchange(b, pivots, True)

@outlined
def substitute_adjoint(a, pivots, b):
    n = a.shape[0]
    exchange(b, pivots, False)
    if b.shape[1] == 1:
        x = b.reshape(n)
        triangle_of_one(a, x, False, True, True)
        triangle_of_one(a, x, True, True, False)
    else:
        triangle(a, b, False, True, True)
        triangle(a, b, True, True, False)

"""

_SMALL = {
    "factor": (
        "a, pivots, info",
        "3, p, i",
        "info[i] = factor(a[i], pivots[i])",
    ),
    "solve": (
        "a, pivots, info, b",
        "3, p, i, 3",
        "info[i] = factor(a[i], pivots[i])\n        substitute(a[i], pivots[i], b[i])",
    ),
    "substitute": (
        "a, pivots, b, adjoint",
        "3, p, 3, boolean",
        "if adjoint:\n            substitute_adjoint(a[i], pivots[i], b[i])\n"
        "        else:\n            substitute(a[i], pivots[i], b[i])",
    ),
    "solve_backward": (
        "a, pivots, b, x, ga",
        "3, p, 3, 3, 3",
        "substitute_adjoint(a[i], pivots[i], b[i])\n        minus_product(b[i], x[i], ga[i])",
    ),
    "triangle": (
        "a, b, lower, trans, unit",
        "3, 3, boolean, boolean, boolean",
        "triangle(a[i], b[i], lower, trans, unit)",
    ),
    "exchange": ("a, pivots, backward", "3, p, boolean", "exchange(a[i], pivots[i], backward)"),
    "clear": ("a", "3", "clear(a[i])"),
    "cholesky": ("a, info", "3, i", "info[i] = cholesky(a[i])"),
    "cholesky_backward": ("a, g", "3, 3", "cholesky_backward(a[i], g[i])"),
}
"""Kernels of loops: their arguments, the kinds of these, and what is done to matrix ``i``."""

_MINUS_PRODUCT = """
@outlined
def minus_product(g, x, out):
    for i in range(g.shape[0]):
        row = out[i]
        for j in range(x.shape[0]):
            total = g[i, 0] * x[j, 0]
            for k in range(1, g.shape[1]):
                total += g[i, k] * x[j, k]
            row[j] = -total

"""

_KINDS = {"p": "int32[:,::1]", "i": "int32[::1]", "boolean": "boolean"}


@cache
def _small_kernel(name: str, dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    names, kinds, body = _SMALL[name]
    own = type_name(dtype)
    shapes = {"3": f"{own}[:,:,::1]", **_KINDS}
    source = _HEADER + (_CLEAR if name == "clear" else "")
    if "substitute" in body or "exchange" in body:
        source += _EXCHANGE
    if "substitute" in body:
        source += _SOLVE_SMALL
    if "minus_product" in body:
        source += _MINUS_PRODUCT
    source += (
        f"def kernel({names}):\n"
        f"    for i in {'prange' if parallel else 'range'}(a.shape[0]):\n"
        f"        {body}\n"
    )
    return compile_kernel(
        f"matrices_{name}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"void({', '.join(shapes[kind] for kind in kinds.split(', '))})",
        parallel=parallel,
    ).entry


def _run_small(name: str, a: np.ndarray, work: float, *arguments: Any) -> None:
    """Run a kernel of loops on a stack, each of whose matrices takes ``work`` nanoseconds."""
    kernel = partial(_small_kernel, name, a.dtype)
    threads.choose(partial(kernel, False), partial(kernel, True), work * len(a))(a, *arguments)


def is_small(a: np.ndarray) -> bool:
    """Whether loops of our own are faster than LAPACK."""
    return a.shape[-1] <= SMALL and a.dtype.kind == "f"


def _factor_ns(a: np.ndarray) -> float:
    return 20.0 + float(a.shape[-1]) ** 3


def factored(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factor a stack in place, (count, n, n): pivots, and where a pivot is zero: Note [Factors]."""
    count, n, _ = a.shape
    pivots, info = np.empty((count, n), np.int32), np.zeros(count, np.int32)
    if not a.size:
        return pivots, info
    if is_small(a):
        _run_small("factor", a, _factor_ns(a), pivots, info)
    else:
        lapack.run("getrf", a.dtype, "", (n,), a, pivots, info)
    return pivots, info


def solved(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factor ``a`` in place and put the solutions in place of ``b``, (count, n, k)."""
    if not (is_small(a) and b.size):
        pivots, info = factored(a)
        substitute(a, pivots, b, False)
        return pivots, info
    count, n, _ = a.shape
    pivots, info = np.empty((count, n), np.int32), np.empty(count, np.int32)
    _run_small("solve", a, _factor_ns(a) + 2.0 * n * n * b.shape[2], pivots, info, b)
    return pivots, info


def substitute(a: np.ndarray, pivots: np.ndarray, b: np.ndarray, adjoint: bool) -> None:
    """Solve with what ``factored`` gave, or with the conjugate transpose, in place of ``b``."""
    if not b.size:
        return
    if is_small(a):
        work = 20.0 + 2.0 * a.shape[-1] ** 2 * b.shape[2]
        _run_small("substitute", a, work, pivots, b, adjoint)
    elif adjoint:
        _exchange(b, pivots, False)
        solve_triangles(a, b, lower=False, trans="C", unit=True)
        solve_triangles(a, b, lower=True, trans="C")
    else:
        solve_triangles(a, b, lower=True)
        solve_triangles(a, b, lower=False, unit=True)
        _exchange(b, pivots, True)


def _exchange(b: np.ndarray, pivots: np.ndarray, backward: bool) -> None:
    _run_small("exchange", b, 2.0 * b[0].size, pivots, backward)


def permutations(pivots: np.ndarray) -> np.ndarray:
    """What rows become by the exchanges that LAPACK notes: ``x[permutation]``."""
    count, n = pivots.shape
    order = np.tile(np.arange(n), (count, 1))
    every = np.arange(count)
    for k in range(n):
        p = pivots[:, k] - 1
        order[every, k], order[every, p] = order[every, p], order[every, k].copy()
    return order


def solve_backward(
    a: np.ndarray, pivots: np.ndarray, g: np.ndarray, x: np.ndarray, ga: np.ndarray
) -> None:
    """Gradients of small systems: that of the right side in place of ``g``, and ``ga``."""
    work = 20.0 + 4.0 * a.shape[-1] ** 2 * g.shape[2]
    _run_small("solve_backward", a, work, pivots, g, x, ga)


def solve_triangles(
    a: np.ndarray, b: np.ndarray, *, lower: bool, trans: str = "N", unit: bool = False
) -> None:
    """Solve triangular systems in place of ``b``: with ``a``, its transpose (T) or adjoint (C)."""
    if not b.size:
        return
    if is_small(a):
        work = 20.0 + float(a.shape[-1]) ** 2 * b.shape[2]
        _run_small("triangle", a, work, b, lower, trans != "N", unit)
        return
    codes = "R" + ("U" if lower else "L") + trans + ("U" if unit else "N")
    lapack.run("trsm", a.dtype, codes, b.shape[1:], np.ones(1, a.dtype), a, b)


def cholesky_factored(a: np.ndarray) -> np.ndarray:
    """Put lower factors in place of a stack whose lower triangles count; info as of LAPACK."""
    count, n, _ = a.shape
    info = np.zeros(count, np.int32)
    if not a.size:
        return info
    if is_small(a):
        _run_small("cholesky", a, 20.0 + n**3 / 2, info)
    else:
        lapack.run("potrf", a.dtype, "U", (n,), a, info)
        _run_small("clear", a, float(n * n))
    return info


def cholesky_backward(factor: np.ndarray, g: np.ndarray) -> None:
    """Put the gradients of small matrices in place of those of their factors."""
    _run_small("cholesky_backward", factor, 20.0 + float(factor.shape[-1]) ** 3, g)
