"""Graphs within a graph: steps of loops and their carries, branches, bodies derived from these.

Note [Derived bodies]
---------------------
Derivatives of a body, and that body for a batch, are bodies traced from its graph, in the lengths
of that graph. So they are differentiated and batched in the same way again, and one that reads
nothing else is made once, whoever asks. Whatever else is read comes as operands besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import (
    CONSTANT,
    INPUT,
    SIZE,
    Graph,
    Value,
    has_derivatives,
    length_arrays,
    lengths_read,
    results_of,
    with_lengths,
)
from numgrad.compiler.graph.keys import graph_key
from numgrad.compiler.loops.saved_values import MOST_SAVED, offered_values
from numgrad.compiler.messages import name_line
from numgrad.compiler.passes import optimize
from numgrad.compiler.run.program import Options, compile_graph
from numgrad.compiler.run.specialise import replay
from numgrad.compiler.run.steps import Run
from numgrad.compiler.trace import tracer
from numgrad.compiler.trace.body import TracedBody, trace_body
from numgrad.compiler.trace.cut import ancestors, extract
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.draws import Draw, Draws
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradError, generated

T = TypeVar("T")


def dense(g: Any, like: Any) -> Any:
    """A derivative, zeros where there is none."""
    return Tensor(zeros(like.shape, like.dtype)) if g is None else g


def is_zero(g: Any) -> bool:
    """Whether a cotangent is known to be zero."""
    return g is None or state.ground.is_zero(g._array if isinstance(g, Tensor) else g)


def nonzero(derivatives: Sequence[Any], metas: Sequence[Any]) -> list[int]:
    """The numbers of those values whose derivatives may be other than zero."""
    pairs = zip(derivatives, metas, strict=True)
    return [k for k, (t, m) in enumerate(pairs) if has_derivatives(m) and not is_zero(t)]


class Body:
    """A graph within a graph, and what its derivatives are made of.

    Attributes
    ----------
    graph
        Takes the operands of the operation, or elements of them.
    compiled
        The program that runs it; None before the first call.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._derived: dict[Any, Any] = {}
        self.compiled: Any = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.graph.nodes)} nodes>"

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The results, by operations on Tensors."""
        return list(replay(self.graph, inputs))

    @cached_property
    def metas(self) -> list[Meta]:
        """Shapes and dtypes of the inputs."""
        return [Meta(v.shape, v.dtype) for v in self.graph.inputs]

    @cached_property
    def results(self) -> list[Meta]:
        """Shapes and dtypes of the results."""
        return [Meta(v.shape, v.dtype) for v in self.graph.outputs]

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The axes whose lengths it reads, and no operand has."""
        return tuple(sorted(lengths_read(self.graph)))

    @cached_property
    def states(self) -> frozenset[int]:
        """Numbers of the operands that are states of generators, from which it draws."""
        read = states_read(self.graph)
        return frozenset(k for k, v in enumerate(self.graph.inputs) if v in read)

    def lengths(self, by_axis: dict[int, Any] | None = None) -> tuple[Any, ...]:
        """The lengths of ``axes``, those that are known and symbols of the others."""
        by_axis = by_axis or {}
        return tuple([by_axis.get(k, self.graph.sizes.of_axis(k)) for k in self.axes])

    def by_axis(self, lengths: Sequence[Any]) -> dict[int, Any]:
        """The lengths of ``axes`` by axis."""
        return dict(zip(self.axes, lengths, strict=True))

    def results_for(self, operands: Sequence[Any], lengths: Sequence[Any]) -> list[Meta]:
        """Shapes and dtypes of the results for operands of these shapes."""
        shapes = results_of(self.graph, [m.shape for m in operands], self.by_axis(lengths))
        return [Meta(s, v.dtype) for s, v in zip(shapes, self.graph.outputs, strict=True)]

    def program(self, make: Callable[[Self], Any]) -> Any:
        """The program that runs it, made once."""
        if self.compiled is None:
            self.compiled = make(self)
        return self.compiled

    # ------------------------------------------------------------------- Note [Derived bodies]

    def derived(self, key: Any, make: Callable[[], tuple[T, list[Any]]]) -> tuple[T, list[Any]]:
        """A body made from this one and what it reads besides; once if that is nothing."""
        pair = self._derived.get(key)
        if pair is None:
            pair = make()
            if not pair[1]:
                self._derived[key] = pair
        return pair

    def trace(
        self, step: Callable[[Sequence[Tensor]], list[Any]], metas: Sequence[Meta]
    ) -> tuple[Graph, list[Any]]:
        """The graph of a step made from this body, and what it reads besides."""
        traced = trace_body(step, metas, sizes=self.graph.sizes)
        return traced.graph, traced.outside

    def vjp(
        self,
        point: Sequence[Any],
        variables: Sequence[int],
        outputs: Sequence[int],
        cotangents: Sequence[Any],
        besides: Sequence[int] = (),
    ) -> list[Any]:
        """Gradients of the operands ``variables``, given cotangents of the results ``outputs``.

        ``(a[n], cotangent[m]) -> gradient[len(variables)]``, zeros where nothing leads there; then
        the results ``besides``.
        """
        operands = list(point)
        for k in variables:
            operands[k] = Tensor(operands[k]._array, True)
        with enable_grad():
            out = self(operands)
        pairs = [
            (out[k], g)
            for k, g in zip(outputs, cotangents, strict=True)
            if isinstance(out[k], Tensor) and out[k].requires_grad
        ]
        leaves = [operands[k] for k in variables]
        grads: Sequence[Any] = [None] * len(leaves)
        if pairs and leaves:
            roots, weights = zip(*pairs, strict=True)
            grads = dense_grad(roots, leaves, weights, allow_unused=True)
        gradients = [dense(g, self.metas[k]) for g, k in zip(grads, variables, strict=True)]
        return gradients + [Tensor(out[k]._array) for k in besides]

    def jvp(
        self, point: Sequence[Any], moving: Sequence[int], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Results, and their tangents, given tangents of the operands ``moving``.

        ``(a[n], tangent[len(moving)]) -> (y[m], tangent[m])``, zeros where nothing leads there;
        None of what has no derivatives.
        """
        with dual_level():
            duals = list(point)
            for k, t in zip(moving, tangents, strict=True):
                duals[k] = make_dual(point[k], t)
            out = [unpack_dual(x) if isinstance(x, Tensor) else (x, None) for x in self(duals)]
        along = [
            dense(t, m) if has_derivatives(m) else None
            for (_, t), m in zip(out, self.results, strict=True)
        ]
        return [x for x, _ in out], along

    def batch_metas(self, batched: Sequence[bool], size: int) -> list[Meta]:
        """Shapes and dtypes of the inputs for a batch."""
        pairs = zip(self.metas, batched, strict=True)
        return [Meta((size, *m.shape), m.dtype) if b else m for m, b in pairs]

    def batch(
        self, operands: Sequence[Any], batched: Sequence[bool], size: int, own: bool = False
    ) -> tuple[list[Any], list[BatchOperand]]:
        """Results for all examples, and these as they came out, batched or not.

        ``(B.a or a)[n] -> (B.y)[m], (B.y or y)[m]``. ``own`` says whether each example draws random
        numbers of its own: Note [Generators that are carried] in ``tracer``.
        """
        with BatchingInterpreter(size, examples=True) as level:
            inner = [level.wrap(v) if b else v for v, b in zip(operands, batched, strict=True)]
            if own:
                for k in self.states:
                    inner[k] = level.wrap(level.unwrap(operands[k]))
            out = self(inner)
            whole = [level.unwrap(v) for v in out]
            flags = [level.owns(v) for v in out]
            values = [v.value if b else v for v, b in zip(out, flags, strict=True)]
        return whole, [BatchOperand(v, b) for v, b in zip(values, flags, strict=True)]


class LoopBody(Body):
    """The step of a loop.

    Attributes
    ----------
    graph
        Takes the carry, elements of the arrays that are gone through, and what all steps read;
        returns the new carry, then what is collected.
    carries, xs
        How many arrays the first two are.
    keeps
        Whether the carry before each step is collected, last of all.
    until
        Which part of the carry says whether there is another step; None if their number is known.
    transposed
        Whether it is the step of a gradient.
    chains
        Of the values that it offers to gradients, collected right before the carries before each
        step: Note [Values saved of steps] in ``saved_values``.
    offers
        How many these are.
    """

    transposed = False
    chains: Sequence[Sequence[int]] = ()
    offers = 0

    def __init__(
        self, graph: Graph, carries: int, xs: int, keeps: bool = True, until: int | None = None
    ) -> None:
        super().__init__(graph)
        self.carries, self.xs, self.keeps, self.until = carries, xs, keeps, until

    def with_offers(self, most: float = MOST_SAVED) -> LoopBody:
        """The same, which collects what gradients may take from memory, so much more than it is."""
        graph, end = self.graph, len(self.graph.outputs) - self.carries
        chains = offered_values(graph, self.carries, self.carries + self.xs, most)
        number = {v: k for k, v in enumerate(dict.fromkeys(v for chain in chains for v in chain))}
        if not number:
            return self
        outputs = [*graph.outputs[:end], *number, *graph.outputs[end:]]
        body = LoopBody(extract(graph, graph.inputs, outputs), self.carries, self.xs)
        body.chains, body.offers = [[number[v] for v in chain] for chain in chains], len(number)
        return body

    def results_for(self, operands: Sequence[Any], lengths: Sequence[Any]) -> list[Meta]:
        """Shapes and dtypes of the results of a step, for operands of the loop."""
        carry, xs, outside = self.parts(operands)
        elements = [Meta(m.shape[1:], m.dtype) for m in xs]
        return super().results_for([*carry, *elements, *outside], lengths)

    def parts(self, operands: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Operands that are the carry, those gone through, and those that all steps read."""
        c, x = self.carries, self.carries + self.xs
        return operands[:c], operands[c:x], operands[x:]

    def keeping(self) -> tuple[LoopBody, list[Any]]:
        """The same with the carry before each step collected, last of all."""
        graph = self.graph
        before = graph.inputs[: self.carries]
        whole = extract(graph, graph.inputs, [*graph.outputs, *before])
        return LoopBody(whole, self.carries, self.xs).with_offers(), []

    def trimmed(self, used: Sequence[bool]) -> tuple[LoopBody, list[int], list[int]] | None:
        """The body for results that are used, and which inputs and results these are."""
        graph, c = self.graph, self.carries
        number = {v: k for k, v in enumerate(graph.inputs)}
        needs = [{number[v] for v in ancestors([out]) if v in number} for out in graph.outputs]
        live = {k for k, flag in enumerate(used) if flag or k == self.until}
        while True:
            read = {k for out in live for k in needs[out]}
            more = live | {k for k in read if k < c}
            if more == live:
                break
            live = more
        outputs = sorted(live)
        inputs = sorted(read | {k for k in live if k < c})
        if len(outputs) == len(used) and len(inputs) == len(graph.inputs):
            return None
        if len(outputs) == len(used) and any(k not in inputs for k in range(c)):
            return None
        extracted = extract(
            graph, [graph.inputs[k] for k in inputs], [graph.outputs[k] for k in outputs]
        )
        carries = sum(k < c for k in inputs)
        xs = sum(c <= k < c + self.xs for k in inputs)
        keeps = self.keeps and outputs[-carries or len(outputs) :] == [
            len(used) - c + k for k in inputs[:carries]
        ]
        until = None if self.until is None else inputs.index(self.until)
        return LoopBody(extracted, carries, xs, keeps, until), inputs, outputs

    @cached_property
    def structure_key(self) -> tuple:
        """A key that is the same for equal bodies."""
        return (*graph_key(self.graph), self.carries, self.xs, self.keeps, self.until)

    @cached_property
    def states_made(self) -> frozenset[int]:
        """Numbers of the results that are states: carries, and their values before each step."""
        number = {v: k for k, v in enumerate(self.graph.inputs)}
        saved = {k for k, v in enumerate(self.graph.outputs) if number.get(v) in self.states}
        return self.states.intersection(range(self.carries)) | saved

    def batch_step(
        self, operands: Sequence[Any], batched: Sequence[bool], own: bool, size: int
    ) -> list[Any]:
        """A step for all examples, of inputs of which some have an axis of examples."""
        whole, each = self.batch(operands, batched, size, own)
        return [
            tracer.one_of_all(each[k], size) if k in self.states_made else x
            for k, x in enumerate(whole)
        ]


class Subgraph(Body):
    """A branch, or a graph whose length is found while it runs.

    Attributes
    ----------
    graph
        Takes what the operation takes: the number that decides, then operands.
    axis
        The axis whose length that number is, for one that is computed in any case.
    state_count
        How many states of generators it takes after the number, and returns last of all.
    """

    def __init__(self, graph: Graph, axis: int | None = None, state_count: int = 0) -> None:
        super().__init__(graph)
        self.axis, self.state_count = axis, state_count

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The axes whose lengths it reads, and neither an operand has nor the number is."""
        return tuple(sorted(lengths_read(self.graph) - {self.axis}))

    def with_inputs(self, inputs: Sequence[Value]) -> Subgraph:
        """The same for other inputs, which hold its own."""
        extracted = extract(self.graph, inputs, self.graph.outputs)
        return Subgraph(extracted, self.axis, self.state_count)

    def with_results(self, outputs: Sequence[int]) -> Subgraph:
        """The same with some of its results."""
        graph = self.graph
        extracted = extract(graph, graph.inputs, [graph.outputs[k] for k in outputs])
        return Subgraph(extracted, self.axis, self.state_count)

    def operands_read(self) -> set[int]:
        """The operands that it reads, with the number and states of generators."""
        read = {v for node in self.graph.nodes for v in node.inputs}.union(self.graph.outputs)
        needs = {k for k, v in enumerate(self.graph.inputs) if v in read}
        return needs.union(range(1 + self.state_count))

    @cached_property
    def optimized(self) -> Graph:
        """The same graph, after the passes."""
        extracted = extract(self.graph, self.graph.inputs, self.graph.outputs)
        optimize(extracted)
        return extracted

    @cached_property
    def _bound(self) -> list[int]:
        """The axes of the lengths that it is given; one found while running comes last."""
        return [*self.axes, *([] if self.axis is None else [self.axis])]

    @property
    def step(self) -> Any:
        """The program."""
        return self.program(Subgraph._compiled)

    def _compiled(self) -> Any:
        """The program; arrays of no content after the operands have the lengths that these lack."""
        extracted = extract(self.graph, self.graph.inputs, self.graph.outputs)
        return compile_graph(with_lengths(extracted, self._bound), Options(flat=True))

    def run(self, operands: Sequence[np.ndarray], lengths: dict[int, int]) -> list[np.ndarray]:
        """The results for ndarrays."""
        arrays: list[Any] = [
            a.item() if v.weak else np.asarray(a, order="C")
            for v, a in zip(self.graph.inputs, operands, strict=True)
        ]
        if self.axis is not None:
            lengths = {**lengths, self.axis: int(operands[0])}
        arrays += length_arrays(self._bound, lengths)
        out = self.step.run(*arrays)
        return [
            x if v.shape else x.reshape(()) for x, v in zip(out, self.graph.outputs, strict=True)
        ]

    def direct(self, axes: dict[int, str], line: str | None) -> Run:
        """A call of the program where numbers are arrays of one element.

        ``axes`` are texts of the lengths of ``axes``, ``line`` is where errors are said to be.
        """
        operands = [f"o{k}" for k in range(len(self.graph.inputs))]
        given = [
            f"o{k}.item()" if v.weak else f"o{k}" if v.shape else f"o{k}[0]"
            for k, v in enumerate(self.graph.inputs)
        ]
        if self.axis is not None:
            axes = {**axes, self.axis: "o0.item()"}
        given += [f"empty({axes[k]}, bool)" for k in self._bound]
        source = (
            f"def part(operands, lengths):\n    ({', '.join(operands)},) = operands\n"
            f"    try:\n        return run({', '.join(given)})\n"
            "    except NumgradError as error:\n        name_line(error, line)\n        raise\n"
        )
        names: dict[str, Any] = {"empty": np.empty, "line": line}
        names |= {"NumgradError": NumgradError, "name_line": name_line}

        def first(*arrays: Any) -> Any:
            names["run"] = self.step.run
            return names["run"](*arrays)

        names["run"] = first
        exec(compile(source, generated("call of a branch"), "exec"), names)
        return names["part"]


def states_read(graph: Graph) -> set[Value]:
    """The values of a graph that are states of generators, from which something draws."""
    states: set[Value] = set()
    for node in graph.nodes:
        if node.op is tracer.draw_from:
            states.update(node.inputs[: len(node.params["draws"].sources)])
        for body in (node.params.get("body"), *node.params.get("parts", ())):
            if isinstance(body, Body):
                states.update(node.inputs[k] for k in body.states)
    return states


def carrying(body: TracedBody, carries: int, xs: int) -> TracedBody:
    """A body of ``scan`` with states of generators among its carries."""
    graph, first = body.graph, carries + xs
    count = len(body.sources)
    states = graph.inputs[first : first + count]
    groups = graph.inputs[:carries], states, graph.inputs[carries:first]
    inputs = [*(v for group in groups for v in group), *graph.inputs[first + count :]]
    results = graph.outputs[: len(graph.outputs) - count]
    outputs = [*results[:carries], *graph.outputs[len(results) :], *results[carries:], *states]
    return replace(body, graph=extract(graph, inputs, outputs))


def draws_before(body: TracedBody) -> list[Draw | Draws]:
    """The draws of a body in terms of what is around it: Note [Draws of a body] in ``draws``."""

    def computed(x: Any, dtype: np.dtype) -> Any:
        return tracer.parameter(replay(x, body.outside)[0] if isinstance(x, Graph) else x, dtype)

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

    def same(inputs: Sequence[Tensor]) -> list[Any]:
        new = step(inputs)
        converted = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=False)]
        return [*converted, *new[len(dtypes) :]]

    return carry, trace_body(same, metas, **options)


def without_invariants(
    graph: Graph, varying: int, outside: Sequence[Any], ran: Any = None
) -> tuple[Graph, list[Any]]:
    """A body without what is the same in all steps, and what it reads from outside instead.

    ``ran`` says whether there are any steps, if that is not known before: what is computed for none
    of them may have no value there, and a NaN that nobody takes would still be one in the gradient.
    """
    read = graph.inputs[varying:]
    invariant, free = set(read), set()
    for node in graph.nodes:
        if node.op in (CONSTANT, SIZE) or (node.inputs and free.issuperset(node.inputs)):
            free.update(node.outputs)
        elif node.op != INPUT and invariant.union(free).issuperset(node.inputs):
            invariant.update(node.outputs)
    computed = invariant.difference(read)
    users = [v for node in graph.nodes if computed.isdisjoint(node.outputs) for v in node.inputs]
    needed = list(dict.fromkeys(v for v in (*users, *graph.outputs) if v in computed))
    if not needed:
        return graph, list(outside)
    inputs = outside if ran is None else [_differentiable_if(ran, x) for x in outside]
    values = replay(extract(graph, read, needed), inputs)
    extracted = extract(graph, [*graph.inputs, *needed], graph.outputs)
    used = {v for node in extracted.nodes for v in node.inputs} | set(extracted.outputs)
    operands = list(zip(extracted.inputs[varying:], [*outside, *values], strict=True))
    read = [v for v, _ in operands if v in used]
    return (
        extract(extracted, [*extracted.inputs[:varying], *read], extracted.outputs),
        [x for v, x in operands if v in used],
    )


def _differentiable_if(ran: Any, x: Any) -> Any:
    """``x``, which requires grad only where ``ran``."""
    if not isinstance(x, Tensor) or x.dtype.kind not in "fc":
        return x
    return OPS["where"](ran, x, x.detach())
