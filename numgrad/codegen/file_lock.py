"""One process at a time: locks on a file, which the system releases when a process ends.

All locks are in one file, a byte for each name, since files of their own would have to be removed
by somebody. A process that is stopped with a lock held delays others for ``PATIENCE`` seconds.
Where locks do not work (some network file systems, a directory that cannot be written to),
processes go on without, and work is done twice.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

NAME = ".lock"
PATIENCE = 60.0
_SHORTEST, _LONGEST = 0.002, 0.02
"""Seconds between two tries."""


@contextmanager
def held(path: Path | None, name: str) -> Iterator[None]:
    """Hold the lock of this name in the file at ``path``, if it can be had."""
    try:
        file = None if path is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        file = None
    if file is None:
        yield
        return
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:3])
    taken = False
    try:
        taken = _wait(file, byte)
        yield
    finally:
        if taken and fcntl is None:  # which closing the file does later
            _windows_lock(file, byte, msvcrt.LK_UNLCK)
        os.close(file)


def _wait(file: int, byte: int) -> bool:
    """Lock one byte, which need not be in the file; return whether that worked."""
    end = time.monotonic() + PATIENCE
    pause = _SHORTEST
    while time.monotonic() < end:
        try:
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            else:
                _windows_lock(file, byte, msvcrt.LK_NBLCK)
            return True
        except (BlockingIOError, PermissionError):  # another process has it
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        except OSError:
            break
    return False


def _windows_lock(file: int, byte: int, mode: int) -> None:
    os.lseek(file, byte, os.SEEK_SET)
    msvcrt.locking(file, mode, 1)
