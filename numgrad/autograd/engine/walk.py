"""The walk of a plain backward: compiled kernels on ndarrays, nodes by falling sequence number.

Note [Ownership of buffers]
---------------------------
A gradient array may be written only if a backward kernel made it in this pass for exactly one edge:
``add``, ``reshape`` and views pass the same array on. ``backward`` of a call says which gradients
it owns; a buffer keeps that flag, the first sum of two aliases makes a new owned array, and what is
put into ``.grad`` without being owned is copied. A gradient that a hook has seen is not owned.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from numgrad.autograd.anomaly import explain, fail_on_nan
from numgrad.autograd.engine.accumulate import add, add_into
from numgrad.autograd.engine.arrival import (
    HookedLeaves,
    after_node,
    as_array,
    at_outputs,
    before_node,
)
from numgrad.autograd.engine.task import Task, place_of
from numgrad.autograd.hooks import LeafHooks
from numgrad.autograd.node import Node
from numgrad.autograd.row_sparse import as_tensor
from numgrad.autograd.variable import Tensor
from numgrad.core.call import CONSUMES
from numgrad.core.interpreter import state
from numgrad.core.row_sparse import RowSparseArray


def walk(
    roots: Sequence[Any],
    grads: Sequence[np.ndarray],
    retain: bool,
    task: Task | None = None,
    accumulating: bool = True,
) -> tuple[list[Any], list[list]]:
    """Gradients of the targets of ``task``, and what arrived at each leaf.

    ``roots`` are edges; ``accumulating`` says that leaves will be accumulated into, so that the
    hooks of their accumulators run. What arrived is ``[leaf, gradient, owned]``. What waits at a
    node is ``[node, gradient, owned]``, lists of the latter two for a node with several outputs.
    """
    pending: dict[int, list] = {}
    leaves: dict[int, list] = {}
    heap: list[int] = []
    captured: dict[tuple[int, int], Any] = {}
    wanted = needed = hooked = None
    if task is not None:
        wanted, needed = task.wanted, task.needed
    for edge, g in zip(roots, grads, strict=True):
        if type(edge) is tuple:
            _deliver_part(pending, heap, edge, g, False)
            continue
        table, key = (pending, -edge.sequence) if type(edge) is Node else (leaves, id(edge))
        waiting = table.get(key)
        if waiting is None:
            table[key] = [edge, g, False]
            if table is pending:
                heappush(heap, key)
        else:
            waiting[1], waiting[2] = add(waiting[1], g), True
    if LeafHooks.live:
        task = task or Task(roots, None)
        hooked = HookedLeaves(task, leaves, accumulating, False)
        hooked.arrived(roots)
    careful = state.anomaly
    node: Any = None
    # along a chain one node is pending at a time: it is kept out of the heap
    only: list | None = None
    only_key = 0
    try:
        while True:
            if only is not None:
                key, (node, g, mine), only = only_key, only, None
            elif heap:
                key = heappop(heap)
                node, g, mine = pending.pop(key)
            else:
                break
            extras = node.extras
            if extras is not None or needed is not None:
                if needed is not None and -key not in needed and not _is_wanted(node, wanted):
                    continue
                if extras is not None and (extras.tensor or extras.retained):
                    task = task or Task(roots, None)
                    g, mine = _with_hooks(at_outputs, extras, g, task), False
                if needed is not None:
                    _capture(captured, wanted, -key, g)
                    if -key not in needed:
                        continue
                if extras is not None and extras.pre:
                    task = task or Task(roots, None)
                    g, mine = _with_hooks(before_node, extras, g, task), False
            call = node.call
            if type(g) is list and call.materializes:
                g = [
                    np.zeros(m.shape, m.dtype) if part is None else part
                    for part, m in zip(g, call.out_metas, strict=True)
                ]
            saved = node.saved
            values = node.unpack() if saved != () else saved
            large = call.large
            if large is CONSUMES:
                gradients, owned = call.consume(node.mask, g, mine)
            else:
                buffers = _owned_buffers(node, pending, leaves) if large else None
                if buffers is not None:
                    gradients, owned = call.backward_into(node.mask, g, values, buffers)
                else:
                    function = call.functions.get(node.mask)
                    if function is not None:
                        gradients, owned = function(g, *values)
                    else:
                        gradients, owned = call.backward(node.mask, g, values)
                        if call.row_sparse:
                            gradients, owned = _sparse_for_leaves(
                                node.edges, gradients, owned, mine
                            )
            if saved and not retain:
                node.saved = None
            if extras is not None and extras.post:
                task = task or Task(roots, None)
                parts = [as_tensor(part) for part in (g if type(g) is list else [g])]
                found = [as_tensor(value) for value in gradients]
                found = after_node(extras, found, parts, False, task)
                gradients, owned = [as_array(value) for value in found], 0
            if careful:
                fail_on_nan(node, gradients)
            bit = 1
            for edge, g in zip(node.edges, gradients):  # noqa: B905 (equal by construction)
                if edge is not None and g is not None:
                    if type(edge) is Node:
                        key = -edge.sequence
                        if only is None:
                            if not heap:
                                only, only_key = [edge, g, owned & bit != 0], key
                                bit += bit
                                continue
                        elif key != only_key:
                            pending[only_key], only = only, None
                            heappush(heap, only_key)
                        waiting = pending.get(key) if only is None else only
                        if waiting is None:
                            pending[key] = [edge, g, owned & bit != 0]
                            heappush(heap, key)
                    elif type(edge) is tuple:
                        if only is not None:
                            pending[only_key], only = only, None
                            heappush(heap, only_key)
                        _deliver_part(pending, heap, edge, g, owned & bit != 0)
                        waiting = None
                    else:
                        key = id(edge)
                        waiting = leaves.get(key)
                        if waiting is None:
                            leaves[key] = [edge, g, owned & bit != 0]
                    if waiting is None:
                        pass
                    elif waiting[2]:
                        waiting[1] = add_into(waiting[1], g)
                    elif owned & bit:  # the newcomer may be written instead
                        waiting[1], waiting[2] = add_into(g, waiting[1]), True
                    else:
                        waiting[1], waiting[2] = add(waiting[1], g), True
                bit += bit
            if hooked is not None:
                hooked.arrived(node.edges)
        if hooked is not None:
            hooked.finish()
    except Exception as error:
        explain(node, error)
        raise
    found = _found(task, captured, leaves) if wanted is not None else []
    return found, list(leaves.values())


def _sparse_for_leaves(
    edges: Sequence[Any], gradients: Sequence[Any], owned: int, mine: Any
) -> tuple[list[Any], int]:
    """Row-sparse gradients made dense unless a leaf takes them; and which gradients are owned.

    Rows may be those of what arrived at the node, so they are owned only if that was ``mine``.
    """
    found = list(gradients)
    for k, (edge, g) in enumerate(zip(edges, gradients, strict=True)):
        if type(g) is RowSparseArray:
            if not isinstance(edge, Tensor):
                found[k] = g.dense()
            elif mine is not True:
                owned &= ~(1 << k)
    return found, owned


def _found(task: Any, captured: dict[Any, Any], leaves: dict[int, list]) -> list[Any]:
    """The gradient of each target, each in memory of its own."""
    found = []
    handed: set[int] = set()
    for edge in task.targets:
        waiting = leaves.get(id(edge)) if isinstance(edge, Tensor) else None
        g = waiting[1] if waiting else captured.get(place_of(edge))
        if g is not None:
            if id(g) in handed or not (waiting and waiting[2]):
                g = g.copy()
            handed.add(id(g))
        found.append(g)
    return found


def _is_wanted(node: Node, wanted: Any) -> bool:
    return any((node.sequence, k) in wanted for k in range(node.call.nout))


def _capture(captured: dict, wanted: Any, sequence: int, g: Any) -> None:
    for number, part in enumerate(g if type(g) is list else [g]):
        if (sequence, number) in wanted:
            captured[sequence, number] = part


def _with_hooks(run: Any, extras: Any, g: Any, task: Task) -> Any:
    """What hooks, who want Tensors, make of what waits at a node."""
    parts = g if type(g) is list else [g]
    found = [as_array(p) for p in run(extras, [as_tensor(p) for p in parts], False, task)]
    return found if type(g) is list else found[0]


def _owned_buffers(
    node: Node, pending: dict[int, list], leaves: dict[int, list]
) -> list[np.ndarray | None] | None:
    """For each operand the array its gradient can be added to in place; None if there is none."""
    found: list[Any] | None = None
    taken: set[int] = set()
    for k, edge in enumerate(node.edges):
        if type(edge) is Node:
            waiting = pending.get(-edge.sequence)
        elif edge is None or type(edge) is tuple:
            continue
        else:
            waiting = leaves.get(id(edge))
        if waiting is None or not waiting[2] or id(waiting) in taken:
            continue
        meta, buffer = node.call.metas[k], waiting[1]
        if type(buffer) is RowSparseArray:
            continue
        if buffer.flags.c_contiguous and buffer.shape == meta.shape and buffer.dtype == meta.dtype:
            found = found or [None] * len(node.edges)
            found[k] = buffer
            taken.add(id(waiting))
    return found


def _deliver_part(
    pending: dict[int, list], heap: list[int], edge: tuple, g: np.ndarray, owned: bool
) -> None:
    """Add ``g`` to what waits at one output of a node with several."""
    node, number = edge
    key = -node.sequence
    waiting = pending.get(key)
    if waiting is None:
        count = node.call.nout
        waiting = pending[key] = [node, [None] * count, [False] * count]
        heappush(heap, key)
    _, parts, owners = waiting
    if parts[number] is None:
        parts[number], owners[number] = g, owned
    elif owners[number]:
        add_into(parts[number], g)
    else:
        parts[number], owners[number] = add(parts[number], g), True
