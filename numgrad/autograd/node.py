"""One recorded operation of the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache, partial
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from numgrad.autograd.argument import GivenTensor
from numgrad.autograd.hooks import RemovableHandle, leaf_hooks, node_extras, register
from numgrad.autograd.saved import Guard, Packed, pack
from numgrad.autograd.variable import Parameter, Tensor, extra
from numgrad.autograd.versions import Version, check_current, check_result_current, next_sequence
from numgrad.codegen.locks import ACCUMULATORS
from numgrad.core.abstract import ARRAYS, zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.errors import NumgradAttributeError, NumgradRuntimeError, NumgradTypeError

_TORCH_NAMES = {"self": 0, "input": 0, "other": 1}
"""Saved operands by the names PyTorch gives them: their position."""


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
                    check_current(self.name, value, self.sequence)
                value = value._array
            elif kind is tuple:
                value = tuple([v if type(v) is np.ndarray else self._array(v) for v in value])
            elif kind is Guard or kind is Packed or isinstance(value, Tensor):
                value = self._array(value)
            values.append(value)
        if self.outputs is not None:
            self._check_outputs()
        return values

    def _array(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return tuple(self._array(item) for item in value)
        if kind is Packed:
            return value.unpack()
        if kind is Guard:
            value.check(self.name)
            return value.array
        if isinstance(value, Tensor):
            check_current(self.name, value, self.sequence)
            return value._array
        return value

    def unpack_tensors(self) -> dict[str, Any]:
        """The saved values by name, operands as the Tensors they were: for ``create_graph``."""
        if self.saved is None:
            raise freed(self)
        if self.outputs is not None:
            self._check_outputs()
        values = {}
        for name, value in zip(self.call.saves(self.mask), self.saved, strict=True):
            values[name] = tensor = self._tensor(name, value)
            if isinstance(tensor, Tensor) and not tensor._requires_grad:
                self._check_attached(name, tensor)
        return values

    def _check_attached(self, name: str, tensor: Tensor) -> None:
        """Raise for a saved operand that was cut off from its graph since: it looks constant."""
        inputs = self.call.op.inputs
        edge = self.edges[inputs.index(name)] if name in inputs else None
        if edge is not None and not isinstance(edge, Tensor):
            raise detached(self, tensor)

    def _tensor(self, name: str, value: Any, slot: int = 0) -> Any:
        """A saved value as a Tensor with its place in the graph; numbers stay numbers."""
        kind = type(value)
        if kind is tuple:
            return tuple(self._tensor(name, item, k + 1) for k, item in enumerate(value))
        if isinstance(value, Tensor):
            check_current(self.name, value, self.sequence)
            return value
        if kind is Guard:
            value.check(self.name)
            return Tensor(value.array) if value.tensor is None else value.tensor
        origin = value.origin if kind is Packed else None
        array: Any = value.unpack() if kind is Packed else value
        if not isinstance(array, ARRAYS):
            return value
        if name == "y":
            if self.outputs is None or slot not in self.outputs:
                self.watch_output(slot, Version())
            version = self.outputs[slot]  # pyright: ignore
            return Tensor(array, array.dtype.kind in "fc", self, slot, version)
        tensor = _placed(array, origin)
        if kind is Packed and value.tangents:
            extra(tensor).tangents = value.tangents
        return tensor

    def _check_outputs(self) -> None:
        if self.outputs and "y" in self.call.saves(self.mask):
            for version in self.outputs.values():
                check_result_current(self.name, version, self.sequence)

    def saved_value(self, name: str) -> Any:
        """The value saved as ``name``; the attribute ``_saved_<name>``."""
        saved, position = self._position(name)
        self._check_outputs()
        return self._tensor(self.call.saves(self.mask)[position], saved[position])

    def raw_saved_value(self, name: str) -> Any:
        """The same before hooks unpack it, to register some; ``_raw_saved_<name>``."""
        saved, position = self._position(name)
        value = saved[position]
        if type(value) is tuple:
            return tuple(SavedTensor(self, position, k) for k in range(len(value)))
        return SavedTensor(self, position)

    @property
    def saved_tensors(self) -> tuple:
        """Tensors that a user's Function saved."""
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
        gradients = self.gradients(tensors)
        return gradients[0] if len(gradients) == 1 else tuple(gradients)

    def gradients(self, parts: list[Any]) -> list[Tensor | None]:
        """Gradients of the operands, with operations on Tensors that are recorded if need be.

        ``parts`` are the gradients of the outputs, None for what did not arrive.
        """
        call = self.call
        if call.out_metas and call.materializes:
            parts = [
                Tensor(zeros(m.shape, m.dtype)) if grad is None else grad
                for grad, m in zip(parts, call.out_metas, strict=True)
            ]
        g: Any = tuple(parts) if call.out_metas else parts[0]
        gradients = call.gradients(self.mask, g, self.unpack_tensors())
        for k, (edge, value) in enumerate(zip(self.edges, gradients, strict=True)):
            if edge is None or value is None:
                gradients[k] = None
            elif not _fits(value, call.metas[k]):
                gradients[k] = conform_tensor(value, call.metas[k])
        return gradients


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
        f"{node.name()}: what its backward needs was freed by an earlier backward; Specify "
        "retain_graph=True when calling that to go through the graph again"
    )


def detached(node: Node, tensor: Tensor) -> NumgradRuntimeError:
    """The error of a second derivative by what was cut off from its graph."""
    return NumgradRuntimeError(
        f"{node.name()}: the derivative of its backward needs the operand of shape "
        f"{tensor._array.shape} with its history, and detach_() took that away since; use "
        "detach() for a constant beside it"
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
        saved_value = saved[self._position]
        value = saved_value if self._part is None else saved_value[self._part]
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
            packed = (*saved_value[: self._part], packed, *saved_value[self._part + 1 :])
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
        node = _accumulators.get(id(leaf))
        if node is None:
            node = _accumulators[id(leaf)] = AccumulateGrad(leaf)
        return node


class GraphNode(ABC):
    """A node of the graph of recorded operations: every ``grad_fn`` and accumulator."""

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


def conform_tensor(value: Any, meta: Meta) -> Tensor:
    """``value`` summed over broadcast axes and converted to ``meta``, by recorded operations."""
    if not isinstance(value, Tensor):
        value = Tensor(state.ground.lift(value, meta.dtype))
    shape = value.shape
    lead = len(shape) - len(meta.shape)
    if lead or shape != meta.shape:
        axes = tuple(range(lead)) + tuple(
            lead + i for i, n in enumerate(meta.shape) if shape and n == 1 and shape[lead + i] != 1
        )
        if axes:
            value = bind(OPS["sum"], (value,), {"axis": axes})
        if value.size == prod(meta.shape):
            value = bind(OPS["reshape"], (value, meta.shape), {})
        else:
            value = bind(OPS["broadcast_to"], (value, meta.shape), {})
    if value.dtype != meta.dtype:
        if value.dtype.kind == "c" and meta.dtype.kind != "c":
            value = bind(OPS["real"], (value,), {})
        value = bind(OPS["astype"], (value, meta.dtype), {})
    return value
