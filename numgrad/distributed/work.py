"""Handles of communication, and how a rank waits for it.

Note [Agreement]
----------------
MPI does not look whether all ranks call the same operation with the same shapes: where they do not,
numbers are wrong, or all hang. A collective therefore begins with one of 16 bytes: the smallest and
the largest hash of a description of the call. If these are equal on all ranks, its data are sent;
if not, the descriptions are gathered, and all ranks raise the same error. This costs one latency
(4 us between two processes of one machine). What has proved equal before, such as the buckets of
``DistributedDataParallel``, goes without.

An asynchronous operation sends its data when somebody looks at it after its ranks have agreed. All
ranks send in the order in which operations were called: those before it are looked at first.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from numgrad.distributed.launcher import GRACE, farewells
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.profiler.notes import record_collective

_pass_on: Callable[[], Any] = getattr(os, "sched_yield", partial(time.sleep, 0))
"""Lets another process have this CPU."""
_WIDTH = 256
"""Bytes of a description that is shown to others."""


def seconds_of(name: str, timeout: Any) -> float:
    """A timeout, a number of seconds or a ``datetime.timedelta``, in seconds."""
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise NumgradTypeError(
            f"{name}: timeout is a number of seconds or a timedelta, got {timeout!r}"
        )
    if not seconds > 0:
        raise NumgradValueError(f"{name}: timeout is above 0 seconds, got {timeout!r}")
    return float(seconds)


def wait_until(
    done: Callable[[], bool],
    what: str,
    ranks: Sequence[int],
    timeout: float,
    size: int,
    moving: Callable[[], bool] = bool,
    moved: tuple[int, int] = (0, 0),
) -> None:
    """Return when ``done()`` is true, which lets MPI make progress; profiles note the time.

    Parameters
    ----------
    what
        The operation, for errors.
    ranks
        The ranks of the world that are waited for.
    timeout
        Seconds.
    size
        The number of ranks of the world.
    moving
        Whether all are there and data move, which they do only while somebody asks: then this
        asks without pause. Until then it sleeps for a twentieth of the time that it has waited,
        since others may need this CPU to get there.
    moved
        Bytes that this rank receives and sends, for profiles.

    Raises
    ------
    NumgradRuntimeError
        After the timeout, or if a rank that is waited for has left: Note [Ranks that go].
    """
    with record_collective(what, *moved):
        _wait_until(done, what, ranks, timeout, size, moving)


progressing: list[Callable[[], Any]] = []
"""Functions that any wait of this process calls too: they move on messages to be received."""


def progress_all() -> None:
    """Move on what does not move by itself."""
    for move in [*progressing]:
        move()


def _wait_until(
    done: Callable[[], bool],
    what: str,
    ranks: Sequence[int],
    timeout: float,
    size: int,
    moving: Callable[[], bool],
) -> None:
    for _ in range(200):
        if done():
            return
        progress_all()
    began = time.monotonic()
    look, gone = began + 0.2, None
    watched = farewells()
    while not done():
        now = time.monotonic()
        progress_all()
        if moving():
            _pass_on()
        else:
            time.sleep(min(1e-3, (now - began) / 20))
        if now < look:
            continue
        look = now + 0.2
        if now - began > timeout:
            raise NumgradRuntimeError(
                f"{what}: waited {timeout:g} s for {_named(ranks)} of {size}; is one of them "
                "stuck, or does it not call this? init_process_group(timeout=...) sets how long to "
                "wait"
            )
        if watched is not None and watched.previous in ranks and watched.left():
            gone = gone or now
            if now - gone > GRACE:
                raise NumgradRuntimeError(
                    f"{what}: rank {watched.previous} of {size} has ended its program and will not "
                    "take part; all ranks must call the same collectives (see "
                    "DistributedDataParallel.join for uneven data)"
                )


def _named(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


restrictions: list[Callable[[str, Any], None]] = []
"""Functions that may refuse a collective of a group before it begins, as ``join`` does."""


def check_allowed(what: str, group: Any) -> None:
    """Raise if a collective of a group must not be called now."""
    for check in restrictions:
        check(what, group)


class CollectiveWork:
    """Handle that an asynchronous operation returns.

    The arrays belong to the operation until ``wait`` returns.
    """

    def __init__(
        self,
        group: Any,
        what: str,
        post: Callable[[], Any],
        finish: Callable[[], None] | None = None,
        *,
        agree: bool = True,
        moved: tuple[int, int] = (0, 0),
    ) -> None:
        check_allowed(what, group)
        self.what, self._moved = what, moved
        self._group, self._post, self._finish = group, post, finish
        self._request: Any = None
        self._agreement = _Agreement(group, what) if agree else None
        self._done = False
        group.pending.append(self)
        group.progress()

    def is_completed(self) -> bool:
        """Whether the operation is done, without waiting for it."""
        if self._done:
            return True
        self._group.progress()
        progress_all()
        if self._request is None or not self._request.Test():
            return False
        self._done = True
        if self._finish is not None:
            self._finish()
        self._finish = None
        return True

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the operation is done; returns True.

        Parameters
        ----------
        timeout : float or datetime.timedelta, optional
            Seconds, by default those of the group.

        Raises
        ------
        NumgradRuntimeError
            If ranks call different operations, one has left, or the timeout is over.
        """
        group = self._group
        seconds = group.timeout if timeout is None else seconds_of("wait", timeout)
        if not self._done:
            size = group.world_size
            wait_until(
                self.is_completed, self.what, group.others, seconds, size, self._moves, self._moved
            )
        return True

    def _moves(self) -> bool:
        return self._request is not None

    def begun(self) -> bool:
        """Whether the data are on their way; begins it where ranks have agreed."""
        if self._request is None:
            if self._agreement is not None and not self._agreement.reached():
                return False
            self._request = self._post()
        return True


class _Agreement:
    """Whether all ranks of a group call the same: Note [Agreement]."""

    def __init__(self, group: Any, what: str) -> None:
        self.group, self.what = group, what
        number = int.from_bytes(blake2b(what.encode(), digest_size=7).digest(), "big")
        self._numbers = np.array([number, -number])
        self._number = number
        mpi = group.mpi
        self._request = group.control.Iallreduce(mpi.IN_PLACE, self._numbers, mpi.MAX)

    def reached(self) -> bool:
        """False while others are missing; raises if they call something else."""
        if not self._request.Test():
            return False
        largest, smallest = self._numbers
        if largest != self._number or -smallest != self._number:
            self._explain()
        return True

    def _explain(self) -> None:
        group = self.group
        mine = np.zeros(_WIDTH, np.uint8)
        text = self.what.encode()[:_WIDTH]
        mine[: len(text)] = np.frombuffer(text, np.uint8)
        every = np.empty((group.size, _WIDTH), np.uint8)
        request = group.control.Iallgather(mine, every)
        wait_until(request.Test, self.what, group.others, group.timeout, group.world_size)
        said: dict[str, list[int]] = {}
        for rank, row in zip(group.ranks, every, strict=True):
            said.setdefault(row.tobytes().rstrip(b"\0").decode(errors="replace"), []).append(rank)
        calls = "; ".join(f"{_named(ranks)}: {what}" for what, ranks in said.items())
        raise NumgradRuntimeError(
            f"ranks call different collectives, nothing was sent. {calls}. All ranks of a group "
            "must call the same ones in the same order with equal shapes and dtypes"
        )


class DoneWork(CollectiveWork):
    """Handle of an asynchronous operation that had nothing to wait for."""

    def __init__(self, what: str) -> None:
        self.what, self._done = what, True

    def wait(self, timeout: Any = None) -> bool:
        """Return True."""
        return True


class Pending:
    """The operations of a group that are not yet on their way, in the order of their calls."""

    def __init__(self) -> None:
        self.queue: deque[CollectiveWork] = deque()

    def append(self, work: CollectiveWork) -> None:
        """Enter one that was just called."""
        self.queue.append(work)

    def progress(self) -> None:
        """Begin those that can begin; one that ranks do not agree on is given up."""
        while self.queue:
            try:
                if not self.queue[0].begun():
                    return
            except NumgradRuntimeError:
                self.queue.popleft()
                raise
            self.queue.popleft()
