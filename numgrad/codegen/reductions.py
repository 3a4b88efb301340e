"""Kernels of formulas that reduce over one axis: sums, softmax, variance, and their gradients.

Note [Passes]
-------------
Operands are contiguous and seen as ``(outer, length, inner)``, the reduced axis in the middle. A
formula is cut into passes over that axis. A reduction of what is known from the start belongs to
pass 1, one that needs the result of pass 1 (``sum(exp(x - max(x)))``) to pass 2, and so on; a full
output is written by a last pass. What depends on reduced values only is computed once for a row or
column, between the passes. Where a later pass needs an elementary function again (softmax), the
first one leaves its value in the output.

Note [Blocks of a reduction]
----------------------------
*Rows* (``inner == 1``): blocks of ``BLOCK`` elements; inside a block LLVM may reorder the
additions, which gives several SIMD lanes and the accuracy of pairwise summation. Partial results
are put together in block order with compensation. The pass over a block is a function compiled by
itself and never inlined, so that every caller adds in the same order.

*Columns*: tiles of up to ``TILE`` columns (of one pass ``WIDE_TILE``) side by side in SIMD lanes,
in chunks of ``CHUNK`` steps, which are put together in the same way. A step is one row, or as many
rows of a narrow array as fill a tile. Nothing is reordered by LLVM here.

Threads share rows or tiles, or, where these are few, the blocks or chunks of one. Results are
bitwise the same for any number of threads, and the same as the serial kernel's.

Note [Why eager reductions have a template]
-------------------------------------------
``ng.jit`` of one operation, whose loops ``nests`` writes, against this template (CPU time, one
thread, tracing included in first calls): sums of 16 x 16 take 0.85 to 0.99, of 128 x 128 1.08 to
1.28, of 1000 x 512 1.0 to 1.34 (``axis=0``); first calls 1.3 to 1.6, but 0.7 to 0.8 for ``axis=0``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import numpy_name, short, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.library import LIBRARY
from numgrad.codegen.reduction_plan import ReductionOperand, ReductionPlan, Slot
from numgrad.codegen.symbols import Reader, Symbol
from numgrad.dataclass import dataclass

__all__ = ["ReductionOperand", "axis_kernel"]


def axis_kernel(
    name: str,
    reader: Reader,
    output: Symbol,
    operands: Sequence[ReductionOperand],
    *,
    out_role: str,
    columns: bool,
    parallel: bool,
    nogil: bool = False,
    accumulate: bool = False,
    emitter: Emitter | None = None,
) -> Kernel:
    """Compile the passes that compute ``output`` from ``operands``.

    Parameters
    ----------
    name
        What the kernel is called.
    reader, output
        The formula read on ``reader.input(operand.name, operand.dtype)``.
    operands
        Inputs in the order in which the entry point takes them.
    out_role
        ``"full"`` or ``"reduced"``.
    columns
        Whether elements of the reduced axis lie apart; otherwise ``inner`` is 1.
    parallel
        Whether to share work among threads; results are the same bit by bit.
    nogil
        Whether other Python threads run meanwhile.
    accumulate
        Add to ``out`` rather than assign.

    Returns
    -------
    Kernel
        The entry point takes the operands (arrays raveled, scalars as typed numbers), the raveled
        output of ``output.dtype``, then the int64 ``outer``, ``length`` and, with ``columns``,
        ``inner``. The output must not share memory with an operand. An empty axis gives the
        identity of each reduction.
    """
    del reader  # symbols know theirs
    writer = (ReductionColumns if columns else Rows)(
        emitter or Emitter(), output, operands, out_role == "full", accumulate, parallel
    )
    body = writer.kernel()
    roles = "_".join(f"{short(o.dtype)}{o.role[0]}" for o in operands)
    flags = ("_c" if columns else "_r") + ("_p" if parallel else "") + ("_a" if accumulate else "")
    return compile_kernel(
        f"{name}_{roles}_{short(output.dtype)}{out_role[0]}{flags}"[:120],
        writer.emitter.header() + body,
        writer.signature(),
        parallel=parallel,
        nogil=nogil,
        externals=writer.emitter.externals,
    )


BLOCK = 1024
"""Elements of a row that are summed without compensation."""


def integer(slot: Slot) -> str:
    """The integer type as wide as a float accumulator."""
    return f"int{8 * slot.dtype.itemsize}"


@dataclass
class ReductionWriter:
    """Base of the loops over rows and over columns."""

    emitter: Emitter
    output: Symbol
    operands: Sequence[ReductionOperand]
    full: bool
    accumulate: bool
    parallel: bool
    lines: list[str] = field(default_factory=list)
    sizes = "outer, length"

    def __post_init__(self) -> None:
        self.plan = ReductionPlan(self.output, self.operands, self.full, not self.accumulate)
        self.scalar_names: dict[Symbol, str] = {
            s: f"{s.detail}_in" for s in self.plan.order if self.is_input(s, "scalar")
        }
        rows = [s for number in self.plan.passes for s in self.plan.outer_values(number)]
        self.row_names = {s: f"w{count}" for count, s in enumerate(dict.fromkeys(rows))}

    def is_input(self, symbol: Symbol, role: str) -> bool:
        """Whether a symbol is an operand of this role."""
        return symbol.op == "input" and self.plan.roles[symbol.detail] == role

    def signature(self) -> str:
        """Numba's signature of the entry point."""
        array = {"full": "[::1]", "reduced": "[::1]", "scalar": ""}
        texts = [type_name(o.dtype) + array[o.role] for o in self.operands]
        texts += [f"{type_name(self.output.dtype)}[::1]"]
        texts += ["int64"] * (self.sizes.count(",") + 1)
        return f"void({', '.join(texts)})"

    def put(self, depth: int, *lines: str) -> None:
        """Append lines."""
        self.lines += ["    " * depth + line for line in lines]

    def constant(self, slot: Slot) -> str:
        """Name of the neutral element of an accumulator."""
        return self.emitter.constant(slot.identity, slot.dtype)

    def use(self, function: str, module: str = "accumulation") -> str:
        """Import a function of the kernel library."""
        self.emitter.imports[function] = f"numgrad.codegen.{module}:{function}"
        return function

    def function(self, name: str, arguments: list[str]) -> None:
        """Open a function that is compiled by itself: Note [Blocks of a reduction]."""
        self.put(0, f"@{self.use('outlined', 'device')}", f"def {name}({', '.join(arguments)}):")
        self.put(1, f"{self.use('no_inline')}()")

    def kernel(self) -> str:
        """Source of the generated file below its header."""
        if self.parallel:
            self.emitter.imports["get_num_threads"] = "numba:get_num_threads"
        scalars, _ = self.emitter.block(self.plan.scalars(), self.scalar_names, slow=True)
        self.functions()
        names = [f"{o.name}_{'all' if o.role == 'full' else 'in'}" for o in self.operands]
        self.put(0, f"def kernel({', '.join([*names, 'out_all'])}, {self.sizes}):")
        self.put(1, *scalars)
        self.loops()
        return "\n".join(self.lines) + "\n"

    # What a pass reads: arrays it walks along, then values of the row or column, then scalars.

    def walked(self, number: int) -> list[str]:
        """Arrays with an element for every element of the reduced axis; ``out`` comes last."""
        plan = self.plan
        elements = plan.elements(number)
        arrays = [str(s.detail) for s in elements if self.is_input(s, "full")]
        stash = plan.stash in set(elements) and number >= plan.stash_pass
        return [*arrays, "out"] if stash or number > plan.levels else arrays

    def views(self, depth: int, walked: list[str], tag: str = "") -> None:
        """Bind the part of each array from ``lo`` to ``hi``."""
        for a in walked:
            name = a if a == "out" else f"{a}_in"
            self.put(depth, f"{name}{tag} = {a}_all[lo:hi]")

    def scalar_arguments(self, number: int) -> list[str]:
        """Names of the scalars a pass needs."""
        scalars = [s for s in self.plan.elements(number) if self.plan.kind[s] == "scalar"]
        return [self.scalar_names[s] for s in scalars if s.op != "const"]

    def elementwise(
        self, depth: int, number: int, names: dict[Symbol, str], tag: str = ""
    ) -> list[str]:
        """Write the statements for one element; return what is accumulated.

        ``tag`` tells the arrays of several rows apart.
        """
        plan = self.plan
        names = {**self.scalar_names, **names}
        for symbol in plan.elements(number):
            if self.is_input(symbol, "full"):
                names[symbol] = f"{symbol.detail}_k{tag}"
                self.put(depth, f"{symbol.detail}_k{tag} = {symbol.detail}_in{tag}[k]")
            elif symbol is plan.stash and number > plan.stash_pass:
                names[symbol] = "kept"
                self.put(depth, "kept = out[k]")
        lines, values = self.emitter.block(plan.targets(number), names, slow=True)
        self.put(depth, *lines)
        if plan.stash is not None and number == plan.stash_pass:
            self.put(depth, f"out[k] = {names[plan.stash]}")
        if number > plan.levels:
            self.store(depth, "out[k]", values[0])
        return values

    def store(self, depth: int, target: str, value: str) -> None:
        """Assign or add to the output."""
        if self.accumulate:
            value = f"{type_name(self.output.dtype)}({target} + {value})"
        self.put(depth, f"{target} = {value}")

    def total(self, symbol: Symbol, read: str) -> str:
        """The result of a reduction; ``read`` formats an accumulator's name."""
        texts = [
            f"{self.use('compensated')}({read % s.name}, {read % f'e_{s.name}'})"
            if s.compensated
            else read % s.name
            for s in self.plan.slots[symbol]
        ]
        if len(texts) == 1:
            return texts[0]
        return f"{type_name(symbol.dtype)}(complex({', '.join(texts)}))"

    def slots(self, number: int) -> list[Slot]:
        """Accumulators of a pass."""
        reduces = self.plan.reduces.get(number, ())
        return [slot for symbol in reduces for slot in self.plan.slots[symbol]]

    def accumulated(self, number: int, values: list[str]) -> list[tuple[Slot, str]]:
        """Each accumulator of a pass with the text of what is added to it."""
        if number > self.plan.levels:
            return []
        return [
            (slot, value + slot.part)
            for symbol, value in zip(self.plan.reduces[number], values, strict=True)
            for slot in self.plan.slots[symbol]
        ]

    def functions(self) -> None:
        """Write the functions that the kernel calls."""
        raise NotImplementedError

    def loops(self) -> None:
        """Write the body of the kernel."""
        raise NotImplementedError


class Rows(ReductionWriter):
    """Loops over contiguous rows."""

    def functions(self) -> None:
        """Write a function for each pass."""
        for number in self.plan.passes:
            self.pass_function(number)
            self.put(0, "", "")

    def pass_function(self, number: int) -> None:
        """A pass over one block, in a function that returns the accumulators."""
        slots = self.slots(number)
        walked = self.walked(number)
        rows = {s: self.row_names[s] for s in self.plan.outer_values(number)}
        arguments = [f"{a}_all" for a in walked]
        arguments += [*rows.values(), *self.scalar_arguments(number), "lo", "hi"]
        self.function(f"pass_{number}", arguments)
        self.views(1, walked)
        self.put(1, *(f"{slot.name} = {self.constant(slot)}" for slot in slots))
        guarded = [s for s in slots if s.step in ("maximum", "minimum")]
        self.put(1, *(f"bad_{slot.name} = {integer(slot)}(0)" for slot in guarded))
        self.put(1, "for k in range(hi - lo):")
        for slot, value in self.accumulated(number, self.elementwise(2, number, rows)):
            step = slot.step
            if slot in guarded:
                step = self.use(f"ordered_{step}")
                self.put(2, f"bad_{slot.name} |= {integer(slot)}({value} != {value})")
            elif slot.dtype.kind == "f" and step in ("sum", "multiply"):
                step = "add_any_order" if step == "sum" else "multiply_any_order"
                self.use(step, "intrinsics")
            else:
                self.use(step)
            self.put(2, f"{slot.name} = {step}({slot.name}, {value})")
        for slot in guarded:
            nan = self.emitter.constant(np.nan, slot.dtype)
            choice = f"bad_{slot.name} != 0, {nan}, {slot.name}"
            self.put(1, f"{slot.name} = {self.use('select', 'intrinsics')}({choice})")
        if slots:
            self.put(1, f"return {', '.join(slot.name for slot in slots)}")

    def loops(self) -> None:
        """Write the loops over rows and blocks."""
        self.put(1, f"blocks = max(1, -(-length // {BLOCK}))")
        if not self.parallel:
            self.row(1, "for row in range(outer):", split=False)
            return
        # few long rows: the threads share the blocks of one row
        self.put(1, "if outer >= 4 * get_num_threads() or blocks < 8:")
        self.row(2, "for row in prange(outer):", split=False)
        self.put(1, "else:")
        self.row(2, "for row in range(outer):", split=True)

    def row(self, depth: int, loop: str, *, split: bool) -> None:
        """Write the loop over rows."""
        self.put(depth, loop)
        depth += 1
        self.put(depth, "start = row * length", "stop = start + length")
        names = dict(self.scalar_names)
        done: set[Symbol] = set()
        self.between(depth, 0, names, done)
        for number in self.plan.passes:
            self.run(depth, number, split)
            for symbol in self.plan.reduces.get(number, ()):
                names[symbol] = f"t_{self.plan.slots[symbol][0].name}"
                self.put(depth, f"{names[symbol]} = {self.total(symbol, '%s')}")
            self.between(depth, number, names, done)

    def between(self, depth: int, number: int, names: dict[Symbol, str], done: set[Symbol]) -> None:
        """Compute what later passes or the output need of this row."""
        plan = self.plan
        needed = plan.between(number, done)
        final = [plan.output] if number == plan.levels and not self.full else []
        for symbol in plan.reach([*needed, *final], "row", names):
            if self.is_input(symbol, "reduced") and symbol not in names:
                names[symbol] = f"{symbol.detail}_row"
                self.put(depth, f"{symbol.detail}_row = {symbol.detail}_in[row]")
        lines, values = self.emitter.block([*needed, *final], names, slow=True)
        self.put(depth, *lines)
        for symbol, value in zip(needed, values, strict=False):
            self.put(depth, f"{self.row_names[symbol]} = {value}")
        done.update(needed)
        if final:
            self.store(depth, "out_all[row]", values[-1])

    def run(self, depth: int, number: int, split: bool) -> None:
        """Call a pass for every block and put the results together in block order."""
        slots = self.slots(number)
        arguments = [f"{a}_all" for a in self.walked(number)]
        arguments += [self.row_names[s] for s in self.plan.outer_values(number)]
        arguments += [*self.scalar_arguments(number), "lo", "hi"]
        call = f"pass_{number}({', '.join(arguments)})"
        bounds = [f"lo = start + b * {BLOCK}", f"hi = min(lo + {BLOCK}, stop)"]
        if not slots:
            self.put(depth, f"for b in {'prange' if split else 'range'}(blocks):")
            self.put(depth + 1, *bounds, call)
            return
        results = ", ".join(f"p_{slot.name}" for slot in slots)
        if split:
            for slot in slots:
                self.put(depth, f"m_{slot.name} = np.empty(blocks, {numpy_name(slot.dtype)})")
            self.put(depth, "for b in prange(blocks):")
            self.put(depth + 1, *bounds, f"{results} = {call}")
            self.put(depth + 1, *(f"m_{s.name}[b] = p_{s.name}" for s in slots))
            self.put(depth, *(f"{s.name} = m_{s.name}[0]" for s in slots))
        else:
            self.put(depth, "lo = start", f"hi = min(lo + {BLOCK}, stop)")
            self.put(depth, f"{', '.join(slot.name for slot in slots)} = {call}")
        for slot in slots:
            if slot.compensated:
                self.put(depth, f"e_{slot.name} = {self.constant(slot)}")
        self.put(depth, "for b in range(1, blocks):")
        if not split:
            self.put(depth + 1, *bounds, f"{results} = {call}")
        for slot in slots:
            name, part = slot.name, f"m_{slot.name}[b]" if split else f"p_{slot.name}"
            if slot.compensated:
                add = self.use("add_compensated")
                self.put(depth + 1, f"{name}, e_{name} = {add}({name}, e_{name}, {part})")
            else:
                self.put(depth + 1, f"{name} = {self.use(slot.step)}({name}, {part})")


TILE = 256
"""Columns handled side by side at most, so that later passes find them in the cache."""
WIDE_TILE = 1024
"""The same where there is one pass: longer pieces of rows are fetched ahead of use."""
CHUNK = 64
"""Steps along the columns that are summed without compensation."""
UNROLL = 4
"""Steps taken at once where loads and stores of the accumulators dominate.

They do in caches, and where tiles are pieces of rows. Else memory is read as one stream: four take
1.2 to 2 times as long.
"""
CACHED = 1 << 17
"""Elements of an array that lies in a core's cache."""
GROUPS = 256
"""Parallel iterations at most where the threads share tasks."""


class ReductionColumns(ReductionWriter):
    """Loops over tiles of columns that lie side by side.

    A task is one tile. Threads share the tasks, or (``split``) the chunks of one task; then each
    round of the outermost loop is one pass of one task. Both ways run the same text.
    """

    sizes = "outer, length, inner"

    def functions(self) -> None:
        """Write functions that compute what later passes or the output need of each column."""
        self.calls: dict[int, tuple[str, list[Symbol]]] = {}
        done: set[Symbol] = set()
        for number in range(self.plan.levels + 1):
            needed = self.plan.between(number, done)
            if needed or (number == self.plan.levels and not self.full):
                self.between_function(number, needed, done)
            done.update(needed)

    def between_function(self, number: int, needed: list[Symbol], done: set[Symbol]) -> None:
        """Write the function called after pass ``number``."""
        plan = self.plan
        final = [plan.output] if number == plan.levels and not self.full else []
        names = dict(self.scalar_names)
        arguments: dict[str, str] = {}  # parameter -> argument
        reads = []
        for symbol in plan.reach([*needed, *final], "row", done):
            if symbol in done:
                row = self.row_names[symbol]
                names[symbol], arguments[row] = f"{row}[k]", row
            elif symbol.op == "reduce":
                slots = [slot.name for slot in plan.slots[symbol]]
                arguments |= {name: f"{name}[0]" for name in slots}
                texts = [f"{name}[k]" for name in slots]
                value = texts[0] if len(texts) == 1 else f"complex({', '.join(texts)})"
                names[symbol] = f"t_{slots[0]}"
                reads.append(f"{names[symbol]} = {value}")
            elif self.is_input(symbol, "reduced"):
                names[symbol] = f"{symbol.detail}_k"
                arguments[f"{symbol.detail}_in"] = f"{symbol.detail}_in[corner:edge]"
                reads.append(f"{symbol.detail}_k = {symbol.detail}_in[k]")
            elif plan.kind[symbol] == "scalar" and symbol.op != "const":
                arguments[self.scalar_names[symbol]] = self.scalar_names[symbol]
        arguments |= {self.row_names[s]: self.row_names[s] for s in needed}
        if final:
            arguments["out"] = "out_all[corner:edge]"
        self.function(f"between_{number}", [*arguments, "columns"])
        self.put(1, "for k in range(columns):")
        self.put(2, *reads)
        lines, values = self.emitter.block([*needed, *final], names, slow=True)
        self.put(2, *lines)
        for symbol, value in zip(needed, values, strict=False):
            self.put(2, f"{self.row_names[symbol]}[k] = {value}")
        if final:
            self.store(2, "out[k]", values[-1])
        self.put(0, "", "")
        self.calls[number] = (f"between_{number}({', '.join(arguments.values())}, columns)", needed)

    def loops(self) -> None:
        """Write the loops over tasks, passes and chunks."""
        self.put(
            1,
            f"tiles = -(-inner // {TILE if len(self.plan.passes) > 1 else WIDE_TILE})",
            "tile = -(-inner // max(1, tiles))",
            f"fold = max(1, min(length, {TILE} // max(1, inner)))",
            "span = tile * fold",
            "steps = -(-length // fold)",
            f"cached = outer * length * inner <= {CACHED}",
            "grouped = length // fold if tiles > 1 or cached else 0",
            f"chunks = max(1, -(-steps // {CHUNK}))",
            "tasks = outer * tiles",
        )
        passes = self.plan.passes
        if self.parallel:
            self.put(
                1,
                "split = tasks < 2 * get_num_threads() and chunks >= 4",
                f"units = chunks if split else min(tasks, {GROUPS})",
                "pools = 1 if split else units",
                f"rounds = tasks * {len(passes)} if split else min(1, tasks)",
            )
        else:
            self.put(1, "pools = 1")
        self.scratch(1)
        if not self.parallel:
            self.pool(1, "0")
            self.put(1, "for task in range(tasks):")
            self.task(2)
            return
        self.put(1, "for turn in range(rounds):", f"    phase = 1 + turn % {len(passes)}")
        if 0 in self.calls:
            self.put(2, "if split and phase == 1:")
            self.alone(3, 0)
        # the index of a prange is unsigned, and Numba unifies uint64 with int64 to float64
        self.put(2, "for index in prange(units):", "    unit = int64(index)")
        self.pool(3, "0 if split else unit")
        self.put(
            3,
            f"begin = turn // {len(passes)} if split else unit * tasks // units",
            "end = begin + 1 if split else (unit + 1) * tasks // units",
            "for task in range(begin, end):",
        )
        self.task(4)
        self.put(2, "if split:")
        for number in passes:
            if self.slots(number):
                self.put(3, f"if phase == {number}:")
                self.alone(4, number)
        self.put(3, "pass")

    def scratch(self, depth: int) -> None:
        """Arrays as wide as a tile: partial results of each chunk, and values of the columns.

        Partial results have a row more than there are chunks, for the compensation.
        """
        for slots in self.plan.slots.values():
            for slot in slots:
                shape = f"(pools, chunks + 1, span), {numpy_name(slot.dtype)}"
                self.put(depth, f"{slot.name}_pool = np.empty({shape})")
        for symbol, name in self.row_names.items():
            shape = f"(pools, span), {numpy_name(symbol.dtype)}"
            self.put(depth, f"{name}_pool = np.empty({shape})")

    def pool(self, depth: int, which: str) -> None:
        """Bind the scratch arrays of one unit."""
        names = [slot.name for slots in self.plan.slots.values() for slot in slots]
        self.put(depth, f"which = {which}")
        for name in [*names, *self.row_names.values()]:
            self.put(depth, f"{name} = {name}_pool[which]")

    def geometry(self, depth: int, task: str) -> None:
        """Where a task lies."""
        locate = self.use("locate")
        values = "columns, start, stop, corner, edge"
        self.put(depth, f"{values} = {locate}({task}, tiles, tile, length, inner)")

    def alone(self, depth: int, number: int) -> None:
        """Write what follows a pass whose chunks were shared by the threads."""
        before = len(self.lines)
        self.pool(depth, "0")
        self.geometry(depth, f"turn // {len(self.plan.passes)}")
        self.conclude(depth, number)
        # names apart from those of the parallel loop
        for index in range(before, len(self.lines)):
            line = self.lines[index]
            names = [slot.name for slots in self.plan.slots.values() for slot in slots]
            names += [*self.row_names.values(), "columns", "start", "stop", "corner", "edge"]
            for name in [*names, "which"]:
                line = re.sub(rf"\b{name}\b", f"the_{name}", line)
            self.lines[index] = line

    def conclude(self, depth: int, number: int) -> None:
        """Put the results of a pass together and compute what the next ones need."""
        for slot in self.slots(number):
            finish = self.use(f"finish_{slot.step}")
            self.put(depth, f"{finish}({slot.name}, chunks, columns, fold)")
        if number in self.calls:
            call, values = self.calls[number]
            self.put(depth, call)
            if values:
                self.put(depth, "if fold > 1:")
                for symbol in values:
                    spread = self.use("spread")
                    self.put(depth + 1, f"{spread}({self.row_names[symbol]}, columns, fold)")

    def task(self, depth: int) -> None:
        """All passes over one tile; when split, one of them over one chunk."""
        self.geometry(depth, "task")
        self.put(depth, "width = columns * fold")
        chunks = "range(chunks)"
        if self.parallel:
            chunks = "range(unit if split else 0, unit + 1 if split else chunks)"
        for number in range(self.plan.levels + 1 + self.full):
            inner = depth
            if number:
                if self.parallel and len(self.plan.passes) > 1:
                    self.put(depth, f"if not split or phase == {number}:")
                    inner = depth + 1
                self.put(inner, f"for c in {chunks}:")
                self.chunk(inner + 1, number)
            if self.slots(number) or number in self.calls:
                if self.parallel:
                    self.put(depth, "if not split:")
                self.conclude(depth + self.parallel, number)

    def chunk(self, depth: int, number: int) -> None:
        """One pass over one chunk."""
        slots = self.slots(number)
        for slot in slots:
            self.put(depth, f"p_{slot.name} = {slot.name}[c]")
        if slots:
            self.put(depth, "for k in range(width):")
            self.put(depth + 1, *(f"p_{slot.name}[k] = {self.constant(slot)}" for slot in slots))
        first, last = f"c * {CHUNK}", f"min((c + 1) * {CHUNK}, steps)"
        if slots and self.cheap(number):
            self.put(depth, f"first = {first}", f"last = {last}")
            self.steps(depth, number, f"range(first, min(last, grouped) - {UNROLL - 1}, {UNROLL})",
                       UNROLL)  # fmt: skip
            self.put(depth, f"first += max(0, min(last, grouped) - first) // {UNROLL} * {UNROLL}")
            first, last = "first", "last"
        self.steps(depth, number, f"range({first}, {last})", 1)

    def cheap(self, number: int) -> bool:
        """Whether loads and stores dominate a pass: then it pays to take several rows at once."""
        elements = self.plan.elements(number)
        costly = any(s.op in LIBRARY and self.plan.kind[s] == "element" for s in elements)
        return not costly and len(self.walked(number)) <= 2

    def steps(self, depth: int, number: int, steps: str, unroll: int) -> None:
        """The loop over the steps of a chunk, ``unroll`` of them at a time."""
        self.put(depth, f"for step in {steps}:")
        tags = [f"_{row}" if unroll > 1 else "" for row in range(unroll)]
        for row, tag in enumerate(tags):
            self.put(depth + 1, f"lo = start + (step + {row}) * (inner * fold)" if row else
                     "lo = start + step * (inner * fold)")  # fmt: skip
            self.put(depth + 1, "hi = lo + width" if tag else "hi = min(lo + width, stop)")
            self.views(depth + 1, self.walked(number), tag)
        self.put(depth + 1, "for k in range(hi - lo):")
        names = {s: f"{self.row_names[s]}[k]" for s in self.plan.outer_values(number)}
        rows = [
            self.accumulated(number, self.elementwise(depth + 2, number, names, tag))
            for tag in tags
        ]
        for entries in zip(*rows, strict=True):
            slot = entries[0][0]
            texts = [text for _, text in entries]
            guarded = slot.step in ("maximum", "minimum")

            def add(a: str, b: str, *, slot: Slot = slot, guarded: bool = guarded) -> str:
                step = f"ordered_{slot.step}" if guarded else slot.step
                return f"({a} + {b})" if slot.compensated else f"{self.use(step)}({a}, {b})"

            while len(texts) > 1:
                texts = [add(*texts[n : n + 2]) for n in range(0, len(texts), 2)]
            name = f"p_{slot.name}[k]"
            # of an ordered extreme the second stays where one is NaN: what is there, if it is NaN
            total = add(*((texts[0], name) if guarded else (name, texts[0])))
            if guarded:
                nan = self.emitter.constant(np.nan, slot.dtype)
                bad = " | ".join(f"({text} != {text})" for _, text in entries)
                total = f"{self.use('select', 'intrinsics')}({bad}, {nan}, {total})"
            self.put(depth + 2, f"{name} = {total}")
