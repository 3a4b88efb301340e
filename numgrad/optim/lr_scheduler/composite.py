"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optim.lr_scheduler.base import LRScheduler, set_value, values_of
from numgrad.optim.lr_scheduler.factor import ReduceLROnPlateau
from numgrad.optim.optimizer import Optimizer


class _CompositeLR(LRScheduler):
    """Base of schedules with parts: checks of the parts, and their state."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
        """Raise unless the parts may be combined; returns their optimizer."""
        name = type(self).__name__
        if len(schedulers) < 1:
            raise NumgradValueError(f"{name}: needs at least one schedule")
        for k, schedule in enumerate(schedulers):
            kind = type(schedule).__name__
            if not hasattr(schedule, "optimizer"):
                raise NumgradTypeError(f"{name}: part {k} is a {kind}, which has no optimizer")
            optimizer = optimizer or schedule.optimizer
            if isinstance(schedule, ReduceLROnPlateau):
                raise NumgradValueError(
                    f"{name}: part {k} is a {kind}, whose step needs a metric; step it by itself"
                )
            if schedule.optimizer is not optimizer:
                raise NumgradValueError(
                    f"{name}: part {k}, a {kind}, schedules another optimizer than it should; "
                    "build all parts with one"
                )
        assert optimizer is not None
        return optimizer

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer; each part's own state in it."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken."""
        self._check_state(state_dict)
        for part, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            part.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})

    def _check_state(self, loaded: Any) -> None:
        super()._check_state(loaded)
        for part, state in zip(self._schedulers, loaded["_schedulers"], strict=True):
            if isinstance(part, LRScheduler) and not isinstance(state, LRScheduler):
                part._check_state(state)


class SequentialLR(_CompositeLR):
    """Follow one schedule after the other.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    schedulers
        The schedules, built for the same optimizer.
    milestones
        The steps at which the second, the third, ... begins, from its own step 0.

    Raises
    ------
    NumgradTypeError
        If a part is no schedule.
    NumgradValueError
        If there is none, one is a ``ReduceLROnPlateau`` or belongs to another optimizer, or the
        number of ``milestones`` does not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> warm_up = ng.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = ng.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = ng.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise NumgradValueError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones "
                f"between them, got {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Each part did its step 0 on top of the others' when it was built: begin again.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        self._part(0)._initial_step()
        self._last_lr = values_of(optimizer, "lr")

    def _part(self, step: int) -> LRScheduler:
        return self._schedulers[bisect_right(self._milestones, step)]

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take every part, or those of ``sched``, one step back; learning rates stay."""
        part = self if sched is None else sched
        if isinstance(part, _CompositeLR):
            for inner in part._schedulers:
                self.recursive_undo(inner)
        else:
            part.last_epoch -= 1

    def _initial_step(self) -> None:
        """Step 0, as the first part of another."""
        self.last_epoch = 0
        self._part(0)._initial_step()
        self._last_lr = values_of(self.optimizer, "lr")

    def _restart(self) -> None:
        self.last_epoch = 0
        self._part(0)._restart()
        self._last_lr = values_of(self.optimizer, "lr")

    def _update_lr(self, epoch: int | None = None) -> None:
        """Begin as a later part of another."""
        self.last_epoch = 0
        self._part(0)._update_lr(0)
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write the learning rates of the next step into the optimizer's groups."""
        self.last_epoch += 1
        part = self._part(self.last_epoch)
        if self.last_epoch in self._milestones:
            part._update_lr(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


class ChainedScheduler(_CompositeLR):
    """Follow several schedules at once: each changes the rate that the one before has left.

    Parameters
    ----------
    schedulers
        The schedules, built for the same optimizer.
    optimizer
        That optimizer; by default the first schedule's.

    Raises
    ------
    NumgradTypeError
        If a part is no schedule.
    NumgradValueError
        If there is none, or one is a ``ReduceLROnPlateau`` or belongs to another optimizer.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> warm_up = ng.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = ng.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = ng.optim.lr_scheduler.ChainedScheduler([warm_up, decay])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer, "lr")

    def _initial_step(self) -> None:
        """Step 0, as the first part of another."""
        for part in self._schedulers:
            part._initial_step()
        self._last_lr = values_of(self.optimizer, "lr")

    def _restart(self) -> None:
        for part in self._schedulers:
            part._restart()
        self._last_lr = values_of(self.optimizer, "lr")

    def _update_lr(self, epoch: int | None = None) -> None:
        """Begin as a later part of another, from the initial rates."""
        for group in self.optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self._restart()

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write the learning rates of the next step into the optimizer's groups."""
        for part in self._schedulers:
            part.step()
        self._last_lr = values_of(self.optimizer, "lr")
