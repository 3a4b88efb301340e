"""A graph and its gradients cut in two: what runs forward, and what runs when gradients arrive.

Note [The cut]
--------------
The gradients of a function need values that were computed forward. Keeping all of them, as the
eager tape does, costs memory traffic that fused loops are made to avoid; recomputing all costs the
forward again. So what is dear (reductions, products, whatever runs over more than one element for
one of its own) is kept, and chains of element-by-element operations and views, which the backward
fuses into its own loops, are computed again from what is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from numgrad.compiler.graph.graph import CALL, CONSTANT, INPUT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.graph.kernel_sweeps import hand_over_states
from numgrad.compiler.graph.sizes import Size, lengths_in
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import Op
from numgrad.core.primitive import View
from numgrad.dataclass import dataclass


@dataclass
class Cut:
    """Two halves of a graph.

    Attributes
    ----------
    forward
        Computes the outputs, then ``kept`` values, and makes the writes.
    kept
        How many values are kept.
    backward
        Computes the gradients.
    needs
        For each input of ``backward`` where it comes from: ``("input", k)``, ``("kept", k)`` or
        ``("cotangent", k)``.
    whole
        Computes the gradients from the inputs, except for what operations note besides their
        results (``needs_whole`` as ``needs``): to be differentiated again.
    """

    forward: Graph
    kept: int
    backward: Graph
    needs: list[tuple[str, int]]
    whole: Graph
    needs_whole: list[tuple[str, int]]


def cut(graph: Graph, inputs: Sequence[Value], gs: Sequence[Value], grads: Sequence[Value]) -> Cut:
    """Cut a graph that computes ``graph.outputs`` from ``inputs`` and ``grads`` from ``gs`` too."""
    saved, notes = _saved(graph, gs, grads)
    without = {v: ("input", k) for k, v in enumerate(inputs)}
    without |= {v: ("cotangent", k) for k, v in enumerate(gs)} | dict.fromkeys(notes)
    used_whole = _used(graph, without, grads)
    whole = extract(graph, used_whole, grads)
    if hand_over_states(graph, [*graph.roots(), *grads], asked=False):
        saved, _ = _saved(graph, gs, grads)
    known = set(saved)
    saved += [value for value in notes if value not in known]
    origins = {v: ("input", k) for k, v in enumerate(inputs)}
    origins |= {v: ("cotangent", k) for k, v in enumerate(gs)}
    origins |= {v: ("kept", k) for k, v in enumerate(saved)}
    forward = extract(
        graph, list(inputs), [*graph.outputs, *saved], graph.writes,
        must_run_besides=_dependents(graph, gs),
    )  # fmt: skip
    forward.kept = len(saved)
    used = _used(graph, origins, grads)
    backward = extract(graph, used, grads)
    return Cut(
        forward, len(saved), backward, [origins[v] for v in used], whole,
        [origins[v] for v in used_whole],
    )  # fmt: skip


def _saved(
    graph: Graph, gs: Sequence[Value], grads: Sequence[Value]
) -> tuple[list[Value], dict[Value, None]]:
    """Values saved for the backward, and of these the auxiliaries, which formulas take as given."""
    backward_nodes = _dependents(graph, gs)
    variable_nodes = _dependents(graph, graph.inputs)
    saved: list[Value] = []
    notes: dict[Value, None] = {}

    def visit(value: Value, visited: set[Value]) -> None:
        stack = [value]
        while stack:
            value = stack.pop()
            if value in visited or value.node.op == INPUT:
                continue
            visited.add(value)
            node = value.node
            if node not in backward_nodes:
                if _is_note(value):
                    notes[value] = None
                if node in variable_nodes and not _is_cheap(node):
                    saved.append(value)
                    continue
            stack.extend(node.inputs)

    visited: set[Value] = set()
    for value in grads:
        visit(value, visited)
    # the whole: an auxiliary may be needed by what is recomputed there only
    notes.update(dict.fromkeys(value for value in ancestors(saved) if _is_note(value)))
    return saved, notes


def _dependents(graph: Graph, values: Sequence[Value]) -> set[TracedNode]:
    """Nodes that depend on any of ``values``; calls depend on the world."""
    reached = set(values)
    members: set[TracedNode] = set()
    for node in graph.nodes:
        if (node.op == CALL and values is graph.inputs) or not reached.isdisjoint(node.inputs):
            members.add(node)
            reached.update(node.outputs)
    return members


def ancestors(values: Sequence[Value]) -> Iterator[Value]:
    """All values that these are computed from, and they themselves."""
    visited: set[Value] = set()
    for value in values:
        stack = [] if value in visited else [value]
        visited.add(value)
        while stack:
            item = stack.pop()
            yield item
            for operand in item.node.inputs:
                if operand not in visited:
                    visited.add(operand)
                    stack.append(operand)


def _is_cheap(node: TracedNode) -> bool:
    return node.op in (CONSTANT, SIZE) or isinstance(node.op, Elementwise | View)


def _is_note(value: Value) -> bool:
    """Whether a value is no result of its operation but noted besides."""
    op = value.node.op
    if not isinstance(op, Op):
        return op == CALL
    return value.number >= len(value.node.outputs) - len(op.auxiliaries)


def _used(graph: Graph, origins: dict[Value, Any], results: Sequence[Value]) -> list[Value]:
    """The values in ``places`` that ``results`` depend on, and those that have their axes."""
    used: dict[Value, None] = {}
    visited: set[Value] = set()
    stack = list(results)
    lengths: list[Any] = []
    while stack:
        value = stack.pop()
        if value in visited:
            continue
        visited.add(value)
        lengths.extend(value.shape)
        if value in origins:
            used[value] = None
            continue
        lengths.extend(lengths_in(value.node.params))
        stack.extend(value.node.inputs)
    order = [value for value in origins if value in used]
    sizes = graph.sizes
    missing = sizes.axes(n for n in lengths if isinstance(n, Size))
    missing -= {sizes.number(sizes.resolve(n)) for value in order for n in value.shape}
    for value in origins:
        here = {sizes.number(sizes.resolve(n)) for n in value.shape}
        if missing & here:
            order.append(value)
            missing -= here
    return order


def extract(
    graph: Graph,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    writes: Sequence[tuple[Value, Value]] = (),
    must_run_besides: Collection[TracedNode] | None = None,
) -> Graph:
    """The part of a graph that computes ``outputs`` from ``inputs``, as a graph of its own.

    With ``must_run_besides`` also nodes that must run, those excepted.
    """
    subgraph = Graph(graph.sizes)
    new = {v: subgraph.input(v.shape, v.dtype, weak=v.weak) for v in inputs}
    subgraph.labels = {new[v]: graph.labels[v] for v in inputs if v in graph.labels}
    needed: set[Value] = set()
    stack = [*outputs, *(value for _, value in writes)]
    active: set[TracedNode] = set()
    if must_run_besides is not None:
        active = {n for n in graph.nodes if n.must_run and n not in must_run_besides}
        stack += [value for node in active for value in node.inputs]
    while stack:
        value = stack.pop()
        if value not in needed and value not in new:
            needed.add(value)
            stack.extend(value.node.inputs)
    for node in graph.nodes:
        if node.op == INPUT or (needed.isdisjoint(node.outputs) and node not in active):
            continue
        params = node.params
        if node.op == CALL and "writes" in params:
            params = {**params, "writes": tuple([new[v] for v in params["writes"] if v in new])}
        results = [(v.shape, v.dtype) for v in node.outputs]
        made = subgraph.add(node.op, [new[v] for v in node.inputs], params, results, line=node.line)
        for old, value in zip(node.outputs, made, strict=True):
            value.weak = old.weak
            new.setdefault(old, value)
    subgraph.outputs = [new[v] for v in outputs]
    subgraph.writes = [(new[target], new[value]) for target, value in writes]
    return subgraph
