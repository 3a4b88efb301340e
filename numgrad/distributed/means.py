"""Means of arrays over ranks, again and again for arrays of the same sizes.

Note [Sums in shared memory]
----------------------------
An MPI on one machine moves an all-reduce through its own buffers: each number is copied several
times. Where all ranks of a group are on one machine they can read each other's terms instead. Each
rank adds up a share of the numbers, in the order of ranks, so that all get the same bits. Its own
terms it reads where they are, in the array that was given: so it copies to memory that all map
only what others add up, each into a place of its own there. When all terms are there each rank adds
up its share, whose sums it puts behind its copies, where its own share would be, and, as means,
straight into its array. When all shares are done each reads those of others. For two ranks that
is half of the traffic of an all-reduce from buffers to buffers with copies around it.

Both times ranks wait by a barrier of MPI's. Nothing else is needed: who writes terms again has seen
the second barrier, before which all have read them; and sums are written after the first barrier
of the next round, to which a rank comes when it has read those of the last. The barriers of the two
kinds are on communicators of their own, as ranks may begin the second of one list and the first of
the next in either order.

The memory is a file without a name, which other ranks open by the number that its maker has for it:
it is gone with the last process, however that ends, and the limits of ``/dev/shm`` in containers do
not matter. Where that fails, as on other systems, sums are MPI's.
"""

from __future__ import annotations

import math
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
_BLOCK = 1 << 17
"""Bytes that are added up at a time, so that they stay in the cache."""

Sizes = Sequence[tuple[Sequence[int], np.dtype]]
"""The sizes of the arrays of each list, and their dtype."""


class Means(ABC):
    """Means over ranks of lists of flat arrays.

    A round is ``begin``, then for each list ``give`` of its arrays and ``send``; when ``done`` is
    true, ``finish`` has put the means in place of what was given. An array that no rank reached
    stays as it is.

    Attributes
    ----------
    sizes
        The sizes of the arrays of each list, and their dtype.
    given
        What this rank gave.
    used
        For each list that is done, the positions of arrays that some rank reached.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.offsets = [np.cumsum([0, *lengths]).tolist() for lengths, _ in sizes]
        self.begin(1, [[0] * len(lengths) for lengths, _ in sizes])

    def begin(self, divisor: int, reached: Sequence[Sequence[int]]) -> None:
        """Begin anew, with the first list.

        Parameters
        ----------
        divisor
            What sums are divided by.
        reached
            For each list, 1 for arrays that count as used.
        """
        self.divisor = divisor
        self.used: list[list[int]] = []
        self.given: list[list[Any]] = [[None] * len(lengths) for lengths, _ in self.sizes]
        self._mark(reached)

    def give(self, number: int, position: int, array: np.ndarray) -> None:
        """A contiguous array of this rank, which belongs to this until ``finish``."""
        flat = self.given[number][position] = array.reshape(-1)
        self._copy(number, position, flat)

    def nbytes(self, count: int) -> int:
        """Bytes of so many lists."""
        return sum(sum(lengths) * dtype.itemsize for lengths, dtype in self.sizes[:count])

    @abstractmethod
    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        """Let others know what this rank reached."""

    @abstractmethod
    def _copy(self, number: int, position: int, flat: np.ndarray) -> None:
        """Put an array where it is sent from."""

    @abstractmethod
    def send(self) -> None:
        """All arrays of the next list were given."""

    @abstractmethod
    def done(self) -> bool:
        """Whether all sums that were sent are there; they make progress while this is asked."""

    @abstractmethod
    def finish(self) -> None:
        """Put the means in place of what was given."""


def _divide(total: np.ndarray, divisor: int, out: np.ndarray) -> None:
    if divisor == 1 << int(math.log2(divisor)):  # exact, and faster than to divide
        np.multiply(total, 1 / divisor, out=out)
    else:
        np.divide(total, divisor, out=out)


class MeansByMessages(Means):
    """Means by sums of MPI's; behind the numbers of a list is what was reached."""

    def __init__(self, group: ProcessGroup, comm: Any, sizes: Sizes) -> None:
        self._mpi, self._comm = group.mpi, comm
        self._flat = [np.zeros(sum(n) + len(n), dtype) for n, dtype in sizes]
        super().__init__(sizes)

    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        self._requests: list[Any] = []
        for flat, marks in zip(self._flat, reached, strict=True):
            flat[flat.size - len(marks) :] = marks

    def _copy(self, number: int, position: int, flat: np.ndarray) -> None:
        np.copyto(self._part(number, position), flat)

    def _part(self, number: int, position: int) -> np.ndarray:
        start, end = self.offsets[number][position : position + 2]
        return self._flat[number][start:end]

    def send(self) -> None:
        """All arrays of the next list were given."""
        mpi, array = self._mpi, self._flat[len(self._requests)]
        self._requests.append(self._comm.Iallreduce(mpi.IN_PLACE, array, mpi.SUM))

    def done(self) -> bool:
        """Whether all sums that were sent are there."""
        return all([request.Test() for request in self._requests])

    def finish(self) -> None:
        """Put the means in place of what was given."""
        for number in range(len(self._requests)):
            given = self.given[number]
            used = np.flatnonzero(self._flat[number][self.offsets[number][-1] :]).tolist()
            self.used.append(used)
            for position in used:
                _divide(self._part(number, position), self.divisor, given[position])


class MeansInMemory(Means):
    """Means that ranks of one machine compute together: Note [Sums in shared memory]."""

    def __init__(self, group: ProcessGroup, comm: Any, sizes: Sizes, memory: mmap.mmap) -> None:
        self._comm, self._added_comm = comm, comm.Dup()
        every = [_arrays(memory, _PAGE + rank * _bytes(sizes), sizes) for rank in range(group.size)]
        self._marks = [[marks for _, marks in arrays] for arrays in every]
        self._mine = self._marks[group.rank]
        self._shares = [
            _Shares(group.rank, lengths, [arrays[k][0] for arrays in every])
            for k, (lengths, _) in enumerate(sizes)
        ]
        super().__init__(sizes)

    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        self._here: list[Any] = []
        self._added: list[Any] = []
        for mine, marks in zip(self._mine, reached, strict=True):
            mine[...] = marks

    def _copy(self, number: int, position: int, flat: np.ndarray) -> None:
        for piece, place in self._shares[number].sent[position]:
            np.copyto(place, flat[piece])

    def send(self) -> None:
        """All arrays of the next list were given."""
        self._here.append(self._comm.Ibarrier())

    def done(self) -> bool:
        """Whether all sums that were sent are there; adds up what can be added up."""
        for number in range(len(self._added), len(self._here)):
            if not self._here[number].Test():
                return False
            self._add_up(number)
            self._added.append(self._added_comm.Ibarrier())
        return all([request.Test() for request in self._added])

    def _add_up(self, number: int) -> None:
        used = np.flatnonzero(np.any([marks[number] for marks in self._marks], axis=0)).tolist()
        self.used.append(used)
        given, shares = self.given[number], self._shares[number]
        for position in used:
            flat = given[position]
            for piece, before, after, total in shares.added[position]:
                own = flat[piece]
                terms = [*before, own, *after]
                np.add(terms[0], terms[1], out=total)
                for term in terms[2:]:
                    np.add(total, term, out=total)
                _divide(total, self.divisor, own)

    def finish(self) -> None:
        """Put the means in place of what was given."""
        for number, used in enumerate(self.used):
            given, shares = self.given[number], self._shares[number]
            for position in used:
                for piece, total in shares.received[position]:
                    _divide(total, self.divisor, given[position][piece])


class _Shares:
    """Which pieces of arrays, one behind the other, a rank adds up, sends and receives.

    Attributes
    ----------
    sent, received
        For each array, its pieces that others add up; with the place of this rank for copies, and
        with that where the sum is.
    added
        For each array, the pieces that this rank adds up; with the terms of ranks before and after
        it, and the place of the sum.
    """

    def __init__(self, rank: int, lengths: Sequence[int], every: Sequence[np.ndarray]) -> None:
        size, total = len(every), sum(lengths)
        line, step = _LINE // every[0].itemsize, _BLOCK // every[0].itemsize
        share = -(-total // (size * line)) * line
        self.sent: list[list[Any]] = [[] for _ in lengths]
        self.received: list[list[Any]] = [[] for _ in lengths]
        self.added: list[list[Any]] = [[] for _ in lengths]
        start = 0
        for position, length in enumerate(lengths):
            for owner in range(size):
                first, end = owner * share, min((owner + 1) * share, total)
                a, b = max(start, first), min(start + length, end)
                if a >= b:
                    continue
                if owner != rank:
                    piece = slice(a - start, b - start)
                    self.sent[position].append((piece, every[rank][a:b]))
                    self.received[position].append((piece, every[owner][a:b]))
                    continue
                for low in range(a, b, step):
                    high = min(low + step, b)
                    terms = [flat[low:high] for flat in every]
                    self.added[position].append(
                        (slice(low - start, high - start), terms[:rank], terms[rank + 1 :],
                         terms[rank])
                    )  # fmt: skip
            start += length


def means_of(group: ProcessGroup, comm: Any, sizes: Sizes) -> Means:
    """Means of arrays of these sizes and dtypes; the ranks of the group call this together."""
    memory = _shared_memory(group, comm, _PAGE + group.size * _bytes(sizes))
    if memory is None:
        return MeansByMessages(group, comm, sizes)
    return MeansInMemory(group, comm, sizes, memory)


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


def _bytes(sizes: Sizes) -> int:
    """What the arrays of one rank and their marks take, in whole pages."""
    count = sum(_padded(sum(n) * dtype.itemsize) + _padded(len(n)) for n, dtype in sizes)
    return -(-count // _PAGE) * _PAGE


def _arrays(memory: mmap.mmap, start: int, sizes: Sizes) -> list[tuple[np.ndarray, np.ndarray]]:
    """The numbers of each list in a flat array, and a byte for each array of it."""
    found = []
    for lengths, dtype in sizes:
        flat = np.frombuffer(memory, dtype, sum(lengths), start)
        start += _padded(flat.nbytes)
        found.append((flat, np.frombuffer(memory, np.uint8, len(lengths), start)))
        start += _padded(len(lengths))
    return found
