"""The binary operators of ``Tensor``, made of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.abstract import AbstractLength
from numgrad.core.op import OPS, Op
from numgrad.operations.sparse.kinds import is_sparse_kind, multiplies_by_star

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


LABELLED = ("pandas", "polars", "xarray")
"""Libraries of labelled arrays, which operators with a Tensor take without their labels."""


def operator(op: Op) -> Callable[..., Any]:
    """``a <op> b``, which leaves the right operand its say if it is no number or array."""
    enter, is_product = op.entry, op.dunder == "matmul"

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is Tensor or kind is float or kind is int or acceptable(other):
            return enter(self, other)
        return enter(self, other) if is_product and is_sparse_kind(kind) else NotImplemented

    return method


def reflected(op: Op) -> Callable[..., Any]:
    """``b <op> a`` for a Tensor ``a`` on the right."""
    enter, is_product, is_star = op.entry, op.dunder == "matmul", op.dunder == "mul"

    def method(self: Tensor, other: Any) -> Any:
        if acceptable(other):
            return enter(other, self)
        if (is_product and is_sparse_kind(type(other))) or (is_star and multiplies_by_star(other)):
            return OPS["matmul"](other, self)
        return NotImplemented

    return method


def acceptable(value: Any) -> bool:
    """Whether a Tensor's operator computes with ``value`` as its other operand."""
    return isinstance(
        value,
        Tensor | np.ndarray | int | float | complex | np.generic | list | tuple | AbstractLength,
    ) or (type(value).__module__.partition(".")[0] in LABELLED and hasattr(value, "__array__"))
