"""Loops that choose their steps as they go, and what is differentiated of them.

Note [Adaptive loops]
---------------------
Such a loop chooses how many steps it makes, and how long they are. It runs without derivatives and
collects what its steps give. ``adaptive_length`` says how many they were; then, in a subgraph of
that length (Note [Subgraphs] in ``subgraph``), ``adaptive_rows`` gives what was collected.
``replayed_loop`` is the loop with derivatives that makes the same steps, given all that was chosen;
as what it would collect is known, only its transposed loop and its tangents are ever computed. The
derivative is that of the steps made, not of their choice (internal differentiation: Bock 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import BodyPrimitive, TracedNode
from numgrad.compiler.loops.body import LoopBody, fix_carry_dtypes, without_invariants
from numgrad.compiler.loops.program import AdaptiveLoopProgram
from numgrad.compiler.loops.scan import Scan, scan
from numgrad.compiler.loops.while_loop import batched_until
from numgrad.compiler.lower.lowering import lowering
from numgrad.compiler.passes.rewriting import join_common
from numgrad.compiler.trace.body import trace_body
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op

INT = np.dtype(np.int64)
Step = Callable[[Sequence[Tensor]], tuple[list[Any], list[Any]]]
"""Takes the carry, and what is gone through; returns the new carry and what is collected."""


class AdaptiveLength(BodyPrimitive):
    """The rules of ``adaptive_length``, of a carry ``c`` and what all steps read, ``a``."""

    differentiable = False

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> Meta:
        """``([c], [a]) -> T``."""
        return Meta((), INT)

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """``([B c], [B a or a]) -> B T``, as many steps as the last example makes."""
        if not size:
            return OPS["broadcast_to"](np.asarray(0), (0,))
        body: LoopBody = params["body"]
        loop, inputs = batched_until(body, operands, size, False, fills=False)
        lengths = loop.lengths(body.by_axis(params["lengths"]))
        count = bind(op, tuple(inputs), {**params, "body": loop, "lengths": lengths})
        return OPS["broadcast_to"](count, (size,))


class AdaptiveRows(BodyPrimitive):
    """The rules of ``adaptive_rows``; ``replayed_loop`` has the derivatives."""

    differentiable = False

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``([c], [a]) -> [T y]``."""
        body: LoopBody = params["body"]
        rows = body.results_for(inputs, params["lengths"])[body.carries :]
        return tuple([Meta((params["length"], *m.shape), m.dtype) for m in rows])

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """``([B c], [B a or a]) -> [B T y]``, zeros after the last step of an example."""
        if not size:
            metas = self.shape([o.value for o in operands], params)
            return tuple([Tensor(zeros((0, *m.shape), m.dtype)) for m in metas])
        body: LoopBody = params["body"]
        loop, inputs = batched_until(body, operands, size, False, fills=False)
        lengths = loop.lengths(body.by_axis(params["lengths"]))
        rows = bind(op, tuple(inputs), {**params, "body": loop, "lengths": lengths})
        return tuple([OPS["moveaxis"](x, 0, 1) for x in rows])


@AdaptiveLength.declare()
def adaptive_length(*inputs, body, lengths=()):
    """How many steps an adaptive loop makes."""
    return np.asarray(body.program(AdaptiveLoopProgram).run_all(inputs, lengths)[0])


@AdaptiveRows.declare(outputs=True)
def adaptive_rows(*inputs, body, length, lengths=()):
    """The rows that an adaptive loop of ``length`` steps collects, along a first axis."""
    return tuple(body.program(AdaptiveLoopProgram).rows(inputs, lengths))


class ReplayedLoop(BodyPrimitive):
    """The rules of ``replayed_loop``, those of ``scan`` with known results ``T y``."""

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``([c], [T x], [a], [T y]) -> [T y]``."""
        return tuple(inputs[len(params["body"].graph.inputs) :])

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """``([T ct y], [c], [T x], [a], [T y]) -> [ct c], [T ct x], [ct a], [None]``."""
        body: LoopBody = params["body"]
        count, c = len(body.graph.inputs), body.carries
        known, operands = (*inputs[:c], *y), inputs[:count]
        grads = Scan().vjp((*[None] * c, *g), operands, known, _of_scan(params))
        return [*grads, *[None] * (len(inputs) - count)]

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """``([t c], [T t x], [t a], ..., [c], [T x], [a], ...) -> [T t y]``."""
        body: LoopBody = params["body"]
        count = len(body.graph.inputs)
        return Scan().jvp(tangents[:count], inputs[:count], _of_scan(params))[body.carries :]

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """The loop itself: what is known may be of more steps than each of the examples has."""
        body: LoopBody = params["body"]
        known = operands[: len(body.graph.inputs)]
        return Scan().batch(scan, known, _of_scan(params), size)[body.carries :]


def _of_scan(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "reverse": False}


@ReplayedLoop.declare(outputs=True, materializes=False)
def replayed_loop(*inputs, body, length, lengths=()):
    """The rows that a loop collects, which are the last operands.

    Its body collects the carry before each step last of all.
    """
    return tuple(inputs[len(body.graph.inputs) :])


@lowering("replayed_loop")
def _lower(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term]:
    return args[len(args) - len(node.outputs) :]


# ----------------------------------------------------------------------------------------- tracing


@dataclass(frozen=True)
class AdaptiveLoop:
    """An adaptive loop in a trace.

    Attributes
    ----------
    length
        How many steps it makes.
    """

    body: LoopBody
    operands: tuple[Any, ...]
    length: Any

    def rows(self, length: Any) -> list[Any]:
        """The rows that its steps collect, where ``length`` is the length."""
        params = {"body": self.body, "length": length, "lengths": self.body.lengths()}
        return list(bind(adaptive_rows, self.operands, params))


def run_adaptive(
    step: Callable[[Sequence[Tensor]], tuple[list[Any], Any, list[Any]]], carry: Sequence[Any]
) -> AdaptiveLoop:
    """An adaptive loop: ``step`` returns the carry, whether it goes on, and what is collected.

    There is one step at least.
    """
    carry, _ = fix_carry_dtypes(lambda carries: step(carries)[0], carry, [False] * len(carry), [])
    dtypes = [a.dtype for a in carry]

    def whole(carries: Sequence[Tensor]) -> list[Any]:
        new, goes_on, rows = step(carries[: len(dtypes)])
        new = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=True)]
        return [*new, goes_on, *rows]

    carries = [*carry, OPS["broadcast_to"](np.asarray(True), ())]
    traced = trace_body(whole, [Meta(a.shape, a.dtype) for a in carries])
    join_common(traced.graph)
    graph, outside = without_invariants(traced.graph, len(carries), traced.outside)
    body = LoopBody(graph, len(carries), 0, False, len(carry))
    operands = (*carries, *outside)
    length = bind(adaptive_length, operands, {"body": body, "lengths": body.lengths()})
    return AdaptiveLoop(body, operands, length)


def replay_adaptive(
    step: Step, carry: Sequence[Any], xs: Sequence[Any], rows: Sequence[Any], length: Any
) -> tuple[list[Any], list[Any]]:
    """The rows that the loop of ``step`` through ``xs`` collects, and the carry before each step.

    ``rows`` are these, as they are known.
    """

    def whole(inputs: Sequence[Tensor]) -> list[Any]:
        new, collected = step(inputs)
        new = [OPS["astype"](x, a.dtype) for x, a in zip(new, carry, strict=True)]
        return [*new, *collected, *inputs[: len(new)]]

    metas = [Meta(a.shape, a.dtype) for a in carry] + [Meta(a.shape[1:], a.dtype) for a in xs]
    traced = trace_body(whole, metas)
    join_common(traced.graph)
    graph, outside = without_invariants(traced.graph, len(metas), traced.outside)
    body = LoopBody(graph, len(carry), len(xs))
    params = {"body": body, "length": length, "lengths": body.lengths()}
    out = list(bind(replayed_loop, (*carry, *xs, *outside, *rows), params))
    return out[: -len(carry)], out[-len(carry) :]
