"""When hot paths in machine code come into use, in place of those in Python.

Note [Hot paths]
----------------
What every small operation and every node of a backward goes through is there twice: in Python, and
in machine code (``codegen.native.builtin``) that does the most common case of it three to four
times as fast. To load that takes two milliseconds; to make it, which is done once for all programs,
a quarter of a second, and short programs are not to wait for it. So it is loaded when the first
kernel has been, and made after ``ENOUGH`` times that Python did what it could have done. Where
machine code cannot read objects (Note [Known versions] in ``native.layout``), all stays with
Python, which gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numgrad.codegen import compile as door
from numgrad.codegen.hosted import tell
from numgrad.codegen.interrupts import deferred
from numgrad.codegen.locks import KERNELS, give_way

ENOUGH = 50
"""Calls that Python has done when machine code is made for further ones."""
_asked = 0


class HotPath(NamedTuple):
    """Machine code that is not in use yet: whether it is on disk, and what puts it to use."""

    cached: Callable[[], bool]
    install: Callable[[], None]


waiting: list[HotPath] = []
"""Those that are not in use yet; who does in Python what they could do says so: ``asked``."""


def asked() -> None:
    """Python did what machine code could do, were it in use."""
    global _asked
    if not door.has_loaded():
        return
    _asked += 1
    if _asked == 1:
        install(only_cached=True)
    elif _asked >= ENOUGH:
        install()


def install(*, only_cached: bool = False) -> None:
    """Put machine code to use; what is not on disk is made now, or left where it is."""
    from numgrad.codegen.native import layout

    give_way()
    with KERNELS, deferred():
        if not layout.is_readable():
            waiting.clear()
        for path in list(waiting):
            waiting.remove(path)
            try:
                if only_cached and not path.cached():
                    waiting.append(path)
                else:
                    path.install()
            except Exception as error:  # whatever it is: Python does without
                tell(f"a hot path stays in Python, machine code of it cannot be made: {error}")
