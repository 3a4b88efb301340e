"""Kernels and their gradients in one graph: what the backward sweep reads is handed over.

Note [Sweeps in graphs]
-----------------------
A graph with a kernel and its gradient would compute the function twice, since the gradient is the
joint sweep of both directions. As on the tape, the call becomes its augmented forward sweep, whose
state is one more result, and the gradient the backward sweep that takes it: Note [Split mode] in
``codegen.adjoint.split``. The state is a value of dtype object that only segments pass on. This is
the last that happens to a graph before it is compiled, since neither sweep has derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numgrad.compiler.graph.graph import Graph, TracedNode, Value
from numgrad.compiler.graph.keys import numbers_of

if TYPE_CHECKING:
    from numgrad.core.loop_kernels import KernelOperation


def hand_over_states(graph: Graph, roots: Sequence[Value], *, asked: bool = True) -> int:
    """Let gradients of kernels read the state of calls of these: Note [Sweeps in graphs].

    ``roots`` are the values that are computed; ``asked`` says that whoever computes the calls
    computes the gradients as well. Returns the number of calls.
    """
    if "numgrad.core.loop_kernels" not in sys.modules:  # fifty modules, half of a first call
        return 0
    from numgrad.core.kernel_derivatives import GradientOfKernel
    from numgrad.core.loop_kernels import KernelOperation

    if not any(isinstance(node.op, GradientOfKernel) for node in graph.nodes):
        return 0
    needed = set(roots)
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
    numbers = numbers_of(graph)
    calls: dict[tuple, TracedNode] = {}
    gradients: dict[TracedNode, list[TracedNode]] = {}
    for node in graph.nodes:
        if needed.isdisjoint(node.outputs):
            continue
        if isinstance(node.op, KernelOperation):
            calls.setdefault((node.op, *[numbers[v] for v in node.inputs]), node)
        elif isinstance(node.op, GradientOfKernel) and not node.params["directions"]:
            kernel = node.op.kernel
            call = calls.get((kernel, *[numbers[v] for v in node.inputs[: kernel.count]]))
            if call is not None:
                gradients.setdefault(call, []).append(node)
    return sum([_split(call, nodes, asked) for call, nodes in gradients.items()])


def _split(call: TracedNode, gradients: Sequence[TracedNode], asked: bool) -> bool:
    """Make the nodes those of split mode, if the kernel has it."""
    kernel: KernelOperation = call.op  # pyright: ignore[reportAssignmentType]
    program = kernel.program(call.inputs)
    wanted = tuple(sorted({k for node in gradients for k in node.params["wanted"]}))
    names = tuple([program.names[k] for k in wanted])
    if not program.has_forward_sweep(names, asked):
        return False
    outputs = call.outputs if program.reads_outputs(names, asked) else ()
    state = Value(call, len(call.outputs), (), np.dtype(object))
    call.op, call.outputs = kernel.sweeps["forward"], (*call.outputs, state)
    call.params = {"wanted": wanted, "asked": asked}
    for node in gradients:
        own, seeds = node.inputs[: kernel.count], node.inputs[kernel.count :]
        node.op, node.inputs = kernel.sweeps["backward"], (*own, *outputs, state, *seeds)
        node.params = {"which": node.params["which"], "wanted": node.params["wanted"]}
    for node in (call, *gradients):
        node.name = node.op.name  # pyright: ignore[reportAttributeAccessIssue]
    return True
