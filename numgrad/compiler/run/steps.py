"""The loop that a step makes: traced until its dtypes stay, without what no step changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph
from numgrad.compiler.passes.common import join_common
from numgrad.compiler.run.loop import scan
from numgrad.compiler.run.loop_program import Body
from numgrad.compiler.run.replay import replay
from numgrad.compiler.trace.body import DependentDrawError, TracedBody, owned, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.generators import (
    generator_states,
    parameter,
    put_generator_states,
)
from numgrad.core.draws import Draw, Draws, of_steps
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, drawn_together
from numgrad.core.op import OPS


def compiled_scan(
    function: Callable[[Sequence[Tensor]], tuple[list[Any], list[Any]]],
    carry: Sequence[Any],
    weak: Sequence[bool],
    xs: Sequence[Any],
    length: Any,
    reverse: bool,
    everything: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The loop of a step, which takes and returns flat lists: the last carry, what was collected.

    The dtypes of carries become those that the step gives them.
    """

    def step(given: Sequence[Tensor]) -> list[Any]:
        new, rows = function([*owned(given[: len(carry)]), *given[len(carry) :]])
        return [*new, *rows, *given[: len(new)]]

    rest = [Meta(a.shape[1:], a.dtype) for a in xs]
    try:
        carry, traced = settled(step, carry, weak, rest, draws=True)
    except DependentDrawError:
        carry, traced = settled(step, carry, weak, rest, carries=True)
    if traced.draws:
        xs = [*xs, *drawn_together(of_steps(draws_before(traced), length, reverse))]
    sources = traced.sources
    if sources:
        traced = carrying(traced, len(carry), len(xs))
        carry = [*carry, *generator_states(sources)]
    join_common(traced.graph)
    graph, outside = traced.graph, traced.outside
    if not (
        isinstance(length, int) and length == 0
    ):  # computed for no step, they may have no value
        graph, outside = without_invariants(graph, len(carry) + len(xs), outside)
    body = Body(graph, len(carry), len(xs))
    operands = (*carry, *xs, *outside)
    params = {"length": length, "reverse": reverse, "lengths": body.lengths()}
    found = bind(scan, operands, {"body": body, **params})
    rows = found[len(carry) : len(found) - len(carry)]
    count = len(carry) - len(sources)
    put_generator_states(sources, found[count : len(carry)])
    return list(found[:count]), list(rows)


def carrying(body: TracedBody, carries: int, xs: int) -> TracedBody:
    """A body of ``scan`` with states of generators among its carries."""
    graph, first = body.graph, carries + xs
    count = len(body.sources)
    states = graph.inputs[first : first + count]
    given = graph.inputs[:carries], states, graph.inputs[carries:first]
    inputs = [*(v for part in given for v in part), *graph.inputs[first + count :]]
    made = graph.outputs[: len(graph.outputs) - count]
    outputs = [*made[:carries], *graph.outputs[len(made) :], *made[carries:], *states]
    return replace(body, graph=extract(graph, inputs, outputs))


def draws_before(body: TracedBody) -> list[Draw | Draws]:
    """The draws of a body in terms of what is around it: Note [Draws of a body] in ``draws``."""

    def computed(x: Any, dtype: np.dtype) -> Any:
        return parameter(replay(x, body.outside)[0] if isinstance(x, Graph) else x, dtype)

    return [draw.on(computed) for draw in body.draws]


def settled(
    step: Callable[..., list[Any]],
    carry: Sequence[Any],
    weak: Sequence[bool],
    rest: Sequence[Meta],
    **options: Any,
) -> tuple[list[Any], TracedBody]:
    """The carry in the dtypes that a step leaves alone, and the step for these.

    A step takes the carry and ``rest``, and returns the new carry first of all; ``options`` are
    those of ``trace_body`` about random numbers.
    """
    carry, flags = list(carry), list(weak)
    while True:
        dtypes = [a.dtype for a in carry]
        metas = [*(Meta(a.shape, a.dtype) for a in carry), *rest]
        traced = trace_body(step, metas, flags, **options)
        made = [v.dtype for v in traced.graph.outputs[: len(carry)]]
        joined = [
            np.result_type(d.type(0).item() if w else d, m)
            for d, w, m in zip(dtypes, flags, made, strict=True)
        ]
        if not any(flags) and joined == dtypes:
            break
        carry = [
            a if d == joined[k] and not flags[k] else OPS["astype"](a, joined[k])
            for k, (a, d) in enumerate(zip(carry, dtypes, strict=True))
        ]
        flags = [False] * len(carry)
    if made == dtypes:
        return carry, traced

    def same(given: Sequence[Tensor]) -> list[Any]:
        new = step(given)
        converted = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=False)]
        return [*converted, *new[len(dtypes) :]]

    return carry, trace_body(same, metas, **options)


def without_invariants(
    graph: Graph, given: int, outside: Sequence[Any], ran: Any = None
) -> tuple[Graph, list[Any]]:
    """A body without what is the same in all steps, and what it reads from outside instead.

    ``ran`` says whether there are any steps, if that is not known before: what is computed for none
    of them may have no value there, and a NaN that nobody takes would still be one in the gradient.
    """
    read = graph.inputs[given:]
    known, free = set(read), set()
    for node in graph.nodes:
        if node.op in (CONSTANT, SIZE) or (node.inputs and free.issuperset(node.inputs)):
            free.update(node.outputs)
        elif node.op != INPUT and known.union(free).issuperset(node.inputs):
            known.update(node.outputs)
    computed = known.difference(read)
    users = [v for node in graph.nodes if computed.isdisjoint(node.outputs) for v in node.inputs]
    needed = list(dict.fromkeys(v for v in (*users, *graph.outputs) if v in computed))
    if not needed:
        return graph, list(outside)
    taken = outside if ran is None else [_followed_if(ran, x) for x in outside]
    values = replay(extract(graph, read, needed), taken)
    part = extract(graph, [*graph.inputs, *needed], graph.outputs)
    used = {v for node in part.nodes for v in node.inputs} | set(part.outputs)
    operands = list(zip(part.inputs[given:], [*outside, *values], strict=True))
    kept = [v for v, _ in operands if v in used]
    return (
        extract(part, [*part.inputs[:given], *kept], part.outputs),
        [x for v, x in operands if v in used],
    )


def _followed_if(ran: Any, x: Any) -> Any:
    """``x``, whose derivatives are followed only where ``ran``."""
    if not isinstance(x, Tensor) or x.dtype.kind not in "fc":
        return x
    return OPS["where"](ran, x, x.detach())
