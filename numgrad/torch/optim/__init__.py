"""Optimizers and schedules of learning rates: ``torch.optim``."""

from numgrad.core.arguments import REQUIRED as required
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.optim import base as _base, functional as _functional, lr_scheduler, swa_utils
from numgrad.torch.paths import alias as _alias

_ALGORITHMS = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon",
    "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam",
]  # fmt: skip
globals().update({name: _base.algorithm(name) for name in _ALGORITHMS})
Optimizer = _base.Optimizer
register_optimizer_step_pre_hook = _base.base.register_optimizer_step_pre_hook
register_optimizer_step_post_hook = _base.base.register_optimizer_step_post_hook
__all__ = sorted(["Optimizer", "lr_scheduler", "swa_utils", *_ALGORITHMS])  # pyright: ignore
_alias(__name__, "optim.optimizer " + " ".join(f"optim.{name.lower()}" for name in _ALGORITHMS))
for _name in _functional.NAMES:
    setattr(globals()[_name.lower()], _name.lower(), _functional.functional(_name))
_HERE = lr_scheduler, swa_utils, required
__getattr__ = _refuse(globals())
