"""Files of compiled kernels, kept between processes: who may write them, what a source depends on.

Note [Trusted files]
--------------------
A kernel's file is unpickled and its machine code run, so whoever can write it can do all that the
user can. Only what the user or root alone can have written is therefore read: the directory and
each file belong to one of them, and the group and others cannot write to them. A file is judged
when it is open, so it cannot be exchanged in between. Who may rename the directory could put
another one of the user's in its place, so no directory above may be open to everybody, unless only
owners may rename its entries (the sticky bit, as in ``/tmp``). Owners and groups of the directories
above are not judged: homes that a group may write to are common, and that group can already replace
what the user's shell and Python load from there.

What is refused is left alone, with one warning. Kernels that cannot be kept in the directory are
kept in a private temporary one for as long as the process lives. Windows has no such modes: there
the user's ``AppData`` is private, and any other directory is for the user to protect.
"""

import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numgrad.codegen import device, locks
from numgrad.errors import warn
from numgrad.libraries import PACKAGE

_PRIVATE = 0o700
_OPEN_TO_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_DIGEST = hashlib.sha256().digest_size


def root() -> Path:
    """The directory that the user chose, or the usual one of the system."""
    chosen = os.environ.get("NUMGRAD_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "numgrad"


def load(filename: str) -> bytes | None:
    """The content of an intact and trusted file, else None."""
    for directory in (root(), _temporary):
        if directory is not None and _is_trusted(directory):
            content = _read(directory / filename)
            if content is not None:
                digest, payload = content[:_DIGEST], content[_DIGEST:]
                if _digest(filename, payload) == digest:
                    return payload
    return None


def _digest(filename: str, payload: bytes) -> bytes:
    """Digest of a file's content and name: a whole file of another kernel does not match."""
    return hashlib.sha256(filename.encode() + b"\0" + payload).digest()


def save(filename: str, payload: bytes) -> None:
    """Keep a file for :func:`load`."""
    write(filename, _digest(filename, payload) + payload)


def discard(filename: str) -> None:
    """Remove a file that is of no use."""
    for directory in (root(), _temporary):
        try:
            if directory is not None:
                (directory / filename).unlink(missing_ok=True)
        except OSError:
            pass  # another user's


def write(filename: str, content: bytes) -> Path | None:
    """Write a file in one step, or into a temporary directory where that is not possible."""
    for directory in (_made, _temporary_directory):
        try:
            folder = directory()
            if not _is_trusted(folder):
                continue
            handle, partial = tempfile.mkstemp(dir=folder, prefix=".partial-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                _move(partial, folder / filename)
            except BaseException:
                os.unlink(partial)
                raise
            return folder / filename
        except OSError as error:  # not writable or full: the next directory, or none
            if directory is _made:
                why = error.strerror or error
                _warn(
                    root(),
                    f"kernels cannot be kept in {root()} ({why}), so every process compiles them "
                    "anew; make it writable, make room",
                )
    return None


def _move(partial: str, target: Path) -> None:
    """Give a file its name; Windows does not while another process reads one of that name."""
    try:
        os.replace(partial, target)
    except PermissionError:
        if not target.exists():
            raise
        os.unlink(partial)  # the name says what is in a file: the other one has the same


@contextmanager
def by_one_process(stem: str) -> Iterator[None]:
    """Let one process at a time compile a kernel; after waiting, it may be there already."""
    try:
        directory = _made()
        lock = directory / locks.NAME if _is_trusted(directory) else None
    except OSError:
        lock = None
    with locks.held(lock, stem):
        yield


def info() -> dict[str, Any]:
    """Where compiled kernels are kept: ``path``, ``writable``, ``entries`` and ``bytes``.

    ``refused`` says why they are not used, if that is so.
    """
    directory = root()
    try:
        refused = _objection(directory, directory.stat()) or _objection_to_parents(directory)
    except OSError:
        refused = ""
    files = list(directory.glob("*-*.bin")) if directory.is_dir() else []
    nearest = next((p for p in (directory, *directory.parents) if p.exists()), directory)
    return {
        "path": str(directory),
        "writable": os.access(nearest, os.W_OK),
        "refused": refused,
        "entries": len(files),
        "bytes": sum(_size(file) for file in files),
    }


def clear() -> int:
    """Delete every compiled kernel on disk, return how many; kernels in use go on working.

    What other processes hold open stays on Windows, which does not let it be deleted.
    """
    count = 0
    directory = root()
    for pattern in ("*-*.py", "*-*.bin", "*-*.common", ".partial-*", locks.NAME):
        for path in directory.glob(pattern) if directory.is_dir() else ():
            with suppress(PermissionError):
                path.unlink(missing_ok=True)
                count += pattern == "*-*.bin"
    return count


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # another process cleared it
        return 0


# -------------------------------------------------------------------------------- directories


def _made() -> Path:
    """The directory, made now if there is none; like those above that are missing, private."""
    directory = root()
    missing = [path for path in (directory, *directory.parents) if not path.is_dir()]
    for path in reversed(missing):
        path.mkdir(_PRIVATE, exist_ok=True)
    return directory


_temporary: Path | None = None


def _temporary_directory() -> Path:
    """A private directory for this process and its children, removed at exit."""
    global _temporary
    if _temporary is None:
        import atexit
        import shutil

        _temporary = Path(tempfile.mkdtemp(prefix="numgrad-"))
        atexit.register(_remove_temporary, os.getpid(), shutil.rmtree, _temporary)
    return _temporary


def _remove_temporary(owner: int, remove: Callable, path: Path) -> None:
    if os.getpid() == owner:  # a forked child must not take the directory from its parent
        remove(path, ignore_errors=True)


# -------------------------------------------------------------------------------------- trust

_judged: dict[tuple[Any, ...], bool] = {}
"""Directories that were judged, in the state in which they were."""

_warned: set[Any] = set()


def _is_trusted(directory: Path) -> bool:
    """Whether the directory is there and only the user may write to it; says once if others may."""
    try:
        status = directory.stat()
    except OSError:
        return False
    key = (directory, status.st_ino, status.st_uid, status.st_mode)
    trusted = _judged.get(key)
    if trusted is None:
        objection = _objection(directory, status) or _objection_to_parents(directory)
        trusted = _judged[key] = not objection
        if objection:
            _warn(key, f"compiled kernels in {directory} are not used: {objection}")
    return trusted


def _read(path: Path) -> bytes | None:
    """The content of a file, if it is there and only the user may write to it."""
    try:
        with open(path, "rb") as file:
            objection = _objection(path, os.fstat(file.fileno()))
            if not objection:
                return file.read()
    except OSError:
        return None
    _warn(path.parent, f"compiled kernels in {path} are not used: {objection}")
    return None


def _objection(path: Path, status: os.stat_result) -> str:
    """The reason why others than the user may have written a file; empty if they cannot."""
    if sys.platform == "win32":
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user ({status.st_uid}); use a directory of your own"
    if status.st_mode & _OPEN_TO_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        return f"other users may write to it (mode {mode:04o}); run: chmod go-w '{path}'"
    return ""


def _objection_to_parents(directory: Path) -> str:
    """The reason why others may exchange the directory for another one; empty if they cannot."""
    if sys.platform == "win32":
        return ""
    named, real = Path(os.path.abspath(directory)), Path(os.path.realpath(directory))
    for parent in dict.fromkeys((*named.parents, *real.parents)):
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody may rename what is in {parent}; run: chmod o-w '{parent}'"
    return ""


def _warn(key: Any, objection: str) -> None:
    """Warn, once for each key."""
    if key in _warned:
        return
    _warned.add(key)
    warn(f"numgrad: {objection}, or set NUMGRAD_CACHE_DIR to another directory", RuntimeWarning)


# both begin with a literal, which is searched for ten times as fast as the start of a line
_FROM = re.compile(r"from numgrad\.?([.\w]*) import ([^\n(]+|\([^)]*\))")
_WHOLE = re.compile(r"import numgrad\.?([.\w]*)")
_NAME = re.compile(r"\w+")


def library_digest(source: str) -> str:
    """Hash of every file of the package that ``source`` imports, directly or through others.

    The file that says how Numba is to compile is always among them, and the compilers' definitions
    of instructions are beside those.
    """
    files: set[str] = set()
    pending = {os.path.abspath(device.__file__)} | _imported(source)
    while pending:
        files |= pending
        pending = {further for path in pending for further in _content(path)[1]} - files
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(_content(path)[0])
    return digest.hexdigest()


@cache
def _content(path: str) -> tuple[bytes, frozenset[str]]:
    """Digest of a file's content, and the files that it imports."""
    with open(path, "rb") as file:
        content = file.read()
    return hashlib.sha256(content).digest(), frozenset(_imported(content.decode()))


def _imported(source: str) -> set[str]:
    """Files of the modules that ``source`` imports; an ``__init__`` only re-exports."""
    files: set[str] = set()
    for module in _WHOLE.findall(source):
        files.update(_files(module))
    for package, names in _FROM.findall(source):
        files.update(_files(package))
        for name in _NAME.findall(names):
            files.update(_files(f"{package}.{name}"))
    return files


@cache
def _files(module: str) -> tuple[str, ...]:
    """The files of a module of the package, with definitions of instructions that lie beside it."""
    folder, _, name = module.rpartition(".")
    path = os.path.join(PACKAGE, *folder.split("."))
    listed = _listed(path)
    names = (f"{name}{ending}.py" for ending in ("", "_numba", "_native"))
    return tuple([os.path.join(path, file) for file in names if file in listed])


@cache
def _listed(folder: str) -> frozenset[str]:
    """The names in a folder, none if it is not there."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
