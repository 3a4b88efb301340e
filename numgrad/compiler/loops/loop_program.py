"""Loops as programs: one kernel where a step is one, else a program for each step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.memory import LARGE, empty, large
from numgrad.codegen.nests.kernel import for_lengths
from numgrad.codegen.nests.loop import LoopKernel, LoopWriter
from numgrad.codegen.nests.terms import first_stored
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import BodyOperation, TracedNode, length_arrays, with_lengths
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.loops.body import LoopBody
from numgrad.compiler.lower.expand import Expansion
from numgrad.compiler.lower.lowering import find_lowering
from numgrad.compiler.lower.matrices import PRODUCTS
from numgrad.compiler.messages import warn_at
from numgrad.compiler.passes import optimize
from numgrad.compiler.run.program import compile_graph, stored_as
from numgrad.compiler.run.steps import Run
from numgrad.compiler.trace.cut import extract
from numgrad.core.elementwise import formula_emitter
from numgrad.dataclass import dataclass
from numgrad.errors import InterpretedLoopWarning, generated

FIRST, SECONDS, MOST = 256, 0.05, 1 << 40
"""Steps of the first call of a kernel for some shapes, and what later ones may take: between calls
Ctrl-C ends it."""


def longer(steps: int, seconds: float) -> int:
    """How many steps to make in a call, after one of ``steps``."""
    return int(min(MOST, max(1, steps * min(SECONDS / max(seconds, 1e-7), 1e4))))


MANY, SHORT, SHORT_AROUND = 32, 1e-3, 2.5e-4
"""How many steps made in Python are worth a warning, or machine code where they take no longer than
so many seconds, and of loops within: Note [Loops of several kernels] in ``native.whole_loops``."""
PACES = 4
"""How many times some of them are timed, after the first, which compiles."""

_MOST_FIXED = 8
"""Combinations for which a loop has kernels of their own."""
_SHORT = 4
"""Lengths of last axes, as of places in space, for which loops have kernels that unroll them."""
_MOST_SIZES = 100
"""Combinations of shapes of operands that a loop remembers."""


@dataclass(eq=False)
class KnownSizes:
    """Lengths, shapes and numbers of steps for operands of some shapes.

    Attributes
    ----------
    given
        The lengths that the kernel takes.
    shapes
        Shapes and dtypes of what a step returns.
    """

    given: tuple[int, ...]
    shapes: list[tuple]


MOST_BYTES = 1 << 22
"""Bytes of what is collected in one call of the kernel, and of what a program remembers."""

_NOTHING = SimpleNamespace(lengths=())

Steps = tuple[int, list[np.ndarray]]
"""How many steps a loop made, and what these gave, along a first axis."""


def innermost(opaque: Sequence[TracedNode]) -> TracedNode:
    """The first of these operations without a form in a kernel, or what is within its branches."""
    node = opaque[0]
    for branch in node.params.get("parts", ()):
        within = Expansion(branch.optimized, inline=True).opaque
        if within:
            return innermost(within)
    return node


class LoopProgram:
    """A loop made ready to run: as one kernel, or step by step where other code runs in between.

    Attributes
    ----------
    opaque
        The operations for which there is no kernel.
    depends
        Whether there may be one where lengths are known.
    fails
        Whether its kernel ends where a step must not go on.
    source
        The text of the kernel; None if there is none.
    lengths
        Those of axes, by number, if it is for these only: a step that factors matrices is a kernel
        where it is known how small they are.
    any_length
        Whether it is one kernel in any case, also if that takes longer for small matrices.

    Note [Direct calls]
    -------------------
    A loop of a few small steps takes less time than it takes to find out the shapes of its results
    and how many steps to make in a call, 9 us in general. So a program calls a function written for
    the loop, which allocates results and calls the kernel once, 1 to 2 us in all. What that leaves,
    very many steps and those that fail, is done in general.
    """

    def __init__(
        self, body: LoopBody, lengths: dict[int, int] | None = None, *, any_length: bool = False
    ) -> None:
        self.body, self.lengths, self.any_length = body, lengths, any_length
        self.opaque: list[TracedNode] = []
        self._warned = self.fails = self.depends = False
        graph = body.graph
        self.graph = extract(graph, graph.inputs, graph.outputs)
        self._sizes: dict[Any, KnownSizes] = {}
        self._limits: dict[tuple[int, ...], int] = {}
        optimize(self.graph)
        self.written = self._written()
        self.source = None if self.written is None else self.written.source
        self._short = self._last_axes()
        self._entries: dict[tuple[int, ...], Any] = {}
        self._fixed: dict[Any, LoopProgram] = {}
        self._machine_code: Any = None  # of a loop without a kernel; False if there is none
        self._paces: list[float] = []
        self._obstacle: TracedNode | None = None
        if self.written is None and lengths is None:
            extracted = extract(graph, graph.inputs, graph.outputs)
            self.step = compile_graph(with_lengths(extracted, body.axes))

    def _written(self) -> LoopKernel | None:
        expansion = Expansion(
            self.graph, inline=True, lengths=self.lengths, any_length=self.any_length
        )
        results = stored_as([expansion.of[v] for v in self.graph.outputs])
        if expansion.opaque:
            self.opaque = expansion.opaque
            self.depends = all(find_lowering(node) for node in expansion.opaque)
            return None
        terms, check = expansion.terms, None
        for condition in terms.checks:
            known = check
            check = (
                condition if known is None else terms.map("logical_or", (known, condition), BOOL)
            )
        self.fails = check is not None
        stored = list(first_stored([*results, *([check] if check else [])]).values())
        inputs = [expansion.of[v] for v in self.graph.inputs]
        body = self.body
        ranks = [len(v.shape) for v in self.graph.outputs]
        writer = LoopWriter(
            terms, stored, inputs, results, ranks, body.carries, body.xs,
            formula_emitter(), PRODUCTS, check, body.until, body.keeps,
        )  # fmt: skip
        return writer.loop()

    def obstacle(self) -> TracedNode | None:
        """The operation by which steps are made in Python; None where they are not."""
        programs = list(self._fixed.values()) or [self]
        slow = (p for p in programs if p.written is None and not p._machine_code)
        return next((p._obstacle or innermost(p.opaque) for p in slow), None)

    def _warn(self, steps: int) -> None:
        """Say once, at its line, that many steps were made in Python.

        Not of loops within loops: the inner ones are kernels, and do most of the work.
        """
        node = self.obstacle()
        if self._warned or steps < MANY or node is None or isinstance(node.op, BodyOperation):
            return
        self._warned = True
        warn_at(
            node.line,
            f"jit: {steps} steps of a loop were made in Python, since {node.name} has no form in "
            "its kernel; that takes many times as long. Compute it for all steps at once, before "
            "or after the loop; report() says of each loop whether it is native",
            InterpretedLoopWarning,
        )

    def run(
        self, operands: Sequence[np.ndarray], length: int, reverse: bool, lengths: dict[int, int]
    ) -> list[np.ndarray]:
        """The last carry, and what was collected."""
        operands = [
            a if type(a) is np.ndarray and a.flags.c_contiguous else np.asarray(a, order="C")
            for a in operands
        ]
        key, sizes = self._sizes_for(operands, lengths)
        fixed = self._for_lengths(key, operands, lengths)
        if fixed is not None:
            return fixed.run(operands, length, reverse, lengths)
        results = self._allocate(sizes.shapes, length, reverse)
        done = 0
        while self.written is None and not self._has_machine_code(reverse) and done < length:
            end = length if self._machine_code is False else min(length, done + MANY)
            parts = self._chunk(operands, results, done, end, length, reverse)
            begin = time.thread_time()
            self._in_turn(*parts, end - done, reverse, lengths)
            self._note_pace(begin, end - done)
            done = end
        if self.written is None and done == length:
            self._warn(length)
            return results
        _, sizes = self._sizes_for(operands, lengths)
        if not self._natively(operands, results, length, reverse, sizes, done):
            self._in_turn(operands, results, length, reverse, lengths)
        return results

    def _chunk(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], done: int, end: int,
        length: int, reverse: bool,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:  # fmt: skip
        """Operands and results of some of the steps, of which ``done`` were made."""
        carry, xs, outside = self.body.parts(operands)
        last, rows = results[: len(carry)], results[len(carry) :]
        here = slice(length - end, length - done) if reverse else slice(done, end)
        now = [*(last if done else carry), *(x[here] for x in xs), *outside]
        return now, [*last, *(x[here] for x in rows)]

    # ---------------------------------------------------------------------- several kernels a step

    def _note_pace(self, begin: float, steps: int) -> None:
        """Note how long each of some steps took that were made in Python."""
        if self._machine_code is None and steps:
            self._paces.append((time.thread_time() - begin) / steps)

    def _has_machine_code(self, reverse: bool = False) -> bool:
        """Whether steps that are no kernel are made by machine code.

        Note [Loops of several kernels] in ``native.whole_loops``; the first times are of compiling.
        """
        if self._machine_code is None and len(self._paces) > 1:
            within = isinstance(innermost(self.opaque).op, BodyOperation)  # loops, kernels mostly
            if min(self._paces[1:]) < (SHORT_AROUND if within else SHORT):
                loops = import_module("numgrad.compiler.native.whole_loops")  # it imports this one
                entry, self._obstacle = loops.loop_entry(self, reverse)
                self._machine_code = entry or False
            elif len(self._paces) > PACES:
                self._machine_code = False
        return bool(self._machine_code)

    def _allocate(self, shapes: Sequence[tuple], length: int, reverse: bool) -> list[np.ndarray]:
        """Memory for what the loop returns; some rows are those of others.

        Note [Places of a carry] in ``nests.loop`` says which.
        """
        c = self.body.carries
        more, shared = self.rows_shared()
        results = []
        for k, (shape, dtype) in enumerate(shapes):
            rows = (length + more.get(k, 0),) if k >= c else ()
            results.append(empty(() if k in shared and k not in more else (*rows, *shape), dtype))
        whole = {row: results[row] for row in more}
        for k, (row, steps) in shared.items():
            first = steps if reverse else more[row] - steps
            results[k] = whole[row][first : first + length]
        return results

    def rows_shared(self) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
        """How many rows more results have in which others lie, and where all of these are.

        As in ``shared`` of the kernel: the result in whose rows one lies, and how many steps
        earlier.
        """
        shared = self.written.shared if self.written else {}
        more: dict[int, int] = {}
        for row, steps in shared.values():
            more[row] = max(steps, more.get(row, 0))
        return more, {**{row: (row, 0) for row in more}, **shared}

    def _for_lengths(
        self, key: Any, operands: list[np.ndarray], known: dict[int, int]
    ) -> LoopProgram | None:
        """The kernel for operands of these shapes, if there is none for all."""
        if self.written is not None or self.lengths is not None or not self.depends:
            return None
        fixed = self._fixed.get(key)
        if fixed is None and len(self._fixed) < _MOST_FIXED:
            lengths = known | self._lengths(operands)
            fixed = self._fixed[key] = LoopProgram(self.body, lengths)
        return None if fixed is None or fixed.written is None else fixed

    def of_lengths(self, lengths: Mapping[int, int]) -> LoopProgram:
        """The program, or one for axes of these lengths if a step is a kernel for these alone."""
        if self.written is not None or self.lengths is not None or not self.depends:
            return self
        fixed = LoopProgram(self.body, dict(lengths))
        return self if fixed.written is None else fixed

    def _natively(
        self, operands: list[np.ndarray], results: list[np.ndarray], length: int, reverse: bool,
        sizes: KnownSizes, done: int = 0,
    ) -> bool:  # fmt: skip
        """Call the kernel for some steps after the other; whether none of these failed."""
        axes = sizes.given
        steps = self._limits.get(axes, FIRST)
        while True:
            begin, end = time.perf_counter(), min(length, done + steps)
            if end - done < length:
                parts = self._chunk(operands, results, done, end, length, reverse)
                ended = self._call(*parts, end - done, reverse, axes)
            else:
                ended = self._call(operands, results, length, reverse, axes)
            seconds = time.perf_counter() - begin
            if end - done >= FIRST:
                self._limit(axes, longer(end - done, seconds))
            if ended[0] >= 0 or end == length:
                return ended[0] < 0
            done, steps = end, longer(steps, seconds)

    def _call(
        self, operands: Sequence[np.ndarray], made: Sequence[np.ndarray], length: int,
        reverse: bool, axes: Sequence[int],
    ) -> np.ndarray:  # fmt: skip
        """Call the kernel; says in which step it failed, or -1, and how many were made."""
        flat = [a if a.ndim else a.reshape(1) for a in (*operands, *made)]
        ended = np.array([-1, length])
        if self.written is None:
            self._machine_code.call(flat, ended, length, reverse, axes)
        else:
            given = dict(zip(self.written.lengths, axes, strict=True))
            short = tuple([given[k] if given[k] <= _SHORT else 0 for k in self._short])
            self.entry(short)(*flat, ended, length, int(reverse), *axes)
        if ended[0] >= 0:  # the operations one by one say what is wrong
            extracted = extract(self.graph, self.graph.inputs, self.graph.outputs)
            self.step = evaluate.compile_graph(with_lengths(extracted, self.body.axes))
        return ended

    def _last_axes(self) -> list[int]:
        """Axes that the kernel takes the lengths of and that come last in some array."""
        sizes = self.graph.sizes
        arrays = [v for node in self.graph.nodes for v in node.outputs if len(v.shape) > 1]
        last = {sizes.number(sizes.resolve(v.shape[-1])) for v in arrays}
        return [k for k in self.written.lengths if k in last] if self.written else []

    def entry(self, short: tuple[int, ...]) -> Any:
        """The compiled kernel for lengths of ``_short`` axes; 0 stands for any other length."""
        entry = self._entries.get(short)
        if entry is None and len(self._entries) >= _MOST_FIXED and any(short):
            return self.entry((0,) * len(short))
        if entry is None:
            written = self.written
            assert written is not None
            known = {f"n{k}": n for k, n in zip(self._short, short, strict=True) if n}
            entry = self._entries[short] = compile_kernel(
                "loop", for_lengths(written.source, known), written.signature,
                externals=written.externals, functions=written.functions, lasting=False,
            ).entry  # fmt: skip
        return entry

    def _sizes_for(
        self, operands: Sequence[np.ndarray], known: dict[int, int]
    ) -> tuple[tuple, KnownSizes]:
        """The key of operands of such shapes, and the sizes for these."""
        key = (*[a.shape for a in operands], *known.items(), bool(self._machine_code))
        sizes = self._sizes.get(key)
        if sizes is None:
            lengths = known | self._lengths(operands)
            shapes = [
                (tuple(self.graph.sizes.evaluate(n, lengths) for n in v.shape), v.dtype)
                for v in self.graph.outputs
            ]
            axes = (self.written or self._machine_code or _NOTHING).lengths
            axis_lengths = tuple([lengths[k] for k in axes])
            if len(self._sizes) > _MOST_SIZES:
                self._sizes.clear()
            sizes = self._sizes[key] = KnownSizes(axis_lengths, shapes)
        return key, sizes

    def _limit(self, axes: tuple[int, ...], steps: int) -> None:
        """Note how many steps to make in a call of the kernel, for lengths of axes."""
        if len(self._limits) > _MOST_SIZES:
            self._limits.clear()
        self._limits[axes] = steps

    def direct(self, node: TracedNode, sizes: Sizes, general: Run) -> Run | None:
        """The function of Note [Direct calls], for a node of a graph with such sizes."""
        written, graph, body = self.written, self.graph, self.body
        if written is None:
            return None
        operands = [f"o{k}" for k in range(len(graph.inputs))]
        results = [f"w{k}" for k in range(len(graph.outputs))]
        lines, known = [], {}
        for k, value in enumerate(graph.inputs):
            xs = body.carries <= k < body.carries + body.xs
            for position, n in enumerate(value.shape, xs):
                axis = graph.sizes.number(graph.sizes.resolve(n))
                if axis is not None:
                    known.setdefault(axis, f"o{k}.shape[{position}]")
        outer = "lengths[{}]".format
        for axis, n in zip(body.axes, node.params["lengths"], strict=True):
            known[axis] = sizes.text(n, outer)
        needed = graph.sizes.axes(n for v in graph.outputs for n in v.shape)
        lines += [f"n{k} = {known[k]}" for k in sorted(needed.union(written.lengths))]
        names = [f"n{k}" for k in written.lengths]
        limit = f"limits.get(({''.join(name + ', ' for name in names)}), {FIRST})"
        again = "general(operands, lengths)"
        reverse = str(int(node.params.get("reverse", False)))
        if body.until is not None:
            lines += [f"if not o{body.until}[0]:", f"    return {again}", f"steps = {limit}"]
        else:
            lines.append(f"steps = {sizes.text(node.params['length'], outer)}")
            lines += [f"if steps > {limit}:", f"    return {again}"]
        lines += self._allocations(reverse == "1")
        watched = body.until is not None or self.fails
        if watched:
            lines.append("ended = array([-1, steps])")
        arguments = [*operands, *results, "ended", "steps", reverse, *names]
        short = "".join(f"n{k} if n{k} <= {_SHORT} else 0, " for k in self._short)
        lines.append(f"short = ({short})")
        lines.append(f"(entries.get(short) or entry(short))({', '.join(arguments)})")
        if watched:
            lines += ["if ended[0] >= 0:", f"    return {again}"]
        if body.until is not None:
            results.append("ended[1:]")
            later = ", ".join([*results[: body.carries], *operands[body.carries :]])
            lines += [f"if w{body.until}[0]:", f"    *made, count = general(({later},), lengths)"]
            lines.append("    return (*made, count + ended[1:])")
        lines.append(f"return ({', '.join(results)},)")
        unpacked = ", ".join(operands) + ("," if operands else "")
        head = ["def loop(operands, lengths):", f"    ({unpacked}) = operands"]
        source = "\n".join([*head, *("    " + line for line in lines)]) + "\n"
        names = {
            "array": np.array, "empty": np.empty, "large": large, "general": general,
            "ended": np.array([-1, 0]), "entries": self._entries, "entry": self.entry,
            "limits": self._limits,
        }  # fmt: skip
        names |= {f"d{k}": v.dtype for k, v in enumerate(graph.outputs)}
        exec(compile(source, generated("call of a loop"), "exec"), names)
        return names["loop"]

    def _allocations(self, reverse: bool) -> list[str]:
        """Lines that allocate results, as ``_allocate`` does."""
        sizes, lines = self.graph.sizes, []
        rows, shared = self.rows_shared()
        for k, v in enumerate(self.graph.outputs):
            lengths = [sizes.text(n, "n{}".format) for n in v.shape]
            if k >= self.body.carries:
                lengths.insert(0, f"steps + {rows[k]}" if k in rows else "steps")
            if k in rows or k not in shared:
                shape = f"({', '.join(lengths) or '1'},)"
                least = LARGE // v.dtype.itemsize
                size = " * ".join(f"({n})" for n in lengths) or "1"
                lines.append(f"w{k} = (empty if {size} < {least} else large)({shape}, d{k})")
        lines += [f"whole{row} = w{row}" for row in rows]
        for k, (row, earlier) in shared.items():
            first = earlier if reverse else rows[row] - earlier
            lines.append(f"w{k} = whole{row}[{first} : {first} + steps]")
        return lines

    def _lengths(self, operands: Sequence[np.ndarray]) -> dict[int, int]:
        sizes, lengths = self.graph.sizes, {}
        c, x = self.body.carries, self.body.carries + self.body.xs
        for k, (value, array) in enumerate(zip(self.graph.inputs, operands, strict=True)):
            shape = array.shape[1:] if c <= k < x else array.shape
            for expected, n in zip(value.shape, shape, strict=True):
                axis = sizes.number(sizes.resolve(expected))
                if axis is not None:
                    lengths[axis] = n
        return lengths

    def _in_turn(
        self, operands: Sequence[np.ndarray], made: list[np.ndarray], length: int, reverse: bool,
        known: dict[int, int],
    ) -> None:  # fmt: skip
        """Run a program for each step."""
        carry, xs, outside = self.body.parts(operands)
        outside = [*outside, *length_arrays(self.body.axes, known)]
        count, step = len(carry), self.step.run
        for k in range(length)[::-1] if reverse else range(length):
            results = step(*carry, *[x[k, ...] for x in xs], *outside)
            carry = results[:count]
            for whole, row in zip(made[count:], results[count:], strict=True):
                whole[k] = row
        for last, value in zip(made, carry, strict=False):
            last[...] = value


class WhileProgram(LoopProgram):
    """A loop until the carry says that it is over."""

    def run_until(
        self, operands: Sequence[np.ndarray], lengths: Sequence[int]
    ) -> tuple[list[np.ndarray], int]:
        """The last carry, and how many steps were made."""
        body = self.body
        c = body.carries
        assert body.until is not None
        arrays = [np.array(a, order="C") for a in operands[:c]]
        outside = [np.asarray(a, order="C") for a in operands[c:]]
        by_axis = body.by_axis(lengths)
        if not arrays[body.until]:
            return arrays, 0
        all_outside, done = [*outside, *length_arrays(body.axes, by_axis)], 0
        while self.written is None and not self._has_machine_code():
            most = MOST if self._machine_code is False else MANY
            begin = time.thread_time()
            arrays, made = self._until(arrays, all_outside, most)
            self._note_pace(begin, made)
            done += made
            if not arrays[body.until]:
                self._warn(done)
                return arrays, done
        _, sizes = self._sizes_for([*arrays, *outside], by_axis)
        steps = self._limits.get(sizes.given, FIRST)
        results = [np.empty_like(a) for a in arrays]
        while True:
            begin = time.perf_counter()
            failed, count = self._call([*arrays, *outside], results, steps, False, sizes.given)
            if failed >= 0:
                arrays, made = self._until(arrays, all_outside)
                return arrays, done + made
            done += int(count)
            arrays, results = results, arrays
            if not arrays[body.until]:
                return arrays, done
            steps = longer(steps, time.perf_counter() - begin)
            self._limit(sizes.given, steps)

    def _until(
        self, arrays: list[np.ndarray], outside: list[np.ndarray], most: int = MOST
    ) -> tuple[list[np.ndarray], int]:
        """Run a program for each step, of some."""
        until, done = self.body.until, 0
        assert until is not None
        while arrays[until] and done < most:
            arrays = [np.asarray(a) for a in self.step.run(*arrays, *outside)]
            done += 1
        return arrays, done


class AdaptiveLoopProgram(LoopProgram):
    """A loop until the carry says that it is over, which collects.

    Note [Memory of adaptive loops]
    -------------------------------
    How many steps there are is known when they are made, and only then is there a place for what
    they gave: the operation that counts and the one that collects are two, and another one collects
    for the gradient. So a program remembers the last run, if that is small, with the operands it
    was for: where these come again, bit by bit, nothing is computed.
    """

    def __init__(self, body: LoopBody) -> None:
        super().__init__(body)
        self._last: tuple[Any, Steps] | None = None

    def run_all(self, operands: Sequence[np.ndarray], lengths: Sequence[int]) -> Steps:
        """All steps, of which there is one at least."""
        arrays = [np.asarray(a, order="C") for a in operands]
        _, rows = run = self._run(arrays, lengths)
        small = sum(a.nbytes for a in (*arrays, *rows)) <= MOST_BYTES
        self._last = (_bits(arrays), run) if small else None
        return run

    def rows(self, operands: Sequence[np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
        """The rows that the steps give, which may be remembered."""
        last = self._last  # another thread may put another one in its place
        if last is not None and last[0] == _bits(operands):
            return last[1][1]
        return self.run_all(operands, lengths)[1]

    def _run(self, arrays: list[np.ndarray], lengths: Sequence[int]) -> Steps:
        body = self.body
        c = body.carries
        assert body.until is not None
        by_axis = body.by_axis(lengths)
        if self.written is None and not self._has_machine_code():
            begin = time.thread_time()
            run = self._run_in_turn(arrays, by_axis)
            self._note_pace(begin, run[0])
            return run
        carry, outside = [a.copy() for a in arrays[:c]], arrays[c:]
        _, sizes = self._sizes_for([*carry, *outside], by_axis)
        chunks: list[list[np.ndarray]] = []
        done, steps = 0, self._limits.get(sizes.given, FIRST)
        while True:
            begin = time.perf_counter()
            results = self._allocate(sizes.shapes, steps, False)
            failed, count = self._call([*carry, *outside], results, steps, False, sizes.given)
            if failed >= 0:
                return self._run_in_turn(arrays, by_axis)
            count = int(count)
            chunks.append([a[:count] for a in results[c:]])
            done, carry = done + count, results[:c]
            seconds = time.perf_counter() - begin
            row = sum(a.nbytes for a in results[c:]) // steps
            most = min(longer(count, seconds), max(MOST_BYTES // max(row, 1), FIRST))
            steps = max(1, min(done + done // 4, most))
            self._limit(sizes.given, steps)
            if not carry[body.until]:
                if len(chunks) == 1:
                    return done, chunks[0]
                return done, [np.concatenate(x) for x in zip(*chunks, strict=True)]

    def _run_in_turn(self, arrays: list[np.ndarray], known: dict[int, int]) -> Steps:
        """Run a program for each step."""
        body = self.body
        c, until = body.carries, body.until
        assert until is not None
        carry = arrays[:c]
        outside = [*arrays[c:], *length_arrays(body.axes, known)]
        rows: list[list[np.ndarray]] = []
        while True:
            results = [np.asarray(a) for a in self.step.run(*carry, *outside)]
            carry = results[:c]
            rows.append(results[c:])
            if not carry[until]:
                self._warn(len(rows))
                return len(rows), [np.stack(x) for x in zip(*rows, strict=True)]


def _bits(arrays: Sequence[np.ndarray]) -> list[tuple]:
    """The bits of arrays of known dtypes."""
    return [(a.shape, a.tobytes()) for a in arrays]
