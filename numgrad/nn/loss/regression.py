"""Losses of differences (squares, magnitudes and between), and how any losses become one number.

Note [Reductions of losses]
---------------------------
``reduction`` says what becomes of the losses of single elements: ``"none"`` leaves them, ``"mean"``
and ``"sum"`` add them up. A loss is at most two recorded operations, one of the elements and one of
their sum, where there are no weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.core.declare import elementwise
from numgrad.core.options import option
from numgrad.errors import NumgradValueError, warn
from numgrad.nn.applied import Applied, applies
from numgrad.operations.error_gamma_logistic import real_elementwise, scipy_special
from numgrad.operations.reduce import mean
from numgrad.operations.shape import broadcast_to
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor

_loss = partial(real_elementwise, method=False, internal=True)


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


def _weighted(losses: Tensor, weight: Any, reduction: str) -> Tensor:
    return reduced(losses if weight is None else losses * weight, reduction)


def _shape(x: Any) -> tuple[int, ...]:
    return x.shape if type(x) is Tensor else np.shape(x)  # np.shape takes five times as long


def _warn_of_broadcast(name: str, input: Any, target: Any) -> None:
    if _shape(input) != _shape(target):
        warn(
            f"{name}: input of shape {tuple(np.shape(input))} and target of shape "
            f"{tuple(np.shape(target))} are broadcast against each other, which is seldom meant. "
            "Please ensure they have the same size.",
            UserWarning,
        )


def _require_equal_shapes(name: str, input: Any, target: Any) -> None:
    if _shape(input) != _shape(target):
        raise NumgradValueError(
            f"{name}: input of shape {tuple(np.shape(input))} and target of shape "
            f"{tuple(np.shape(target))} must have the same shape; reshape one of them"
        )


class BaseLoss(Applied):
    """Base of modules of losses; weights are buffers."""

    reductions = REDUCTIONS
    shown = ()

    def _set_up(self, options: dict[str, Any]) -> None:
        weights = {name: options.pop(name) for name in ("weight", "pos_weight") if name in options}
        super()._set_up(options)
        for name, weight in weights.items():
            self.register_buffer(name, None if weight is None else asarray(weight))

    def _check_options(self, options: dict[str, Any]) -> None:
        check_reduction(type(self).__name__, options["reduction"], self.reductions)


@applies()
class Loss(BaseLoss):
    """Base of those whose reduction is given by keyword."""

    _: KW_ONLY
    reduction: str = "mean"


@_loss(ref=lambda x, t: np.square(x - t), smooth=True)
def squared_error(x, target):
    """Square of the difference."""
    return np.square(x - target)


squared_error.vjp(
    x=lambda g, x, target: g * (2 * (x - target)),
    target=lambda g, x, target: g * (2 * (target - x)),
)


def _magnitude_types(operands):
    loop, dtype = resolve(np.true_divide, operands)  # floating or complex
    return loop, resolve(np.absolute, [dtype])[1]


@elementwise(
    types=_magnitude_types,
    method=False,
    internal=True,
    special=(0.0,),
    ref=lambda x, t: np.abs(x - 1.0 * t),
)
def absolute_error(x, target):
    """Magnitude of the difference, of complex operands too."""
    return np.abs(x - target)


absolute_error.vjp(
    x=lambda g, x, target: g * np.sign(x - target),
    target=lambda g, x, target: g * np.sign(target - x),
)


absolute_error.kink(x=([2.0, 3.0], [0, 1]), target=([2.0, 2.0], [0, -1]))


@_loss(
    domain=(0.3, 3.0),
    ref=lambda x, t, beta: np.where(
        np.abs(x - t) < beta, np.square(x - t) / 2 / beta, np.abs(x - t) - beta / 2
    ),
)
def smooth_absolute_error(x, target, beta):
    """Half the square of the difference over ``beta`` where it is smaller, else linear."""
    d = np.abs(x - target)
    return np.where(d < beta, 0.5 * (d * d) / _divisor(beta), d - 0.5 * beta)


smooth_absolute_error.vjp(
    x=lambda g, x, target, beta: g * _smooth_slope(x, target, beta),
    target=lambda g, x, target, beta: g * _smooth_slope(target, x, beta),
)


smooth_absolute_error.kink(
    x=([1.0, 0.0, -1.0], [1, 0, -1]), target=([0.0, 0.0, 0.0], [-1, 0, 1]), beta=(1.0, None)
)


smooth_absolute_error.kink(x=([1.0, 0.0], [1, 0]), target=([0.0, 0.0], [-1, 0]), beta=(0.0, None))


def _divisor(beta):
    return np.where(beta == 0, 1, beta)  # the branch that is not taken must not be infinite


def _smooth_slope(x, target, beta):
    d = x - target
    return np.where(np.abs(d) < beta, d / _divisor(beta), np.sign(d))


@_loss(domain=(0.3, 3.0), ref=lambda x, t, delta: scipy_special("huber")(delta, x - t))
def huber_error(x, target, delta):
    """Half the square of the difference up to ``delta``, linear with that slope above."""
    d = np.abs(x - target)
    return np.where(d <= delta, 0.5 * (d * d), delta * (d - 0.5 * delta))


huber_error.vjp(
    x=lambda g, x, target, delta: g * _huber_slope(x, target, delta),
    target=lambda g, x, target, delta: g * _huber_slope(target, x, delta),
)


huber_error.kink(
    x=([2.0, 0.0, -5.0], [2, 0, -2]), target=([0.0, 0.0, 0.0], [-2, 0, 2]), delta=(2.0, None)
)


def _huber_slope(x, target, delta):
    d = x - target
    return np.where(np.abs(d) <= delta, d, delta * np.sign(d))


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
    return reduced(squared_error(input, target), reduction, weight)


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
    return reduced(absolute_error(input, target), reduction, weight)


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
    return reduced(smooth_absolute_error(input, target, float(beta)), reduction)


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
    return _weighted(huber_error(input, target, float(delta)), weight, reduction)


@applies(mse_loss)
class MSELoss(Loss):
    """Squares of the differences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MSELoss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    2.0
    """


@applies(l1_loss, like=mse_loss)
class L1Loss(Loss):
    """Magnitudes of the differences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.L1Loss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    1.0
    """


@applies(smooth_l1_loss)
class SmoothL1Loss(Loss):
    """Magnitudes of the differences, squares below ``beta``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SmoothL1Loss()(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    1.8125
    """

    _: KW_ONLY
    beta: float = option(default=1.0, at_least=0, doc="Where squares end.")


@applies(huber_loss)
class HuberLoss(BaseLoss):
    """Half the squares of the differences up to ``delta``, linear above.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.HuberLoss(delta=2.0)(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    3.0625
    """

    reduction: str = "mean"
    delta: float = option(default=1.0, above=0, doc="Where squares end.")
