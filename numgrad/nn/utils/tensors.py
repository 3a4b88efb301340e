"""What functions of "a Tensor or several" are called with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from numgrad.errors import NumgradTypeError
from numgrad.tensors.tensor import Tensor

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def listed(name: str, values: Any, kinds: Any = Tensor) -> list[Any]:
    """The Tensors, or what else is of ``kinds``, as a list; ``name`` is the function's.

    Raises
    ------
    NumgradTypeError
        If one is of another kind.
    """
    tensors = [values] if isinstance(values, kinds) else list(values)
    for tensor in tensors:
        if not isinstance(tensor, kinds):
            raise NumgradTypeError(
                f"{name}: takes a Tensor or several, got one of type {type(tensor).__name__}"
            )
    return tensors
