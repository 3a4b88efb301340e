"""Loop-invariant code motion: values computed before the loop that uses them.

Note [Kept in lanes]
--------------------
What an iteration of a loop around lanes computes, or collects from places in memory apart from each
other, is often the same in each of its iterations. It is then computed before, for all iterations
of the loops inside and all lanes, and kept side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.nests.index_set_splitting import IndexSetSplitting
from numgrad.codegen.nests.indices import loop_index
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply
from numgrad.codegen.nests.statements import loads
from numgrad.codegen.nests.terms import ONE
from numgrad.codegen.nests.tree import Loop, coefficient
from numgrad.codegen.nests.write import text
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.codegen.tasks import LANES

FEW = 4
"""Iterations of a loop from which on what they share is kept."""
MOST_HOISTED = 65536
"""Bytes of a block that are kept."""


class InvariantHoisting(IndexSetSplitting):
    """Writes before a loop what does not change in it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # where values were kept for all lanes, and iterations of loops; ``names`` says which are
        self.in_lanes: dict[Symbol, tuple[str, Length]] = {}

    def _open(self, depth: int, loop: Loop, start: str, stop: str) -> None:
        self.put(depth, f"for i{loop.loop} in range({start}, {stop}):")

    def _hoist_from_lanes(self, depth: int, loop: Loop) -> None:
        """Compute what is the same in each iteration of a loop: Note [Kept in lanes]."""
        inside = loop.statements()
        if not inside or not self._side_by_side(inside[0]) or self.hint(loop.length) < FEW:
            return
        made = {s.term.number for s in inside}
        within: dict[int, Loop] = {}
        for each in _all_loops(loop)[1:]:
            within.update(dict.fromkeys(each.merged, each))
        stack = [self.body(s) for s in reversed(inside)]
        seen: set[Symbol] = set()
        while stack:
            symbol = stack.pop()
            if symbol in seen or symbol in self.names or symbol.op in ("const", "index"):
                continue
            seen.add(symbol)
            loops = self.depends(symbol)
            if self.top.loop in loops and not loops & set(loop.merged):
                inner = list(dict.fromkeys(x for u, x in within.items() if u in loops))
                if not self.reads(symbol) & made and self._worth_storing(symbol, inner):
                    self.store_before(depth, symbol, inner)
                    continue
            stack.extend(reversed(symbol.args))

    def _worth_storing(self, symbol: Symbol, inner: Sequence[Loop]) -> bool:
        """Whether to keep a symbol: small enough, and not side by side already."""
        size = LANES * symbol.dtype.itemsize
        for loop in inner:
            size *= max(self.hint(loop.length), 1)
        if symbol.dtype.kind != "f" or size > MOST_HOISTED:
            return False
        if symbol.op != "load":
            return symbol.op not in ("pair", "computed")
        number, index = symbol.detail
        if symbol.args or self.storage[number].lanes:
            return False
        flat = index[:1] == ("flat",)
        offset = index[1] if flat else self.bodies.terms[number].own_offset(index)
        return coefficient(offset, self.top.loop) != ONE

    def store_before(self, depth: int, symbol: Symbol, inner: Sequence[Loop]) -> None:
        """Compute a symbol for all iterations of some loops and all lanes."""
        name = f"h{len(self.hoisted)}"
        before, around = dict(self.names), self.zeros
        self.zeros = around.union(*[loop.merged[:-1] for loop in inner])
        place, size = (), ONE
        for loop in inner:
            self.need(loop.length)
            self._open(depth, loop, "0", text(loop.length))
            depth += 1
            place = add(multiply(place, loop.length), loop_index(loop.loop))
            size = multiply(size, loop.length)
        self.put(depth, "for lane in range(width):", f"    i{self.lane} = base + lane")
        (value,) = self.values(depth + 1, [symbol])
        at = f"{text(multiply(place, constant(LANES)))} + lane" if place else "lane"
        store, load = (self.use(f, "codegen.intrinsics") for f in ("store", "load"))
        self.put(depth + 1, f"{store}({value}, {name}, {at}, {self._scope(name)})")
        self.hoisted.append((name, multiply(size, constant(LANES)), symbol.dtype))
        self.names, self.zeros = before, around
        kind = type_name(symbol.dtype)
        self.names[symbol] = f"{load}({kind}, {name}, {at}, {self._scope(name)})"
        self.in_lanes[symbol] = name, multiply(place, constant(LANES))

    def _hoist(self, depth: int, loop: Loop) -> None:
        """Compute before a loop what does not change in it."""
        inside = loop.statements()
        changing = {u for each in _all_loops(loop) for u in each.merged}
        if inside and self._side_by_side(inside[0]):
            changing.add(self.top.loop)
        made = {s.term.number for s in inside}
        roots = [self.body(s) for s in inside]
        for symbol in in_order(roots, self.names):
            if symbol.op in ("const", "index", "pair"):
                continue
            if self.depends(symbol) & changing or self.reads(symbol) & made:
                continue
            if self.reads(symbol) & self.produced and not self._available(symbol):
                continue
            self.values(depth, [symbol])

    def _available(self, symbol: Symbol) -> bool:
        """Whether what a symbol reads of this nest has been computed."""
        return all(
            load in self.names or load.detail[0] not in self.produced for load in loads(symbol)
        )


def _all_loops(loop: Loop) -> list[Loop]:
    return [loop, *(x for item in loop.items if isinstance(item, Loop) for x in _all_loops(item))]
