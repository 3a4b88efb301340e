"""The loops of an axis program over columns: see the notes in ``reductions``."""

from __future__ import annotations

import re

from numgrad.codegen.expr import LIBRARY, Symbol
from numgrad.codegen.reduction_loops import ReductionWriter, numpy_name
from numgrad.codegen.reduction_plan import Slot

TILE = 256
"""Columns handled side by side at most."""
CHUNK = 64
"""Steps along the columns that are summed without compensation."""
UNROLL = 4
"""Steps taken at once where loads and stores of the accumulators dominate."""
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
            f"tiles = -(-inner // {TILE})",
            "tile = -(-inner // max(1, tiles))",
            f"fold = max(1, min(length, {TILE} // max(1, inner)))",
            "span = tile * fold",
            "steps = -(-length // fold)",
            "whole = length // fold",
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
            self.steps(depth, number, f"range(first, min(last, whole) - {UNROLL - 1}, {UNROLL})",
                       UNROLL)  # fmt: skip
            self.put(depth, f"first += max(0, min(last, whole) - first) // {UNROLL} * {UNROLL}")
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

            def add(a: str, b: str, *, slot: Slot = slot) -> str:
                return f"({a} + {b})" if slot.compensated else f"{self.use(slot.step)}({a}, {b})"

            while len(texts) > 1:
                texts = [add(*texts[n : n + 2]) for n in range(0, len(texts), 2)]
            name = f"p_{slot.name}[k]"
            self.put(depth + 2, f"{name} = {add(name, texts[0])}")
