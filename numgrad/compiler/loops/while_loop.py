"""``while_loop`` and loops of adaptive steps in compiled functions: operations with a traced step.

Note [Loops without a known length]
-----------------------------------
A step returns the new carry, the last of it whether there is another step. Nothing is saved while
the loop runs but how many steps it made: its gradient is that of a ``scan`` of so many steps, in a
subgraph (Note [Subgraphs] in ``subgraph``) that takes this number.

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
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import BodyPrimitive, TracedNode
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.loops.activity import varied_results
from numgrad.compiler.loops.body import (
    LoopBody,
    Subgraph,
    dense,
    fix_carry_dtypes,
    nonzero,
    without_invariants,
)
from numgrad.compiler.loops.loop_program import AdaptiveLoopProgram, WhileProgram
from numgrad.compiler.loops.scan import Scan, scan, state_of_batch
from numgrad.compiler.loops.subgraph import SubgraphPrimitive, select
from numgrad.compiler.lower.lowering import lowering
from numgrad.compiler.passes.rewriting import join_common
from numgrad.compiler.trace import tracer
from numgrad.compiler.trace.body import own_memory, trace_body
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.dataclass import dataclass

INT, BOOL = np.dtype(np.int64), np.dtype(bool)
STEPS = 100
"""How many steps kernels are laid out for."""


class While(BodyPrimitive):
    """The rules of ``while_loop``, of a carry ``c`` and what all steps read, ``a``."""

    trims = True

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``([c], [a]) -> [c], steps``."""
        return (*params["body"].results_for(inputs, params["lengths"]), Meta((), INT))

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """``([ct c], [c], [a], steps) -> [ct c], [ct a]``: Note [Loops without a known length]."""
        body: LoopBody = params["body"]
        part, besides = body.derived("counted", lambda: _loop_of_steps(body))
        known = body.by_axis(params["lengths"])
        operands = (y[-1], *inputs, *besides)
        call_params = {"parts": (part,), "lengths": part.lengths(known)}
        return SubgraphPrimitive().vjp(g[:-1], operands, y[:-1], call_params)[1 : 1 + len(inputs)]

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """``([t c], [t a], [c], [a]) -> [t c], None``, the loop with tangents in its carry."""
        body: LoopBody = params["body"]
        metas, c = body.metas, body.carries
        given = nonzero(tangents, metas)
        moved = varied_results(body.graph, given, c)
        if not moved:
            return (None,) * (c + 1)
        moving = sorted({*given, *moved})
        fixed = [k for k in moving if k >= c]

        def make() -> tuple[LoopBody, list[Any]]:
            def step(values: Sequence[Tensor]) -> list[Any]:
                carry, rest = list(values[:c]), values[c:]
                directions, rest = [*rest[: len(moved)]], rest[len(moved) :]
                point = [*carry, *rest[: len(metas) - c]]
                directions += rest[len(metas) - c :]
                primal, along = body.jvp(point, moving, directions)
                return [*primal, *(along[k] for k in moved)]

            values = [
                *metas[:c],
                *(metas[k] for k in moved),
                *metas[c:],
                *(metas[k] for k in fixed),
            ]
            graph, besides = body.trace(step, values)
            return LoopBody(graph, c + len(moved), 0, False, body.until), besides

        forward, besides = body.derived(("jvp", tuple(moving)), make)
        t = {k: dense(tangents[k], inputs[k]) for k in moving}
        operands = [*inputs[:c], *(t[k] for k in moved), *inputs[c:], *(t[k] for k in fixed)]
        out = call(forward, [*operands, *besides], body.by_axis(params["lengths"]))
        by_result = dict(zip(moved, out[c:], strict=False))
        return tuple([by_result.get(k) for k in range(c + 1)])

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """``([B c], [B a or a]) -> [B c], B steps``, as many for all."""
        body: LoopBody = params["body"]
        c = body.carries
        if not size:
            count = OPS["broadcast_to"](np.asarray(0), (size,))
            return (*(o.repeated(size) for o in operands[:c]), count)
        own = any(operands[k].batched for k in body.states)
        loop, inputs = batched_until(body, operands, size, own, fills=True)
        *carry, _, count = call(loop, inputs, body.by_axis(params["lengths"]))
        for k in body.states:
            carry[k] = state_of_batch(carry[k], own, size)
        return (*carry, OPS["broadcast_to"](count, (size,)))

    def direct(
        self, node: TracedNode, sizes: Sizes, general: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """One call of its kernel, and others where that does not end the loop."""
        return node.params["body"].program(WhileProgram).direct(node, sizes, general)

    def native(self, call: Any) -> None:
        """A call of its kernel, or of the function of a step until the last."""
        call.until(call.node.params["body"].program(WhileProgram))


@While.declare(outputs=True, materializes=False)
def while_loop(*inputs, body, lengths=()):
    """A loop: the last carry, and how many steps were made.

    ``lengths`` are those of the axes that the body reads and no operand has.
    """
    carry, count = body.program(WhileProgram).run_until(inputs, lengths)
    return (*carry, np.asarray(count))


def call(body: LoopBody, operands: Sequence[Any], known: dict[int, Any] | None = None) -> Any:
    """A call of ``while_loop``."""
    return bind(while_loop, tuple(operands), {"body": body, "lengths": body.lengths(known)})


def _loop_of_steps(body: LoopBody) -> tuple[Subgraph, list[Any]]:
    """The loop of so many steps, as a subgraph: it takes their number and what the loop takes."""
    axes: list[int] = []

    def function(inputs: Sequence[Tensor]) -> list[Any]:
        sizes = body.graph.sizes
        length = sizes.axis(STEPS)
        axes.append(sizes.axes([length]).pop())
        loop = body.keeping()[0]
        params = {"body": loop, "length": length, "reverse": False, "lengths": loop.lengths()}
        return list(bind(scan, tuple(inputs[1:]), params)[: body.carries])

    graph, besides = body.trace(function, [Meta((), INT), *body.metas])
    return Subgraph(graph, axes[0]), besides


def batched_until(
    body: LoopBody, operands: Sequence[BatchOperand], size: int, own: bool, *, fills: bool
) -> tuple[LoopBody, list[Any]]:
    """A loop of all examples until the last is done, and its operands.

    ``([B c], any, [B a or a]) -> [B c], any, [B y]``. Note [Examples that part ways] in
    ``carried``. An example that is done keeps its carry and collects zeros; its step is
    that of one that goes on, of which it has the carry, and what steps read if that ``fills`` in.
    """
    c, until, states = body.carries, body.until, body.states
    assert until is not None
    batched = tuple((k < c or o.batched) and k not in states for k, o in enumerate(operands))

    def make() -> tuple[LoopBody, list[Any]]:
        def step(inputs: Sequence[Tensor]) -> list[Any]:
            carry, outside = inputs[:c], inputs[c + 1 :]
            on = carry[until]
            first = OPS["argmax"](on)
            point = [
                select(on, x, OPS["take"](x, first, axis=0)) if flag and (k < c or fills) else x
                for k, (x, flag) in enumerate(zip((*carry, *outside), batched, strict=True))
            ]
            out = body.batch_step(point, batched, own, size)
            new = [
                a if k in states else select(on, a, b)
                for k, (a, b) in enumerate(zip(out, carry, strict=False))
            ]
            rows = [select(on, x, Tensor(zeros(x.shape, x.dtype))) for x in out[c:]]
            return [*new, OPS["any"](new[until]), *rows]

        metas = body.batch_metas(batched, size)
        graph, besides = body.trace(step, [*metas[:c], Meta((), BOOL), *metas[c:]])
        return LoopBody(graph, c + 1, 0, False, c), besides

    loop, besides = body.derived(("batch", size, batched, own), make)
    values = [
        tracer.one_of_all(o, size) if k in states else o.repeated(size) if k < c else o.value
        for k, o in enumerate(operands)
    ]
    return loop, [*values[:c], OPS["any"](values[until]), *values[c:], *besides]


def compiled_while(
    goes_on: Callable[[Sequence[Tensor]], Any],
    function: Callable[[Sequence[Tensor]], list[Any]],
    carry: Sequence[Any],
    weak: Sequence[bool],
) -> list[Any]:
    """The last carry of a loop whose condition and step take flat lists.

    The dtypes of carries become those that the step gives them.
    """

    def step(leaves: Sequence[Tensor]) -> list[Any]:
        return function(own_memory(leaves[: len(carry)]))

    carry, _ = fix_carry_dtypes(step, carry, weak, [], carries=True)
    dtypes = [a.dtype for a in carry]

    def whole(leaves: Sequence[Tensor]) -> list[Any]:
        new = function(own_memory(leaves[: len(dtypes)]))
        new = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=True)]
        return [*new, goes_on(new)]

    leaves = [*carry, goes_on(carry)]
    traced = trace_body(whole, [Meta(a.shape, a.dtype) for a in leaves], carries=True)
    sources = traced.sources
    leaves += tracer.generator_states(sources)
    join_common(traced.graph)
    ran = leaves[len(carry)]
    graph, outside = without_invariants(traced.graph, len(leaves), traced.outside, ran)
    body = LoopBody(graph, len(leaves), 0, False, len(carry))
    out = call(body, [*leaves, *outside])
    tracer.put_generator_states(sources, out[len(carry) + 1 : len(leaves)])
    return list(out[: len(carry)])


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

    def native(self, call: Any) -> None:
        """The loop without what it collects."""
        body: LoopBody = call.node.params["body"]

        def make() -> tuple[Any, list[Any]]:
            c = body.carries
            used = [k < c for k in range(len(body.graph.outputs))]
            return body.trimmed(used) or (body, range(len(body.graph.inputs)), ()), []

        (alone, inputs, _), _ = body.derived("carries", make)
        call.select(inputs)
        call.until(alone.program(WhileProgram))


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

    def native(self, call: Any) -> None:
        """The loop once more, with rows for as many steps as it made."""
        params = call.node.params
        call.rows(params["body"].program(AdaptiveLoopProgram), params["length"])


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
