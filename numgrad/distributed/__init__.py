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
from numgrad.distributed.collectives import monitored_barrier as monitored_barrier
from numgrad.distributed.collectives import reduce as reduce
from numgrad.distributed.collectives import reduce_scatter as reduce_scatter
from numgrad.distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
from numgrad.distributed.collectives import scatter as scatter
from numgrad.distributed.exchange import all_to_all as all_to_all
from numgrad.distributed.exchange import all_to_all_single as all_to_all_single
from numgrad.distributed.group import GroupMember as GroupMember
from numgrad.distributed.group import ProcessGroup as ProcessGroup
from numgrad.distributed.group import destroy_process_group as destroy_process_group
from numgrad.distributed.group import get_backend as get_backend
from numgrad.distributed.group import get_global_rank as get_global_rank
from numgrad.distributed.group import get_group_rank as get_group_rank
from numgrad.distributed.group import get_process_group_ranks as get_process_group_ranks
from numgrad.distributed.group import get_rank as get_rank
from numgrad.distributed.group import get_world_size as get_world_size
from numgrad.distributed.group import init_process_group as init_process_group
from numgrad.distributed.group import is_available as is_available
from numgrad.distributed.group import is_initialized as is_initialized
from numgrad.distributed.group import new_group as new_group
from numgrad.distributed.library import is_mpi_available as is_mpi_available
from numgrad.distributed.messages import P2POp as P2POp
from numgrad.distributed.messages import batch_isend_irecv as batch_isend_irecv
from numgrad.distributed.messages import irecv as irecv
from numgrad.distributed.messages import isend as isend
from numgrad.distributed.messages import recv as recv
from numgrad.distributed.messages import send as send
from numgrad.distributed.objects import all_gather_object as all_gather_object
from numgrad.distributed.objects import broadcast_object_list as broadcast_object_list
from numgrad.distributed.objects import gather_object as gather_object
from numgrad.distributed.objects import recv_object_list as recv_object_list
from numgrad.distributed.objects import scatter_object_list as scatter_object_list
from numgrad.distributed.objects import send_object_list as send_object_list
from numgrad.distributed.reductions import ReduceOp as ReduceOp
from numgrad.distributed.work import CollectiveWork as Work
from numgrad.errors import NumgradAttributeError as _NumgradAttributeError

__all__ = [
    "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Work", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "checkpoint", "destroy_process_group", "gather", "gather_object", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "init_process_group", "irecv", "is_available", "is_initialized",
    "is_mpi_available", "isend", "monitored_barrier", "new_group", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send", "send_object_list",
]  # fmt: skip

if _TYPE_CHECKING:
    from numgrad.distributed import checkpoint as checkpoint

_MEETING = "ranks find each other by their launcher; call init_process_group()"
_ONE_BY_ONE = "call the collective for each tensor, with async_op=True"
_LAUNCH = "start ranks with 'python -m numgrad launch -n N' or mpiexec"
_ABSENT = {
    **dict.fromkeys(("FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"), _MEETING),
    **dict.fromkeys(("register_rendezvous_handler", "rendezvous"), _MEETING),
    **dict.fromkeys(
        ("all_gather_coalesced", "all_reduce_coalesced", "reduce_scatter_coalesced"), _ONE_BY_ONE
    ),
    **dict.fromkeys(("elastic", "launch", "launcher", "run", "is_torchelastic_launched"), _LAUNCH),
    **dict.fromkeys(("new_subgroups", "new_subgroups_by_enumeration", "split_group"),
                    "call new_group(ranks) for each group, on all ranks"),
    **dict.fromkeys(("Backend", "is_backend_available", "is_gloo_available", "is_nccl_available",
                     "is_ucc_available", "is_xccl_available"),
                    "the backend is MPI; is_mpi_available() says whether it is there"),
    **dict.fromkeys(("DeviceMesh", "device_mesh", "init_device_mesh", "fsdp", "tensor"),
                    "there are no devices but the CPU; see nn.parallel.DistributedDataParallel and "
                    "optim.ZeroRedundancyOptimizer"),
    "algorithms": "for uneven data see nn.parallel.DistributedDataParallel.join",
    "get_node_local_rank": "the launcher has it in a variable, such as MPI_LOCALRANKID",
    "optim": "see ng.optim.ZeroRedundancyOptimizer",
    "reduce_op": "its members are in ReduceOp",
    "rpc": "ng.parallel calls functions on executors and Dask",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name == "checkpoint":  # few programs write files
        return _import_module("numgrad.distributed.checkpoint")
    if name in _ABSENT:
        raise _NumgradAttributeError(
            f"module {__name__!r} has no attribute {name!r}: {_ABSENT[name]}", name=name
        )
    raise _NumgradAttributeError(
        f"module {__name__!r} has no attribute {name!r}; dir(numgrad.distributed) lists all names",
        name=name,
    )


def __dir__() -> list[str]:
    return __all__
