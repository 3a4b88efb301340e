"""The walk of a backward that is itself computed with operations on Tensors.

So it is with ``create_graph``, when the gradients carry a graph, and under an interpreter (forward
mode, a batch of cotangents), which gives the operations another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from numgrad.autograd.anomaly import explain, fail_on_nan
from numgrad.autograd.engine.arrival import HookedLeaves, after_node, at_outputs, before_node
from numgrad.autograd.engine.task import Task, place_of
from numgrad.autograd.hooks import LeafHooks
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.core.interpreter import state
from numgrad.core.op import OPS


def walk_recorded(
    roots: Sequence[Any],
    grads: Sequence[Tensor],
    retain: bool,
    task: Task | None = None,
    accumulating: bool = True,
    recording: bool = True,
) -> tuple[list[Any], list[list]]:
    """Gradients of the targets of ``task`` and what arrived at each leaf, as in ``walk``."""
    task = task or Task(roots, None)
    nodes: dict[int, Node] = {}
    pending: dict[int, list[Any]] = {}
    leaves: dict[int, list] = {}
    heap: list[int] = []
    captured: dict[tuple[int, int], Any] = {}

    def deliver(edge: Any, g: Any) -> None:
        if state.ground.is_zero(g._array):
            return
        if isinstance(edge, Tensor):
            waiting = leaves.setdefault(id(edge), [edge, None, False])
            waiting[1] = g if waiting[1] is None else waiting[1] + g
            return
        node, number = edge if type(edge) is tuple else (edge, 0)
        key = -node.sequence
        if key not in nodes:
            nodes[key] = node
            pending[key] = [None] * node.call.nout
            heappush(heap, key)
        parts = pending[key]
        parts[number] = g if parts[number] is None else parts[number] + g

    before = state.set(grad_enabled=recording)
    node: Any = None
    try:
        for edge, g in zip(roots, grads, strict=True):
            deliver(edge, g)
        hooked = HookedLeaves(task, leaves, accumulating, recording) if LeafHooks.live else None
        if hooked is not None:
            hooked.arrived(roots)
        while heap:
            key = heappop(heap)
            node, parts = nodes.pop(key), pending.pop(key)
            extras = node.extras
            run = task.needed is None or node.sequence in task.needed
            places = [(node.sequence, k) for k in range(node.call.nout)]
            if not run and not any(place in task.wanted for place in places):
                continue
            if extras is not None:
                parts = at_outputs(extras, parts, recording, task)
            captured.update(
                {place: g for place, g in zip(places, parts, strict=True) if place in task.wanted}
            )
            if not run:
                continue
            if extras is not None:
                parts = before_node(extras, parts, recording, task)
            found = node.gradients(parts)
            if node.saved and not retain:
                node.saved = None
            if extras is not None:
                found = after_node(extras, found, parts, recording, task)
            if state.anomaly:
                fail_on_nan(node, found)
            for edge, g in zip(node.edges, found, strict=True):
                if edge is not None and g is not None:
                    deliver(edge, g)
            if hooked is not None:
                hooked.arrived(node.edges)
        if hooked is not None:
            hooked.finish()
    except Exception as error:
        explain(node, error)
        raise
    finally:
        state.set(**before)
    found = []
    for edge in task.targets or ():
        waiting = leaves.get(id(edge)) if isinstance(edge, Tensor) else None
        found.append(waiting[1] if waiting else captured.get(place_of(edge)))
    return _apart(found, recording), list(leaves.values())


def _apart(found: list[Any], recording: bool) -> list[Any]:
    """Gradients that share no memory, those of a compiled function not with what came in either."""
    apart = state.ground.deferred and not recording
    seen: set[int] = set()
    before = state.set(grad_enabled=recording)
    try:
        for k, g in enumerate(found):
            if type(g) is Tensor and apart:
                found[k] = Tensor(state.ground.lift(g).copy())
            elif type(g) is Tensor and id(g) in seen:
                found[k] = OPS["copy"](g)
            seen.add(id(g))
    finally:
        state.set(**before)
    return found
