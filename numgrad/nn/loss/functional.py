"""Losses with PyTorch's names and arguments.

Note [Reductions of losses]
---------------------------
``reduction`` says what becomes of the losses of single elements: ``"none"`` leaves them, ``"mean"``
and ``"sum"`` add them up. A loss is at most two recorded operations, one of the elements and one of
their sum, where there are no weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradValueError, warn
from numgrad.nn.loss import cross_entropy as of_classes
from numgrad.nn.loss import operation as ops
from numgrad.operations.reduce import log_softmax, mean
from numgrad.operations.shape import astype, broadcast_to, reshape
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def check_reduction(name: str, reduction: str, allowed: Sequence[str] = REDUCTIONS) -> None:
    """Raise unless ``reduction`` is one of the words allowed."""
    if reduction not in allowed:
        words = ", ".join(map(repr, allowed))
        raise NumgradValueError(f"{name}: reduction must be one of {words}, got {reduction!r}")


def reduced(losses: Tensor, reduction: str, weight: Any = None) -> Tensor:
    """Losses added up; with weights, their mean is divided by the sum of the weights."""
    if weight is None:
        return mean(losses) if reduction == "mean" else _added(losses, reduction)
    losses = losses * weight
    if reduction != "mean":
        return _added(losses, reduction)
    return losses.sum() / broadcast_to(asarray(weight), losses.shape).sum()


def _added(losses: Tensor, reduction: str) -> Tensor:
    return losses if reduction == "none" else losses.sum()


def _shape(x: Any) -> tuple[int, ...]:
    return x.shape if type(x) is Tensor else np.shape(x)  # np.shape takes five times as long


def _warn_of_broadcast(name: str, input: Any, target: Any) -> None:
    if _shape(input) != _shape(target):
        warn(
            f"{name}: input of shape {tuple(np.shape(input))} and target of shape "
            f"{tuple(np.shape(target))} are broadcast against each other, which is seldom meant; "
            "give both the same shape",
            UserWarning,
        )


def _require_equal_shapes(name: str, input: Any, target: Any) -> None:
    if _shape(input) != _shape(target):
        raise NumgradValueError(
            f"{name}: input of shape {tuple(np.shape(input))} and target of shape "
            f"{tuple(np.shape(target))} must have the same shape; reshape one of them"
        )


# --------------------------------------------------------------------------------- distances


def mse_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor:
    """Squares of the differences.

    Parameters
    ----------
    input, target
        Real arrays of the same shape; others broadcast, with a warning.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    weight
        Factors of the losses; a mean is divided by their sum.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.mse_loss(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    2.0
    """
    check_reduction("mse_loss", reduction)
    _warn_of_broadcast("mse_loss", input, target)
    return reduced(ops.squared_error(input, target), reduction, weight)


def l1_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor:
    """Magnitudes of the differences, whose gradient at 0 is 0; arguments as for ``mse_loss``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.l1_loss(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    1.0
    """
    check_reduction("l1_loss", reduction)
    _warn_of_broadcast("l1_loss", input, target)
    return reduced(ops.absolute_error(input, target), reduction, weight)


def smooth_l1_loss(
    input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """``d**2 / (2 * beta)`` of differences ``d`` below ``beta``, else ``abs(d) - beta / 2``.

    Raises
    ------
    NumgradValueError
        If ``beta`` is negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.smooth_l1_loss(ng.tensor([0.5, 4.0]), ng.zeros(2), reduction="none")
    tensor([0.125, 3.5  ])
    """
    check_reduction("smooth_l1_loss", reduction)
    if beta < 0:
        raise NumgradValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    _warn_of_broadcast("smooth_l1_loss", input, target)
    return reduced(ops.smooth_absolute_error(input, target, float(beta)), reduction)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """``d**2 / 2`` of differences ``d`` up to ``delta``, else ``delta * (abs(d) - delta / 2)``.

    Arguments as for ``mse_loss``, but a mean is not divided by the weights, as in PyTorch.

    Raises
    ------
    NumgradValueError
        If ``delta`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.huber_loss(ng.tensor([0.5, 4.0]), ng.zeros(2), reduction="none", delta=2.0)
    tensor([0.125, 6.   ])
    """
    check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise NumgradValueError(f"huber_loss: delta must be positive, got {delta}")
    _warn_of_broadcast("huber_loss", input, target)
    return _weighted(ops.huber_error(input, target, float(delta)), weight, reduction)


# ----------------------------------------------------------------------------------- classes


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
    return of_classes.cross_entropy(
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
    axis = of_classes.class_axis(input.ndim)
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
    return of_classes.nll_loss(
        asarray(input),
        _class_indices(asarray(target)),
        _class_weight("nll_loss", weight),
        ignore_index=ignore_index,
        reduction=reduction,
    )


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of probabilities for targets between 0 and 1.

    Logarithms are not taken as smaller than -100, so that the loss is finite.

    Parameters
    ----------
    input, target
        Probabilities of the same shape.
    weight
        Factors of the losses, which broadcast; a mean is not divided by them.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If an input is no probability, or shapes differ.

    Examples
    --------
    >>> import numgrad as ng
    >>> p = ng.tensor([0.5, 0.0])
    >>> ng.nn.functional.binary_cross_entropy(p, ng.ones(2), reduction="none")
    tensor([  0.69314718, 100.        ])
    """
    check_reduction("binary_cross_entropy", reduction)
    _require_equal_shapes("binary_cross_entropy", input, target)
    ops.require_between(
        input,
        low=0.0,
        high=1.0,
        problem="binary_cross_entropy: the input must hold probabilities; apply sigmoid first, or "
        "use binary_cross_entropy_with_logits",
    )
    return _weighted(ops.bernoulli_error(input, target), weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(input)``, accurate for large logits.

    Parameters
    ----------
    input, target
        Logits, and targets between 0 and 1, of the same shape.
    weight
        Factors of the losses, which broadcast; a mean is not divided by them.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    pos_weight
        How much the target 1 counts, in a shape that broadcasts.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([0.0, -1000.0])
    >>> ng.nn.functional.binary_cross_entropy_with_logits(x, ng.ones(2), reduction="none")
    tensor([6.93147181e-01, 1.00000000e+03])
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction)
    _require_equal_shapes(name, input, target)
    if pos_weight is None:
        losses = ops.bernoulli_logit_error(input, target)
    else:
        losses = ops.weighted_bernoulli_logit_error(input, target, pos_weight)
    return _weighted(losses, weight, reduction)


def _weighted(losses: Tensor, weight: Any, reduction: str) -> Tensor:
    return reduced(losses if weight is None else losses * weight, reduction)
