"""Products of sparse and dense matrices; each is the gradient of the other.

A sparse matrix ``M`` is a vector of its elements and a pattern. The gradient of ``M @ x`` by the
elements is ``g @ x^H`` at their places, which is the second operation here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.operations.sparse.pattern import SparsePattern

_AT_ONCE = 1 << 20
"""Elements of a dense matrix that are gathered at once."""


@primitive(internal=True, method=False, bilinear=True, smooth=True)
def sparse_matmul(data, x, *, pattern, adjoint=False):
    """Multiply a sparse matrix, or its adjoint, with a vector or matrix."""
    return pattern.product(data, x, adjoint)


@sparse_matmul.shape
def _matmul_shape(data, x, *, pattern, adjoint):
    rows = pattern.shape[1 if adjoint else 0]
    return Meta((rows, *x.shape[1:]), np.result_type(data.dtype, x.dtype))


@primitive(internal=True, method=False, bilinear=True, smooth=True)
def sparse_outer(a, b, *, pattern):
    """The elements of ``a @ b^H`` at the places of a pattern."""
    dtype = np.result_type(a, b)
    rows, columns = pattern.rows, pattern.columns
    if a.ndim == 1:
        return a[rows] * np.conj(b[columns])
    out = np.empty(len(rows), dtype)
    count = max(1, _AT_ONCE // max(1, a.shape[1]))
    for start in range(0, len(rows), count):
        part = slice(start, start + count)
        left, right = a[rows[part]], np.conj(b[columns[part]])
        out[part] = np.einsum("ij,ij->i", left, right)
    return out


@sparse_outer.shape
def _outer_shape(a, b, *, pattern):
    return Meta((pattern.nnz,), np.result_type(a.dtype, b.dtype))


def _matmul_vjp_data(g, x, pattern, adjoint):
    return sparse_outer(x, g, pattern=pattern) if adjoint else sparse_outer(g, x, pattern=pattern)


sparse_matmul.vjp(
    data=_matmul_vjp_data,
    x=lambda g, data, pattern, adjoint: sparse_matmul(
        data, g, pattern=pattern, adjoint=not adjoint
    ),
)
sparse_outer.vjp(
    a=lambda g, b, pattern: sparse_matmul(g, b, pattern=pattern),
    b=lambda g, a, pattern: sparse_matmul(g, a, pattern=pattern, adjoint=True),
)


def columns_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Right sides of one matrix, of many examples, as columns of one right side."""
    data, x = operands
    if data.batched:
        return NotImplemented
    rest = x.shape[1:]
    given = apply("moveaxis", x.value, source=0, destination=1)
    flat = apply("reshape", given, shape=(x.shape[0], size * (rest[0] if rest else 1)))
    out = bind(op, (data.value, flat), params)
    split = apply("reshape", out, shape=(out.shape[0], size, *rest))
    return apply("moveaxis", split, source=0, destination=1)


sparse_matmul.batch(columns_of_batch)


@sparse_outer.batch
def _outer_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    pattern = params["pattern"]
    parts = [
        apply("take", o.value, places, axis=1 if o.batched else 0)
        for o, places in zip(operands, pattern.places(False), strict=True)
    ]
    found = apply("multiply", parts[0], apply("conjugate", parts[1]))
    return apply("sum", found, axis=-1) if operands[0].ndim > 1 else found


def example() -> SparsePattern:
    """A pattern that tests use, with an empty row and an element given in two parts."""
    from scipy.sparse import coo_array

    places = np.array([2, 0, 0, 2, 3]), np.array([0, 2, 1, 0, 2])
    return SparsePattern(coo_array((np.ones(5), places), shape=(4, 3)))


sparse_matmul.calls = [
    (((5,), (3,)), lambda data, x: sparse_matmul(data, x, pattern=example())),
    (((5,), (3, 2)), lambda data, x: sparse_matmul(data, x, pattern=example())),
    (((5,), (4, 2)), lambda data, x: sparse_matmul(data, x, pattern=example(), adjoint=True)),
]
sparse_outer.calls = [
    (((4,), (3,)), lambda a, b: sparse_outer(a, b, pattern=example())),
    (((4, 2), (3, 2)), lambda a, b: sparse_outer(a, b, pattern=example())),
]
