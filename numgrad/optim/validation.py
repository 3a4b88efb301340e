"""Checks of constructor arguments, each in the order the optimizers make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor


def check_lr(optimizer: str, lr: Any) -> None:
    """Raise unless a learning rate is a number, or a Tensor of one element, from 0 upwards."""
    check_range(optimizer, "lr", lr)


def check_range(
    optimizer: str,
    name: str,
    value: Any,
    low: float = 0.0,
    high: float = float("inf"),
    *,
    below: bool = False,
) -> None:
    """Raise unless ``low <= value <= high``, or ``< high`` where it must stay ``below``."""
    if isinstance(value, Tensor) and value.size != 1:
        raise NumgradValueError(
            f"{optimizer}: {name} is a Tensor of shape {value.shape}; it must have one element"
        )
    if not (low <= value < high if below else low <= value <= high):
        end = ")" if below else "]"
        bounds = f"at least {low:g}" if high == float("inf") else f"in [{low:g}, {high:g}{end}"
        raise NumgradValueError(f"{optimizer}: {name} is {value}; it must be {bounds}")


def check_betas(optimizer: str, betas: tuple[Any, Any]) -> None:
    """Raise unless both decay rates are in [0, 1)."""
    for number in (0, 1):
        check_range(optimizer, f"betas[{number}]", betas[number], 0.0, 1.0, below=True)


def check_implementation(optimizer: str, *, fused: Any, foreach: Any, differentiable: bool) -> None:
    """Raise if options that choose an implementation contradict each other."""
    for other, chosen in (("differentiable", differentiable), ("foreach", foreach)):
        if fused and chosen:
            raise NumgradRuntimeError(
                f"{optimizer}: fused and {other} exclude each other; leave one of them out"
            )


def check_state(
    where: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype, written: bool = True
) -> None:
    """Raise unless a gradient or state is a Tensor as its parameter needs it.

    ``where`` begins the message: the step, and which parameter it is.
    """
    if not isinstance(value, Tensor):
        raise NumgradTypeError(
            f"{where} has a {name} of type {type(value).__name__}, where a Tensor belongs; put "
            "ng.tensor(...) of it there, or load it with load_state_dict"
        )
    array = value._array
    fits = array.shape == shape or (shape == () and array.size == 1)
    if not fits or array.dtype != dtype:
        raise NumgradRuntimeError(
            f"{where} has a {name} of shape {array.shape} and dtype {array.dtype} where shape "
            f"{shape} and dtype {dtype} belong; was the parameter replaced, or the state of "
            "another one loaded?"
        )
    if written and not array.flags.writeable:
        raise NumgradRuntimeError(
            f"{where} has a {name} in memory that must not be written; put a copy there"
        )
