"""Where Python's objects and NumPy's arrays have their parts, and whether machine code reads them.

Note [Known versions]
---------------------
Machine code that handles Python's objects is tested with the versions of Python listed here. With
another one, in a build without the global lock, or if an object at hand lies otherwise in memory,
the same work is done in Python: with the same results, a few microseconds later a call. So it is
where ``ng.config.machine_code`` is False.
"""

import ctypes
import struct
import sys
from functools import cache
from typing import Any

import numpy as np

from numgrad import config

KNOWN = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))
"""Versions of CPython whose objects and instructions (``core.bytecode``) are known."""

HEAD = object.__basicsize__
"""Bytes that all objects begin with."""
TYPE = HEAD - 8
"""Where an object has its type: at the end of what all objects begin with."""
DATA, RANK, LENGTHS, STRIDES, BASE, DTYPE, FLAGS = (HEAD + at for at in (0, 8, 16, 24, 32, 40, 48))
"""Where an array has its fields."""
FIELDS = {
    "type": TYPE, "data": DATA, "rank": RANK, "lengths": LENGTHS, "base": BASE, "dtype": DTYPE,
    "flags": FLAGS, "strides": STRIDES,
}  # fmt: skip
"""These by name."""
ITEMSIZE = HEAD + 24
"""Where a dtype has the size of its elements."""
SCALAR, ORDER = HEAD, HEAD + 10
"""Where a dtype has its scalar type and its byte order."""
LIST_ITEMS = HEAD + 8
"""Where a list has the address of its elements."""
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""Flags of an array."""
BYTES = bytes.__basicsize__ - 1
"""Where a bytes object has its first byte."""
SIZE = HEAD
"""Where a tuple has its length."""
TUPLE = tuple.__basicsize__
"""Where a tuple has its first element."""


def is_readable() -> bool:
    """Whether machine code may handle objects and arrays of this interpreter."""
    return not obstacle()


def obstacle() -> str:
    """The reason not to handle objects in machine code, or nothing: Note [Known versions]."""
    if not config.machine_code:
        return "ng.config.machine_code is False, as NUMGRAD_MACHINE_CODE=0 sets it"
    return unknown()


@cache
def unknown() -> str:
    """The reason why machine code cannot handle this interpreter's objects; empty if it can."""
    version = "{}.{}".format(*sys.version_info)
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in KNOWN:
        first, last = ("{}.{}".format(*v) for v in (KNOWN[0], KNOWN[-1]))
        return f"{sys.implementation.name} {version} is none of the known ones, {first} to {last}"
    if "free-threading" in sys.version:
        return f"Python {version} is a build without the global lock"
    if not (_objects_are_as_read() and _arrays_are_as_read()):
        return f"Python {version} or NumPy {np.__version__} keep their objects in another way"
    return ""


def slots(cls: Any) -> dict[str, int]:
    """How far behind its address an object of a class has each of its ``__slots__``.

    Raises
    ------
    ValueError
        If that cannot be seen.
    """
    probe, marker, size = cls.__new__(cls), object(), cls.__basicsize__
    offsets = {}
    for name in cls.__slots__:
        if name in ("__weakref__", "__dict__"):
            continue
        slot = vars(cls)[name]
        slot.__set__(probe, marker)
        words = struct.unpack(f"{size // 8}q", ctypes.string_at(id(probe), size))
        offsets[name] = 8 * words.index(id(marker))
        slot.__delete__(probe)
    return offsets


def _objects_are_as_read() -> bool:
    if struct.calcsize("P") != 8:
        return False
    word, pair = b"numgrad_", (object(), object())
    held = struct.unpack("2q", ctypes.string_at(id(pair) + TUPLE, 16))
    count = struct.unpack("q", ctypes.string_at(id(pair) + SIZE, 8))
    held_as_read = held == tuple(map(id, pair)) and count == (2,)
    return held_as_read and ctypes.string_at(id(word) + BYTES, 8) == word


def _arrays_are_as_read() -> bool:
    if np.ndarray.__basicsize__ < FLAGS + 4:
        return False
    array = np.zeros((3, 5), np.complex64)[:, ::2]

    def word(address: int, kind: str = "q") -> int:
        return struct.unpack(kind, ctypes.string_at(address, struct.calcsize(kind)))[0]

    at = id(array)
    return (
        word(at + TYPE) == id(np.ndarray)
        and word(at + DATA) == array.__array_interface__["data"][0]
        and word(at + RANK, "i") == 2
        and word(at + BASE) == id(array.base)
        and word(at + DTYPE) == id(array.dtype)
        and word(at + FLAGS, "i") == array.flags.num
        and word(id(array.dtype) + ITEMSIZE) == 8
        and [word(word(at + LENGTHS) + 8 * axis) for axis in range(2)] == list(array.shape)
        and [word(word(at + STRIDES) + 8 * axis) for axis in range(2)] == list(array.strides)
    )
