"""Setting random elements to zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.core.abstract import ones
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError
from numgrad.kernels.dropout import BITS, dropout_kernel

_ELEMENT_NS = 0.4  # a random number, read and written


@primitive(
    name="dropout",
    internal=True,
    method=False,
    linear=True,
    lowering="numgrad.nn.dropout.lowering",
)
def _dropout(x, seed, *, p, group=1):
    """The operand with random elements set to zero and the others divided by ``1 - p``.

    Elements are dropped with probability ``p``, ``group`` of them in C order together; a seed
    decides which. The operation is its own gradient.
    """
    if x.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"dropout: the input must be floating or complex, got {x.dtype}; convert with astype"
        )
    x = np.asarray(x, order="C")  # ascontiguousarray gives 0-d an axis
    out = np.empty(x.shape, x.dtype)
    if not out.size:
        return out
    source, to, size = x.ravel(), out.ravel(), out.size
    if x.dtype.kind == "c":  # both parts of a number are dropped together
        part = np.float32 if x.dtype == np.complex64 else np.float64
        source, to, group = source.view(part), to.view(part), 2 * group
    entry = threads.choose(
        partial(dropout_kernel, source.dtype, False),
        partial(dropout_kernel, source.dtype, True),
        size * _ELEMENT_NS,
    )
    scale = 0.0 if p == 1 else 1 / (1 - p)
    entry(source, to, int(seed), round(p * 2**BITS), scale, group)
    return out


_dropout.shape(lambda x, seed, *, p, group: x)
_dropout.no_derivative("seed")
_dropout.vjp(x=lambda g, seed, p, group: _dropout(g, seed, p=p, group=group))
_dropout.calls = [
    (((3, 4),), lambda x: _dropout(x, 1, p=0.4)),
    (((2, 3, 4),), lambda x: _dropout(x, 1, p=0.4, group=4)),
    (((),), lambda x: _dropout(x, 2, p=0.1)),
    (((0, 3),), lambda x: _dropout(x, 1, p=0.5)),
]


@_dropout.batch
def _batched_dropout(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Elements of their own for each example that has a seed; else the same of all."""
    x, seed = operands
    if seed.batched:
        return bind(op, (x.repeated(size), apply("getitem", seed.value, index=0)), params)
    mask = bind(op, (ones(x.shape, x.value.dtype), seed.value), params)
    return apply("multiply", x.value, mask)
