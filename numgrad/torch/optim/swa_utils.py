"""Averages of the weights that training goes through: ``torch.optim.swa_utils``."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.nn.utils import clip_grad
from numgrad.torch.creation import from_numpy
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn import module as _modules  # whose Module averages are
from numgrad.torch.optim import lr_scheduler as _schedulers  # which SWALR is one of
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import unwrap


def _update_many(formula: Any, tensors: Any, *numbers: Any) -> Any:
    return clip_grad.update_many(formula, unwrap(tensors), *numbers)


_base = specialize("numgrad.optim.swa_utils", {"update_many": _update_many})
expose(globals(), "numgrad.optim.swa_utils", _base)


class AveragedModel(_base.AveragedModel):
    """A copy of a model whose parameters are averages of those that the model goes through."""

    def __init__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, *args, **kwargs)
        self.n_averaged = from_numpy(np.zeros((), np.int64))


_HOMES = _modules, _schedulers
__getattr__ = _refuse(globals())
