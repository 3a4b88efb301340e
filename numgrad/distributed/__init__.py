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

from numgrad.core.namespaces import namespace as _namespace

_MEETING = "ranks find each other by their launcher; call init_process_group()"
_ONE_BY_ONE = "call the collective for each tensor, with async_op=True"
_LAUNCH = "start ranks with 'python -m numgrad launch -n N' or mpiexec"
_INSTEAD = {
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

_namespace(
    globals(),
    {
        "numgrad.distributed.collectives": "all_gather all_gather_into_tensor all_reduce barrier "
        "broadcast gather monitored_barrier reduce reduce_scatter reduce_scatter_tensor scatter "
        "ReduceOp",
        "numgrad.distributed.exchange": "all_to_all all_to_all_single all_gather_object "
        "broadcast_object_list gather_object recv_object_list scatter_object_list "
        "send_object_list",
        "numgrad.distributed.group": "GroupMember ProcessGroup destroy_process_group get_backend "
        "get_global_rank get_group_rank get_process_group_ranks get_rank get_world_size "
        "init_process_group is_available is_initialized new_group",
        "numgrad.distributed.launcher": "is_mpi_available",
        "numgrad.distributed.messages": "P2POp batch_isend_irecv irecv isend recv send",
        "numgrad.distributed.spawning": "SpawnContext spawn",
        "numgrad.distributed.work": "Work=CollectiveWork",
    },
    _INSTEAD,
    late={"numgrad.distributed": "checkpoint"},  # few programs write files
)
