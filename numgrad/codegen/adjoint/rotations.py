"""Integers that a loop permutes: which of several arrays each name is.

Note [Rotations]
----------------
An exchange of arrays, ``u, v = v, u``, is one of integers (Note [Arrays that take turns] in
``statements``). If each iteration of a loop permutes some carried names, their values in iteration
``k`` follow from the cycle that a name is in and from ``k``, so none is kept. And names that stand
for different arrays before the loop do so in all of its iterations, by induction.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from numgrad.codegen.adjoint.representation import (
    Carried,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    Value,
    walk,
)


def cycle_of(loop: KernelLoop, one: Carried) -> list[Value] | None:
    """The values that a name has in the iterations of a loop, in turn, if it permutes its names."""
    by_name = {c.name: c for c in loop.carried}
    starts: list[Value] = []
    at = one
    while at is not one or not starts:
        if not at.moves or len(starts) > len(loop.carried):
            return None
        starts.append(at.start)
        after = by_name.get(at.end) if isinstance(at.end, str) else None
        if after is None:
            return None
        at = after
    return starts


def cycle_text(words: list[str], counter: str) -> str:
    """The value in iteration ``counter``, as a text."""
    text = words[-1]
    for k in range(len(words) - 2, -1, -1):
        text = f"({words[k]} if {counter} % {len(words)} == {k} else {text})"
    return text


def distinct_names(function: KernelFunction) -> set[frozenset[str]]:
    """Pairs of integers, carried by one loop or joined by one branch, that are never equal."""
    reasons: dict[frozenset[str], list[tuple[Value, Value]]] = {}

    def candidate(a: str, b: str, *pairs: tuple[Value, Value]) -> None:
        if function.dtypes[a].kind == "i" and function.dtypes[b].kind == "i":
            reasons[frozenset((a, b))] = list(pairs)

    for s in walk(function.body):
        if isinstance(s, KernelLoop):
            for a, b in combinations(s.carried, 2):
                candidate(a.name, b.name, (a.start, b.start), (a.end, b.end))
                candidate(a.out, b.out, (a.name, b.name))
        elif isinstance(s, KernelBranch):
            for a, b in combinations(s.joined, 2):
                candidate(a[0], b[0], (a[1], b[1]), (a[2], b[2]))
    size = -1
    while size != len(reasons):
        size = len(reasons)
        reasons = {
            names: pairs
            for names, pairs in reasons.items()
            if all(_differ(a, b, reasons) for a, b in pairs)
        }
    return set(reasons)


def _differ(a: Value, b: Value, known: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    return isinstance(a, str) and isinstance(b, str) and frozenset((a, b)) in known
