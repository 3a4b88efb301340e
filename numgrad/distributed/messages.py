"""Messages from one rank to another."""

from __future__ import annotations

from typing import Any

from numgrad.distributed.group import Group, ProcessGroup, group_of
from numgrad.distributed.memory import Memory
from numgrad.distributed.work import CollectiveWork, MessageWork
from numgrad.errors import NumgradTypeError, NumgradValueError


def isend(tensor: Any, dst: int, group: Group = None, tag: int = 0) -> CollectiveWork:
    """Begin to send a tensor to rank ``dst``, which is not to be changed until it is sent.

    Returns a ``Work``; parameters and errors are those of ``send``.
    """
    found = group_of("isend", group)
    peer = _peer("isend", found, dst)
    memory = Memory("isend", tensor, writes=False)
    request = found.comm.Isend(memory.flat, peer, _tag("isend", tag))
    # the work holds the memory as long as it is on its way
    what, moved = f"send of {memory.said} to {dst}", (0, memory.flat.nbytes)
    return MessageWork(found, what, request, dst, lambda *_, memory=memory: None, moved)


def irecv(tensor: Any, src: int | None = None, group: Group = None, tag: int = 0) -> CollectiveWork:
    """Begin to receive a tensor from rank ``src``, by default from any.

    Returns a ``Work``; parameters and errors are those of ``recv``.
    """
    found = group_of("irecv", group)
    peer = None if src is None else _peer("irecv", found, src)
    if found.comm is None:
        raise NumgradValueError("irecv: there is no other rank in a group of one")
    memory = Memory("irecv", tensor, writes=True)
    wanted = "any rank" if src is None else f"rank {src}"
    what = f"recv of {memory.said} from {wanted}"
    mpi = found.mpi

    def finish(status: Any, source: int) -> None:
        got = status.Get_count(mpi.BYTE)
        if got != memory.flat.nbytes:
            raise NumgradValueError(
                f"{what}: the message of rank {source} has {got} bytes, not {memory.flat.nbytes}; "
                "shapes and dtypes must be those that were sent"
            )
        memory.written()

    source = mpi.ANY_SOURCE if peer is None else peer
    request = found.comm.Irecv(memory.flat, source, _tag("irecv", tag))
    return MessageWork(found, what, request, src, finish, (memory.flat.nbytes, 0))


def send(tensor: Any, dst: int, group: Group = None, tag: int = 0) -> None:
    """Send a tensor to rank ``dst``, which calls ``recv``.

    Parameters
    ----------
    tensor
        A Tensor or ndarray.
    dst
        A rank of the world.
    group
        A group that both are in, by default all.
    tag
        A number from 0 that tells messages apart.

    Raises
    ------
    NumgradValueError
        If ``dst`` is this rank, or none of the group.
    NumgradRuntimeError
        If the timeout is over, or the rank has left.
    """
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Any, src: int | None = None, group: Group = None, tag: int = 0) -> int:
    """Receive a tensor from rank ``src``, by default from any; returns the rank it came from.

    Parameters are those of ``send``; ``tensor`` is written to.

    Raises
    ------
    NumgradValueError
        If the message has another number of bytes than the tensor, or ``src`` is this rank.
    NumgradRuntimeError
        If the timeout is over, or the rank has left.
    """
    work: Any = irecv(tensor, src, group, tag)
    work.wait()
    return work.source_rank()


def _peer(name: str, group: ProcessGroup, rank: int) -> int:
    peer = group.position(name, rank)
    if peer == group.rank:
        raise NumgradValueError(f"{name}: rank {rank} is this one; messages are for others")
    return peer


def _tag(name: str, tag: Any) -> int:
    if isinstance(tag, bool) or not hasattr(tag, "__index__"):
        raise NumgradTypeError(f"{name}: tag is an integer, got {tag!r}")
    if not 0 <= tag <= 32767:
        raise NumgradValueError(f"{name}: tag is from 0 to 32767, got {tag}")
    return int(tag)
