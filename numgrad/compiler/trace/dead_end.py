"""A compiled function on the tape, whose gradients could not be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.core.call import Call
from numgrad.core.formula import Meta
from numgrad.core.op import Op
from numgrad.errors import NumgradError


def dead_end(name: str, error: NumgradError) -> Node:
    """The node of a result whose gradients could not be traced: its backward says why."""
    return Node(UntracedGradients(operation_of(name), error), 0, (), ())


class UntracedGradients(Call):
    """The record of a call that has no gradients."""

    __slots__ = ("error",)

    def __init__(self, op: Op, error: NumgradError) -> None:
        super().__init__(op, (), {})
        self.error = error

    @property
    def results(self) -> tuple[Meta, ...]:
        return (NUMBER,)

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        raise type(self.error)(*self.error.args)

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        return self.backward(mask, g, ())[0]


NUMBER = Meta((), np.dtype(np.float64))
"""What the tape knows of a result that is no array."""


def operation_of(name: str) -> Op:
    """The operation that a compiled function is for the tape."""

    def function(*inputs: Any) -> None:
        """A compiled function."""

    op = Op(function, register=False, internal=True)
    op.name = name
    op.auxiliaries = ("kept",)
    return op
