"""``ctx``: what a Function's forward leaves for its backward.

Note [What a ctx holds]
-----------------------
Saved tensors belong to the node, so that a backward frees them as it frees those of operations; the
ctx knows its node by a weak reference. An input is saved as the object it is. Of an output the node
saves the array and the number: the Tensor itself leads back to the node, and such a cycle would
keep both alive until the garbage collector comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from numgrad.autograd.node import Node, freed
from numgrad.autograd.saved import keep, pack
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import check_result_current, shared_version
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError


class SavedTensors:
    """The tensors a Function saved, as its node keeps them: Note [What a ctx holds].

    Parameters
    ----------
    tensors
        Tensors or None.
    slot_of
        Gives the ``_slot`` of a tensor that is an output, for others None.
    """

    __slots__ = ("kept", "slots")

    def __init__(
        self, tensors: Sequence[Tensor | None], slot_of: Callable[[Tensor | None], int | None]
    ) -> None:
        self.slots = tuple(map(slot_of, tensors))
        kept = tuple(
            keep(tensor) if slot is None else tensor._array  # pyright: ignore
            for tensor, slot in zip(tensors, self.slots, strict=True)
        )
        self.kept = pack(kept, state.saved_hooks[-1]) if state.saved_hooks else kept

    def watch(self, node: Node, outputs: dict[int, Any]) -> None:
        """Note the versions of saved outputs, which are given by their ``_slot``."""
        for slot in self.slots:
            if slot is not None and outputs[slot]._memory is not None:
                node.watch_output(slot, shared_version(outputs[slot]))

    def unpack(self, node: Node) -> tuple[Tensor | None, ...]:
        """The tensors with their places in the graph, after checking that they are unchanged."""
        return tuple(self._tensor(node, *pair) for pair in zip(self.kept, self.slots, strict=True))

    def _tensor(self, node: Node, kept: Any, slot: int | None) -> Tensor | None:
        if slot is None:
            return node._tensor("", kept)
        check_result_current(node.name, (node.outputs or {}).get(slot), node.sequence)
        return node._tensor("y", kept, slot)


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

    def __init__(self, name: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._name = name
        self._materializes = True
        self._once = False  # whether the backward that ran can be differentiated no further
        self._in_jvp = False
        self._node: ref[Node] | None = None
        self._for_forward: tuple[Tensor | None, ...] = ()
        self._forget()

    def _forget(self) -> None:
        """Drop what was needed until the call was recorded."""
        self._for_backward: tuple[Tensor | None, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()

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
