"""From the terms that a kernel stores to its loops."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numgrad.compiler.lower.lanes import choose_lanes
from numgrad.compiler.lower.statements import (
    Bodies,
    Statement,
    alive_terms,
    expensive,
    make_statements,
)
from numgrad.compiler.lower.terms import Term, Terms
from numgrad.compiler.lower.tree import Item, Loop, build, paths


def arrange(
    terms: Terms, stored: Sequence[Term], exported: Collection[int]
) -> tuple[Bodies, list[Statement], list[Item]]:
    """Statements and loops for stored terms, more of which are stored where that saves work."""
    hint = terms.sizes.hint_of
    kept = list(stored)
    while True:
        statements, loops = make_statements(kept, hint)
        bodies = Bodies(kept)
        alive = alive_terms(statements, bodies, exported)
        if len(alive) < len(kept):
            kept = [t for t in kept if t.number in alive]
            continue
        items = build(statements, bodies, loops)
        for item in items:
            if isinstance(item, Loop):
                choose_lanes(item, bodies, loops, exported)
        more = _worth_keeping(bodies, items)
        if not more:
            return bodies, statements, items
        kept += more


def _worth_keeping(bodies: Bodies, items: Sequence[Item]) -> list[Term]:
    """Expensive terms that would be computed at several places of the same nest."""
    found: dict[int, Term] = {}
    for item in items:
        if not isinstance(item, Loop):
            continue
        seen: dict[int, tuple[int, ...]] = {}
        for statement, path in paths(item):
            body = bodies.body(statement)
            around = {loop for each in path for loop in each.merged}
            for term, needed in expensive(body, bodies):
                place = tuple(map(id, path))
                wasted = bool(around - needed) if path[0].lanes else _again_and_again(path, needed)
                if term.number in bodies.stored:
                    continue  # another term may have the same value at some places
                if wasted or seen.setdefault(term.number, place) != place:
                    found[term.number] = term
    return list(found.values())


def _again_and_again(path: Sequence[Loop], needed: set[int]) -> bool:
    """Whether the innermost loop that a term needs is within one that it does not."""
    needs = [not needed.isdisjoint(each.merged) for each in path]
    first = needs.index(False) if False in needs else len(needs)
    return any(needs[first:])
