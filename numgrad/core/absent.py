"""What is said about a name that PyTorch has and numgrad has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from numgrad.errors import NumgradAttributeError


def absent(module: str, names: Iterable[str], instead: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` of a module: it raises, and names what comes nearest or says why.

    Parameters
    ----------
    module
        Its name.
    names
        What it has.
    instead
        Names, or beginnings of names with a ``*`` behind, and what to do without them.
    """

    def __getattr__(name: str) -> Any:
        told = instead.get(name) or next(
            (text for start, text in instead.items() if start[-1] == "*" and _begins(name, start)),
            None,
        )
        if told is None and name[:1] != "_":
            close = get_close_matches(name, names, 1, 0.75)
            told = f"the nearest is {close[0]}" if close else "nothing comes near it"
        raise NumgradAttributeError(
            f"module {module!r} has no attribute {name!r}" + (f": {told}" if told else ""),
            name=name,
        )

    return __getattr__


def _begins(name: str, start: str) -> bool:
    return name.startswith(start[:-1])
