"""Choice of the outermost loops whose iterations are computed side by side, in blocks.

Note [Lanes]
------------
An outermost loop may be cut into blocks of iterations that are computed side by side
(``Loop.lanes``), for two reasons. A loop inside may be too short for SIMD: then the index of the
block runs innermost. It does too where elements of the inner loops lie apart and those of the
outermost one beside each other, if results do not depend on an order, as those of ``argmax`` along
the first axis. And what is computed once an iteration may be expensive: then it is computed
for a whole block at once, between loops over the rows of the block (``Loop.rows``). Where the
outermost loop is not cut, as one over tangents is short, loops inside that are long are cut for the
first reason.

Note [Rows of results]
----------------------
Stores from lane to lane, each of which goes to a line of the cache of its own, take longer than
what is stored took to compute: derivatives of examples are arrays with the examples in front. What
nothing else in a block reads, and is made of arrays in memory, is computed row by row instead,
after the loops that it shared, that loop innermost along which its elements are beside each other.

Note [Tiles]
------------
A scan along an axis whose elements lie apart takes up a whole row for each of its steps: that
falls out of the cache before the next step reads it, and where the outermost loop is short threads
find nothing to share. So the innermost loop is cut into tiles (strip mining), which count as
iterations of the outermost one. Rows of a tile do not overlap, so they are written in vectors,
except narrow ones: there each step waits for what the one before has just stored.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import pairwise
from math import prod

from numgrad.codegen.nests.block_products import block_product, extract_products
from numgrad.codegen.nests.loop_tree import Item, Loop, coefficient, is_rounded, paths, touched
from numgrad.codegen.nests.polynomial import Length, value_of
from numgrad.codegen.nests.statements import Bodies, Loops, Statement, expensive
from numgrad.codegen.nests.terms import ONE, SCAN, SCATTER

SHORT = 48
"""Iterations below which an innermost loop does not pay."""
TINY = 4
"""Iterations of innermost loops up to which few of the outermost one are computed side by side."""
SHORT_ROWS = 8, 16, 32
"""The same where most of what it computes is an element that lanes would gather (sums of rows of 30
take a tenth of the time as rows), for reductions of which none, some, all are like ``max``."""
FEWEST = 16
"""The same of a loop that has its elements beside each other, around loops that have not."""
WIDE = 512
"""Elements of an iteration from which a block of them does not stay in a cache."""


TILE = 256
"""Elements of a tile."""


def choose_tiles(top: Loop) -> None:
    """Cut the innermost loop of a scan into tiles, if it is another one: Note [Tiles]."""
    path, items = [top], top.items
    while len(items) == 1 and isinstance(items[0], Loop):
        path.append(items[0])
        items = items[0].items
    inner, statements = path[-1], top.statements()
    along = {u for s in statements for u in (s.scanned, *s.reduced.values())}
    scanned = any(s.scanned is not None for s in statements)
    if len(path) > 2 and len(inner.merged) == 1 and scanned and not along & {top.loop, inner.loop}:
        top.tiled = inner.loop


def choose_lanes(top: Loop, bodies: Bodies, loops: Loops, exported: Collection[int]) -> None:
    """Cut the outermost loop, or loops inside, into blocks where that pays: Note [Lanes].

    ``exported`` are the numbers of the terms that are in memory when the kernel ends.
    """
    _choose_outermost(top, bodies, loops, exported, SHORT)
    if top.lanes or _choose_inside(top, loops):
        return
    if max(_hint(x, loops) for x in _innermost(top)) <= TINY:
        _choose_outermost(top, bodies, loops, exported, FEWEST)


def _choose_inside(around: Loop, loops: Loops) -> bool:
    """Cut loops around short ones in which nothing is carried from an iteration to the next."""
    cut = False
    for loop in around.items:
        if not isinstance(loop, Loop):
            continue
        longest = max(_hint(x, loops) for x in _innermost(loop))
        carried = any(
            s.term.op in (SCAN, SCATTER) or not {*loop.merged}.isdisjoint(s.reduced.values())
            for s in loop.statements()
        )
        if carried or longest >= _shortest_row(loop) or _hint(loop, loops) < SHORT:
            cut = _choose_inside(loop, loops) or cut
        else:
            loop.lanes = cut = True
    return cut


def _choose_outermost(
    top: Loop, bodies: Bodies, loops: Loops, exported: Collection[int], fewest: int
) -> None:
    """Cut the outermost loop into blocks where that pays, one of ``fewest`` iterations or more."""
    children = [item for item in top.items if isinstance(item, Loop)]
    if not children or _hint(top, loops) < FEWEST:
        return
    if _hint(top, loops) < fewest and not _walks_across(top, bodies, loops):
        return
    if any(s.term.op in (SCAN, SCATTER) for s in top.statements()):
        return
    hint = partial(_hint_of, loops)
    multiplies = [
        any(block_product(s, [top, *path], bodies, hint) for s, path in paths(child))
        for child in children
    ]
    across = _is_exact(top) and _walks_across(top, bodies, loops)
    longest = [max(_hint(x, loops) for x in _innermost(child)) for child in children]
    pairs = [*zip(multiplies, longest, strict=True)]
    short = [is_product or across or n < SHORT for is_product, n in pairs]
    rows = not across and not any(multiplies) and min(longest) >= _shortest_row(top)
    if rows and all(_gathers(top, child, bodies, loops) for child in children):
        short = [False for _ in children]
    once = {
        term
        for statement in top.statements()
        for term, needed in expensive(bodies.body(statement), bodies)
        if needed <= set(top.merged)
    }
    inside = sum(_size(child, loops) for child in children)
    if any(short) or (once and inside < WIDE):
        top.lanes = True
        for child, is_short in zip(children, short, strict=True):
            child.rows = not is_short
        extract_products(top, bodies, hint, exported)
        _rows_of_results(top, bodies, loops, exported)


def _shortest_row(top: Loop) -> int:
    """The iterations from which on loops along rows pay."""
    sums = [is_rounded(s.term) for s in top.statements() if s.reduced]
    return SHORT_ROWS[0 if all(sums) else 1 if any(sums) else 2]


def _gathers(top: Loop, inside: Loop, bodies: Bodies, loops: Loops) -> bool:
    """Whether most of what a loop computes is an element that lanes would gather."""
    gathered = 0
    for statement, path in paths(inside):
        for offset in set(touched(statement, bodies)):
            if coefficient(offset, top.loop) in ((), None, ONE):
                continue
            along = (loop for loop in path if coefficient(offset, loop.loop) != ())
            gathered += prod(_hint(loop, loops) for loop in along)
    return 2 * gathered > _size(inside, loops)


def _is_exact(top: Loop) -> bool:
    """Whether reductions have the same result in any order; sums of lanes lose digits if long."""
    reductions = [s.term for s in top.statements() if s.reduced]
    return bool(reductions) and not any(map(is_rounded, reductions))


def _rows_of_results(top: Loop, bodies: Bodies, loops: Loops, exported: Collection[int]) -> None:
    """Take statements out of loops around lanes: Note [Rows of results]."""
    inside = top.statements()
    made = {s.term.number for s in inside}
    read = {symbol.detail[0] for s in inside for symbol in bodies.loads(s)}

    def order(s: Statement, path: list[Loop]) -> list[Loop] | None:
        """The loops that the rows of a statement have, if it is to be taken out."""
        sources = {symbol.detail[0] for symbol in bodies.loads(s)} & made
        if s.reduced or s.small or s.term.number in read or not sources <= set(exported):
            return None
        offset = s.term.offset(s.index)
        steps = [coefficient(offset, loop.loop) for loop in path]
        if (
            coefficient(offset, top.loop) == ONE
            or ONE not in steps
            or expensive(bodies.body(s), bodies)
        ):
            return None
        inner = path[steps.index(ONE)]
        if len(path) < 2 or _hint(inner, loops) < FEWEST:
            return None
        return [*(loop for loop in path if loop is not inner), inner]

    items: list[Item] = []
    for child in top.items:
        items.append(child)
        if not isinstance(child, Loop) or child.rows:
            continue
        by_loops: dict[tuple[int, ...], tuple[Loop, Loop]] = {}
        for s, path in paths(child):
            loops_of_rows = order(s, path)
            if loops_of_rows is None:
                continue
            path[-1].items.remove(s)
            key = tuple([loop.loop for loop in loops_of_rows])
            if key not in by_loops:
                copies = [Loop(loop.loop, loop.length, [], loop.merged) for loop in loops_of_rows]
                for outer, inner in pairwise(copies):
                    outer.items.append(inner)
                copies[0].rows = True
                by_loops[key] = copies[0], copies[-1]
            by_loops[key][1].items.append(s)
        _without_empty(child)
        if not child.items:
            items.pop()
        items += [outermost for outermost, _ in by_loops.values()]
    top.items = items


def _without_empty(loop: Loop) -> None:
    """Drop loops in which nothing is left."""
    for item in loop.items:
        if isinstance(item, Loop):
            _without_empty(item)
    loop.items = [x for x in loop.items if not isinstance(x, Loop) or x.items]


def _walks_across(top: Loop, bodies: Bodies, loops: Loops) -> bool:
    """Whether more elements are beside each other in the outermost loop than in those inside."""
    inside = _within(top)
    balance = 0
    for statement in top.statements():
        for offset in touched(statement, bodies):
            outer = coefficient(offset, top.loop)
            for loop in inside if outer else ():
                inner = coefficient(offset, loop.loop)
                if inner and ONE in (inner, outer) and inner != outer:
                    balance += _hint(loop, loops) if outer == ONE else -_hint(loop, loops)
    return balance > 0


def _within(loop: Loop) -> list[Loop]:
    inner = [item for item in loop.items if isinstance(item, Loop)]
    return [each for item in inner for each in (item, *_within(item))]


def _size(loop: Loop, loops: Loops) -> float:
    """Elements computed inside."""
    inner = sum(_size(item, loops) if isinstance(item, Loop) else 1 for item in loop.items)
    return _hint(loop, loops) * inner


def _hint(loop: Loop, loops: Loops) -> int:
    return _hint_of(loops, loop.length)


def _hint_of(loops: Loops, length: Length) -> int:
    value = value_of(length)
    return value if value is not None else max(loops.hint_of(length), 1)


def _innermost(loop: Loop) -> list[Loop]:
    inner = [item for item in loop.items if isinstance(item, Loop)]
    if not inner:
        return [loop]
    return [each for item in inner for each in _innermost(item)]
