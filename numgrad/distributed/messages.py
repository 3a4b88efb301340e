"""Messages from one rank to another, and the memory of Tensors that is sent and received.

Note [Headers]
--------------
MPI does not look whether a message has the dtype and shape of what it is received into. So each is
two: a header of 256 bytes, under the tag that the user gave, with dtype, shape, and the number
under which the data follow on another communicator. Who receives knows by the header whether they
fit; if not the data go elsewhere, since their sender waits for that, and the receiver raises.

Data are asked for when the header was seen. A rank that waits for something else, such as a
message of its own to be sent, therefore looks after what it is to receive at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.versions import INFERENCE, mark_written, version_of
from numgrad.core.interpreter import state
from numgrad.distributed.group import Group, ProcessGroup, group_of
from numgrad.distributed.work import (
    CollectiveWork,
    progress_all,
    progressing,
    seconds_of,
    wait_until,
)
from numgrad.errors import (
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor

_CODES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
_DTYPES = {np.dtype(code): np.dtype(code).name for code in _CODES}


class Memory:
    """A Tensor or array that MPI reads, or writes to.

    ``buffer`` is what MPI gets: the memory itself if it is contiguous, else a copy.
    """

    def __init__(self, name: str, tensor: Any, *, writes: bool) -> None:
        if state.ground.deferred or state.interpreters:
            raise NumgradTraceError(
                f"{name}: a function that is traced or mapped (ng.jit, ng.vmap, forward mode) has "
                "no numbers to send yet; communicate outside of it"
            )
        if isinstance(tensor, Tensor):
            array = tensor._array
            if tensor.requires_grad and state.grad_enabled and (writes or tensor.grad_fn):
                raise NumgradRuntimeError(
                    f"{name}: communication is not recorded, and the tensor of shape "
                    f"{tensor.shape} requires grad; give tensor.detach(), which shares its memory, "
                    "or communicate under ng.no_grad()"
                )
        elif isinstance(tensor, np.ndarray) and not isinstance(tensor, np.ma.MaskedArray):
            array = tensor
        else:
            raise NumgradTypeError(
                f"{name}: takes a Tensor or an ndarray, got {type(tensor).__name__}"
            )
        if array.dtype not in _DTYPES or not array.dtype.isnative:
            raise NumgradTypeError(
                f"{name}: cannot send dtype {array.dtype}; there are bool, integers, float32, "
                "float64, complex64 and complex128"
            )
        if writes and not array.flags.writeable:
            raise NumgradValueError(f"{name}: the array of shape {array.shape} is read-only")
        self.tensor, self.array = tensor, array
        self._writes = writes
        self.buffer = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if writes and isinstance(tensor, Tensor):
            before_writing((tensor,))

    @property
    def said(self) -> str:
        """Dtype and shape."""
        return f"{_DTYPES[self.array.dtype]} {self.array.shape}"

    @property
    def flat(self) -> np.ndarray:
        """Array for MPI; booleans as bytes."""
        flat = self.buffer.reshape(-1)
        return flat.view(np.uint8) if flat.dtype.kind == "b" else flat

    def written(self) -> None:
        """Take note that MPI wrote."""
        if self.buffer is not self.array:
            self.array[...] = self.buffer
        if isinstance(self.tensor, Tensor) and version_of(self.tensor) is not INFERENCE:
            mark_written(self.tensor)


def joined(tensors: Sequence[Tensor]) -> np.ndarray:
    """The elements of Tensors of one dtype one after another, a copy."""
    return np.concatenate([t._array.reshape(-1) for t in tensors])


@no_grad()
def spread(flat: np.ndarray, tensors: Sequence[Tensor]) -> None:
    """Put what ``joined`` made elsewhere in place of Tensors."""
    start = 0
    for tensor in tensors:
        elements = flat[start : start + tensor.size].reshape(tensor.shape)
        tensor.detach().copy_(Tensor(elements))
        start += tensor.size


def listed(
    name: str, what: str, tensors: Any, count: int, like: Memory | None = None, *, writes: bool
) -> list[Memory]:
    """The memory of a list of Tensors, one a rank, that all are like one.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If it is no list, has another length, or something in it is different.
    """
    if not isinstance(tensors, list | tuple):
        raise NumgradTypeError(
            f"{name}: {what} is a list with a tensor for each rank, got {type(tensors).__name__}"
        )
    if len(tensors) != count:
        raise NumgradValueError(
            f"{name}: {what} has {len(tensors)} tensors, and the group {count} ranks"
        )
    memories = [Memory(name, tensor, writes=writes) for tensor in tensors]
    for position, memory in enumerate(memories):
        if like is not None and memory.said != like.said:
            raise NumgradValueError(
                f"{name}: {what}[{position}] is {memory.said}, and the tensor {like.said}; they "
                "must be equal"
            )
    return memories


def scatter_back(rows: np.ndarray, targets: Sequence[Memory]) -> Callable[[], None]:
    """Make a function that copies rows which MPI wrote to their Tensors."""

    def finish() -> None:
        for row, target in zip(rows, targets, strict=True):
            target.flat[...] = row
            target.written()

    return finish


_HEADER = 256
"""Bytes of a header."""


class MessageWork(CollectiveWork):
    """Handle that ``isend`` and ``irecv`` return."""

    def __init__(
        self, group: ProcessGroup, what: str, peer: int | None, moved: tuple[int, int]
    ) -> None:
        self.what, self._moved, self._done = what, moved, False
        self._group, self._source = group, peer
        self._ranks = group.others if peer is None else [peer]

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the message is on its way, or has come; returns True.

        Raises
        ------
        NumgradValueError
            If what has come has another dtype or shape.
        NumgradRuntimeError
            If the rank has left, or the timeout is over.
        """
        group = self._group
        seconds = group.timeout if timeout is None else seconds_of("wait", timeout)
        size = group.world_size
        wait_until(
            self.is_completed, self.what, self._ranks, seconds, size, lambda: True, self._moved
        )
        return True

    def source_rank(self) -> int | None:
        """The rank that the message came from; None as long as that is open."""
        return self._source


class _SendWork(MessageWork):
    def __init__(self, group: ProcessGroup, memory: Memory, dst: int, tag: int) -> None:
        what = f"send of {memory.said} to {dst}"
        super().__init__(group, what, dst, (0, memory.flat.nbytes))
        peer, number = _peer("isend", group, dst), group.next_message()
        # the work holds the memory as long as it is on its way
        self._header = _header(number, memory)
        self._memory = memory
        self._requests = [
            group.control.Isend(self._header, peer, tag),
            group.comm.Isend(memory.flat, peer, number),
        ]

    def is_completed(self) -> bool:
        """Whether the message is on its way."""
        progress_all()
        self._done = self._done or all([request.Test() for request in self._requests])
        return self._done


class _ReceiveWork(MessageWork):
    def __init__(self, group: ProcessGroup, memory: Memory, src: int | None, tag: int) -> None:
        sender = "any rank" if src is None else f"rank {src}"
        what = f"recv of {memory.said} from {sender}"
        super().__init__(group, what, src, (memory.flat.nbytes, 0))
        mpi = group.mpi
        self._memory, self._header = memory, np.empty(_HEADER, np.uint8)
        self._status, self._data = mpi.Status(), None
        self._error: Exception | None = None
        source = mpi.ANY_SOURCE if src is None else _peer("irecv", group, src)
        self._request = group.control.Irecv(self._header, source, tag)
        progressing.append(self.progress)

    def is_completed(self) -> bool:
        """Whether the message has come.

        Raises
        ------
        NumgradValueError
            If what has come has another dtype or shape.
        """
        progress_all()
        if self._done and self._error is not None:
            raise self._error
        return self._done

    def progress(self) -> None:
        """Receive the data where the header has come."""
        if self._group.comm is None:
            self._error = NumgradRuntimeError(f"{self.what}: the group was destroyed")
        else:
            if self._data is None and self._request.Test(self._status):
                self._begin()
            if self._data is None or not self._data.Test():
                return
        progressing.remove(self.progress)
        self._done = True
        if self._error is None:
            self._memory.written()

    def _begin(self) -> None:
        position = self._status.Get_source()
        self._source = self._group.ranks[position]
        number, count = self._header[:16].view(np.int64).tolist()
        said = self._header[16:].tobytes().rstrip(b"\0").decode()
        mine = self._memory
        flat = mine.flat
        if said != _told(mine):
            # received all the same, or its sender would wait for ever
            flat = np.empty(count, said.split()[0].replace("bool", "uint8"))
            self._error = NumgradValueError(
                f"{self.what}: the message of rank {self._source} is {said}; receive into a tensor "
                "of the dtype and shape that are sent. This one is as it was, the message is gone"
            )
        self._data = self._group.comm.Irecv(flat, position, number)


def _told(memory: Memory) -> str:
    return memory.said[: _HEADER - 16]


def _header(number: int, memory: Memory) -> np.ndarray:
    header = np.zeros(_HEADER, np.uint8)
    header[:16] = np.array([number, memory.flat.size]).view(np.uint8)
    text = np.frombuffer(_told(memory).encode(), np.uint8)
    header[16 : 16 + text.size] = text
    return header


def isend(tensor: Any, dst: int, group: Group = None, tag: int = 0) -> CollectiveWork:
    """Begin to send a tensor to rank ``dst``, which is not to be changed until it is sent.

    Returns a ``Work``; parameters and errors are those of ``send``.
    """
    members = group_of("isend", group)
    _peer("isend", members, dst)
    return _SendWork(members, Memory("isend", tensor, writes=False), dst, _tag("isend", tag))


def irecv(tensor: Any, src: int | None = None, group: Group = None, tag: int = 0) -> CollectiveWork:
    """Begin to receive a tensor from rank ``src``, by default from any.

    Returns a ``Work``; parameters and errors are those of ``recv``.
    """
    members = group_of("irecv", group)
    if src is not None:
        _peer("irecv", members, src)
    if members.comm is None:
        raise NumgradValueError("irecv: there is no other rank in a group of one")
    return _ReceiveWork(members, Memory("irecv", tensor, writes=True), src, _tag("irecv", tag))


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
        If the message has another dtype or shape than the tensor, which then stays as it is, or
        ``src`` is this rank.
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


@dataclass
class P2POp:
    """A message of ``batch_isend_irecv``.

    Parameters
    ----------
    op
        ``isend`` or ``irecv``.
    tensor, peer, group, tag
        What it is called with.
    """

    op: Callable[..., CollectiveWork]
    tensor: Any
    peer: int
    group: Group = None
    tag: int = 0

    def __post_init__(self) -> None:
        if self.op not in (isend, irecv):
            raise NumgradTypeError(f"P2POp: op is isend or irecv, got {self.op!r}")


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[CollectiveWork]:
    """Begin several messages; returns the ``Work`` of each.

    Raises
    ------
    NumgradTypeError
        If something in the list is no ``P2POp``.
    """
    wrong = [op for op in p2p_op_list if not isinstance(op, P2POp)]
    if wrong or not p2p_op_list:
        actual = type(wrong[0]).__name__ if wrong else "an empty list"
        raise NumgradTypeError(f"batch_isend_irecv: takes a list of P2POp, got {actual}")
    return [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]
