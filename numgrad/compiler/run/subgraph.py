"""Parts of a compiled function that may run or not, or whose length is found while it runs.

Note [Parts]
------------
A branch is a graph within the graph: an operation takes a number, which says which of several
``Subgraph``s computes its results, and what these read. A loop whose number of steps nobody knows
before it runs has no place for that length in the graph around it: so it is a part too, in which
the length is an axis, that takes it as its number. The derivatives of a part, and that part for a
batch, are parts of the same kind, traced from its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.graph.shapes import results_of
from numgrad.compiler.run.loop import dense, is_zero
from numgrad.compiler.run.subgraph_program import Subgraph
from numgrad.compiler.trace.body import trace_body
from numgrad.compiler.trace.generators import one_of_all
from numgrad.compiler.trace.one_call import OfOneCall, follows
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.op import OPS, Op

Parts = tuple[Subgraph, ...]

EXPECTED = 100
"""How long kernels expect what is found while running to be."""


@primitive(internal=True, method=False, outputs=True)
def subgraph(*inputs, parts, lengths=()):
    """What one of ``parts`` computes, the first operand says which: Note [Parts].

    ``lengths`` are those of the axes that the parts read and no operand has.
    """
    known = dict(zip(_axes(parts), lengths, strict=True))
    if parts[0].axis is not None:
        return tuple(parts[0].run(inputs, known))
    which = min(max(int(inputs[0]), 0), len(parts) - 1)
    return tuple(parts[which].run(inputs, known))


def _axes(parts: Parts) -> list[int]:
    return sorted(set().union(*(part.axes for part in parts)))


def run_inner(parts: Parts, operands: Sequence[Any], known: dict[int, Any] | None = None) -> Any:
    """A call of parts; ``known`` are lengths of axes that are not symbols."""
    sizes, found = parts[0].graph.sizes, known or {}
    lengths = tuple([found.get(k, sizes.of_axis(k)) for k in _axes(parts)])
    return bind(subgraph, tuple(operands), {"parts": parts, "lengths": lengths})


def with_length(function: Callable[[Any], list[Any]], number: Any) -> list[Any]:
    """What ``function`` makes of a length that is found while the compiled function runs.

    Where examples of a batch have other lengths, it gets the largest of them.
    """
    axes: list[int] = []

    def of_length(_: Sequence[Tensor]) -> list[Any]:
        sizes = state.ground.tracer.sizes
        length = sizes.axis(EXPECTED)
        axes[:] = [sizes.axes([length]).pop()]
        return function(length)

    traced = trace_body(of_length, [Meta((), np.dtype(np.int64))])
    return list(run_inner((Subgraph(traced.graph, axes[0]),), (number, *traced.outside)))


def _derived(
    parts: Parts,
    key: Any,
    make: Callable[[Subgraph], tuple[Callable[[Sequence[Tensor]], list[Any]], list[Meta]]],
    states: int = 0,
) -> tuple[Parts, list[Any]]:
    """What is made from each part, and what the new ones read besides."""
    found = []
    for part in parts:
        known = part.derived.get(key)
        if known is None:
            function, metas = make(part)
            traced = trace_body(function, metas, sizes=part.graph.sizes)
            known = Subgraph(traced.graph, part.axis, states), traced.outside
            if not traced.outside:
                part.derived[key] = known
        found.append(known)
    return joined(found)


def joined(found: Sequence[tuple[Subgraph, list[Any]]]) -> tuple[Parts, list[Any]]:
    """Parts that read the same operands: what each of them reads besides."""
    count = len(found[0][0].graph.inputs) - len(found[0][1])
    besides: dict[int, Any] = {}
    own: list[dict[int, Value]] = []
    for part, outside in found:
        besides.update((id(x), x) for x in outside)
        read = part.graph.inputs[count:]
        own.append({id(x): v for x, v in zip(outside, read, strict=True)})
    if not besides:
        return tuple([part for part, _ in found]), []
    all_of = {key: value for values in own for key, value in values.items()}
    parts = tuple([
        part.with_inputs([*part.graph.inputs[:count], *({**all_of, **values}[k] for k in besides)])
        for (part, _), values in zip(found, own, strict=True)
    ])  # fmt: skip
    return parts, list(besides.values())


@subgraph.shape
def _results(*inputs: Meta, parts: Parts, lengths: tuple) -> tuple[Meta, ...]:
    known = dict(zip(_axes(parts), lengths, strict=True))
    found = results_of(parts[0].graph, [m.shape for m in inputs], known)
    return tuple([Meta(s, m.dtype) for s, m in zip(found, parts[0].results, strict=True)])


# -------------------------------------------------------------------------------------- gradients


def pulled(
    g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """The gradients of all operands."""
    parts: Parts = params["parts"]
    grads = [dense(x, part) for x, part in zip(g, y, strict=False)]
    results = parts[0].results
    of = [k for k, m in enumerate(results) if follows(m)]
    of = [k for k in of if not is_zero(g[k])]
    wanted = [k for k, x in enumerate(inputs) if follows(x)]

    def make(part: Subgraph) -> tuple[Callable[..., list[Any]], list[Meta]]:
        metas = part.metas

        def function(given: Sequence[Tensor]) -> list[Any]:
            point, cotangents = list(given[: len(metas)]), given[len(metas) :]
            for k in wanted:
                point[k] = Tensor(point[k]._array, True)
            with enable_grad():
                out = part(point)
            pairs = [
                (out[k], x)
                for k, x in zip(of, cotangents, strict=True)
                if isinstance(out[k], Tensor) and out[k].requires_grad
            ]
            leaves = [point[k] for k in wanted]
            found: Sequence[Any] = [None] * len(leaves)
            if pairs and leaves:
                roots, weights = zip(*pairs, strict=True)
                found = dense_grad(roots, leaves, weights, allow_unused=True)
            return [dense(x, leaf) for x, leaf in zip(found, leaves, strict=True)]

        return function, [*metas, *(part.results[k] for k in of)]

    back, besides = _derived(parts, ("pull", tuple(of), tuple(wanted)), make)
    operands = (*inputs, *(grads[k] for k in of), *besides)
    made = run_inner(back, operands, dict(zip(_axes(parts), params["lengths"], strict=True)))
    by_operand = dict(zip(wanted, made, strict=True))
    return [by_operand.get(k) for k in range(len(inputs))]


_gradients = OfOneCall(pulled)
subgraph.implied = ("index",)
subgraph.vjp(
    inputs=lambda g, inputs, y, index, parts, lengths: _gradients(
        g, inputs, y, index, parts=parts, lengths=lengths
    )
)


# --------------------------------------------------------------------------------------- tangents


@subgraph.jvp
def pushed(t_inputs, inputs, parts, lengths):
    """The tangents of all results."""
    results = parts[0].results
    moving = [k for k, x in enumerate(inputs) if follows(x)]
    moved = [k for k, m in enumerate(results) if follows(m)]

    def make(part: Subgraph) -> tuple[Callable[..., list[Any]], list[Meta]]:
        metas = part.metas

        def function(given: Sequence[Tensor]) -> list[Any]:
            point, directions = given[: len(metas)], given[len(metas) :]
            with dual_level():
                duals = list(point)
                for k, t in zip(moving, directions, strict=True):
                    duals[k] = make_dual(point[k], t)
                out = [unpack_dual(x) if isinstance(x, Tensor) else (x, None) for x in part(duals)]
            return [
                Tensor(zeros(part.results[k].shape, part.results[k].dtype))
                if out[k][1] is None
                else out[k][1]
                for k in moved
            ]

        return function, [*metas, *(metas[k] for k in moving)]

    forward, besides = _derived(parts, ("push", tuple(moving)), make)
    tangents = [dense(t_inputs[k], inputs[k]) for k in moving]
    known = dict(zip(_axes(parts), lengths, strict=True))
    found = run_inner(forward, (*inputs, *tangents, *besides), known)
    by_result = dict(zip(moved, found, strict=True))
    return tuple([by_result.get(k) for k in range(len(results))])


# ---------------------------------------------------------------------------------------- batches


@subgraph.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    parts: Parts = params["parts"]
    number = operands[0]
    batched = tuple([o.batched for o in operands])
    known = dict(zip(_axes(parts), params["lengths"], strict=True))
    if number.batched and parts[0].axis is not None:
        longest = OPS["max"](number.value) if size else OPS["sum"](number.value)
        return _of_batches(op, [BatchOperand(longest, False), *operands[1:]], params, size)
    if number.batched:
        return _of_each(parts, operands, known, size)
    loop, besides = _batch(parts, batched, size)
    found = list(run_inner(loop, (*(o.value for o in operands), *besides), known))
    return _with_states(found, parts[0].states, operands, size)


def _with_states(found: list[Any], count: int, operands: Sequence[BatchOperand], size: int) -> Any:
    """Results of which the last are states of generators, batched if they were."""
    for k in range(len(found) - count, len(found)):
        if not operands[1].batched:
            found[k] = BatchOperand(one_of_all(BatchOperand(found[k], True), size), False)
    return tuple(found)


def _batch(parts: Parts, batched: tuple[bool, ...], size: int) -> tuple[Parts, list[Any]]:
    """Parts for a batch, whose results are batches."""

    def make(part: Subgraph) -> tuple[Callable[..., list[Any]], list[Meta]]:
        metas = [
            Meta((size, *m.shape), m.dtype) if b else m
            for m, b in zip(part.metas, batched, strict=True)
        ]

        def function(given: Sequence[Tensor]) -> list[Any]:
            with BatchingInterpreter(size, examples=True) as level:
                own = [level.wrap(v) if b else v for v, b in zip(given, batched, strict=True)]
                return [level.unwrap(v) for v in part(own)]

        return function, metas

    return _derived(parts, ("batch", size, batched), make, parts[0].states)


def _of_each(
    parts: Parts, operands: Sequence[BatchOperand], known: dict[int, Any], size: int
) -> Any:
    """Results of the part that each example chooses.

    Note [Examples that part ways] in ``divergent_batches``.

    A part that no example chooses does not run.
    """
    which = OPS["clip"](operands[0].value, 0, len(parts) - 1)
    batched = (False, *(o.batched for o in operands[1:]))
    found: list[Any] = []
    states = parts[0].states
    for k, part in enumerate(parts):
        on = OPS["equal"](which, k)
        place = OPS["argmax"](on)
        taken = []
        for number, operand in enumerate(operands[1:]):
            x = operand.value
            if k and number < states:  # those that the part before has left
                x = found[len(found) - states + number]
                x = x if operand.batched else one_of_all(BatchOperand(x, True), size)
            if operand.batched:
                x = OPS["where"](_column(on, x.ndim), x, OPS["take"](x, place, axis=0))
            taken.append(x)
        made, besides = _batch((part,), batched, size)
        here = (_nothing(made[0]), made[0])
        any_on = OPS["astype"](OPS["any"](on), np.int64)
        out = run_inner(here, (any_on, *taken, *besides), known)
        count = len(out) - states
        if k:
            pairs = zip(out[:count], found, strict=False)
            out = [*(OPS["where"](_column(on, a.ndim), a, b) for a, b in pairs), *out[count:]]
        found = list(out)
    return _with_states(found, states, operands, size)


def _nothing(part: Subgraph) -> Subgraph:
    """Zeros in place of what a part computes; states of generators as they were."""
    if "nothing" not in part.derived:
        results, states = part.results, part.states

        def function(given: Sequence[Tensor]) -> list[Any]:
            made = [Tensor(zeros(m.shape, m.dtype)) for m in results[: len(results) - states]]
            pairs = zip(given[1 : 1 + states], results[len(results) - states :], strict=True)
            return [*made, *(OPS["broadcast_to"](x, m.shape) for x, m in pairs)]

        traced = trace_body(function, part.metas, sizes=part.graph.sizes)
        part.derived["nothing"] = Subgraph(traced.graph, states=states)
    return part.derived["nothing"]


def _column(on: Any, ndim: int) -> Any:
    """Flags of examples beside something with ``ndim`` axes."""
    return OPS["reshape"](on, (*on.shape, *(1,) * (ndim - 1)))
