"""What functions of "a Tensor or several" are called with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from numgrad.errors import NumgradTypeError
from numgrad.tensor import Tensor

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def listed(name: str, values: Tensors) -> list[Tensor]:
    """The Tensors as a list; ``name`` is the function that was called.

    Raises
    ------
    NumgradTypeError
        If one is no Tensor.
    """
    tensors = [values] if isinstance(values, Tensor) else list(values)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise NumgradTypeError(
                f"{name}: takes a Tensor or several, got one of type {type(tensor).__name__}"
            )
    return tensors
