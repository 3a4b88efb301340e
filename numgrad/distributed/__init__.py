"""Processes that compute together, by the names of ``torch.distributed``, on MPI.

Ranks are started by ``mpiexec -n 4 python train.py`` or ``python -m numgrad launch -n 4 train.py``;
without either a process is a group of one, and the same program runs. MPI is reached through
mpi4py, which the extra ``mpi`` installs together with an MPI for one machine.

>>> import numgrad as ng
>>> ng.distributed.init_process_group()
>>> total = ng.ones(2)
>>> ng.distributed.all_reduce(total)
>>> total
tensor([1., 1.])
>>> ng.distributed.destroy_process_group()
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from numgrad.distributed.collectives import all_gather as all_gather
from numgrad.distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
from numgrad.distributed.collectives import all_reduce as all_reduce
from numgrad.distributed.collectives import barrier as barrier
from numgrad.distributed.collectives import broadcast as broadcast
from numgrad.distributed.collectives import gather as gather
from numgrad.distributed.collectives import reduce as reduce
from numgrad.distributed.collectives import reduce_scatter as reduce_scatter
from numgrad.distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
from numgrad.distributed.collectives import scatter as scatter
from numgrad.distributed.group import ProcessGroup as ProcessGroup
from numgrad.distributed.group import destroy_process_group as destroy_process_group
from numgrad.distributed.group import get_backend as get_backend
from numgrad.distributed.group import get_rank as get_rank
from numgrad.distributed.group import get_world_size as get_world_size
from numgrad.distributed.group import init_process_group as init_process_group
from numgrad.distributed.group import is_initialized as is_initialized
from numgrad.distributed.group import new_group as new_group
from numgrad.distributed.library import is_mpi_available as is_mpi_available
from numgrad.distributed.messages import irecv as irecv
from numgrad.distributed.messages import isend as isend
from numgrad.distributed.messages import recv as recv
from numgrad.distributed.messages import send as send
from numgrad.distributed.objects import all_gather_object as all_gather_object
from numgrad.distributed.objects import broadcast_object_list as broadcast_object_list
from numgrad.distributed.reductions import ReduceOp as ReduceOp
from numgrad.distributed.work import CollectiveWork as Work
from numgrad.errors import NumgradAttributeError as _NumgradAttributeError

__all__ = [
    "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "barrier", "broadcast", "broadcast_object_list",
    "checkpoint", "destroy_process_group", "gather", "get_backend", "get_rank", "get_world_size",
    "init_process_group", "irecv", "is_initialized", "is_mpi_available", "isend", "new_group",
    "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip

if _TYPE_CHECKING:
    from numgrad.distributed import checkpoint as checkpoint


def __getattr__(name: str) -> _Any:
    if name == "checkpoint":  # few programs write files
        return _import_module("numgrad.distributed.checkpoint")
    raise _NumgradAttributeError(
        f"module {__name__!r} has no attribute {name!r}; dir(numgrad.distributed) lists all names",
        name=name,
    )


def __dir__() -> list[str]:
    return __all__
