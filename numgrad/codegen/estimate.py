"""How long a kernel takes in one thread: its arithmetic, and the bytes that it moves.

Note [Serial time]
------------------
An estimate decides whether several threads are worth their launch (``threads``), so it has to be
right within a factor of two, on any CPU. Arithmetic is priced per operation, by the emitter of
generated code or by a constant beside a kernel written by hand. A byte that is read or written has
the price of the smallest cache that holds all of them. From the second level and the third cores
read and write 25 to 160 GB/s, so that is measured, once a process: what NumPy takes to add two
arrays of a size. Bytes from memory are priced at 15 GB/s (12 to 30 measured).

Threads share the third level with the rest of the machine, so half of it counts.
"""

from functools import cache
from pathlib import Path
from time import perf_counter_ns

import numpy as np

MEMORY_NS = 0.065
"""Nanoseconds a byte from memory, and the most that one from a cache costs."""
L3_NS = 0.035
"""Cost of one from the third level where it is not to be measured: it would show in a text."""
_L2, _L3 = 1 << 20, 16 << 20
"""Bytes of caches where the system does not tell."""
_SOME = 10
"""How many additions are timed; the quickest counts, as others may be interrupted."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def cache_sizes() -> tuple[int, int]:
    """Bytes of a core's second level and of the third one."""
    sizes: dict[str, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction":
                sizes[level] = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    second = sizes.get("2") or _L2
    return second, max(sizes.get("3") or _L3, second)


def byte_ns(held: float) -> float:
    """The price of a byte for a kernel that reads and writes ``held`` different ones."""
    second, third = cache_sizes()
    if held > third / 2:
        return MEMORY_NS
    return moving_ns(second // 2 if held <= second else min(4 * second, third // 2))


@cache
def moving_ns(held: int) -> float:
    """Nanoseconds that a byte takes here in a loop over ``held`` bytes of arrays, measured."""
    a, b, c = np.ones((3, max(held // 24, 1)))
    least = float("inf")
    for _ in range(_SOME):
        begin = perf_counter_ns()
        np.add(a, b, out=c)
        least = min(least, perf_counter_ns() - begin)
    return min(least / (3 * a.nbytes), MEMORY_NS)


def serial_ns(computing_ns: float, moved: float) -> float:
    """Nanoseconds in one thread: Note [Serial time].

    Parameters
    ----------
    computing_ns
        What its arithmetic takes.
    moved
        Bytes that it reads and writes, each once.
    """
    return computing_ns + moved * byte_ns(moved)
