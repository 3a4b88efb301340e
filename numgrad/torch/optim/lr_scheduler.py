"""Schedules of learning rates: ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.optim import base as _optimizers  # whose Optimizer schedules ask for
from numgrad.torch.specialization import specialize

_base, _factor, _periodic, _composite = (
    specialize(f"numgrad.optim.lr_scheduler.{name}")
    for name in ("base", "factor", "periodic", "composite")
)
LRScheduler = _LRScheduler = _base.LRScheduler
ChainedScheduler, SequentialLR = _composite.ChainedScheduler, _composite.SequentialLR
ConstantLR, ExponentialLR, LambdaLR = _factor.ConstantLR, _factor.ExponentialLR, _factor.LambdaLR
LinearLR, MultiStepLR, PolynomialLR = _factor.LinearLR, _factor.MultiStepLR, _factor.PolynomialLR
MultiplicativeLR, StepLR = _factor.MultiplicativeLR, _factor.StepLR
ReduceLROnPlateau = _factor.ReduceLROnPlateau
CosineAnnealingLR, CyclicLR = _periodic.CosineAnnealingLR, _periodic.CyclicLR
CosineAnnealingWarmRestarts = _periodic.CosineAnnealingWarmRestarts
OneCycleLR = _periodic.OneCycleLR
EPOCH_DEPRECATION_WARNING = _base.EPOCH_IS_DEPRECATED
_HOME = _optimizers.Optimizer


__getattr__ = _refuse(globals())
