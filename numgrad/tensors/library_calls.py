"""Which function of another library asked for the numbers of a Tensor, for errors.

SciPy's and pandas' functions convert what they are given to ndarrays, somewhere deep inside. The
error is about the function that the user called, and names ours that does the same with gradients.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import takewhile
from types import FrameType, FunctionType

import numpy as np

from numgrad.tensors.equivalents import EXPRESSIONS, hint

_LIBRARIES = frozenset(
    {"matplotlib", "numpy", "pandas", "scipy", "sklearn", "statsmodels", "xarray"}
)
_ONE_ROOM = ("pandas", "xarray")
"""Libraries whose users import everything from the top."""
_WRAPPED = ("f", "fun", "func", "function", "hypotest_fun_in")
"""By which names functions around functions know these."""


def library_call() -> tuple[str, str | None] | None:
    """The function of another library that is running, and what to do instead; None if none is.

    The latter is None where what is said of any conversion is right, and empty where there is
    nothing to do but to go without gradients.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) == "numgrad":
        frame = frame.f_back
    frames: list[FrameType] = []
    while frame is not None and _package(frame) in _LIBRARIES:
        frames.append(frame)
        frame = frame.f_back
    called = [f for f in reversed(frames) if _package(f) == _package(frames[-1])]
    for home, name in (found for f in called for found in _public(f)):
        return f"{home}.{name}", _instead(home, name)
    return None


def in_solver() -> bool:
    """Whether the caller's caller is a solver of SciPy's that looks at a value of its function.

    What it returns would have the derivatives of its steps, not those of the solution.
    """
    if "scipy.optimize" not in sys.modules:  # a frame costs more
        return False
    return sys._getframe(2).f_globals.get("__name__", "")[:15] == "scipy.optimize."


def _package(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _public(frame: FrameType) -> Iterator[tuple[str, str]]:
    """The module and the name that users know a function by, if it is one of theirs."""
    module, path = frame.f_globals["__name__"], frame.f_code.co_qualname
    owner = frame.f_locals.get("self")
    if "<locals>" in path:  # a function around another
        held = [frame.f_locals.get(name) for name in _WRAPPED]
        inner = next((f for f in held if isinstance(f, FunctionType)), None)
        if inner is None:
            return
        module, path = inner.__module__, inner.__qualname__
    public = list(takewhile(lambda part: part[0] != "_", module.split(".")))
    kind, _, name = path.rpartition(".")
    if kind and owner is not None:
        kind = type(owner).__name__.removesuffix("_gen")
    if public == ["scipy", "stats"] and isinstance(getattr(owner, "name", None), str):
        kind = owner.name  # pyright: ignore[reportOptionalMemberAccess]
    kind = "" if kind.startswith("_") else kind
    own = public[0] == "numpy" and public[1:2] != ["linalg"] and not kind
    if own and name[0] != "_" and hasattr(np, name):
        yield "np", name
    if len(public) < 2 or (public[0] == "numpy" and public[1] != "polynomial"):
        return
    if name == "__init__" and kind:
        name, kind = kind, ""
    if not name.startswith("_") or (kind and name.endswith("__")):
        home = public[0] if public[0] in _ONE_ROOM else ".".join(public)
        yield home, f"{kind}.{name}" if kind else name


def _instead(home: str, name: str) -> str | None:
    if home == "np":  # most take Tensors by themselves, if not in lists
        return hint("numpy", name) if f"numpy.{name}" in EXPRESSIONS else None
    if home == "pandas":
        return "write it with .to_numpy() of frames and columns"
    if home == "xarray":
        return "computing with its .data, which is the Tensor, keeps gradients"
    if home.startswith("matplotlib"):
        return ""  # pictures have no gradients: there is nothing else to write
    return hint(home, name)
