"""Nested sequences with Tensors in them, which are operands like the array they would make."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS


def holds_tensors(sequence: list | tuple) -> bool:
    """Whether there is a Tensor, or the length of an axis, in a sequence or those in it."""
    return any(
        isinstance(part, AbstractLength)
        or hasattr(part, "grad_fn")
        or (isinstance(part, list | tuple) and holds_tensors(part))
        for part in sequence
    )


def stacked(sequence: list | tuple) -> Any:
    """A nested sequence as one Tensor, through which gradients flow."""
    parts = []
    for part in sequence:
        if isinstance(part, list | tuple):
            part = stacked(part) if holds_tensors(part) else np.asarray(part)
        parts.append(part)
    return bind(OPS["stack"], tuple(parts), {})
