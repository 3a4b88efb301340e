"""The loops of a kernel written out.

Note [Nests]
------------
Each outermost loop of a kernel is a function of its own, a *nest*, that does a range of iterations,
a *task*. Tasks depend on lengths alone; what is reduced over the outermost loop is reduced for each
task, and the partial results are put together in order of the tasks, sums with compensation. The
serial and the parallel variant run the same tasks, so results are bitwise the same for any number
of threads.

Note [Unrolling]
----------------
A loop right around a loop over lanes does several iterations in each of them: what they read is
read once, and partial sums stay in registers in between. So does a loop over rows right around one
that adds each of them to the same sums, which are then read and written once for several rows
(unroll and jam; Allen and Kennedy, "Optimizing compilers for modern architectures", 2001, section
8.4). Sums keep the order that they have row by row; those of products start anew for these rows, so
that multiplying does not wait for what was just stored. Rows of a matrix times a vector have sums
of their own, which do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.codegen.dtypes import numpy_name
from numgrad.codegen.nests.block_products import BlockProducts
from numgrad.codegen.nests.lanes import TILE
from numgrad.codegen.nests.loop_tree import Item, Loop
from numgrad.codegen.nests.parts import in_parts
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply, value_of
from numgrad.codegen.nests.statements import Statement, expensive
from numgrad.codegen.nests.terms import FUSED, ONE, REDUCE, SCAN, SCATTER, count
from numgrad.codegen.nests.write import preceding, text
from numgrad.codegen.tasks import LANES
from numgrad.dataclass import dataclass

MOST_UNROLLED, OF_ANY_LENGTH = 12, 4
"""Iterations of a loop around lanes done at a time, if its length is fixed and if it may change."""
MOST_TOTALS = 4
"""The same of loops that add up over lanes: each total takes registers."""
NARROW = 16
"""Elements of a row of a tile from which on scans are written in vectors."""
TOGETHER, FEW_TOGETHER = 8, 4
"""Rows that are added to sums at a time; those that have sums of their own, or of which extremes
are taken."""
SHORTEST, FEWEST_ELEMENTS = 4, 8192
"""How many such rows there are and how long they are at least, and how many elements they have:
compiling the loop takes 10 ms longer."""
MEMORY_NS, BLOCK_NS = 0.3, 0.05
"""Cost of an element besides arithmetic: read from memory, or from a block in a cache."""


@dataclass
class Nest:
    """A nest as written: its function, and what calling it takes.

    Attributes
    ----------
    functions
        The lines of that, or of it in parts: Note [Parts of nests].
    function
        The number of the first nest of the kernel whose function is alike.
    """

    number: int
    loop: Loop
    lines: list[str]
    functions: list[str]
    arguments: list[str]
    scalars: list[Statement]
    rows: list[Statement]
    work_ps: Length = ()
    per_iteration: Length = ()
    serial: bool = False
    function: int = -1


class NestWriter(BlockProducts):
    """Writes the function of one nest."""

    # ------------------------------------------------------------------------------- the function

    def write(self) -> Nest:
        """The nest."""
        reduced = [s for s in self.statements if self._first_reduced(s) == 0]
        scalars = [s for s in reduced if not self._in_memory(s)]
        rows = [s for s in reduced if self._in_memory(s)]
        body = self.lines = []
        for s in scalars:
            body.append(f"    acc{s.term.number} = {self._identity(s.term)}")
        alike: dict[tuple, list[Statement]] = {}
        for s in rows:
            alike.setdefault((*s.loops, *self.paths[id(s)]), []).append(s)
        for first, *others in alike.values():
            self._clear(1, first, 0, *others)
        self._hoist(1, self.top)
        self._start_scans(1, self.top)
        self.zeros = frozenset(self.top.merged[:-1])
        self._iterations(1, [self.top], "lo", "hi")
        self.zeros = frozenset()
        allocations = self._allocations()
        if scalars:
            self.put(1, "return " + ", ".join(f"acc{s.term.number}" for s in scalars))
        head = [f"@{self.use('contracted' if self.contract else 'outlined', 'codegen.device')}"]
        parameters = ["lo", "hi", *self.arguments]
        head.append(f"def nest_{self.number}({', '.join(parameters)}):")
        head.append(f"    {self.use('no_inline', 'codegen.accumulation')}()")
        head += allocations
        total = len(self.scopes)
        lines = [line.replace("@SCOPES@", str(total)) for line in (*head, *body)]
        functions = in_parts(lines, f"nest_{self.number}")
        return Nest(
            self.number, self.top, lines, functions, list(self.arguments), scalars, rows,
            self.work_ps, _elements(self.top.items),
            any(s.scanned == self.top.loop for s in self.statements),
        )  # fmt: skip

    def _allocations(self) -> list[str]:
        """Allocate what lives in the nest only, and keep it alive to the end."""
        lines = []
        for s in self.statements:
            storage, number = self.storage[s.term.number], s.term.number
            if storage.whole or not storage.memory:
                continue
            shape = [s.term.shape[a] for a in storage.axes]
            size = count([*shape, constant(LANES)] if storage.lanes else shape)
            self.need(size)
            lines.append(f"    m{number} = np.empty({text(size)}, {numpy_name(s.term.dtype)})")
            lines.append(f"    {storage.name} = int64(m{number}.ctypes.data)")
            self.put(1, f"{self.use('touch', 'codegen.accumulation')}(m{number})")
        for name, size, dtype in self.hoisted:
            self.need(size)
            lines.append(f"    m_{name} = np.empty({text(size)}, {numpy_name(dtype)})")
            lines.append(f"    {name} = int64(m_{name}.ctypes.data)")
            self.put(1, f"{self.use('touch', 'codegen.accumulation')}(m_{name})")
        return lines

    def write_here(self, scopes: dict[str, int]) -> list[str] | None:
        """Lines of the nest where it is called, if iterations of its outermost loop stand alone.

        Threads then share the iterations themselves, in any order. None if an iteration needs
        memory of its own, or adds in an order that another copy of the text might not have.
        ``scopes`` are those of the function around it.
        """
        top, u = self.top, self.top.loop
        whole = all(self.storage[s.term.number].whole for s in self.statements)
        if not whole or self.in_blocks or any(s.reduced or s.scanned == u for s in self.statements):
            return None
        self.scopes, self.is_inline = scopes, True
        self.need(top.length)
        total = text(top.length)
        if top.tiled is None:
            self.put(1, f"for task in @RANGE@({total}):", f"    i{u} = int64(task)")
        else:
            inner = self._tiled_length()
            self.need(inner)
            self.put(1, f"tiles = -(-({text(inner)}) // {TILE})")
            self.put(1, f"for task in @RANGE@(({total}) * tiles):")
            self.put(
                2, f"i{u} = int64(task) // tiles", f"left = (int64(task) - i{u} * tiles) * {TILE}"
            )
            self.put(2, f"right = min(left + {TILE}, {text(inner)})")
        self.zeros = frozenset(top.merged[:-1])
        self._items(2, top.items, [top])
        return self.lines

    def _tiled_length(self) -> Length:
        """The length of the loop that is cut into tiles."""
        pairs = (pair for s in self.statements for pair in zip(s.loops, s.term.shape, strict=True))
        return next(length for loop, length in pairs if loop == self.top.tiled)

    # ------------------------------------------------------------------------------------- loops

    def _items(self, depth: int, items: Sequence[Item], path: list[Loop]) -> None:
        run: list[Statement] = []
        for item in items:
            if isinstance(item, Statement):
                run.append(item)
                continue
            self._run(depth, run, path)
            run = []
            if item.product and self.multiply(depth, item, path):
                continue
            if item.rows:
                before, place = dict(self.names), f"i{self.top.loop} = base + lane"
                self._hoist_from_lanes(depth, item)
                rest = "width"
                if self._adds_up(self.top, item, [*path, item]):
                    unit = self._rows_together(item)
                    first = f"width // {unit} * {unit}"
                    rest = f"{first}, width"
                    self.put(depth, f"for row in range(0, {first}, {unit}):")
                    copies = [[f"lane = row + {k}", place] for k in range(unit)]
                    self._jammed(depth + 1, self.top, item, copies)
                self.put(depth, f"for lane in range({rest}):", f"    {place}")
                self._loop(depth + 1, item, path)
                self.names = before
            else:
                self._loop(depth, item, path)
        self._run(depth, run, path)

    def _loop(self, depth: int, loop: Loop, path: list[Loop]) -> None:
        inside = loop.statements()
        starting = [s for s in inside if self._first_reduced(s) == len(path)]
        for s in starting:
            if self._in_memory(s):
                self._clear(depth, s, len(path))
        for s in inside:
            if self._partial_from(s) == len(path):
                self.put(depth, f"acc{s.term.number} = {self._identity(s.term)}")
        if inside and self._side_by_side(inside[0]):
            self._hoist_from_lanes(depth, loop)
        before = dict(self.names)
        self._hoist(depth, loop)
        self._start_scans(depth, loop)
        self.need(loop.length)
        around = self.zeros
        self.zeros = around.union(loop.merged[:-1])
        unit = self._unit(loop)
        if unit > 1:
            self._unrolled(depth, loop, unit, [*path, loop])
        else:
            self._iterations(depth, [*path, loop], *self.bounds(loop.loop, loop.length))
        self.names, self.zeros = before, around
        for s in inside:
            if self._partial_from(s) == len(path):
                if s in starting:
                    self._sum_stored(depth, s)
                else:
                    self._add_to_storage(depth, s, f"acc{s.term.number}")

    def _iterations(self, depth: int, path: list[Loop], start: str, stop: str) -> None:
        """A loop, in the ranges that it has."""
        loop = path[-1]
        if loop.lanes:
            self.put(depth, f"for base in range({start}, {stop}, {LANES}):")
            self.put(depth + 1, f"width = min({LANES}, {stop} - base)")
            self.lane = loop.loop
            self._items(depth + 1, loop.items, path)
            self.lane = None
            return
        if self._scans_alone(loop):
            self._scan_loop(depth, path, start, stop)
            return
        if self.is_inline and any(self._carried(s) and not self._has_start(s) for s in loop.runs()):
            self._peeled(depth, path, start, stop)
            return

        def write(depth: int, start: str, stop: str, hoist: bool) -> None:
            if hoist:
                self._hoist(depth, loop)
            inner = loop.items[0] if len(loop.items) == 1 else None
            if isinstance(inner, Loop) and self._adds_up(loop, inner, [*path, inner]):
                u, before, unit = loop.loop, dict(self.names), self._rows_together(inner)
                rest = f"{start} + ({stop} - {start}) // {unit} * {unit}"
                self.put(depth, f"for k{u} in range({start}, {rest}, {unit}):")
                copies = [[f"i{u} = k{u} + {k}"] for k in range(unit)]
                self._jammed(depth + 1, loop, inner, copies)
                self.names, start = before, rest
            self._open(depth, loop, start, stop)
            self._items(depth + 1, loop.items, path)

        self.in_ranges(depth, path, start, stop, write)

    def _adds_up(self, outer: Loop, inner: Loop, path: list[Loop]) -> bool:
        """Whether several iterations of the loop around one that only adds up share it.

        All add to the same sums in memory, or each has sums of its own.
        """
        lengths = self.hint(outer.length), self.hint(inner.length)
        if min(lengths) < SHORTEST or lengths[0] * lengths[1] < FEWEST_ELEMENTS:
            return False
        if self.is_inline or inner.product or self._ranges(path)[0]:
            return False
        runs = inner.runs()
        if len(runs) < len(inner.items) or any(
            s.term.op != REDUCE or expensive(self.body(s), self.bodies) for s in runs
        ):
            return False
        if all(self._first_reduced(s) == len(path) - 1 for s in runs):
            return len(runs) == 1 and self.body(runs[0]).detail == FUSED
        return all(
            self._reduced_loops(s) >= {outer.loop} and self._partial_from(s) is None for s in runs
        )

    def _rows_together(self, loop: Loop) -> int:
        """How many rows a loop adds up at a time."""
        shared = all(
            s.term.detail[0] == "sum" and self._partial_from(s) is None for s in loop.runs()
        )
        return TOGETHER if shared else FEW_TOGETHER

    def _jammed(self, depth: int, outer: Loop, inner: Loop, copies: list[list[str]]) -> None:
        """A loop for several iterations of the one around it, whose places are ``copies``."""
        self.need(inner.length)
        around, work, cost = self.zeros, self.work_ps, self.emitter.cost_ns
        self.zeros = around.union(inner.merged[:-1])
        before = dict(self.names)
        totals = [s for s in inner.runs() if self._partial_from(s) is not None]
        for number in range(len(copies)):
            for s in totals:
                self.put(depth, f"acc{s.term.number}_{number} = {self._identity(s.term)}")
        self._open(depth, inner, *self.bounds(inner.loop, inner.length))
        self.unrolled, self.chains = outer.loop, {}
        for number, place in enumerate(copies):
            self.names, self.last_copy = dict(before), number == len(copies) - 1
            self.copy = f"_{number}"
            self.put(depth + 1, *place)
            for s in inner.runs():
                self._statement(depth + 1, s)
        for number, place in enumerate(copies if totals else ()):
            self.copy = f"_{number}"
            self.put(depth, *place)
            for s in totals:
                self._sum_stored(depth, s)
        self.zeros, self.work_ps, self.emitter.cost_ns, self.copy = around, work, cost, ""
        self.names, self.unrolled, self.last_copy = before, None, True

    def _scan_loop(self, depth: int, path: list[Loop], start: str, stop: str) -> None:
        """The loop along a scan in tiles, in vectors, but for all after the first of narrow rows.

        Of these what was just stored is read much later in vectors than number by number.
        """
        loop, before = path[-1], dict(self.names)
        first = f"min({start} + 1, {stop})"
        self.put(depth, f"last = {stop} if right - left >= {NARROW} else {first}")
        for self.disjoint, begin, end in ((True, start, "last"), (False, "last", stop)):
            self.names, self.first = dict(before), None if self.disjoint else False
            self._open(depth, loop, begin, end)
            if self.disjoint:
                index = f"i{loop.loop}"
                self.put(depth + 1, f"{text(preceding(loop.loop))} = max({index} - 1, {start})")
            self.rows, self.row_place = {}, (depth + 1, len(self.lines))
            self._items(depth + 1, loop.items, path)
        self.first = None

    def _peeled(self, depth: int, path: list[Loop], start: str, stop: str) -> None:
        """A loop along a scan, the first iteration apart: no other one asks whether it is that."""
        loop, before = path[-1], dict(self.names)
        after = f"min({start} + 1, {stop})"
        for self.first, begin, end in ((True, start, after), (False, f"{start} + 1", stop)):
            self.names = dict(before)
            self._open(depth, loop, begin, end)
            self._items(depth + 1, loop.items, path)
        self.first = None

    def _unit(self, loop: Loop) -> int:
        """How many iterations of a loop are computed in one loop over lanes: Note [Unrolling]."""
        run = [s for s in loop.items if isinstance(s, Statement)]
        if len(run) < len(loop.items) or not self._side_by_side(run[0]):
            return 1
        if any(expensive(self.body(s), self.bodies) or self._moves(s, loop) for s in run):
            return 1
        length = value_of(loop.length)
        if length is None:
            return OF_ANY_LENGTH if self.hint(loop.length) >= 2 * OF_ANY_LENGTH else 1
        totals = any(self.lane in s.reduced.values() for s in run)
        most = MOST_TOTALS if totals else MOST_UNROLLED
        return -(-length // max(-(-length // most), 1))

    def _moves(self, s: Statement, loop: Loop) -> bool:
        """Whether each iteration of a loop around lanes stores another row of lanes.

        Several rows of one array in a loop over lanes would keep it from being written in vectors.
        """
        if self.lane in s.reduced.values() or not self.storage[s.term.number].memory:
            return False
        return not self._is_over(s, loop)

    def _unrolled(self, depth: int, loop: Loop, unit: int, path: list[Loop]) -> None:
        """A loop around lanes, several iterations at a time."""
        run = [s for s in loop.items if isinstance(s, Statement)]
        k, length = loop.loop, value_of(loop.length)
        stop = str(length // unit * unit) if length else f"({text(loop.length)}) // {unit} * {unit}"
        self.put(depth, f"for k{k} in range(0, {stop}, {unit}):")
        self.unrolled = k
        self._run(depth + 1, run, path, [f"i{k} = k{k} + {u}" for u in range(unit)])
        work = self.work_ps
        if length is None:
            self._open(depth, loop, stop, text(loop.length))
            self._run(depth + 1, run, path)
        elif length % unit:
            rest = range(length // unit * unit, length)
            self.unrolled = k
            self._run(depth, run, path, [f"i{k} = {index}" for index in rest])
        self.work_ps = work

    def _run(
        self, depth: int, run: list[Statement], path: list[Loop], places: Sequence[str] = ("",)
    ) -> None:
        """Statements one after the other, at the same place, or some places, in the loops."""
        if not run:
            return
        cost = self.emitter.cost_ns
        if not self._side_by_side(run[0]):
            for s in run:
                self._statement(depth, s)
            self.account(self.emitter.cost_ns - cost + MEMORY_NS, path)
            return
        before = dict(self.names)
        over = [s for s in run if self.lane in s.reduced.values()]
        copies = [
            (f"_{u}" if u else "", [index] if index else []) for u, index in enumerate(places)
        ]
        for copy, _ in copies:
            for s in over:
                self.put(depth, f"lane{s.term.number}{copy} = {self._identity(s.term)}")
        self.put(depth, "for lane in range(width):")
        self.put(depth + 1, f"i{self.lane} = base + lane")
        self.chains = {}
        for number, (self.copy, index) in enumerate(copies, start=1):
            self.last_copy = number == len(copies)
            if self.copy:
                self.names, self.emitter.cost_ns = dict(before), cost
            self.put(depth + 1, *index)
            for s in run:
                self._statement(depth + 1, s)
        self.names, self.unrolled, self.copy = before, None, ""
        for copy, index in copies if over else ():
            self.put(depth, *index)
            for s in over:
                value = f"lane{s.term.number}{copy}"
                if self._in_memory(s) and self._partial_from(s) is None:
                    self._add_to_storage(depth, s, value)
                else:
                    self._accumulate(depth, s, f"acc{s.term.number}", value)
        self.account(self.emitter.cost_ns - cost + BLOCK_NS, path)

    def _statement(self, depth: int, s: Statement) -> None:
        term = s.term
        if term.op == SCATTER:
            self._scatter(depth, s)
            return
        if term.op == SCAN:
            self._scan(depth, s)
            return
        body = self.body(s)
        fused = (
            body.detail == FUSED
            and term.op == REDUCE
            and bool(self._reduced_loops(s))
            and body not in self.names
        )
        value, *factor = self.values(depth, list(body.args) if fused else [body])
        if term.op != REDUCE:
            symbol = self.bodies.load(term, s.index)
            if value.isidentifier():
                self.names[symbol] = value
            else:
                self.put(depth, f"r{term.number} = {value}")
                self.names[symbol] = f"r{term.number}"
            if self.storage[term.number].memory:
                self.store(depth, s, self.names[symbol])
        elif self._side_by_side(s) and self.lane in s.reduced.values():
            self._accumulate(depth, s, f"lane{term.number}{self.copy}", value, *factor)
        elif not self._reduced_loops(s):
            self.names[self.bodies.load(term, s.index)] = value
            if self.storage[term.number].memory:
                self.store(depth, s, value)
        elif self._partial_from(s) is not None:
            self._accumulate(depth, s, f"acc{term.number}{self.copy}", value, *factor)
        else:
            self._add_to_storage(depth, s, value, *factor)


def _elements(items: Sequence[Item]) -> Length:
    """Elements that items compute, those of a run counted once."""
    total: Length = ONE if any(isinstance(item, Statement) for item in items) else ()
    for item in items:
        if isinstance(item, Loop):
            total = add(total, multiply(item.length, _elements(item.items)))
    return total
