"""Sample calls of operations: pairs of operand shapes and a function of these operands.

They say how an operation is called whose operands cannot be drawn without more (indices, masks,
matrices far from singular), or that takes parameters.
"""

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.core.op import Op
from tests.operations.calls import (
    arrays,
    fourier,
    images,
    layers,
    linear_algebra,
    signal,
    special_functions,
)

ROOMS = (arrays, fourier, images, layers, linear_algebra, signal, special_functions)
CALLS: dict[Op, Sequence[tuple[tuple, Callable[..., Any]]]] = {}
for _room in ROOMS:
    CALLS |= _room.CALLS


def calls_of(op: Op) -> Sequence[tuple[tuple, Callable[..., Any]]]:
    """The sample calls of an operation, if it has any."""
    return CALLS.get(op, ())
