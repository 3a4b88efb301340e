"""Checks of constructor arguments, each in the order the optimizers make them."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.tensor import Tensor


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
