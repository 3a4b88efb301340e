"""Nodes, edges and hooks of what was recorded: ``torch.autograd.graph``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from numgrad.autograd import graph as base
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import face_function, same, unwrap, user_function, wrap

GradientEdge = base.GradientEdge
disable_saved_tensors_hooks = base.disable_saved_tensors_hooks
allow_mutation_on_saved_tensors = base.allow_mutation_on_saved_tensors
save_on_cpu = base.save_on_cpu
increment_version = face_function(base.increment_version)
_NODES: WeakValueDictionary[int, Node] = WeakValueDictionary()
"""Nodes by ``id`` of numgrad's."""


class Node:
    """A node of what was recorded: numgrad's, whose values and hooks are of this room."""

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: Any) -> None:
        self._node = node
        _NODES[id(node)] = self

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._node, name)
        if name == "next_functions":
            return tuple([(node_of(node), number) for node, number in value])
        if name in ("register_hook", "register_prehook"):
            return lambda fn: value(user_function(fn))
        return same(value) if name == "variable" else wrap(value)

    def __call__(self, *gradients: Any) -> Any:
        """Gradients of the operands by those of the results."""
        return wrap(self._node(*map(unwrap, gradients)))

    def __repr__(self) -> str:
        return repr(self._node)

    def _unwrap(self) -> Any:
        return self._node


def node_of(node: Any) -> Any:
    """The node that users see of one of numgrad's, always the same one; None for None."""
    if node is None:
        return None
    known = _NODES.get(id(node))
    return known if known is not None and known._node is node else Node(node)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The node that a gradient of a Tensor goes to, and as which of its outputs."""
    edge = base.get_gradient_edge(unwrap(tensor))
    return GradientEdge(node_of(edge.node), edge.output_nr)


class saved_tensors_hooks(base.saved_tensors_hooks):
    """Say what is kept of Tensors that a backward needs, and how they come back from that."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__(user_function(pack_hook), lambda packed: unwrap(unpack_hook(wrap(packed))))


def register_multi_grad_hook(tensors: Any, fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call a function when the gradients of several Tensors are computed."""
    return base.register_multi_grad_hook(unwrap(tensors), user_function(fn), mode=mode)  # pyright: ignore


__getattr__ = _refuse(globals())
