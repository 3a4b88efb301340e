"""Switch from the Python form of hot paths to machine code, once they are hot.

Note [Hot paths]
----------------
Every small operation and every node of a backward goes through one of two forms of the same code:
in Python, and in machine code (``builtin``) that does the most common case of it three to four
times as fast. To load that takes two milliseconds; to make it, which is done once for all programs,
a quarter of a second, and short programs are not to wait for it. So it is loaded when the first
kernel has been, and made after ``ENOUGH`` times that Python did what it could have done. Where
machine code cannot read objects (Note [Known versions] in ``offsets``), or the user's setting
forbids it (``ng.config.machine_code``), all stays with Python, which gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numgrad import config
from numgrad.codegen import compile as compiler
from numgrad.codegen.compile import tell
from numgrad.codegen.locks import KERNELS, deferred, give_way

ENOUGH = 50
"""Calls that Python has done when machine code is made for further ones."""
_calls = 0


class HotPath(NamedTuple):
    """Machine code that is not in use yet: whether it is on disk, and what puts it to use."""

    cached: Callable[[], bool]
    install: Callable[[], None]


waiting: list[HotPath] = []
"""Hot paths not in use yet; their Python forms count calls: ``count_call``."""


def enabled() -> bool:
    """Whether the user lets machine code do calls: ``ng.config.machine_code``."""
    return config.machine_code


def on_switch(function: Callable[[], None]) -> None:
    """Call a function whenever the user's setting changes, and now."""
    config.on_machine_code.append(function)
    function()


def count_call() -> None:
    """Count a call that Python did and machine code could do, were it in use."""
    global _calls
    if not (config.machine_code and compiler.has_loaded()):
        return
    _calls += 1
    if _calls == 1:
        install(only_cached=True)
    elif _calls >= ENOUGH:
        install()


def install(*, only_cached: bool = False) -> None:
    """Put machine code to use; what is not on disk is made now, or left where it is."""
    from numgrad.codegen.cpython import offsets

    give_way()
    with KERNELS, deferred():
        if offsets.unknown():
            waiting.clear()
        if not offsets.is_readable():
            return
        for path in list(waiting):
            waiting.remove(path)
            try:
                if only_cached and not path.cached():
                    waiting.append(path)
                else:
                    path.install()
            except Exception as error:  # whatever it is: Python does without
                tell(f"a hot path stays in Python, machine code of it cannot be made: {error}")
