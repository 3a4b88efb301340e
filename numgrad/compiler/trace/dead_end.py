"""A compiled function on the tape, whose gradients could not be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.core.formula import Meta
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.errors import NumgradError


class DeadEnds:
    """Makes Tensors of results whose gradients could not be traced: their backward says why.

    They depend on every operand that requires grad, for all that is known.
    """

    def __init__(self, name: str, error: NumgradError) -> None:
        self.op, self.error = operation_of(name), error

    def __call__(self, array: Any, *operands: Tensor) -> Tensor:
        operands = tuple(t for t in operands if t._requires_grad)
        metas = tuple(Meta(t._array.shape, t._array.dtype) for t in operands)
        call = UntracedGradients(self.op, metas, self.error)
        edges = tuple(map(edge_of, operands))
        return Tensor(array, True, Node(call, (1 << len(edges)) - 1, edges, ()))


class UntracedGradients(Call):
    """The record of a call that has no gradients."""

    __slots__ = ("error",)

    def __init__(self, op: Op, metas: tuple[Meta, ...], error: NumgradError) -> None:
        super().__init__(op, metas, {})
        self.error = error

    @property
    def results(self) -> tuple[Meta, ...]:
        return (NUMBER,)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        raise type(self.error)(*self.error.args)

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        return self.backward(mask, g, ())[0]


NUMBER = Meta((), np.dtype(np.float64))
"""Shape and dtype for the tape of a result that is no array."""


def operation_of(name: str) -> Op:
    """The operation that a compiled function is for the tape."""

    def function(*inputs: Any) -> None:
        """A compiled function."""

    op = Op(function, register=False, internal=True)
    op.name = name
    op.auxiliaries = ("kept",)
    return op
