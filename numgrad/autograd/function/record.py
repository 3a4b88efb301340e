"""Running the forward of a Function, and giving its outputs their place in the graph.

Note [Outputs of a Function]
----------------------------
An output becomes part of the graph as the object that forward made, with these exceptions. An input
that was marked dirty is returned as itself, with a new history. One that is returned as it came,
or an output that is returned twice, is a view: its own history must stay. If nothing is recorded
though it could be, a view has the history of what is written to its memory later, since forward
alone made it under ``no_grad``. What has a history of its
own, recorded inside forward or before, is detached from that first, and so is what requires grad
where nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.function.call import Definition, FunctionCall
from numgrad.autograd.function.context import FunctionCtx, SavedTensors
from numgrad.autograd.history import (
    check_no_leaf,
    check_view,
    rebase,
    record,
    take_history,
)
from numgrad.autograd.node import Node
from numgrad.autograd.variable import NO_GRAD_VIEW, Tensor, root
from numgrad.autograd.versions import INFERENCE, mark_written, version_of, write_count
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, warn


def run(definition: Definition, args: tuple, keywords: dict[str, Any]) -> tuple[Any, FunctionCtx]:
    """Outputs of the forward, recorded if an input requires grad, and the ctx."""
    needs = tuple([isinstance(a, Tensor) and bool(a.requires_grad) for a in args])
    mask = sum(1 << k for k, need in enumerate(needs) if need) if state.grad_enabled else 0
    edges = tuple([edge_of(a) if mask >> k & 1 else None for k, a in enumerate(args)])
    versions = {id(a): write_count(a) for a in args if isinstance(a, Tensor)}
    ctx = FunctionCtx(definition.__name__, needs)
    before = state.set(grad_enabled=False)
    try:
        returned = as_tensors(definition.run_forward(ctx, args, keywords), args)
    finally:
        state.set(**before)
    outputs = _Outputs(ctx, args, returned)
    outputs.count_writes(versions)
    if mask and outputs.differentiable:
        outputs.check_rewritable()
        outputs.record(
            FunctionCall(definition, ctx, args, outputs.values, outputs.single), mask, edges
        )
    results = outputs.placed()
    ctx._forget()
    return (results[0] if outputs.single else results), ctx


def as_tensors(returned: Any, args: tuple) -> Any:
    """What a forward returned, with Tensors for arrays."""
    if isinstance(returned, tuple):
        return tuple([_as_tensor(value, args) for value in returned])
    return _as_tensor(returned, args)


def _as_tensor(value: Any, args: tuple) -> Any:
    """An array as a Tensor: a view of the input whose memory it shows, if there is one."""
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return value
    for a in args:
        if isinstance(a, Tensor) and _shows(array, a._array):
            return Tensor(array, slot=NO_GRAD_VIEW, memory=root(a))
    return Tensor(state.ground.lift(array), memory=INFERENCE if state.inference else None)


def _shows(array: np.ndarray, of: np.ndarray) -> bool:
    """Whether an array is another, or a view from the same memory."""
    base = array.base
    return array is of or (base is not None and (base is of or base is of.base))


class _Outputs:
    """What a forward returned, on its way into the graph: Note [Outputs of a Function]."""

    def __init__(self, ctx: FunctionCtx, args: tuple, returned: Any) -> None:
        self.ctx, self.args = ctx, args
        self.single = not isinstance(returned, tuple)
        self.values: tuple = (returned,) if self.single else returned
        self.differentiable = [
            k
            for k, value in enumerate(self.values)
            if isinstance(value, Tensor)
            and value.dtype.kind in "fc"
            and not _among(value, ctx._non_differentiable)
        ]
        self.dirty = list(filter(self._was_input, ctx._dirty))
        self.node: Node | None = None

    def slot(self, k: int) -> int:
        """The ``_slot`` of output ``k``."""
        return 0 if self.single else k + 1

    # ---------------------------------------------------------------------- dirty inputs

    def _was_input(self, tensor: Tensor) -> bool:
        """Whether a tensor marked dirty was an input, which then must be an output."""
        if not _among(tensor, self.args):
            warn(
                f"{self.ctx._name}: ctx.mark_dirty was given a tensor that is no input of forward, "
                "which has no effect; mark only inputs that forward changed in place",
                UserWarning,
            )
            return False
        if not _among(tensor, self.values):
            raise NumgradRuntimeError(
                f"{self.ctx._name}: an input of shape {tensor._array.shape} is marked dirty, but "
                "forward does not return it; return every input that it changes in place"
            )
        return True

    def count_writes(self, versions: dict[int, int]) -> None:
        """Count a write to each dirty input, unless an operation has done so."""
        for tensor in self.dirty:
            if write_count(tensor) == versions[id(tensor)] and version_of(tensor) is not INFERENCE:
                mark_written(tensor)

    def check_rewritable(self) -> None:
        """Raise if a dirty input cannot be given a new history."""
        for k in self.differentiable:
            if _among(self.values[k], self.dirty):
                check_no_leaf(f"{self.ctx._name}: ctx.mark_dirty", self.values[k])
                check_view(f"{self.ctx._name}: ctx.mark_dirty", self.values[k])

    # ------------------------------------------------------------------------- the graph

    def record(self, call: FunctionCall, mask: int, edges: tuple) -> None:
        """Make the node."""
        saved = ()
        if self.ctx._for_backward:
            saved = (SavedTensors(self.ctx._for_backward, self._slot_of),)
        self.node = record(call, mask, edges, saved)
        self.ctx._node = ref(self.node)

    def _slot_of(self, tensor: Tensor | None) -> int | None:
        """The ``_slot`` of a saved tensor that the node's history leads to."""
        for k in self.differentiable:
            value = self.values[k]
            if value is tensor and (not _among(value, self.args) or _among(value, self.dirty)):
                return self.slot(k)
        return None

    def placed(self) -> tuple:
        """The outputs as the caller gets them."""
        results: list[Any] = []
        for k, value in enumerate(self.values):
            if isinstance(value, Tensor):
                recorded = self.node is not None and k in self.differentiable
                value = self._place(value, self.slot(k), recorded, self.values[:k])
                if self.node is None and k in self.differentiable:
                    self._let_follow(value)
            results.append(value)
        if self.node is not None and self.node.saved:
            self.node.saved[0].watch(self.node, {self.slot(k): y for k, y in enumerate(results)})
        return tuple(results)

    def _place(self, value: Tensor, slot: int, recorded: bool, earlier: tuple) -> Tensor:
        if _among(value, earlier):
            value = _view(value)
        elif recorded and _among(value, self.dirty):
            return self._rewrite(value, slot)
        elif _among(value, self.args) and not _among(value, self.dirty):
            value = _view(value) if recorded or not value._requires_grad else value.detach()
        elif value._requires_grad:
            value = value.detach()
        if recorded:
            value._grad_fn, value._slot, value._requires_grad = self.node, slot, True
        return value

    def _let_follow(self, value: Tensor) -> None:
        """Let a view that nothing was recorded of have the history of later writes to its root."""
        if state.grad_enabled and not any(value is a or a._slot < 0 for a in self._tensors()):
            value._slot = max(value._slot, 0)

    def _tensors(self) -> list[Tensor]:
        return [a for a in self.args if isinstance(a, Tensor)]

    def _rewrite(self, target: Tensor, slot: int) -> Tensor:
        """Give an input that was changed in place its new history."""
        node: Any = self.node
        if root(target) is target:
            take_history(target, node, slot)
        else:
            source = (node, slot - 1) if slot else node
            rebase(target, source, Meta(target.shape, target.dtype))
        return target


def _view(tensor: Tensor) -> Tensor:
    """Another tensor that shows the same memory."""
    return Tensor(tensor._array, slot=NO_GRAD_VIEW, memory=root(tensor))


def _among(value: Any, tensors: Sequence[Any]) -> bool:
    return any(value is tensor for tensor in tensors)
