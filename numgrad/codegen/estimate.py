"""How long a kernel takes in one thread: its arithmetic, and the bytes that it moves.

Note [Serial time]
------------------
An estimate decides whether several threads are worth their launch (``threads``), so it has to be
right within a factor of two, on any CPU. Arithmetic is priced per operation, by the emitter of
generated code or by a constant beside a kernel written by hand. A byte that is read or written has
the price of the smallest cache that holds all of them: 50, 30 and 15 GB/s are what loops of one
core of AMD's and Intel's servers reach from the second level, the third, and memory, within that
factor (measured: 40 to 70, 25 to 60, 12 to 22).

Threads share the third level with the rest of the machine, so half of it counts.
"""

from functools import cache
from pathlib import Path

L2_NS, L3_NS, MEMORY_NS = 0.02, 0.035, 0.065
"""Nanoseconds a byte."""
_L2, _L3 = 1 << 20, 16 << 20
"""Bytes of caches where the system does not tell."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def cache_sizes() -> tuple[int, int]:
    """Bytes of a core's second level and of the third one."""
    found: dict[str, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction":
                found[level] = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    second = found.get("2") or _L2
    return second, max(found.get("3") or _L3, second)


def byte_ns(held: float) -> float:
    """The price of a byte for a kernel that reads and writes ``held`` different ones."""
    second, third = cache_sizes()
    return L2_NS if held <= second else L3_NS if held <= third / 2 else MEMORY_NS


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
