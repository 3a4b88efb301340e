"""mpi4py, the ranks that the launcher of this process announced, and those that fail or leave.

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

import atexit
import os
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numgrad.errors import NumgradRuntimeError

_SIZES = (
    "NUMGRAD_WORLD_SIZE",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "WORLD_SIZE",
)
"""Variables in which launchers give the number of ranks: our own, those of MPIs, of torchrun."""

INSTALL = "python -m pip install 'numgrad-jit[mpi]' (on a cluster: mpi4py for the cluster's MPI)"


def is_mpi_available() -> bool:
    """Whether mpi4py is installed.

    Examples
    --------
    >>> import numgrad as ng
    >>> isinstance(ng.distributed.is_mpi_available(), bool)
    True
    """
    return find_spec("mpi4py") is not None


def announced() -> tuple[str, int]:
    """The variable in which the launcher gave the number of ranks, and that; ("", 1) if none."""
    for name in _SIZES:
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 1:
            return name, int(text)
    return "", 1


def world() -> Any:
    """MPI's communicator of all ranks; None for a process that is by itself.

    Raises
    ------
    NumgradRuntimeError
        If a launcher started several ranks and MPI is not there or does not see them.
    """
    variable, count = announced()
    if not is_mpi_available():
        if count > 1:
            raise NumgradRuntimeError(
                f"init_process_group: the launcher started {count} ranks ({variable}), and mpi4py "
                f"is not installed for {sys.executable}; {INSTALL}"
            )
        return None
    try:
        mpi = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        if count > 1:
            raise NumgradRuntimeError(
                f"init_process_group: the launcher started {count} ranks ({variable}), and mpi4py "
                f"finds no MPI ({str(error).splitlines()[0]}); {INSTALL}"
            ) from error
        return None
    comm = mpi.COMM_WORLD
    if comm.size == 1 and count > 1:
        name, version = mpi.get_vendor()
        raise NumgradRuntimeError(
            f"init_process_group: the launcher started {count} ranks ({variable}={count}), and "
            f"MPI sees one: mpi4py uses {name} {'.'.join(map(str, version))}, the launcher belongs "
            "to another MPI or to none. Start with the mpiexec of that MPI, or with "
            "'python -m numgrad launch', or build mpi4py for the launcher's MPI"
        )
    return comm if comm.size > 1 else None


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
