"""Branches of compiled functions, and graphs whose length is found while they run.

Note [Subgraphs]
----------------
A branch is a graph within the graph: an operation takes a number, which says which of several
``Subgraph``s computes its results, and what these read (``switch`` of XLA's structured control
flow). A loop whose number of steps nobody knows before it runs has no place for that length in the
graph around it: so it is a subgraph too, in which the length is an axis, that takes it as its
number. The derivatives of a subgraph, and that subgraph for a batch, are subgraphs of the same
kind: Note [Derived bodies] in ``body``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import BodyPrimitive, TracedNode, Value, has_derivatives
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.loops.activity import useful_operands, varied_results
from numgrad.compiler.loops.body import Subgraph, dense, draws_before, is_zero, nonzero
from numgrad.compiler.run.steps import Run
from numgrad.compiler.trace import tracer
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.body import DependentDrawError, TracedBody, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.draws import of_branches
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, drawn_together, state
from numgrad.core.op import OPS, Op

Parts = tuple[Subgraph, ...]
Step = Callable[[Sequence[Tensor]], list[Any]]

EXPECTED = 100
"""How long kernels expect what is found while running to be."""


class SubgraphPrimitive(BodyPrimitive):
    """The rules of ``subgraph``, of a number ``n`` and operands ``a`` of all its parts."""

    linear = trims = True

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``(n, [a]) -> [y]``, as they are in the first part."""
        parts: Parts = params["parts"]
        known = _by_axis(parts, params["lengths"])
        return tuple(parts[0].results_for(inputs, parts[0].lengths(known)))

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """``([ct y], n, [a]) -> None, [ct a]``."""
        parts: Parts = params["parts"]
        grads = [dense(x, part) for x, part in zip(g, y, strict=False)]
        results = [k for k, m in enumerate(parts[0].results) if has_derivatives(m)]
        outputs = [k for k in results if not is_zero(g[k])]
        reached = {k for branch in parts for k in useful_operands(branch.graph, outputs)}
        if not reached:
            return [None] * len(inputs)
        variables = sorted(reached)

        def make(branch: Subgraph) -> tuple[Step, list[Meta]]:
            def step(values: Sequence[Tensor]) -> list[Any]:
                count = len(branch.metas)
                return branch.vjp(values[:count], variables, outputs, values[count:])

            return step, [*branch.metas, *(branch.results[k] for k in outputs)]

        back, besides = _derived(parts, ("vjp", tuple(outputs), tuple(variables)), make)
        operands = (*inputs, *(grads[k] for k in outputs), *besides)
        made = call(back, operands, _by_axis(parts, params["lengths"]))
        by_operand = dict(zip(variables, made, strict=True))
        return [by_operand.get(k) for k in range(len(inputs))]

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """``(None, [t a], n, [a]) -> [t y]``."""
        parts: Parts = params["parts"]
        results = parts[0].results
        moving = nonzero(tangents, inputs)
        reached = {k for branch in parts for k in varied_results(branch.graph, moving)}
        if not reached:
            return (None,) * len(results)
        moved = sorted(reached)

        def make(branch: Subgraph) -> tuple[Step, list[Meta]]:
            def step(values: Sequence[Tensor]) -> list[Any]:
                count = len(branch.metas)
                along = branch.jvp(values[:count], moving, values[count:])[1]
                return [along[k] for k in moved]

            return step, [*branch.metas, *(branch.metas[k] for k in moving)]

        forward, besides = _derived(parts, ("jvp", tuple(moving)), make)
        along = [dense(tangents[k], inputs[k]) for k in moving]
        out = call(forward, (*inputs, *along, *besides), _by_axis(parts, params["lengths"]))
        by_result = dict(zip(moved, out, strict=True))
        return tuple([by_result.get(k) for k in range(len(results))])

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """``(B n or n, [B a or a]) -> [B y]``."""
        parts: Parts = params["parts"]
        number = operands[0]
        known = _by_axis(parts, params["lengths"])
        if number.batched and parts[0].axis is not None:
            longest = OPS["max"](number.value) if size else OPS["sum"](number.value)
            return self.batch(op, [BatchOperand(longest, False), *operands[1:]], params, size)
        if number.batched:
            return _of_each(parts, operands, known, size)
        batch, besides = _batch(parts, tuple([o.batched for o in operands]), size)
        out = list(call(batch, (*(o.value for o in operands), *besides), known))
        return _with_states(out, parts[0].state_count, operands, size)

    def direct(self, node: TracedNode, sizes: Sizes, general: Callable[..., Any]) -> Run:
        """A call of the program of the part that is chosen."""
        parts: Parts = node.params["parts"]
        axes = _by_axis(
            parts, [sizes.text(n, "lengths[{}]".format) for n in node.params["lengths"]]
        )
        calls = [branch.direct(axes, node.line) for branch in parts]
        if len(calls) == 1:
            return calls[0]

        def chosen(operands: Sequence[Any], lengths: dict[int, int]) -> Sequence[Any]:
            which = min(max(operands[0].item(), 0), len(calls) - 1)
            return calls[which](operands, lengths)

        return chosen

    def native(self, call: Any) -> None:
        """A call of the function of the part that is chosen."""
        call.branches(call.node.params["parts"])


@SubgraphPrimitive.declare(outputs=True, materializes=False)
def subgraph(*inputs, parts, lengths=()):
    """The results of one of ``parts``, the first operand says which: Note [Subgraphs].

    ``lengths`` are those of the axes that the parts read and no operand has.
    """
    which = min(max(int(inputs[0]), 0), len(parts) - 1) if parts[0].axis is None else 0
    return tuple(parts[which].run(inputs, _by_axis(parts, lengths)))


def _axes(parts: Parts) -> list[int]:
    return sorted(set().union(*(branch.axes for branch in parts)))


def _by_axis(parts: Parts, lengths: Sequence[Any]) -> dict[int, Any]:
    return dict(zip(_axes(parts), lengths, strict=True))


def call(parts: Parts, operands: Sequence[Any], known: dict[int, Any] | None = None) -> Any:
    """A call of parts; ``known`` are lengths of axes that are not symbols."""
    sizes, known = parts[0].graph.sizes, known or {}
    lengths = tuple([known.get(k, sizes.of_axis(k)) for k in _axes(parts)])
    return bind(subgraph, tuple(operands), {"parts": parts, "lengths": lengths})


def with_length(function: Callable[[Any], list[Any]], number: Any) -> list[Any]:
    """The results of ``function``, given a length that is found while the compiled function runs.

    Where examples of a batch have other lengths, it gets the largest of them.
    """
    axes: list[int] = []

    def of_length(_: Sequence[Tensor]) -> list[Any]:
        sizes = state.ground.tracer.sizes
        length = sizes.axis(EXPECTED)
        axes[:] = [sizes.axes([length]).pop()]
        return function(length)

    traced = trace_body(of_length, [Meta((), np.dtype(np.int64))])
    return list(call((Subgraph(traced.graph, axes[0]),), (number, *traced.outside)))


def _derived(
    parts: Parts,
    key: Any,
    make: Callable[[Subgraph], tuple[Step, list[Meta]]],
    state_count: int = 0,
) -> tuple[Parts, list[Any]]:
    """Parts made from each part, and what these read besides."""

    def made(branch: Subgraph) -> tuple[Subgraph, list[Any]]:
        graph, besides = branch.trace(*make(branch))
        return Subgraph(graph, branch.axis, state_count), besides

    return joined([branch.derived(key, lambda branch=branch: made(branch)) for branch in parts])


def joined(derived: Sequence[tuple[Subgraph, list[Any]]]) -> tuple[Parts, list[Any]]:
    """Parts that read the same operands, and what any of them reads besides."""
    count = len(derived[0][0].graph.inputs) - len(derived[0][1])
    besides: dict[int, Any] = {}
    own: list[dict[int, Value]] = []
    for branch, outside in derived:
        besides.update((id(x), x) for x in outside)
        read = branch.graph.inputs[count:]
        own.append({id(x): v for x, v in zip(outside, read, strict=True)})
    if not besides:
        return tuple([branch for branch, _ in derived]), []
    all_of = {key: value for values in own for key, value in values.items()}
    parts = tuple([
        branch.with_inputs(
            [*branch.graph.inputs[:count], *({**all_of, **values}[k] for k in besides)]
        )
        for (branch, _), values in zip(derived, own, strict=True)
    ])  # fmt: skip
    return parts, list(besides.values())


def _with_states(out: list[Any], count: int, operands: Sequence[BatchOperand], size: int) -> Any:
    """Results of which the last are states of generators, batched if they were."""
    for k in range(len(out) - count, len(out)):
        if not operands[1].batched:
            out[k] = BatchOperand(tracer.one_of_all(BatchOperand(out[k], True), size), False)
    return tuple(out)


def _batch(parts: Parts, batched: tuple[bool, ...], size: int) -> tuple[Parts, list[Any]]:
    """Parts for a batch, whose results are batches."""

    def make(branch: Subgraph) -> tuple[Step, list[Meta]]:
        step: Step = lambda inputs: branch.batch(inputs, batched, size)[0]  # noqa: E731
        return step, branch.batch_metas(batched, size)

    return _derived(parts, ("batch", size, batched), make, parts[0].state_count)


def _of_each(
    parts: Parts, operands: Sequence[BatchOperand], known: dict[int, Any], size: int
) -> Any:
    """Results of the part that each example chooses: ``(B n, [B a or a]) -> [B y]``.

    Note [Examples that part ways] in ``carried``. A part that no example chooses does not
    run.
    """
    which = OPS["clip"](operands[0].value, 0, len(parts) - 1)
    batched = (False, *(o.batched for o in operands[1:]))
    results: list[Any] = []
    states = parts[0].state_count
    for k, branch in enumerate(parts):
        on = OPS["equal"](which, k)
        first = OPS["argmax"](on)
        point = []
        for number, operand in enumerate(operands[1:]):
            x = operand.value
            if k and number < states:  # those that the part before has left
                x = results[len(results) - states + number]
                x = x if operand.batched else tracer.one_of_all(BatchOperand(x, True), size)
            point.append(select(on, x, OPS["take"](x, first, axis=0)) if operand.batched else x)
        made, besides = _batch((branch,), batched, size)
        any_on = OPS["astype"](OPS["any"](on), np.int64)
        out = list(call((_nothing(made[0]), made[0]), (any_on, *point, *besides), known))
        count = len(out) - states
        if k:
            pairs = zip(out[:count], results, strict=False)
            out = [*(select(on, a, b) for a, b in pairs), *out[count:]]
        results = out
    return _with_states(results, states, operands, size)


def select(on: Any, a: Any, b: Any) -> Any:
    """``(B, B a, B a) -> B a``: ``a`` for those examples that are ``on``, else ``b``."""
    return OPS["where"](OPS["reshape"](on, (*on.shape, *(1,) * (a.ndim - 1))), a, b)


def _nothing(branch: Subgraph) -> Subgraph:
    """Zeros in place of what a part computes; states of generators as they were."""

    def make() -> tuple[Subgraph, list[Any]]:
        results, states = branch.results, branch.state_count

        def step(inputs: Sequence[Tensor]) -> list[Any]:
            made = [Tensor(zeros(m.shape, m.dtype)) for m in results[: len(results) - states]]
            pairs = zip(inputs[1 : 1 + states], results[len(results) - states :], strict=True)
            return [*made, *(OPS["broadcast_to"](x, m.shape) for x, m in pairs)]

        graph, besides = branch.trace(step, branch.metas)
        return Subgraph(graph, state_count=states), besides

    return branch.derived("nothing", make)[0]


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
    states = tracer.generator_states(sources)
    whole, besides = joined([(p, b.outside) for p, b in zip(parts, bodies, strict=True)])
    results = call(whole, (which, *states, *numbers, *besides)) if places or sources else ()
    tracer.put_generator_states(sources, results[len(results) - len(sources) :])
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
    pairs = {id(s): pair for s, *pair in zip(body.sources, rest[:own], last, strict=True)}
    for source, meta in zip(sources, tracer.state_metas(sources), strict=True):
        if id(source) not in pairs:
            value = graph.input(meta.shape, meta.dtype)
            pairs[id(source)] = [value, value]
    first, last = zip(*(pairs[id(source)] for source in sources), strict=True)
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
