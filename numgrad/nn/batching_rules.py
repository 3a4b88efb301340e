"""How operations of neural networks act on whole batches: Note [Rules of batching]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.autograd.batching.rules import (
    RULES,
    Operand,
    apply,
    elementwise_rule,
    matmul_rule,
)
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.nn import operations as _operations  # noqa: F401 (whose rules these are)


def _embedding(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    weight, indices = operands
    # how often a row is looked up is counted for each example
    if indices.batched and (weight.batched or params["scale_grad_by_freq"]):
        return NotImplemented
    if not weight.batched:
        return bind(op, (weight.value, indices.value), params)
    # the rows of all examples side by side
    rows, width = weight.shape
    beside = apply("reshape", apply("swapaxes", weight.value, axis1=0, axis2=1), (rows, -1))
    out = bind(op, (beside, indices.value), params)
    out = apply("reshape", out, (*indices.shape, size, width))
    return apply("moveaxis", out, -2, 0)


def _embedding_backward(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    x, indices = operands
    if indices.batched:
        return NotImplemented
    beside = apply("reshape", apply("moveaxis", x.value, 0, -2), (*indices.shape, -1))
    out = bind(op, (beside, indices.value), params)
    out = apply("reshape", out, (params["rows"], size, x.shape[-1]))
    return apply("swapaxes", out, axis1=0, axis2=1)


def _normalize_groups(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    x, *parameters = operands
    if any(p.batched for p in parameters):
        return NotImplemented
    outer, *rest = params["extents"]
    arguments = (x.value, *(p.value for p in parameters))
    return bind(op, arguments, {**params, "extents": (size * outer, *rest)})


def _linear(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    x, weight, *bias = (o for o in operands if o.value is not None)
    if x.ndim == 0 or weight.ndim != 2:
        return NotImplemented  # an error, whose message one example gives
    if not any(o.batched for o in (weight, *bias)):
        return bind(op, tuple([o.value for o in (x, weight, *bias)]), {})
    transpose = Operand(apply("matrix_transpose", weight.value), weight.batched)
    out = matmul_rule(OPS["matmul"], (x, transpose), {}, size)
    product = Operand(out, x.batched or weight.batched)
    return elementwise_rule(OPS["add"], (product, *bias), {}, size) if bias else out


def _convolution(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    """Examples are more samples; where weights differ, they are groups of channels instead."""
    first, second, *bias = operands
    if not size:
        return NotImplemented
    if op.name != "convolution_weight" and not any([o.batched for o in operands[1:]]):
        samples = first.shape[0]
        merged = apply("reshape", first.value, shape=(size * samples, *first.shape[1:]))
        out = bind(op, (merged, *[o.value for o in operands[1:]]), params)
        return apply("reshape", out, shape=(size, samples, *out.shape[1:]))
    first = _side_by_side(first, size)
    if op.name == "convolution_weight":
        others = [_side_by_side(second, size)]
    else:
        others = [None if o.value is None else _one_after_another(o, size) for o in (second, *bias)]
    out = bind(op, (first, *others), {**params, "groups": size * params["groups"]})
    axis = 0 if op.name == "convolution_weight" else 1
    shape = (*out.shape[:axis], size, out.shape[axis] // size, *out.shape[axis + 1 :])
    return apply("moveaxis", apply("reshape", out, shape=shape), source=axis, destination=0)


def _side_by_side(x: Operand, size: int) -> Any:
    """The channels of all examples along axis 1, after the samples."""
    samples, channels, *rest = x.shape
    moved = apply("moveaxis", x.repeated(size), source=0, destination=1)
    return apply("reshape", moved, shape=(samples, size * channels, *rest))


def _one_after_another(x: Operand, size: int) -> Any:
    """The outputs of all examples along axis 0."""
    outputs, *rest = x.shape
    return apply("reshape", x.repeated(size), shape=(size * outputs, *rest))


RULES.update(
    {
        "convolution": _convolution,
        "convolution_input": _convolution,
        "convolution_weight": _convolution,
        "embedding": _embedding,
        "embedding_backward": _embedding_backward,
        "linear": _linear,
        "normalize_groups": _normalize_groups,
    }
)
