"""The user's code and that of libraries.

Note [Libraries]
----------------
A library is this package, Python's own code, and what is installed. Its code is taken for constant
and is not searched for what can change, and errors name the user's line that called it. Installed
is what lies in a folder called ``site-packages`` or ``dist-packages``; elsewhere on ``sys.path``,
after ``pip install --target`` or in a zip file, exactly those files that a distribution lists in
its ``RECORD``. So scripts beside them are the user's, and the source of an editable install, which
its record does not list. Of frozen programs, which have neither, names tell. Code in no file, such
as that of a notebook, is the user's.
"""

import gc
import os
import re
import sys
from _thread import RLock  # as in threading, whose import would add 0.6 ms
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

import numpy as _np

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
"""Where numgrad's own code is: the lines that errors and warnings name lie outside."""

LOADING = RLock()
"""Lock held while what names stand for is imported; ``codegen.locks`` tells forks of it."""

_STANDARD = os.path.dirname(getattr(os, "__file__", "<none>/os.py")) + os.sep
_FOLDERS = {"site-packages", "dist-packages"}
_OF_ARRAYS = {
    "dask", "matplotlib", "numba", "numgrad", "numpy", "pandas", "scipy", "sklearn", "xarray",
}  # fmt: skip
_FROZEN = _OF_ARRAYS | {"jax", "llvmlite", "torch"}
"""Libraries that are told by their names in frozen programs."""


@cache
def is_users(file: str) -> bool:
    """Whether code of a file is the user's, and not of a library: Note [Libraries]."""
    if file.startswith(PACKAGE) or is_pythons(file):
        return False
    if frozen := _frozen_module(file):
        return frozen not in _FROZEN
    if file == getattr(sys.modules.get("__main__"), "__file__", None):
        return True
    if not _FOLDERS.isdisjoint(_parts(file)):
        return False
    return not any(
        file[len(folder) :].replace(os.sep, "/") in _installed_in(folder)
        for folder in _importable()
        if file.startswith(folder)
    )


def is_users_module(name: str | None) -> bool:
    """Whether a module of a name is the user's; one in no file is, unless it is part of Python."""
    name = name or ""
    known = name
    while known and known != "__main__":
        module = sys.modules.get(known)
        places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
        if file := next(filter(None, places), None):
            return is_users(file)
        known = known.rpartition(".")[0]
    return name.partition(".")[0] not in sys.stdlib_module_names | {"numgrad"}


@cache
def is_pythons(file: str) -> bool:
    """Whether code of a file is part of Python."""
    if frozen := _frozen_module(file):
        return frozen in sys.stdlib_module_names
    return file.startswith(_STANDARD) and _FOLDERS.isdisjoint(_parts(file[len(_STANDARD) :]))


def is_of_arrays(frame: FrameType) -> bool:
    """Whether code that runs is of this package or another for arrays, which know what they do."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in _OF_ARRAYS or frame.f_code.co_filename.startswith(PACKAGE)


def _parts(file: str) -> list[str]:
    return re.split(r"[\\/]", file)


def _frozen_module(file: str) -> str:
    """The outermost package of code in the interpreter itself or in a program that is frozen."""
    if file.startswith("<frozen "):
        return re.split(r"[.>]", file[8:])[0]
    if not getattr(sys, "frozen", False):
        return ""
    within = file.removeprefix(getattr(sys, "_MEIPASS", "") + os.sep)
    return "" if os.path.isabs(within) else _parts(within)[0].removesuffix(".py")


def _importable() -> Iterator[str]:
    """The folders that modules are imported from, each with a separator at its end."""
    for folder in (*sys.path, os.path.dirname(os.path.dirname(_np.__file__))):
        try:
            yield os.path.join(os.path.abspath(folder), "")
        except OSError:  # the current folder is gone
            continue


@cache
def _installed_in(folder: str) -> frozenset[str]:
    """The files below a folder, or in a zip file, that distributions in it list."""
    try:
        if os.path.isdir(folder) and not any(n.endswith(".dist-info") for n in os.listdir(folder)):
            return frozenset()
    except OSError:  # it cannot be read
        return frozenset()
    from importlib.metadata import distributions  # 15 ms that most programs do without

    records = [d.read_text("RECORD") or "" for d in distributions(path=[folder[:-1]])]
    return frozenset(line.partition(",")[0] for text in records for line in text.splitlines())


@contextmanager
def uncollected() -> Iterator[None]:
    """Import without collecting garbage, which looks at all that was loaded, again and again.

    Nothing that modules make is garbage; looking for it takes a tenth of the time of imports.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
