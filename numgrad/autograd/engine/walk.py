"""The walk of a backward: nodes by falling sequence number, until gradients wait at leaves only.

At each node the walk does three things. It *visits* the node where anything is to be done besides
computing: hooks, retained gradients, results that are asked for, anomalies. It evaluates the
node's backward, as its ``Evaluation`` says. It *delivers* the gradients of the operands to where
they belong, where they are added up until it is their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from threading import Thread
from typing import Any

import numpy as np

from numgrad.autograd.anomaly import explain, fail_on_nan
from numgrad.autograd.engine.gradients import ON_ARRAYS, SMALL, Evaluation, accumulate
from numgrad.autograd.engine.task import Task, place_of
from numgrad.autograd.hooks import (
    LeafHooks,
    NodeExtras,
    has_hooks,
    run_node_hooks,
    run_post_accumulate,
    run_tensor_hooks,
)
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Parameter, Tensor
from numgrad.autograd.versions import Version
from numgrad.codegen.cpython import hot_paths
from numgrad.codegen.cpython.c_api import ObjectTable, Words
from numgrad.core.axis import AxisPlan
from numgrad.core.elementwise import ElementwisePlan
from numgrad.core.interpreter import ThreadSettings, state

DEEP = 40
"""Nested backwards that share one stack: a deeper one goes on in a thread of its own."""

_INNER = (Node, tuple)
"""Types of the edges that lead to a node."""

_objects = ObjectTable(
    TENSOR=Tensor, PARAMETER=Parameter, NODE=Node, VERSION=Version, ARRAY=np.ndarray, FLOAT=float,
    INT=int, TUPLE=tuple, NONE=None, TRUE=True, FALSE=False, PUSH=heappush, POP=heappop,
    ADD=np.add, ELEMENTWISE=ElementwisePlan, AXIS=AxisPlan,
)  # fmt: skip
_machine_form: Callable[..., Any] | None = None
_advance: Callable[..., Any] | None = None
"""The walk in machine code, if in use: Note [Advance] in ``codegen.cpython.backward_walk``."""


@cache
def _machine_code() -> Any:
    from numgrad.codegen.cpython import backward_walk  # LLVM comes with the first kernel
    from numgrad.codegen.cpython.builtin import Builtin

    return Builtin("advance", backward_walk.text(_objects, SMALL))


def _install() -> None:
    global _machine_form
    _machine_form = _machine_code().function("advance", Words.of(_objects))
    _switch()


def _switch() -> None:
    """Let machine code walk, or not, as the user's setting has it."""
    global _advance
    _advance = _machine_form if hot_paths.enabled() else None


hot_paths.waiting.append(hot_paths.HotPath(lambda: _machine_code().cached, _install))
hot_paths.on_switch(_switch)


def walk(
    evaluation: Evaluation,
    roots: Sequence[Any],
    grads: Sequence[Any],
    retain: bool,
    task: Task | None = None,
    accumulating: bool = True,
) -> tuple[list[Any], list[list]]:
    """Gradients of the targets of ``task``, and what arrived at each leaf.

    ``roots`` are edges; ``accumulating`` says that leaves will be accumulated into, so that the
    hooks of their accumulators run. What arrived is ``[leaf, gradient, owned]``.
    """
    queue = Queue(evaluation)
    deliver, heap, waiting, reached = queue.deliver, queue.heap, queue.waiting, queue.reached
    evaluate = evaluation.evaluate
    visits = hooked = node = None
    passed = None if task is None else task.passed
    watched = state.anomaly or state.ground.deferred
    ordinary = evaluation is ON_ARRAYS and not watched
    advance = _advance if ordinary else None
    if ordinary and hot_paths.waiting:
        hot_paths.count_call()
    # along a chain one node waits at a time: it is kept out of the queue
    only: list | None = None
    edges, gradients, owned = roots, grads, 0
    try:
        while True:
            if advance is not None:
                only = advance(
                    waiting, heap, deliver, edges, gradients, owned, passed, bool(retain)
                )
            else:
                bit = 1
                for edge, g in zip(edges, gradients):  # noqa: B905 (equal by construction)
                    if edge is not None and g is not None:
                        if only is None and type(edge) is Node and not heap:
                            only = [edge, g, owned & bit != 0]
                        else:
                            if only is not None and type(edge) in _INNER:
                                queue.put(only)
                                only = None
                            deliver(edge, g, owned & bit != 0)
                    elif edge is not None and type(edge) not in _INNER:
                        queue.reach(edge)
                    bit += bit
            if reached:
                visits = visits or Visits(task or Task(roots), evaluation)
                hooked = hooked or HookedLeaves(visits, queue, accumulating)
                hooked.arrived(() if only is None else (only[0],))
                if advance is not None and only is not None and type(only[1]) is np.ndarray:
                    # it may be one for machine code
                    (node, g, mine), only = only, None
                    edges, gradients, owned = (node,), (g,), int(mine)
                    continue
            if only is None:
                if not heap:
                    break
                only = waiting.pop(heappop(heap))
            (node, g, mine), only = only, None
            edges = node.edges
            visited = (
                node.extras is not None
                or watched
                or (passed is not None and node.sequence not in passed)
            )
            if visited:
                visits = visits or Visits(task or Task(roots), evaluation)
                arrived = visits.arrive(node, g, mine)
                if arrived is None:
                    edges = gradients = ()
                    continue
                g, mine = arrived
            if watched and state.anomaly:
                with ThreadSettings(running=node):
                    gradients, owned = evaluate(node, g, mine, waiting)
            else:
                gradients, owned = evaluate(node, g, mine, waiting)
            if node.saved and not retain:
                node.saved = None
            if visited:
                gradients, owned = visits.leave(node, g, gradients, owned)  # pyright: ignore
        if hooked is not None:
            hooked.finish()
    except Exception as error:
        explain(node, error)
        raise
    gradients_of_targets = (
        [] if task is None else evaluation.separate(_arrived(task, waiting, visits))
    )
    return gradients_of_targets, list(waiting.values())


def _arrived(
    task: Task, waiting: dict[int, list], visits: Visits | None
) -> Iterator[tuple[Any, bool]]:
    """The gradient that arrived at each target, and whether it is owned."""
    for edge in task.targets or ():
        if id(edge) in waiting:
            _, g, owned = waiting[id(edge)]
            yield g, owned
        else:
            yield None if visits is None else visits.target_grads.get(place_of(edge)), False


def on_fresh_stack(run: Callable[[], Any]) -> Any:
    """The result of ``run`` in a new thread that has this one's modes."""
    inherited, outcome = dict(vars(state)), []

    def target() -> None:
        vars(state).update(inherited)
        try:
            outcome.append((run(), None))
        except BaseException as error:  # handed to the thread that waits
            outcome.append((None, error))
        outcome.append(state.callbacks)

    thread = Thread(target=target)
    thread.start()
    thread.join()
    (result, error), state.callbacks = outcome
    if error is not None:
        raise error
    return result


class Queue:
    """Gradients on their way, added up where they wait.

    ``waiting`` has ``[node or leaf, gradient, owned]`` of each place, lists of the latter two for a
    node with several outputs. Keys of nodes are their negative sequence numbers, which ``heap``
    orders; keys of leaves are their ``id``. ``missing`` says how many gradients are still to come
    to leaves with hooks, by ``id``, and ``reached`` which of these got the last one, or one that
    nobody has counted: see ``HookedLeaves``.
    """

    __slots__ = ("added", "heap", "missing", "reached", "waiting")

    def __init__(self, evaluation: Evaluation) -> None:
        self.added = evaluation.added
        self.heap: list[int] = []
        self.waiting: dict[int, list] = {}
        self.missing: dict[int, int] = {}
        self.reached: list[Tensor] = []

    def put(self, entry: list) -> None:
        """Let a node wait at which nothing else does."""
        key = -entry[0].sequence
        self.waiting[key] = entry
        heappush(self.heap, key)

    def reach(self, leaf: Tensor) -> bool:
        """Take note that a gradient (or none) was sent to a leaf; whether its hooks may run now."""
        if leaf._extra is None or not has_hooks(leaf):
            return False
        missing = self.missing.get(id(leaf), 0)
        if missing:
            self.missing[id(leaf)] = missing - 1
        if missing > 1:
            return False
        self.reached.append(leaf)
        return True

    def deliver(self, edge: Any, g: Any, owned: bool) -> bool:
        """Add ``g``, if it is any, to what waits at the end of an edge; whether hooks may run."""
        kind = type(edge)
        if kind is tuple:
            self._deliver_part(edge, g, owned)
            return False
        hooked, key = False, -edge.sequence if kind is Node else id(edge)
        if kind is not Node:
            hooked = self.reach(edge)
            if g is None:
                return hooked
        waiting = self.waiting
        if key in waiting:
            entry = waiting[key]
            entry[1], entry[2] = self.added(entry[1], entry[2], g, owned)
            return hooked
        waiting[key] = [edge, g, owned]
        if kind is Node:
            heappush(self.heap, key)
        return hooked

    def _deliver_part(self, edge: tuple[Node, int], g: Any, owned: bool) -> None:
        """Add ``g`` to what waits at one output of a node with several."""
        node, number = edge
        entry = self.waiting.get(-node.sequence)
        if entry is None:
            count = node.call.nout
            entry = [node, [None] * count, [False] * count]
            self.put(entry)
        _, parts, owners = entry
        if parts[number] is None:
            parts[number], owners[number] = g, owned
        else:
            parts[number], owners[number] = self.added(parts[number], owners[number], g, owned)


class Visits:
    """Work at nodes besides computing: see Note [Order of hooks] in ``hooks``."""

    __slots__ = ("evaluation", "target_grads", "task")

    def __init__(self, task: Task, evaluation: Evaluation) -> None:
        self.task, self.evaluation = task, evaluation
        self.target_grads: dict[tuple[int, int], Any] = {}

    def arrive(self, node: Node, g: Any, mine: Any) -> tuple[Any, Any] | None:
        """The gradient of a node as hooks leave it, and whether it is owned; None if none runs.

        On the way gradients are retained, and captured where they are asked for.
        """
        task, extras, sequence = self.task, node.extras, node.sequence
        runs = task.needed is None or sequence in task.needed
        outputs = task.outputs.get(sequence)
        if outputs is None and not runs:
            return None
        if extras is not None and (extras.tensor or extras.retained):
            g, mine = self._from_hooks(self._at_outputs(extras, self._as_hooks_see(g)), g), False
        if outputs is not None:
            mine = False
            for number in outputs:
                self.target_grads[sequence, number] = g[number] if type(g) is list else g
        if not runs:
            return None
        if extras is not None and extras.pre:
            parts = self.of_node("a pre-hook", extras.pre, self._as_hooks_see(g))
            g, mine = self._from_hooks(parts, g), False
        if extras is not None and extras.post:
            mine = False  # they are shown what arrived when the gradients have been made
        return g, mine

    def leave(
        self, node: Node, g: Any, gradients: Sequence[Any], owned: int
    ) -> tuple[Sequence[Any], int]:
        """Gradients of a node's operands as its hooks leave them, and which of them are owned."""
        extras = node.extras
        if extras is not None and extras.post:
            shown = self._as_hooks_see(list(gradients))
            changed = self.of_node("a hook", extras.post, shown, tuple(self._as_hooks_see(g)))
            gradients, owned = [self.evaluation.taken(value) for value in changed], 0
        if state.anomaly:
            fail_on_nan(node, gradients)
        if state.ground.deferred:
            gradients = self.evaluation.nonzero(gradients)
        return gradients, owned

    def of_tensor(self, hooks: dict[int, Any], g: Tensor) -> Tensor:
        """The gradient as the hooks of a tensor leave it."""
        return run_tensor_hooks(hooks, g, self.evaluation.recording, self.task)

    def of_node(
        self, what: str, hooks: dict[int, Any], changing: list[Any], *context: tuple
    ) -> list[Any]:
        """Gradients as pre-hooks or post-hooks of a node leave them."""
        recording = self.evaluation.recording
        return run_node_hooks(what, hooks, recording, self.task, changing, *context)

    def _at_outputs(self, extras: NodeExtras, parts: list[Any]) -> list[Any]:
        """Gradients of a node's outputs as tensor hooks leave them; some are retained."""
        for output, hooks in extras.tensor.items():
            if parts[output] is not None and hooks:
                parts[output] = self.of_tensor(hooks, parts[output])
        for output, reference in extras.retained.items():
            tensor = reference()
            if tensor is not None and parts[output] is not None:
                accumulate([(tensor, self.evaluation.taken(parts[output]), False)])
        return parts

    def _as_hooks_see(self, g: Any) -> list[Any]:
        """The gradients that wait at a node, as hooks see them."""
        return [self.evaluation.shown(grad) for grad in (g if type(g) is list else [g])]

    def _from_hooks(self, parts: Sequence[Any], g: Any) -> Any:
        """The gradients that hooks made of ``g``, as the node gets them."""
        changed = [self.evaluation.taken(grad) for grad in parts]
        return changed if type(g) is list else changed[0]


class HookedLeaves:
    """Leaves with hooks, which run as soon as the last gradient has arrived.

    How many are still to come is counted when the first leaf with hooks gets one: a backward of a
    graph without such leaves counts nothing. Where a hook wants to see the accumulated gradient it
    is accumulated at once; all others are when the walk has succeeded.
    """

    __slots__ = ("accumulating", "queue", "visits", "waiting")

    def __init__(self, visits: Visits, queue: Queue, accumulating: bool) -> None:
        self.visits, self.queue, self.accumulating = visits, queue, accumulating
        self.waiting = queue.waiting

    def arrived(self, running: Sequence[Node]) -> None:
        """Let the hooks run of leaves that were reached, if they are complete.

        ``running`` are nodes that have got a gradient and wait no more.
        """
        reached, missing = {id(leaf): leaf for leaf in self.queue.reached}, self.queue.missing
        self.queue.reached.clear()
        if not reached.keys() <= missing.keys():
            pending = [entry[0] for entry in self.waiting.values()]
            counts = self.visits.task.leaf_counts([*pending, *running])
            missing.update(dict.fromkeys(reached, 0))
            missing.update(counts)
        for key, leaf in reached.items():
            if not missing[key]:
                self._complete(leaf)

    def finish(self) -> None:
        """Let the hooks of leaves run that a path sent nothing to, so that they seem to wait."""
        for leaf, *_ in list(self.waiting.values()):
            if self.queue.missing.get(id(leaf)) and has_hooks(leaf):
                self._complete(leaf)

    def _complete(self, leaf: Tensor) -> None:
        entry, targets = self.waiting.get(id(leaf)), self.visits.task.targets
        if entry is None or (targets is not None and not any(leaf is t for t in targets)):
            return
        hooks: LeafHooks = leaf._extra.hooks  # pyright: ignore
        visits, evaluation = self.visits, self.visits.evaluation
        g = evaluation.shown(entry[1])
        if hooks.tensor:
            g = visits.of_tensor(hooks.tensor[0], g)
        if self.accumulating and hooks.pre:
            (g,) = visits.of_node("a pre-hook", hooks.pre, [g])
        if g is None:
            del self.waiting[id(leaf)]
            return
        entry[1:] = evaluation.taken(g), False
        if self.accumulating and hooks.after_accumulation:
            accumulate([entry])
            entry[1] = None  # done
            run_post_accumulate(hooks, leaf, visits.task)
            visits.of_node("a hook", hooks.post, [], (g,))
