"""Places of extreme elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.argreduce import argreduce_kernel
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.axis import one_axis
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.op import Op
from numgrad.errors import NumgradValueError
from numgrad.operations.batch_rules import along_axis

_ELEMENT_NS = 0.5


@cache
def _kernel(kind: str, dtype: np.dtype, columns: bool, parallel: bool) -> Any:
    return argreduce_kernel(kind, dtype, columns, parallel).entry


def _search(kind: str, x: np.ndarray, axis: int | None, keepdims: bool) -> np.ndarray:
    check_dtype(kind, x.dtype)
    shape = x.shape
    if axis is None:
        kept = (1,) * x.ndim if keepdims else ()
        sizes = (1, x.size, 1)
    else:
        axis = one_axis(kind, axis, x.ndim)
        kept = shape[:axis] + ((1,) if keepdims else ()) + shape[axis + 1 :]
        sizes = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    out = np.empty(kept, np.int64)
    if not out.size:
        return out
    if not sizes[1]:
        raise NumgradValueError(
            f"{kind}: the searched axis of an operand of shape {shape} has no elements"
        )
    columns = sizes[2] != 1
    entry = threads.choose(
        partial(_kernel, kind, x.dtype, columns, False),
        partial(_kernel, kind, x.dtype, columns, True),
        x.size * _ELEMENT_NS if out.size > 1 else 0.0,  # one row cannot be shared
    )
    entry(np.ascontiguousarray(x).ravel(), out.ravel(), *(sizes if columns else sizes[:2]))
    return out


@primitive(ref=np.argmax, differentiable=False)
def argmax(x, *, axis=None, keepdims=False):
    """Index of the first largest element along an axis, or in the flattened operand.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.argmax(ng.tensor([[1.0, 3.0, 3.0], [4.0, 0.0, 2.0]]), axis=1)
    tensor([1, 0])
    """
    return _search("argmax", x, axis, keepdims)


@primitive(ref=np.argmin, differentiable=False)
def argmin(x, *, axis=None, keepdims=False):
    """Index of the first smallest element along an axis, or in the flattened operand.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.argmin(ng.tensor([[1.0, 3.0, 1.0], [4.0, 0.0, 2.0]]), axis=1)
    tensor([0, 1])
    """
    return _search("argmin", x, axis, keepdims)


def _search_result(kind: str, x: Meta, axis: int | None, keepdims: bool) -> Meta:
    if axis is None:
        return Meta((1,) * x.ndim if keepdims else (), np.dtype(np.int64))
    axis = one_axis(kind, axis, x.ndim)
    kept = (1,) if keepdims else ()
    return Meta(x.shape[:axis] + kept + x.shape[axis + 1 :], np.dtype(np.int64))


argmax.shape(lambda x, *, axis, keepdims: _search_result("argmax", x, axis, keepdims))
argmin.shape(lambda x, *, axis, keepdims: _search_result("argmin", x, axis, keepdims))


@argmax.batch
@argmin.batch
def _batched_search(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    out = along_axis(op, operands, params, size)
    if params["axis"] is None and params["keepdims"]:
        return apply("reshape", out, shape=(size, *(1,) * operands[0].ndim))
    return out
