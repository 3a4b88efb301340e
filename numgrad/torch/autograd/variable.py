"""``backward`` and ``grad``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numgrad.autograd.engine import backward as base
from numgrad.autograd.graph import queue_callback
from numgrad.torch.wrapping import Tensor, face_function

_backward, _grad = face_function(base.backward), face_function(base.grad)


def _listed(values: Any) -> Any:
    """Several Tensors as a list, also where an iterator gives them."""
    return list(values) if isinstance(values, Iterator) else values


def backward(tensors: Any, *args: Any, inputs: Any = None, **kwargs: Any) -> None:
    """Add the gradients of Tensors to ``grad`` of leaves: ``numgrad.autograd.backward``."""
    _backward(_listed(tensors), *args, inputs=_listed(inputs), **kwargs)


def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The gradients of outputs by inputs: ``numgrad.autograd.grad``."""
    return _grad(_listed(outputs), _listed(inputs), *args, **kwargs)


class set_multithreading_enabled:
    """Remember whether backwards may use threads: each runs in the thread that calls it."""

    _chosen = True

    def __init__(self, mode: bool) -> None:
        self._before = set_multithreading_enabled._chosen
        set_multithreading_enabled._chosen = bool(mode)

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None:
        set_multithreading_enabled._chosen = self._before


def is_multithreading_enabled() -> bool:
    """The setting of ``set_multithreading_enabled``."""
    return set_multithreading_enabled._chosen


def is_inference(input: Tensor) -> bool:
    """Whether a Tensor was made in inference mode."""
    return bool(input.is_inference())  # pyright: ignore[reportAttributeAccessIssue]


class _IsTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class _Engine:
    """What walks a graph backwards."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_IsTensor):
    """A Tensor, as programs of PyTorch before 0.4 wrote it."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:  # noqa: D102
        return data.detach().requires_grad_(requires_grad)
