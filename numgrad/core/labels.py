"""Kinds of objects of other libraries that know their elements by labels."""

from __future__ import annotations

from functools import lru_cache

LABELLED = ("pandas", "polars", "xarray")
"""Libraries of labelled arrays."""


@lru_cache(256)
def labelled_kind(kind: type) -> str | None:
    """Library and class of which a class is, such as ``pandas.Series``; None if of no such one.

    Examples
    --------
    >>> from numgrad.core.labels import labelled_kind
    >>> labelled_kind(list) is None
    True
    """
    for base in kind.__mro__:
        library = base.__module__.partition(".")[0]
        if library in LABELLED:
            return f"{library}.{base.__name__}"
    return None
