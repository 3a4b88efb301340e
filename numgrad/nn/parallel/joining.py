"""Ranks with less data than others.

Note [Roll calls]
-----------------
Inside of ``join`` every collective of the wrapper begins with a roll call: each rank says what it
is about to do, a forward, a backward, a step of an optimizer whose state is divided, or nothing
more, since its data are used up. Who has joined answers calls until nobody does anything more, and
takes part in what others say they do. So ranks may have any numbers of batches, and forwards
without a backward. A collective of the user's own has no roll call: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from numgrad.distributed.group import ProcessGroup
from numgrad.distributed.work import restrictions, wait_until
from numgrad.errors import NumgradRuntimeError

JOINED, FORWARD, BACKWARD, STEP = range(4)
"""What a rank does; ``STEP + k`` is a step of optimizer number k."""
_SAID = ["has no more data", "begins a forward", "begins a backward", "steps an optimizer"]


class Roll:
    """The roll calls of the ranks of a group: Note [Roll calls]."""

    def __init__(self, group: ProcessGroup, comm: Any) -> None:
        self.group, self.comm = group, comm
        self.joined = False
        self.last: list[int] = list(range(group.size))
        """Positions of the ranks that were active at the latest call."""
        self._called = False
        self._by_all = self._strict = True
        self._own = False
        self._active = group.size

    def begin(self, by_all: bool, strict: bool) -> None:
        """Begin to call, in ``join``."""
        if self._called:
            raise NumgradRuntimeError("join: is inside of another join of the same module")
        self._called, self.joined = True, False
        self._by_all, self._strict = by_all, strict
        self.last = list(range(self.group.size))
        restrictions.append(self._refuse)

    def end(self) -> None:
        """Call no more."""
        if self._called:
            restrictions.remove(self._refuse)
        self._called = self.joined = False
        self._active = self.group.size

    @contextmanager
    def own_collectives(self) -> Iterator[None]:
        """A block of collectives in which ranks that have joined take part."""
        before, self._own = self._own, True
        try:
            yield
        finally:
            self._own = before

    def _refuse(self, what: str, group: ProcessGroup) -> None:
        if self._own or not set(group.others) & set(self.group.others):
            return
        raise NumgradRuntimeError(
            f"{what}: is called inside of DistributedDataParallel.join, where a rank that has no "
            "more data would not take part; call it after the block, give optimizers that "
            "communicate to join(optimizers=[...]), or leave join out where all ranks have equally "
            "many batches"
        )

    @property
    def joined_ranks(self) -> list[int]:
        """Positions of the ranks that had no more data at the latest call."""
        return sorted(set(range(self.group.size)) - set(self.last))

    @property
    def divisor(self) -> int:
        """What sums of gradients are divided by."""
        return self.group.size if self._by_all or not self._called else self._active

    def call(self, doing: int) -> int:
        """Say what this rank does, return what the active ones do; ``JOINED`` if there are none."""
        if not self._called:
            return doing
        group = self.group
        every = np.empty(group.size, np.int8)
        request = self.comm.Iallgather(np.array([doing], np.int8), every)
        wait_until(request.Test, "join", group.others, group.timeout, group.world_size)
        active = np.flatnonzero(every).tolist()
        if active:
            self.last, self._active = active, len(active)
        found = set(every[active].tolist())
        joined = len(active) < group.size
        if len(found) > 1 or (self._strict and joined and active):
            said = "; ".join(
                f"rank {rank} {_SAID[min(int(what), STEP)]}"
                for rank, what in zip(group.ranks, every, strict=True)
            )
            raise NumgradRuntimeError(
                f"join: {said}. "
                + (
                    "All that have data must call forward, backward and step alike"
                    if len(found) > 1
                    else "With throw_on_early_termination all ranks stop here"
                )
            )
        return found.pop() if found else JOINED
