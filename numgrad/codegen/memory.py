"""Memory: freed blocks kept for the next array, garbage not collected while a program compiles.

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
from collections.abc import Iterator
from contextlib import contextmanager

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
