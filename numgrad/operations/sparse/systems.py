"""Systems of equations with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.operations.sparse.pattern import SparsePattern
from numgrad.operations.sparse.products import columns_of_batch, sparse_matmul, sparse_outer


@primitive(internal=True, method=False, smooth=True)
def sparse_solve(data, b, *, pattern, adjoint=False):
    """Solve a system with a sparse matrix, or with its adjoint."""
    return pattern.solve(data, b, adjoint)


@sparse_solve.shape
def _solve_shape(data, b, *, pattern, adjoint):
    return Meta(b.shape, np.result_type(data.dtype, b.dtype, np.float32))


def _of_elements(z: Any, y: Any, pattern: SparsePattern, adjoint: bool) -> Any:
    """The gradient by the elements, from the solutions of the other system and of this one."""
    left, right = (y, z) if adjoint else (z, y)
    return -(sparse_outer(left, right, pattern=pattern))


def _solve_vjp_b(g, data, pattern, adjoint):
    return sparse_solve(data, g, pattern=pattern, adjoint=not adjoint)


def _solve_vjp_data(g, data, y, pattern, adjoint):
    return _of_elements(_solve_vjp_b(g, data, pattern, adjoint), y, pattern, adjoint)


sparse_solve.vjp(data=_solve_vjp_data, b=_solve_vjp_b)
sparse_solve.batch(columns_of_batch)


@sparse_solve.jvp
def _solve_jvp(t_data, t_b, data, y, pattern, adjoint):
    moved = t_b - sparse_matmul(t_data, y, pattern=pattern, adjoint=adjoint)
    return sparse_solve(data, moved, pattern=pattern, adjoint=adjoint)


@sparse_solve.vjp_kernel
def _solve_backward(call, mask, g, data: Any = None, y: Any = None):
    pattern, adjoint = call.params["pattern"], call.params["adjoint"]
    z = pattern.solve(data, g, not adjoint)
    of_data = _of_elements(z, y, pattern, adjoint) if mask & 1 else None
    return [of_data, z if mask & 2 else None]


def _example() -> SparsePattern:
    from scipy.sparse import csc_array

    return SparsePattern(csc_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])))


def _regular(data: Any) -> Any:
    """Elements of a matrix that is far from singular."""
    pattern = _example()
    return data + np.where(pattern.rows == pattern.columns, 6.0, 0.0)


def _solved(data: Any, b: Any, adjoint: bool = False) -> Any:
    return sparse_solve(_regular(data), b, pattern=_example(), adjoint=adjoint)


sparse_solve.calls = [
    (((6,), (3,)), _solved),
    (((6,), (3, 2)), _solved),
    (((6,), (3, 2)), lambda data, b: _solved(data, b, True)),
]
