"""Memory of large results that are no longer in use, kept for the next call.

The C library gives blocks above 32 MiB back to the system as soon as they are free, and the next
array of that size is fetched page by page, which takes as long as a pass over it. So a compiled
function keeps the memory of the result that it returned last, for when the caller has let it go.

Note [Leases]
-------------
Such an array lies over a *lease*, which it, and every view of it, keeps alive; the lease gives the
memory back when it dies. Counting references to the array would not do: how many of them a variable
or an argument counts as differs between versions of Python.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

SMALLEST, LARGEST = 32 * 1024 * 1024, 512 * 1024 * 1024
"""Bytes of results that are kept; the C library keeps smaller ones itself."""


class Lease:
    """The right to use some memory: Note [Leases]."""

    __slots__ = ("__array_interface__", "__weakref__", "_free", "_memory")

    def __init__(
        self, memory: np.ndarray, free: list[np.ndarray], shape: tuple, dtype: np.dtype
    ) -> None:
        self._memory, self._free = memory, free
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (memory.ctypes.data, False),
            "version": 3,
        }

    def __del__(self) -> None:
        if not self._free:
            self._free.append(self._memory)


class Reused:
    """Makes the array of one large result."""

    __slots__ = ("_dtype", "_free")

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._free: list[np.ndarray] = []

    def __call__(self, shape: Any) -> np.ndarray:
        """An array of this shape, with whatever is in its memory."""
        size = prod(shape) * self._dtype.itemsize
        if not SMALLEST <= size <= LARGEST:
            return np.empty(shape, self._dtype)
        try:
            memory = self._free.pop()  # no other thread gets the same
        except IndexError:
            memory = None
        if memory is None or memory.nbytes != size:
            memory = np.empty(size, np.uint8)
        return np.asarray(Lease(memory, self._free, tuple(shape), self._dtype))


def owns(array: np.ndarray) -> bool:
    """Whether an array is no view of another one."""
    return array.flags.owndata or type(array.base) is Lease
