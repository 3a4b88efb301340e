"""Loops of a length that is found on the way, and what is differentiated of them.

Note [Walks]
------------
A walk chooses its steps as it goes: how many, and how long. It is a loop without derivatives, and
collects what its steps give. ``walk_length`` says how many they were; then, in a part of that
length (Note [Parts] in ``subgraph``), ``walk_rows`` gives what was collected. ``replayed_loop`` is
the loop with derivatives that makes the same steps, given all that the walk has chosen; as what it
would collect is known, only its transposed loop and its tangents are ever computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lowering import lowering
from numgrad.compiler.passes.common import join_common
from numgrad.compiler.run.adaptive_loop_program import program_of
from numgrad.compiler.run.loop import derived, of_batch, pulled, scan
from numgrad.compiler.run.loop_program import Body
from numgrad.compiler.run.steps import settled, without_invariants
from numgrad.compiler.run.while_loop import of_those
from numgrad.compiler.trace.body import trace_body
from numgrad.compiler.trace.one_call import OfOneCall
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op

INT, BOOL = np.dtype(np.int64), np.dtype(bool)
Step = Callable[[Sequence[Tensor]], tuple[list[Any], list[Any]]]
"""Takes the carry, and what is gone through; returns the new carry and what is collected."""


@primitive(internal=True, method=False)
def walk_length(*inputs, body, lengths=()):
    """How many steps a walk makes."""
    return np.asarray(program_of(body).walk(inputs, lengths)[0])


@walk_length.shape
def _of_length(*inputs: Meta, body: Body, lengths: tuple) -> Meta:
    return Meta((), INT)


@primitive(internal=True, method=False, outputs=True)
def walk_rows(*inputs, body, length, lengths=()):
    """What a walk of ``length`` steps collects, along a first axis."""
    return tuple(program_of(body).rows(inputs, lengths))


# of what is collected ``replayed_loop`` has the derivatives
walk_length.no_derivative()
walk_rows.no_derivative()


@walk_rows.shape
def _of_rows(*inputs: Meta, body: Body, length: Any, lengths: tuple) -> tuple[Meta, ...]:
    found = body.results_for(inputs, lengths)[body.carries :]
    return tuple([Meta((length, *m.shape), m.dtype) for m in found])


# ------------------------------------------------------------------------------------- known loops


@primitive(internal=True, method=False, outputs=True, materializes=False)
def replayed_loop(*inputs, body, length, lengths=()):
    """What a loop collects, of which the last operands are known to be that.

    Its body collects the carry before each step last of all.
    """
    return tuple(inputs[len(body.graph.inputs) :])


@replayed_loop.shape
def _known_shapes(*inputs: Meta, body: Body, length: Any, lengths: tuple) -> tuple[Meta, ...]:
    return tuple(inputs[len(body.graph.inputs) :])


@lowering("replayed_loop")
def _known(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term]:
    return args[len(args) - len(node.outputs) :]


def _of_scan(body: Body, length: Any, lengths: tuple) -> dict[str, Any]:
    return {"body": body, "length": length, "reverse": False, "lengths": lengths}


def _known_pulled(
    g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    body: Body = params["body"]
    count, c = len(body.graph.inputs), body.carries
    operands = inputs[:count]
    found = pulled((*[None] * c, *g), operands, (*operands[:c], *y), _of_scan(**params))
    return [*found, *[None] * (len(inputs) - count)]


_gradients = OfOneCall(_known_pulled)
replayed_loop.implied = ("index",)
replayed_loop.vjp(
    inputs=lambda g, inputs, y, index, body, length, lengths: _gradients(
        g, inputs, y, index, body=body, length=length, lengths=lengths
    )
)


@replayed_loop.jvp
def _known_pushed(t_inputs, inputs, body, length, lengths):
    count = len(body.graph.inputs)
    pushed = scan.jvp_formula
    assert pushed is not None
    found = pushed(t_inputs[:count], inputs[:count], **_of_scan(body, length, lengths))
    return tuple(found[body.carries :])


# ----------------------------------------------------------------------------------------- batches


@replayed_loop.batch
def _known_of_batches(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """The loop itself: what is known of examples may be of more steps than each of them has."""
    body, rule = params["body"], scan.batching
    assert rule is not None
    found = rule(scan, operands[: len(body.graph.inputs)], _of_scan(**params), size)
    return tuple(found[body.carries :])


def _batch(
    operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> tuple[Body, list[Any], dict[int, Any]]:
    """A walk of all examples until the last is done: its body and operands, and known lengths.

    An example that is done gives zeros, and carries what it had.
    """
    body: Body = params["body"]
    c, until = body.carries, body.until
    assert until is not None
    batched = tuple([k < c or o.batched for k, o in enumerate(operands)])
    values = [o.repeated(size) if k < c else o.value for k, o in enumerate(operands)]

    def make() -> tuple[Body, list[Any]]:
        metas = [
            Meta((size, *m.shape), m.dtype) if b else m
            for m, b in zip(body.metas, batched, strict=True)
        ]

        def step(given: Sequence[Tensor]) -> list[Any]:
            carry, outside = given[:c], given[c + 1 :]
            on = carry[until]
            place = OPS["argmax"](on)
            taken = [of_those(on, x, OPS["take"](x, place, axis=0)) for x in carry]
            made = of_batch(body, [*taken, *outside], batched, False, size)
            new = [of_those(on, a, b) for a, b in zip(made, carry, strict=False)]
            rows = [of_those(on, x, Tensor(zeros(x.shape, x.dtype))) for x in made[c:]]
            return [*new, OPS["any"](new[until]), *rows]

        traced = trace_body(step, [*metas[:c], Meta((), BOOL), *metas[c:]], sizes=body.graph.sizes)
        return Body(traced.graph, c + 1, 0, False, c), traced.outside

    loop, besides = derived(body, ("batch", size, batched), make)
    given = [*values[:c], OPS["any"](values[until]), *values[c:], *besides]
    return loop, given, dict(zip(body.axes, params["lengths"], strict=True))


@walk_length.batch
def _length_of_batches(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    if not size:
        return OPS["broadcast_to"](np.asarray(0), (0,))
    loop, given, known = _batch(operands, params, size)
    count = bind(walk_length, tuple(given), {"body": loop, "lengths": loop.lengths(known)})
    return OPS["broadcast_to"](count, (size,))


@walk_rows.batch
def _rows_of_batches(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    length = params["length"]
    if not size:
        metas = [o.value for o in operands]
        shapes = params["body"].results_for(metas, params["lengths"])[params["body"].carries :]
        return tuple([Tensor(zeros((0, length, *m.shape), m.dtype)) for m in shapes])
    loop, given, known = _batch(operands, params, size)
    found = bind(
        walk_rows, tuple(given), {"body": loop, "length": length, "lengths": loop.lengths(known)}
    )
    return tuple([OPS["moveaxis"](x, 0, 1) for x in found])


# ----------------------------------------------------------------------------------------- tracing


@dataclass(frozen=True)
class Walked:
    """A walk in a trace.

    Attributes
    ----------
    length
        How many steps it makes.
    """

    body: Body
    operands: tuple[Any, ...]
    length: Any

    def rows(self, length: Any) -> list[Any]:
        """What its steps collect, where ``length`` is the length."""
        params = {"body": self.body, "length": length, "lengths": self.body.lengths()}
        return list(bind(walk_rows, self.operands, params))


def walked(
    step: Callable[[Sequence[Tensor]], tuple[list[Any], Any, list[Any]]], carry: Sequence[Any]
) -> Walked:
    """A walk: ``step`` returns the new carry, whether there is another step, what is collected.

    There is one step at least.
    """
    carry, _ = settled(lambda given: step(given)[0], carry, [False] * len(carry), [])
    dtypes = [a.dtype for a in carry]

    def whole(given: Sequence[Tensor]) -> list[Any]:
        new, goes_on, rows = step(given[: len(dtypes)])
        new = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=True)]
        return [*new, goes_on, *rows]

    given = [*carry, OPS["broadcast_to"](np.asarray(True), ())]
    traced = trace_body(whole, [Meta(a.shape, a.dtype) for a in given])
    join_common(traced.graph)
    graph, outside = without_invariants(traced.graph, len(given), traced.outside)
    body = Body(graph, len(given), 0, False, len(carry))
    operands = (*given, *outside)
    length = bind(walk_length, operands, {"body": body, "lengths": body.lengths()})
    return Walked(body, operands, length)


def known(
    step: Step, carry: Sequence[Any], xs: Sequence[Any], rows: Sequence[Any], length: Any
) -> tuple[list[Any], list[Any]]:
    """What the loop of ``step`` through ``xs`` collects, and the carry before each step.

    ``rows`` are these, as they are known.
    """

    def whole(given: Sequence[Tensor]) -> list[Any]:
        new, collected = step(given)
        new = [OPS["astype"](x, a.dtype) for x, a in zip(new, carry, strict=True)]
        return [*new, *collected, *given[: len(new)]]

    metas = [Meta(a.shape, a.dtype) for a in carry] + [Meta(a.shape[1:], a.dtype) for a in xs]
    traced = trace_body(whole, metas)
    join_common(traced.graph)
    graph, outside = without_invariants(traced.graph, len(metas), traced.outside)
    body = Body(graph, len(carry), len(xs))
    params = {"body": body, "length": length, "lengths": body.lengths()}
    found = list(bind(replayed_loop, (*carry, *xs, *outside, *rows), params))
    return found[: -len(carry)], found[-len(carry) :]
