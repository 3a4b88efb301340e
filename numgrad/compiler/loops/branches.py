"""``cond`` and ``switch`` in compiled functions, where what decides is known when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.loops import subgraph
from numgrad.compiler.loops.body import Subgraph
from numgrad.compiler.loops.carry import draws_before
from numgrad.compiler.loops.subgraph import joined
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.body import DependentDrawError, TracedBody, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.generators import (
    generator_states,
    put_generator_states,
    state_metas,
)
from numgrad.core.draws import of_branches
from numgrad.core.formula import Meta
from numgrad.core.interpreter import drawn_together
from numgrad.core.op import OPS

INT = np.dtype(np.int64)


def compiled_branches(
    name: str, which: Tensor, functions: Sequence[Callable[[], list[Tensor | None]]]
) -> list[Tensor | None]:
    """Results of one of ``functions``, which all return lists of the same shapes.

    Each place has the dtype that holds what all of them return there; where one returns None,
    there is nothing.
    """
    try:
        traced = [_traced(name, function, draws=True) for function in functions]
    except DependentDrawError:
        traced = [_traced(name, function, carries=True) for function in functions]
    absent = {k for _, places in traced for k, x in enumerate(places) if x is None}
    count = len(traced[0][1])
    places = [k for k in range(count) if k not in absent]
    columns = [[values[k] for _, values in traced] for k in places]
    dtypes = [_joined_dtype([(v.dtype, w) for v, w in column]) for column in columns]  # pyright: ignore
    for body, pairs in traced:
        values = [pairs[k][0] for k in places]  # pyright: ignore
        last = body.graph.outputs[len(body.graph.outputs) - len(body.sources) :]
        body.graph.outputs = [
            *(_converted(body.graph, v, d) for v, d in zip(values, dtypes, strict=True)), *last
        ]  # fmt: skip
    bodies = [body for body, _ in traced]
    numbers: list[Any] = []
    if any(body.draws for body in bodies):
        numbers = drawn_together(of_branches([draws_before(body) for body in bodies], which))
    sources = list({id(source): source for body in bodies for source in body.sources}.values())
    parts = [_with_all(body, sources) for body in bodies] if sources else _given_all(bodies)
    states = generator_states(sources)
    whole, besides = joined([(p, b.outside) for p, b in zip(parts, bodies, strict=True)])
    results = (
        subgraph.call(whole, (which, *states, *numbers, *besides)) if places or sources else ()
    )
    put_generator_states(sources, results[len(results) - len(sources) :])
    made = iter(results)
    out: list[Tensor | None] = [None if k in absent else next(made) for k in range(count)]
    for k, column in zip(places, columns, strict=True):
        array = getattr(out[k], "_array", None)
        if all(w for _, w in column) and isinstance(array, TracedArray):  # pyright: ignore
            array.value.weak = array.value.dtype.kind != "b"
    return out


def _traced(
    name: str, function: Callable[[], list[Tensor | None]], **options: bool
) -> tuple[TracedBody, list[tuple[Value, bool] | None]]:
    """A branch, and what it returns in each place: a value and whether that is weak."""
    returned: list[Tensor | None] = []

    def results(_: Any) -> list[Any]:
        returned[:] = function()  # it may be traced again
        return [x for x in returned if x is not None]

    body = trace_body(results, [Meta((), INT)], what=name, **options)  # pyright: ignore
    outputs = iter(zip(body.graph.outputs, body.weak, strict=False))
    return body, [None if x is None else next(outputs) for x in returned]


def _with_all(body: TracedBody, sources: Sequence[Any]) -> Subgraph:
    """A branch that takes and returns the states of generators from which any of them draws."""
    graph, own = body.graph, len(body.sources)
    number, *rest = graph.inputs
    results = graph.outputs[: len(graph.outputs) - own]
    last = graph.outputs[len(results) :]
    known = {id(s): pair for s, *pair in zip(body.sources, rest[:own], last, strict=True)}
    for source, meta in zip(sources, state_metas(sources), strict=True):
        if id(source) not in known:
            value = graph.input(meta.shape, meta.dtype)
            known[id(source)] = [value, value]
    first, last = zip(*(known[id(source)] for source in sources), strict=True)
    inputs, outputs = [number, *first, *rest[own:]], [*results, *last]
    return Subgraph(extract(graph, inputs, outputs), state_count=len(sources))


def _given_all(bodies: Sequence[TracedBody]) -> list[Subgraph]:
    """Branches that are all given the number, and the random numbers that any of them draws."""
    drawn = [body.graph.inputs[1 : len(body.graph.inputs) - len(body.outside)] for body in bodies]
    every = [v for values in drawn for v in values]
    if not every:
        return [Subgraph(body.graph) for body in bodies]
    parts = []
    for body in bodies:
        number, *rest = body.graph.inputs
        read = rest[len(rest) - len(body.outside) :]
        parts.append(Subgraph(extract(body.graph, [number, *every, *read], body.graph.outputs)))
    return parts


def _joined_dtype(kinds: Sequence[tuple[np.dtype, bool]]) -> np.dtype:
    """The dtype that holds arrays of these; what is weak is a Python number."""
    return np.result_type(*(d.type(0).item() if weak else d for d, weak in kinds))


def _converted(graph: Any, value: Value, dtype: np.dtype) -> Value:
    if value.dtype == dtype:
        return value
    params = {"dtype": dtype, "copy": True}
    return graph.add(OPS["astype"], (value,), params, [(value.shape, dtype)])[0]
