"""Models on several processes: ``torch.nn.parallel``."""

from __future__ import annotations

from typing import Any

from numgrad.nn.parallel import distributed as _numgrad, reducer as _reducer
from numgrad.torch.missing import refuse
from numgrad.torch.nn import module as _modules  # whose Module models are
from numgrad.torch.paths import alias
from numgrad.torch.specialization import specialize
from numgrad.torch.wrapping import unwrap


def broadcast_all(tensors: Any, source: int, group: Any) -> None:
    """Put the Tensors of one rank in place of those of all others."""
    _numgrad.broadcast_all(unwrap(list(tensors)), source, group)


def _reducer_of(params: Any, group: Any, cap: float) -> Any:
    return _reducer.Reducer([(name, unwrap(p)) for name, p in params], group, cap)


_base = specialize(
    "numgrad.nn.parallel.distributed", {"Reducer": _reducer_of}, broadcast_all=broadcast_all
)
DistributedDataParallel = _base.DistributedDataParallel
DistributedDataParallel.__module__, _HOME = __name__, _modules.Module
alias(__name__, "nn.parallel.distributed")
__getattr__ = refuse(globals())
