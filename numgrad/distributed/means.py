"""Means of arrays over ranks, again and again for arrays of the same sizes.

Note [Sums in shared memory]
----------------------------
An MPI on one machine moves an all-reduce through its own buffers: each number is copied several
times. Where all ranks of a group are on one machine they can read each other's terms instead. Each
rank adds up a share of the numbers, in the order of ranks, so that all get the same bits. Its own
terms it reads where they are, in the array that was given: so it copies to memory that all map
only what others add up, into a part of it that is its own. When all terms are there each rank adds
up its share, puts the sums in place of all the copies, and, as means, straight into its array. When
all shares are done each finds in its own part the sums of what it had copied. For two ranks that is
half of the traffic of an all-reduce from buffers to buffers with copies around it.

Lists are cut into pieces. One sets out when the arrays that it is of have been given, so that of a
long list much is done before its last array is there, and copies of a piece may still be in caches
when they are added up, as may its sums when they are read.

Both times ranks wait by a barrier of MPI's. Nothing else is needed: a rank writes terms again only
when it has read the sums in their place, and then all others have seen its terms and have written
those sums. The barriers of the two kinds are on communicators of their own, as ranks may begin the
second of one piece and the first of another in either order.

To read arrays of other ranks where they are, by ``process_vm_readv``, takes a copy less, and yet
twice the time: the system looks up each page.

The memory is a file without a name, which other ranks open by the number that its maker has for it:
it is gone with the last process, however that ends, and the limits of ``/dev/shm`` in containers do
not matter. Where that fails, as on other systems, sums are MPI's.
"""

from __future__ import annotations

import mmap
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.distributed.collectives import real_parts, unify_nans
from numgrad.distributed.exchange import all_gather_object, broadcast_object_list
from numgrad.distributed.group import ProcessGroup

_PAGE = 4096
_LINE = 64
_BLOCK = 1 << 17
"""Bytes that are added up at a time, so that they stay in the cache."""
_PIECE = 1 << 23
"""Bytes of a piece, about; of smaller ones barriers cost more than caches save."""

Sizes = Sequence[tuple[Sequence[int], np.dtype]]
"""The sizes of the arrays of each list, and their dtype."""


class Means(ABC):
    """Means over ranks of lists of flat arrays.

    A round is ``begin``, then ``give`` for each array of each list; when all were given and
    ``done`` is true, means are in place of what was given. An array that no rank reached stays as
    it is. Lists are sent in *parts*, in their order on all ranks.

    Attributes
    ----------
    sizes
        The sizes of the arrays of each list, and their dtype.
    flats
        Flat arrays of this rank that ``give`` got, by list and position.
    used
        For each list of which a part is done, the positions of arrays that some rank reached.
    """

    def __init__(self, sizes: Sizes, pieces: Sequence[tuple[int, Collection[int]]]) -> None:
        self.sizes = sizes
        self._parts_of: list[list[list[int]]] = [[[] for _ in lengths] for lengths, _ in sizes]
        for piece, (number, positions) in enumerate(pieces):
            for position in positions:
                self._parts_of[number][position].append(piece)
        self._needs = [len(positions) for _, positions in pieces]
        self.begin(1, [[0] * len(lengths) for lengths, _ in sizes])

    def begin(self, divisor: int, reached: Sequence[Sequence[int]]) -> None:
        """Begin again, with the first list.

        Parameters
        ----------
        divisor
            What sums are divided by.
        reached
            For each list, 1 for arrays that count as used.
        """
        # a power of two: exact, and faster than to divide
        exact = divisor & (divisor - 1) == 0
        self._mean = partial(np.multiply, 1 / divisor) if exact else partial(_quotient, divisor)
        self.used: list[list[int]] = []
        self.flats: list[list[Any]] = [[None] * len(lengths) for lengths, _ in self.sizes]
        self._missing, self._sent, self._received = [*self._needs], 0, 0
        self._mark(reached)

    def give(self, number: int, position: int, array: np.ndarray) -> None:
        """A contiguous array of this rank, which belongs to this until all is done."""
        flat = self.flats[number][position] = real_parts(array.reshape(-1))
        for piece in self._parts_of[number][position]:
            self._copy(piece, position, flat)
            self._missing[piece] -= 1
            while self._sent < len(self._missing) and not self._missing[self._sent]:
                self._send(self._sent)
                self._sent += 1
            self.done()

    @property
    def nbytes(self) -> int:
        """Bytes of what was given."""
        return sum(flat.nbytes for flats in self.flats for flat in flats if flat is not None)

    @abstractmethod
    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        """Let others know what this rank reached."""

    @abstractmethod
    def _copy(self, piece: int, position: int, flat: np.ndarray) -> None:
        """Put what a part has of an array where it is sent from."""

    @abstractmethod
    def _send(self, piece: int) -> None:
        """All arrays of the next part were given."""

    @abstractmethod
    def done(self) -> bool:
        """Whether the means of what was sent are there; they make progress while this is asked."""


def _quotient(divisor: int, total: np.ndarray, out: np.ndarray) -> None:
    np.divide(total, divisor, out=out)


class MeansByMessages(Means):
    """Means by sums of MPI's, a part a list; behind the numbers of a list is what was reached."""

    def __init__(self, group: ProcessGroup, comm: Any, sizes: Sizes) -> None:
        self._mpi, self._comm = group.mpi, comm
        self._flat = [np.zeros(sum(n) + len(n), dtype) for n, dtype in sizes]
        self._offsets = [np.cumsum([0, *lengths]).tolist() for lengths, _ in sizes]
        super().__init__(sizes, [(k, range(len(lengths))) for k, (lengths, _) in enumerate(sizes)])

    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        self._requests: list[Any] = []
        for flat, marks in zip(self._flat, reached, strict=True):
            flat[flat.size - len(marks) :] = marks

    def _copy(self, piece: int, position: int, flat: np.ndarray) -> None:
        np.copyto(self._place(piece, position), flat)

    def _place(self, number: int, position: int) -> np.ndarray:
        start, end = self._offsets[number][position : position + 2]
        return self._flat[number][start:end]

    def _send(self, piece: int) -> None:
        mpi, array = self._mpi, self._flat[piece]
        self._requests.append(self._comm.Iallreduce(mpi.IN_PLACE, array, mpi.SUM))

    def done(self) -> bool:
        """Whether the means of all that was sent are there."""
        while self._received < self._sent and self._requests[self._received].Test():
            number = self._received
            used = np.flatnonzero(self._flat[number][self._offsets[number][-1] :]).tolist()
            self.used.append(used)
            for position in used:
                mean = self.flats[number][position]
                self._mean(self._place(number, position), out=mean)
                unify_nans(mean)
            self._received += 1
        return self._received == self._sent


class MeansInMemory(Means):
    """Means that ranks of one machine compute together: Note [Sums in shared memory]."""

    def __init__(self, group: ProcessGroup, comm: Any, sizes: Sizes, memory: mmap.mmap) -> None:
        self._comm, self._added_comm = comm, comm.Dup()
        every = [_arrays(memory, _PAGE + rank * _bytes(sizes), sizes) for rank in range(group.size)]
        self._marks = [[marks for _, marks in arrays] for arrays in every]
        self._mine = self._marks[group.rank]
        self._pieces = [
            piece
            for k, (lengths, _) in enumerate(sizes)
            for piece in _cut(group.rank, k, lengths, [arrays[k][0] for arrays in every])
        ]
        super().__init__(sizes, [(piece.number, piece.copied) for piece in self._pieces])

    def _mark(self, reached: Sequence[Sequence[int]]) -> None:
        self._here: list[Any] = []
        self._added: list[Any] = []
        for mine, marks in zip(self._mine, reached, strict=True):
            mine[...] = marks

    def _copy(self, piece: int, position: int, flat: np.ndarray) -> None:
        for numbers, target in self._pieces[piece].copied[position]:
            np.copyto(target, flat[numbers])

    def _send(self, piece: int) -> None:
        self._here.append(self._comm.Ibarrier())

    def done(self) -> bool:
        """Whether the means of all that was sent are there; adds up what can be added up."""
        while len(self._added) < self._sent and self._here[len(self._added)].Test():
            self._add_up(self._pieces[len(self._added)])
            self._added.append(self._added_comm.Ibarrier())
        while self._received < len(self._added) and self._added[self._received].Test():
            self._receive(self._pieces[self._received])
            self._received += 1
        return self._received == self._sent

    def _add_up(self, piece: _Piece) -> None:
        number = piece.number
        if number == len(self.used):
            reached = np.any([marks[number] for marks in self._marks], axis=0)
            self.used.append(np.flatnonzero(reached).tolist())
        arrays = self.flats[number]
        for position in self.used[number]:
            for numbers, before, after in piece.added.get(position, ()):
                numbers_here = arrays[position][numbers]
                targets = [*before, *after]
                terms, total = [*before, numbers_here, *after], targets[0]
                np.add(terms[0], terms[1], out=total)
                for term in terms[2:]:
                    np.add(total, term, out=total)
                for target in targets[1:]:
                    np.copyto(target, total)
                self._mean(total, out=numbers_here)

    def _receive(self, piece: _Piece) -> None:
        arrays = self.flats[piece.number]
        for position in self.used[piece.number]:
            for numbers, total in piece.copied.get(position, ()):
                self._mean(total, out=arrays[position][numbers])


@dataclass
class _Piece:
    """A range of the numbers of a list, of which each rank adds up a share.

    Attributes
    ----------
    number
        Of the list.
    copied
        By positions of arrays, slices of them that others add up, with the place of this rank for
        copies, where sums will be. All arrays of the piece are here, if with nothing to copy.
    added
        By positions of arrays, slices of them that this rank adds up, with the places of copies of
        ranks before and after it.
    """

    number: int
    copied: dict[int, list[Any]] = field(default_factory=dict)
    added: dict[int, list[Any]] = field(default_factory=dict)


def _cut(
    rank: int, number: int, lengths: Sequence[int], every: Sequence[np.ndarray]
) -> list[_Piece]:
    """The pieces of a list, at least one; the places of each rank are an array of ``every``."""
    itemsize, total = every[0].itemsize, sum(lengths)
    line, block = _LINE // itemsize, _BLOCK // itemsize
    ends = np.cumsum(lengths).tolist()
    count = max(1, round(total * itemsize / _PIECE))
    pieces = []
    for low, high in _shares(0, total, count, line):
        piece = _Piece(number)
        shares = _shares(low, high, len(every), line)
        for position, (length, end) in enumerate(zip(lengths, ends, strict=True)):
            start = end - length
            last = high == total and start == total  # nothing in it, and no piece behind it
            if not (last or (low <= start < high) or (start < low < end)):
                continue
            copied = piece.copied[position] = []
            added = piece.added[position] = []
            for owner, (first, past) in enumerate(shares):
                a, b = max(start, first), min(end, past)
                if owner != rank and a < b:
                    copied.append((slice(a - start, b - start), every[rank][a:b]))
                for c in range(a, b, block) if owner == rank else ():
                    d = min(c + block, b)
                    shares_of_ranks = [flat[c:d] for flat in every]
                    added.append(
                        (
                            slice(c - start, d - start),
                            shares_of_ranks[:rank],
                            shares_of_ranks[rank + 1 :],
                        )
                    )
        pieces.append(piece)
    return pieces


def _shares(low: int, high: int, count: int, line: int) -> list[tuple[int, int]]:
    """A range cut into so many of about the same length, in whole lines; the last may be empty."""
    step = -(-(high - low) // (count * line)) * line
    ends = [min(low + k * step, high) for k in range(count + 1)]
    return list(pairwise(ends))


def means_of(group: ProcessGroup, comm: Any, sizes: Sizes) -> Means:
    """Means of arrays of these sizes and dtypes; the ranks of the group call this together.

    Complex numbers are pairs of real ones: a division of complex ones makes NaN beside infinity.
    """
    sizes = [
        ([2 * n for n in lengths], np.finfo(dtype).dtype) if dtype.kind == "c" else one
        for one in sizes
        for lengths, dtype in [one]
    ]
    memory = _shared_memory(group, comm, _PAGE + group.size * _bytes(sizes))
    if memory is None:
        return MeansByMessages(group, comm, sizes)
    return MeansInMemory(group, comm, sizes, memory)


def _shared_memory(group: ProcessGroup, comm: Any, count: int) -> mmap.mmap | None:
    """Memory of ``count`` bytes that all ranks map; None on all of them if one cannot."""
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
    """Bytes for the arrays of one rank and their marks, in whole pages."""
    count = sum(_padded(sum(n) * dtype.itemsize) + _padded(len(n)) for n, dtype in sizes)
    return -(-count // _PAGE) * _PAGE


def _arrays(memory: mmap.mmap, start: int, sizes: Sizes) -> list[tuple[np.ndarray, np.ndarray]]:
    """The numbers of each list in a flat array, and a byte for each array of it."""
    arrays = []
    for lengths, dtype in sizes:
        flat = np.frombuffer(memory, dtype, sum(lengths), start)
        start += _padded(flat.nbytes)
        arrays.append((flat, np.frombuffer(memory, np.uint8, len(lengths), start)))
        start += _padded(len(lengths))
    return arrays
