"""Objects of libraries around a function that hold numbers: pandas' and such with arrays.

Their code is taken for constant, but what they hold may be changed in place: a column of a table,
coefficients of a polynomial, what a model was fitted to.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

import numpy as np

from numgrad.compiler.call.content import Content
from numgrad.compiler.call.source import CONTENT, Source, place_of

_MOST = 64
"""Attributes that an object may have to be looked at."""


def of_library(value: Any, names: set[str], *, inner: bool = False) -> Iterator[Source]:
    """The places of numbers in an object of a library; code mentions ``names``.

    One that is ``inner`` is what another hands its work to.
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "pandas" and hasattr(value, "equals"):
        yield Source(Labelled(value), CONTENT, value, "{0}", "[...]")
        return
    found = vars(value) if type(getattr(value, "__dict__", None)) is dict else {}
    if len(found) > _MOST:
        return
    places = [(part, found, f"{{0}}[{name!r}]", name) for name, part in found.items()]
    slots = (
        n for b in kind.__mro__ for n, m in vars(b).items() if isinstance(m, MemberDescriptorType)
    )
    places += [(getattr(value, n, None), value, f"{{0}}.{n}", n) for n in slots]
    for part, holder, access, name in places:
        if type(part) is not np.ndarray or part.dtype.kind not in "biufc":
            if not inner and type(part).__module__.startswith(f"{package}."):
                yield from of_library(part, names, inner=True)
            continue
        if name in names:
            yield place_of(part, holder, access, f".{name}")
        else:
            yield Source(Content(part, whole=True), CONTENT, holder, access, f".{name}")


class Labelled:
    """What a Series, DataFrame or Index of pandas holds: a ``Content`` of its arrays and labels."""

    def __init__(self, found: Any) -> None:
        self.kind: Any = type(found)
        self.attrs = copy.deepcopy(getattr(found, "attrs", None))
        self.labels = _labels(found)
        blocks = blocks_of(found)
        self.blocks: list[Content] | None = None
        self.copy: Any = None
        if blocks is None:
            self.copy = found.copy(deep=True)
        else:
            self.blocks = [Content(block, whole=True) for block in blocks]

    def __call__(self, found: Any) -> bool:
        """Whether what is there now is as good as what was."""
        if type(found) is not self.kind or getattr(found, "attrs", None) != self.attrs:
            return False
        for before, now in zip(self.labels, _labels(found), strict=True):
            if before is not now and not before.equals(now):
                return False
        if self.blocks is None:
            return bool(found.equals(self.copy))
        blocks = blocks_of(found)
        return (
            blocks is not None
            and len(blocks) == len(self.blocks)
            and all(known(block) for known, block in zip(self.blocks, blocks, strict=True))
        )


def _labels(found: Any) -> list[Any]:
    """The indices along the axes; None for an index itself."""
    return list(getattr(found, "axes", ()))


def blocks_of(found: Any) -> list[np.ndarray] | None:
    """The arrays of numbers behind it, if it has no others."""
    arrays = getattr(getattr(found, "_mgr", None), "arrays", None)
    if arrays is None or not all(
        type(a) is np.ndarray and a.dtype.kind in "biufcmM" for a in arrays
    ):
        return None
    return list(arrays)
