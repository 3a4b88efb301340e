"""Schedules given by a function of the step, and what of such a function is saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from numgrad.core.options import Option
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, values_of
from numgrad.optim.optimizer import Optimizer


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
        """What a function returns for this step, which has to be a number."""
        factor = function(self.last_epoch)
        _RESULT.check(type(self).__name__, factor)
        return factor

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the code of functions.

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
