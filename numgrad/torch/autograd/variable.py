"""``backward`` and ``grad``."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.engine import backward as base
from numgrad.autograd.graph import queue_callback
from numgrad.torch.wrapping import Tensor, face_function

backward = face_function(base.backward)
grad = face_function(base.grad)


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
