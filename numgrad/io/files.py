"""Files that are there whole or not at all.

Note [Files of writers that died]
---------------------------------
A process that is killed while it writes cannot remove its temporary file. A writer therefore holds
a lock on it, which the system releases with the process, and every writer begins by removing the
temporary files beside its own whose lock it can take. Between the creation of a file and its lock
another writer may do so: then the name is gone, and a new one is tried.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_MARK, _END = ".numgrad-", ".tmp"


def write_atomically(path: str | PathLike[str], chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file under another name beside its own, then move it there.

    A reader, or a process that dies in between, finds the old file or the new one. Links are
    followed, permissions of an old file kept; what is no regular file is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as device:
            device.writelines(chunks)
        return
    _remove_left_over(target.parent)
    temporary, file = _new_beside(target)
    try:
        with file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            if os.name == "posix":  # while it is locked
                os.replace(temporary, target)
        if os.name != "posix":  # where an open file cannot be moved
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # only some systems can make the new name last as well
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _new_beside(target: Path) -> tuple[Path, BinaryIO]:
    """A new file in the folder of ``target``, locked: Note [Files of writers that died]."""
    while True:
        # no longer than other names: systems limit them, and Windows whole paths
        path = target.with_name(f"{_MARK}{secrets.token_hex(6)}{_END}")
        try:
            file = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        except OSError as error:  # of the file that was asked for, not of the temporary one
            raise type(error)(error.errno, error.strerror, str(target)) from None
        if not _locked(file.fileno()) or path.exists():
            return path, file
        file.close()


def _locked(file: int) -> bool:
    """Whether a file is locked for us now; never where the system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_left_over(folder: Path) -> None:
    """Remove temporary files whose writer is gone: Note [Files of writers that died]."""
    with suppress(OSError):
        for path in folder.glob(f"{_MARK}*{_END}"):
            with suppress(OSError), open(path, "rb") as file:
                if _locked(file.fileno()):
                    path.unlink(missing_ok=True)
