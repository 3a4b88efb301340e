"""Which axes of a reshaped array are made of which axes of the original."""

from __future__ import annotations

from math import prod

from numgrad.compiler.graph.graph import Length, Shape
from numgrad.compiler.graph.shapes import same
from numgrad.compiler.passes.rewriting import is_one

Group = tuple[tuple[int, ...], tuple[int, ...]]


def groups(before: Shape, after: Shape) -> list[Group] | None:
    """Pairs of the shortest runs of axes with equally many elements, in order.

    Axes of length 1 are in no run. None where lengths do not say how the axes correspond.
    """
    left, right = _longer(before), _longer(after)
    found: list[Group] = []
    i = j = 0
    while i < len(left) and j < len(right):
        k, m = i + 1, j + 1
        a, b = before[left[i]], after[right[j]]
        while not same(a, b):
            # the shorter run goes on; which one that is, symbols need not say
            if k == len(left) and m == len(right):
                return None
            if m == len(right) or (k < len(left) and not _is_part(a, right, after, j, m)):
                a, k = a * before[left[k]], k + 1
            else:
                b, m = b * after[right[m]], m + 1
        found.append((tuple(left[i:k]), tuple(right[j:m])))
        i, j = k, m
    return found if i == len(left) and j == len(right) else None


def _longer(shape: Shape) -> list[int]:
    return [a for a, n in enumerate(shape) if not is_one(n)]


def _is_part(a: Length, right: list[int], after: Shape, j: int, m: int) -> bool:
    """Whether some longer run on the right has ``a`` elements."""
    return any(same(a, prod(after[x] for x in right[j:e])) for e in range(m, len(right) + 1))
