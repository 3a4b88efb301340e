"""Which files of the kernel library a source depends on."""

import hashlib
import os
import re
from functools import cache

from numgrad.codegen import device
from numgrad.libraries import PACKAGE

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
        pending = {further for path in pending for further in _read(path)[1]} - files
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(_read(path)[0])
    return digest.hexdigest()


@cache
def _read(path: str) -> tuple[bytes, frozenset[str]]:
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
