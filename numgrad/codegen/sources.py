"""Which files of the kernel library a source depends on."""

import hashlib
import re
from functools import cache
from pathlib import Path

from numgrad.codegen import device
from numgrad.errors import PACKAGE

_IMPORT = re.compile(
    r"^\s*(?:from (numgrad[.\w]*) import ([^\n(]+|\([^)]*\))|import (numgrad[.\w]*))", re.MULTILINE
)


def library_digest(source: str) -> str:
    """Hash of every file of the package that ``source`` imports, directly or through others.

    The file that says how Numba is to compile is always among them, and the compilers' definitions
    of instructions are beside those.
    """
    found: set[Path] = set()
    pending = {Path(device.__file__)} | _imported(source)
    while pending:
        found |= pending
        pending = {further for path in pending for further in _read(path)[1]} - found
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(_read(path)[0])
    return digest.hexdigest()


@cache
def _read(path: Path) -> tuple[bytes, frozenset[Path]]:
    """Digest of a file's content, and the files that it imports."""
    content = path.read_bytes()
    return hashlib.sha256(content).digest(), frozenset(_imported(content.decode()))


def _imported(source: str) -> set[Path]:
    """Files of the modules that ``source`` imports; an ``__init__`` only re-exports."""
    found = set()
    for package, names, module in _IMPORT.findall(source):
        for name in (package or module, *(f"{package}.{n}" for n in re.findall(r"\w+", names))):
            path = Path(PACKAGE).joinpath(*name.split(".")[1:]).with_suffix(".py")
            definitions = (path.with_name(f"{path.stem}_{c}.py") for c in ("numba", "native"))
            found.update(file for file in (path, *definitions) if file.is_file())
    return found
