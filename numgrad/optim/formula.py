"""Updates written as one formula, and the three ways of reading it.

Note [One formula]
------------------
An update is a function of the parameter ``p``, its gradient ``g``, state arrays and numbers, to a
dictionary of new values; arrays come positionally, numbers and switches by keyword. It is read on
symbols, which gives the kernel that steps all tensors of a group at once
(``kernels.multi_tensor``), on Tensors for ``differentiable=True``, and on ndarrays in tests.
Switches are plain Python bools: a formula may branch on them, and each combination in use becomes
a kernel. A state array that is not used in a combination is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numgrad.tensors.tensor import Tensor


class Formula:
    """An update formula; see Note [One formula].

    Parameters
    ----------
    function
        ``function(p, g, <state arrays>, *, <numbers and switches>) -> dict`` of new values.
    uniform
        The state arrays that hold one number for the whole tensor, such as ``step``.
    """

    def __init__(self, function: Callable[..., dict[str, Any]], uniform: Sequence[str]) -> None:
        code = function.__code__
        self.function = function
        self.name = function.__name__
        states = code.co_varnames[2 : code.co_argcount]
        self.uniform = tuple(uniform)
        self.elements = tuple(name for name in states if name not in uniform)
        last = code.co_argcount + code.co_kwonlyargcount
        self.keywords = code.co_varnames[code.co_argcount : last]
        self.__doc__ = function.__doc__

    def __call__(self, *arrays: Any, **numbers: Any) -> dict[str, Any]:
        return self.function(*arrays, **numbers)

    def __repr__(self) -> str:
        return f"<update formula {self.name}>"


def formula(*uniform: str) -> Callable[[Callable[..., dict[str, Any]]], Formula]:
    """Make a function an update formula; ``uniform`` names its states of one number."""
    return partial(Formula, uniform=uniform)


class Settings(NamedTuple):
    """Numbers, switches and states of a group."""

    numbers: dict[str, Any]
    """Python numbers or Tensors of one element, by name; they change without a new kernel."""
    switches: tuple[tuple[str, bool], ...]
    states: tuple[str, ...]
    """The state arrays in use."""


def as_float(value: Any) -> float:
    """A hyper-parameter, which may be a Tensor of one element, as a number."""
    return float(value.item() if isinstance(value, Tensor) else value)


def uniform_state(value: float) -> Tensor:
    """A state of one number, such as a count of steps: a float64 of no dimensions."""
    return Tensor(np.array(float(value)))
