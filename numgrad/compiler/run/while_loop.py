"""``while_loop`` in compiled functions: an operation whose parameter is the graph of a step.

Note [Loops without a known length]
-----------------------------------
A step returns the new carry, the last of it whether there is another step. Nothing is kept while
the loop runs but how many steps it made: its gradient is that of a loop of so many steps, in a part
(Note [Parts] in ``subgraph``) that takes this number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.variable import Tensor
from numgrad.compiler.passes.common import join_common
from numgrad.compiler.run.loop import dense, derived, of_batch, scan, state_of_batch
from numgrad.compiler.run.loop_program import Body
from numgrad.compiler.run.steps import settled, without_invariants
from numgrad.compiler.run.subgraph import pulled
from numgrad.compiler.run.subgraph_program import Subgraph
from numgrad.compiler.run.while_program import run_until
from numgrad.compiler.trace.body import owned, trace_body
from numgrad.compiler.trace.generators import (
    generator_states,
    one_of_all,
    put_generator_states,
)
from numgrad.compiler.trace.one_call import OfOneCall, follows
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op

INT, BOOL = np.dtype(np.int64), np.dtype(bool)
STEPS = 100
"""How many steps kernels are laid out for."""


@primitive(internal=True, method=False, outputs=True)
def while_loop(*inputs, body, lengths=()):
    """A loop: the last carry, and how many steps were made.

    ``lengths`` are those of the axes that the body reads and no operand has.
    """
    return tuple(run_until(body, inputs, lengths))


@while_loop.shape
def _results(*inputs: Meta, body: Body, lengths: tuple) -> tuple[Meta, ...]:
    return (*body.results_for(inputs, lengths), Meta((), INT))


def _known(body: Body, lengths: tuple) -> dict[int, Any]:
    return dict(zip(body.axes, lengths, strict=True))


# -------------------------------------------------------------------------------------- gradients


def _counted(body: Body) -> tuple[Subgraph, list[Any]]:
    """The loop of so many steps, as a part: it takes their number and what the loop takes."""
    metas, c = body.metas, body.carries
    axes: list[int] = []

    def function(given: Sequence[Tensor]) -> list[Any]:
        sizes = body.graph.sizes
        length = sizes.axis(STEPS)
        axes.append(sizes.axes([length]).pop())
        loop = body.keeping()[0]
        params = {"body": loop, "length": length, "reverse": False, "lengths": loop.lengths()}
        return list(bind(scan, tuple(given[1:]), params)[:c])

    traced = trace_body(function, [Meta((), INT), *metas], sizes=body.graph.sizes)
    return Subgraph(traced.graph, axes[0]), traced.outside


def _pulled(
    g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """The gradients of all operands: Note [Loops without a known length]."""
    body: Body = params["body"]
    part, besides = derived(body, "counted", lambda: _counted(body))
    known = _known(body, params["lengths"])
    lengths = tuple([known[k] for k in sorted(part.axes)])
    operands = (y[-1], *inputs, *besides)
    found = pulled(g[:-1], operands, y[:-1], {"parts": (part,), "lengths": lengths})
    return found[1 : 1 + len(inputs)]


_gradients = OfOneCall(_pulled)
while_loop.implied = ("index",)
while_loop.vjp(
    inputs=lambda g, inputs, y, index, body, lengths: _gradients(
        g, inputs, y, index, body=body, lengths=lengths
    )
)


# --------------------------------------------------------------------------------------- tangents


@while_loop.jvp
def _pushed(t_inputs, inputs, body, lengths):
    """The loop with tangents in its carry."""
    metas, c = body.metas, body.carries
    moving = [k for k, m in enumerate(metas) if follows(m)]
    moved = [k for k in moving if k < c]
    fixed = [k for k in moving if k >= c]

    def make() -> tuple[Body, list[Any]]:
        def step(given: Sequence[Tensor]) -> list[Any]:
            carry, rest = list(given[:c]), given[c:]
            directions, rest = [*rest[: len(moved)]], rest[len(moved) :]
            point = [*carry, *rest[: len(metas) - c]]
            directions += rest[len(metas) - c :]
            with dual_level():
                duals = list(point)
                for k, t in zip(moving, directions, strict=True):
                    duals[k] = make_dual(point[k], t)
                out = [unpack_dual(x) if isinstance(x, Tensor) else (x, None) for x in body(duals)]
            tangents = [
                Tensor(zeros(metas[k].shape, metas[k].dtype)) if out[k][1] is None else out[k][1]
                for k in moved
            ]
            return [*(x for x, _ in out), *tangents]

        given = [*metas[:c], *(metas[k] for k in moved), *metas[c:], *(metas[k] for k in fixed)]
        traced = trace_body(step, given, sizes=body.graph.sizes)
        return Body(traced.graph, c + len(moved), 0, False, body.until), traced.outside

    forward, besides = derived(body, "push", make)
    t = {k: dense(t_inputs[k], inputs[k]) for k in moving}
    operands = [*inputs[:c], *(t[k] for k in moved), *inputs[c:], *(t[k] for k in fixed)]
    found = _loop(forward, [*operands, *besides], _known(body, lengths))
    by_result = dict(zip(moved, found[c:], strict=False))
    return tuple([by_result.get(k) for k in range(c + 1)])


def _loop(body: Body, operands: Sequence[Any], known: dict[int, Any] | None = None) -> Any:
    return bind(while_loop, tuple(operands), {"body": body, "lengths": body.lengths(known)})


# ---------------------------------------------------------------------------------------- batches


@while_loop.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """A loop to the last example's end: Note [Examples that part ways] in ``divergent_batches``."""
    body: Body = params["body"]
    c, until = body.carries, body.until
    assert until is not None
    shared = body.states
    own = any(operands[k].batched for k in shared)
    batched = tuple((k < c or o.batched) and k not in shared for k, o in enumerate(operands))
    values = [o.repeated(size) if k < c else o.value for k, o in enumerate(operands)]
    count = OPS["broadcast_to"](np.asarray(0), (size,))
    if not size:
        return (*values[:c], count)
    for k in shared:
        values[k] = one_of_all(operands[k], size)

    def make() -> tuple[Body, list[Any]]:
        metas = [
            Meta((size, *m.shape), m.dtype) if b else m
            for m, b in zip(body.metas, batched, strict=True)
        ]

        def step(given: Sequence[Tensor]) -> list[Any]:
            carry, outside = given[:c], given[c + 1 :]
            on = carry[until]
            place = OPS["argmax"](on)
            taken = [
                x if k in shared else of_those(on, x, OPS["take"](x, place, axis=0))
                for k, x in enumerate(carry)
            ]
            read = [
                of_those(on, x, OPS["take"](x, place, axis=0)) if b else x
                for x, b in zip(outside, batched[c:], strict=True)
            ]
            made = of_batch(body, [*taken, *read], batched, own, size)
            new = [
                a if k in shared else of_those(on, a, b)
                for k, (a, b) in enumerate(zip(made, carry, strict=True))
            ]
            return [*new, OPS["any"](new[until])]

        traced = trace_body(step, [*metas[:c], Meta((), BOOL), *metas[c:]], sizes=body.graph.sizes)
        return Body(traced.graph, c + 1, 0, False, c), traced.outside

    loop, besides = derived(body, ("batch", size, batched, own), make)
    given = [*values[:c], OPS["any"](values[until]), *values[c:], *besides]
    *found, _, count = _loop(loop, given, _known(body, params["lengths"]))
    for k in shared:
        found[k] = state_of_batch(found[k], own, size)
    return (*found, OPS["broadcast_to"](count, (size,)))


def of_those(on: Any, a: Any, b: Any) -> Any:
    """What is ``a`` for those examples that are ``on``, else ``b``."""
    return OPS["where"](OPS["reshape"](on, (*on.shape, *(1,) * (a.ndim - 1))), a, b)


def compiled_while(
    goes_on: Callable[[Sequence[Tensor]], Any],
    function: Callable[[Sequence[Tensor]], list[Any]],
    carry: Sequence[Any],
    weak: Sequence[bool],
) -> list[Any]:
    """The last carry of a loop whose condition and step take flat lists.

    The dtypes of carries become those that the step gives them.
    """

    def step(given: Sequence[Tensor]) -> list[Any]:
        return function(owned(given[: len(carry)]))

    carry, _ = settled(step, carry, weak, [], carries=True)
    dtypes = [a.dtype for a in carry]

    def whole(given: Sequence[Tensor]) -> list[Any]:
        new = function(owned(given[: len(dtypes)]))
        new = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=True)]
        return [*new, goes_on(new)]

    given = [*carry, goes_on(carry)]
    traced = trace_body(whole, [Meta(a.shape, a.dtype) for a in given], carries=True)
    sources = traced.sources
    given += generator_states(sources)
    join_common(traced.graph)
    ran = given[len(carry)]
    graph, outside = without_invariants(traced.graph, len(given), traced.outside, ran)
    body = Body(graph, len(given), 0, False, len(carry))
    found = _loop(body, [*given, *outside])
    put_generator_states(sources, found[len(carry) + 1 : len(given)])
    return list(found[: len(carry)])
