"""One kernel: statements brought into loops, memory for what they store, the entry point.

Note [Rows]
-----------
A program that was unrolled from a Python loop has hundreds of temporary arrays of one length. They
are rows of one array, which is a single allocation to compile and to run. Lengths of rows are
whole lines of the CPU's caches, and a line lies in between: rows of a power of two would compete
for the same places there.

Note [Nests alike]
------------------
Layers of a network, or steps that a Python loop unrolled, are nests that differ in addresses and
lengths, which are their arguments. A nest whose text becomes that of an earlier one when the names
of both are numbered as they appear (alpha-equivalence) is a call of that one's function. The
gradient of an MLP of 60 layers has 180 nests and 8 functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import numpy_name, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.lanes import choose_lanes, choose_tiles
from numgrad.codegen.nests.loop_tree import Item, Loop, build, paths
from numgrad.codegen.nests.nest import Nest, NestWriter
from numgrad.codegen.nests.polynomial import constant, multiply, value_of
from numgrad.codegen.nests.statements import (
    Bodies,
    Statement,
    alive_terms,
    expensive,
    make_statements,
)
from numgrad.codegen.nests.tasks import RunWriter, TaskWriter, Work
from numgrad.codegen.nests.terms import CALLS, PART, PRODUCT, Term, Terms, count
from numgrad.codegen.nests.write import text
from numgrad.codegen.threads import L3_NS
from numgrad.dataclass import dataclass

ROWS = 16
"""Arrays of a kernel's own of one length from which on they are rows of one array."""
LINE = 64
"""Bytes of a line of the CPU's caches."""
_ARRAY = re.compile(r"\bx\d+\b")
_LOCAL = re.compile(r"\b(acc|lane|[a-z])\d+(?:_\d+)?\b")
ROWS_NS = 20_000.0
"""Work of a block of rows of a matrix product, at least."""
CALL_PS = 500
"""Picoseconds of an operation of a function of the kernel library."""
SERIAL, PARALLEL = "@SERIAL@", "@PARALLEL@"
"""Begin the lines that only one variant of a kernel has."""
LONG_NS = 100_000.0
"""Nanoseconds from which on other Python threads run beside a kernel."""


def variant(body: str, *, parallel: bool) -> str:
    """The text of a kernel whose tasks threads share, or not."""
    own, other = (PARALLEL, SERIAL) if parallel else (SERIAL, PARALLEL)
    lines = [line.replace(own, "") for line in body.splitlines(True) if other not in line]
    return "".join(lines).replace("@RANGE@", "prange" if parallel else "range")


def for_lengths(source: str, lengths: Mapping[str, int]) -> str:
    """A source for axes of known lengths: every function sets them, so LLVM unrolls loops."""

    def fixed(head: re.Match[str]) -> str:
        known = [n for n in lengths if re.search(rf"\b{n}\b", head[0])]
        return head[0] + "".join(f"\n    {n} = {lengths[n]}" for n in known)

    return re.sub(r"^def \w+\(.*\):$", fixed, source, flags=re.M)


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
        names = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*names, *(f"r{t.number}" for t in self.scalars), *self.lengths]

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


class KernelWriter(TaskWriter):
    """Writes the entry point of a kernel.

    Parameters
    ----------
    stored
        Terms that this kernel computes and keeps.
    exported
        Numbers of the terms that other kernels or the caller read.
    joined
        Arrays that some of ``stored`` are parts of, which others read.
    emitter
        Writes functions of single elements.
    products
        Code that multiplies matrices.
    contract
        Whether a product and a sum may become one instruction.
    tiled
        Whether scans are cut into tiles: Note [Tiles] in ``lanes``.
    inline
        Whether loops whose iterations stand alone are written into the entry point, which takes
        less time to compile.
    """

    def __init__(
        self,
        terms: Terms,
        stored: Sequence[Term],
        exported: set[int],
        emitter: Emitter,
        products: ProductCode,
        joined: Sequence[Term] = (),
        contract: bool = False,
        tiled: bool = False,
        inline: bool = False,
    ) -> None:
        self.joined, self.hint, self.contract = joined, terms.sizes.hint_of, contract
        bodies, statements, items = arrange(terms, stored, exported, tiled)
        super().__init__(bodies, statements, items, exported, emitter)
        self.products, self.inline = products, inline
        self.pieces = 0

    # ------------------------------------------------------------------------------------- source

    def write(self) -> Written:
        """The kernel."""
        functions, nests, works, buffers = self._write_items()
        guessed = [self._guess_ns(work) for work in works]
        head = [*self._temporaries(buffers), *self._addresses()]
        body = [*functions, f"def kernel({', '.join(self._parameters())}):", *head, *self.lines]
        buffers += self.blocks.names()
        body += [f"    {self.use('touch', 'codegen.accumulation')}({name})" for name in buffers]
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
        known: dict[str, int] = {}
        functions: list[str] = []
        works: list[Work] = [Work()]
        buffers: list[str] = []
        for item in self.runs:
            if isinstance(item, list):
                self._run(item, functions)
                continue
            if isinstance(item, Statement):
                self._statement(item, works)
                continue
            writer = NestWriter(
                self.products,
                len(nests),
                item,
                self.bodies,
                self.storage,
                self.emitter,
                self.hint,
                self.contract,
            )
            lines = writer.write_here(self.scopes) if self.inline else None
            if lines is not None:
                self.lines += lines
                self.arguments |= writer.arguments
                continue
            nest = writer.write()
            nests.append(nest)
            nest.function = known.setdefault(self._form(nest), nest.number)
            if nest.function == nest.number:
                functions += [*nest.functions, "", ""]
            works.append(self._call(nest, buffers))
        return functions, nests, works, buffers

    def _form(self, nest: Nest) -> str:
        """The text of a nest's function with names as they appear: Note [Nests alike]."""
        numbers: dict[str, str] = {}

        def renamed(match: re.Match[str]) -> str:
            name = match[0]
            if name in self.emitter.imports or name in self.emitter.namespace:
                return name
            return numbers.setdefault(name, f"{match[1]}{len(numbers)}")

        text = "\n".join(nest.lines).replace(f"def nest_{nest.number}(", "def nest(", 1)
        return _LOCAL.sub(renamed, text)

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
        names = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*names, *(f"r{t.number}" for t in self.scalars), *self.lengths]

    def _temporaries(self, buffers: list[str]) -> list[str]:
        """Lines that make the arrays of the kernel's own: Note [Rows]."""
        lines = self.blocks.allocations()
        named = {name for line in self.lines for name in _ARRAY.findall(line)}
        alike: dict[tuple[Any, ...], list[int]] = {}
        for number, term in self.terms.items():
            storage, size = self.storage[number], count(term.shape)
            inside = storage.whole and storage.memory and not storage.name.startswith("s_")
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
            buffers.append(f"x{number}")
        for (size, dtype), numbers in rows.items():
            lines += _rows(numbers, text(size), dtype)
            buffers.append(f"x{numbers[0]}")
        return lines

    def _addresses(self) -> list[str]:
        """Lines that find the addresses of arguments."""
        lines = []
        self._parameters()
        for term in (*self.arrays, *self.results):
            storage = self.storage.get(term.number)  # none for an operand that nothing reads
            if term in self.joined or (storage is not None and storage.memory):
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
        if statement.term.op in CALLS:
            call = self._product if statement.term.op == PRODUCT else self._library_call
            works.append(call(statement.term))
            return
        (value,) = self.values(1, [self.bodies.body(statement)])
        number = statement.term.number
        self.put(1, f"r{number} = {value}")
        self._hand_out(number, f"r{number}")

    def _library_call(self, term: Term) -> Work:
        """Call a function of the kernel library: ``LibraryCall``."""
        call, operands = term.detail, (*term.args, term)
        module, name = call.function.split(":")
        addresses = [self.address(x) for x in operands]
        for length in call.lengths:
            self.need(length)
        given = [*addresses, *map(text, call.lengths), *map(str, call.numbers)]
        kind = type_name(call.dtype)
        self.put(1, f"{self.use(name, module)}({', '.join([kind, *given])})")
        self.emitter.externals.add(f"numgrad.{module}:{name}_{call.dtype.name}")
        time = multiply(constant(CALL_PS), call.flops)
        return Work(time, self._moved([x.number for x in operands]))

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
        gemm = self.use("gemm", self.products.blas)

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
            arguments = [
                kind, str(int(sizes.trans[0])), str(int(sizes.trans[1])), some, columns, inner,
                at[0], stored_a, at[1], stored_b, at[2], columns, "0", "1",
            ]  # fmt: skip
            return f"{gemm}({', '.join(arguments)})"

        if batch == "1":
            self.put(1, f"{SERIAL}matrix{k} = 0", f"{SERIAL}{multiplied('0', rows)}")
        else:
            self.put(1, f"{SERIAL}for matrix{k} in range({batch}):")
            self.put(2, f"{SERIAL}{multiplied('0', rows)}")
        # any blocks of rows have the bits of the whole, so there are as many as threads
        multiply_ns = self.products.multiply_ns[term.dtype.name]
        products_of_task = int(ROWS_NS / multiply_ns)
        pays = f"({batch}) * ({rows}) * ({columns}) * ({inner}) // {products_of_task}"
        limit = self.use("thread_limit", self.products.blas)
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
        self.emitter.externals.add(self.products.gemm(term.dtype.name))
        time = constant(round(1000 * multiply_ns))
        for length in (sizes.batch, sizes.m, sizes.n, sizes.k):
            time = multiply(time, length)
        return Work(time, self._moved([x.number for x in (*term.args, term)]))


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
    terms: Terms, stored: Sequence[Term], exported: Collection[int], tiled: bool = False
) -> tuple[Bodies, list[Statement], list[Item]]:
    """Statements and loops for stored terms, more of which are stored where that saves work.

    A term that nothing reads in the end has no statement, but remains one that is read from memory:
    small arrays are computed whole where only some of their elements are used.
    """
    hint = terms.sizes.hint_of
    known = list(stored)
    chosen, needed = known, set[int]()
    while True:
        statements, loops = make_statements(chosen, known, hint)
        bodies = Bodies(known)
        alive = alive_terms(statements, bodies, exported) | needed
        numbers = {t.number for t in chosen}
        if alive != numbers:
            needed |= alive - numbers  # dropped before: not again, so that this ends
            chosen = [t for t in known if t.number in alive]
            continue
        items = build(statements, bodies, loops)
        for item in items:
            if isinstance(item, Loop):
                choose_lanes(item, bodies, loops, exported)
                if tiled:
                    choose_tiles(item)
        more = _worth_keeping(bodies, items)
        if not more:
            return bodies, statements, items
        known, chosen = known + more, chosen + more


def _worth_keeping(bodies: Bodies, items: Sequence[Item]) -> list[Term]:
    """Expensive terms that would be computed at several places of the same nest."""
    worth: dict[int, Term] = {}
    for item in items:
        if not isinstance(item, Loop):
            continue
        seen: dict[int, tuple[int, ...]] = {}
        for statement, path in paths(item):
            body = bodies.body(statement)
            around = {loop for each in path for loop in each.merged}
            for term, needed in expensive(body, bodies):
                key = tuple(map(id, path))
                lanes = any(each.lanes for each in path)
                wasted = bool(around - needed) if lanes else _again_and_again(path, needed)
                if term.number in bodies.stored:
                    continue  # another term may have the same value at some places
                if wasted or seen.setdefault(term.number, key) != key:
                    worth[term.number] = term
    return list(worth.values())


def _again_and_again(path: Sequence[Loop], needed: set[int]) -> bool:
    """Whether the innermost loop that a term needs is within one that it does not."""
    needs = [not needed.isdisjoint(each.merged) for each in path]
    first = needs.index(False) if False in needs else len(needs)
    return any(needs[first:])
