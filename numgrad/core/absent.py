"""Errors for names that PyTorch has and numgrad has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from numgrad.errors import NumgradAttributeError


def absent(
    module: str, names: Iterable[str], instead: Mapping[str, str], elsewhere: str = ""
) -> Callable[[str], Any]:
    """``__getattr__`` of a module: it raises, and names what comes nearest or says why.

    Parameters
    ----------
    module
        Its name.
    names
        What it has.
    instead
        Names, or patterns of names, and what to do without them; ``*`` is for what nothing is near.
    elsewhere
        What is said besides.
    """

    def __getattr__(name: str) -> Any:
        told = instead.get(name) or next(
            (text for key, text in instead.items() if len(key) > 1 and fnmatchcase(name, key)), None
        )
        if told is None and name[:1] != "_":
            close = close_matches(name, names, 1, 0.75)
            other = instead.get("*", "nothing comes near it")
            told = f"the nearest is {close[0]}" if close else other
            told += f"; {elsewhere}" if elsewhere else ""
        raise NumgradAttributeError(
            f"module {module!r} has no attribute {name!r}" + (f": {told}" if told else ""),
            name=name,
        )

    return __getattr__


def close_matches(name: str, names: Iterable[str], count: int, share: float) -> list[str]:
    """Close matches by ``difflib``, which is imported when needed: that takes a millisecond."""
    return import_module("difflib").get_close_matches(name, names, count, share)
