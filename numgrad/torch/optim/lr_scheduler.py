"""Schedules of learning rates: ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.optim import base as _optimizers  # whose Optimizer schedules ask for
from numgrad.torch.specialization import expose, specialize

_FILES = ("base", "factor", "periodic", "composite")
_base, *_others = (specialize(f"numgrad.optim.lr_scheduler.{name}") for name in _FILES)
expose(globals(), "numgrad.optim.lr_scheduler", _base, *_others)
_LRScheduler = _base.LRScheduler
EPOCH_DEPRECATION_WARNING = _base.EPOCH_IS_DEPRECATED
_HOME = _optimizers.Optimizer


__getattr__ = _refuse(globals())
