"""Losses of single elements become one number: what all losses share.

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

from numgrad.errors import NumgradValueError, warn
from numgrad.nn.applied import Applied, applies
from numgrad.operations.error_gamma_logistic import real_elementwise
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
