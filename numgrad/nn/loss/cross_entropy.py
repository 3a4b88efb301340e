"""Losses of a class for each row: cross entropy of logits, negative log-likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.core.options import option
from numgrad.errors import (
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.kernels.cross_entropy import (
    cross_entropy_backward_kernel,
    cross_entropy_kernel,
    likelihood_backward_kernel,
    likelihood_kernel,
)
from numgrad.nn.applied import applies
from numgrad.nn.linear import linear
from numgrad.nn.loss.regression import Loss, check_reduction, reduced
from numgrad.operations.reduce import log_softmax, softmax, sum
from numgrad.operations.shape import astype, expand_dims, reshape
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor

REDUCTION_CODES = {"none": 0, "sum": 1, "mean": 2}
"""Codes, for kernels, of how the losses of single elements are put together."""


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


@primitive(internal=True, method=False, lowering="numgrad.nn.lowerings")
def class_distribution(target, weight, *, shape, dtype, ignore_index, label_smoothing):
    """Weighted probabilities of the classes that class indices stand for, zeros where ignored."""
    axis = class_axis(len(shape))
    classes = shape[axis]
    valid = np.expand_dims(target != ignore_index, axis)
    column = (classes, *(1,) * (len(shape) - axis - 1))
    weights = np.ones(classes) if weight is None else weight
    one_hot = np.expand_dims(target, axis) == np.arange(classes).reshape(column)
    q = (one_hot * (1 - label_smoothing) + label_smoothing / max(classes, 1)) * valid
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
    name="cross_entropy",
    internal=True,
    method=False,
    auxiliaries=("rows", "result"),
    real_only=True,
    lowering="numgrad.nn.lowerings",
)
def _cross_entropy(x, target, weight=None, *, ignore_index, reduction, label_smoothing):
    """Negative logarithm of the ``softmax`` of logits at class indices."""
    name = "cross_entropy"
    flat, indices, weight = _operands(name, x, target, weight)
    sizes = _sizes(x.shape)
    rows = np.empty((2, target.size), x.dtype)  # maximum and sum of exponentials
    losses, result, out = _results(x.dtype, target.shape, reduction)
    bad = _launch(
        cross_entropy_kernel, x.dtype, sizes, flat, indices, weight, losses.ravel(), rows[0],
        rows[1], result, *sizes, ignore_index, label_smoothing, REDUCTION_CODES[reduction],
    )  # fmt: skip
    if bad >= 0:
        _raise_for(name, bad, x, indices, ignore_index)
    return out, (rows, result)


@_cross_entropy.shape
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


_cross_entropy.vjp(x=_cross_entropy_vjp)


@_cross_entropy.vjp_kernel
def _cross_entropy_backward(call, mask, g, x, target, weight, rows, result):
    params = call.params
    flat, target, weight = _operands("cross_entropy", x, target, weight)
    sizes = _sizes(x.shape)
    out = np.empty(x.shape, x.dtype)
    if out.size:
        _launch(
            cross_entropy_backward_kernel, x.dtype, sizes, flat, target, weight,
            np.ascontiguousarray(g).ravel(), rows[0], rows[1], result, out.ravel(), *sizes,
            params["ignore_index"], params["label_smoothing"], REDUCTION_CODES[params["reduction"]],
        )  # fmt: skip
    return [out, None, None]


_cross_entropy.kink(
    x=([[800.0, -800.0, -np.inf]], [[1, -1, 0]]),
    target=([1], None),
    params={"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0},
)


_cross_entropy.kink(
    x=([[np.inf, 0.0]], [[np.nan, np.nan]]),
    target=([1], None),
    params={"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0},
)


@primitive(
    name="nll_loss",
    internal=True,
    method=False,
    auxiliaries=("result",),
    real_only=True,
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def _nll_loss(x, target, weight=None, *, ignore_index, reduction):
    """Negative of logarithms of probabilities at class indices."""
    flat, indices, weight = _operands("nll_loss", x, target, weight)
    losses, result, out = _results(x.dtype, target.shape, reduction)
    bad = likelihood_kernel(x.dtype)(
        flat, indices, weight, losses.ravel(), result, *_sizes(x.shape), ignore_index,
        REDUCTION_CODES[reduction],
    )  # fmt: skip
    if bad >= 0:
        _raise_for("nll_loss", bad, x, indices, ignore_index)
    return out, (result,)


@_nll_loss.shape
def _nll_loss_result(x, target, weight, *, ignore_index, reduction):
    return _losses_result("nll_loss", x, target, weight, reduction), (Meta((2,), x.dtype),)


def _nll_loss_vjp(g, target, weight, meta_x, result, ignore_index, reduction):
    q = class_distribution(
        target, weight, shape=meta_x.shape, dtype=meta_x.dtype, ignore_index=ignore_index,
        label_smoothing=0.0,
    )  # fmt: skip
    return _of_rows(-q, g, target, result, len(meta_x.shape), ignore_index, reduction)


_nll_loss.vjp(x=_nll_loss_vjp)


@_nll_loss.vjp_kernel
def _nll_loss_backward(call, mask, g, target, weight, result):
    (shape, dtype), params = (call.metas[0].shape, call.metas[0].dtype), call.params
    out = np.zeros(shape, dtype)
    _, target, weight = _operands("nll_loss", out, target, weight)
    likelihood_backward_kernel(dtype)(
        target, weight, np.ascontiguousarray(g).ravel(), result, out.ravel(), *_sizes(shape),
        params["ignore_index"], REDUCTION_CODES[params["reduction"]],
    )  # fmt: skip
    return [out, None, None]


@_cross_entropy.batch
@_nll_loss.batch
def _losses_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Rows of all examples as those of one batch, whose losses are reduced by example."""
    x, target, *rest = operands
    weight = rest[0] if rest else BatchOperand(None, False)
    if weight.batched:
        return NotImplemented
    example, indexed = (Meta(o.shape, o.value.dtype) for o in (x, target))
    _check_operands(op.name, example, indexed, weight.value)
    lead = (size,) if x.ndim == 1 else (size * x.shape[0],)
    logits = apply("reshape", x.repeated(size), shape=(*lead, *x.shape[class_axis(x.ndim) :]))
    indices = apply("reshape", target.repeated(size), shape=(*lead, *target.shape[1:]))
    each = bind(op, (logits, indices, weight.value), {**params, "reduction": "none"})
    if params["reduction"] == "none":
        return apply("reshape", each, shape=(size, *target.shape))
    total = _by_example(each, size)
    if params["reduction"] == "sum":
        return total
    counted = apply("not_equal", indices, params["ignore_index"])
    factors = apply("astype", counted, dtype=x.value.dtype)
    if weight.value is not None:
        classes = apply("where", counted, indices, 0)
        factors = apply("multiply", factors, apply("take", weight.value, classes, axis=0))
    return apply("divide", total, _by_example(factors, size))


def _by_example(values: Any, size: int) -> Any:
    if values.shape == (size,):  # a row for each example
        return values
    return apply("sum", apply("reshape", values, shape=(size, -1)), axis=1)


@class_distribution.batch
def _distributions_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    target, *rest = operands
    if any(o.batched for o in rest):
        return NotImplemented
    first, *others = params["shape"] if len(params["shape"]) > 1 else (1, *params["shape"])
    whole = (size * first, *others)
    indices = apply("reshape", target.value, shape=(whole[0], *whole[2:]))
    out = bind(op, (indices, *[o.value for o in rest]), {**params, "shape": whole})
    return apply("reshape", out, shape=(size, *params["shape"]))


def _class_weight(name: str, weight: Any) -> Any:
    if isinstance(weight, Tensor) and weight.requires_grad:
        raise NumgradRuntimeError(
            f"{name}: there is no gradient for the weights of the classes; detach() them"
        )
    return weight


def _class_indices(target: Any) -> Any:
    """Indices as int64, so that they can be compared with any number."""
    if target.dtype.kind in "iu" and target.dtype != np.int64:
        return astype(target, dtype=np.int64)
    return target


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative logarithm of the ``softmax`` of logits at the classes of a target.

    Parameters
    ----------
    input
        Logits of shape ``(classes,)``, ``(batch, classes)`` or ``(batch, classes, ...)``.
    target
        Class indices in the shape of the input without its class axis; or probabilities in the
        shape of the input, which may require grad.
    weight
        One factor for each class.
    ignore_index
        Rows with this index count for nothing; of class indices only.
    reduction
        ``"mean"`` divides by the weight of the classes indexed, with probabilities by the number of
        rows. If nothing is left to divide by, it is NaN.
    label_smoothing
        Share of each target, from 0 to 1, that is spread evenly over the classes.

    Raises
    ------
    NumgradIndexError
        If an index is no class.
    NumgradValueError
        If shapes do not fit, or an option is out of its range.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> logits = ng.tensor([[0.0, 0.0], [2.0, 0.0]], requires_grad=True)
    >>> loss = ng.nn.functional.cross_entropy(logits, np.array([0, 1]), reduction="sum")
    >>> loss.backward()
    >>> logits.grad
    tensor([[-0.5       ,  0.5       ],
            [ 0.88079708, -0.88079708]])
    """
    check_reduction("cross_entropy", reduction)
    if not 0 <= label_smoothing <= 1:
        raise NumgradValueError(
            f"cross_entropy: label_smoothing is a share from 0 to 1, got {label_smoothing}"
        )
    input, target = asarray(input), asarray(target)
    weight = _class_weight("cross_entropy", weight)
    if target.dtype.kind == "f" and target.shape == input.shape:
        if ignore_index >= 0:
            raise NumgradValueError(
                "cross_entropy: ignore_index is an index of a class, and the target holds "
                "probabilities; give those rows the weight 0 by yourself"
            )
        return _of_probabilities(input, target, weight, reduction, label_smoothing)
    return _cross_entropy(
        input,
        _class_indices(target),
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=float(label_smoothing),
    )


def _of_probabilities(
    input: Tensor, target: Tensor, weight: Any, reduction: str, label_smoothing: float
) -> Tensor:
    axis = class_axis(input.ndim)
    if label_smoothing:
        even = label_smoothing / max(input.shape[axis], 1)
        target = target * (1 - label_smoothing) + even
    if weight is not None:
        weight = asarray(weight)
        if weight.shape != input.shape[axis : axis + 1]:
            raise NumgradValueError(
                f"cross_entropy: the weight has shape {weight.shape} and needs one number for each "
                f"class, shape {input.shape[axis : axis + 1]}"
            )
        target = target * reshape(weight, (*weight.shape, *(1,) * (input.ndim - axis - 1)))
    return reduced(-(log_softmax(input, axis=axis) * target).sum(axis=axis), reduction)


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Negative of logarithms of probabilities at class indices; arguments as ``cross_entropy``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_probabilities = ng.tensor([[-1.0, -2.0], [-3.0, -4.0]])
    >>> ng.nn.functional.nll_loss(log_probabilities, np.array([0, 1])).item()
    2.5
    """
    check_reduction("nll_loss", reduction)
    return _nll_loss(
        asarray(input),
        _class_indices(asarray(target)),
        _class_weight("nll_loss", weight),
        ignore_index=ignore_index,
        reduction=reduction,
    )


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:  # fmt: skip
    """The ``cross_entropy`` of the scores that a linear layer gives.

    Parameters
    ----------
    input
        Features of shape ``(..., features)``.
    linear_weight, linear_bias
        Of the layer, of shapes ``(classes, ..., features)`` and ``(classes, ...)``.
    target, weight, reduction, label_smoothing
        As for ``cross_entropy``; ``ignore_index`` too, with None for its default.
    options
        Accepted for PyTorch's sake, where it says how to compute the same.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x, w = ng.ones((2, 3)), ng.zeros((4, 3))
    >>> ng.nn.functional.linear_cross_entropy(x, w, np.array([0, 1])).item()
    1.3862943611198906
    """
    input, linear_weight = asarray(input), asarray(linear_weight)
    *outputs, features = linear_weight.shape
    bias = None if linear_bias is None else reshape(asarray(linear_bias), (-1,))
    scores = linear(input, reshape(linear_weight, (-1, features)), bias)
    return cross_entropy(
        reshape(scores, (*input.shape[:-1], *outputs)), target, weight, reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip


@applies(cross_entropy)
class CrossEntropyLoss(Loss):
    """Negative logarithm of the ``softmax`` of logits at the classes of a target.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.CrossEntropyLoss()(ng.zeros((1, 4)), np.array([2])).item()
    1.3862943611198906
    """

    weight: Any = None
    _: KW_ONLY
    ignore_index: int = -100
    label_smoothing: float = option(default=0.0, at_least=0, at_most=1)


@applies(nll_loss, like=cross_entropy)
class NLLLoss(Loss):
    """Negative of logarithms of probabilities at class indices.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.NLLLoss()(ng.tensor([[-1.0, -2.0]]), np.array([1])).item()
    2.0
    """

    weight: Any = None
    _: KW_ONLY
    ignore_index: int = -100
