"""Loops of compiled functions whose steps are several kernels, in machine code.

Note [Loops of several kernels]
-------------------------------
A step with an operation that has no form in a kernel, such as a function of ``ng.kernel`` or a loop
of unknown length in a branch, is made in Python, kernel by kernel. The same calls in machine code
are what native functions consist of (Note [Steps in machine code] in ``steps``), so where all of
them have such a form the loop becomes one too, once a few dozen steps were made and these were
short. Steps that take long are left to Python, which lets kernels use several threads; those of
loops within sooner, as loops do most of the work and are kernels (descent through a particle's
path, 75 us a step: 0.37 of the time).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from numgrad.codegen.c_entry import EntryWriter, load_entry
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.nests.polynomial import Length
from numgrad.codegen.nests.terms import count
from numgrad.compiler.graph.graph import TracedNode, Value
from numgrad.compiler.graph.sizes import terms_of
from numgrad.compiler.loops.loop_program import LoopProgram
from numgrad.compiler.native.loops import LoopCall
from numgrad.compiler.native.steps import NativeSteps
from numgrad.errors import NumgradNotImplementedError


class _RefusedError(NumgradNotImplementedError):
    """An operation has no form in machine code."""

    def __init__(self, node: TracedNode | None, reason: str) -> None:
        super().__init__(reason)
        self.node = node


class _WholeLoop(LoopCall):
    """Writes a loop that is not a node of a program, but all there is."""

    def __init__(self, steps: NativeSteps, writer: EntryWriter, program: LoopProgram) -> None:
        graph = program.body.graph
        self.owner, self.writer, self.graph = SimpleNamespace(steps=steps), writer, graph
        self.values, self.node = graph.inputs, SimpleNamespace(outputs=graph.outputs)  # pyright: ignore

    def size(self, value: Value, rows: bool = False) -> Length:
        """How many elements a value of a step has."""
        return count([terms_of(self.graph.sizes.resolve(n)) for n in value.shape])


class LoopEntry:
    """The machine code of a loop.

    Attributes
    ----------
    lengths
        The axes whose lengths it takes.
    """

    def __init__(self, program: LoopProgram, reverse: bool) -> None:
        self._program = program
        body, sizes = program.body, program.body.graph.sizes
        axes = sizes.axes([n for v in body.graph.inputs for n in v.shape])
        self.lengths = sorted({*axes, *body.axes})
        self._captured: dict[str, np.ndarray] = {}
        self._entries = {reverse: self._compiled(reverse)}

    def _constant(self, array: np.ndarray) -> str:
        """The name of an array that a kernel captured, which never changes."""
        name = f"captured.{len(self._captured)}"
        self._captured[name] = np.ascontiguousarray(array)
        return f"@{name}"

    def _compiled(self, reverse: bool) -> Any:
        program = self._program
        graph = program.body.graph
        steps = NativeSteps(_RefusedError, self._constant)
        lengths = {k: f"%n{k}" for k in self.lengths}
        writer = EntryWriter(lengths)
        operands = [f"%x{k}" for k in range(len(graph.inputs))]
        results = [f"%w{k}" for k in range(len(graph.outputs))]
        loop = _WholeLoop(steps, writer, program)
        made = loop.in_turn(program, operands, results, "%steps", reverse, lengths)
        writer.store([("i64", made)], "%made")
        parameters = [("ptr", name) for name in (*operands, *results, "%made")]
        parameters += [("i64", name) for name in ("%steps", *lengths.values())]
        steps.module.texts.append(writer.text(parameters, "native"))
        symbols = {name: array.ctypes.data for name, array in self._captured.items()}
        address = load_entry(steps.module, symbols)
        kinds = [ctypes.c_int64] * len(parameters)
        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)

    def call(
        self, arrays: Sequence[np.ndarray], ended: np.ndarray, length: int, reverse: bool,
        axes: Sequence[int],
    ) -> None:  # fmt: skip
        """Make the steps; ``ended`` says in which one it failed, or -1, and how many were made."""
        places = [a.__array_interface__["data"][0] for a in arrays]
        made = ended.__array_interface__["data"][0] + ended.itemsize
        if reverse not in self._entries:
            self._entries[reverse] = self._compiled(reverse)
        if self._entries[reverse](*places, made, length, *axes):
            ended[0] = 0


def loop_entry(program: LoopProgram, reverse: bool) -> tuple[LoopEntry | None, TracedNode | None]:
    """The machine code of a loop, or the operation that has to be made in Python."""
    try:
        return LoopEntry(program, reverse), None
    except _RefusedError as error:
        return None, error.node
    except Unsupported:
        return None, None
