"""Loops cut where conditions on their index change, and loop-invariant code moved out of them.

Note [Ranges of a loop]
-----------------------
Where an element comes from depends on conditions on indices: on the ends of slices, of padding, of
arrays that were joined. Along a loop most of them change once. In a range between such places they
are known, and the body is read without them: no element asks where it belongs, and nothing keeps a
vector from being read whole. Which ranges there are is found for the lengths of the call that was
traced, but each holds its exact bounds as expressions. At other lengths ranges may be empty or in
another order, so what is in none of them runs with all conditions.

Note [Kept in lanes]
--------------------
What an iteration of a loop around lanes computes, or collects from places in memory apart from each
other, is often the same in each of its iterations. It is then computed before, for all iterations
of the loops inside and all lanes, and kept side by side. So is what a loop over rows of the block
computes once for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from numgrad.codegen.dtypes import BOOL, type_name
from numgrad.codegen.nests.indices import computed_in, loop_index, loops_in
from numgrad.codegen.nests.loop_tree import Loop, coefficient
from numgrad.codegen.nests.polynomial import (
    Length,
    add,
    constant,
    divide,
    multiply,
    substitute,
    value_of,
)
from numgrad.codegen.nests.statements import Statement, loads
from numgrad.codegen.nests.terms import ONE
from numgrad.codegen.nests.write import Accumulating, text, without
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.codegen.tasks import LANES
from numgrad.dataclass import dataclass

SHORTEST = 32
"""Iterations of a range from which on it is worth a body of its own."""
NEAR = 8
"""Iterations at an end of a loop that are computed one by one."""
MOST, MOST_SYMBOLS = 3, 1500
"""Ranges of a loop, and symbols of all their bodies: LLVM takes long for long functions."""


@dataclass
class Range:
    """Iterations between the largest of ``lower`` and the smallest of ``upper``.

    Attributes
    ----------
    known
        Conditions that hold in all of these, or in none.
    """

    known: dict[Symbol, bool] = field(default_factory=dict)
    lower: list[Length] = field(default_factory=list)
    upper: list[Length] = field(default_factory=list)


@dataclass
class _Change:
    """A condition that holds from ``place`` on, or before it, or only at it."""

    symbol: Symbol
    place: Length
    kind: str

    def places(self) -> list[Length]:
        """Where ranges end."""
        return [self.place, add(self.place, constant(1))] if self.kind == "at" else [self.place]

    def restrict(self, loop_range: Range, first: int, hint: Callable[[Length], int]) -> None:
        """Make a range that begins at ``first`` end where the condition changes."""
        at, change = hint(self.place), self.place
        after = add(self.place, constant(1)) if self.kind == "at" else self.place
        if first < at:
            loop_range.upper.append(change)
        elif self.kind == "at" and first == at:
            loop_range.lower.append(change)
            loop_range.upper.append(after)
        else:
            loop_range.lower.append(after)
        holds = {"from": first >= at, "before": first < at, "at": first == at}
        loop_range.known[self.symbol] = holds[self.kind]


def ranges(
    bodies: Sequence[Symbol], path: Sequence[Loop], inside: set[int],
    hint: Callable[[Length], int],
) -> tuple[list[Range], bool]:  # fmt: skip
    """The long ranges of the last loop of ``path``, in order: Note [Ranges of a loop].

    ``inside`` are the loops within it. The second result says whether all changes are next to its
    ends, at any length.
    """
    loop = path[-1]
    order = in_order(bodies)
    around = {loop_index(x.loop)[0][0][0]: divide("//", x.length, constant(2)) for x in path[:-1]}

    def guess(length: Length) -> int:
        return hint(substitute(length, around))

    changes = [c for symbol in order if (c := _change(symbol, loop, inside)) is not None]
    if not changes or len(order) > MOST_SYMBOLS:
        return [], False
    end = guess(loop.length)
    places = {guess(bound) for c in changes for bound in c.places()}
    edges = [0, *sorted(p for p in places if 0 < p < end), end]
    long = [(b - a, a) for a, b in pairwise(edges) if b - a >= SHORTEST]
    most = min(MOST, MOST_SYMBOLS // len(order))
    long_ranges = []
    for first in sorted(a for _, a in sorted(long, reverse=True)[:most]):
        long_ranges.append(Range())
        for c in changes:
            c.restrict(long_ranges[-1], first, guess)
    ends = [c.place for c in changes] + [add(loop.length, c.place, -1) for c in changes]
    near = [(n := value_of(end)) is not None and abs(n) <= NEAR for end in ends]
    return long_ranges, all(a or b for a, b in zip(near, near[len(changes) :], strict=False))


def _change(symbol: Symbol, loop: Loop, inside: set[int]) -> _Change | None:
    """How a condition changes along a loop, if it is known before it where."""
    if symbol.op not in ("greater_equal", "equal"):
        return None
    index, zero = symbol.args
    if index.op != "index" or zero.op != "const" or zero.detail != 0 or computed_in(index.detail):
        return None
    growth = coefficient(index.detail, loop.loop)
    step = None if growth is None else value_of(growth)
    if not step:
        return None
    rest = add(index.detail, multiply(constant(step), loop_index(loop.loop)), -1)
    if loops_in(rest) & inside:
        return None
    size = constant(abs(step))
    if symbol.op == "equal":
        if abs(step) != 1:
            return None
        return _Change(symbol, multiply(rest, constant(-step)), "at")
    quotient = divide("//", rest, size)
    if step > 0:
        return _Change(symbol, multiply(quotient, constant(-1)), "from")
    return _Change(symbol, add(quotient, constant(1)), "before")


def assume(
    roots: Sequence[Symbol], known: Mapping[Symbol, bool], replaced: dict[Symbol, Symbol]
) -> list[Symbol]:
    """Simplify symbols where conditions are known; ``replaced`` keeps the results by symbol."""
    for symbol in in_order(roots, replaced):
        if symbol in known:
            replaced[symbol] = symbol.reader.make("const", (), BOOL, known[symbol])
        elif symbol.op == "computed":  # has a name, by which indices mention it
            replaced[symbol] = symbol
        else:
            replaced[symbol] = _simplified(symbol, tuple([replaced[a] for a in symbol.args]))
    return [replaced[symbol] for symbol in roots]


def _simplified(symbol: Symbol, args: tuple[Symbol, ...]) -> Symbol:
    """A symbol of other arguments, of which some may have become constants."""
    make = symbol.reader.make
    if all(a is b for a, b in zip(args, symbol.args, strict=True)):
        return symbol
    if symbol.op == "logical_and" and any(a.op == "const" for a in args):
        one, other = args if args[0].op == "const" else args[::-1]
        return other if one.detail else one
    if symbol.op == "where" and args[0].op == "const":
        return args[1] if args[0].detail else args[2]
    if (
        symbol.op == "load" and args[-1].op == "const"
    ):  # the condition without which nothing is read
        if not args[-1].detail:
            return make("const", (), symbol.dtype, symbol.dtype.type(0).item())
        args = args[:-1]
    return make(symbol.op, args, symbol.dtype, symbol.detail)


class IndexSetSplitting(Accumulating):
    """Writes loops in the ranges that they have."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
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
        parts, ends_only = self._ranges(path)
        if not parts:
            write(depth, start, stop, False)
            return
        self.counter += 1
        at, to = f"at{self.counter}", f"to{self.counter}"
        ends = [(f"first{self.counter}_{k}", f"last{self.counter}_{k}") for k in range(len(parts))]
        for (first, last), loop_range in zip(ends, parts, strict=True):
            self._bound(depth, first, "max", start, loop_range.lower)
            self._bound(depth, last, "min", stop, loop_range.upper)
        self.put(depth, f"{at} = {start}", f"while {at} < {stop}:")
        known, names, work = self.known, dict(self.names), self.work_ps
        works = []
        for k, ((first, last), loop_range) in enumerate(zip(ends, parts, strict=True)):
            self.put(depth + 1, f"{'elif' if k else 'if'} {at} >= {first} and {at} < {last}:")
            self.put(depth + 2, f"{to} = {last}")
            self.known, self._assumed = {**known, **loop_range.known}, {}
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
        """The ranges of a loop, and whether it has only few iterations besides, at any length."""
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
        for at in dict.fromkeys(without(at, self.zeros) for at in places):
            self.need(at)
            self.put(depth, f"{name} = {choose}({name}, {text(at)})")


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
        if not inside or self.hint(loop.length) < FEW:
            return
        rows = not self._side_by_side(inside[0])
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
            if self.lane in loops and not loops & set(loop.merged):
                inner = list(dict.fromkeys(x for u, x in within.items() if u in loops))
                worth = symbol.op != "load" and not inner if rows else True
                if worth and not self.reads(symbol) & made and self._worth_storing(symbol, inner):
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
        return coefficient(offset, self.lane) != ONE  # pyright: ignore

    def store_before(self, depth: int, symbol: Symbol, inner: Sequence[Loop]) -> None:
        """Compute a symbol for all iterations of some loops and all lanes."""
        name = f"h{len(self.hoisted)}"
        before, around = dict(self.names), self.zeros
        self.zeros = around.union(*[loop.merged[:-1] for loop in inner])
        offset, size = (), ONE
        for loop in inner:
            self.need(loop.length)
            self._open(depth, loop, "0", text(loop.length))
            depth += 1
            offset = add(multiply(offset, loop.length), loop_index(loop.loop))
            size = multiply(size, loop.length)
        self.put(depth, "for lane in range(width):", f"    i{self.lane} = base + lane")
        (value,) = self.values(depth + 1, [symbol])
        at = f"{text(multiply(offset, constant(LANES)))} + lane" if offset else "lane"
        store, load = (self.use(f, "codegen.intrinsics") for f in ("store", "load"))
        self.put(depth + 1, f"{store}({value}, {name}, {at}, {self._scope(name)})")
        self.hoisted.append((name, multiply(size, constant(LANES)), symbol.dtype))
        self.names, self.zeros = before, around
        kind = type_name(symbol.dtype)
        self.names[symbol] = f"{load}({kind}, {name}, {at}, {self._scope(name)})"
        self.in_lanes[symbol] = name, multiply(offset, constant(LANES))

    def _hoist(self, depth: int, loop: Loop) -> None:
        """Compute before a loop what does not change in it."""
        inside = loop.statements()
        changing = {u for each in _all_loops(loop) for u in each.merged}
        if inside and self._side_by_side(inside[0]):
            changing.add(self.in_blocks[id(inside[0])].loop)
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
