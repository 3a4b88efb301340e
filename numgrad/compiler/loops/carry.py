"""The carry of a loop: dtypes that its step leaves alone, states of generators, invariants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph
from numgrad.compiler.run.replay import replay
from numgrad.compiler.trace.body import TracedBody, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.generators import (
    parameter,
)
from numgrad.core.draws import Draw, Draws
from numgrad.core.formula import Meta
from numgrad.core.op import OPS


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


def fix_carry_dtypes(
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
    inputs = outside if ran is None else [_differentiable_if(ran, x) for x in outside]
    values = replay(extract(graph, read, needed), inputs)
    part = extract(graph, [*graph.inputs, *needed], graph.outputs)
    used = {v for node in part.nodes for v in node.inputs} | set(part.outputs)
    operands = list(zip(part.inputs[given:], [*outside, *values], strict=True))
    read = [v for v, _ in operands if v in used]
    return (
        extract(part, [*part.inputs[:given], *read], part.outputs),
        [x for v, x in operands if v in used],
    )


def _differentiable_if(ran: Any, x: Any) -> Any:
    """``x``, which requires grad only where ``ran``."""
    if not isinstance(x, Tensor) or x.dtype.kind not in "fc":
        return x
    return OPS["where"](ran, x, x.detach())
