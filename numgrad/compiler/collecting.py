"""Python's search for garbage while a function is compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 50_000
"""Objects made and still there after which Python looks for garbage: a graph keeps what it makes,
so looking after every few hundred took a tenth of the time."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Have Python look for garbage less often, in all threads; if it does not look, it stays so."""
    before = gc.get_threshold()
    seldom = (before[0] and max(before[0], OBJECTS), *before[1:])
    gc.set_threshold(*seldom)
    try:
        yield
    finally:
        if gc.get_threshold() == seldom:  # else somebody has chosen others meanwhile
            gc.set_threshold(*before)
