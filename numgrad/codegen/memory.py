"""Memory: freed blocks kept for the next array, garbage not collected while a program compiles.

Note [Leases]
-------------
A large array is over a block of the pool (Note [Pool of large blocks] in
``codegen.native.block_pool``). It lies over a *lease*, which it, and every view of it, keeps alive;
the lease gives the block back when it dies. Counting references to the array would not do: how many
of them a variable or an argument counts as differs between versions of Python. ``tracemalloc`` sees
leases as it sees NumPy's arrays.

Note [Sweeps]
-------------
When garbage is collected, and ``SECONDS`` have passed since the last sweep, blocks that were given
before that one and not taken since go back to the system.

Note [Freed memory]
-------------------
glibc returns large blocks to the system when they are freed and fetches them again, page fault by
page fault, for the next array: of the gradient of a chain on 100,000 elements that was two thirds
of the time. Its thresholds are raised once, when the first kernel is loaded, unless the user has
set them. ``NUMGRAD_KEEP_MEMORY=0`` leaves the C library alone; other C libraries are left alone
always.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from numgrad import config
from numgrad.codegen.cpython import c_api
from numgrad.codegen.locks import KERNELS
from numgrad.codegen.native.block_pool import LARGE, on_load

KEPT_BYTES = 256 * 1024 * 1024
"""Freed memory at the end of the heap that is kept."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024  # glibc takes no larger one
_done = False


def keep_freed_memory() -> bool:
    """Raise glibc's thresholds once; return whether that was possible."""
    global _done
    if _done:
        return True
    chosen = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    if os.environ.get("NUMGRAD_KEEP_MEMORY") == "0" or any(map(os.environ.get, chosen)):
        return False
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version") or not hasattr(library, "mallopt"):
        return False
    _done = bool(library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)) and bool(
        library.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    )
    return _done


# ------------------------------------------------------------------------------ large arrays

SECONDS = 5.0
"""Time between two sweeps: Note [Sweeps]."""
_MOST = 1 << 48  # an address
_pool: BlockPool | None = None
_swept = 0.0


class BlockPool(NamedTuple):
    """Functions of the pool for Python, and its counts: bytes in it, the most of them, sweeps."""

    take: Callable[[int, int], int | None]
    give: Callable[[int], None]
    trim: Callable[[int, int], None]
    counts: ctypes.Array[ctypes.c_int64]


class Lease:
    """The right to use a block of the pool: Note [Leases]."""

    __slots__ = ("__array_interface__", "__weakref__", "_place", "_pool")

    def __init__(self, pool: BlockPool, place: int, shape: tuple, dtype: np.dtype) -> None:
        self._pool, self._place = pool, place
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (place, False),
            "version": 3,
        }

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # the machine code may be gone
            c_api.untrace(self._place)
            self._pool.give(self._place)


def allocator(shape: Sequence[int], dtype: np.dtype) -> Callable[[Any, Any], np.ndarray]:
    """The function that makes an array of this shape and dtype, with whatever is in its memory."""
    return large if prod(shape) * dtype.itemsize >= LARGE else np.empty


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """``np.empty``, of the pool if it is large."""
    return allocator(shape, dtype)(shape, dtype)


def zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """``np.zeros``, of the pool if it is large."""
    if prod(shape) * dtype.itemsize < LARGE:
        return np.zeros(shape, dtype)
    return large(shape, dtype, zero=True)


def copied(x: np.ndarray) -> np.ndarray:
    """``x.copy()``, of the pool if ``x`` is large and its axes are in order."""
    if not x.flags.c_contiguous:
        return x.copy(order="K")
    out = empty(x.shape, x.dtype)
    np.copyto(out, x)
    return out


def large(shape: Any, dtype: Any, zero: bool = False) -> np.ndarray:
    """A large array over a block of the pool."""
    shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    size = prod(shape) * np.dtype(dtype).itemsize
    pool = _pool or load_pool()
    place = pool.take(size, zero) if size < _MOST else None
    if place is None:
        return (np.zeros if zero else np.empty)(shape, dtype)  # which raises
    c_api.trace(place, size)
    return np.asarray(Lease(pool, place, shape, np.dtype(dtype)))


def owns(array: np.ndarray) -> bool:
    """Whether an array is no view of another one."""
    return array.flags.owndata or type(array.base) is Lease


def load_pool() -> BlockPool:
    """The pool, loaded if no kernel has needed it."""
    from numgrad.codegen.native import machine

    with KERNELS:
        machine.load_pool()
    assert _pool is not None
    return _pool


def _watch(addresses: dict[str, int]) -> None:
    """Bound the pool by ``config.pool_bytes``."""
    global _pool
    whole, place, call = ctypes.c_int64, ctypes.c_void_p, ctypes.PYFUNCTYPE
    counts = call(place)(addresses["block_counts"])()
    pool = _pool = BlockPool(
        call(place, whole, whole)(addresses["take_block"]),
        call(None, place)(addresses["give_block"]),
        call(None, whole, whole)(addresses["trim_blocks"]),
        (whole * 3).from_address(counts or 0),
    )

    def bound() -> None:
        pool.counts[1] = config.pool_bytes
        pool.trim(1 << 62, config.pool_bytes)

    bound()
    config.on_pool_bytes.append(bound)


on_load.append(_watch)


def _sweep(phase: str, _: dict[str, int]) -> None:
    """Give back what no one took since the last sweep."""
    global _swept
    if phase == "stop" and _pool is not None and _pool.counts[0]:
        now = monotonic()
        if now - _swept >= SECONDS:
            _swept = now
            _pool.trim(_pool.counts[2], 0)
            _pool.counts[2] += 1


gc.callbacks.append(_sweep)


@contextmanager
def collection_later() -> Iterator[None]:
    """Put off the collection of garbage.

    Compiling makes very many small objects that all stay until it is done; looking through them
    again and again takes a fifth of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
