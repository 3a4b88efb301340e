"""Processes that share the memory of Tensors: ``torch.multiprocessing``.

The module is Python's ``multiprocessing``; processes made by ``fork`` share what ``share_memory_``
moved, as a map of memory without a file. ``spawn`` starts ranks of ``torch.distributed``.
"""

from __future__ import annotations

import mmap
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import *  # noqa: F403 - its names are this module's
from multiprocessing.spawn import get_preparation_data
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError
from numgrad.torch.missing import refuse
from numgrad.torch.wrapping import Tensor


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
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> SpawnContext | None:  # fmt: skip
    """Call ``fn(rank, *args)`` in processes that ``torch.distributed`` connects, by MPI.

    Raises
    ------
    NumgradRuntimeError
        If a rank failed.
    """
    substituted = getattr(sys.modules.get("torch"), "__name__", "") == "numgrad.torch"
    preparation = get_preparation_data("rank")
    del preparation["authkey"]  # of queues, which ranks do not have
    given = preparation, substituted, pickle.dumps((fn, args))
    with tempfile.NamedTemporaryFile("wb", prefix="numgrad-spawn-", delete=False) as file:
        pickle.dump(given, file)
    command = ["launch", "-n", str(nprocs), "-m", "numgrad.torch.spawned", file.name]
    context = SpawnContext(subprocess.Popen([sys.executable, "-m", "numgrad", *command]), file.name)
    if not join:
        return context
    context.join()
    return None


def share_memory(tensor: Tensor) -> Tensor:
    """Move the values of a Tensor to memory that forked processes share."""
    base = tensor._tensor
    array = base._array
    if not is_shared(tensor):
        size = max(array.nbytes, 1)
        shared = np.frombuffer(mmap.mmap(-1, size), array.dtype, array.size).reshape(array.shape)
        shared[...] = array
        base._array = shared
    return tensor


def is_shared(tensor: Tensor) -> bool:
    """Whether forked processes share the values of a Tensor."""
    owner: Any = tensor._tensor._array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(owner, mmap.mmap)


__getattr__ = refuse(globals())
