"""Periodic learning rates: cosine annealing and restarts [1]_, cyclical [2]_ and 1cycle [3]_.

The momentum of the last two goes against the rate.

.. [1] Loshchilov, Hutter: SGDR: Stochastic Gradient Descent with Warm Restarts, 2017,
   https://arxiv.org/abs/1608.03983
.. [2] Smith: Cyclical Learning Rates for Training Neural Networks, 2017,
   https://arxiv.org/abs/1506.01186
.. [3] Smith, Topin: Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
   Rates, 2018, https://arxiv.org/abs/1708.07120
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

from numgrad.core.options import Option, option
from numgrad.errors import NumgradValueError
from numgrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    copied,
    declared,
    fill,
    for_each_group,
    set_value,
    values_of,
)
from numgrad.optim.lr_scheduler.factor import saved_function
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor


@declared
class CosineAnnealingLR(LRScheduler):
    """Let the learning rate fall to ``eta_min`` along half a period of a cosine.

    The rate of step ``t`` is
    ``eta_min + (initial_lr - eta_min) * (1 + cos(pi * t / T_max)) / 2``. After ``T_max`` it rises
    again.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> print(f"{scheduler.get_last_lr()[0]:.3f}")
    0.250
    """

    optimizer: Optimizer
    T_max: float = option(above=0, doc="The step at which the rate is ``eta_min``.")
    eta_min: float = 0.0
    last_epoch: int = -1

    def _next_lr(self) -> list[Any]:
        if self._is_initial:
            return values_of(self.optimizer, "lr")
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # the step from the very bottom, where a ratio of heights would be 0 / 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(groups, self.base_lrs, strict=True)
            return [group["lr"] + (lr - self.eta_min) * rise for group, lr in pairs]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _height(self, step: int) -> float:
        return 1 + math.cos(math.pi * step / self.T_max)

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (lr - self.eta_min) * height / 2 for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Let the learning rate fall to ``eta_min`` along a cosine, again and again.

    A period begins at the initial rate; the first takes ``T_0`` steps, each later one ``T_mult``
    times as many as the one before. Within a period of ``T_i`` steps the rate of its step ``t`` is
    ``eta_min + (initial_lr - eta_min) * (1 + cos(pi * t / T_i)) / 2``.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    T_0
        Steps of the first period.
    T_mult
        How many times longer each period is than the one before.
    eta_min
        The lowest rate.

    Raises
    ------
    NumgradValueError
        If ``T_0`` or ``T_mult`` is no positive integer, or ``eta_min`` no number.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for key, value in {"T_0": T_0, "T_mult": T_mult}.items():
            if not isinstance(value, Integral) or value < 1:
                raise NumgradValueError(
                    f"CosineAnnealingWarmRestarts: {key} must be a positive integer, got {value!r}"
                )
        if not isinstance(eta_min, float | int):
            raise NumgradValueError(
                f"CosineAnnealingWarmRestarts: eta_min must be a number, got {eta_min!r}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Write the learning rates of the next step, or of ``epoch``, into the groups.

        Parameters
        ----------
        epoch
            Where to go, whole epochs or parts of them: ``step(epoch + batch / batches)`` after
            each batch.

        Raises
        ------
        NumgradValueError
            If ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise NumgradValueError(
                f"CosineAnnealingWarmRestarts: step needs a non-negative epoch, got {epoch}"
            )
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._stepping():
            self._write(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        """Find the period that ``epoch`` is in."""
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult

    def _next_lr(self) -> list[Any]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (lr - self.eta_min) * height / 2 for lr in self.base_lrs]


class MomentumRange:
    """The lowest and highest momentum of each group, checked but not yet written.

    The momentum is ``group["momentum"]``, or the first of ``group["betas"]``.

    Raises
    ------
    NumgradValueError
        If the optimizer has neither, or a list has the wrong length.
    """

    def __init__(self, name: str, optimizer: Optimizer, base: Any, highest: Any) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise NumgradValueError(
                f"{name}: {type(optimizer).__name__} has neither momentum nor betas to cycle; pass "
                "cycle_momentum=False"
            )
        self.groups = optimizer.param_groups
        self.in_betas = "betas" in optimizer.defaults
        self.highest = for_each_group(name, "max_momentum", optimizer, highest)
        self.base = for_each_group(name, "base_momentum", optimizer, base)

    def begin(self) -> None:
        """Write the range into the groups, and the highest momentum as the present one."""
        for group, base, highest in zip(self.groups, self.base, self.highest, strict=True):
            set_momentum(group, copied(highest), self.in_betas)  # which is filled later
            group["max_momentum"], group["base_momentum"] = highest, base


def set_momentum(group: dict[str, Any], momentum: float, in_betas: bool) -> None:
    """Set the momentum of one group; a tensor that is there stays and is filled."""
    if not in_betas:
        set_value(group, "momentum", momentum)
    elif isinstance(group["betas"][0], Tensor):
        fill(group["betas"][0], momentum)
    else:
        group["betas"] = (momentum, *group["betas"][1:])


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
        """The state without the optimizer and the code of ``scale_fn``."""
        return super().state_dict() | {"_scale_fn_custom": saved_function(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken, with the ``scale_fn`` this schedule has."""
        self._check_state(state_dict)
        attributes = state_dict["_scale_fn_custom"]
        if attributes is not None and self._scale_fn_custom is not None:
            vars(self._scale_fn_custom).update(attributes)
        super().load_state_dict({**state_dict, "_scale_fn_custom": self._scale_fn_custom})


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
