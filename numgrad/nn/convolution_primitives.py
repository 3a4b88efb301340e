"""Convolutions over one to three axes, and the two operations that are their gradients.

Note [Three products]
---------------------
A convolution pairs input, weights and output in one trilinear form

    T(x, w, y) = sum of x[n, c, o * stride + k * dilation - before] w[m, c, k] y[n, m, o].

Leaving one of the three out gives an operation on the other two: ``convolution`` (the output),
``convolution_input`` (transposed convolution) and ``convolution_weight``. The gradients of each are
the two others, so derivatives of any order need nothing else. None of them conjugates; the formulas
do. Shapes and sizes: Note [Sizes of a convolution] in ``convolution_plan``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.convolution_plan import output_shape, plan
from numgrad.operations.matmul import conjugated
from numgrad.operations.reduce import sum


def floating(name: str, *operands: np.ndarray | Meta | None) -> np.dtype:
    """The dtype that operands, not all of them integers, have together."""
    dtype = np.result_type(*[a.dtype for a in operands if a is not None])
    check_dtype(name, dtype)
    if dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: needs a floating dtype, got {dtype}; convert the operands with astype"
        )
    return dtype


_GEOMETRIES = (
    # input, weights, output; parameters
    ((2, 2, 5), (3, 2, 3), (2, 3, 3), {"stride": (2,), "padding": ((1, 1),)}),
    ((2, 4, 4, 3), (2, 2, 2, 2), (2, 2, 4, 1), {"groups": 2, "dilation": (1, 2),
                                               "padding": ((0, 1), (0, 0))}),
    ((1, 2, 3, 4), (2, 2, 1, 1), (1, 2, 3, 4), {}),
    ((3, 1, 4, 5), (2, 1, 3, 2), (3, 2, 2, 2), {"stride": (1, 2), "padding": ((0, 0), (0, -1))}),
)  # fmt: skip


def _whole(options: dict, rank: int) -> dict:
    """All parameters of a geometry."""
    return {
        "stride": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "dilation": (1,) * rank,
        "groups": 1,
    } | options


def _samples(first: int, second: int, third: int | None, bias: bool) -> list:
    """Samples of an operation on two of input, weights and output; the third's sizes are given."""
    samples = []
    for *shapes, params in _GEOMETRIES:
        params = _whole(params, len(shapes[0]) - 2)
        operands = (shapes[first], shapes[second])
        if bias:
            operands = (*operands, shapes[1][:1])
        if third is not None:
            params["shape"] = shapes[third][2:]
        samples.append((operands, params))
    return samples


@primitive(internal=True, method=False, samples=_samples(0, 1, None, True), smooth=True)
def convolution(x, w, b, *, stride, padding, dilation, groups):
    """Correlation of samples with kernels, plus a bias unless that is None."""
    dtype = floating(f"conv{w.ndim - 2}d", x, w, b)
    geometry = plan(x.shape, w.shape, dtype, stride, padding, dilation, groups)
    _check_bias(w, b)
    return geometry.forward(x, w, b)


def _check_bias(w: Any, b: Any) -> None:
    if b is not None and (b.ndim != 1 or b.shape != w.shape[:1]):
        raise NumgradValueError(
            f"conv{w.ndim - 2}d: a bias of shape {b.shape} does not fit a weight of shape "
            f"{w.shape}; it needs a number for each of the {w.shape[0]} outputs"
        )


@convolution.shape
def _convolution_result(x, w, b, **geometry):
    dtype = floating(f"conv{w.ndim - 2}d", x, w, b)
    _check_bias(w, b)
    return Meta(output_shape(x.shape, w.shape, **geometry), dtype)


@primitive(
    internal=True, method=False, samples=_samples(2, 1, 0, False), bilinear=True, smooth=True
)
def convolution_input(out, w, *, shape, stride, padding, dilation, groups):
    """Transposed convolution: what ``convolution`` maps back to an input with axes ``shape``."""
    dtype = floating(f"conv_transpose{w.ndim - 2}d", out, w)
    x = (out.shape[0], w.shape[1] * groups, *shape)
    geometry = plan(x, w.shape, dtype, stride, padding, dilation, groups)
    _same_output(out, geometry.y)
    return geometry.input_gradient(out, w)


@primitive(
    internal=True, method=False, samples=_samples(0, 2, 1, False), bilinear=True, smooth=True
)
def convolution_weight(x, out, *, shape, stride, padding, dilation, groups):
    """Correlation of inputs with outputs, at the places of a kernel with axes ``shape``."""
    dtype = floating("convolution_weight", x, out)
    w = (out.shape[1], x.shape[1] // groups, *shape)
    geometry = plan(x.shape, w, dtype, stride, padding, dilation, groups)
    _same_output(out, geometry.y)
    return geometry.weight_gradient(x, out)


@convolution_input.shape
def _input_result(out, w, *, shape, groups, **geometry):
    dtype = floating(f"conv_transpose{w.ndim - 2}d", out, w)
    x = (out.shape[0], w.shape[1] * groups, *shape)
    _same_output(out, output_shape(x, w.shape, groups=groups, **geometry))
    return Meta(x, dtype)


@convolution_weight.shape
def _weight_result(x, out, *, shape, groups, **geometry):
    dtype = floating("convolution_weight", x, out)
    w = (out.shape[1], x.shape[1] // groups, *shape)
    _same_output(out, output_shape(x.shape, w, groups=groups, **geometry))
    return Meta(w, dtype)


def _same_output(out: Any, shape: tuple[int, ...]) -> None:
    if out.ndim != len(shape) or out.shape != shape:
        raise NumgradValueError(
            f"convolution: an output of shape {out.shape} does not belong to input and weight, "
            f"whose output has shape {shape}"
        )


# ---------------------------------------------------------------------------------- gradients


convolution.vjp(
    x=lambda g, w, meta_x, stride, padding, dilation, groups: convolution_input(
        g, conjugated(w), shape=meta_x.shape[2:], stride=stride, padding=padding, dilation=dilation,
        groups=groups,
    ),
    w=lambda g, x, meta_w, stride, padding, dilation, groups: convolution_weight(
        conjugated(x), g, shape=meta_w.shape[2:], stride=stride, padding=padding, dilation=dilation,
        groups=groups,
    ),
    b=lambda g: sum(g, axis=(0, *range(2, g.ndim))),
)  # fmt: skip


convolution_input.vjp(
    out=lambda g, w, stride, padding, dilation, groups: convolution(
        g, conjugated(w), None, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda g, out, meta_w, stride, padding, dilation, groups: convolution_weight(
        g, conjugated(out), shape=meta_w.shape[2:], stride=stride, padding=padding,
        dilation=dilation, groups=groups,
    ),
)  # fmt: skip


convolution_weight.vjp(
    x=lambda g, out, meta_x, stride, padding, dilation, groups: convolution_input(
        conjugated(out), g, shape=meta_x.shape[2:], stride=stride, padding=padding,
        dilation=dilation, groups=groups,
    ),
    out=lambda g, x, stride, padding, dilation, groups: convolution(
        conjugated(x), g, None, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)  # fmt: skip


@convolution.vjp_kernel
def _convolution_backward(call, mask, g, x=None, w=None):
    gx = gw = None
    if mask & 3:
        metas, p = call.metas, call.params
        geometry = plan(
            metas[0].shape, metas[1].shape, call.results[0].dtype, p["stride"], p["padding"],
            p["dilation"], p["groups"],
        )  # fmt: skip
        gx = geometry.input_gradient(g, conjugated(w)) if mask & 1 else None
        gw = geometry.weight_gradient(conjugated(x), g) if mask & 2 else None
    gb = np.asarray(sum(g, axis=(0, *range(2, g.ndim)))) if mask & 4 else None
    return [gx, gw, gb]


def _tangent(t_x, t_w, t_b, x, w, **geometry):
    return convolution(t_x, w, t_b, **geometry) + convolution(x, t_w, None, **geometry)


convolution.jvp(
    lambda t_x, t_w, t_b, x, w, stride, padding, dilation, groups: _tangent(
        t_x, t_w, t_b, x, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
)


@convolution.batch
@convolution_input.batch
@convolution_weight.batch
def _convolution(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
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


def _side_by_side(x: BatchOperand, size: int) -> Any:
    """The channels of all examples along axis 1, after the samples."""
    samples, channels, *rest = x.shape
    moved = apply("moveaxis", x.repeated(size), source=0, destination=1)
    return apply("reshape", moved, shape=(samples, size * channels, *rest))


def _one_after_another(x: BatchOperand, size: int) -> Any:
    """The outputs of all examples along axis 0."""
    outputs, *rest = x.shape
    return apply("reshape", x.repeated(size), shape=(size * outputs, *rest))
