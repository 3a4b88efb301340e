"""What happens where gradients arrive, apart from computing: hooks and retained gradients.

Both walks call these functions with Tensors. See Note [Order of hooks] in ``hooks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.autograd.engine.accumulate import accumulate
from numgrad.autograd.engine.task import Task
from numgrad.autograd.hooks import (
    LeafHooks,
    NodeExtras,
    run_node_hooks,
    run_post_accumulate,
    run_tensor_hooks,
)
from numgrad.autograd.row_sparse import as_tensor
from numgrad.autograd.variable import Tensor
from numgrad.core.interpreter import state


def as_array(g: Any) -> Any:
    """A gradient as the compiled walk computes with it."""
    return None if g is None else g._array


def _kept(g: Tensor, recording: bool) -> Any:
    """A gradient as it is accumulated: a Tensor where operations on it mean more than numbers."""
    return g if recording or state.interpreters else g._array


def at_outputs(extras: NodeExtras, parts: list[Any], recording: bool, task: Task) -> list[Any]:
    """Gradients of a node's outputs as tensor hooks leave them; some are retained."""
    for output, hooks in extras.tensor.items():
        if parts[output] is not None and hooks:
            parts[output] = run_tensor_hooks(hooks, parts[output], recording, task)
    for output, reference in extras.retained.items():
        tensor = reference()
        if tensor is not None and parts[output] is not None:
            accumulate([(tensor, _kept(parts[output], recording), False)])
    return parts


def before_node(extras: NodeExtras, parts: list[Any], recording: bool, task: Task) -> list[Any]:
    """Gradients of a node's outputs as its pre-hooks leave them."""
    return run_node_hooks("a pre-hook", extras.pre, recording, task, parts)


def after_node(
    extras: NodeExtras, found: Sequence[Any], parts: Sequence[Any], recording: bool, task: Task
) -> list[Any]:
    """Gradients of a node's operands as its post-hooks leave them."""
    return run_node_hooks("a hook", extras.post, recording, task, list(found), tuple(parts))


class HookedLeaves:
    """Leaves with hooks, which run as soon as the last gradient has arrived.

    ``leaves`` is the walk's table of what has arrived: ``[leaf, gradient, owned]`` by ``id``.
    Where a hook wants to see the accumulated gradient it is accumulated at once and leaves the
    table; all others are when the walk has succeeded.
    """

    def __init__(
        self, task: Task, leaves: dict[int, list], accumulating: bool, recording: bool
    ) -> None:
        self.task, self.leaves = task, leaves
        self.accumulating, self.recording = accumulating, recording
        self.missing = task.leaf_counts()

    def arrived(self, edges: Sequence[Any]) -> None:
        """Take note that gradients (or none) were sent along ``edges``."""
        missing = self.missing
        for edge in edges:
            if isinstance(edge, Tensor) and id(edge) in missing:
                missing[id(edge)] -= 1
                if not missing[id(edge)]:
                    self._complete(edge)

    def finish(self) -> None:
        """Let the hooks of leaves run that a path sent nothing to, so that they seem to wait."""
        for leaf, *_ in list(self.leaves.values()):
            if self.missing.get(id(leaf)):
                self._complete(leaf)

    def _complete(self, leaf: Tensor) -> None:
        waiting = self.leaves.get(id(leaf))
        task, targets = self.task, self.task.targets
        if waiting is None or (targets is not None and not any(leaf is t for t in targets)):
            return
        hooks: LeafHooks = leaf._extra.hooks  # pyright: ignore
        g: Any = as_tensor(waiting[1])
        if hooks.tensor:
            g = run_tensor_hooks(hooks.tensor[0], g, self.recording, task)
        if self.accumulating and hooks.pre:
            (g,) = run_node_hooks("a pre-hook", hooks.pre, self.recording, task, [g])
        if g is None:
            del self.leaves[id(leaf)]
            return
        waiting[1:] = _kept(g, self.recording), False
        if self.accumulating and hooks.after_accumulation:
            accumulate([waiting])
            waiting[1] = None  # done
            run_post_accumulate(hooks, leaf, task)
            run_node_hooks("a hook", hooks.post, self.recording, task, [], (g,))
