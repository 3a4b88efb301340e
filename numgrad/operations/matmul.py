"""The matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.product_plan import MatMul, product_shape
from numgrad.operations.shape import expand_dims, squeeze


def conjugated(x: Any) -> Any:
    """The conjugate of an ndarray or a Tensor; of a real one itself, where NumPy copies."""
    return np.conj(x) if x.dtype.kind == "c" else x


def mH(x: Any) -> Any:
    """Conjugate transpose of matrices, of an ndarray or a Tensor."""
    return conjugated(matrix_transpose(x))


def _matmul_vjp_a(g, b, meta_a, meta_b):
    if len(meta_b.shape) == 1:
        return (expand_dims(g, -1) if len(meta_a.shape) > 1 else g) * conjugated(b)
    if len(meta_a.shape) == 1:
        if len(meta_b.shape) == 2:
            return matmul(conjugated(b), g)
        return squeeze(matmul(conjugated(b), expand_dims(g, -1)), -1)
    return matmul(g, mH(b))


def _matmul_vjp_b(g, a, meta_a, meta_b):
    if len(meta_a.shape) == 1:
        if len(meta_b.shape) == 1:
            return g * conjugated(a)
        return expand_dims(conjugated(a), -1) * expand_dims(g, -2)
    if len(meta_b.shape) == 1:
        if len(meta_a.shape) == 2:
            return matmul(mH(a), g)
        return squeeze(matmul(mH(a), expand_dims(g, -1)), -1)
    return matmul(mH(a), g)


def _declare(**options: Any) -> Any:
    return lambda function: MatMul(function, **options)


@_declare(
    ref=np.matmul,
    dunder="matmul",
    samples=[
        (((3, 4), (4, 5)), {}),
        (((4,), (4,)), {}),
        (((3, 4), (4,)), {}),
        (((4,), (4, 3)), {}),
        (((2, 3, 4), (2, 4, 2)), {}),
        (((2, 1, 3, 4), (3, 4, 2)), {}),
        (((2, 3, 4), (4,)), {}),
        (((4,), (2, 4, 3)), {}),
        (((3, 4), (2, 4, 3)), {}),
    ],
    errors=[
        (((3, 4), (3, 4)), {}, "NumgradValueError"),
        (((), (3, 4)), {}, "NumgradValueError"),
        (((2, 3, 4), (3, 4, 2)), {}, "NumgradValueError"),
    ],
    bilinear=True,
    smooth=True,
)
def matmul(a, b):
    """Matrix product; vectors are rows on the left and columns on the right.

    Axes before the last two are stacks of matrices and broadcast against each other.

    Returns
    -------
    Tensor
        Of shape (..., rows of ``a``, columns of ``b``), without the axis that a vector has not.

    Examples
    --------
    >>> a = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.matmul(a, [1.0, 10.0])
    tensor([21., 43.])
    >>> ng.matmul(a, a)
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    return np.matmul(a, b)


@matmul.shape
def _matmul_result(a, b):
    return Meta(product_shape(a.shape, b.shape), np.result_type(a.dtype, b.dtype))


matmul.vjp(a=_matmul_vjp_a, b=_matmul_vjp_b)
matmul.calls = [
    (((0, 3), (3, 2)), lambda a, b: matmul(a, b)),
    (((2, 0), (0, 3)), lambda a, b: matmul(a, b)),
    (((0,), (0,)), lambda a, b: matmul(a, b)),
    (((0, 2, 3), (3,)), lambda a, b: matmul(a, b)),
]


@matmul.batch
def _batched_matmul(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Products of stacks of matrices, or one of two matrices where that does."""
    a, b = operands
    if a.ndim == 0 or b.ndim == 0:
        return NotImplemented  # an error, whose message one example gives
    # vectors of a batch times one matrix are one product of two matrices
    if a.batched and a.ndim == 1 and not b.batched and b.ndim == 2:
        return bind(op, (a.value, b.value), {})
    if b.batched and b.ndim == 1 and not a.batched and a.ndim == 2:
        return bind(op, (b.value, apply("matrix_transpose", a.value)), {})
    row, column = a.batched and a.ndim == 1, b.batched and b.ndim == 1
    if row:
        a = BatchOperand(apply("expand_dims", a.value, axis=1), True)
    if column:
        b = BatchOperand(apply("expand_dims", b.value, axis=2), True)
    ndim = max(a.ndim, b.ndim)
    out = bind(op, (a.aligned(ndim), b.aligned(ndim)), {})
    if column:
        out = apply("squeeze", out, axis=-1)
    return apply("squeeze", out, axis=-1 if column or b.ndim == 1 else -2) if row else out
