"""Every elementwise operation and every operation along an axis, forward and with its backward."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import numgrad as ng
import numgrad.nn
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS

SIZES = (100, 100_000)
DTYPES = ("float64", "float32")


def _takes_floats(op: Elementwise) -> bool:
    try:
        op.plan([np.ones(2) for _ in op.inputs])
    except ng.NumgradError:  # bitwise operations
        return False
    return True


ELEMENTWISE = sorted(
    name for name, op in OPS.items() if isinstance(op, Elementwise) and _takes_floats(op)
)
AXIS = sorted(name for name, op in OPS.items() if isinstance(op, AxisOp))


def _draw(name: str, shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Operands from the operation's domain, which require grad where it has one."""
    op = OPS[name]
    low, high = op.domain
    rng = np.random.default_rng(0)
    wanted = op.differentiable and bool(op.formulas)
    return [
        ng.tensor(rng.uniform(low, high, shape).astype(dtype), requires_grad=wanted)
        for _ in op.inputs
    ]


@cache
def _operands(name: str, shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Operands of a benchmark, with the kernels it needs compiled: Note [State]."""
    operands = _draw(name, shape, dtype)
    _run(name, operands)
    return operands


def _run(name: str, operands: list[Any], **params: Any) -> None:
    y = OPS[name](*operands, **params)
    if y.requires_grad:
        y.backward(y.detach())
        for x in operands:
            x.grad = None


class Elements:
    """An elementwise operation on vectors."""

    params = (ELEMENTWISE, SIZES, DTYPES)
    param_names = ("operation", "n", "dtype")

    def time_record(self, name: str, n: int, dtype: str) -> None:
        OPS[name](*_operands(name, (n,), dtype))

    def time_backward(self, name: str, n: int, dtype: str) -> None:
        _run(name, _operands(name, (n,), dtype))


class Broadcast:
    """A binary operation on a matrix and a row, a column and a number."""

    params = (("add", "multiply", "divide", "power"), ("row", "column", "number"))
    param_names = ("operation", "operand")

    def time_backward(self, name: str, operand: str) -> None:
        _run(name, _broadcast_operands(operand))


@cache
def _broadcast_operands(operand: str) -> list[Any]:
    rng = np.random.default_rng(0)
    shape = {"row": (256,), "column": (256, 1), "number": ()}[operand]
    shapes = ((256, 256), shape)
    return [ng.tensor(rng.uniform(0.5, 1.5, s), requires_grad=True) for s in shapes]


class Axis:
    """An operation along one axis, or all, of a matrix."""

    params = (AXIS, (0, 1, None), (10, 1000))
    param_names = ("operation", "axis", "n")

    def time_forward(self, name: str, axis: int | None, n: int) -> None:
        OPS[name](*_operands(name, (n, n), "float64"), axis=axis)

    def time_backward(self, name: str, axis: int | None, n: int) -> None:
        _run(name, _operands(name, (n, n), "float64"), axis=axis)
