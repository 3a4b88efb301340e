"""``np.emath``: functions whose result is complex where a real operand has no real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError
from numgrad.operations.shape import as_operand


def _extended(name: str, x: Any, outside: Callable[[np.ndarray], Any]) -> Any:
    """An operand, converted to complex numbers if some real one is ``outside`` of the domain."""
    x = as_operand(x)
    if x.dtype.kind == "c":
        return x
    numbers = state.ground.numbers(x)
    if numbers is None:
        raise NumgradTypeError(
            f"emath.{name}: whether the result is complex depends on numbers that come later in a "
            f"compiled or batched function; use np.{name}, of x.astype(complex) if it is to be so"
        )
    return x.astype(np.result_type(x.dtype, np.complex64)) if np.any(outside(numbers)) else x


def _negative(x: np.ndarray) -> Any:
    return x < 0


def _beyond_one(x: np.ndarray) -> Any:
    return np.abs(x) > 1


def _declare(name: str, outside: Callable[[np.ndarray], Any]) -> None:
    def function(x: Any) -> Any:
        return OPS[name](_extended(name, x, outside))

    function.__name__ = f"emath_{name}"
    function.__doc__ = f"``{name}``, complex where a real operand has no real result."
    composite(ref=getattr(np.emath, name), method=False, internal=True)(function)


for _name in ("sqrt", "log", "log2", "log10"):
    _declare(_name, _negative)
for _name in ("arccos", "arcsin", "arctanh"):
    _declare(_name, _beyond_one)


@composite(ref=np.emath.logn, method=False, internal=True)
def emath_logn(n, x):
    """Logarithm to the base ``n``, complex where a real operand has no real one."""
    log = OPS["log"]
    return log(_extended("log", x, _negative)) / log(_extended("log", n, _negative))


@composite(ref=np.emath.power, method=False, internal=True)
def emath_power(x, p):
    """The first operand raised to the second, complex where a base is negative."""
    p = as_operand(p)
    exponents = state.ground.numbers(p) if p.dtype.kind == "i" else None
    if exponents is not None and np.any(exponents < 0):
        p = p.astype(np.float64)
    return OPS["power"](_extended("power", x, _negative), p)
