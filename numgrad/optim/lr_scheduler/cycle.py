"""Cyclical learning rates [1]_.

.. [1] Smith: Cyclical Learning Rates for Training Neural Networks, 2017,
   https://arxiv.org/abs/1506.01186
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from numgrad.core.options import Option
from numgrad.errors import NumgradValueError
from numgrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    for_each_group,
    set_value,
)
from numgrad.optim.lr_scheduler.function import saved_function
from numgrad.optim.lr_scheduler.momentum import MomentumRange, set_momentum
from numgrad.optim.optimizer import Optimizer


class CyclicLR(LRScheduler):
    """Let the learning rate rise and fall between two bounds along straight lines.

    A cycle rises from ``base_lr`` to ``max_lr`` in ``step_size_up`` steps and falls back in
    ``step_size_down``. Meant to be stepped after each batch. Momentum, with ``cycle_momentum``,
    moves the other way, from ``max_momentum`` to ``base_momentum`` and back.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``; an optimizer that begins starts from ``base_lr``.
    base_lr, max_lr
        The bounds, or lists with one for each group.
    step_size_up, step_size_down
        Steps of the rising and the falling part; the second is by default as long as the first.
    mode
        How the height changes: ``"triangular"``, it does not; ``"triangular2"``, it is halved with
        each cycle; ``"exp_range"``, it is ``gamma ** step``.
    gamma
        For ``"exp_range"``.
    scale_fn, scale_mode
        A function to use in place of ``mode``, of the number of the cycle, from 1 (``"cycle"``),
        or of the step (``"iterations"``).
    cycle_momentum
        Whether to move ``momentum``, or the first of ``betas``, as well.
    base_momentum, max_momentum
        Its bounds, or lists with one for each group.

    Raises
    ------
    NumgradTypeError
        If ``optimizer`` is none.
    NumgradValueError
        If a list has the wrong length, ``mode`` is unknown, or there is no momentum to cycle.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.CyclicLR(
    ...     optimizer, base_lr=1.0, max_lr=3.0, step_size_up=2, cycle_momentum=False
    ... )
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 2.0, 3.0, 2.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("CyclicLR", optimizer)
        lowest = for_each_group("CyclicLR", "base_lr", optimizer, base_lr)
        self.max_lrs = for_each_group("CyclicLR", "max_lr", optimizer, max_lr)
        Option(name="step_size_up", above=0).check("CyclicLR", step_size_up)
        Option(name="step_size_down", annotation="float | None", at_least=0).check(
            "CyclicLR", step_size_down
        )
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise NumgradValueError(
                f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got {mode!r}; "
                "for another shape pass scale_fn"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        momentum = None
        if cycle_momentum:
            momentum = MomentumRange("CyclicLR", optimizer, base_momentum, max_momentum)
            self.use_beta1 = momentum.in_betas
            self.base_momentums, self.max_momentums = momentum.base, momentum.highest
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, lowest, strict=True):
                set_value(group, "lr", lr)
            if momentum:
                momentum.begin()
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, of 1 for a full one; ``x`` is its number, or the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def _next_lr(self) -> list[Any]:
        """The rates; momentum, which has no place in the result, is written here."""
        turns = self.last_epoch / self.total_size
        cycle = math.floor(1 + turns)
        x = 1.0 + turns - cycle
        rising = x <= self.step_ratio
        height = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        bounds = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in bounds]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the code of ``scale_fn``."""
        return super().state_dict() | {"_scale_fn_custom": saved_function(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken, with the ``scale_fn`` this schedule has."""
        self._check_state(state_dict)
        attributes = state_dict["_scale_fn_custom"]
        if attributes is not None and self._scale_fn_custom is not None:
            vars(self._scale_fn_custom).update(attributes)
        super().load_state_dict({**state_dict, "_scale_fn_custom": self._scale_fn_custom})
