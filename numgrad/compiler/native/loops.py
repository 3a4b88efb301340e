"""Loops and branches in machine code: calls of their kernels, or of functions for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numgrad.codegen.nests.kernel import for_lengths
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply
from numgrad.codegen.nests.terms import count
from numgrad.compiler.graph.graph import CONSTANT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import terms_of
from numgrad.compiler.loops.body import LoopBody
from numgrad.compiler.loops.loop_program import LoopProgram
from numgrad.compiler.lower.lowering import find_lowering
from numgrad.compiler.trace.cut import extract

ENDLESS = 1 << 40
"""Steps of a loop that ends by itself."""


def single_step(
    graph: Graph, node: TracedNode, lengths: Mapping[int, int]
) -> tuple[LoopProgram, list[Value]] | None:
    """A loop whose only step is an operation, and what it reads; None if it has no such form."""
    if isinstance(node.op, str) or find_lowering(node) is None:
        return None
    inputs = list(dict.fromkeys(v for v in node.inputs if v.node.op not in (CONSTANT, SIZE)))
    body = LoopBody(extract(graph, inputs, node.outputs), 0, 0, False)
    axes = body.graph.sizes.axes([n for v in (*inputs, *node.outputs) for n in v.shape])
    if axes <= lengths.keys():
        program = LoopProgram(body).of_lengths(lengths)
    else:
        program = LoopProgram(body, any_length=True)
    return None if program.written is None else (program, inputs)


def known_lengths(lengths: Mapping[int, str]) -> dict[int, int]:
    """Those of lengths that are numbers."""
    return {k: int(n) for k, n in lengths.items() if n.isdigit()}


class LoopCall:
    """Writes what a node does that is a loop, a branch or an operation by itself.

    Attributes
    ----------
    owner
        The ``steps.ProgramWriter`` that it is a step of.
    values, operands, results
        The operands, their addresses, and those of the results.
    """

    def __init__(self, owner: Any, node: TracedNode) -> None:
        self.owner, self.node, self.writer = owner, node, owner.writer
        of = owner.program.expansion.of
        self.values: Sequence[Value] = node.inputs
        self.operands = [owner.place(of[v]) for v in node.inputs]
        self.results = [owner.result(of[v]) for v in node.outputs]

    def select(self, numbers: Sequence[int]) -> None:
        """Leave out all operands but these."""
        self.values = [self.values[k] for k in numbers]
        self.operands = [self.operands[k] for k in numbers]

    # ----------------------------------------------------------------------------------- lengths

    def outer(self, length: Any) -> Length:
        """A length of the program around."""
        return terms_of(self.owner.sizes.resolve(length))

    def size(self, value: Value, rows: bool = False) -> Length:
        """How many elements a value has, or a row of it."""
        return count([self.outer(n) for n in value.shape[1 if rows else 0 :]])

    def lengths(
        self, graph: Graph, xs: range, axes: Sequence[int], given: Sequence[Any]
    ) -> dict[int, str]:
        """Lengths of the axes of a graph within; elements of operands ``xs`` are its inputs."""
        found: dict[int, Length] = {}
        for k, (value, operand) in enumerate(zip(graph.inputs, self.values, strict=False)):
            for n, outer in zip(value.shape, operand.shape[1 if k in xs else 0 :], strict=True):
                axis = graph.sizes.number(graph.sizes.resolve(n))
                if axis is not None:
                    found[axis] = self.outer(outer)
        found |= {k: self.outer(n) for k, n in zip(axes, given, strict=True)}
        return {k: self.writer.length(n) for k, n in found.items()}

    def _suited(self, program: LoopProgram, lengths: Mapping[int, str]) -> LoopProgram:
        """The program, or one for these lengths where a step is a kernel for known ones alone."""
        fixed = known_lengths(lengths)
        return program.of_lengths(fixed) if len(fixed) == len(lengths) else program

    # ------------------------------------------------------------------------------------- calls

    def single(self, program: LoopProgram, inputs: Sequence[Value]) -> None:
        """The operation itself, as a loop of one step."""
        of = self.owner.program.expansion.of
        operands = [self.owner.place(of[v]) for v in inputs]
        self._kernel(program, operands, self.results, "1", "0", self.writer.lengths)

    def scan(self, program: LoopProgram, length: Any, reverse: bool) -> None:
        """A loop of ``length`` steps."""
        body, writer = program.body, self.writer
        c = body.carries
        lengths = self.lengths(body.graph, range(c, c + body.xs), body.axes, self._given())
        program = self._suited(program, lengths)
        steps = writer.length(self.outer(length))
        if program.written is None:
            self.in_turn(program, self.operands, self.results, steps, reverse, lengths)
            return
        more, shared = program.rows_shared()
        targets, copied = list(self.results), []
        whole: dict[int, str] = {}
        for row, extra in more.items():
            value = self.node.outputs[row]
            rows = add(self.outer(length), constant(extra))
            whole[row] = writer.reserve(
                multiply(rows, self.size(value, True)), value.dtype.itemsize
            )
        for k, (row, earlier) in shared.items():
            value = self.node.outputs[k]
            first = earlier if reverse else more[row] - earlier
            elements = writer.length(multiply(constant(first), self.size(value, True)))
            targets[k] = writer.at(whole[row], elements, value.dtype.itemsize)
            copied.append(k)
        self._kernel(program, self.operands, targets, steps, str(int(reverse)), lengths)
        for k in copied:
            value = self.node.outputs[k]
            writer.copy(
                self.results[k], targets[k], writer.length(self.size(value)), value.dtype.itemsize
            )

    def _given(self) -> Sequence[Any]:
        return self.node.params["lengths"]

    def until(self, program: LoopProgram) -> None:
        """A loop that ends by itself: the last carry, unless it is no result, then its steps."""
        body, writer = program.body, self.writer
        lengths = self.lengths(body.graph, range(0), body.axes, self._given())
        c, until = body.carries, body.until
        assert until is not None
        program = self._suited(program, lengths)
        results = self.results
        number = results[-1]
        if len(results) <= c:
            results = [writer.reserve(self.size(v), v.dtype.itemsize) for v in self.values[:c]]
        results = results[:c]
        if program.written is None:
            made = self.in_turn(program, self.operands, results, str(ENDLESS), False, lengths)
            writer.store([("i64", made)], number)
            return
        run, skip, done = (writer.label(stem) for stem in ("run", "skip", "done"))
        goes_on = writer.let(f"load i8, ptr {self.operands[until]}")
        goes_on = writer.let(f"icmp ne i8 {goes_on}, 0")
        writer.put(f"br i1 {goes_on}, label %{run}, label %{skip}")
        writer.open(skip)
        for k in range(c):
            v = self.values[k]
            writer.copy(results[k], self.operands[k], writer.length(self.size(v)), v.dtype.itemsize)
        writer.store([("i64", "0")], number)
        writer.put(f"br label %{done}")
        writer.open(run)
        ended = self._kernel(program, self.operands, results, str(ENDLESS), "0", lengths)
        place = writer.let(f"getelementptr inbounds i64, ptr {ended}, i64 1")
        writer.store([("i64", writer.let(f"load i64, ptr {place}"))], number)
        writer.begin(done)

    def rows(self, program: LoopProgram, length: Any) -> None:
        """What the steps of a loop give that ends by itself after ``length`` of them."""
        values = self.values[: program.body.carries]
        carry = [self.writer.reserve(self.size(v), v.dtype.itemsize) for v in values]
        self.results = [*carry, *self.results]
        body = program.body
        lengths = self.lengths(body.graph, range(0), body.axes, self._given())
        program = self._suited(program, lengths)
        steps = self.writer.length(self.outer(length))
        if program.written is None:
            self.in_turn(program, self.operands, self.results, steps, False, lengths)
        else:
            self._kernel(program, self.operands, self.results, steps, "0", lengths)

    def branches(self, parts: Sequence[Any]) -> None:
        """The part that the first operand chooses, or a part whose length that is."""
        writer, given = self.writer, self._given()
        axes = sorted(set().union(*(part.axes for part in parts)))
        number = writer.let(f"load i64, ptr {self.operands[0]}")
        labels = [writer.label("part") for _ in parts]
        done = writer.label("done")
        cases = [f"i64 {k}, label %{label}" for k, label in enumerate(labels)][:-1]
        if parts[0].axis is None and len(parts) > 1:
            small = writer.let(f"icmp slt i64 {number}, 0")
            number = writer.let(f"select i1 {small}, i64 0, i64 {number}")
        writer.put(f"switch i64 {number}, label %{labels[-1]} [{' '.join(cases)}]")
        for part, label in zip(parts, labels, strict=True):
            writer.open(label)
            lengths = self.lengths(part.graph, range(0), axes, given)
            if part.axis is not None:
                lengths[part.axis] = number
            self._part(part.step, self.operands, self.results, lengths)
            writer.put(f"br label %{done}")
        writer.open(done)

    def _part(
        self, program: Any, operands: Sequence[str], results: Sequence[str],
        lengths: Mapping[int, str],
    ) -> None:  # fmt: skip
        """Call the function of a program within this one."""
        name, axes = self.owner.steps.function(program, lengths)
        graph = program.graph
        given = [*operands, *["null"] * (len(graph.inputs) - len(operands)), *results]
        arguments = [("ptr", x) for x in given] + [("i64", lengths[k]) for k in axes]
        self.writer.call(name, arguments)

    def _kernel(
        self, program: LoopProgram, operands: Sequence[str], results: Sequence[str], steps: str,
        reverse: str, lengths: Mapping[int, str],
    ) -> str:  # fmt: skip
        """Call the kernel of a loop; returns where it is said how it ended."""
        writer, written, body = self.writer, program.written, program.body
        assert written is not None
        known = {f"n{k}": n for k, n in known_lengths(lengths).items()}
        symbol = self.owner.steps.module.kernel(
            for_lengths(written.source, known), written.signature, written.externals,
            written.functions,
        )  # fmt: skip
        sizes, graph = program.graph.sizes, program.graph
        c, x = body.carries, body.carries + body.xs
        slots: list[tuple[str, str]] = []
        for values, addresses, of_rows in (
            (graph.inputs, operands, range(c, x)),
            (graph.outputs, results, range(c, len(graph.outputs))),
        ):
            for k, (value, address) in enumerate(zip(values, addresses, strict=True)):
                own = [sizes.known(terms_of(n)) for n in value.shape]
                extents = [writer.length(n, lengths) for n in own]
                slots.append(("ptr", address))
                slots += [("i64", n) for n in [*[steps] * (k in of_rows), *extents] or ["1"]]
        ended = writer.variable("i64", 2)
        writer.store([("i64", "-1"), ("i64", steps)], ended)
        slots += [("ptr", ended), ("i64", "2"), ("i64", steps), ("i64", reverse)]
        slots += [("i64", lengths[k]) for k in written.lengths]
        writer.call_kernel(symbol, slots)
        if program.fails:
            failed = writer.let(f"load i64, ptr {ended}")
            writer.leave_unless(writer.let(f"icmp slt i64 {failed}, 0"), "3")
        return ended

    def in_turn(
        self, program: LoopProgram, operands: Sequence[str], results: Sequence[str], steps: str,
        reverse: bool, lengths: Mapping[int, str],
    ) -> str:  # fmt: skip
        """A loop that calls the function of a step; returns how many were made."""
        writer, body, nodes = self.writer, program.body, self.values
        c, x = body.carries, body.carries + body.xs
        now, coming = [], []
        for k in range(c):
            size, width = self.size(nodes[k]), nodes[k].dtype.itemsize
            first, second = (writer.reserve(size, width) for _ in range(2))
            writer.copy(first, operands[k], writer.length(size), width)
            now.append(writer.variable("ptr"))
            coming.append(writer.variable("ptr"))
            writer.store([("ptr", first)], now[k])
            writer.store([("ptr", second)], coming[k])
        counter = writer.variable("i64")
        writer.store([("i64", "0")], counter)
        head, step, done = (writer.label(stem) for stem in ("head", "step", "done"))
        writer.begin(head)
        t = writer.let(f"load i64, ptr {counter}")
        more = writer.let(f"icmp slt i64 {t}, {steps}")
        if body.until is not None:
            flag = writer.let(f"load ptr, ptr {now[body.until]}")
            flag = writer.let(f"icmp ne i8 {writer.let(f'load i8, ptr {flag}')}, 0")
            more = writer.let(f"and i1 {more}, {flag}")
        writer.put(f"br i1 {more}, label %{step}, label %{done}")
        writer.open(step)
        k = t
        if reverse:
            k = writer.let(f"sub i64 {writer.let(f'sub i64 {steps}, 1')}, {t}")

        def row(value: Value, address: str) -> str:
            elements = writer.let(f"mul i64 {k}, {writer.length(self.size(value, True))}")
            return writer.at(address, elements, value.dtype.itemsize)

        before = [writer.let(f"load ptr, ptr {place}") for place in now]
        after = [writer.let(f"load ptr, ptr {place}") for place in coming]
        given = [*before, *[row(nodes[j], operands[j]) for j in range(c, x)], *operands[x:]]
        collected = self.node.outputs[len(self.node.outputs) - len(results) + c :]
        rows = zip(collected, results[c:], strict=True)
        made = [*after, *[row(value, address) for value, address in rows]]
        self._part(program.step, given, made, lengths)
        for one, other, place, next_place in zip(before, after, now, coming, strict=True):
            writer.store([("ptr", other)], place)
            writer.store([("ptr", one)], next_place)
        writer.store([("i64", writer.let(f"add i64 {t}, 1"))], counter)
        writer.put(f"br label %{head}")
        writer.open(done)
        for k in range(c):
            size, width = self.size(nodes[k]), nodes[k].dtype.itemsize
            last = writer.let(f"load ptr, ptr {now[k]}")
            writer.copy(results[k], last, writer.length(size), width)
        return writer.let(f"load i64, ptr {counter}")
