"""Sums of products in blocks of lanes, as products of small matrices.

Note [Block products]
---------------------
In a loop cut into lanes (Note [Lanes] in ``lanes``) a product of matrices is one of two kinds: a
sum along a loop around the lanes, of a matrix that is the same in all of them with what is
different in each; or a sum along the lanes themselves, of a column with a row that both differ.
Written as loops, each step reads and stores what it adds to. So where all lengths are worth it, the
product is taken out of the loops that it shares with other statements, what it multiplies is laid
side by side where it is not yet, and ``block_product`` multiplies: Note [Products of blocks] in
``kernels.products.blocks``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from numgrad.codegen.symbols import Symbol
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.lower.access import loops_in
from numgrad.compiler.lower.statements import Bodies, Statement
from numgrad.compiler.lower.terms import FUSED, ONE, REDUCE, ravel
from numgrad.compiler.lower.tree import Loop, coefficient

LEAST = 16
"""Rows, columns and terms of a sum from which on a product is taken out of its loops."""


@dataclass(frozen=True)
class BlockProduct:
    """A statement that is a product: ``sum(matrix[row, k] * values[k, column])``.

    Attributes
    ----------
    rows
        The loop over rows.
    other
        The loop that is summed; the one over columns if ``across``.
    across
        Whether the lanes are summed; else they are the columns.
    """

    statement: Statement
    matrix: Symbol
    values: Symbol
    rows: Loop
    other: Loop
    across: bool


def block_product(
    s: Statement, path: list[Loop], bodies: Bodies, hint: Callable[[Length], int]
) -> BlockProduct | None:
    """What a statement multiplies if it is a product, in the last two loops of its path."""
    if len(path) < 3 or s.term.op != REDUCE or s.term.detail[0] != "sum":
        return None
    body = bodies.body(s)
    if body.detail != FUSED or s.term.dtype.kind != "f":
        return None
    lane, outer, inner = path[0].loop, path[-2], path[-1]
    if any(len(x.merged) > 1 or hint(x.length) < LEAST for x in (outer, inner)):
        return None
    reduced = {u for u in s.reduced.values() if u is not None}
    made = {u for u in s.loops if u is not None}
    for rows, other in ((outer, inner), (inner, outer)):
        across = reduced == {lane} and {rows.loop, other.loop} <= made
        along = reduced == {other.loop} and {rows.loop, lane} <= made
        if not (across or along):
            continue
        for matrix, values in (body.args, body.args[::-1]):
            first, second = _loops_of(matrix), _loops_of(values)
            ours = {rows.loop, other.loop, lane}
            if across:
                fits = first & ours == {rows.loop, lane} and second & ours == {other.loop, lane}
                fits = fits and coefficient(s.term.offset(s.index), other.loop) == ONE
            else:
                fits = first & ours == {rows.loop, other.loop} and _evenly(matrix, first, bodies)
                fits = fits and second & ours == {other.loop, lane}
            if fits:
                return BlockProduct(s, matrix, values, rows, other, across)
    return None


def _loops_of(root: Symbol) -> frozenset[int]:
    """The loops that a value depends on."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = [root]
    while stack:
        symbol = stack.pop()
        if id(symbol) in seen:
            continue
        seen.add(id(symbol))
        if symbol.op == "index":
            found |= loops_in(symbol.detail)
        elif symbol.op == "load":
            index = symbol.detail[1]
            for part in index[1:] if index[:1] == ("flat",) else index:
                found |= loops_in(part)
        stack.extend(symbol.args)
    return frozenset(found)


def _evenly(symbol: Symbol, loops: Collection[int], bodies: Bodies) -> bool:
    """Whether a value is in memory, at places that move evenly with all loops."""
    if symbol.op != "load" or symbol.args:
        return False
    number, index = symbol.detail
    flat = index[:1] == ("flat",)
    offset = index[1] if flat else ravel(bodies.terms[number].shape, index)
    return all(coefficient(offset, u) for u in loops)


def take_apart(
    top: Loop, bodies: Bodies, hint: Callable[[Length], int], exported: Collection[int]
) -> None:
    """Give products loops of their own, in front of those that they shared: Note [Block products].

    What they wait for is computed before, except in loops further inside: then a product stays.
    """

    def visit(path: list[Loop]) -> None:
        around = path[-1]
        items = []
        for item in around.items:
            if isinstance(item, Loop) and not item.rows:
                visit([*path, item])
                items += products(path, item)
                if not item.items:
                    continue
            items.append(item)
        around.items = items

    def products(path: list[Loop], outer: Loop) -> list[Loop]:
        """Loops of the products in a loop, after one of what these wait for."""
        made = {s.term.number: s for s in outer.statements()}
        done: set[int] = set()
        found: list[Loop] = []

        def alone(items: Sequence[Loop | Statement], product: bool) -> None:
            new = Loop(outer.loop, outer.length, list(items), outer.merged, product=product)
            found.append(new)
            done.update(s.term.number for s in new.statements())

        for inner in [x for x in outer.items if isinstance(x, Loop)]:
            for s in [x for x in inner.items if isinstance(x, Statement)]:
                if s.term.number in exported and top.loop in s.loops:
                    continue
                if block_product(s, [*path, outer, inner], bodies, hint) is None:
                    continue
                waits = [x for x in waited_for(s, made) if x.term.number not in done]
                if not all(x in outer.items for x in waits):
                    continue
                first = [x for x in outer.items if x in waits]
                if first:
                    outer.items = [x for x in outer.items if x not in waits]
                    alone(first, product=False)
                inner.items.remove(s)
                alone([Loop(inner.loop, inner.length, [s], inner.merged)], product=True)
            if not inner.items:
                outer.items.remove(inner)
        return found

    def waited_for(s: Statement, made: dict[int, Statement]) -> list[Statement]:
        """The statements, of some, that one reads, and those that these read."""
        waits: list[Statement] = []
        stack = [s]
        while stack:
            for symbol in bodies.loads(stack.pop()):
                x = made.get(symbol.detail[0])
                if x is not None and x not in waits:
                    waits.append(x)
                    stack.append(x)
        return waits

    visit([top])
