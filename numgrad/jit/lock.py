"""The lock that is held while anything is traced or written as source."""

from __future__ import annotations

import os
import threading

_lock = threading.RLock()


def tracing() -> threading.RLock:  # pyright: ignore
    """The lock of this process: one thread traces at a time."""
    return _lock


def _renew() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # another thread of the parent may have held it
    os.register_at_fork(after_in_child=_renew)
