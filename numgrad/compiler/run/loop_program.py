"""The step of a loop, and the loop as a program: one kernel where its step is one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.nests.loop import LoopKernel, LoopWriter
from numgrad.codegen.nests.terms import first_stored
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import Graph, Value
from numgrad.compiler.graph.shapes import length_arrays, lengths_read, results_of, with_lengths
from numgrad.compiler.lower.expand import Expansion
from numgrad.compiler.lower.lowering import find_lowering
from numgrad.compiler.lower.matrices import PRODUCTS
from numgrad.compiler.passes import optimize
from numgrad.compiler.passes.common import graph_key
from numgrad.compiler.run.program import compile_graph, stored_as
from numgrad.compiler.run.replay import replay
from numgrad.compiler.trace.cut import ancestors, extract
from numgrad.compiler.trace.generators import draw_from
from numgrad.core.elementwise import formula_emitter
from numgrad.core.formula import Meta

FIRST, SECONDS, MOST = 256, 0.05, 1 << 40
"""Steps of the first call of a kernel for some shapes, and what later ones may take: between calls
Ctrl-C ends it."""


def longer(steps: int, taken: float) -> int:
    """How many steps to make in a call, after one of ``steps``."""
    return int(min(MOST, max(1, steps * min(SECONDS / max(taken, 1e-7), 1e4))))


_MOST_FIXED = 8
"""Combinations for which a loop has kernels of their own."""
_MOST_SIZES = 100
"""Combinations of shapes of operands that a loop remembers."""


@dataclass(eq=False)
class KnownSizes:
    """What a loop knows of operands of some shapes.

    Attributes
    ----------
    given
        The lengths that the kernel takes.
    shapes
        Shapes and dtypes of what a step returns.
    steps
        How many steps to make in a first call of the kernel.
    """

    given: list[int]
    shapes: list[tuple]
    steps: int = FIRST


@dataclass(eq=False)
class Body:
    """The step of a loop.

    Attributes
    ----------
    graph
        Takes the carry, elements of the arrays that are gone through, and what all steps read;
        returns the new carry, then what is collected.
    carries, xs
        How many arrays the first two are.
    keeps
        Whether the carry before each step is collected, last of all.
    until
        Which part of the carry says whether there is another step; None if their number is known.
    """

    graph: Graph
    carries: int
    xs: int
    keeps: bool = True
    until: int | None = None

    def __post_init__(self) -> None:
        self._program: Any = None
        self._derived: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<body of {len(self.graph.nodes)} nodes>"

    @property
    def metas(self) -> list[Meta]:
        """Shapes and dtypes of the inputs."""
        return [Meta(v.shape, v.dtype) for v in self.graph.inputs]

    @property
    def results(self) -> list[Meta]:
        """Shapes and dtypes of the results."""
        return [Meta(v.shape, v.dtype) for v in self.graph.outputs]

    def results_for(self, operands: Sequence[Meta], lengths: Sequence[Any]) -> list[Meta]:
        """Shapes and dtypes of the results for such operands."""
        c, x = self.carries, self.carries + self.xs
        shapes = [m.shape[1:] if c <= k < x else m.shape for k, m in enumerate(operands)]
        known = dict(zip(self.axes, lengths, strict=True))
        found = results_of(self.graph, shapes, known)
        return [Meta(s, v.dtype) for s, v in zip(found, self.graph.outputs, strict=True)]

    def parts(self, operands: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Operands that are the carry, those gone through, and those that all steps read."""
        c, x = self.carries, self.carries + self.xs
        return operands[:c], operands[c:x], operands[x:]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """One step, by operations on Tensors."""
        return list(replay(self.graph, inputs))

    def keeping(self) -> tuple[Body, list[Any]]:
        """The same with the carry before each step collected, last of all."""
        graph = self.graph
        before = graph.inputs[: self.carries]
        whole = extract(graph, graph.inputs, [*graph.outputs, *before])
        return Body(whole, self.carries, self.xs), []

    def trimmed(self, used: Sequence[bool]) -> tuple[Body, list[int], list[int]] | None:
        """What is left for results that are used, and which inputs and results these are."""
        graph, c = self.graph, self.carries
        place = {v: k for k, v in enumerate(graph.inputs)}
        needs = [{place[v] for v in ancestors([out]) if v in place} for out in graph.outputs]
        live = {k for k, flag in enumerate(used) if flag or k == self.until}
        while True:
            read = {k for out in live for k in needs[out]}
            more = live | {k for k in read if k < c}
            if more == live:
                break
            live = more
        outputs = sorted(live)
        inputs = sorted(read | {k for k in live if k < c})
        if len(outputs) == len(used) and len(inputs) == len(graph.inputs):
            return None
        if len(outputs) == len(used) and any(k not in inputs for k in range(c)):
            return None
        part = extract(
            graph, [graph.inputs[k] for k in inputs], [graph.outputs[k] for k in outputs]
        )
        carries = sum(k < c for k in inputs)
        xs = sum(c <= k < c + self.xs for k in inputs)
        keeps = self.keeps and outputs[-carries or len(outputs) :] == [
            len(used) - c + k for k in inputs[:carries]
        ]
        until = None if self.until is None else inputs.index(self.until)
        return Body(part, carries, xs, keeps, until), inputs, outputs

    @cached_property
    def structure_key(self) -> tuple:
        """What is the same for equal bodies."""
        return (*graph_key(self.graph), self.carries, self.xs, self.keeps, self.until)

    @cached_property
    def states(self) -> frozenset[int]:
        """Which operands are states of generators, from which steps draw."""
        read = states_read(self.graph)
        return frozenset(k for k, v in enumerate(self.graph.inputs) if v in read)

    @cached_property
    def states_made(self) -> frozenset[int]:
        """Which results are such states: carries, and their values before each step."""
        place = {v: k for k, v in enumerate(self.graph.inputs)}
        kept = {k for k, v in enumerate(self.graph.outputs) if place.get(v) in self.states}
        return self.states.intersection(range(self.carries)) | kept

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The axes whose lengths a step reads, and no operand has."""
        return tuple(sorted(lengths_read(self.graph)))

    def lengths(self, known: dict[int, Any] | None = None) -> tuple[Any, ...]:
        """The lengths of ``axes``, those that are known and symbols of the others."""
        found = known or {}
        return tuple([found.get(k, self.graph.sizes.of_axis(k)) for k in self.axes])

    def run(
        self, operands: Sequence[np.ndarray], length: int, reverse: bool, lengths: Sequence[int]
    ) -> list[np.ndarray]:
        """All steps on ndarrays."""
        if self._program is None:
            self._program = LoopProgram(self)
        arrays = [
            a if type(a) is np.ndarray and a.flags.c_contiguous else np.asarray(a, order="C")
            for a in operands
        ]
        return self._program.run(
            arrays, length, reverse, dict(zip(self.axes, lengths, strict=True))
        )


def states_read(graph: Graph) -> set[Value]:
    """The values of a graph that are states of generators, from which something draws."""
    found: set[Value] = set()
    for node in graph.nodes:
        if node.op is draw_from:
            found.update(node.inputs[: len(node.params["draws"].sources)])
        for body in node.params.get("parts", ()):
            read, pairs = states_read(body.graph), zip(node.inputs, body.graph.inputs, strict=True)
            found.update(v for v, inner in pairs if inner in read)
        if isinstance(body := node.params.get("body"), Body):
            found.update(node.inputs[k] for k in body.states)
    return found


class LoopProgram:
    """A loop made ready to run: as one kernel, or step by step where other code runs in between.

    Attributes
    ----------
    source
        The text of the kernel; None if there is none.
    lengths
        Those of axes, by number, if it is for these only: a step that factors matrices is a kernel
        where it is known how small they are.
    """

    def __init__(self, body: Body, lengths: dict[int, int] | None = None) -> None:
        self.body, self.lengths = body, lengths
        graph = body.graph
        self.graph = extract(graph, graph.inputs, graph.outputs)
        self._sizes: dict[Any, KnownSizes] = {}
        optimize(self.graph)
        self.written = self._written()
        self.source = None if self.written is None else self.written.source
        self._fixed: dict[Any, LoopProgram] = {}
        if self.written is None and lengths is None:
            part = extract(graph, graph.inputs, graph.outputs)
            self.step = compile_graph(with_lengths(part, body.axes))

    def _written(self) -> LoopKernel | None:
        expansion = Expansion(self.graph, inline=True, lengths=self.lengths)
        results = stored_as([expansion.of[v] for v in self.graph.outputs])
        if expansion.opaque:
            self._depends = all(find_lowering(node) for node in expansion.opaque)
            return None
        terms, check = expansion.terms, None
        for condition in terms.checks:
            known = check
            check = (
                condition if known is None else terms.map("logical_or", (known, condition), BOOL)
            )
        stored = list(first_stored([*results, *([check] if check else [])]).values())
        inputs = [expansion.of[v] for v in self.graph.inputs]
        body = self.body
        ranks = [len(v.shape) for v in self.graph.outputs]
        writer = LoopWriter(
            terms, stored, inputs, results, ranks, body.carries, body.xs,
            formula_emitter(), PRODUCTS, check, body.until, body.keeps,
        )  # fmt: skip
        return writer.loop()

    def run(
        self, operands: list[np.ndarray], length: int, reverse: bool, known: dict[int, int]
    ) -> list[np.ndarray]:
        """The last carry, and what was collected."""
        key, sizes = self._sizes_for(operands, known)
        fixed = self._for_lengths(key, operands, known)
        if fixed is not None:
            return fixed.run(operands, length, reverse, known)
        made = self._made(sizes.shapes, length, reverse)
        if self.written is None:
            self._in_turn(operands, made, length, reverse, known)
            return made
        if not self._natively(operands, made, length, reverse, sizes):
            self._in_turn(operands, made, length, reverse, known)
        return made

    def _made(self, shapes: Sequence[tuple], length: int, reverse: bool) -> list[np.ndarray]:
        """Memory for what the loop returns; some rows are those of others.

        Note [Places of a carry] in ``nests.loop`` says which.
        """
        c, shared = self.body.carries, self.written.shared if self.written else {}
        more: dict[int, int] = {}
        for row, steps in shared.values():
            more[row] = max(steps, more.get(row, 0))
        made = []
        for k, (shape, dtype) in enumerate(shapes):
            rows = (length + more.get(k, 0),) if k >= c else ()
            made.append(np.empty(() if k in shared else (*rows, *shape), dtype))
        whole = {row: made[row] for row in more}
        for k, (row, steps) in {**{row: (row, 0) for row in more}, **shared}.items():
            first = steps if reverse else more[row] - steps
            made[k] = whole[row][first : first + length]
        return made

    def _for_lengths(
        self, key: Any, operands: list[np.ndarray], known: dict[int, int]
    ) -> LoopProgram | None:
        """The kernel for operands of these shapes, if there is none for all."""
        if self.written is not None or self.lengths is not None or not self._depends:
            return None
        fixed = self._fixed.get(key)
        if fixed is None and len(self._fixed) < _MOST_FIXED:
            lengths = known | self._lengths(operands)
            fixed = self._fixed[key] = LoopProgram(self.body, lengths)
        return None if fixed is None or fixed.written is None else fixed

    def _natively(
        self, operands: list[np.ndarray], made: list[np.ndarray], length: int, reverse: bool,
        sizes: KnownSizes,
    ) -> bool:  # fmt: skip
        """Call the kernel for some steps after the other; whether none of these failed."""
        carry, xs, outside = self.body.parts(operands)
        last, rows = made[: len(carry)], made[len(carry) :]
        done, steps, given = 0, sizes.steps, sizes.given
        while True:
            begin, end = time.perf_counter(), min(length, done + steps)
            here = slice(length - end, length - done) if reverse else slice(done, end)
            if end - done < length:
                now = [*carry, *(x[here] for x in xs), *outside]
                found = self._call(
                    now, [*last, *(x[here] for x in rows)], end - done, reverse, given
                )
            else:
                found = self._call(operands, made, length, reverse, given)
            taken = time.perf_counter() - begin
            if end - done >= FIRST:
                sizes.steps = longer(end - done, taken)
            if found[0] >= 0 or end == length:
                return found[0] < 0
            carry, done, steps = last, end, longer(steps, taken)

    def _call(
        self, operands: Sequence[np.ndarray], made: Sequence[np.ndarray], length: int,
        reverse: bool, given: Sequence[int],
    ) -> np.ndarray:  # fmt: skip
        """Call the kernel; says in which step it failed, or -1, and how many were made."""
        flat = [a if a.ndim else a.reshape(1) for a in (*operands, *made)]
        ended = np.array([-1, length])
        self.entry(*flat, ended, length, int(reverse), *given)
        if ended[0] >= 0:  # the operations one by one say what is wrong
            part = extract(self.graph, self.graph.inputs, self.graph.outputs)
            self.step = evaluate.compile_graph(with_lengths(part, self.body.axes))
        return ended

    @cached_property
    def entry(self) -> Any:
        """The compiled kernel."""
        written = self.written
        assert written is not None
        return compile_kernel(
            "loop", written.source, written.signature,
            externals=written.externals, functions=written.functions, lasting=False,
        ).entry  # fmt: skip

    def _sizes_for(
        self, operands: Sequence[np.ndarray], known: dict[int, int]
    ) -> tuple[tuple, KnownSizes]:
        """What is known of operands of such shapes, and under which key."""
        key = (*[a.shape for a in operands], *known.items())
        sizes = self._sizes.get(key)
        if sizes is None:
            found = known | self._lengths(operands)
            shapes = [
                (tuple(self.graph.sizes.evaluate(n, found) for n in v.shape), v.dtype)
                for v in self.graph.outputs
            ]
            given = [found[k] for k in self.written.lengths] if self.written else []
            if len(self._sizes) > _MOST_SIZES:
                self._sizes.clear()
            sizes = self._sizes[key] = KnownSizes(given, shapes)
        return key, sizes

    def _lengths(self, operands: Sequence[np.ndarray]) -> dict[int, int]:
        sizes, found = self.graph.sizes, {}
        c, x = self.body.carries, self.body.carries + self.body.xs
        for k, (value, array) in enumerate(zip(self.graph.inputs, operands, strict=True)):
            shape = array.shape[1:] if c <= k < x else array.shape
            for expected, n in zip(value.shape, shape, strict=True):
                axis = sizes.number(sizes.resolve(expected))
                if axis is not None:
                    found[axis] = n
        return found

    def _in_turn(
        self, operands: Sequence[np.ndarray], made: list[np.ndarray], length: int, reverse: bool,
        known: dict[int, int],
    ) -> None:  # fmt: skip
        """Run a program for each step."""
        carry, xs, outside = self.body.parts(operands)
        outside = [*outside, *length_arrays(self.body.axes, known)]
        count, step = len(carry), self.step.run
        for k in range(length)[::-1] if reverse else range(length):
            found = step(*carry, *[x[k, ...] for x in xs], *outside)
            carry = found[:count]
            for whole, row in zip(made[count:], found[count:], strict=True):
                whole[k] = row
        for last, value in zip(made, carry, strict=False):
            last[...] = value
