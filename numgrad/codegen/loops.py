"""Templates of elementwise kernels, forward and backward, for every layout of their operands.

Note [Layouts]
--------------
Operands are broadcast against each other; adjacent axes along which all operands behave alike are
merged (``layout``). What is left is a short list of axis lengths and, for every operand, a *mask*:
a string with ``1`` for each axis the operand varies along and ``0`` for each it is broadcast over.
``(32, 64) + (64,)`` has masks ``11`` and ``01``; equal shapes have mask ``1`` everywhere. One
kernel is generated for each combination of masks, so that the innermost loop has unit stride or
constant operands and a broadcast operand is never materialised. Contiguous operands are passed
flat; others (mask with suffix ``s``) as views with one axis a loop.

An output whose mask has zeros is summed over those axes: that is how the gradient of a broadcast
operand is reduced in the very loop that computes it.

Note [Blocks]
-------------
Work along the first axis is cut into tasks whose size depends on the shape alone. Sums over that
axis are kept per task and added up afterwards in task order, with compensation. The serial and the
parallel variant run the same tasks, so results are bitwise the same for any number of threads.

Note [Why eager loops have a template]
--------------------------------------
``nests``, which writes the loops of compiled functions, was tried in place of this template: terms
of the same formulas over strided arrays, results added to what is there. On one thread, medians of
CPU time in turns, as a share of the template's:

- Calls in steady state 0.83 to 1.10, median 1.01, whatever the layout; but 1.25 to 1.73 for
  ``pow``, since the generator has no blocks for rare arguments.
- First calls of loops over one axis 0.96 to 1.04: writing takes 0.7 ms in place of 0.1, machine
  code 5 to 10 % less. Gradients summed over rows 1.25 to 1.65, as their loops become functions.
- Importing the generator: the first operation of a process takes 1.26 with an empty cache, 1.18
  with a full one.

It would replace 230 lines of code by 185 that do not have those blocks. With flat loops written
here and all others there, the first operation takes 1.00, the first one that broadcasts 1.36, and
both writers stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.codegen.emitter import Emitter, cast_text
from numgrad.codegen.symbols import Symbol
from numgrad.dataclass import dataclass

TASK = 4096
"""Elements a task handles at least."""
MAX_TASKS = 1024
RARE_BLOCK = 512
"""Elements that are redone together when one of them has a rare argument."""


@dataclass(frozen=True, slots=True)
class LoopOperand:
    """An input or output of an elementwise kernel; ``mask`` is empty for a Python scalar."""

    name: str
    dtype: np.dtype
    mask: str

    @property
    def strided(self) -> bool:
        return self.mask.endswith("s")

    @property
    def full(self) -> bool:
        return "0" not in self.mask


# ------------------------------------------------------------------------------------- layout


@dataclass(frozen=True, slots=True)
class LoopLayout:
    """How operands of given shapes lie in the loops of a kernel: Note [Layouts]."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]
    masks: tuple[str, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


def broadcast_shape(operation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape NumPy's broadcasting gives, or an error that names the operation."""
    from numgrad.errors import NumgradValueError

    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(map(str, shapes))
        raise NumgradValueError(
            f"{operation}: shapes {listed} do not broadcast; axes are matched from the right and "
            "must be equal or 1"
        ) from None
    except RuntimeError:
        raise NumgradValueError(
            f"{operation}: operands have up to {max(map(len, shapes))} axes, and no more than 32 "
            "can be broadcast; put some together with reshape"
        ) from None


def layout(
    shape: tuple[int, ...], operands: Sequence[tuple[tuple[int, ...], tuple[int, ...] | None]]
) -> LoopLayout:
    """Merge axes of operands broadcast to ``shape``.

    Each operand is its shape, and its strides unless it is contiguous.
    """
    rank = len(shape)
    columns = []  # one axis: its length, and per operand (varies, stride or None)
    padded = []
    for operand_shape, strides in operands:
        pad = rank - len(operand_shape)
        padded.append((pad, operand_shape, strides))
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        entry = []
        for pad, operand_shape, strides in padded:
            varies = axis >= pad and operand_shape[axis - pad] != 1
            entry.append((varies, strides[axis - pad] if varies and strides else None))
        columns.append((length, entry))
    merged: list[tuple[int, list]] = []
    for length, entry in columns:
        if merged and all(
            varies == before and (stride is None or outer == stride * length)
            for (before, outer), (varies, stride) in zip(merged[-1][1], entry, strict=True)
        ):
            merged[-1] = (merged[-1][0] * length, entry)
        else:
            merged.append((length, entry))
    if not merged:
        merged = [(1, [(True, None)] * len(operands))]
    masks = tuple(
        "".join("1" if entry[k][0] else "0" for _, entry in merged) + ("s" if strides else "")
        for k, (_, _, strides) in enumerate(padded)
    )
    return LoopLayout(shape, tuple(length for length, _ in merged), masks)


def strided_view(array: np.ndarray, lay: LoopLayout, mask: str) -> np.ndarray:
    """A strided operand with one axis for each loop (length 1 where it is broadcast).

    A view if the axes that a loop runs over can be merged, as those of the array that the layout
    was made for; else a copy.
    """
    return array.reshape([n if f == "1" else 1 for n, f in zip(lay.dims, mask, strict=False)])


# ------------------------------------------------------------------------------------ template


def elementwise_kernel(
    name: str,
    emitter: Emitter,
    inputs: Sequence[tuple[LoopOperand, Symbol]],
    outputs: Sequence[tuple[LoopOperand, Symbol]],
    *,
    parallel: bool = False,
    nogil: bool = False,
    accumulate: bool = False,
) -> Kernel:
    """Compile the loops that compute ``outputs`` from ``inputs``.

    The entry point takes the inputs, the outputs, then (unless there is one loop and every output
    is full) the axis lengths, then, if ``accumulate``, an int64 whose bit ``k`` says that output
    ``k`` is added to rather than assigned. Contiguous operands are passed raveled.
    """
    writer = _Writer(emitter, inputs, outputs, parallel, accumulate)
    body = writer.kernel()
    masks = "_".join(o.mask or "x" for o, _ in (*inputs, *outputs))
    dtypes = "_".join(short(o.dtype) for o, _ in (*inputs, *outputs))
    flags = ("_p" if parallel else "") + ("_a" if accumulate else "")
    return compile_kernel(
        f"{name}_{dtypes}_{masks}{flags}"[:120],
        emitter.header() + body,
        writer.signature(),
        parallel=parallel,
        nogil=nogil,
        externals=emitter.externals,
        functions=emitter.namespace,
    )


class _Writer:
    """Writes one kernel."""

    def __init__(self, emitter, inputs, outputs, parallel, accumulate) -> None:
        self.emitter, self.inputs, self.outputs = emitter, inputs, outputs
        self.rank = len(outputs[0][0].mask)
        self.parallel, self.accumulate = parallel, accumulate
        self.reduced = [k for k, (o, _) in enumerate(outputs) if not o.full]
        # summed over the first axis: one partial result a task
        self.partial = [k for k in self.reduced if outputs[k][0].mask[0] == "0"]
        self.has_dims = self.rank > 1 or bool(self.reduced)
        self.lines: list[str] = []

    def signature(self) -> str:
        texts = []
        for operand, _ in (*self.inputs, *self.outputs):
            base = type_name(operand.dtype)
            if not operand.mask:
                texts.append(base)
            elif operand.strided:
                texts.append(f"{base}[{','.join(':' * self.rank)}]")
            else:
                texts.append(f"{base}[::1]")
        if self.has_dims:
            texts += ["int64"] * self.rank
        if self.accumulate:
            texts.append("int64")
        return f"void({', '.join(texts)})"

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def kernel(self) -> str:
        arguments = [f"x{k}" for k in range(len(self.inputs))]
        arguments += [f"y{k}" for k in range(len(self.outputs))]
        if self.has_dims:
            arguments += [f"n{d}" for d in range(self.rank)]
        if self.accumulate:
            arguments.append("flags")
        self.put(0, f"def kernel({', '.join(arguments)}):")
        if not self.has_dims:
            self.put(1, "n0 = y0.size")
        for k in range(len(self.outputs)):
            if self.accumulate:
                self.put(1, f"add{k} = (flags >> {k}) & 1 == 1")
            if k in self.reduced:
                clear = f"y{k}[:] = {self.zero(k)}"
                if self.accumulate:
                    self.put(1, f"if not add{k}:", f"    {clear}")
                elif k not in self.partial:
                    self.put(1, clear)
        if not self.parallel and not self.reduced and self.rank == 1:
            self.inner(1, *self.rows(1, whole=True))
        else:
            self.tasks()
        return "\n".join(self.lines) + "\n"

    def zero(self, k: int) -> str:
        return self.emitter.constant(0, self.outputs[k][0].dtype)

    def tasks(self) -> None:
        """The loop over tasks along the first axis, then the sum of the partial results."""
        if self.rank == 1:
            self.put(1, f"step = max({TASK}, -(-n0 // {MAX_TASKS}))")
        else:
            rest = " * ".join(f"n{d}" for d in range(1, self.rank))
            self.put(1, f"step = max(16, -(-{TASK} // ({rest})), -(-n0 // {MAX_TASKS}))")
        self.put(1, "tasks = -(-n0 // step)")
        for k in self.partial:
            dtype = self.outputs[k][0].dtype.name
            self.put(1, f"part{k} = np.zeros((tasks, y{k}.size), np.{dtype})")
        self.put(1, f"for t in {'prange' if self.parallel else 'range'}(tasks):")
        self.put(2, "lo = t * step", "hi = min(n0, lo + step)")
        for k in self.partial:
            self.put(2, f"sum{k} = part{k}[t]")
        depth = 2
        if self.rank > 1:
            self.put(depth, "for i0 in range(lo, hi):")
            depth += 1
            for d in range(1, self.rank - 1):
                self.put(depth, f"for i{d} in range(n{d}):")
                depth += 1
        self.inner(depth, *self.rows(depth, whole=False))
        for k in self.partial:
            self.combine(k)

    def combine(self, k: int) -> None:
        """Add the partial results of the tasks in order, compensated (Neumaier's summation)."""
        self.put(1, f"for e in range(y{k}.size):")
        if self.outputs[k][0].dtype.kind != "f":
            self.put(2, f"total = part{k}[0, e]")
            self.put(2, "for t in range(1, tasks):", f"    total += part{k}[t, e]")
        else:
            self.emitter.imports["i_fabs"] = "numgrad.codegen.intrinsics:fabs"
            self.emitter.imports["i_select"] = "numgrad.codegen.intrinsics:select"
            self.put(2, f"total = part{k}[0, e]", f"rest = {self.zero(k)}")
            self.put(2, "for t in range(1, tasks):")
            self.put(
                3,
                f"term = part{k}[t, e]",
                "new = total + term",
                "big = i_fabs(total) >= i_fabs(term)",
                "rest += i_select(big, (total - new) + term, (term - new) + total)",
                "total = new",
            )
            # infinities leave a NaN in the compensation
            self.put(2, "total = total + rest if rest - rest == rest - rest else total")
        self.put(2, f"y{k}[e] = y{k}[e] + total" if self.accumulate else f"y{k}[e] = total")

    def rows(self, depth: int, *, whole: bool) -> tuple[str, dict[Symbol, str], list[str]]:
        """Bind the current row of every operand.

        Returns the row's length, the text of each input and the text each output is stored to.
        """
        last = self.rank - 1
        length = "n0" if whole else ("hi - lo" if self.rank == 1 else f"n{last}")
        names: dict[Symbol, str] = {}
        targets = []
        for k, (operand, symbol) in enumerate(self.inputs):
            names[symbol] = self.bind(depth, f"x{k}", operand, whole)
        for k, (operand, _) in enumerate(self.outputs):
            base = f"sum{k}" if k in self.partial else f"y{k}"
            if operand.mask[last] == "1":
                targets.append(self.bind(depth, base, operand, whole))
            else:
                self.put(depth, f"acc{k} = {self.zero(k)}")
                targets.append("")
        return length, names, targets

    def offset(self, operand: LoopOperand, upto: int) -> str:
        """Flat offset of a contiguous operand from the loop variables before axis ``upto``."""
        terms = []
        for d in range(upto):
            if operand.mask[d] == "1":
                factors = [f"n{e}" for e in range(d + 1, self.rank) if operand.mask[e] == "1"]
                terms.append(" * ".join([f"i{d}", *factors]))
        return " + ".join(terms) or "0"

    def bind(self, depth: int, base: str, operand: LoopOperand, whole: bool) -> str:
        last = self.rank - 1
        if not operand.mask:
            return base
        row = f"{base}_row"
        varies = operand.mask[last] == "1"
        if operand.strided:
            outer = [f"i{d}" if operand.mask[d] == "1" else "0" for d in range(last)]
            if self.rank == 1 and varies:
                self.put(depth, f"{row} = {base}" if whole else f"{row} = {base}[lo:hi]")
            else:
                self.put(depth, f"{row} = {base}[{', '.join([*outer, ':' if varies else '0'])}]")
        elif self.rank == 1:
            if varies and whole:
                return f"{base}[j]"
            self.put(depth, f"{row} = {base}[lo:hi]" if varies else f"{row} = {base}[0]")
        elif varies:
            self.put(depth, f"start = {self.offset(operand, last)}")
            self.put(depth, f"{row} = {base}[start : start + n{last}]")
        else:
            self.put(depth, f"{row} = {base}[{self.offset(operand, last)}]")
        return f"{row}[j]" if varies else row

    def inner(self, depth: int, length: str, names: dict[Symbol, str], targets: list[str]) -> None:
        """The innermost loop, then the store of sums over it."""
        symbols = [symbol for _, symbol in self.outputs]
        scan, condition = self.emitter.rare(symbols, names)
        if not condition:
            self.loop(depth, length, names, targets, slow=False)
        else:
            # Note [Rare arguments]: look first, since an accumulating block cannot be run twice.
            self.put(depth, f"for block in range(0, {length}, {RARE_BLOCK}):")
            self.put(depth + 1, f"size = min({RARE_BLOCK}, {length} - block)")
            blocked, seen = {}, set()

            def shift(text: str) -> str:
                if not text.endswith("[j]"):
                    return text
                local = f"{text[:-3]}_b"
                if local not in seen:
                    seen.add(local)
                    self.put(depth + 1, f"{local} = {text[:-3]}[block : block + size]")
                return f"{local}[j]"

            blocked = {symbol: shift(text) for symbol, text in names.items()}
            shifted = [shift(text) for text in targets]
            scan, condition = self.emitter.rare(symbols, blocked)
            self.put(depth + 1, "rare = False", "for j in range(size):")
            self.put(depth + 2, *scan, f"rare |= {condition}")
            self.put(depth + 1, "if rare:")
            self.loop(depth + 2, "size", blocked, shifted, slow=True)
            self.put(depth + 1, "else:")
            self.loop(depth + 2, "size", blocked, shifted, slow=False)
        for k in self.reduced:
            operand = self.outputs[k][0]
            if operand.mask[self.rank - 1] == "0":
                base = f"sum{k}" if k in self.partial else f"y{k}"
                self.put(depth, f"{base}[{self.offset(operand, self.rank - 1)}] += acc{k}")

    def loop(
        self, depth: int, length: str, names: dict[Symbol, str], targets: list[str], *, slow: bool
    ) -> None:
        # Sums over this loop have a loop of their own, without stores: beside stores LLVM makes a
        # scalar twin for operands that might overlap, which adds in another order, and takes it by
        # where the arrays happen to lie.
        for stores in (True, False):
            chosen = [k for k, target in enumerate(targets) if bool(target) == stores]
            if chosen:
                self.part_of_loop(depth, length, names, targets, chosen, slow=slow)

    def part_of_loop(
        self,
        depth: int,
        length: str,
        names: dict[Symbol, str],
        targets: list[str],
        chosen: list[int],
        *,
        slow: bool,
    ) -> None:
        self.put(depth, f"for j in range({length}):")
        symbols = [self.outputs[k][1] for k in chosen]
        lines, values = self.emitter.block(symbols, dict(names), slow=slow)
        self.put(depth + 1, *lines)
        for k, value in zip(chosen, values, strict=True):
            (operand, symbol), target = self.outputs[k], targets[k]
            if symbol.dtype != operand.dtype:
                value = cast_text(value, symbol.dtype, operand.dtype)
            if not target:
                if operand.dtype.kind == "f":
                    self.emitter.imports["i_add"] = "numgrad.codegen.intrinsics:add_any_order"
                    self.put(depth + 1, f"acc{k} = i_add(acc{k}, {value})")
                else:
                    self.put(depth + 1, f"acc{k} += {value}")
            elif k in self.reduced:
                self.put(depth + 1, f"{target} += {value}")
            elif self.accumulate:
                # adding -0.0 changes nothing, not even the sign of a zero
                other = f"{target} if add{k} else {self.emitter.constant(-0.0, operand.dtype)}"
                self.put(depth + 1, f"{target} = {value} + ({other})")
            else:
                self.put(depth + 1, f"{target} = {value}")
