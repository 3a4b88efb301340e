"""Addresses of many arrays for one kernel: read fast, and given only if every array fits.

Note [Reading addresses]
------------------------
Gradients move at every step, and asking an ndarray for its address takes Python a microsecond. A
kernel reads it where NumPy's C structure keeps it, right behind the head of the object, along with
what must hold for the caller's kernel to run: that it is an ndarray, dtype, contiguity, size. Equal
dtypes may be different objects (those of unpickled arrays are), so scalar type and byte order are
compared. The offsets are compared with what NumPy says once per process; where they differ, or no
object is to be read (``offsets.is_readable``), NumPy is asked each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.cpython import offsets
from numgrad.codegen.dtypes import FLOAT64
from numgrad.errors import NumgradRuntimeError

Copies = list[tuple[np.ndarray, np.ndarray]]


class Addresses(NamedTuple):
    """Where arrays lie that a kernel may read and write, all of them checked."""

    pointers: np.ndarray
    """``pointers[r, t]`` is the address of array ``r`` of tensor ``t``."""
    starts: np.ndarray
    """Where each tensor begins if all are laid end to end, and where the last one ends."""
    total: int
    """The (real) elements of all tensors."""
    arrays: list[np.ndarray]
    """The arrays, which have to live as long as the addresses are used."""
    copies: Copies
    """Arrays that a kernel cannot take as they are, and the copies that stand in for them."""

    def write_back(self) -> None:
        """Bring what a kernel wrote to copies to where it belongs."""
        for array, plain in self.copies:
            array[...] = plain


def addresses(
    arrays: list[np.ndarray], count: int, elements: int, frozen: int, dtype: np.dtype
) -> Addresses | None:
    """The addresses of arrays, unless one of them does not fit: Note [Reading addresses].

    Parameters
    ----------
    arrays
        Array by array, those of all ``count`` tensors.
    elements
        How many arrays of a tensor have one value an element; others are one float64.
    frozen
        Which of them is only read; all others must be writeable. -1 for none.
    dtype
        That of the elements.

    Returns
    -------
    Addresses or None
        None if an array is not contiguous, or not of ``dtype``, or not of the size of its tensor's
        first.
    """
    pointers = np.empty((len(arrays) // count if count else 0, count), np.int64)
    starts = np.empty(count + 1, np.int64)
    reader = _reader() if offsets.is_readable() else None
    if reader is None:
        total = _ask(arrays, elements, frozen, dtype, pointers, starts)
    else:
        total = reader(*_places(arrays, elements, frozen, dtype), pointers, starts)
    return None if total < 0 else Addresses(pointers, starts, total, arrays, [])


def copied_addresses(
    arrays: list[np.ndarray], count: int, elements: int, frozen: int, dtype: np.dtype
) -> Addresses:
    """Addresses as of ``addresses``, with copies of arrays that a kernel cannot take as they are.

    Raises
    ------
    NumgradRuntimeError
        If an array has not the size of its tensor's first, or must be written and cannot.
    """
    plain, copies = [], []
    for k, array in enumerate(arrays):
        target = dtype if k < elements * count else FLOAT64
        copy = np.require(np.asarray(array), target, ("C", "A"))
        if copy is not array and k // count != frozen:
            copies.append((array, copy))
            if not array.flags.writeable:
                copy = array  # which is then refused
        plain.append(copy)
    read = addresses(plain, count, elements, frozen, dtype)
    if read is None:
        shapes = ", ".join(f"{a.shape} {a.dtype}" for a in arrays)
        raise NumgradRuntimeError(
            f"an update of {count} tensors got arrays that do not belong together, or that must "
            f"not be written: {shapes}"
        )
    return read._replace(copies=copies)


_COLLECT = f"""
import numpy as np
from numba import int32, int64, uint8
from numgrad.codegen.intrinsics import peek


def kernel(listed, elements, frozen, kind, element, uniform, scale, pointers, starts):
    items = peek(int64, listed + {offsets.LIST_ITEMS})
    count = pointers.shape[1]
    starts[0] = 0
    for r in range(pointers.shape[0]):
        each = r < elements
        scalar = element if each else uniform
        wanted = {offsets.C_CONTIGUOUS | offsets.ALIGNED | offsets.WRITEABLE}
        if r == frozen:
            wanted = {offsets.C_CONTIGUOUS | offsets.ALIGNED}
        for t in range(count):
            array = peek(int64, items + 8 * (r * count + t))
            if peek(int64, array + {offsets.TYPE}) != kind:
                return -1
            size = 1
            lengths = peek(int64, array + {offsets.LENGTHS})
            for d in range(peek(int32, array + {offsets.RANK})):
                size *= peek(int64, lengths + 8 * d)
            if each:
                size *= scale
            if r == 0:
                starts[t + 1] = starts[t] + size
            dtype = peek(int64, array + {offsets.DTYPE})
            fits = size == (starts[t + 1] - starts[t] if each else 1)
            fits &= peek(int64, dtype + {offsets.SCALAR}) == scalar
            fits &= peek(uint8, dtype + {offsets.ORDER}) == {ord("=")}
            if not fits or peek(int32, array + {offsets.FLAGS}) & wanted != wanted:
                return -1
            pointers[r, t] = peek(int64, array + {offsets.DATA})
    return starts[count]
"""


def _places(arrays: list[np.ndarray], elements: int, frozen: int, dtype: np.dtype) -> tuple:
    """The first arguments of the kernel; of objects their places in memory."""
    scale = 2 if dtype.kind == "c" else 1
    return id(arrays), elements, frozen, id(np.ndarray), id(dtype.type), id(np.float64), scale


@cache
def _reader() -> Callable[..., int] | None:
    """The kernel that reads addresses, unless objects lie otherwise here."""
    signature = f"int64({', '.join(['int64'] * 7)}, int64[:,::1], int64[::1])"
    entry = compile_kernel("collect", _COLLECT, signature).entry
    return entry if _agrees(entry) else None


def _agrees(entry: Callable[..., int]) -> bool:
    """Whether the kernel reads the same of a few arrays as NumPy says."""
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    swapped = np.zeros(3, np.dtype(np.float64).newbyteorder())
    others = (np.zeros(()), np.zeros((3, 2)).T, np.zeros(4, np.float32), frozen, swapped)
    for last in (np.zeros((2, 3)), *others, np.zeros(3).view(np.recarray)):
        arrays, results = [np.zeros((4, 1, 2)), last], []
        for read in (entry, None):
            pointers, starts = np.zeros((1, 2), np.int64), np.zeros(3, np.int64)
            if read is None:
                end = _ask(arrays, 1, -1, FLOAT64, pointers, starts)
            else:
                end = read(*_places(arrays, 1, -1, FLOAT64), pointers, starts)
            results.append((end, pointers.tolist(), starts.tolist()))
        if results[0] != results[1]:
            return False
    return True


def _ask(
    arrays: list[np.ndarray],
    elements: int,
    frozen: int,
    dtype: np.dtype,
    pointers: np.ndarray,
    starts: np.ndarray,
) -> int:
    """Do as the kernel does, by asking NumPy."""
    count = pointers.shape[1]
    starts[0] = 0
    for k, array in enumerate(arrays):
        if type(array) is not np.ndarray:
            return -1
        r, t = divmod(k, count)
        size = array.size * (2 if r < elements and dtype.kind == "c" else 1)
        if r == 0:
            starts[t + 1] = starts[t] + size
        flags = array.flags
        if (
            size != (starts[t + 1] - starts[t] if r < elements else 1)
            or array.dtype != (dtype if r < elements else FLOAT64)
            or not (flags.c_contiguous and flags.aligned and (flags.writeable or r == frozen))
        ):
            return -1
        pointers[r, t] = array.__array_interface__["data"][0]
    return int(starts[count])
