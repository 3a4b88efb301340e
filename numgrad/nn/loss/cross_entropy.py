"""Losses of a class index for each row: cross entropy of logits, negative log-likelihood."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.kernels.cross_entropy import (
    cross_entropy_backward_kernel,
    cross_entropy_kernel,
)
from numgrad.kernels.likelihood import likelihood_backward_kernel, likelihood_kernel
from numgrad.operations.reduce import softmax, sum
from numgrad.operations.shape import expand_dims

# What losses of classes are tried with.
_CLASSES = np.array([[2, 0], [-1, 1]])
_CLASS_WEIGHT = np.array([0.5, 2.0, 1.0])

REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
"""What becomes of the losses of single elements."""

_ELEMENT_NS = {np.dtype(np.float32): 0.5, np.dtype(np.float64): 1.0}  # an exponential, mostly
_NO_WEIGHT = {dtype: np.empty(0, dtype) for dtype in _ELEMENT_NS}


def _sizes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Rows, classes and positions behind the class axis, which is the second or the only one."""
    if len(shape) == 1:
        return 1, shape[0], 1
    return shape[0], shape[1], prod(shape[2:])


def class_axis(ndim: int) -> int:
    """The axis along which the classes lie."""
    return 0 if ndim == 1 else 1


def _operands(
    name: str, x: np.ndarray, target: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raveled operands of a kernel, once shapes and dtypes are found to fit."""
    _check_operands(name, x, target, weight)
    if weight is None:
        weight = _NO_WEIGHT[x.dtype]
    else:
        weight = np.ascontiguousarray(weight, x.dtype)
    target = np.ascontiguousarray(target, np.int64).ravel()
    return np.ascontiguousarray(x).ravel(), target, weight


def _check_operands(name: str, x: Any, target: Any, weight: Any) -> None:
    if x.dtype not in _ELEMENT_NS:
        raise NumgradTypeError(
            f"{name}: the input must be float32 or float64, got {x.dtype}; convert with astype"
        )
    if target.dtype.kind not in "iu":
        raise NumgradTypeError(
            f"{name}: the target of shape {target.shape} has dtype {target.dtype}; class indices "
            "are integers (convert with astype), and class probabilities, which cross_entropy "
            f"takes too, have the shape of the input, {x.shape}"
        )
    expected = x.shape[:1] + x.shape[2:] if x.ndim != 1 else ()
    if not x.ndim or target.ndim != len(expected) or target.shape != expected:
        shape = f"{expected} for this input" if x.ndim else "an input with a class axis"
        raise NumgradValueError(
            f"{name}: input of shape {x.shape} and target of shape {target.shape} do not fit; the "
            f"classes lie along axis 1 (axis 0 without a batch), so the target needs {shape}"
        )
    if weight is not None:
        classes = x.shape[class_axis(x.ndim)]
        if weight.ndim != 1 or weight.shape != (classes,):
            raise NumgradValueError(
                f"{name}: the weight has shape {weight.shape} and needs one number for each class, "
                f"shape ({classes},)"
            )


def _losses_result(name: str, x: Any, target: Any, weight: Any, reduction: str) -> Meta:
    _check_operands(name, x, target, weight)
    return Meta(target.shape if reduction == "none" else (), x.dtype)


def _raise_for(name: str, bad: int, x: np.ndarray, target: np.ndarray, ignore_index: int) -> None:
    classes = x.shape[class_axis(x.ndim)]
    raise NumgradIndexError(
        f"{name}: target {target[bad]} at position {bad} is no class; input of shape {x.shape} has "
        f"{classes} classes, 0 to {classes - 1}, and {ignore_index} is what is ignored"
    )


def _launch(kernel: Any, dtype: np.dtype, sizes: tuple[int, int, int], *arguments: Any) -> Any:
    columns = sizes[2] != 1
    entry = threads.choose(
        partial(kernel, dtype, columns, False),
        partial(kernel, dtype, columns, True),
        prod(sizes) * _ELEMENT_NS[dtype],
    )
    return entry(*arguments)


def _results(dtype: np.dtype, shape: tuple[int, ...], reduction: str) -> tuple:
    """Losses, the reduced loss with its divisor, and which of them is the output."""
    losses, result = np.empty(shape, dtype), np.empty(2, dtype)
    return losses, result, losses if reduction == "none" else result[:1].reshape(())


@primitive(
    internal=True,
    method=False,
    lowering="numgrad.nn.lowerings",
)
def class_distribution(target, weight, *, shape, dtype, ignore_index, label_smoothing):
    """Weighted probabilities of the classes that class indices stand for, zeros where ignored."""
    axis = class_axis(len(shape))
    classes = shape[axis]
    valid = np.expand_dims(target != ignore_index, axis)
    column = (classes, *(1,) * (len(shape) - axis - 1))
    weights = np.ones(classes) if weight is None else weight
    chosen = np.expand_dims(target, axis) == np.arange(classes).reshape(column)
    q = (chosen * (1 - label_smoothing) + label_smoothing / max(classes, 1)) * valid
    return (q * weights.reshape(column)).astype(dtype)


def _of_rows(slope, g, target, result, ndim, ignore_index, reduction):
    """Slopes of single losses times their gradients; zeros in ignored rows."""
    axis = class_axis(ndim)
    if reduction == "none":
        g = expand_dims(g, axis)
    elif reduction == "mean":
        g = g / result[1]
    return np.where(expand_dims(target != ignore_index, axis), slope * g, 0)


@class_distribution.shape
def _distribution_result(target, weight, *, shape, dtype, ignore_index, label_smoothing):
    return Meta(tuple(shape), np.dtype(dtype))


@primitive(
    internal=True,
    method=False,
    auxiliaries=("rows", "result"),
    real=True,
    lowering="numgrad.nn.lowerings",
)
def cross_entropy(x, target, weight=None, *, ignore_index, reduction, label_smoothing):
    """Negative logarithm of the ``softmax`` of logits at class indices."""
    name = "cross_entropy"
    flat, indices, weight = _operands(name, x, target, weight)
    sizes = _sizes(x.shape)
    rows = np.empty((2, target.size), x.dtype)  # maximum and sum of exponentials
    losses, result, out = _results(x.dtype, target.shape, reduction)
    bad = _launch(
        cross_entropy_kernel, x.dtype, sizes, flat, indices, weight, losses.ravel(), rows[0],
        rows[1], result, *sizes, ignore_index, label_smoothing, REDUCTIONS[reduction],
    )  # fmt: skip
    if bad >= 0:
        _raise_for(name, bad, x, indices, ignore_index)
    return out, (rows, result)


@cross_entropy.shape
def _cross_entropy_result(x, target, weight, *, ignore_index, reduction, label_smoothing):
    out = _losses_result("cross_entropy", x, target, weight, reduction)
    return out, (Meta((2, prod(target.shape)), x.dtype), Meta((2,), x.dtype))


def _cross_entropy_vjp(
    g, x, target, weight, meta_x, rows, result, ignore_index, reduction, label_smoothing
):
    del rows  # the kernel's: here the softmax has to depend on the logits
    axis = class_axis(len(meta_x.shape))
    q = class_distribution(
        target, weight, shape=meta_x.shape, dtype=meta_x.dtype, ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    slope = softmax(x, axis=axis) * sum(q, axis=axis, keepdims=True) - q
    return _of_rows(slope, g, target, result, len(meta_x.shape), ignore_index, reduction)


cross_entropy.vjp(x=_cross_entropy_vjp)


@cross_entropy.vjp_kernel
def _cross_entropy_backward(call, mask, g, x, target, weight, rows, result):
    params = call.params
    flat, target, weight = _operands("cross_entropy", x, target, weight)
    sizes = _sizes(x.shape)
    out = np.empty(x.shape, x.dtype)
    if out.size:
        _launch(
            cross_entropy_backward_kernel, x.dtype, sizes, flat, target, weight,
            np.ascontiguousarray(g).ravel(), rows[0], rows[1], result, out.ravel(), *sizes,
            params["ignore_index"], params["label_smoothing"], REDUCTIONS[params["reduction"]],
        )  # fmt: skip
    return [out, None, None]


cross_entropy.calls = [
    (
        ((2, 3),),
        lambda x: cross_entropy(
            x, np.array([2, 0]), ignore_index=-1, reduction="mean", label_smoothing=0.0
        ),
    ),
    (
        ((3,),),
        lambda x: cross_entropy(
            x, np.array(1), _CLASS_WEIGHT, ignore_index=-1, reduction="sum", label_smoothing=0.2
        ),
    ),
    *[
        (
            ((2, 3, 2),),
            lambda x, how=how: cross_entropy(
                x, _CLASSES, _CLASS_WEIGHT, ignore_index=-1, reduction=how, label_smoothing=0.2
            ),
        )
        for how in ("none", "mean")
    ],
    (
        ((0, 3),),
        lambda x: cross_entropy(
            x, np.zeros(0, int), ignore_index=-1, reduction="sum", label_smoothing=0.1
        ),
    ),
    (
        ((2, 3, 0),),
        lambda x: cross_entropy(
            x, np.zeros((2, 0), int), ignore_index=-1, reduction="none", label_smoothing=0.0
        ),
    ),
]
cross_entropy.kink(
    x=([[800.0, -800.0, -np.inf]], [[1, -1, 0]]),
    target=([1], None),
    params={"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0},
)
cross_entropy.kink(
    x=([[np.inf, 0.0]], [[np.nan, np.nan]]),
    target=([1], None),
    params={"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0},
)


@primitive(
    internal=True,
    method=False,
    auxiliaries=("result",),
    real=True,
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def nll_loss(x, target, weight=None, *, ignore_index, reduction):
    """Negative of logarithms of probabilities at class indices."""
    flat, indices, weight = _operands("nll_loss", x, target, weight)
    losses, result, out = _results(x.dtype, target.shape, reduction)
    bad = likelihood_kernel(x.dtype)(
        flat, indices, weight, losses.ravel(), result, *_sizes(x.shape), ignore_index,
        REDUCTIONS[reduction],
    )  # fmt: skip
    if bad >= 0:
        _raise_for("nll_loss", bad, x, indices, ignore_index)
    return out, (result,)


@nll_loss.shape
def _nll_loss_result(x, target, weight, *, ignore_index, reduction):
    return _losses_result("nll_loss", x, target, weight, reduction), (Meta((2,), x.dtype),)


def _nll_loss_vjp(g, target, weight, meta_x, result, ignore_index, reduction):
    q = class_distribution(
        target, weight, shape=meta_x.shape, dtype=meta_x.dtype, ignore_index=ignore_index,
        label_smoothing=0.0,
    )  # fmt: skip
    return _of_rows(-q, g, target, result, len(meta_x.shape), ignore_index, reduction)


nll_loss.vjp(x=_nll_loss_vjp)


@nll_loss.vjp_kernel
def _nll_loss_backward(call, mask, g, target, weight, result):
    (shape, dtype), params = (call.metas[0].shape, call.metas[0].dtype), call.params
    out = np.zeros(shape, dtype)
    _, target, weight = _operands("nll_loss", out, target, weight)
    likelihood_backward_kernel(dtype)(
        target, weight, np.ascontiguousarray(g).ravel(), result, out.ravel(), *_sizes(shape),
        params["ignore_index"], REDUCTIONS[params["reduction"]],
    )  # fmt: skip
    return [out, None, None]


nll_loss.calls = [
    (((2, 3),), lambda x: nll_loss(x, np.array([2, 0]), ignore_index=-1, reduction="sum")),
    *[
        (
            ((2, 3, 2),),
            lambda x, how=how: nll_loss(x, _CLASSES, _CLASS_WEIGHT, ignore_index=-1, reduction=how),
        )
        for how in ("none", "mean")
    ],
    (((0, 3),), lambda x: nll_loss(x, np.zeros(0, int), ignore_index=-1, reduction="sum")),
]
