"""The ranges of loops written out: Note [Ranges of a loop] in ``ranges``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.codegen.symbols import Symbol
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.lower.accumulate import Accumulating
from numgrad.compiler.lower.ranges import Range, assume, ranges
from numgrad.compiler.lower.statements import Statement
from numgrad.compiler.lower.tree import Loop
from numgrad.compiler.lower.write import text, without


class IndexSetSplitting(Accumulating):
    """Writes loops in the ranges that they have."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._elsewhere = False  # whether what is written is in none of the ranges of a loop
        # conditions in the ranges that are open, and what symbols are there
        self.known: dict[Symbol, bool] = {}
        self._assumed: dict[Symbol, Symbol] = {}

    def body(self, s: Statement) -> Symbol:
        """The body of a statement where it is written."""
        body = super().body(s)
        return assume([body], self.known, self._assumed)[0] if self.known else body

    def in_ranges(
        self, depth: int, path: Sequence[Loop], start: str, stop: str,
        write: Callable[[int, str, str, bool], None],
    ) -> None:  # fmt: skip
        """The last loop of ``path``, in order of its iterations.

        ``write`` writes some of these, at a depth, from one number to another, and whether in a
        range.
        """
        found, ends_only = self._ranges(path)
        if not found:
            write(depth, start, stop, False)
            return
        self.counter += 1
        at, to = f"at{self.counter}", f"to{self.counter}"
        ends = [(f"first{self.counter}_{k}", f"last{self.counter}_{k}") for k in range(len(found))]
        for (first, last), part in zip(ends, found, strict=True):
            self._bound(depth, first, "max", start, part.lower)
            self._bound(depth, last, "min", stop, part.upper)
        self.put(depth, f"{at} = {start}", f"while {at} < {stop}:")
        known, names, work = self.known, dict(self.names), self.work_ps
        works = []
        for k, ((first, last), part) in enumerate(zip(ends, found, strict=True)):
            self.put(depth + 1, f"{'elif' if k else 'if'} {at} >= {first} and {at} < {last}:")
            self.put(depth + 2, f"{to} = {last}")
            self.known, self._assumed = {**known, **part.known}, {}
            write(depth + 2, at, to, True)
            works.append(self.work_ps)
            self.names, self.work_ps = dict(names), work
        self.known, self._assumed = known, {}
        self.put(depth + 1, "else:", f"    {to} = {stop}")
        for first, _ in ends:
            self.put(depth + 2, f"if {at} < {first}:", f"    {to} = min({to}, {first})")
        self._elsewhere = True
        write(depth + 2, at, to, False)
        self._elsewhere = False
        if ends_only:
            self.put(depth + 3, "continue")  # so few are not worth vectors
        self.put(depth + 1, f"{at} = {to}")
        self.names, self.work_ps = names, works[0]

    def _ranges(self, path: Sequence[Loop]) -> tuple[list[Range], bool]:
        """Those of a loop, and whether it has only few iterations besides, at any length."""
        if self.lane is not None or self._elsewhere:
            return [], False
        inside = path[-1].statements()
        around = {u for each in path for u in each.merged}
        within = {u for s in inside for u in s.all_loops()} - around
        return ranges([self.body(s) for s in inside], path, within, self.hint)

    def _bound(
        self, depth: int, name: str, choose: str, end: str, places: Sequence[Length]
    ) -> None:
        """Name the largest or smallest of some numbers."""
        self.put(depth, f"{name} = {end}")
        for place in dict.fromkeys(without(place, self.zeros) for place in places):
            self.need(place)
            self.put(depth, f"{name} = {choose}({name}, {text(place)})")
