"""``torch.masked``: reductions of elements that a mask selects; Note [Rows of names] in ``calls``.

What is left out counts as the neutral element of the operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.torch.calls import publish, table
from numgrad.torch.table_elementwise import floating
from numgrad.torch.table_reductions import axes, typed, whole  # noqa: F401 (in the table)


def _limit(x: Any, largest: bool) -> Any:
    if x.dtype.kind == "f":
        return np.inf if largest else -np.inf
    info = np.iinfo(x.dtype)
    return info.max if largest else info.min


def _filled(x: Any, mask: Any, value: Any) -> Any:
    return x if mask is None else ng.where(mask, x, x.dtype.type(value))


def _reduced(function: Any, x: Any, mask: Any, value: Any, dim: Any, keepdim: bool) -> Any:
    return function(_filled(x, mask, value), axes(dim, x), keepdims=keepdim)


def _count(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    ones = np.ones(x.shape, bool) if mask is None else ng.broadcast_to(mask, x.shape)
    return ng.sum(OPS["astype"](ng.asarray(ones), dtype=x.dtype), axes(dim, x), keepdims=keepdim)


def _mean(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    return _reduced(ng.sum, x, mask, 0, dim, keepdim) / _count(x, mask, dim, keepdim)


def _var(x: Any, mask: Any, dim: Any, unbiased: Any, keepdim: bool, root: bool) -> Any:
    x = floating(x)
    distance = x - _mean(x, mask, dim, True)
    squares = _reduced(ng.sum, ng.abs(distance) ** 2, mask, 0, dim, keepdim)
    count = _count(x, mask, dim, keepdim) - (0 if unbiased is False else 1)
    out = squares / ng.maximum(count, 0.0)
    return ng.sqrt(out) if root else out


def _norm(x: Any, mask: Any, order: Any, dim: Any, keepdim: bool) -> Any:
    lowest = np.inf if order == -np.inf or order < 0 else 0
    return ng.vector_norm(
        _filled(floating(x), mask, lowest), ord=order, axis=axes(dim, x), keepdims=keepdim
    )


def _normalize(x: Any, mask: Any, order: Any, dim: Any, eps: Any) -> Any:
    size = ng.maximum(_norm(x, mask, order, dim, True), eps)
    return _filled(x, mask, 0) / size


def _arg(function: Any, x: Any, mask: Any, dim: Any, keepdim: bool, value: Any) -> Any:
    x = _filled(x, mask, value)
    if dim is None:
        out = function(ng.reshape(x, (-1,)), 0)
        return ng.reshape(out, (1,) * x.ndim) if keepdim else out
    return function(x, axes(dim, x), keepdims=keepdim)


def _median(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    from numgrad.torch.table_reductions import median

    x = _filled(floating(x), mask, np.nan)
    return median("nanmedian", x, dim, keepdim)[0]


TABLE = """
[same 1]
sum(input, dim=None, *, keepdim=False, dtype=None, mask=None): _reduced(
    ng.sum, whole(typed(input, dtype)) if dtype is None else typed(input, dtype), mask, 0, dim,
    keepdim)
prod(input, dim=None, *, keepdim=False, dtype=None, mask=None): _reduced(
    ng.prod, whole(typed(input, dtype)) if dtype is None else typed(input, dtype), mask, 1, dim,
    keepdim)
amax(input, dim=None, *, keepdim=False, dtype=None, mask=None): _reduced(
    ng.max, typed(input, dtype), mask, _limit(input, False), dim, keepdim)
amin(input, dim=None, *, keepdim=False, dtype=None, mask=None): _reduced(
    ng.min, typed(input, dtype), mask, _limit(input, True), dim, keepdim)
argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None): _arg(
    ng.argmax, input, mask, dim, keepdim, _limit(input, False))
argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None): _arg(
    ng.argmin, input, mask, dim, keepdim, _limit(input, True))
mean(input, dim=None, *, keepdim=False, dtype=None, mask=None): _mean(
    floating(typed(input, dtype)), mask, dim, keepdim)
median(input, dim=-1, *, keepdim=False, dtype=None, mask=None): _median(
    typed(input, dtype), mask, dim, keepdim)
norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None): _norm(
    typed(input, dtype), mask, ord, dim, keepdim)
var(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): _var(
    typed(input, dtype), mask, dim, unbiased, keepdim, False)
std(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): _var(
    typed(input, dtype), mask, dim, unbiased, keepdim, True)
logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None): _reduced(
    ng.logsumexp, floating(typed(input, dtype)), mask, -np.inf, dim, keepdim)
cumsum(input, dim, *, dtype=None, mask=None): ng.cumsum(
    _filled(whole(typed(input, dtype)), mask, 0), dim)
cumprod(input, dim, *, dtype=None, mask=None): ng.cumprod(
    _filled(whole(typed(input, dtype)), mask, 1), dim)
softmax(input, dim, *, dtype=None, mask=None): ng.softmax(
    _filled(floating(typed(input, dtype)), mask, -np.inf), axis=dim)
log_softmax(input, dim, *, dtype=None, mask=None): OPS["log_softmax"](
    _filled(floating(typed(input, dtype)), mask, -np.inf), axis=dim)
softmin(input, dim, *, dtype=None, mask=None): ng.softmax(
    -_filled(floating(typed(input, dtype)), mask, np.inf), axis=dim)
normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None): _normalize(
    typed(input, dtype), mask, ord, dim, eps)
logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None): ng.logaddexp(
    _filled(floating(typed(input, dtype)), input_mask, -np.inf),
    _filled(floating(typed(other, dtype)), other_mask, -np.inf))
"""
publish("masked", globals(), table("masked", globals(), TABLE))
