"""Memory for the results of statements; nests called for each of their tasks; small arrays.

Note [Pieces]
-------------
Statements of small arrays that follow one another are a *run*. Its scalars, in the order in which
they are needed, are cut into *pieces*, each a function of its own, so that the time that LLVM takes
grows with the length of a run and not with its square. Values that a later piece needs, elements
that a nest reads, and what a computed index may point to lie in *blocks*, one array of the kernel
for each dtype. A run of one piece stands where it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np

from numgrad.codegen.dtypes import numpy_name, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.loop_tree import Item, Loop, paths
from numgrad.codegen.nests.nest import Nest
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply, value_of
from numgrad.codegen.nests.small_arrays import elements, extents
from numgrad.codegen.nests.statements import Bodies, Statement
from numgrad.codegen.nests.terms import BUFFER, CALLS, PART, SCATTER, Term, count
from numgrad.codegen.nests.write import SourceWriter, Storage, text
from numgrad.codegen.reduction_plan import step_of
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.codegen.tasks import TASK
from numgrad.dataclass import dataclass

PIECE = 500
"""Scalar operations of a function."""


@dataclass
class Blocks:
    """Arrays for single numbers and short arrays, one of each dtype."""

    used: dict[np.dtype, int] = field(default_factory=dict)

    def take(self, dtype: np.dtype, length: int) -> tuple[str, int]:
        """A place in a block: its address, and the first element."""
        first = self.used.get(dtype, 0)
        self.used[dtype] = first + length
        return f"s_{dtype.name}", first

    def allocations(self) -> list[str]:
        """Lines that make the blocks."""
        lines = []
        for dtype, length in self.used.items():
            name = f"s_{dtype.name}"
            lines.append(f"    x{name} = np.empty({length}, {numpy_name(dtype)})")
            lines.append(f"    {name} = int64(x{name}.ctypes.data)")
        return lines

    def names(self) -> list[str]:
        """The arrays."""
        return [f"xs_{dtype.name}" for dtype in self.used]


@dataclass(frozen=True)
class StoredElement:
    """An element of a stored term is written to memory."""

    term: Term
    place: int
    value: Symbol


class RunWriter(SourceWriter):
    """Writes one run.

    Attributes
    ----------
    functions
        The lines of the pieces that became functions.
    calls
        The lines that stand in the kernel.
    needed
        The names that they take from the kernel.
    """

    def __init__(
        self,
        bodies: Bodies,
        storage: dict[int, Storage],
        emitter: Emitter,
        blocks: Blocks,
        *,
        first: int = 0,
        counter: int = 0,
    ) -> None:
        super().__init__(bodies, storage, emitter, {})
        self.blocks, self.first, self.counter = blocks, first, counter
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.needed: dict[str, None] = {}
        self._made: dict[tuple[int, int], Symbol] = {}  # elements of this run, by place
        self._piece_of: dict[Symbol, int] = {}
        self._homes: dict[Symbol, StoredElement] = {}
        self._places: dict[Symbol, tuple[str, str]] = {}  # where a later piece finds a value

    def _scope(self, name: str) -> str:
        return "0, 1"  # what runs in order gains nothing from knowing which arrays lie apart

    def write(self, run: Sequence[Statement], *, contract: bool = False) -> None:
        """Write it."""
        pieces = self._cut(run)
        passed = self._passed(pieces)
        for number, piece in enumerate(pieces):
            self.names, self.lines, self.arguments = {}, [], {}
            for step in piece:
                if isinstance(step, StoredElement):
                    self._keep(step)
                else:
                    self._compute(step, step in passed)
            self.needed.update(self.arguments)
            if len(pieces) == 1:
                self.calls = self.lines
                return
            name, given = f"piece_{self.first + number}", ", ".join(self.arguments)
            decorator = self.use("contracted" if contract else "outlined", "codegen.device")
            apart = self.use("no_inline", "codegen.accumulation")
            head = [f"@{decorator}", f"def {name}({given}):", f"    {apart}()"]
            self.functions += [*head, *self.lines, "", ""]
            self.calls.append(f"    {name}({given})")

    # ------------------------------------------------------------------------------------ cutting

    def _cut(self, run: Sequence[Statement]) -> list[list[Symbol | StoredElement]]:
        """The steps of each piece, in order."""
        pieces: list[list[Symbol | StoredElement]] = [[]]
        for statement in run:
            term = statement.term
            memory = self.storage[term.number].memory
            for position, root in enumerate(self.bodies.body(statement).args):
                for symbol in in_order([root], self._piece_of):
                    if symbol.args:
                        if len(pieces[-1]) >= PIECE:
                            pieces.append([])
                        pieces[-1].append(symbol)
                        self._piece_of[symbol] = len(pieces) - 1
                value = self._made[term.number, position] = self._value(root)
                if memory:
                    kept = StoredElement(term, position, value)
                    pieces[-1].append(kept)
                    if self._piece_of.get(value) == len(pieces) - 1:
                        self._homes.setdefault(value, kept)
        return pieces

    def _value(self, symbol: Symbol) -> Symbol:
        """The symbol that computes another, which may be a read of what this run has made."""
        if symbol.op != "load" or symbol.args:
            return symbol
        number, index = symbol.detail
        flat = index[:1] == ("flat",)
        offset = index[1] if flat else self.bodies.terms[number].own_offset(index)
        position = value_of(offset)
        return symbol if position is None else self._made.get((number, position), symbol)

    def _passed(self, pieces: Sequence[Sequence[Symbol | StoredElement]]) -> set[Symbol]:
        """The values that a later piece needs."""
        values: set[Symbol] = set()
        for number, piece in enumerate(pieces[1:], start=1):
            for step in piece:
                for symbol in (step.value,) if isinstance(step, StoredElement) else step.args:
                    value = self._value(symbol)
                    if self._piece_of.get(value, number) < number:
                        values.add(value)
        return values

    # ------------------------------------------------------------------------------------ writing

    def _compute(self, symbol: Symbol, passed: bool) -> None:
        for a in symbol.args:
            self._provide(a)
        (text,) = self.values(1, [symbol])
        if not passed:
            return
        home = self._homes.get(symbol)
        if home is not None:
            self._places[symbol] = self._home(home)
            return
        name, position = self.blocks.take(symbol.dtype, 1)
        self._places[symbol] = name, str(position)
        self._put_away(text, name, str(position))

    def _keep(self, kept: StoredElement) -> None:
        self._provide(kept.value)
        (text,) = self.values(1, [kept.value])
        self._put_away(text, *self._home(kept))

    def _put_away(self, value: str, name: str, position: str) -> None:
        self.arguments[name] = None
        store = self.use("store", "codegen.intrinsics")
        self.put(1, f"{store}({value}, {name}, {position}, {self._scope(name)})")

    def _home(self, kept: StoredElement) -> tuple[str, str]:
        shape = extents(kept.term.shape)
        assert shape is not None
        return self._place(
            kept.term, tuple([constant(int(i)) for i in np.unravel_index(kept.place, shape)])
        )

    def _provide(self, symbol: Symbol) -> None:
        """Give a name to a value that this run may have made."""
        value = self._value(symbol)
        if value not in self.names and value.args:
            name, position = self._places[value]
            self.arguments[name] = None
            self.counter += 1
            here = f"e{self.counter}"
            if value.op == "computed":
                here = self.bodies.name(value)
            load = self.use("load", "codegen.intrinsics")
            kind = type_name(value.dtype)
            self.put(1, f"{here} = {load}({kind}, {name}, {position}, {self._scope(name)})")
            self.names[value] = here
        if value is not symbol:
            if value not in self.names:
                self.values(1, [value])
            self.names[symbol] = self.names[value]


def runs(items: Sequence[Item]) -> list[list[Statement] | Item]:
    """Items of a kernel, with statements of small arrays that follow one another in lists."""
    out: list[list[Statement] | Item] = []
    for item in items:
        if not (isinstance(item, Statement) and item.small):
            out.append(item)
        elif out and isinstance(out[-1], list):
            out[-1].append(item)
        else:
            out.append([item])
    return out


class StoredStatements(SourceWriter):
    """Statements of a kernel in their loops, and what each is kept in.

    Attributes
    ----------
    terms
        What the kernel computes and keeps, by number.
    outside
        What it reads of others.
    runs
        Its outermost loops, and the statements between them.
    loops_of
        By number of a term, which of these its statement is in, and the loops around it.
    """

    def __init__(
        self,
        bodies: Bodies,
        statements: Sequence[Statement],
        items: Sequence[Item],
        exported: set[int],
        emitter: Emitter,
    ) -> None:
        super().__init__(bodies, {}, emitter, {})
        self.statements, self.items = statements, items
        own = {s.term.number for s in statements}
        self.exported, self.terms = exported, {n: t for n, t in bodies.stored.items() if n in own}
        self.blocks = Blocks()
        self.runs = runs(items)
        self.loops_of: dict[int, tuple[int, list[Loop]]] = {}
        self._place_statements()
        self.outside: dict[int, Term] = {}
        self._find_storage()

    def _place_statements(self) -> None:
        for number, item in enumerate(self.runs):
            if isinstance(item, list):
                self.loops_of.update({s.term.number: (number, []) for s in item})
            elif isinstance(item, Statement):
                self.loops_of[item.term.number] = (number, [])
            else:
                for statement, path in paths(item):
                    self.loops_of[statement.term.number] = (number, path)

    def _find_storage(self) -> None:
        readers: dict[int, list[Statement]] = {}
        self._searched: set[int] = set()  # read at places that are computed
        for statement in self.statements:
            for symbol in self.bodies.loads(statement):
                readers.setdefault(symbol.detail[0], []).append(statement)
                if symbol.args:
                    self._searched.add(symbol.detail[0])
        for number, term in self.bodies.terms.items():
            if number not in self.bodies.stored:
                self.outside[number] = term
                memory = term.op == BUFFER or bool(term.shape)
                name = f"a{number}" if memory else f"r{number}"
                axes = tuple(range(len(term.shape)))
                self.storage[number] = Storage(name, axes, whole=True, memory=memory)
        for statement in self.statements:
            term = statement.term
            self.storage[term.number] = self._storage(statement, readers.get(term.number, []))

    def _storage(self, statement: Statement, readers: list[Statement]) -> Storage:
        term = statement.term
        number = term.number
        item, path = self.loops_of[number]
        everything = tuple(range(len(term.shape)))
        if term.op == PART or term.op in CALLS:
            owner = term.detail[0] if term.op == PART else number
            return Storage(f"a{owner}", everything, whole=True)
        elsewhere = any(self.loops_of[r.term.number][0] != item for r in readers)
        if statement.small and number not in self.exported:
            return self._storage_of_small(term, elsewhere)
        over_top = bool(path) and not {*path[0].merged}.isdisjoint(statement.reduced.values())
        looped = any(loop is not None for loop in statement.loops)
        if not (path or statement.small) or (over_top and not looped):
            return Storage(f"r{number}", (), whole=True, memory=False)
        if number in self.exported or elsewhere or over_top:
            return Storage(f"a{number}", everything, whole=True)
        return self._storage_in_nest(statement, readers, path)

    def _storage_of_small(self, term: Term, elsewhere: bool) -> Storage:
        """A place in a block for what a nest, another run or a computed index reads."""
        everything = tuple(range(len(term.shape)))
        memory = elsewhere or term.number in self._searched
        length = elements(term.shape)
        if not memory or not length:
            return Storage(f"r{term.number}", everything, memory=False)
        name, first = self.blocks.take(term.dtype, length)
        return Storage(name, everything, whole=True, first=first)

    def _storage_in_nest(
        self, statement: Statement, readers: list[Statement], path: list[Loop]
    ) -> Storage:
        """An array of what one iteration of the loops shared with all readers needs."""
        term = statement.term
        common = list(path)
        for reader in readers:
            other = self.loops_of[reader.term.number][1]
            common = [a for a, b in zip(common, other, strict=False) if a is b]
        open_loops = {loop for each in common for loop in each.merged}
        for each in reversed(path):  # a scan takes up what the loops inside of its own left
            if statement.scanned is None or each.loop == statement.scanned:
                break
            open_loops.difference_update(each.merged)
        axes = tuple(
            a
            for a, loop in enumerate(statement.loops)
            if loop is not None and loop not in open_loops
        )
        blocks = {u for each in path if each.lanes for u in each.merged}
        if not any(self._is_read_flat(term, reader) for reader in readers):
            # what lanes write lies side by side
            axes = tuple(sorted(axes, key=lambda a: statement.loops[a] in blocks))
        lanes = any(each.lanes for each in common) and not any(each.rows for each in common)
        if lanes:
            memory = bool(axes or statement.reduced) or not self._same_run(statement, readers)
        else:
            memory = bool(axes) or term.op == SCATTER
        return Storage(f"a{term.number}", axes, lanes=lanes, memory=memory)

    def _is_read_flat(self, term: Term, reader: Statement) -> bool:
        details = [symbol.detail for symbol in self.bodies.loads(reader)]
        return any(n == term.number and index[:1] == ("flat",) for n, index in details)

    def _same_run(self, statement: Statement, readers: Sequence[Statement]) -> bool:
        """Whether readers follow a statement without a loop in between."""
        _, path = self.loops_of[statement.term.number]
        run: list[Statement] = []
        for item in path[-1].items:
            if isinstance(item, Loop):
                run = [] if statement not in run else run
                if statement in run:
                    break
            else:
                run.append(item)
        return statement in run and all(reader in run for reader in readers)


@dataclass
class Work:
    """Work of one loop, or of a matrix product.

    Attributes
    ----------
    picoseconds
        Of arithmetic in one thread.
    moved
        Bytes of the arrays that it reads and writes.
    """

    picoseconds: Length = ()
    moved: Length = ()


class TaskWriter(StoredStatements):
    """Writes the calls of nests."""

    def _call(self, nest: Nest, kept: list[str]) -> Work:
        """Run a nest."""
        k, loop = nest.number, nest.loop
        produced = {s.term.number for s in loop.statements()}
        rows = {f"a{s.term.number}": s for s in nest.rows}
        for name in nest.arguments:
            if name.startswith("s_"):
                continue
            number = int(name[1:])
            inside = number in produced and number not in self.exported
            if name.startswith("n") or not (name in rows or inside):
                self.arguments[name] = None
        self.need(loop.length)
        self.need(nest.per_iteration)
        total, inner = text(loop.length), text(nest.per_iteration)
        value = value_of(nest.per_iteration)
        row = " + ".join(text(count(s.term.shape)) for s in nest.rows)
        for s in nest.rows:
            self.need(count(s.term.shape))
        self.put(1, f"total{k} = {total}")
        if nest.serial:
            self.put(1, f"step{k}, tasks{k} = max(total{k}, 1), 1")
        else:
            least = "" if value is None or row else str(-(-TASK // max(value, 1)))
            if not least:
                least = f"{self.use('least_step', 'codegen.tasks')}({inner}, {row or 0})"
            cut = self.use("cut_in_lanes" if loop.lanes else "cut", "codegen.tasks")
            self.put(1, f"step{k}, tasks{k} = {cut}(total{k}, {least})")
        partial = (*nest.scalars, *nest.rows)
        depth = 1
        if partial:  # one task computes the results where they belong
            self.put(1, f"if tasks{k} == 1:")
            results = [f"r{s.term.number}" for s in nest.scalars]
            self.put(2, self._task(nest, results, "0", f"total{k}", nest.arguments))
            self.put(1, "else:")
            depth = 2
        alike: dict[tuple[str, str], list[Statement]] = {}
        for s in nest.scalars:
            kind = step_of(s.term.detail[0], s.term.dtype), numpy_name(s.term.dtype)
            alike.setdefault(kind, []).append(s)
        place = {
            s.term.number: (f"p{group[0].term.number}", column)
            for group in alike.values()
            for column, s in enumerate(group)
        }
        for group in (*alike.values(), *([s] for s in nest.rows)):
            n, dtype = group[0].term.number, numpy_name(group[0].term.dtype)
            size = self._columns(group, nest)
            self.put(depth, f"p{n} = np.empty((tasks{k} + 1, {size}), {dtype})")
            if group[0] in nest.rows:
                self.put(depth, f"q{n} = int64(p{n}.ctypes.data)")
        self.put(depth, f"for task{k} in @RANGE@(tasks{k}):")
        given = [self._row(rows[a].term, k) if a in rows else a for a in nest.arguments]
        of_task = [place[s.term.number] for s in nest.scalars]
        results = [f"{name}[task{k}, {column}]" for name, column in of_task]
        stop = f"min(task{k} * step{k} + step{k}, total{k})"
        self.put(depth + 1, self._task(nest, results, f"task{k} * step{k}", stop, given))
        for group in (*alike.values(), *([s] for s in nest.rows)):
            self._finish(depth, group, k, nest)
        for s in nest.scalars:
            self._hand_out(s.term.number, f"r{s.term.number}")
        moved = self._moved([int(name[1:]) for name in nest.arguments if name[0] == "a"])
        return Work(multiply(loop.length, nest.work_ps), moved)

    def _task(
        self, nest: Nest, results: list[str], start: str, stop: str, given: Sequence[str]
    ) -> str:
        """The call of a nest for one task."""
        call = f"nest_{nest.function}({', '.join([start, stop, *given])})"
        return f"{', '.join(results)} = {call}" if results else call

    def _row(self, term: Term, k: int) -> str:
        """Where a task keeps its partial sums."""
        size = text(multiply(count(term.shape), constant(term.dtype.itemsize)))
        return f"q{term.number} + task{k} * ({size})"

    def _columns(self, group: Sequence[Statement], nest: Nest) -> str:
        """How many numbers a task keeps of results that are put together in the same way."""
        return text(count(group[0].term.shape)) if group[0] in nest.rows else str(len(group))

    def _finish(self, depth: int, group: Sequence[Statement], k: int, nest: Nest) -> None:
        """Put the partial results of tasks together."""
        term = group[0].term
        n, size = term.number, self._columns(group, nest)
        many = group[0] in nest.rows
        step = step_of(term.detail[0], term.dtype)
        join = self.use(f"join_{'rows' if many else 'few'}_{step}", "codegen.accumulation")
        if many:
            whole = f"x{n}.reshape({size})" if n in self.exported else f"x{n}"
            self.put(depth, f"{join}(p{n}, tasks{k}, {size}, {whole})")
            return
        self.put(depth, f"{join}(p{n}, tasks{k}, {size})")
        for column, s in enumerate(group):
            self.put(depth, f"r{s.term.number} = p{n}[0, {column}]")

    def _hand_out(self, number: int, value: str) -> None:
        """A number is known."""
        term = self.terms[number]
        if term.op == PART:
            whole, shape, axis, start = term.detail
            index = ", ".join(text(start) if a == axis else "0" for a in range(len(shape)))
            self.need(start)
            self.put(1, f"x{whole}[{index}] = {value}")
            return
        self.names[self.bodies.load(term, ())] = value
        if number in self.exported:
            first = ", ".join(["0"] * max(len(term.shape), 1))
            self.put(1, f"x{number}[{first}] = {value}")

    def _moved(self, numbers: Iterable[int]) -> Length:
        """Bytes of the arrays of some terms, each counted once."""
        total: Length = ()
        for term in {n: self.terms.get(n) or self.outside.get(n) for n in numbers}.values():
            if term is not None:
                size = multiply(count(term.shape), constant(term.dtype.itemsize))
                total = add(total, size)
        return total
