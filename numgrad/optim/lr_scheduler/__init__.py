"""Schedules of learning rates."""

from numgrad.optim.lr_scheduler.base import LRScheduler as LRScheduler
from numgrad.optim.lr_scheduler.composite import ChainedScheduler as ChainedScheduler
from numgrad.optim.lr_scheduler.composite import SequentialLR as SequentialLR
from numgrad.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from numgrad.optim.lr_scheduler.cosine import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
)
from numgrad.optim.lr_scheduler.cycle import CyclicLR as CyclicLR
from numgrad.optim.lr_scheduler.factor import ConstantLR as ConstantLR
from numgrad.optim.lr_scheduler.factor import ExponentialLR as ExponentialLR
from numgrad.optim.lr_scheduler.factor import LinearLR as LinearLR
from numgrad.optim.lr_scheduler.factor import MultiStepLR as MultiStepLR
from numgrad.optim.lr_scheduler.factor import PolynomialLR as PolynomialLR
from numgrad.optim.lr_scheduler.factor import StepLR as StepLR
from numgrad.optim.lr_scheduler.function import LambdaLR as LambdaLR
from numgrad.optim.lr_scheduler.function import MultiplicativeLR as MultiplicativeLR
from numgrad.optim.lr_scheduler.one_cycle import OneCycleLR as OneCycleLR
from numgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
