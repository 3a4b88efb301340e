"""Processes that share the memory of Tensors: ``torch.multiprocessing``.

The module is Python's ``multiprocessing``; processes made by ``fork`` share what ``share_memory_``
moved, as a map of memory without a file. ``spawn`` starts ranks of ``torch.distributed``.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from multiprocessing import *  # noqa: F403 - its names are this module's
from typing import Any

import numpy as np

from numgrad.distributed import spawning as ranks
from numgrad.distributed.spawning import SpawnContext
from numgrad.torch.missing import refuse
from numgrad.torch.substitution import install
from numgrad.torch.wrapping import Tensor


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> SpawnContext | None:  # fmt: skip
    """Call ``fn(rank, *args)`` in processes that ``torch.distributed`` connects, by MPI."""
    substituted = getattr(sys.modules.get("torch"), "__name__", "") == "numgrad.torch"
    return ranks.spawn(fn, args, nprocs, join, setup=install if substituted else None)


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
