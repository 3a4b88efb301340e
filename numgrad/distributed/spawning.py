"""``spawn``: ranks that a program starts itself, for a function of them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import spawn as python
from typing import Any

from numgrad.distributed.launcher import world
from numgrad.errors import NumgradRuntimeError


class SpawnContext:
    """Ranks that were started."""

    def __init__(self, process: subprocess.Popen[bytes], path: str) -> None:
        self._process, self._path = process, path

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the ranks; whether all of them ended.

        Raises
        ------
        NumgradRuntimeError
            If one failed, after it printed its error.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        if os.path.exists(self._path):
            os.unlink(self._path)
        if status:
            raise NumgradRuntimeError(f"spawn: a rank failed with status {status}; see its error")
        return True


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, *,
    setup: Callable[[], Any] | None = None,
) -> SpawnContext | None:  # fmt: skip
    """Call ``fn(rank, *args)`` in new processes, ranks of one launch, which MPI connects.

    Parameters
    ----------
    fn, args
        A function of a module, and what else it gets; both are pickled. The script is imported by
        each rank, so that what it does stands below ``if __name__ == "__main__"``.
    nprocs
        How many ranks there are.
    join
        Whether to wait for them; else a context comes back whose ``join`` does.
    setup
        A function of a module that each rank calls before it imports the script.

    Raises
    ------
    NumgradRuntimeError
        If a rank failed.

    Examples
    --------
    >>> import numgrad as ng
    >>> def work(rank, factor):
    ...     ng.distributed.init_process_group()
    ...     total = ng.full(1, factor * rank)
    ...     ng.distributed.all_reduce(total)
    >>> ng.distributed.spawn(work, (2.0,), nprocs=2)  # doctest: +SKIP
    """
    preparation = python.get_preparation_data("rank")
    del preparation["authkey"]  # of queues, which ranks do not have
    given = setup, preparation, pickle.dumps((fn, args))
    with tempfile.NamedTemporaryFile("wb", prefix="numgrad-spawn-", delete=False) as file:
        pickle.dump(given, file)
    command = ["launch", "-n", str(nprocs), "-m", __name__, file.name]
    context = SpawnContext(subprocess.Popen([sys.executable, "-m", "numgrad", *command]), file.name)
    if not join:
        return context
    context.join()
    return None


def run_rank(path: str) -> None:
    """Call what a file has with the number of this rank, after the main module was imported."""
    with open(path, "rb") as file:
        setup, preparation, call = pickle.load(file)
    if setup is not None:
        setup()
    python.prepare(preparation)
    fn, args = pickle.loads(call)
    comm: Any = world()
    fn(0 if comm is None else comm.rank, *args)


if __name__ == "__main__":
    run_rank(sys.argv[1])
