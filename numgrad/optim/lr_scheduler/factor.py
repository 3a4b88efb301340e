"""Learning rates by factors: fixed ones, of a function of the step, or when a metric stalls."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Literal, SupportsFloat

from numgrad.core.options import Option, option
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError, warn
from numgrad.optim.lr_scheduler.base import (
    EPOCH_IS_DEPRECATED,
    LRScheduler,
    check_optimizer,
    checked,
    copied,
    declared,
    for_each_group,
    refuse_trace,
    set_value,
    values_of,
)
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor


class FactorLR(LRScheduler):
    """Base of schedules given by one factor a step, the same for all groups.

    A subclass defines ``_factor``, by which this step multiplies the rate, and ``_total_factor``,
    the product of all of them so far, in closed form.
    """

    def _factor(self) -> float:
        raise NotImplementedError

    def _total_factor(self) -> float:
        raise NotImplementedError

    def _next_lr(self) -> list[Any]:
        factor = self._factor()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._total_factor()
        return [lr * factor for lr in self.base_lrs]


@declared
class StepLR(FactorLR):
    """Multiply the learning rate by ``gamma`` every ``step_size`` steps.

    The rate of step ``t`` is ``initial_lr * gamma ** (t // step_size)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    optimizer: Optimizer
    step_size: float = option(above=0, doc="Steps from one change to the next.")
    gamma: float = 0.1
    last_epoch: int = -1

    def _factor(self) -> float:
        changes = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self.gamma if changes else 1.0

    def _total_factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(FactorLR):
    """Multiply the learning rate by ``gamma`` at each of the steps ``milestones``.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    milestones
        The steps, in any order; one that is there twice counts twice.
    gamma
        The factor.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``milestones`` is no list of whole numbers.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        try:
            steps: list[Any] = list(milestones)
        except TypeError:
            raise NumgradTypeError(
                f"MultiStepLR: milestones is {milestones!r}; it must be a list of steps"
            ) from None
        for number, step in enumerate(steps):
            Option(name=f"milestones[{number}]", annotation="float").check("MultiStepLR", step)
            if step != int(step):
                raise NumgradValueError(
                    f"MultiStepLR: milestones[{number}] is {step!r}; it must be a whole number"
                )
        self.milestones = Counter(map(int, steps))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def _total_factor(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer; ``milestones`` as a plain dictionary of counts."""
        return super().state_dict() | {"milestones": dict(self.milestones)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken."""
        super().load_state_dict(state_dict)
        # what went through JSON has strings for keys
        self.milestones = Counter({int(step): n for step, n in self.milestones.items()})


@declared
class ConstantLR(FactorLR):
    """Multiply the learning rate by ``factor`` until step ``total_iters``.

    Notes
    -----
    Rates that were multiplied by 0 are set to the initial ones afterwards; other factors are
    divided out, which keeps what other schedules did meanwhile.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    optimizer: Optimizer
    factor: float = option(default=1.0 / 3, at_least=0, at_most=1, doc="The factor.")
    total_iters: float = 5
    last_epoch: int = -1

    def _next_lr(self) -> list[Any]:
        if self.factor == 0 and self.last_epoch == self.total_iters > 0:
            return list(self.base_lrs)
        return super()._next_lr()

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _total_factor(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


@declared
class LinearLR(FactorLR):
    """Change the learning rate linearly, until step ``total_iters``.

    The rate of step ``t`` is the initial one times the factor on the straight line from
    ``start_factor`` at step 0 to ``end_factor`` at ``total_iters``, where it stays.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    optimizer: Optimizer
    start_factor: float = option(default=1.0 / 3, above=0, at_most=1, doc="The factor of step 0.")
    end_factor: float = option(default=1.0, at_least=0, at_most=1, doc="The last factor.")
    total_iters: float = 5
    last_epoch: int = -1

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return 1.0 + rise / before

    def _total_factor(self) -> float:
        rise, steps = self.end_factor - self.start_factor, self.total_iters or 1
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / steps


@declared
class ExponentialLR(FactorLR):
    """Multiply the learning rate by ``gamma`` at every step.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    optimizer: Optimizer
    gamma: float
    last_epoch: int = -1

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _total_factor(self) -> float:
        return self.gamma**self.last_epoch


@declared
class PolynomialLR(FactorLR):
    """Let the learning rate fall to 0 at step ``total_iters``, as a power of what is left.

    The rate of step ``t`` is ``initial_lr * (1 - t / total_iters) ** power``.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    optimizer: Optimizer
    total_iters: float = 5
    power: float = option(default=1.0, doc="The exponent.")
    last_epoch: int = -1

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return (left / left_before) ** self.power

    def _total_factor(self) -> float:
        done = min(self.total_iters, self.last_epoch) / (self.total_iters or 1)
        return (1.0 - done) ** self.power


def saved_function(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object; None for functions, which are code and have no state."""
    if isinstance(function, FunctionType) or not hasattr(function, "__dict__"):
        return None
    return function.__dict__.copy()


_RESULT = Option(name="the result of lr_lambda", annotation="float")


class _FunctionLR(LRScheduler):
    """Base of schedules with a function for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        name = type(self).__name__
        check_optimizer(name, optimizer)
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, list | tuple):
            functions: list[Any] = [lr_lambda] * count
        elif len(lr_lambda) == count:
            functions = list(lr_lambda)
        else:
            raise NumgradValueError(
                f"{name}: got {len(lr_lambda)} functions for {count} groups; give one for each "
                "group, or a single one for all"
            )
        for function in functions:
            if not callable(function):
                raise NumgradTypeError(
                    f"{name}: lr_lambda is a function of the step, got {type(function).__name__}"
                )
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def _factor(self, function: Callable[[int], Any]) -> Any:
        """Result of a function for this step, which has to be a number."""
        factor = function(self.last_epoch)
        _RESULT.check(type(self).__name__, factor)
        return factor

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and the code of functions.

        Of a callable object its attributes are saved; of a plain function nothing.
        """
        functions = [saved_function(f) for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": functions}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken, with the functions this schedule has."""
        self._check_state(state_dict)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class LambdaLR(_FunctionLR):
    """Set the learning rate to the initial one times a function of the step.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    lr_lambda
        A function from the step to a factor, or a list with one for each group.

    Raises
    ------
    NumgradValueError
        If there is not one function for each group.
    NumgradTypeError
        If one cannot be called, or returns no number.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def _next_lr(self) -> list[Any]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [lr * self._factor(function) for lr, function in pairs]


class MultiplicativeLR(_FunctionLR):
    """Multiply the learning rate by a function of the step.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    lr_lambda
        A function from the step to a factor, or a list with one for each group.

    Raises
    ------
    NumgradValueError
        If there is not one function for each group.
    NumgradTypeError
        If one cannot be called, or returns no number.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def _next_lr(self) -> list[Any]:
        if self._is_initial:
            return values_of(self.optimizer, "lr")
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * self._factor(function) for group, function in pairs]


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
