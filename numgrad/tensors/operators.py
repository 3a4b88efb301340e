"""The binary operators of ``Tensor``, made of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.abstract import AbstractLength
from numgrad.core.op import Op

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


LABELLED = ("pandas", "polars", "xarray")
"""Libraries of labelled arrays, which operators with a Tensor take without their labels."""


def operator(op: Op) -> Callable[..., Any]:
    """``a <op> b``, which leaves the right operand its say if it is no number or array."""
    enter = op.entry

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is Tensor or kind is float or kind is int or acceptable(other):
            return enter(self, other)
        return NotImplemented

    return method


def reflected(op: Op) -> Callable[..., Any]:
    """``b <op> a`` for a Tensor ``a`` on the right."""
    enter = op.entry

    def method(self: Tensor, other: Any) -> Any:
        return enter(other, self) if acceptable(other) else NotImplemented

    return method


def acceptable(value: Any) -> bool:
    """Whether a Tensor's operator computes with ``value`` as its other operand."""
    return isinstance(
        value,
        Tensor | np.ndarray | int | float | complex | np.generic | list | tuple | AbstractLength,
    ) or (type(value).__module__.partition(".")[0] in LABELLED and hasattr(value, "__array__"))
