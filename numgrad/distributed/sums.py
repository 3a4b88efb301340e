"""Sums of arrays over ranks, again and again in the same memory.

Note [Sums in shared memory]
----------------------------
An MPI on one machine moves an all-reduce through its own buffers: each number is copied several
times. Where all ranks of a group are on one machine they can read each other's terms instead. Each
rank has a place for its terms in memory that all of them map, and behind these is one place for the
totals. When all terms are there each rank adds up its share of the numbers, in the order of ranks,
so that all get the same bits; when all shares are done anybody may read the totals.

Both times ranks wait by a barrier of MPI's. Nothing else is needed: who writes terms again has seen
the second barrier, before which all have read them; and totals are written after the first barrier
of the next sum, to which a rank comes when it has read those of the last. The barriers of the two
kinds are on communicators of their own, as ranks may begin the second of one sum and the first of
the next in either order.

The memory is a file without a name, which other ranks open by the number that its maker has for it:
it is gone with the last process, however that ends, and the limits of ``/dev/shm`` in containers do
not matter. Where that fails, as on other systems, sums are MPI's.
"""

from __future__ import annotations

import mmap
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.distributed.group import ProcessGroup
from numgrad.distributed.objects import all_gather_object, broadcast_object_list

_PAGE = 4096
_LINE = 64
_BLOCK = 1 << 18
"""Bytes that are added up at a time, so that they stay in the cache."""


class Sums(ABC):
    """Arrays of sums over ranks.

    Attributes
    ----------
    terms
        Where this rank puts what it adds, an array for each sum.
    totals
        Where the sums are.
    """

    terms: list[np.ndarray]
    totals: list[np.ndarray]

    @abstractmethod
    def clear(self) -> None:
        """Begin anew, with the first sum."""

    @abstractmethod
    def send(self) -> None:
        """The terms of the next sum are there."""

    @abstractmethod
    def done(self) -> bool:
        """Whether all sums that were sent are there; they make progress while this is asked."""


class SumsByMessages(Sums):
    """Sums that MPI computes in place."""

    def __init__(
        self, group: ProcessGroup, comm: Any, sizes: Sequence[tuple[int, np.dtype]]
    ) -> None:
        self._mpi, self._comm = group.mpi, comm
        self.terms = self.totals = [np.zeros(size, dtype) for size, dtype in sizes]
        self._requests: list[Any] = []

    def clear(self) -> None:
        """Begin anew, with the first sum."""
        self._requests = []

    def send(self) -> None:
        """The terms of the next sum are there."""
        mpi, array = self._mpi, self.terms[len(self._requests)]
        self._requests.append(self._comm.Iallreduce(mpi.IN_PLACE, array, mpi.SUM))

    def done(self) -> bool:
        """Whether all sums that were sent are there."""
        return all([request.Test() for request in self._requests])


class SumsInMemory(Sums):
    """Sums that ranks of one machine compute together: Note [Sums in shared memory]."""

    def __init__(
        self,
        group: ProcessGroup,
        comm: Any,
        sizes: Sequence[tuple[int, np.dtype]],
        memory: mmap.mmap,
    ) -> None:
        self._comm, self._added_comm = comm, comm.Dup()
        self._here: list[Any] = []
        self._added: list[Any] = []
        each = _bytes(sizes)
        every = [_arrays(memory, _PAGE + rank * each, sizes) for rank in range(group.size + 1)]
        self.terms, self.totals = every[group.rank], every[-1]
        self._work = [
            _blocks(group, [arrays[k] for arrays in every]) for k in range(len(self.terms))
        ]

    def clear(self) -> None:
        """Begin anew, with the first sum."""
        self._here, self._added = [], []

    def send(self) -> None:
        """The terms of the next sum are there."""
        self._here.append(self._comm.Ibarrier())

    def done(self) -> bool:
        """Whether all sums that were sent are there; adds up what can be added up."""
        for k in range(len(self._added), len(self._here)):
            if not self._here[k].Test():
                return False
            for first, second, others, total in self._work[k]:
                np.add(first, second, out=total)
                for other in others:
                    np.add(total, other, out=total)
            self._added.append(self._added_comm.Ibarrier())
        return all([request.Test() for request in self._added])


def sums_of(group: ProcessGroup, comm: Any, sizes: Sequence[tuple[int, np.dtype]]) -> Sums:
    """Sums of arrays of these sizes and dtypes; the ranks of the group call this together."""
    memory = _shared_memory(group, comm, _PAGE + (group.size + 1) * _bytes(sizes))
    if memory is None:
        return SumsByMessages(group, comm, sizes)
    return SumsInMemory(group, comm, sizes, memory)


def _shared_memory(group: ProcessGroup, comm: Any, count: int) -> mmap.mmap | None:
    """So many bytes that all ranks map; None on all of them if one cannot."""
    node = comm.Split_type(group.mpi.COMM_TYPE_SHARED)
    near = node.size == comm.size
    node.Free()
    if not near:
        return None
    first, handle, memory = group.rank == 0, -1, None
    said: list[Any] = [None]
    try:
        if first:
            token = secrets.token_bytes(16)
            try:
                handle = os.memfd_create("numgrad")
                os.posix_fallocate(handle, 0, count)  # now, not by a signal at the first write
                os.pwrite(handle, token, 0)
                said = [(f"/proc/{os.getpid()}/fd/{handle}", token)]
            except (AttributeError, OSError):
                said = [None]
        broadcast_object_list(said, group.ranks[0], group)
        if said[0] is not None:
            path, token = said[0]
            try:
                if not first:
                    handle = os.open(path, os.O_RDWR)
                # another file, where ranks see different processes
                if os.pread(handle, 16, 0) == token:
                    memory = mmap.mmap(handle, count)
            except (OSError, ValueError):
                memory = None
        every: list[Any] = [None] * group.size
        all_gather_object(every, memory is not None, group)
    finally:
        if handle >= 0:
            os.close(handle)
    return memory if all(every) else None


def _padded(count: int) -> int:
    return -(-count // _LINE) * _LINE


def _bytes(sizes: Sequence[tuple[int, np.dtype]]) -> int:
    """What the arrays of one rank take, in whole pages."""
    count = sum(_padded(size * dtype.itemsize) for size, dtype in sizes)
    return -(-count // _PAGE) * _PAGE


def _arrays(
    memory: mmap.mmap, start: int, sizes: Sequence[tuple[int, np.dtype]]
) -> list[np.ndarray]:
    found = []
    for size, dtype in sizes:
        found.append(np.frombuffer(memory, dtype, size, start))
        start += _padded(size * dtype.itemsize)
    return found


def _blocks(group: ProcessGroup, every: Sequence[np.ndarray]) -> list[tuple[Any, ...]]:
    """What this rank adds up: pieces of the first two terms, of all others, and of the total."""
    total = every[-1]
    line = _LINE // total.itemsize
    share = -(-total.size // (group.size * line)) * line
    end = min((group.rank + 1) * share, total.size)
    step = _BLOCK // total.itemsize
    found = []
    for start in range(group.rank * share, end, step):
        pieces = [array[start : min(start + step, end)] for array in every]
        found.append((pieces[0], pieces[1], pieces[2:-1], pieces[-1]))
    return found
