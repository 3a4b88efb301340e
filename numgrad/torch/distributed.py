"""Processes that compute together: ``torch.distributed``, which is ``numgrad.distributed``.

Ranks communicate by MPI, whichever backend of the CPU is named. They are started by ``python -m
numgrad launch -n 2 -m numgrad torch script.py``, where the variables of ``torchrun`` are set, or by
``torch.multiprocessing.spawn``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numgrad import distributed as base
from numgrad.errors import NumgradValueError
from numgrad.torch.missing import refuse
from numgrad.torch.wrapping import face_function, unwrap

_OF_TENSORS = (
    "all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single broadcast gather "
    "irecv isend recv reduce reduce_scatter reduce_scatter_tensor scatter send"
)
_OF_OBJECTS = (
    "GroupMember ProcessGroup ReduceOp Work all_gather_object barrier batch_isend_irecv "
    "broadcast_object_list destroy_process_group gather_object get_backend get_global_rank "
    "get_group_rank get_process_group_ranks get_rank get_world_size is_available is_initialized "
    "is_mpi_available monitored_barrier recv_object_list scatter_object_list send_object_list"
)
globals().update({name: face_function(getattr(base, name)) for name in _OF_TENSORS.split()})
globals().update({name: getattr(base, name) for name in _OF_OBJECTS.split()})
is_gloo_available = base.is_mpi_available
group = SimpleNamespace(WORLD=None)


def is_nccl_available() -> bool:
    """Whether GPUs can communicate: no."""
    return False


is_torchelastic_launched = is_nccl_available


def _check_backend(name: str, backend: Any) -> None:
    if backend not in (None, "gloo", "mpi", "cpu:gloo"):
        raise NumgradValueError(
            f"{name}: backend {backend!r}: ranks are processes of the CPU, which communicate by "
            "MPI; 'gloo' and 'mpi' both mean that"
        )


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "", **options: Any,
) -> None:  # fmt: skip
    """Connect the ranks, which find each other by the launcher, whatever ``init_method`` says.

    Raises
    ------
    NumgradValueError
        If the backend is one of GPUs, or the launcher gave other numbers of ranks.
    """
    _check_backend("init_process_group", backend)
    base.init_process_group(None, None, timeout, world_size, rank, store, **options)


def new_group(
    ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, **_: Any
) -> Any:
    """A group of some of the ranks; all ranks call this, also those that are not in it."""
    _check_backend("new_group", backend)
    return base.new_group(ranks, timeout, None, pg_options)


def P2POp(op: Any, tensor: Any, *args: Any, **options: Any) -> base.P2POp:
    """A message of ``batch_isend_irecv``."""
    return base.P2POp(getattr(op, "__wrapped__", op), unwrap(tensor), *args, **options)


__getattr__ = refuse(globals())
