"""Data classes that are made quickly are those of ``dataclasses``."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from numgrad.dataclass import dataclass

OPTIONS: list[dict[str, Any]] = [
    {}, {"eq": False}, {"frozen": True}, {"frozen": True, "eq": False}, {"slots": True},
    {"frozen": True, "slots": True}, {"slots": True, "unsafe_hash": True},
]  # fmt: skip


def classes(decorate: Any) -> list[tuple[Any, list[tuple[Any, ...]]]]:
    """Classes so decorated, and arguments of them."""

    @decorate
    class Point:
        x: Any
        y: Any = 2
        note: str = dataclasses.field(default="", compare=False, repr=False)

    @decorate
    class Alone:
        x: Any

    return [(Point, [(1,), (1, 2, "a"), (1, 3), ("x", None)]), (Alone, [(1,), (2,)])]


def outcome(cls: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    items = [cls(*given) for given in arguments]
    result: list[Any] = [[a == b for a in [*items, 1] for b in items], list(map(repr, items))]
    result += [cls.__hash__ is None, cls.__hash__ is object.__hash__, cls.__match_args__]
    if cls.__hash__ not in (None, object.__hash__):
        result.append([hash(a) == hash(b) for a in items for b in items])
    result.append([(f.name, f.compare, f.repr) for f in dataclasses.fields(cls)])
    result.append(dataclasses.astuple(dataclasses.replace(items[0], x=7)))
    return [*result, cls.__dataclass_params__.frozen, cls.__dataclass_params__.eq]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_compare_hash_and_show_as_those_of_dataclasses(options: dict[str, Any]) -> None:
    pairs = zip(
        classes(dataclasses.dataclass(**options)), classes(dataclass(**options)), strict=True
    )
    for theirs, own in pairs:
        assert outcome(*theirs) == outcome(*own)


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that pickle finds."""

    array: Any
    name: str = "a"


def test_arrays_are_the_same_where_they_are_one() -> None:
    array = np.zeros(3)
    assert Kept(array) == Kept(array)
    for again in (pickle.loads(pickle.dumps(Kept(1))), copy.deepcopy(Kept(1))):
        assert again == Kept(1)
        assert hash(again) == hash(Kept(1))
