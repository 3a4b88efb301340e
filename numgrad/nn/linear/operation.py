"""Linear and bilinear maps of the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply, elementwise_rule
from numgrad.core.declare import composite
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradValueError
from numgrad.nn.linear.plan import LinearMap, check_shapes
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.matmul import conjugated, matmul
from numgrad.operations.shape import as_operand, expand_dims, reshape


def _declare(**options: Any) -> Any:
    return lambda function: LinearMap(function, **options)


@_declare(
    name="linear",
    method=False,
    ref=lambda x, weight, *bias: sum(bias, np.matmul(x, weight.T)),
    samples=[
        (((3, 4), (5, 4), (5,)), {}),
        (((3, 4), (5, 4)), {}),
        (((4,), (3, 4), (3,)), {}),
        (((2, 3, 4), (2, 4), (2,)), {}),
        (((9, 5), (8, 5), (8,)), {}),
    ],
    errors=[
        (((3, 4), (4, 5)), {}, "NumgradValueError"),
        (((), (4, 5)), {}, "NumgradValueError"),
        (((3, 4), (4,)), {}, "NumgradValueError"),
        (((3, 4), (5, 4), (4,)), {}, "NumgradValueError"),
    ],
    smooth=True,
    lowering="numgrad.nn.linear.lowering",
)
def _linear(x, weight, bias=None):
    """``x @ weight.T + bias``, one operation.

    ``x`` has shape (..., inputs), ``weight`` (outputs, inputs), ``bias`` (outputs,).

    Parameters
    ----------
    weight
        Array of shape (outputs, inputs).
    bias
        Array of shape (outputs,).

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Examples
    --------
    >>> weight = ng.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.linear(ng.tensor([[1.0, 2.0]]), weight, ng.tensor([0.0, 0.0, 10.0]))
    tensor([[ 1.,  2., 13.]])
    """
    out = np.matmul(x, np.transpose(weight))
    return out if bias is None else out + bias


def _rows(x: Any) -> Any:
    """The leading axes as one."""
    return reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


@_linear.shape
def _linear_result(x, weight, bias):
    given = [m for m in (x, weight, bias) if m is not None]
    check_shapes(x.shape, weight.shape, None if bias is None else bias.shape)
    shape = (*x.shape[:-1], weight.shape[0])
    return Meta(shape, np.result_type(*[m.dtype for m in given]))


_linear.vjp(
    x=lambda g, weight: matmul(g, conjugated(weight)),
    weight=lambda g, x: matmul(matrix_transpose(_rows(g)), conjugated(_rows(x))),
    bias=lambda g: np.sum(_rows(g), axis=0),
)


@composite(
    name="bilinear",
    method=False,
    ref=lambda a, b, weight, bias=None: (
        np.einsum("...i,kij,...j->...k", a, weight, b) + (0 if bias is None else bias)
    ),
    smooth=True,
)
def _bilinear(a, b, weight, bias=None):
    """``y[..., k] = sum over i, j of a[..., i] weight[k, i, j] b[..., j] + bias[k]``.

    ``a`` has shape (..., n), ``b`` (..., m), ``weight`` (outputs, n, m), ``bias`` (outputs,).

    Parameters
    ----------
    weight
        Array of shape (outputs, n, m).
    bias
        Array of shape (outputs,).

    Returns
    -------
    Tensor
        Of the shape of ``a`` with its last axis as long as there are outputs.

    Examples
    --------
    >>> F.bilinear(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0]), np.eye(2)[None])
    tensor([11.])
    """
    a, b, weight = as_operand(a), as_operand(b), as_operand(weight)
    if (
        len(weight.shape) != 3
        or a.shape[-1:] != weight.shape[1:2]
        or b.shape[-1:] != weight.shape[2:]
        or a.shape[:-1] != b.shape[:-1]
    ):
        raise NumgradValueError(
            f"bilinear: shapes {a.shape}, {b.shape} and {weight.shape}: the weight must have shape "
            "(outputs, n, m) where n and m are the last axes of the first two, whose other axes "
            "must be equal"
        )
    products = expand_dims(a, -1) * expand_dims(b, -2)
    pairs = weight.shape[1] * weight.shape[2]
    flat = reshape(products, (*a.shape[:-1], pairs))
    return _linear(flat, reshape(weight, (weight.shape[0], pairs)), bias)


_bilinear.calls = [
    (((2, 3), (2, 4), (5, 3, 4), (5,)), lambda *operands: _bilinear(*operands)),
    (((3,), (2,), (1, 3, 2)), lambda *operands: _bilinear(*operands)),
]


@_linear.batch
def _linear_of_batch(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    x, weight, *bias = (o for o in operands if o.value is not None)
    if x.ndim == 0 or weight.ndim != 2:
        return NotImplemented  # an error, whose message one example gives
    if not any(o.batched for o in (weight, *bias)):
        return bind(op, tuple([o.value for o in (x, weight, *bias)]), {})
    transpose = BatchOperand(apply("matrix_transpose", weight.value), weight.batched)
    out = matmul.batching(matmul, (x, transpose), {}, size)
    product = BatchOperand(out, x.batched or weight.batched)
    return elementwise_rule(OPS["add"], (product, *bias), {}, size) if bias else out
