"""Ranks that fail or leave: the others must not wait for them.

Note [Ranks that go]
--------------------
MPI has no word for a rank that is gone: whoever waits for it waits forever. There are three ways
to go. A rank that *dies* (a signal) is seen by the launcher, which ends the others. A rank that
*raises* prints its number and its error, leaves its status in its note for ``numgrad launch``
(that of ``MPI_Abort`` can get lost; it is 1, or the number that ``sys.exit`` was given), and aborts
all ranks. A rank that *leaves*, by the end of its script or ``sys.exit``, says farewell to the next
rank; who finds the farewell of a member of its group while it waits for that group raises, and so
aborts all. The farewell is received by all who leave themselves, so that the end of a program is
where all ranks meet.
"""

from __future__ import annotations

import atexit
import sys
import time
from pathlib import Path
from typing import Any

GRACE = 5.0
"""Seconds in which what a rank sent before it left must arrive."""


class Farewells:
    """The messages by which ranks leave, on a communicator of their own."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self.note: Path | None = None
        self.failed = False
        self.previous = (comm.rank - 1) % comm.size
        self._next = (comm.rank + 1) % comm.size
        self._buffer = bytearray(1)
        self._before = sys.excepthook
        sys.excepthook = self._on_error
        atexit.register(self._leave)

    def left(self) -> bool:
        """Whether the rank before this one has left."""
        return self.comm.Iprobe(source=self.previous)

    def abort(self, kind: type, error: BaseException, trace: Any) -> None:
        """Print an error with the number of this rank, end all ranks."""
        self.failed = True
        rank, size = self.comm.rank, self.comm.size
        sys.stdout.flush()
        # in one piece, since others may write at the same time
        sys.stderr.write(f"rank {rank} of {size} failed with {kind.__name__}: {error}\n")
        if not issubclass(kind, SystemExit):  # whose place tells nothing
            self._before(kind, error, trace)  # pyright: ignore[reportArgumentType]
        sys.stderr.flush()
        code = status_of(error)
        if self.note is not None:
            self.note.write_text(f"{rank} {code}", encoding="utf-8")
        self.comm.Abort(code)

    def _on_error(self, kind: type, error: BaseException, trace: Any) -> None:
        self.abort(kind, error, trace)

    def _leave(self) -> None:
        if self.failed:
            return
        sys.stdout.flush()
        requests = [
            self.comm.Isend(bytearray(1), dest=self._next),
            self.comm.Irecv(self._buffer, source=self.previous),
        ]
        pause = 0.0
        while not all(request.Test() for request in requests):
            time.sleep(pause)
            pause = min(0.01, pause + 1e-4)


def status_of(error: BaseException) -> int:
    """The status with which an error ends its process: not zero, since others are waiting."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code & 0xFF or 1
    return 130 if isinstance(error, KeyboardInterrupt) else 1


_farewells: Farewells | None = None


def watch(comm: Any) -> Farewells:
    """Begin to watch over the ranks of the world, once a process."""
    global _farewells
    if _farewells is None:
        _farewells = Farewells(comm)
    return _farewells


def farewells() -> Farewells | None:
    """Watcher over the ranks, if there are several."""
    return _farewells
