"""Models on several processes: ``torch.nn.parallel``."""

from __future__ import annotations

from numgrad.nn.parallel import distributed as _numgrad, reducer as _reducer
from numgrad.torch.missing import refuse
from numgrad.torch.nn import module as _modules  # whose Module models are
from numgrad.torch.paths import alias
from numgrad.torch.specialization import specialize
from numgrad.torch.wrapping import face_function

_base = specialize(
    "numgrad.nn.parallel.distributed",
    {"Reducer": face_function(_reducer.Reducer)},
    broadcast_all=face_function(_numgrad.broadcast_all),
)
DistributedDataParallel = _base.DistributedDataParallel
DistributedDataParallel.__module__, _HOME = __name__, _modules.Module
alias(__name__, "nn.parallel.distributed")
__getattr__ = refuse(globals())
