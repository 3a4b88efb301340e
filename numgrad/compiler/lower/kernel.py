"""One kernel: statements brought into loops, memory for what they store, the entry point.

Note [Rows]
-----------
A program that was unrolled from a Python loop has hundreds of temporary arrays of one length. They
are rows of one array, which is a single allocation to compile and to run. Lengths of rows are
whole lines of the CPU's caches, and a line lies in between: rows of a power of two would compete
for the same places there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.estimate import L3_NS
from numgrad.codegen.reduction_loops import numpy_name
from numgrad.codegen.reduction_plan import step_of
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply, value_of
from numgrad.compiler.lower.elements import elements
from numgrad.compiler.lower.lanes import LANES, choose_lanes
from numgrad.compiler.lower.nest import MAX_TASKS, TASK, Nest, NestWriter
from numgrad.compiler.lower.pieces import Blocks, RunWriter, runs
from numgrad.compiler.lower.statements import (
    Bodies,
    Statement,
    alive_terms,
    expensive,
    make_statements,
)
from numgrad.compiler.lower.terms import (
    BUFFER,
    PART,
    PRODUCT,
    SCATTER,
    Term,
    Terms,
    count,
)
from numgrad.compiler.lower.tree import Item, Loop, build, paths
from numgrad.compiler.lower.write import SourceWriter, Storage, text
from numgrad.core.elementwise import USER_KERNELS
from numgrad.kernels.products import gemm as products

ROWS = 16
"""Arrays of a kernel's own of one length from which on they are rows of one array."""
LINE = 64
"""Bytes of a line of the CPU's caches."""
_ARRAY = re.compile(r"\bx\d+\b")
ROWS_NS = 20_000.0
"""Work of a block of rows of a matrix product, at least."""
SERIAL, PARALLEL = "@SERIAL@", "@PARALLEL@"
"""Begin the lines that only one variant of a kernel has."""
LONG_NS = 100_000.0
"""From which time on other Python threads run beside a kernel."""


def variant(body: str, *, parallel: bool) -> str:
    """The text of a kernel whose tasks threads share, or not."""
    own, other = (PARALLEL, SERIAL) if parallel else (SERIAL, PARALLEL)
    lines = [line.replace(own, "") for line in body.splitlines(True) if other not in line]
    return "".join(lines).replace("@RANGE@", "prange" if parallel else "range")


@dataclass
class Work:
    """What one loop, or matrix product, takes.

    Attributes
    ----------
    picoseconds
        Of arithmetic in one thread.
    moved
        Bytes of the arrays that it reads and writes.
    """

    picoseconds: Length = ()
    moved: Length = ()


@dataclass
class Written:
    """A kernel's source and what calling it takes.

    Attributes
    ----------
    arrays, scalars, lengths
        What the entry point takes: terms in memory (results last), numbers, axes of ``sizes``.
    work
        What the loop takes that has most to do: threads share the iterations of one loop.
    long
        Whether other Python threads are to run beside it.
    writer
        Who wrote it, with bodies and storage of all statements, for reports.
    works
        What each loop and each matrix product takes, in order.
    """

    body: str
    emitter: Emitter
    arrays: list[Term]
    results: list[Term]
    scalars: list[Term]
    lengths: list[str]
    work: Work
    long: bool
    nests: list[Nest]
    writer: KernelWriter
    works: list[Work]

    @property
    def arguments(self) -> list[str]:
        """The parameters of the entry point."""
        given = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*given, *(f"r{t.number}" for t in self.scalars), *self.lengths]

    def source(self, *, parallel: bool) -> str:
        """The source of the serial or the parallel variant."""
        return self.emitter.header() + variant(self.body, parallel=parallel)

    def signature(self) -> str:
        """Numba's signature of the entry point."""
        parts = [
            f"{type_name(t.dtype)}[{', '.join([':'] * (len(t.shape) - 1) + ['::1'])}]"
            if t.shape
            else f"{type_name(t.dtype)}[::1]"
            for t in (*self.arrays, *self.results)
        ]
        parts += [type_name(t.dtype) for t in self.scalars]
        parts += ["int64"] * len(self.lengths)
        return f"void({', '.join(parts)})"


class KernelWriter(SourceWriter):
    """Writes the entry point of a kernel.

    Parameters
    ----------
    stored
        Terms that this kernel computes and keeps.
    exported
        Numbers of the terms that other kernels or the caller read.
    joined
        Arrays that some of ``stored`` are parts of, which others read.
    contract
        Whether a product and a sum may become one instruction.
    """

    def __init__(
        self,
        terms: Terms,
        stored: Sequence[Term],
        exported: set[int],
        joined: Sequence[Term] = (),
        contract: bool = False,
    ) -> None:
        self.joined, self.hint, self.contract = joined, terms.sizes.hint_of, contract
        bodies, self.statements, self.items = arrange(terms, stored, exported)
        self.exported, self.terms = exported, bodies.stored
        kernels = {f"user:{name}": kernel for name, kernel in USER_KERNELS.items()}
        super().__init__(bodies, {}, Emitter(scalar_functions=kernels), {})
        self.blocks, self.pieces = Blocks(), 0
        self.runs = runs(self.items)
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

    # ----------------------------------------------------------------------------------- storage

    def _find_storage(self) -> None:
        readers: dict[int, list[Statement]] = {}
        self._searched: set[int] = set()  # read at places that are computed
        for statement in self.statements:
            for symbol in self.bodies.loads(statement):
                readers.setdefault(symbol.detail[0], []).append(statement)
                if symbol.args:
                    self._searched.add(symbol.detail[0])
        for number, term in self.bodies.terms.items():
            if number not in self.terms:
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
        if term.op in (PART, PRODUCT):
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
        lanes = path[0].lanes and not (len(common) > 1 and common[1].rows)
        if lanes:
            memory = bool(axes or statement.reduced) or not self._same_run(statement, readers)
        else:
            memory = bool(axes) or term.op == SCATTER
        return Storage(f"a{term.number}", axes, lanes=lanes, memory=memory)

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

    # ------------------------------------------------------------------------------------- source

    def write(self) -> Written:
        """The kernel."""
        functions, nests, works, kept = self._write_items()
        guessed = [self._guess_ns(work) for work in works]
        head = [*self._temporaries(kept), *self._addresses()]
        body = [*functions, f"def kernel({', '.join(self._parameters())}):", *head, *self.lines]
        kept += self.blocks.names()
        body += [f"    {self.use('touch', 'codegen.accumulation')}({name})" for name in kept]
        if len(body) == len(functions) + 1:
            body.append("    pass")
        source = "\n".join(body).replace("@SCOPES@", str(len(self.scopes))) + "\n"
        return Written(
            source, self.emitter, self.arrays, self.results, self.scalars,
            self.lengths, works[guessed.index(max(guessed))], sum(guessed) > LONG_NS, nests, self,
            works[1:],
        )  # fmt: skip

    def _write_items(self) -> tuple[list[str], list[Nest], list[Work], list[str]]:
        """Write what is computed: functions, nests, their work, arrays in use."""
        nests: list[Nest] = []
        functions: list[str] = []
        works: list[Work] = [Work()]
        kept: list[str] = []
        for item in self.runs:
            if isinstance(item, list):
                self._run(item, functions)
                continue
            if isinstance(item, Statement):
                self._statement(item, works)
                continue
            writer = NestWriter(
                len(nests), item, self.bodies, self.storage, self.emitter, self.hint, self.contract
            )
            nest = writer.write()
            nests.append(nest)
            functions += [*nest.lines, "", ""]
            works.append(self._call(nest, kept))
        return functions, nests, works, kept

    def _moved(self, numbers: Iterable[int]) -> Length:
        """What the arrays of some terms hold, each once."""
        total: Length = ()
        for term in {n: self.terms.get(n) or self.outside.get(n) for n in numbers}.values():
            if term is not None:
                size = multiply(count(term.shape), constant(term.dtype.itemsize))
                total = add(total, size)
        return total

    def _parameters(self) -> list[str]:
        names = list(self.arguments)
        self.results = [t for n, t in self.terms.items() if n in self.exported]
        self.results += self.joined
        self.arrays = [
            t for n, t in self.outside.items() if self.storage[n].memory and f"a{n}" in names
        ]
        self.scalars = [
            t for n, t in self.outside.items() if not self.storage[n].memory and f"r{n}" in names
        ]
        self.lengths = sorted({n for n in names if n.startswith("n")}, key=lambda n: int(n[1:]))
        given = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*given, *(f"r{t.number}" for t in self.scalars), *self.lengths]

    def _temporaries(self, kept: list[str]) -> list[str]:
        """Lines that make the arrays of the kernel's own: Note [Rows]."""
        lines = self.blocks.allocations()
        named = {name for line in self.lines for name in _ARRAY.findall(line)}
        alike: dict[tuple[Any, ...], list[int]] = {}
        for number, term in self.terms.items():
            place, size = self.storage[number], count(term.shape)
            inside = place.whole and place.memory and not place.name.startswith("s_")
            if term.op == PART or not inside or number in self.exported:
                continue
            self.need(size)
            by_address = value_of(size) is None and f"x{number}" not in named
            alike.setdefault((size, term.dtype) if by_address else (), []).append(number)
        rows = {key: numbers for key, numbers in alike.items() if key and len(numbers) >= ROWS}
        own = {n for key, numbers in alike.items() if key not in rows for n in numbers}
        for number in filter(own.__contains__, self.terms):
            term = self.terms[number]
            size, dtype = text(count(term.shape)), numpy_name(term.dtype)
            lines.append(f"    x{number} = np.empty({size}, {dtype})")
            lines.append(f"    a{number} = int64(x{number}.ctypes.data)")
            kept.append(f"x{number}")
        for (size, dtype), numbers in rows.items():
            lines += _rows(numbers, text(size), dtype)
            kept.append(f"x{numbers[0]}")
        return lines

    def _addresses(self) -> list[str]:
        """Lines that find the addresses of arguments."""
        lines = []
        self._parameters()
        for term in (*self.arrays, *self.results):
            if term in self.joined or self.storage[term.number].memory:
                lines.append(f"    a{term.number} = int64(x{term.number}.ctypes.data)")
        return lines

    def _run(self, run: list[Statement], functions: list[str]) -> None:
        """Small arrays, element by element."""
        writer = RunWriter(
            self.bodies, self.storage, self.emitter, self.blocks,
            first=self.pieces, counter=self.counter,
        )  # fmt: skip
        writer.write(run, contract=self.contract)
        functions += writer.functions
        self.lines += writer.calls
        self.counter, self.pieces = writer.counter, self.pieces + len(writer.calls)
        self.arguments.update((name, None) for name in writer.needed if not name.startswith("s_"))

    def _guess_ns(self, work: Work) -> float:
        return self.hint(work.picoseconds) / 1000 + self.hint(work.moved) * L3_NS

    def _statement(self, statement: Statement, works: list[Work]) -> None:
        """A number, computed between the nests, or a matrix product."""
        if statement.term.op == PRODUCT:
            works.append(self._product(statement.term))
            return
        (value,) = self.values(1, [self.bodies.body(statement)])
        number = statement.term.number
        self.put(1, f"r{number} = {value}")
        self._hand_out(number, f"r{number}")

    def _product(self, term: Term) -> Work:
        """Multiply matrices, blocks of rows in turn."""
        k, sizes = term.number, term.detail
        addresses = [self.address(x) for x in (*term.args, term)]
        for length in (sizes.batch, sizes.m, sizes.n, sizes.k):
            self.need(length)
        rows, columns, inner = text(sizes.m), text(sizes.n), text(sizes.k)
        kind, width = type_name(term.dtype), term.dtype.itemsize
        batch = text(sizes.batch)
        stored_a = rows if sizes.trans[0] else inner
        stored_b = inner if sizes.trans[1] else columns
        step_a = "1" if sizes.trans[0] else f"({inner})"
        gemm = self.use("gemm", "kernels.products.blas")

        def multiplied(first: str, some: str) -> str:
            """The call for some rows, from one on, of a matrix."""
            places = [
                (addresses[0], sizes.shared[0], f"({rows}) * ({inner})", f"{first} * {step_a}"),
                (addresses[1], sizes.shared[1], f"({inner}) * ({columns})", "0"),
                (addresses[2], False, f"({rows}) * ({columns})", f"{first} * ({columns})"),
            ]
            at = [
                f"{address} + ({'0' if shared else f'matrix{k} * {matrix}'} + {row}) * {width}"
                for address, shared, matrix, row in places
            ]
            given = [
                kind, str(int(sizes.trans[0])), str(int(sizes.trans[1])), some, columns, inner,
                at[0], stored_a, at[1], stored_b, at[2], columns, "0", "1",
            ]  # fmt: skip
            return f"{gemm}({', '.join(given)})"

        self.put(1, f"{SERIAL}for matrix{k} in range({batch}):")
        self.put(2, f"{SERIAL}{multiplied('0', rows)}")
        # any blocks of rows have the bits of the whole, so there are as many as threads
        products_of_task = int(ROWS_NS / products.MULTIPLY_NS[term.dtype.name])
        pays = f"({batch}) * ({rows}) * ({columns}) * ({inner}) // {products_of_task}"
        limit = self.use("thread_limit", "kernels.products.blas")
        for line in (
            f"rows{k} = {rows}",
            f"workers{k} = max(1, min({limit}(), {pays}))",
            f"blocks{k} = -(-workers{k} // max({batch}, 1))",
            f"step{k} = max(-(-rows{k} // (4 * blocks{k})) * 4, 4)",
            f"blocks{k} = -(-rows{k} // step{k})",
            f"for task{k} in prange(blocks{k} * ({batch})):",
            f"    matrix{k} = task{k} // blocks{k}",
            f"    first{k} = (task{k} - matrix{k} * blocks{k}) * step{k}",
            f"    some{k} = min(step{k}, rows{k} - first{k})",
            "    " + multiplied(f"first{k}", f"some{k}"),
        ):
            self.put(1, f"{PARALLEL}{line}")
        self.emitter.externals.add(products.external("gemm", term.dtype.name))
        time = constant(round(1000 * products.MULTIPLY_NS[term.dtype.name]))
        for length in (sizes.batch, sizes.m, sizes.n, sizes.k):
            time = multiply(time, length)
        return Work(time, self._moved([x.number for x in (*term.args, term)]))

    def _hand_out(self, number: int, value: str) -> None:
        """A number is known."""
        term = self.terms[number]
        if term.op == PART:
            whole, shape, axis, start = term.detail
            place = ", ".join(text(start) if a == axis else "0" for a in range(len(shape)))
            self.need(start)
            self.put(1, f"x{whole}[{place}] = {value}")
            return
        self.names[self.bodies.load(term, ())] = value
        if number in self.exported:
            first = ", ".join(["0"] * max(len(term.shape), 1))
            self.put(1, f"x{number}[{first}] = {value}")

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
        unit = LANES if loop.lanes else 1
        value = value_of(nest.per_iteration)
        least = (
            f"-(-{TASK} // max({inner}, 1))" if value is None else str(-(-TASK // max(value, 1)))
        )
        row = " + ".join(text(count(s.term.shape)) for s in nest.rows)
        for s in nest.rows:
            self.need(count(s.term.shape))
        if row:  # a task is to be long against putting its results together
            least = f"max({least}, -(-8 * ({row}) // max({inner}, 1)))"
        self.put(1, f"total{k} = {total}")
        if nest.serial:
            least = f"total{k}, 1"
        self.put(1, f"step{k} = max({least}, -(-total{k} // {MAX_TASKS}))")
        if unit > 1:
            self.put(1, f"step{k} = -(-step{k} // {unit}) * {unit}")
        self.put(1, f"tasks{k} = max(1, -(-total{k} // step{k}))")
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
        call = f"nest_{nest.number}({', '.join([start, stop, *given])})"
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
        function = self.use(f"finish_{step_of(term.detail[0], term.dtype)}", "codegen.accumulation")
        self.put(depth, f"{function}(p{n}, tasks{k}, {size}, 1)")
        if group[0] in nest.rows:
            whole = f"x{n}.reshape({size})" if n in self.exported else f"x{n}"
            self.put(depth, f"f{n} = {whole}", f"for e in range({size}):")
            self.put(depth + 1, f"f{n}[e] = p{n}[0, e]")
            return
        for column, s in enumerate(group):
            self.put(depth, f"r{s.term.number} = p{n}[0, {column}]")


def _rows(numbers: Sequence[int], size: str, dtype: np.dtype) -> list[str]:
    """Lines that make arrays of one size: Note [Rows]."""
    first, *others = numbers
    unit = max(LINE // dtype.itemsize, 1)
    places = [
        f"    a{number} = a{first} + {k * dtype.itemsize} * row{first}"
        for k, number in enumerate(others, start=1)
    ]
    return [
        f"    row{first} = -(-({size}) // {unit}) * {unit} + {unit}",
        f"    x{first} = np.empty(({len(numbers)}, row{first}), {numpy_name(dtype)})",
        f"    a{first} = int64(x{first}.ctypes.data)",
        *places,
    ]


def arrange(
    terms: Terms, stored: Sequence[Term], exported: Collection[int]
) -> tuple[Bodies, list[Statement], list[Item]]:
    """Statements and loops for stored terms, more of which are stored where that saves work."""
    hint = terms.sizes.hint_of
    kept = list(stored)
    while True:
        statements, loops = make_statements(kept, hint)
        bodies = Bodies(kept)
        alive = alive_terms(statements, bodies, exported)
        if len(alive) < len(kept):
            kept = [t for t in kept if t.number in alive]
            continue
        items = build(statements, bodies, loops)
        for item in items:
            if isinstance(item, Loop):
                choose_lanes(item, bodies, loops, exported)
        more = _worth_keeping(bodies, items)
        if not more:
            return bodies, statements, items
        kept += more


def _worth_keeping(bodies: Bodies, items: Sequence[Item]) -> list[Term]:
    """Expensive terms that would be computed at several places of the same nest."""
    found: dict[int, Term] = {}
    for item in items:
        if not isinstance(item, Loop):
            continue
        seen: dict[int, tuple[int, ...]] = {}
        for statement, path in paths(item):
            body = bodies.body(statement)
            around = {loop for each in path for loop in each.merged}
            for term, needed in expensive(body, bodies):
                place = tuple(map(id, path))
                wasted = bool(around - needed) if path[0].lanes else _again_and_again(path, needed)
                if term.number in bodies.stored:
                    continue  # another term may have the same value at some places
                if wasted or seen.setdefault(term.number, place) != place:
                    found[term.number] = term
    return list(found.values())


def _again_and_again(path: Sequence[Loop], needed: set[int]) -> bool:
    """Whether the innermost loop that a term needs is within one that it does not."""
    needs = [not needed.isdisjoint(each.merged) for each in path]
    first = needs.index(False) if False in needs else len(needs)
    return any(needs[first:])
