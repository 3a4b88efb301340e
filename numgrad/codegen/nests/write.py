"""Values read and stored at addresses; reductions, scans and scattered sums of a nest.

Note [Accumulators]
-------------------
A reduction over the innermost loops is accumulated in a variable. Where loops of the result lie
inside of a reduced one, the storage of the result holds the partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.indices import COMPUTED, LOOP, Index, loops_in
from numgrad.codegen.nests.loop_tree import Loop, coefficient, paths
from numgrad.codegen.nests.polynomial import Atom, Length, add, constant, multiply, text_of
from numgrad.codegen.nests.statements import Bodies, Statement
from numgrad.codegen.nests.terms import ONE, PART, SCATTER, Term, ravel
from numgrad.codegen.reduction_plan import identity, step_of
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.codegen.tasks import LANES
from numgrad.dataclass import dataclass

BEYOND = 1000
"""First number of scopes that are those of no array: Note [Alias scopes]."""


PRECEDING = 1_000_000
"""First number of computed integers that are iterations before others."""


@dataclass
class Storage:
    """Where a stored term is kept.

    Attributes
    ----------
    axes
        The axes that memory has; those of loops that are open wherever the term is used are left
        out.
    lanes
        Whether there is a last axis for the iterations side by side.
    whole
        Whether it outlives its nest: an argument or a temporary of the kernel.
    first
        The element of the memory at which it begins.
    """

    name: str
    axes: tuple[int, ...]
    lanes: bool = False
    whole: bool = False
    memory: bool = True
    first: int = 0


def name_of(k: int) -> str:
    """The name of a length, of the index of a loop or of a computed integer."""
    if k >= COMPUTED:
        return f"j{k - COMPUTED}"
    return f"n{k}" if k < LOOP else f"i{k - LOOP}"


def preceding(loop: int) -> Length:
    """The iteration before one of a loop, of the first one itself: a variable of the kernel."""
    return (((("axis", COMPUTED + PRECEDING + loop),), 1),)


def text(length: Length) -> str:
    """An expression of lengths and loop indices, in an order that their numbers do not decide.

    Products of many factors come first, in each the lengths before the indices: Note [Nests alike]
    in ``kernel``.
    """
    if len(length) > 1 or (length and len(length[0][0]) > 1):
        products = [(tuple(sorted(product, key=_rank)), c) for product, c in length]
        length = tuple(sorted(products, key=lambda term: (-len(term[0]), -abs(term[1]))))
    return text_of(length, name_of)


def _rank(atom: Atom) -> int:
    """Order of lengths, then indices of loops, then computed integers and quotients."""
    if atom[0] != "axis":
        return 3
    return (atom[1] >= LOOP) + (atom[1] >= COMPUTED)


def without(length: Length, zeros: frozenset[int]) -> Length:
    """A length with the indices of some loops at 0."""
    if not zeros:
        return length
    kept = []
    for product, factor in length:
        factors = []
        for atom in product:
            if atom[0] == "axis":
                if atom[1] - LOOP in zeros:
                    break
                factors.append(atom)
            else:
                factors.append((atom[0], without(atom[1], zeros), without(atom[2], zeros)))
        else:
            kept.append((tuple(factors), factor))
    return tuple(kept)


class SourceWriter:
    """Writes values and stores; keeps track of what they need from outside."""

    def __init__(
        self,
        bodies: Bodies,
        storage: dict[int, Storage],
        emitter: Emitter,
        names: dict[Symbol, str],
    ) -> None:
        self.bodies, self.storage, self.emitter = bodies, storage, emitter
        self.names = dict(names)
        self.lines: list[str] = []
        self.zeros: frozenset[int] = frozenset()
        self.arguments: dict[str, None] = {}
        self.scopes: dict[str, int] = {}
        self.counter = 0
        self._depends: dict[Symbol, frozenset[int]] = {}
        self._reads: dict[Symbol, frozenset[int]] = {}

    def use(self, function: str, module: str) -> str:
        """Import a function of the kernel library."""
        self.emitter.imports[function] = f"numgrad.{module}:{function}"
        return function

    def put(self, depth: int, *lines: str) -> None:
        """Append lines."""
        self.lines += ["    " * depth + line for line in lines]

    # ------------------------------------------------------------------------------------ values

    def values(self, depth: int, roots: list[Symbol]) -> list[str]:
        """Write what computes symbols; their texts."""
        for symbol in in_order(roots, self.names):
            if symbol.op == "load":
                self._load(depth, symbol)
            elif symbol.op == "computed":
                (value,) = self._block(depth, symbol.args)
                self.names[symbol] = self.bodies.name(symbol)
                self.put(depth, f"{self.names[symbol]} = int64({value})")
            elif symbol.op == "index":
                index = without(symbol.detail, self.zeros)
                self.need(index)
                self.names[symbol] = f"int64({text(index)})"
        return self._block(depth, roots)

    def _block(self, depth: int, roots: Sequence[Symbol]) -> list[str]:
        if all(symbol in self.names for symbol in roots):
            return [self.names[symbol] for symbol in roots]
        lines, values = self.emitter.block(roots, self.names, slow=True)
        self.put(depth, *lines)
        return values

    def _load(self, depth: int, symbol: Symbol) -> None:
        """Write a read of memory, unless the value is at hand."""
        number, index = symbol.detail
        term = self.bodies.terms[number]
        unguarded = self.names.get(self.bodies.load(term, index))
        if unguarded is not None:
            self.names[symbol] = unguarded
            return
        guard = [a for a in symbol.args if a.op != "computed"]
        self.counter += 1
        name = self.names[symbol] = f"e{self.counter}"
        flags = self._block(depth, guard)
        self.put(depth, f"{name} = {self.read(term, index, *flags)}")

    def depends(self, symbol: Symbol) -> frozenset[int]:
        """The loops that a symbol depends on."""
        return self._gather(symbol, self._depends, self._load_loops)

    def reads(self, symbol: Symbol) -> frozenset[int]:
        """The numbers of the terms that a symbol reads."""
        return self._gather(symbol, self._reads, lambda s: {s.detail[0]} if s.op == "load" else ())

    def _load_loops(self, load: Symbol) -> Iterable[int]:
        if load.op == "index":
            return loops_in(load.detail)
        _, index = load.detail
        parts = [index[1]] if index[:1] == ("flat",) else index
        return {u for entry in parts for u in loops_in(entry)}

    def _gather(
        self,
        root: Symbol,
        known: dict[Symbol, frozenset[int]],
        of_load: Callable[[Symbol], Iterable[int]],
    ) -> frozenset[int]:
        if root not in known:
            at_hand = all(a in known for a in root.args)
            for symbol in [root] if at_hand else in_order([root], known):
                parts = [known[a] for a in symbol.args]
                if symbol.op in ("load", "index"):
                    parts.append(frozenset(of_load(symbol)))
                known[symbol] = frozenset().union(*parts)
        return known[root]

    # ------------------------------------------------------------------------------------ memory

    def place(self, term: Term, index: Index) -> tuple[str, Length]:
        """Name of the address and offset of an element, of the first lane."""
        storage = self.storage[term.number]
        if index[:1] == ("flat",):
            offset: Length = without(index[1], self.zeros)  # pyright: ignore
        else:
            shape = [term.shape[a] for a in storage.axes]
            parts = tuple(without(index[a], self.zeros) for a in storage.axes)
            as_laid = term.op == PART or (term.layout is not None and storage.whole)
            offset = term.offset(parts) if as_laid else ravel(shape, parts)
        if storage.first:
            offset = add(offset, constant(storage.first))
        if storage.lanes:
            offset = multiply(offset, constant(LANES))
        self.need(offset)
        if storage.whole:
            self.arguments[storage.name] = None
        return storage.name, offset

    def _place(self, term: Term, index: Index) -> tuple[str, str]:
        """Name of the address and text of the offset of an element."""
        name, offset = self.place(term, index)
        if self.storage[term.number].lanes:
            return name, f"{text(offset)} + lane" if offset else "lane"
        return name, text(offset)

    def address(self, term: Term) -> str:
        """Where an array begins that code reads or writes as a whole."""
        storage = self.storage[term.number]
        self.arguments[storage.name] = None
        return (
            f"({storage.name} + {storage.first * term.dtype.itemsize})"
            if storage.first
            else storage.name
        )

    def _scope(self, name: str) -> str:
        return f"{self.scopes.setdefault(name, len(self.scopes))}, @SCOPES@"

    def read(self, term: Term, index: Index, flag: str = "", *, disjoint: bool = False) -> str:
        """A read of an element, only if a condition holds, else zero.

        ``disjoint`` says that no iteration of the innermost loop stores it, though others may.
        """
        storage = self.storage[term.number]
        if not storage.memory:
            self.arguments[storage.name] = None
            return storage.name
        name, where = self._place(term, index)
        load = self.use("load_if" if flag else "load", "codegen.intrinsics")
        scope = self._scope(storage.name)
        if disjoint:
            scope = f"{BEYOND + self.scopes[storage.name]}, @SCOPES@"
        parts = [type_name(term.dtype), flag, name, where, scope]
        return f"{load}({', '.join(filter(None, parts))})"

    def store(self, depth: int, s: Statement, value: str, *, index: Index | None = None) -> None:
        """Store an element, that of the loops unless another is given."""
        name, where = self._place(s.term, s.index if index is None else index)
        store, scope = (
            self.use("store", "codegen.intrinsics"),
            self._scope(self.storage[s.term.number].name),
        )
        self.put(depth, f"{store}({value}, {name}, {where}, {scope})")

    def need(self, length: Length) -> None:
        """Take the lengths that an expression mentions as arguments."""
        for product, _ in length:
            for atom in product:
                if atom[0] == "axis":
                    if atom[1] < LOOP:
                        self.arguments[f"n{atom[1]}"] = None
                else:
                    self.need(atom[1])
                    self.need(atom[2])


class Accumulating(SourceWriter):
    """Writer of accumulators, scans and scattered sums of a nest."""

    def __init__(
        self,
        number: int,
        loop: Loop,
        bodies: Bodies,
        storage: dict[int, Storage],
        emitter: Emitter,
        hint: Callable[[Length], int],
        contract: bool = False,
    ) -> None:
        super().__init__(bodies, storage, emitter, {})
        self.number, self.top, self.hint, self.contract = number, loop, hint, contract
        self.hoisted: list[tuple[str, Length, np.dtype]] = []
        self.copy = ""
        self.unrolled: int | None = None  # the loop of which several iterations are written
        self.chains: dict[int, str] = {}  # what statements have added up in these so far
        self.last_copy = True
        self.rows: dict[str, str] = {}  # names of addresses of the current row of a tile
        self.row_place = 0, 0  # where they are written: the depth, and before which line
        self.is_inline = False  # whether the nest is written where it is called
        self.first: bool | None = None  # whether scans are at their first element, if known
        self.disjoint = False  # whether what a scan takes up is read in vectors
        self.work_ps: Length = ()
        self.statements = loop.statements()
        self.produced = {s.term.number for s in self.statements}
        self.paths = {id(s): path for s, path in paths(loop)}
        self.lane: int | None = None  # the loop in blocks that is open
        in_rows = {
            id(s)
            for item in loop.items
            if isinstance(item, Loop) and item.rows
            for s in item.statements()
        }
        self.in_blocks = {
            key: each
            for key, path in self.paths.items()
            for each in path
            if each.lanes and key not in in_rows
        }

    def body(self, s: Statement) -> Symbol:
        """The body of a statement where it is written."""
        return self.bodies.body(s)

    def bounds(self, loop: int, length: Length) -> tuple[str, str]:
        """Where a loop inside of the outermost one begins and ends."""
        return ("left", "right") if loop == self.top.tiled else ("0", text(length))

    def _side_by_side(self, s: Statement) -> bool:
        """Whether the index of a block runs innermost around a statement."""
        return id(s) in self.in_blocks

    def _place(self, term: Term, index: Index) -> tuple[str, str]:
        """Name of the address and text of the offset of an element; in tiles those of its row."""
        tiled = self.top.tiled
        if tiled is None:
            return super()._place(term, index)
        name, offset = self.place(term, index)
        row = without(offset, frozenset((tiled,)))
        if not row or coefficient(offset, tiled) != ONE:
            return name, text(offset)
        address = f"{name} + {term.dtype.itemsize} * ({text(row)})"
        if address not in self.rows:
            self.rows[address] = f"p{len(self.rows)}"
            depth, line = self.row_place
            self.lines.insert(
                line + len(self.rows) - 1, f"{'    ' * depth}{self.rows[address]} = {address}"
            )
        return self.rows[address], f"i{tiled}"

    def account(self, cost_ns: float, path: Sequence[Loop]) -> None:
        """Count the work of a run of statements."""
        times = constant(max(round(1000 * cost_ns), 1))
        for loop in path[1:]:
            times = multiply(times, loop.length)
        self.work_ps = add(self.work_ps, times)

    def _scatter(self, depth: int, s: Statement) -> None:
        """Add to an element whose place is computed."""
        value, positions = self.body(s).args
        value, _ = self.values(depth, [value, positions])
        self._add_to_storage(depth, s, value, index=self.bodies.target(s, positions))

    def _scan(self, depth: int, s: Statement) -> None:
        """Go on from the element before, a variable if the loop is innermost, else in memory."""
        term, number = s.term, s.term.number
        kind = term.detail[0]
        body = self.body(s)
        value, *factor = self.values(depth, list(body.args) if body.op == "pair" else [body])
        before, tiled = f"acc{number}", False
        if not self._carried(s):
            before = f"b{number}"
            tiled = self._scans_alone(self.paths[id(s)][-2])
            shift = [self._shifted(i, s.scanned, u) for i, u in zip(s.index, s.loops, strict=True)]
            flag = "" if tiled else f"i{s.scanned} > 0"
            self.put(
                depth, f"{before} = {self.read(term, tuple(shift), flag, disjoint=self.disjoint)}"
            )
        if factor:
            before = f"({before} * {factor[0]})"
        new = f"{type_name(term.dtype)}({before} {'*' if kind == 'prod' else '+'} {value})"
        if self.first:
            new = value
        elif self.first is None and not self._has_start(s):
            first = f"i{s.scanned} == 0"
            if term.dtype.kind == "c":
                new = f"({value} if {first} else {new})"
            else:
                new = f"{self.use('select', 'codegen.intrinsics')}({first}, {value}, {new})"
        self.put(depth, f"r{number} = {new}")
        self.names[self.bodies.load(term, s.index)] = f"r{number}"
        if self._carried(s):
            self.put(depth, f"acc{number} = r{number}")
        if self.storage[number].memory:
            self.store(depth, s, f"r{number}")

    def _shifted(self, index: Length, scanned: int | None, loop: int | None) -> Length:
        """The index of the element before, along the loop of a scan."""
        if loop is None or loop != scanned:
            return index
        return preceding(loop) if self.disjoint else add(index, constant(-1))

    def _has_start(self, s: Statement) -> bool:
        """Whether a scan starts with a number that does not change the first element."""
        return self._carried(s) and s.term.detail[0] != "recurrence" and s.term.dtype.kind != "c"

    def _carried(self, s: Statement) -> bool:
        """Whether a variable holds the previous element of a scan."""
        return s.scanned is not None and self.paths[id(s)][-1].loop == s.scanned

    def _scans_alone(self, loop: Loop) -> bool:
        """Whether a loop is that of scans in tiles, and of nothing else."""
        inside = loop.statements()
        return self.top.tiled is not None and all(s.scanned == loop.loop for s in inside)

    def _start_scans(self, depth: int, loop: Loop) -> None:
        for s in loop.items:
            if isinstance(s, Statement) and self._carried(s):
                start = 1 if s.term.detail[0] == "prod" else -0.0  # -0.0 + x is x, also for -0.0
                self.put(
                    depth, f"acc{s.term.number} = {self.emitter.constant(start, s.term.dtype)}"
                )

    # ------------------------------------------------------------------------------ accumulators

    def _reduced_loops(self, s: Statement) -> set[int]:
        return {loop for loop in s.reduced.values() if loop is not None}

    def _is_over(self, s: Statement, loop: Loop) -> bool:
        return bool(self._reduced_loops(s) & set(loop.merged))

    def _first_reduced(self, s: Statement) -> int | None:
        """The depth of the outermost loop that the statement reduces over."""
        for depth, loop in enumerate(self.paths[id(s)]):
            if self._is_over(s, loop):
                return depth
        return None

    def _partial_from(self, s: Statement) -> int | None:
        """The depth of the outermost of the inner loops that a variable accumulates over.

        In lanes, a loop over lanes that is no reduction is inside of all others.
        """
        path = self.paths[id(s)]
        block = self.in_blocks.get(id(s))
        if s.term.op == SCATTER or (block is not None and not self._is_over(s, block)):
            return None
        depth = len(path)
        while depth > 0 and self._is_over(s, path[depth - 1]):
            depth -= 1
        return depth if depth < len(path) else None

    def _in_memory(self, s: Statement) -> bool:
        """Whether the storage of a reduction holds its partial results."""
        first = self._first_reduced(s)
        return first is not None and self._partial_from(s) != first

    def _identity(self, term: Term) -> str:
        return self.emitter.constant(identity(term.detail[0], term.dtype), term.dtype)

    def _accumulate(self, depth: int, s: Statement, name: str, *value: str) -> None:
        self.put(depth, f"{name} = {self._stepped(s.term, name, *value)}")

    def _stepped(self, term: Term, before: str, *value: str) -> str:
        """A partial result with one more value, or with the product of two factors."""
        if len(value) == 2:
            step = self.use("add_product", "codegen.intrinsics")
        else:
            step = self._step(term)
        return f"{step}({', '.join([before, *value])})"

    def _step(self, term: Term) -> str:
        kind = term.detail[0]
        step = step_of(kind, term.dtype)
        if term.dtype.kind == "f" and step in ("sum", "multiply"):
            return self.use(
                "add_any_order" if step == "sum" else "multiply_any_order", "codegen.intrinsics"
            )
        return self.use("add" if step == "sum" else step, "codegen.accumulation")

    def _clear(self, depth: int, s: Statement, first: int, *others: Statement) -> None:
        """Set storage that partial results are added to, and that of others with the same loops."""
        term = s.term
        path = self.paths[id(s)][first:]
        inner = {u for loop in path for u in loop.merged if u in s.loops}
        if s.scattered is not None and s.loops[s.scattered] is not None:
            inner.add(s.loops[s.scattered])  # pyright: ignore
        lengths = {u: term.shape[a] for a, u in enumerate(s.loops)}
        for loop in [u for u in s.loops if u in inner]:  # as they lie in memory
            self.need(lengths[loop])
            start, stop = self.bounds(loop, lengths[loop])  # pyright: ignore
            self.put(depth, f"for i{loop} in range({start}, {stop}):")
            depth += 1
        if self.lane is not None and self._side_by_side(s) and self.lane in s.loops:
            self.put(depth, "for lane in range(width):", f"    i{self.lane} = base + lane")
            depth += 1
        for each in (s, *others):
            self.store(depth, each, self._identity(each.term))

    def _add_to_storage(
        self, depth: int, s: Statement, *value: str, index: Index | None = None
    ) -> None:
        index = s.index if index is None else index
        chained = self.unrolled in self._reduced_loops(s)
        apart = chained and len(value) == 2 and not self._side_by_side(s)
        name = self.chains.get(id(s)) if chained else None
        step = step_of(s.term.detail[0], s.term.dtype)
        if name is None and not apart:
            name = self._named(depth, s, self.read(s.term, index))
        if name is None:
            new = " * ".join(value)
        elif s.term.dtype.kind == "f" and step in ("sum", "multiply") and len(value) == 1:
            new = f"{name} {'+' if step == 'sum' else '*'} {value[0]}"
        else:
            new = self._stepped(s.term, name, *value)
            if s.term.dtype.kind in "iu":  # which arithmetic widens
                new = f"{type_name(s.term.dtype)}({new})"
        if chained and not self.last_copy:
            self.chains[id(s)] = self._named(depth, s, new)
            return
        if apart:
            new = f"{self._named(depth, s, self.read(s.term, index))} + {new}"
        self.store(depth, s, new, index=index)

    def _named(self, depth: int, s: Statement, value: str) -> str:
        """Name a partial sum."""
        name = f"b{s.term.number}_{self.counter}"
        self.counter += 1
        self.put(depth, f"{name} = {value}")
        return name

    def _sum_stored(self, depth: int, s: Statement) -> None:
        """A reduction that a variable accumulated is complete."""
        name = f"acc{s.term.number}{self.copy}"
        self.names[self.bodies.load(s.term, s.index)] = name
        if self.storage[s.term.number].memory:
            self.store(depth, s, name)
