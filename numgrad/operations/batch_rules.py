"""Rules of batching that operations of several files share, and what rules are made with.

Note [Rules of batching] in ``core.batching`` says what a rule is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, with_parameters
from numgrad.core.interpreter import bind
from numgrad.core.op import Op


def integers(values: Any) -> tuple[int, ...]:
    """Lengths or axes, which may be written as one number or as any sequence."""
    return tuple(np.atleast_1d(values).tolist())


def along_axis(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """The rule where no axis means the elements of an example, flattened."""
    (x,) = operands
    if params["axis"] is None:
        return bind(op, (x.flat().value,), {**params, "axis": 1})
    return bind(op, (x.value,), {**params, "axis": x.axes(params["axis"])})


@with_parameters
def of_matrices(x: BatchOperand, size: int, **params: Any) -> Any:
    """The rule of an operation on the last two axes."""
    return {} if x.ndim >= 2 else NotImplemented
