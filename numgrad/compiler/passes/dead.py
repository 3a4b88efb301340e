"""Leave out what is never read.

Loops compute what is read of them: carries, collected arrays and operands that are not, go. So do
results and operands of branches.
"""

from __future__ import annotations

from typing import Any

from numgrad.compiler.graph.graph import INPUT, BodyOperation, Graph, TracedNode, Value


def drop_dead(graph: Graph) -> int:
    """Remove nodes that no result depends on; calls stay, they may have effects."""
    needed = set(graph.roots())
    nodes = []
    for node in reversed(graph.nodes):
        stays = node.op == INPUT or node.must_run
        if stays or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    dropped = len(graph.nodes) - len(nodes)
    graph.nodes = nodes[::-1]
    return dropped


def trim_loops(graph: Graph) -> int:
    """Leave out of loops what nothing depends on; collect equal values once."""
    trimming = [n for n in graph.nodes if isinstance(n.op, BodyOperation) and n.op.rules.trims]
    if not trimming:
        return 0
    loops = [node for node in trimming if "body" in node.params]
    _join_equal(graph, loops)
    read = {v for node in graph.nodes for v in node.inputs} | set(graph.roots())
    changed = sum(_trim_branches(n, read) for n in trimming if "parts" in n.params)
    for node in loops:
        before = node.params["body"]
        results = node.outputs[: len(before.graph.outputs)]
        trimmed = before.trimmed([v in read for v in results])
        if trimmed is None:
            continue
        body, inputs, outputs = trimmed
        node.inputs = tuple([node.inputs[k] for k in inputs])
        rest = node.outputs[len(before.graph.outputs) :]
        node.outputs = (*(node.outputs[k] for k in outputs), *rest)
        for number, value in enumerate(node.outputs):
            value.number = number
        known = dict(zip(before.axes, node.params["lengths"], strict=True))
        node.params = {**node.params, "body": body, "lengths": body.lengths(known)}
        changed += 1
    bodies: dict[tuple, Any] = {}
    for node in loops:  # equal steps are compiled once
        body = node.params["body"]
        node.params = {**node.params, "body": bodies.setdefault(body.structure_key, body)}
    return changed


def _trim_branches(node: TracedNode, read: set[Value]) -> bool:
    """Leave out results of branches that nothing reads, and what none of them reads then."""
    parts = node.params["parts"]
    first = len(node.outputs) - parts[0].state_count
    outputs = [k for k, v in enumerate(node.outputs) if v in read or k >= first]
    if not outputs or len(outputs) == len(node.outputs):
        return False
    cut = [part.with_results(outputs) for part in parts]
    inputs = sorted({k for part in cut for k in part.operands_read()})
    cut = [part.with_inputs([part.graph.inputs[k] for k in inputs]) for part in cut]
    axes = [sorted({a for part in each for a in part.axes}) for each in (parts, cut)]
    known = dict(zip(axes[0], node.params["lengths"], strict=True))
    lengths = tuple([known[a] for a in axes[1]])
    node.inputs = tuple([node.inputs[k] for k in inputs])
    node.outputs = tuple([node.outputs[k] for k in outputs])
    for number, value in enumerate(node.outputs):
        value.number = number
    node.params = {**node.params, "parts": tuple(cut), "lengths": lengths}
    return True


def _join_equal(graph: Graph, loops: list[TracedNode]) -> None:
    same: dict[Value, Value] = {}
    for node in loops:
        body = node.params["body"]
        known: dict[Value, Value] = {}
        for k, value in enumerate(body.graph.outputs):
            if k >= body.carries:
                same[node.outputs[k]] = known.setdefault(value, node.outputs[k])
    graph.replace(lambda v: same.get(v, v))
