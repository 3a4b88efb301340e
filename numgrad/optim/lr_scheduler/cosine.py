"""Cosine annealing, once and with restarts [1]_.

.. [1] Loshchilov, Hutter: SGDR: Stochastic Gradient Descent with Warm Restarts, 2017,
   https://arxiv.org/abs/1608.03983
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.optim.lr_scheduler.base import LRScheduler, declared, values_of
from numgrad.optim.optimizer import Optimizer


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
