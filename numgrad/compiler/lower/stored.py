"""Which terms are stored in memory; the others are computed where they are read.

Note [Repeated terms]
---------------------
Elements beside each other, as of ``y[1:] * y[:-1]``, read a term twice, and a chain of such steps
twice as often with each step. So the ways to a term are counted, from what is stored down, as the
views and choices that lie on them; a term reached in several ways is stored if computing it takes
longer than reading it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence

from numgrad.compiler.lower.terms import (
    CHOOSE,
    CONSTANT,
    GATHER,
    IOTA,
    MATRIX,
    OPAQUE,
    PART,
    PRODUCT,
    REDUCE,
    SCAN,
    SCATTER,
    SIZE,
    VIEW,
    Term,
)

WORTH = 10
"""Simple functions from which on an element is rather read than computed once more."""
EXPENSIVE = 10
"""Simple functions that take as long as an expensive one."""
_MOST_WAYS = 8
_MOST_WORK = 1000

Way = tuple[int, ...]
_WHOLE = (REDUCE, SCATTER, SCAN, PRODUCT, MATRIX)
"""Terms that are stored, as no element of them is computed alone."""


def _repeated(order: Sequence[Term], stored: Collection[int]) -> list[Term]:
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
    if term.in_memory or term.number in stored or term.op in _WHOLE:
        return 0
    inner = sum(work[a.number] for a in term.args)
    own = EXPENSIVE if term.is_expensive else 1 if term.is_map or term.op == CHOOSE else 0
    return min(inner + own, _MOST_WORK)


def _moves(term: Term) -> bool:
    """Whether a term reads its operands at other indices than its own."""
    if term.op == VIEW:
        return term.detail[0] not in ("broadcast", "insert", "drop")
    return term.op in (CHOOSE, GATHER)


DEEP = 100
"""Functions within one another that a body is read through; beyond them a term is stored, which in
the loop where it is read costs nothing."""


def first_stored(roots: Iterable[Term]) -> dict[int, Term]:
    """The terms that have to be stored, by number: results, reductions, operands of other code."""
    found: dict[int, Term] = {t.number: t for t in roots}
    depth: dict[int, int] = {}
    costly: set[int] = set()  # of which computing an element anew takes longer than reading it
    order = reachable(roots)
    for term in order:
        if term.is_expensive or (
            (term.op in (VIEW, CHOOSE, GATHER) or term.is_map)
            and any(a.number in costly for a in term.args)
        ):
            costly.add(term.number)
        below = max((depth[a.number] for a in term.args if a.number not in found), default=0)
        depth[term.number] = below + 1
        if depth[term.number] > DEEP and term.is_map:
            found[term.number] = term
        if term.op in _WHOLE:
            found[term.number] = term
        if term.op in (OPAQUE, PRODUCT):
            found.update((a.number, a) for a in term.args)
        elif term.op == GATHER and term.args[0].number in costly:
            found[term.args[0].number] = term.args[0]
        elif term.op == PART:
            found[term.number] = term
        elif term.op == VIEW and term.detail[0] == "reshape":
            found[term.args[0].number] = term.args[0]
    found.update((t.number, t) for t in _repeated(order, found.keys()))
    return {n: t for n, t in found.items() if not (t.in_memory or t.op in (CONSTANT, SIZE))}


def reachable(roots: Iterable[Term], known: Container[int] = ()) -> list[Term]:
    """Terms that roots depend on and the roots, operands first, except for what is ``known``."""
    order: list[Term] = []
    seen: set[int] = set()
    stack: list[Term | None] = [*roots]
    stack.reverse()
    open_: list[Term] = []  # whose operands are on the stack, above a None
    while stack:
        term = stack.pop()
        if term is None:
            order.append(open_.pop())
            continue
        number = term.number
        if number in seen or number in known:
            continue
        seen.add(number)
        left = [a for a in reversed(term.args) if a.number not in seen]
        if left:
            open_.append(term)
            stack.append(None)
            stack += left
        else:
            order.append(term)
    return order
