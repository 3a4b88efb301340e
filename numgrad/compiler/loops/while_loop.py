"""``while_loop`` in compiled functions: an operation whose parameter is the graph of a step.

Note [Loops without a known length]
-----------------------------------
A step returns the new carry, the last of it whether there is another step. Nothing is saved while
the loop runs but how many steps it made: its gradient is that of a ``scan`` of so many steps, in a
subgraph (Note [Subgraphs] in ``subgraph``) that takes this number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import BodyPrimitive, has_derivatives
from numgrad.compiler.loops.body import (
    LoopBody,
    Subgraph,
    dense,
    fix_carry_dtypes,
    without_invariants,
)
from numgrad.compiler.loops.program import WhileProgram
from numgrad.compiler.loops.scan import scan, state_of_batch
from numgrad.compiler.loops.subgraph import SubgraphPrimitive, select
from numgrad.compiler.passes.rewriting import join_common
from numgrad.compiler.trace import generators
from numgrad.compiler.trace.body import own_memory, trace_body
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op

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
        moving = [k for k, m in enumerate(metas) if has_derivatives(m)]
        moved = [k for k in moving if k < c]
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

        forward, besides = body.derived("jvp", make)
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


@While.declare(outputs=True)
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
        generators.one_of_all(o, size) if k in states else o.repeated(size) if k < c else o.value
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
    leaves += generators.generator_states(sources)
    join_common(traced.graph)
    ran = leaves[len(carry)]
    graph, outside = without_invariants(traced.graph, len(leaves), traced.outside, ran)
    body = LoopBody(graph, len(leaves), 0, False, len(carry))
    out = call(body, [*leaves, *outside])
    generators.put_generator_states(sources, out[len(carry) + 1 : len(leaves)])
    return list(out[: len(carry)])
