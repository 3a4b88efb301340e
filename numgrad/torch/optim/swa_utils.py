"""Averages of the weights that training goes through: ``torch.optim.swa_utils``."""

from __future__ import annotations

from typing import Any

from numgrad.nn.utils import clip_grad
from numgrad.torch.creation import from_numpy
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn import module as _modules  # whose Module averages are
from numgrad.torch.optim import lr_scheduler as _schedulers  # which SWALR is one of
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import unwrap


def _update_many(formula: Any, tensors: Any, *numbers: Any) -> Any:
    return clip_grad.update_many(formula, unwrap(tensors), *numbers)


_base = specialize("numgrad.optim.swa_utils", {"update_many": _update_many, "asarray": from_numpy})
expose(globals(), "numgrad.optim.swa_utils", _base)
_HOMES = _modules, _schedulers
__getattr__ = _refuse(globals())
