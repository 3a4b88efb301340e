"""A call of a Function: its ``ctx``, the run of its forward, and the node that runs its backward.

Note [What a ctx holds]
-----------------------
Saved tensors belong to the node, so that a backward frees them as it frees those of operations; the
ctx knows its node by a weak reference. An input is saved as the object it is. Of an output the node
saves the array and the number: the Tensor itself leads back to the node, and such a cycle would
keep both alive until the garbage collector comes.

Note [Outputs of a Function]
----------------------------
An output becomes part of the graph as the object that forward made, with these exceptions. An input
that was marked dirty is returned as itself, with a new history. One that is returned as it came is
a view: its own history must stay. An output that is returned twice is one. If nothing is recorded
though it could be, a view has the history of what is written to its memory later, since forward
alone made it under ``no_grad``. What has a history of its
own, recorded inside forward or before, is detached from that first, and so is what requires grad
where nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol
from weakref import ref

import numpy as np

from numgrad.autograd import history
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.node import Node, detached, freed
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.saved import keep, pack
from numgrad.autograd.variable import NO_GRAD_VIEW, TENSORS, Tensor, constant, root
from numgrad.autograd.versions import (
    INFERENCE,
    check_result_current,
    is_current,
    mark_written,
    next_sequence,
    shared_version,
    version_of,
)
from numgrad.core.abstract import zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import Op
from numgrad.core.plan import Call, conform
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, warn

# ---------------------------------------------------------------------------------------------- ctx


class SavedTensors:
    """The tensors a Function saved, as its node keeps them: Note [What a ctx holds].

    Parameters
    ----------
    tensors
        Tensors or None.
    slots
        The ``_slot`` of each that is an output, by its ``id``.
    """

    __slots__ = ("computed", "kept", "slots")

    def __init__(self, tensors: Sequence[Tensor | None], slots: dict[int, int]) -> None:
        self.slots = [slots.get(id(t)) for t in tensors]
        self.computed = [t is not None and t._grad_fn is not None for t in tensors]
        values: Any = [
            keep(tensor) if slot is None else tensor._array  # pyright: ignore
            for tensor, slot in zip(tensors, self.slots, strict=True)
        ]
        self.kept = pack(tuple(values), state.saved_hooks[-1]) if state.saved_hooks else values

    def watch(self, node: Node, outputs: dict[int, Any]) -> None:
        """Note the versions of saved outputs, which are given by their ``_slot``."""
        for slot in self.slots:
            if slot is not None and outputs[slot]._memory is not None:
                node.watch_output(slot, shared_version(outputs[slot]))

    def unpack(self, node: Node) -> tuple[Tensor | None, ...]:
        """The tensors with their places in the graph, after checking that they are unchanged."""
        recording = state.grad_enabled
        tensors: list[Any] = []
        for value, slot, computed in zip(self.kept, self.slots, self.computed, strict=True):
            if slot is not None:
                check_result_current(node.name, (node.outputs or {}).get(slot), node.sequence)
                tensors.append(node._tensor("y", value, slot))
                continue
            # a tensor without a version was never written to
            plain = type(value) in TENSORS and value._memory is None
            tensor = value if plain else node._tensor("", value)
            if computed and recording and not tensor._requires_grad:
                raise detached(node, tensor)
            tensors.append(tensor)
        return tuple(tensors)


class FunctionCtx:
    """The first argument of a Function's ``forward`` (or ``setup_context``) and ``backward``.

    It takes any attributes. Tensors should be kept with ``save_for_backward`` instead, which frees
    them after the backward, notices that they were changed in place, and lets
    ``saved_tensors_hooks`` keep them.

    Attributes
    ----------
    needs_input_grad
        For each positional argument of ``apply`` whether it requires grad.
    """

    _materializes = True
    _materialize_non_diff_grads = True
    """Whether zeros are made also for outputs that have no gradient."""
    _once = False
    """Whether the backward that ran can be differentiated no further."""
    _in_jvp = False
    _node: ref[Node] | None = None
    _for_forward: tuple[Tensor | None, ...] = ()
    _for_backward: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()

    def __init__(self, name: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._name = name

    def _forget(self) -> None:
        """Drop what was needed until the call was recorded."""
        for attribute in ("_for_backward", "_dirty", "_non_differentiable"):
            self.__dict__.pop(attribute, None)

    def name(self) -> str:
        """Name of the node: the Function's followed by ``Backward``."""
        return f"{self._name}Backward"

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors, which ``saved_tensors`` of the backward gives back; the last call counts.

        Raises
        ------
        NumgradTypeError
            If one is neither a Tensor nor None.
        """
        self._for_backward = self._tensors("save_for_backward", tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors, which ``saved_tensors`` gives back in ``jvp``."""
        self._for_forward = self._tensors("save_for_forward", tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs ``forward`` has changed in place; it must return them."""
        self._dirty = self._tensors("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient; integers have none anyway."""
        self._non_differentiable = self._tensors("mark_non_differentiable", tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros for outputs without a gradient (the default), or None."""
        self._materializes = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of ``save_for_backward``; in ``jvp`` those of ``save_for_forward``.

        Raises
        ------
        NumgradRuntimeError
            If one was changed in place since, or a backward has freed them.
        """
        if self._in_jvp:
            return self._for_forward
        if self._node is None:
            return ()
        node = self._node()
        if node is None:
            raise NumgradRuntimeError(
                f"{self.name()}: the graph of this ctx is gone, and with it what was saved; keep "
                "the output of apply as long as you use the ctx"
            )
        if node.saved is None:
            raise freed(node)
        return node.saved[0].unpack(node) if node.saved else ()

    def _tensors(self, method: str, tensors: tuple) -> tuple:
        for position, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor) and (tensor is not None or "save" not in method):
                raise NumgradTypeError(
                    f"{self._name}: ctx.{method} takes Tensors, argument {position} is a "
                    f"{type(tensor).__name__}; keep other values as attributes, ctx.value = ..."
                )
        return tensors

    @contextmanager
    def _running_jvp(self) -> Iterator[None]:
        """Let ``saved_tensors`` give what was saved for ``jvp``."""
        self._in_jvp = True
        try:
            yield
        finally:
            self._in_jvp = False


# ----------------------------------------------------------------------------- the record of a call


class Definition(Protocol):
    """A Function, or one that was adapted to a batch."""

    __name__: str

    def context(self) -> type[FunctionCtx]:
        """The class of its ctx."""
        ...

    def run_forward(self, ctx: FunctionCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Outputs of the forward."""
        ...

    def run_backward(self, ctx: FunctionCtx, grads: Sequence[Tensor | None]) -> Any:
        """Result of the backward."""
        ...

    def run_jvp(self, ctx: FunctionCtx, tangents: Sequence[Tensor | None]) -> Any:
        """Result of the jvp."""
        ...


NO_TENSOR = Meta((), np.dtype(object))
"""Marker in place of the shape and dtype of an argument or output that is no Tensor."""


def meta_of(value: Any) -> Meta:
    """Shape and dtype of an argument or output."""
    if type(value) in TENSORS:
        array = value._array
        return Meta(array.shape, array.dtype)
    return Meta(value.shape, value.dtype) if isinstance(value, Tensor) else NO_TENSOR


@lru_cache(maxsize=1024)
def _operation(name: str) -> Op:
    """The operation that a node names as its own."""

    def function() -> None:
        """A Function of the user's."""

    op = Op(function, register=False, internal=True)
    op.name = name
    return op


class FunctionCall(Call):
    """A call of a Function."""

    __slots__ = ("ctx", "definition", "nout", "out_metas", "result", "row_sparse", "saves_tensors")
    # it is a matter of each ctx, and outputs that are no Tensors get None
    materializes = False  # pyright: ignore
    opaque = True

    def __init__(
        self,
        definition: Definition,
        ctx: FunctionCtx,
        args: Sequence[Any],
        outputs: Sequence[Any],
        single: bool,
    ) -> None:
        metas = tuple([meta_of(a) for a in args])
        super().__init__(_operation(definition.__name__), metas, {})
        self.definition, self.ctx = definition, ctx
        undefined = () if ctx._materialize_non_diff_grads else ctx._non_differentiable
        results = tuple([NO_TENSOR if _among(y, undefined) else meta_of(y) for y in outputs])
        self.nout, self.result = len(results), results[0]
        self.out_metas = () if single else results
        self.saves_tensors = bool(ctx._for_backward)
        self.row_sparse = False  # until the backward returns such a gradient

    @property
    def results(self) -> tuple[Meta, ...]:
        return self.out_metas or (self.result,)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ("tensors",) if self.saves_tensors else ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        parts = g if self.out_metas else [g]
        gradients = self._run(
            [None if grad is None else Tensor(grad) for grad in parts], mask, False
        )
        arrays: list[Any] = [None if value is None else value._array for value in gradients]
        for k, meta in enumerate(self.metas):
            if type(arrays[k]) is RowSparseArray:
                self.row_sparse = True
            elif arrays[k] is not None and not _fits(arrays[k], meta):
                arrays[k] = conform(arrays[k], meta)
        return arrays, 0

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        parts = g if self.out_metas else [g]
        recording = state.grad_enabled
        gradients = [
            value.to_dense() if isinstance(value, RowSparseTensor) else value
            for value in self._run(parts, mask, recording)
        ]
        if recording and self.ctx._once:
            return self._dead_ends(parts, gradients)
        return gradients

    def _run(self, parts: Sequence[Tensor | None], mask: int, recording: bool) -> list[Any]:
        """Gradients of the inputs in ``mask``, not yet summed to their shapes."""
        if _among(None, parts) and self.ctx._materializes:
            parts = [
                Tensor(zeros(meta.shape, meta.dtype))
                if grad is None and meta is not NO_TENSOR
                else grad
                for grad, meta in zip(parts, self.results, strict=True)
            ]
        before = state.modes()
        before["depth"] = state.depth
        try:  # as ``user_code``, in a third of its time
            state.grad_enabled, state.depth = recording, state.depth + 1
            state.refresh()
            returned = self.definition.run_backward(self.ctx, parts)
        finally:
            state.put(before)
        values = returned if isinstance(returned, tuple) else (returned,)
        self._check_number(values)
        gradients: list[Any] = []
        for k, meta in enumerate(self.metas):
            value = values[k] if mask >> k & 1 else None
            if value is not None and not (type(value) is Tensor and _fits(value._array, meta)):
                value = as_gradient(self.op.name, k, value, meta)
            gradients.append(value)
        return gradients

    def _check_number(self, values: tuple) -> None:
        """Raise unless there is a gradient, or None, for each input and none besides."""
        count = len(self.metas)
        name = f"{self.op.name}.backward"
        if len(values) < count:
            raise NumgradRuntimeError(
                f"{name}: returned {len(values)} gradients, but forward has {count} inputs; return "
                "a tuple with one for each, None where an input has none"
            )
        for position, value in enumerate(values):
            if value is None:
                continue
            if position >= count:
                raise NumgradRuntimeError(
                    f"{name}: returned a gradient at position {position}, but forward has only "
                    f"{count} inputs; leave it out"
                )
            if self.metas[position] is NO_TENSOR:
                raise NumgradRuntimeError(
                    f"{name}: returned a gradient for input {position}, which was no Tensor and so "
                    "has none; return None in its place"
                )

    def _dead_ends(
        self, parts: Sequence[Tensor | None], gradients: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients, with a graph that leads where theirs would, but cannot be walked."""
        node = None if self.ctx._node is None else self.ctx._node()
        edges = [edge for edge in node.edges if edge is not None] if node is not None else []
        edges += [edge_of(grad) for grad in parts if grad is not None and grad.requires_grad]
        call = DeadEnd(self.op.name, gradients, len(edges))
        dead = Node(call, (1 << len(edges)) - 1, tuple(edges), ())
        return [
            None if value is None else Tensor(value._array, value.dtype.kind in "fc", dead, k + 1)
            for k, value in enumerate(gradients)
        ]


ONCE = (
    "is marked once_differentiable, and a second derivative leads through it; write it with "
    "operations on Tensors and take the mark away"
)


class DeadEnd(Call):
    """Node of a second derivative's graph for a backward that is not to be differentiated."""

    __slots__ = ("function", "nout", "out_metas", "reason")
    materializes = False  # pyright: ignore

    def __init__(
        self, function: str, outputs: Sequence[Any], operands: int, reason: str = ONCE
    ) -> None:
        super().__init__(_operation("once_differentiable"), (NO_TENSOR,) * operands, {})
        self.function, self.reason = function, reason
        self.out_metas = tuple(map(meta_of, outputs))
        self.nout = len(self.out_metas)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        raise NumgradRuntimeError(f"{self.function}.backward: {self.reason}")

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        return self.backward(mask, g, ())[0]


def _fits(array: Any, meta: Meta) -> bool:
    """Whether an array has the shape and dtype of an input, as most gradients do."""
    return array.dtype == meta.dtype and array.shape == meta.shape


def as_gradient(function: str, position: int, value: Any, meta: Meta) -> Any:
    """Make a backward's result for an input a Tensor that can be summed to its shape.

    A row-sparse one stays what it is if it has that shape and dtype.

    Raises
    ------
    NumgradTypeError
        If it is no Tensor, array or number.
    NumgradRuntimeError
        If its shape or dtype does not suit the input.
    """
    name = f"{function}.backward"
    if isinstance(value, RowSparseTensor):
        if (value.shape, value.dtype) == (meta.shape, meta.dtype):
            return value
        value = value.to_dense()
    if not isinstance(value, Tensor):
        if not isinstance(value, np.ndarray | np.generic | int | float | complex):
            raise NumgradTypeError(
                f"{name}: returned a {type(value).__name__} as the gradient of input {position}; "
                "return Tensors (arrays, numbers), or None, several of them in a tuple"
            )
        value = constant(value)
    shape = tuple(value.shape)
    lead = len(shape) - len(meta.shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(meta.shape, shape[lead:], strict=True)):
        raise NumgradRuntimeError(
            f"{name}: returned a gradient of shape {shape} for input {position} of shape "
            f"{meta.shape}; it must have that shape, or one that this broadcasts to"
        )
    if value.dtype.kind == "c" and meta.dtype.kind != "c":
        raise NumgradRuntimeError(
            f"{name}: returned a gradient of dtype {value.dtype} for input {position} of dtype "
            f"{meta.dtype}; take its real part"
        )
    return value


# ----------------------------------------------------------------------------- the run of a forward


def run(definition: Definition, args: tuple, keywords: dict[str, Any]) -> tuple[Any, FunctionCtx]:
    """Outputs of the forward, recorded if an input requires grad, and the ctx."""
    recording = state.grad_enabled
    needs: list[bool] = []
    edges: list[Any] = []
    mask = 0
    for a in args:
        # of a tensor that shows no other's memory the attribute is up to date
        need = isinstance(a, Tensor) and (
            (a._requires_grad and a._memory is None) or bool(a.requires_grad)
        )
        if need and recording:
            mask |= 1 << len(needs)
            edges.append(edge_of(a))
        else:
            edges.append(None)
        needs.append(need)
    ctx = definition.context()(definition.__name__, tuple(needs))
    start, before = next_sequence(), state.modes()
    try:
        state.grad_enabled = False
        state.refresh()
        returned = as_tensors(definition.run_forward(ctx, args, keywords), args)
    finally:
        state.put(before)
    outputs = _Outputs(ctx, args, returned)
    if outputs.dirty:
        outputs.count_writes(start)
    if mask and outputs.differentiable:
        outputs.check_rewritable()
        outputs.record(
            FunctionCall(definition, ctx, args, outputs.values, outputs.single), mask, tuple(edges)
        )
    results = outputs.placed()
    ctx._forget()
    return (results[0] if outputs.single else results), ctx


def as_tensors(returned: Any, args: tuple) -> Any:
    """Replace arrays that a forward returned by Tensors."""
    if isinstance(returned, tuple):
        return tuple([_as_tensor(value, args) for value in returned])
    return returned if type(returned) is Tensor else _as_tensor(returned, args)


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
    """Outputs of a forward on their way into the graph: Note [Outputs of a Function]."""

    def __init__(self, ctx: FunctionCtx, args: tuple, returned: Any) -> None:
        self.ctx, self.args = ctx, args
        self.single = not isinstance(returned, tuple)
        self.values: tuple = (returned,) if self.single else returned
        self.differentiable = [
            k
            for k, value in enumerate(self.values)
            if isinstance(value, Tensor)
            and value.dtype.kind in "fc"
            and not (ctx._non_differentiable and _among(value, ctx._non_differentiable))
        ]
        self.dirty = list(filter(self._was_input, ctx._dirty)) if ctx._dirty else ()
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

    def count_writes(self, start: int) -> None:
        """Count a write to each dirty input, unless an operation has done so since ``start``."""
        for tensor in self.dirty:
            version = version_of(tensor)
            if version is not INFERENCE and is_current(version, start):
                mark_written(tensor)

    def check_rewritable(self) -> None:
        """Raise if a dirty input cannot be given a new history."""
        for k in self.differentiable:
            if _among(self.values[k], self.dirty):
                history.check_no_leaf(f"{self.ctx._name}: ctx.mark_dirty", self.values[k])
                history.check_view(f"{self.ctx._name}: ctx.mark_dirty", self.values[k])

    # ------------------------------------------------------------------------- the graph

    def record(self, call: FunctionCall, mask: int, edges: tuple) -> None:
        """Make the node."""
        saved = ()
        if self.ctx._for_backward:
            saved = (SavedTensors(self.ctx._for_backward, self._slots()),)
        self.node = history.record(call, mask, edges, saved)
        self.ctx._node = ref(self.node)

    def _slots(self) -> dict[int, int]:
        """The ``_slot`` of each output that the node's history leads to, by ``id``."""
        slots: dict[int, int] = {}
        for k in self.differentiable:
            value = self.values[k]
            if not _among(value, self.args) or _among(value, self.dirty):
                slots.setdefault(id(value), self.slot(k))
        return slots

    def placed(self) -> tuple:
        """The outputs as the caller gets them."""
        results: list[Any] = []
        for k, value in enumerate(self.values):
            if isinstance(value, Tensor):
                recorded = self.node is not None and k in self.differentiable
                first = next(j for j in range(k + 1) if self.values[j] is value) if k else 0
                if first < k:
                    value = results[first]
                else:
                    value = self._place(value, self.slot(k), recorded)
                if self.node is None and k in self.differentiable:
                    self._let_follow(value)
            results.append(value)
        if self.node is not None and self.node.saved:
            self.node.saved[0].watch(self.node, {self.slot(k): y for k, y in enumerate(results)})
        return tuple(results)

    def _place(self, value: Tensor, slot: int, recorded: bool) -> Tensor:
        dirty = bool(self.dirty) and _among(value, self.dirty)
        if recorded and dirty:
            return self._rewrite(value, slot)
        if not dirty and _among(value, self.args):
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
            history.take_history(target, node, slot)
        else:
            source = (node, slot - 1) if slot else node
            history.rebase(target, source, Meta(target.shape, target.dtype))
        return target


def _view(tensor: Tensor) -> Tensor:
    """A new tensor that shows the same memory."""
    return Tensor(tensor._array, slot=NO_GRAD_VIEW, memory=root(tensor))


def _among(value: Any, tensors: Sequence[Any]) -> bool:
    for tensor in tensors:  # noqa: SIM110 (a generator takes three times as long)
        if value is tensor:
            return True
    return False
