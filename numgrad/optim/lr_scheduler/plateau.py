"""A schedule that follows a measured quantity instead of the number of steps."""

from __future__ import annotations

import math
from typing import Literal, SupportsFloat

from numgrad.errors import NumgradRuntimeError, NumgradValueError, warn
from numgrad.optim.lr_scheduler.base import (
    EPOCH_IS_DEPRECATED,
    LRScheduler,
    check_optimizer,
    checked,
    copied,
    for_each_group,
    refuse_trace,
    set_value,
    values_of,
)
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor


class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rate by ``factor`` when a metric has stopped to improve.

    Parameters
    ----------
    optimizer
        Whose learning rates are reduced.
    mode
        ``"min"`` if a smaller metric is better, ``"max"`` if a larger one is.
    factor
        The factor, below 1.
    patience
        Steps without improvement that are accepted; the rate is reduced at the next one.
    threshold, threshold_mode
        What counts as an improvement over the best so far: by a part of it (``"rel"``) or by an
        amount (``"abs"``).
    cooldown
        Steps after a reduction in which nothing is counted.
    min_lr
        The lowest rate, or a list with one for each group.
    eps
        A reduction by no more than this is left out.

    Raises
    ------
    NumgradTypeError
        If ``optimizer`` is none, or a number or a count is something else.
    NumgradValueError
        If ``factor`` is not below 1, a count is negative, ``mode`` or ``threshold_mode`` is
        unknown, or ``min_lr`` has the wrong length.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise NumgradValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        check_optimizer("ReduceLROnPlateau", optimizer)
        self.min_lrs = for_each_group("ReduceLROnPlateau", "min_lr", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        for key, value, known in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in known:
                raise NumgradValueError(
                    f"ReduceLROnPlateau: {key} must be {known[0]!r} or {known[1]!r}, got {value!r}"
                )
        self.optimizer = optimizer
        self.factor = factor
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = values_of(optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, metrics: SupportsFloat, epoch: int | None = None
    ) -> None:
        """Look at the metric of this step, and reduce the learning rate if it is time to.

        Parameters
        ----------
        metrics
            A number or a Tensor of one element.
        epoch
            Deprecated: the number of the step.

        Raises
        ------
        NumgradRuntimeError
            If the optimizer got another group and ``min_lr`` was a list.
        """
        refuse_trace("ReduceLROnPlateau")
        current = float(metrics.detach() if isinstance(metrics, Tensor) else metrics)
        if epoch is not None:
            warn(EPOCH_IS_DEPRECATED, UserWarning)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _is_better(self, current: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 + sign * self.threshold)
        else:
            bound = self.best + sign * self.threshold
        return current > bound if self.mode == "max" else current < bound

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise NumgradRuntimeError(
                    f"ReduceLROnPlateau: min_lr was given for {len(self.min_lrs)} groups, the "
                    f"optimizer has {len(groups)} now; extend scheduler.min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            lr = float(copied(group["lr"]))
            reduced = max(lr * self.factor, lowest)
            if lr - reduced > self.eps:
                set_value(group, "lr", reduced)
