"""Averages of the weights that training goes through: ``torch.optim.swa_utils``."""

from __future__ import annotations

from numgrad.nn.utils import clip_grad
from numgrad.torch.creation import from_numpy
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn import module as _modules  # whose Module averages are
from numgrad.torch.optim import lr_scheduler as _schedulers  # which SWALR is one of
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import face_function

_update_many = face_function(clip_grad.update_many)
_late = {"update_many": _update_many, "asarray": from_numpy}
_base = specialize("numgrad.optim.swa_utils", _late)
expose(globals(), "numgrad.optim.swa_utils", _base)
_HOMES = _modules, _schedulers
__getattr__ = _refuse(globals())
