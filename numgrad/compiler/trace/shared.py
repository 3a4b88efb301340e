"""Results that share memory: with arguments, with what is around the function, with one another.

Note [Shared results]
---------------------
What a compiled function returns shares memory where the function itself would give the same object
or a view, and nowhere else. So a result that is an argument, or something captured, is handed back
as it came; a view of one, or of another result, is made by the same views of what the caller has
or gets. All else has memory of its own, equal results too. A view that is recorded is an operation
of the tape like any other, behind the compiled call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of, place_of
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.layout import Result
from numgrad.compiler.graph.evaluate import parameters
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.memory import CONSTANTS, Step
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.primitive import View


@dataclass(frozen=True, eq=False)
class Views:
    """The views by which a result is made of something else, and whether they are recorded."""

    steps: Sequence[Step]
    sizes: Sizes
    recorded: bool

    def __call__(self, source: Any, lengths: dict[int, int], as_tensor: bool) -> Any:
        """The views of an ndarray or a Tensor."""
        tensor = source if isinstance(source, Tensor) else Tensor(source)
        before = state.set(grad_enabled=state.grad_enabled and self.recorded)
        try:
            if not self.recorded:
                tensor = tensor.detach()
            for step in self.steps:
                given = parameters(step, lambda n: self.sizes.evaluate(n, lengths))  # pyright: ignore
                tensor = OPS[step.name](tensor, **given)
        finally:
            state.set(**before)
        return tensor if as_tensor else tensor._array


def share(tracer: Tracer, leaves: Sequence[Any], results: Sequence[Result]) -> list[Result]:
    """Note which results share memory; those returned are all that are to be computed or made."""
    inputs = {id(array): value for value, array in tracer.memory()}
    listed = list(results)
    gradients = {id(t._grad): t for t in tracer.with_gradients() if t._grad is not None}
    seen: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for k, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor | np.ndarray):
            continue
        if id(leaf) in seen:
            listed[k] = Result(same=seen[id(leaf)])
            continue
        seen[id(leaf)] = k
        if id(leaf) in gradients and not _records(leaf):
            listed[k] = Result(gradient_of=gradients[id(leaf)])
            continue
        array = tracer.lift(leaf)
        root = array if array.base is None else array.base
        if id(root) in inputs:
            listed[k] = _of_input(tracer, leaf, array, root, inputs[id(root)]) or listed[k]
        else:
            groups.setdefault(id(root), []).append(k)
    for group in groups.values():
        if len(group) > 1:
            _share_one(tracer, leaves, listed, group)
    return listed


def _of_input(
    tracer: Tracer, leaf: Any, array: TracedArray, root: TracedArray, value: Value
) -> Result | None:
    """A result that is an input or a view of one; None if it has to be computed."""
    records = isinstance(leaf, Tensor) and leaf.requires_grad
    if records and root.version and leaf._grad_fn is not None:
        return None  # its history was made in the trace
    given = tracer.given(value)
    if records and not any(_is_history_of(leaf, t) for t in given if isinstance(t, Tensor)):
        return None
    if any(leaf is t for t in given):
        return Result(origin=value)
    if not root._value.shape:
        return None
    return Result(origin=value, views=Views(_seen(array), tracer.sizes, records))


def _share_one(tracer: Tracer, leaves: Sequence[Any], listed: list[Result], group: list[int]):
    """Make results that share the memory of one array views of that array."""
    whole = [k for k in group if not _seen(tracer.lift(leaves[k]))]
    if not whole:
        return
    base = max(whole, key=lambda k: (_records(leaves[k]), -k))
    if listed[base].value is None or not listed[base].value.shape:  # pyright: ignore
        return
    for k in group:
        if k != base and (not _records(leaves[k]) or _is_history_of(leaves[k], leaves[base])):
            steps = _seen(tracer.lift(leaves[k]))
            listed[k] = Result(same=base, views=Views(steps, tracer.sizes, _records(leaves[k])))


def _seen(array: TracedArray) -> tuple[Step, ...]:
    """The steps of a view that are more than being a constant, of which ``Views`` knows."""
    return tuple([step for step in array.steps if step.name not in CONSTANTS])


def _is_history_of(view: Tensor, whole: Any) -> bool:
    """Whether gradients flow from a view to what it shows by views alone.

    They do not after ``detach``, through a user's Function, or past hooks, which the trace has.
    """
    if not _records(whole):
        return False
    source, edge = edge_of(whole), edge_of(view)
    while not _same_edge(edge, source):
        node = edge[0] if type(edge) is tuple else edge
        if type(node) is not Node or node.extras is not None or not isinstance(node.call.op, View):
            return False
        edge = node.edges[0]
    is_argument = type(whole._array) is TracedArray
    return not (is_argument and whole._grad_fn is None and whole._extra is not None)


def _same_edge(a: Any, b: Any) -> bool:
    return type(a) is type(b) and place_of(a) == place_of(b)


def _records(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.requires_grad
