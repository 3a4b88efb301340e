"""Schedules of learning rates: build one on an optimizer, and step it after the optimizer.

=============================== ===================================================================
``StepLR``                      a factor every so many steps
``MultiStepLR``                 a factor at given steps
``ConstantLR``                  a factor until a step
``LinearLR``                    along a straight line, for instance to warm up
``ExponentialLR``               a factor at every step
``PolynomialLR``                to 0 as a power of what is left
``CosineAnnealingLR``           to the lowest rate along a cosine
``CosineAnnealingWarmRestarts`` along a cosine again and again, from the start
``CyclicLR``                    up and down between two bounds
``OneCycleLR``                  up once and far down, with the momentum against it
``LambdaLR``                    the first rate times a function of the step
``MultiplicativeLR``            the present rate times a function of the step
``ReduceLROnPlateau``           a factor when a metric no longer improves
``SequentialLR``                one schedule after another
``ChainedScheduler``            several at once
``LRScheduler``                 the base class, for a schedule of one's own
=============================== ===================================================================

Examples
--------
>>> import numgrad as ng
>>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
>>> schedule = ng.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for _ in range(4):
...     optimizer.step()
...     schedule.step()
>>> schedule.get_last_lr()
[0.25]
"""

# fmt: off
# isort: off

from numgrad.core.absent import absent as _absent
from numgrad.optim.lr_scheduler.base import LRScheduler
from numgrad.optim.lr_scheduler.composite import ChainedScheduler, SequentialLR
from numgrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from numgrad.optim.lr_scheduler.cycle import CyclicLR, OneCycleLR
from numgrad.optim.lr_scheduler.factor import (
    ConstantLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR, MultiplicativeLR, PolynomialLR,
    StepLR,
)
from numgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau

# isort: on
# fmt: on

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

__getattr__ = _absent(
    __name__,
    __all__,
    {},
)


def __dir__() -> list[str]:
    return __all__
