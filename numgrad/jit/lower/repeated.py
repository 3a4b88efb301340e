"""Which terms are stored because they would be computed at several indices each time.

Note [Repeated terms]
---------------------
A term that is not stored is computed where it is read. Elements beside each other, as of
``y[1:] * y[:-1]``, read it twice, and a chain of such steps twice as often with each step. So the
ways to a term are counted, from what is stored down, as the views and choices that lie on them; a
term reached in several ways is stored if computing it takes longer than reading it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numgrad.jit.lower.terms import CHOOSE, CONSTANT, GATHER, IOTA, REDUCE, SCAN, SCATTER, SIZE
from numgrad.jit.lower.terms import VIEW, Term

WORTH = 10
"""Simple functions from which on an element is rather read than computed once more."""
EXPENSIVE = 10
"""Simple functions that take as long as an expensive one."""
_MOST_WAYS = 8
_MOST_WORK = 1000

Way = tuple[int, ...]


def repeated(order: Sequence[Term], stored: Collection[int]) -> list[Term]:
    """Terms worth storing, of those in ``order``, operands first; ``stored`` are stored anyway."""
    work: dict[int, int] = {}
    for term in order:
        work[term.number] = _work(term, work, stored)
    ways: dict[int, set[Way]] = {}
    found: list[Term] = []
    for term in reversed(order):
        number = term.number
        known = ways.get(number, set())
        if number not in stored and work[number] * (len(known) - 1) >= WORTH:
            found.append(term)
            known = {()}
        elif number in stored or not known:
            known = {()}
        moved = {(*way, number) for way in known} if _moves(term) else known
        for a in term.args:
            if not a.in_memory and a.op not in (CONSTANT, SIZE, IOTA):
                reached = ways.setdefault(a.number, set())
                if len(reached) < _MOST_WAYS:
                    reached |= moved
    return found


def _work(term: Term, work: dict[int, int], stored: Collection[int]) -> int:
    """Simple functions that computing an element takes."""
    if term.in_memory or term.number in stored or term.op in (REDUCE, SCATTER, SCAN):
        return 0
    inner = sum(work[a.number] for a in term.args)
    own = EXPENSIVE if term.is_expensive else 1 if term.is_map or term.op == CHOOSE else 0
    return min(inner + own, _MOST_WORK)


def _moves(term: Term) -> bool:
    """Whether a term reads its operands at other indices than its own."""
    if term.op == VIEW:
        return term.detail[0] not in ("broadcast", "insert", "drop")
    return term.op in (CHOOSE, GATHER)
