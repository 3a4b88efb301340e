"""Nodes, edges and hooks of what was recorded: ``torch.autograd.graph``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.autograd import graph as base
from numgrad.torch.wrapping import face_function, unwrap, user_function, wrap

GradientEdge, Node = base.GradientEdge, base.Node
disable_saved_tensors_hooks = base.disable_saved_tensors_hooks
allow_mutation_on_saved_tensors = base.allow_mutation_on_saved_tensors
save_on_cpu = base.save_on_cpu
get_gradient_edge = face_function(base.get_gradient_edge)
increment_version = face_function(base.increment_version)


class saved_tensors_hooks(base.saved_tensors_hooks):
    """Say what is kept of Tensors that a backward needs, and how they come back from that."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__(user_function(pack_hook), lambda packed: unwrap(unpack_hook(wrap(packed))))


def register_multi_grad_hook(tensors: Any, fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call a function when the gradients of several Tensors are computed."""
    return base.register_multi_grad_hook(unwrap(tensors), user_function(fn), mode=mode)  # pyright: ignore
