"""Combinations of values, of which the first meet each value: for ``slow(cases=...)``."""

import itertools
from collections.abc import Sequence
from typing import Any


def each_first(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every combination; as many as the longest has values come first, and meet all values."""
    count = max(map(len, values))
    places = list(itertools.product(*(range(len(v)) for v in values)))
    first = [tuple(k % len(v) for v in values) for k in range(count)]
    ordered = [*first, *(place for place in places if place not in first)]
    return [tuple(v[k] for v, k in zip(values, place, strict=True)) for place in ordered]
