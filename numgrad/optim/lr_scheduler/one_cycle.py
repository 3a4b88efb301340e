"""The 1cycle policy [1]_.

.. [1] Smith, Topin: Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
   Rates, 2018, https://arxiv.org/abs/1708.07120
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal

from numgrad.core.options import Option
from numgrad.errors import NumgradValueError
from numgrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_each_group
from numgrad.optim.lr_scheduler.momentum import MomentumRange, set_momentum
from numgrad.optim.optimizer import Optimizer


class OneCycleLR(LRScheduler):
    """Let the learning rate rise to ``max_lr`` once and fall far below where it began.

    It begins at ``max_lr / div_factor``, is highest after the part ``pct_start`` of all steps, and
    ends at the first rate divided by ``final_div_factor``. Meant to be stepped after each batch.
    Momentum, with ``cycle_momentum``, moves the other way.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``; a beginning overwrites the rate of the groups and ``initial_lr``.
    max_lr
        The highest rate, or a list with one for each group.
    total_steps
        The number of steps; else it is ``epochs * steps_per_epoch``.
    epochs, steps_per_epoch
        In place of ``total_steps``.
    pct_start
        The part of the steps in which the rate rises, a float from 0 to 1.
    anneal_strategy
        ``"cos"`` or ``"linear"``: the way from one rate to the next.
    cycle_momentum
        Whether to move ``momentum``, or the first of ``betas``, as well.
    base_momentum, max_momentum
        Its bounds, or lists with one for each group.
    div_factor
        The highest rate over the first.
    final_div_factor
        The first rate over the last.
    three_phase
        Fall to the first rate in as many steps as it rose, and only then to the last.

    Raises
    ------
    NumgradTypeError
        If ``optimizer`` is none, or a rate or a ratio is no number.
    NumgradValueError
        If the number of steps is not given or not positive, ``pct_start`` or ``anneal_strategy``
        is none, a list has the wrong length, or there is no momentum to cycle; at a step beyond
        the last.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.OneCycleLR(
    ...     optimizer, max_lr=1.0, total_steps=5, pct_start=0.4, div_factor=2.0,
    ...     anneal_strategy="linear", cycle_momentum=False,
    ... )
    >>> scheduler.get_last_lr()
    [0.5]
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("OneCycleLR", optimizer)
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise NumgradValueError(
                f"OneCycleLR: pct_start must be a float from 0 to 1, got {pct_start!r}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise NumgradValueError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        highest = for_each_group("OneCycleLR", "max_lr", optimizer, max_lr)
        for key, ratio in ("div_factor", div_factor), ("final_div_factor", final_div_factor):
            Option(name=key, above=0).check("OneCycleLR", ratio)
        self.cycle_momentum = cycle_momentum
        momentum = None
        if cycle_momentum:
            momentum = MomentumRange("OneCycleLR", optimizer, base_momentum, max_momentum)
            self.use_beta1 = momentum.in_betas
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, highest, strict=True):
                first = lr / div_factor
                group.update(initial_lr=first, max_lr=lr, min_lr=first / final_div_factor)
            if momentum:
                momentum.begin()
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, t: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * t) + 1)
        return (end - start) * t + start

    def _next_lr(self) -> list[Any]:
        """The rates; momentum, which has no place in the result, is written here."""
        if self.last_epoch > self.total_steps:
            raise NumgradValueError(
                f"OneCycleLR: step {self.last_epoch} of a schedule of {self.total_steps}; give "
                "total_steps as many as there are"
            )
        begun, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if self.last_epoch <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begun = phase["end_step"]
        length = phase["end_step"] - begun
        t = (self.last_epoch - begun) / length if length else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], t))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(start, end, t), self.use_beta1)
        return rates


def _steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise NumgradValueError(
            "OneCycleLR: the number of steps is missing; give total_steps, or epochs and "
            "steps_per_epoch"
        )
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(key: str, value: int) -> int:
    if not isinstance(value, Integral) or value <= 0:
        raise NumgradValueError(f"OneCycleLR: {key} must be a positive integer, got {value!r}")
    return int(value)


def _phases(pct_start: float, total_steps: int, three_phase: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and the keys of the values of a group it goes from and to."""
    rise = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
    top, last = pct_start * total_steps - 1, total_steps - 1
    if three_phase:
        table = [
            (top, *rise),
            (2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]
    else:
        table = [(top, *rise), (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(keys, row, strict=True)) for row in table]
