"""Fitting a gradient to the operand it is for."""

from __future__ import annotations

from math import prod
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.op import OPS


def conform_tensor(value: Any, meta: Meta) -> Tensor:
    """``value`` summed over broadcast axes and converted to ``meta``, by recorded operations."""
    if not isinstance(value, Tensor):
        value = Tensor(state.ground.lift(value, meta.dtype))
    shape = value.shape
    lead = len(shape) - len(meta.shape)
    if lead or shape != meta.shape:
        axes = tuple(range(lead)) + tuple(
            lead + i for i, n in enumerate(meta.shape) if shape and n == 1 and shape[lead + i] != 1
        )
        if axes:
            value = bind(OPS["sum"], (value,), {"axis": axes})
        if value.size == prod(meta.shape):
            value = bind(OPS["reshape"], (value, meta.shape), {})
        else:
            value = bind(OPS["broadcast_to"], (value, meta.shape), {})
    if value.dtype != meta.dtype:
        if value.dtype.kind == "c" and meta.dtype.kind != "c":
            value = bind(OPS["real"], (value,), {})
        value = bind(OPS["astype"], (value, meta.dtype), {})
    return value
