"""One recorded operation of the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from numgrad.autograd.argument import GivenTensor
from numgrad.autograd.conform import conform_tensor
from numgrad.autograd.hooks import RemovableHandle, leaf_hooks, node_extras, register
from numgrad.autograd.saved import Guard, Packed, check_version, pack, stale
from numgrad.autograd.variable import Parameter, Tensor, Version, extra, shared_version
from numgrad.codegen.locks import ACCUMULATORS
from numgrad.core.abstract import ARRAYS, zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.errors import NumgradAttributeError, NumgradRuntimeError, NumgradTypeError

next_sequence = count().__next__
"""Numbers that rise with time: nodes and in-place writes draw from the same series."""

_TORCH_NAMES = {"self": 0, "input": 0, "other": 1}
"""Saved operands by the names PyTorch gives them: their position."""


def mark_written(tensor: Tensor) -> None:
    """Count a write to the memory of ``tensor``."""
    version: Any = tensor._memory
    mark_version(version if type(version) is Version else shared_version(tensor))


def mark_all_written(tensors: Iterable[Tensor]) -> None:
    """Count a write to the memory of each of many tensors."""
    sequence = next_sequence()
    for tensor in tensors:
        version: Any = tensor._memory
        if type(version) is not Version:
            version = shared_version(tensor)
        version.count += 1
        version.last = sequence
        version.recent.append(sequence)


def mark_version(version: Version) -> None:
    """Count a write to memory by its version."""
    version.count += 1
    version.last = next_sequence()
    version.recent.append(version.last)


class Node:
    """A recorded call: what it was, where gradients go, and what its backward needs.

    ``edges`` holds, for each operand, the place its gradient goes to: the ``Node`` that made it,
    a pair ``(node, k)`` for output ``k`` of a node with several, a leaf ``Tensor``, or None.
    ``saved`` is in the order of ``call.saves(mask)``: Tensors for operands (checked by version),
    the bare array for the output (a Tensor would make a cycle), ``Guard`` and ``Packed`` where
    those apply; None once freed. Sequence numbers rise towards the outputs, so a heap of them
    orders a backward.
    """

    __slots__ = ("__weakref__", "call", "edges", "extras", "mask", "outputs", "saved", "sequence")

    def __init__(self, call: Call, mask: int, edges: tuple, saved: tuple | None) -> None:
        self.call = call
        self.mask = mask
        self.edges = edges
        self.saved = saved
        self.sequence = next_sequence()
        self.outputs = None  # {slot: Version} of outputs somebody may write to
        self.extras = None

    def name(self) -> str:
        """The operation's name in CamelCase followed by ``Backward``."""
        name = self.call.op.name
        # a class of the user's has its name already
        return f"{name}Backward" if self.call.opaque else _node_name(name)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple:
        """Where the gradient of each operand goes: ``(node, output_nr)``, or ``(None, 0)``."""
        return tuple(_function(edge) for edge in self.edges)

    def watch_output(self, slot: int, version: Version) -> None:
        """Check ``version`` before this node's saved output is used."""
        if self.outputs is None:
            self.outputs = {}
        self.outputs[slot] = version

    # ------------------------------------------------------------------------------ saved values

    def unpack(self) -> list[Any]:
        """The saved values as arrays and numbers, after checking that they are unchanged."""
        saved = self.saved
        if saved is None:
            raise freed(self)
        values: list[Any] = []
        for value in saved:
            kind = type(value)
            if kind is Tensor or kind is Parameter or kind is GivenTensor:
                if value._memory is not None:
                    check_version(self.name, value, self.sequence)
                value = value._array
            elif kind is tuple:
                value = tuple([v if type(v) is np.ndarray else self._array(v) for v in value])
            elif kind is Guard or kind is Packed:
                value = self._array(value)
            values.append(value)
        if self.outputs is not None:
            self._check_outputs()
        return values

    def _array(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return tuple(self._array(part) for part in value)
        if kind is Packed:
            return value.unpack()
        if kind is Guard:
            value.check(self.name)
            return value.array
        if isinstance(value, Tensor):
            check_version(self.name, value, self.sequence)
            return value._array
        return value

    def unpack_tensors(self) -> dict[str, Any]:
        """The saved values by name, operands as the Tensors they were: for ``create_graph``."""
        if self.saved is None:
            raise freed(self)
        if self.outputs is not None:
            self._check_outputs()
        values = {}
        for name, kept in zip(self.call.saves(self.mask), self.saved, strict=True):
            values[name] = self._tensor(name, kept)
        return values

    def _tensor(self, name: str, kept: Any, slot: int = 0) -> Any:
        """A saved value as a Tensor with its place in the graph; numbers stay numbers."""
        kind = type(kept)
        if kind is tuple:
            return tuple(self._tensor(name, part, k + 1) for k, part in enumerate(kept))
        if isinstance(kept, Tensor):
            check_version(self.name, kept, self.sequence)
            return kept
        if kind is Guard:
            kept.check(self.name)
            return Tensor(kept.array) if kept.tensor is None else kept.tensor
        origin = kept.origin if kind is Packed else None
        array: Any = kept.unpack() if kind is Packed else kept
        if not isinstance(array, ARRAYS):
            return kept
        if name == "y":
            return Tensor(array, array.dtype.kind in "fc", self, slot)
        tensor = _placed(array, origin)
        if kind is Packed and kept.tangents:
            extra(tensor).tangents = kept.tangents
        return tensor

    def _check_outputs(self) -> None:
        if self.outputs and "y" in self.call.saves(self.mask):
            for version in self.outputs.values():
                if version.last > self.sequence:
                    stale(self.name(), "its own result", version, self.sequence)

    def saved_value(self, name: str) -> Any:
        """What the node saved as ``name``; the attribute ``_saved_<name>``."""
        saved, position = self._position(name)
        self._check_outputs()
        return self._tensor(self.call.saves(self.mask)[position], saved[position])

    def raw_saved_value(self, name: str) -> Any:
        """The same before hooks unpack it, to register some; ``_raw_saved_<name>``."""
        saved, position = self._position(name)
        kept = saved[position]
        if type(kept) is tuple:
            return tuple(SavedTensor(self, position, k) for k in range(len(kept)))
        return SavedTensor(self, position)

    @property
    def saved_tensors(self) -> tuple:
        """What a user's Function saved."""
        if not self.call.opaque:
            raise NumgradAttributeError(
                f"{self.name()}: saved_tensors are of Functions; see _saved_<name> for operations"
            )
        return self.call.ctx.saved_tensors  # pyright: ignore

    def _position(self, name: str) -> tuple[tuple, int]:
        """All saved values, and the position of the one called ``name``."""
        saved = self.saved
        if saved is None:
            raise freed(self)
        saves, inputs = self.call.saves(self.mask), self.call.op.inputs
        own = name
        if name not in saves:
            if name == "result":
                own = "y"
            elif _TORCH_NAMES.get(name, 99) < len(inputs):
                own = inputs[_TORCH_NAMES[name]]
        if own not in saves:
            raise NumgradAttributeError(
                f"{self.name()}: saved nothing called {name!r}; it saved "
                f"{', '.join(saves) or 'nothing'}"
            )
        return saved, saves.index(own)

    # ------------------------------------------------------------------------- for a user's eyes

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        return node_extras(self).metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    @property
    def _input_metadata(self) -> tuple[Meta, ...]:
        """Shape and dtype of the gradients this node receives."""
        return self.call.results

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node runs; it may return others."""
        return register(node_extras(self).pre, fn, state.ground.node_hook(fn))

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node ran; it may return others."""
        return register(node_extras(self).post, fn, state.ground.node_hook(fn))

    def __call__(self, *grads: Any) -> Any:
        """Gradients of the operands for gradients of the outputs: this node alone, no hooks."""
        metas = self.call.results
        if len(grads) != len(metas):
            raise NumgradTypeError(
                f"{self.name()}: takes {len(metas)} gradients, one for each output; got "
                f"{len(grads)}"
            )
        tensors = [
            None if g is None else g if isinstance(g, Tensor) else Tensor(np.asarray(g, meta.dtype))
            for g, meta in zip(grads, metas, strict=True)
        ]
        found = self.gradients(tensors)
        return found[0] if len(found) == 1 else tuple(found)

    def gradients(self, parts: list[Any]) -> list[Tensor | None]:
        """Gradients of the operands, with operations on Tensors that are recorded if need be.

        ``parts`` are the gradients of the outputs, None for what did not arrive.
        """
        call = self.call
        if call.out_metas and call.materializes:
            parts = [
                Tensor(zeros(m.shape, m.dtype)) if part is None else part
                for part, m in zip(parts, call.out_metas, strict=True)
            ]
        g: Any = tuple(parts) if call.out_metas else parts[0]
        found = call.gradients(self.mask, g, self.unpack_tensors())
        for k, (edge, value) in enumerate(zip(self.edges, found, strict=True)):
            if edge is None or value is None:
                found[k] = None
            elif not _fits(value, call.metas[k]):
                found[k] = conform_tensor(value, call.metas[k])
        return found


def _fits(value: Any, meta: Meta) -> bool:
    """Whether a gradient is a Tensor of the shape and dtype of its operand, as most are."""
    if type(value) is not Tensor or value._array.dtype != meta.dtype:
        return False
    shape = value._array.shape
    return len(shape) == len(meta.shape) and shape == meta.shape


@cache
def _node_name(operation: str) -> str:
    return "".join(w[:1].upper() + w[1:] for w in operation.split("_")) + "Backward"


def show_saved(names: Iterable[str]) -> None:
    """Give nodes the attributes ``_saved_<name>`` and ``_raw_saved_<name>``.

    They are properties and no ``__getattr__``, with which Python looks up every attribute of a
    node more slowly: a fifth of the time of a backward.
    """
    for name in names:
        if f"_saved_{name}" not in vars(Node):
            setattr(Node, f"_saved_{name}", property(partial(_saved, name)))
            setattr(Node, f"_raw_saved_{name}", property(partial(_raw_saved, name)))


def _saved(name: str, node: Node) -> Any:
    return node.saved_value(name)


def _raw_saved(name: str, node: Node) -> Any:
    return node.raw_saved_value(name)


show_saved((*_TORCH_NAMES, "result", "y", "tensors"))


def _placed(array: np.ndarray, edge: Any) -> Tensor:
    """A Tensor of ``array`` from which gradients go along ``edge``."""
    if edge is None:
        return Tensor(array)
    if isinstance(edge, Tensor):  # gradients must reach the leaf itself
        _, call = OPS["getitem"].run((array,), {"index": (Ellipsis,)})
        return Tensor(array, True, Node(call, 1, (edge,), ()))
    if type(edge) is tuple:
        return Tensor(array, True, edge[0], edge[1] + 1)
    return Tensor(array, True, edge)


def freed(node: Node) -> NumgradRuntimeError:
    """The error of a second backward."""
    return NumgradRuntimeError(
        f"{node.name()}: what its backward needs was freed by an earlier backward; call the first "
        "one with retain_graph=True to go through the graph again"
    )


class SavedTensor:
    """A value that a node saved, before hooks unpack it."""

    __slots__ = ("_node", "_part", "_position")

    def __init__(self, node: Node, position: int, part: int | None = None) -> None:
        self._node, self._position, self._part = node, position, part

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Let a pair of functions keep this value from now on: see ``saved_tensors_hooks``.

        Raises
        ------
        NumgradRuntimeError
            If the value was freed, is a number, or has hooks already.
        """
        node, saved = self._node, self._node.saved
        if saved is None:
            raise freed(node)
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise NumgradTypeError(
                    f"register_hooks: a hook is a function, got {type(hook).__name__}"
                )
        kept = saved[self._position]
        value = kept if self._part is None else kept[self._part]
        if type(value) is Packed:
            raise NumgradRuntimeError(
                f"register_hooks: this value of {node.name()} has hooks already; a value takes one "
                "pair"
            )
        packed: Any = pack(value, (pack_hook, unpack_hook))
        if packed is value:
            raise NumgradRuntimeError(
                f"register_hooks: this value of {node.name()} is the number {value!r}; only "
                "tensors are packed"
            )
        if self._part is not None:
            packed = (*kept[: self._part], packed, *kept[self._part + 1 :])
        node.saved = (*saved[: self._position], packed, *saved[self._position + 1 :])


# -------------------------------------------------------------------------------------- leaves


def _function(edge: Any) -> tuple:
    if edge is None:
        return (None, 0)
    if type(edge) is tuple:
        return edge
    if type(edge) is Node:
        return (edge, 0)
    return (accumulator(edge), 0)


class AccumulateGrad:
    """The end of an edge at a leaf: adds what arrives to ``variable.grad``."""

    __slots__ = ("__weakref__", "_metadata", "variable")
    next_functions: tuple = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self._metadata: dict[Any, Any] = {}

    def name(self) -> str:
        """``AccumulateGrad``."""
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        return self._metadata

    def _sequence_nr(self) -> int:
        return 2**64 - 1  # before any other node that is ready

    @property
    def _input_metadata(self) -> tuple[Meta, ...]:
        array = self.variable._array
        return (Meta(array.shape, array.dtype),)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before accumulation; it may return another gradient."""
        return register(leaf_hooks(self.variable).pre, fn, state.ground.node_hook(fn))

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after accumulation; ``grad_inputs`` is empty."""
        return register(leaf_hooks(self.variable).post, fn)


_accumulators: WeakValueDictionary[int, AccumulateGrad] = WeakValueDictionary()


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's one accumulator, made when it is first asked for."""
    with ACCUMULATORS:
        found = _accumulators.get(id(leaf))
        if found is None:
            found = _accumulators[id(leaf)] = AccumulateGrad(leaf)
        return found


class GraphNode(ABC):
    """What every ``grad_fn`` and accumulator is: a node of the graph of recorded operations."""

    @abstractmethod
    def name(self) -> str:
        """Name of the operation in CamelCase, followed by ``Backward``."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple:
        """Where gradients go from here: pairs of a node (or None) and the number of its output."""

    @property
    @abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""

    @abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node ran."""

    @abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs."""


GraphNode.register(Node)
GraphNode.register(AccumulateGrad)
