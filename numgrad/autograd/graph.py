"""The graph of recorded operations: nodes, edges, hooks for several tensors, saved tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numgrad.autograd.engine.task import GradientEdge
from numgrad.autograd.hooks import RemovableHandle, queue_callback, register_multi_grad_hook
from numgrad.autograd.node import GraphNode as Node, SavedTensor, accumulator
from numgrad.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import mark_written
from numgrad.core.namespaces import absent
from numgrad.errors import NumgradRuntimeError, NumgradTypeError

__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "SavedTensor", "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "queue_callback", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


__getattr__ = absent(
    __name__,
    __all__,
    {
        "region_activation_memory_budget": "ng.checkpoint says what is computed again",
        "set_*_stream*": "a CPU has no streams",
    },
)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where in the graph the gradient of a tensor arrives; it may stand for the tensor there.

    Raises
    ------
    NumgradRuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> edge = ng.autograd.graph.get_gradient_edge(y)
    >>> ng.autograd.grad(y * y, edge)
    (tensor(12.),)
    """
    if not isinstance(tensor, Tensor):
        raise NumgradTypeError(f"get_gradient_edge: takes a Tensor, got a {type(tensor).__name__}")
    if not tensor.requires_grad:
        raise NumgradRuntimeError(
            f"get_gradient_edge: the tensor of shape {tensor.shape} does not require grad, so no "
            "gradient arrives anywhere; set requires_grad=True first"
        )
    node = tensor.grad_fn
    return GradientEdge(accumulator(tensor) if node is None else node, tensor.output_nr, node)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to the memory of a tensor, or of several, that numgrad did not see.

    Raises
    ------
    NumgradTypeError
        If it is no Tensor, or something else is among them; then nothing was counted.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.zeros(2)
    >>> ng.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    several = isinstance(tensor, Iterable) and not isinstance(tensor, Tensor)
    tensors: list[Any] = list(tensor) if several else [tensor]
    for each in tensors:
        if not isinstance(each, Tensor):
            raise NumgradTypeError(
                f"increment_version: takes Tensors, one or several, got a {type(each).__name__}"
            )
    for each in tensors:
        mark_written(each)
