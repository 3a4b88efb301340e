"""The steps of a program as a function in LLVM's language: kernels, loops and branches in order.

Note [Steps in machine code]
----------------------------
A program calls kernels, and between them loops, branches and operations that are kernels by
themselves. Its function here makes the calls that its function in Python makes (Note [Steps] in
``run.program``), of the same kernels with the same arrays, so results have the same bits. A program
within it, a branch or the step of a loop whose step is no single kernel, is a function of its own,
which takes addresses of all operands and results, and lengths. What a step leaves for later ones
lies in a workspace: Note [Workspaces of entries] in ``codegen.c_entry``.

An operation that ``ng.jit`` computes in Python, such as a sort, is a loop of one step here, whose
kernel calls those of Note [Calls in loops] in ``lower.library_calls``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.c_entry import EntryWriter, NativeModule, number_parts
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.nests.kernel import for_lengths
from numgrad.codegen.nests.polynomial import constant
from numgrad.codegen.nests.terms import BUFFER, CONSTANT, SCALAR, SIZE, Term, count
from numgrad.compiler.graph.graph import CALL, BodyOperation, TracedNode
from numgrad.compiler.graph.sizes import hinted
from numgrad.compiler.loops.loop_program import innermost
from numgrad.compiler.lower.library_calls import MOST_PRIME
from numgrad.compiler.lower.lowering import find_lowering
from numgrad.compiler.lower.matrices import MOST_CALLED
from numgrad.compiler.native.loops import LoopCall, known_lengths, single_step
from numgrad.compiler.run.program import KernelProgram, stored_as
from numgrad.compiler.run.steps import KernelStep

Refuse = Callable[[TracedNode | None, str], Exception]
"""The error of a program that cannot leave Python, of the operation and the reason."""
Source = str | list[tuple[str, str]]
"""The address of an array, or types and texts of the parts of a number."""


class NativeSteps:
    """Writes what programs do into a module."""

    def __init__(
        self,
        refuse: Refuse,
        constant: Callable[[np.ndarray], str],
        threads: int = 1,
        workspace: bool = False,
    ) -> None:
        self.module, self.refuse, self.constant = NativeModule(threads, workspace), refuse, constant
        self._functions: dict[Any, tuple[KernelProgram, str, list[int]]] = {}

    def function(self, program: KernelProgram, lengths: Mapping[int, str]) -> tuple[str, list[int]]:
        """The name of a program's function, and the axes whose lengths it takes last.

        It takes addresses of operands and results before. Those of ``lengths`` that are numbers are
        constants of the function.
        """
        graph, sizes = program.graph, program.graph.sizes
        every = sorted(sizes.axes([n for v in graph.inputs for n in v.shape]))
        fixed = {k: lengths[k] for k in every if lengths[k].isdigit()}
        key = (id(program), *fixed.items())
        if key in self._functions:
            return self._functions[key][1:]
        axes = [k for k in every if k not in fixed]
        lengths = fixed | {k: f"%n{k}" for k in axes}
        writer = EntryWriter(lengths, self.module.workspace)
        sources: list[Source] = [
            f"%x{k}" if v.shape else writer.load(f"%x{k}", v.dtype)
            for k, v in enumerate(graph.inputs)
        ]
        stored = stored_as([program.expansion.of[v] for v in graph.roots()])
        targets = [f"%w{k}" for k in range(len(stored))]
        ProgramWriter(self, program, writer, sources).write(list(zip(stored, targets, strict=True)))
        parameters = [("ptr", f"%x{k}") for k in range(len(graph.inputs))]
        parameters += [("ptr", target) for target in targets]
        parameters += [("i64", f"%n{k}") for k in axes]
        name = f"part{len(self._functions)}"
        self._functions[key] = program, name, axes
        self.module.texts.append(writer.text(parameters, name, "private "))
        return name, axes


def obstacle(node: TracedNode) -> str:
    """Why an operation by itself has no form in machine code."""
    if node.op == CALL:
        return "is a call of Python; leave it to the caller"
    if find_lowering(node) is None:
        return "has no kernel, other libraries compute it; leave it to the caller"
    operands = [f"{v.dtype} {hinted(v.shape)}" for v in node.inputs]
    given = [f"{k}={v!r}" for k, v in node.params.items() if isinstance(v, bool | int | str)]
    kind = node.name.replace("_", " ").split()[0]
    takes = next((text for words, text in _TAKEN.items() if kind in words.split()), _OTHERS)
    return (
        f"has no kernel for operands {', '.join(operands)}{' with ' * bool(given)}"
        f"{', '.join(given)}: {takes}; leave it to the caller"
    )


_OTHERS = "its kernels are for other dtypes, parameters or lengths"
_TAKEN = {
    "cholesky solve inv det slogdet lu triangular": (
        f"its kernels are for real matrices of up to {MOST_CALLED} rows"
    ),
    "fft fourier real complex": f"its kernels are for lengths of prime factors up to {MOST_PRIME}",
    "sort argsort searchsorted": "its kernels are for real numbers",
    "matmul dot": "its kernels are for numbers, not for masks; astype(int) counts",
}
"""Words that names of operations begin with, and what kernels of these take."""


class ProgramWriter:
    """Writes the steps of a program: Note [Steps in machine code].

    Parameters
    ----------
    sources
        For each input of its graph where it is.
    """

    def __init__(
        self, steps: NativeSteps, program: KernelProgram, writer: EntryWriter,
        sources: Sequence[Source],
    ) -> None:  # fmt: skip
        self.steps, self.program, self.writer, self.sources = steps, program, writer, sources
        self.sizes = program.graph.sizes
        self._places: dict[int, str] = {}
        self.states: dict[int, Any] = {}
        """States of sweeps of kernels, by the numbers of the terms that they are."""

    def write(self, results: Sequence[tuple[Term, str]]) -> None:
        """Write all steps, and the copies of terms that results are."""
        later: list[tuple[Term, str]] = []
        for term, target in results:
            if term.op in (BUFFER, SCALAR, CONSTANT, SIZE) or term.number in self._places:
                later.append((term, target))
            else:
                self._places[term.number] = target
        for step in self.program.steps:
            if isinstance(step, KernelStep):
                self._kernel(step)
            else:
                self._node(step.node)
        for term, target in later:
            if term.shape:
                elements = self.writer.length(count(term.shape))
                self.writer.copy(target, self.place(term), elements, term.dtype.itemsize)
            else:
                self.writer.store(self.parts(term), target)

    # ------------------------------------------------------------------------------------ places

    def place(self, term: Term) -> str:
        """The address of a term; that of a copy, for numbers that are in no memory."""
        if term.op == BUFFER:
            source = self.sources[term.detail]
            assert isinstance(source, str)
            return source
        known = self._places.get(term.number)
        if known is None:  # before all branches
            known = self._places[term.number] = self.writer.variable("i64", 2)
            self.writer.store(self.parts(term), known)
        return known

    def parts(self, term: Term) -> list[tuple[str, str]]:
        """A number, in both parts if it is complex."""
        if term.op == CONSTANT:
            return number_parts(np.asarray(term.detail, term.dtype)[()], term.dtype)
        if term.op == SIZE:
            length = self.writer.length(term.detail)
            if term.dtype.kind == "f":
                kind = "double" if term.dtype.itemsize == 8 else "float"
                return [(kind, self.writer.let(f"sitofp i64 {length} to {kind}"))]
            return [("i64", length)]
        if term.op == SCALAR:
            source = self.sources[term.detail]
            assert isinstance(source, list)
            return source
        return self.writer.load(self._places[term.number], term.dtype)

    def result(self, term: Term) -> str:
        """The address at which a term is stored."""
        known = self._places.get(term.number)
        if known is None:
            known = self.writer.reserve(count(term.shape), term.dtype.itemsize)
            self._places[term.number] = known
        return known

    # ------------------------------------------------------------------------------------- steps

    def _kernel(self, step: KernelStep) -> None:
        writer, written = self.writer, step.written
        slots: list[tuple[str, str]] = []
        arrays = [(t, self.place(t)) for t in written.arrays]
        arrays += [(t, self.result(t)) for t in written.results]
        for term, address in arrays:
            slots.append(("ptr", address))
            slots += [("i64", writer.length(n)) for n in term.shape or (constant(1),)]
        for term in written.scalars:
            slots += self.parts(term)
        slots += [("i64", writer.lengths[int(name[1:])]) for name in written.lengths]
        emitter = written.emitter
        source = written.source(parallel=self.steps.module.threads > 1)
        known = {f"n{k}": n for k, n in known_lengths(writer.lengths).items()}
        try:
            symbol = self.steps.module.kernel(
                for_lengths(source, known), written.signature(), emitter.externals,
                emitter.namespace,
            )  # fmt: skip
        except Unsupported as reason:
            raise self.steps.refuse(None, f": {reason}") from reason
        writer.call_kernel(symbol, slots)
        for term in written.results:
            if term.number in self.program.checked:
                failed = writer.let(f"load i8, ptr {self._places[term.number]}")
                writer.leave_unless(writer.let(f"icmp eq i8 {failed}, 0"), "3")

    def _node(self, node: TracedNode) -> None:
        """An operation between two kernels."""
        op, call = node.op, LoopCall(self, node)
        try:
            if isinstance(op, BodyOperation):
                op.rules.native(call)
                return
            if hasattr(op, "computed_by"):  # fifty modules, which others do without
                from numgrad.compiler.native.kernel_calls import call_of_kernel

                call_of_kernel(self, node)
                return
            loop = single_step(self.program.graph, node, known_lengths(self.writer.lengths))
            if loop is not None:
                call.single(*loop)
                return
        except Unsupported as reason:
            raise self.steps.refuse(node, f": {reason}") from reason
        node = innermost([node])
        raise self.steps.refuse(node, obstacle(node))
