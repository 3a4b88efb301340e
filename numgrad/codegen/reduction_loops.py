"""The loops of an axis program, over rows or over columns: see the notes in ``reductions``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.reduction_plan import ReductionOperand, ReductionPlan, Slot
from numgrad.codegen.symbols import Symbol

BLOCK = 1024
"""Elements of a row that are summed without compensation."""


def numpy_name(dtype: np.dtype) -> str:
    """A dtype as generated code spells it."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def integer(slot: Slot) -> str:
    """The integer type as wide as a float accumulator."""
    return f"int{8 * slot.dtype.itemsize}"


@dataclass
class ReductionWriter:
    """What rows and columns have in common."""

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
        self.put(1, f"{self.use('stay_apart')}()")

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
        found = [s for s in self.plan.elements(number) if self.plan.kind[s] == "scalar"]
        return [self.scalar_names[s] for s in found if s.op != "const"]

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
            f"{self.use('settle')}({read % s.name}, {read % f'e_{s.name}'})"
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
