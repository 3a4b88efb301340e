"""What a function stores around itself while it is traced, to find it there at the next call.

Note [Caches]
-------------
A function may keep what it computes: ``if "w" not in cache: cache["w"] = ...``, ``setdefault``,
``functools.cached_property``. The compiled function has it as a constant, since it was not there
before the trace. So what keys and attributes hold that came during the trace is guarded as it is
then. If it is a traced Tensor, the function is traced again, and told if it uses it; if it is a
generator of random numbers, too, since that goes on where the first call left it. Elements of lists
are left out: a list that the trace appends to is a record of traces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.closure import Captures
from numgrad.compiler.call.content import Content
from numgrad.compiler.call.source import CONTENT, FIXED, IDENTITY, Source
from numgrad.core.abstract import AbstractArray
from numgrad.random import Generator


def made_by_trace(before: Captures) -> list[Source]:
    """Guards of what has come into containers and attributes since ``before``."""
    if not before.has_grown():
        return []
    known = {_key(place): place for place in before.places}
    new: set[int] = set()
    found: list[Source] = []
    for place in Captures(before.roots).places:
        parent = place.parent
        if parent is None or _key(place) in known or place.treatment == FIXED:
            continue
        if isinstance(parent.value, list | deque) and id(parent) not in new:
            continue
        if _key(parent) not in known and id(parent) not in new:
            continue
        new.add(id(place))
        if _is_traced(place.value) or isinstance(place.value, Generator):
            found += _lengths(place, known)
        elif isinstance(place.value, np.ndarray):
            content = Content(place.value, whole=True)
            found.append(replace(place, value=content, treatment=CONTENT))
        elif isinstance(place.value, Tensor):
            found.append(replace(place, treatment=IDENTITY))
        else:
            found.append(place)
    return found


def _key(place: Source) -> tuple[Any, ...]:
    return id(place.holder), place.access, repr(place.key) if place.key is not None else None


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tensor) and isinstance(value._array, AbstractArray)


def _lengths(place: Source, known: dict[tuple[Any, ...], Source]) -> Iterator[Source]:
    """The guards of how many things there were beside something."""
    holder = id(place.holder)
    for before in known.values():
        inside = before.parent is not None and before.is_length
        if inside and holder in (id(before.holder), id(getattr(before.holder, "__dict__", None))):
            yield replace(before, kept=True)
