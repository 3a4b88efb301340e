"""``torch.masked``: reductions of elements that a mask selects; Note [Rows of names] in ``calls``.

What is left out counts as the neutral element of the operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.torch.calls import publish, table
from numgrad.torch.table_reductions import median as middle  # noqa: F401 (in the table)

_INF = float("inf")
_NEUTRAL = {
    "sum": 0, "prod": 1, "cumsum": 0, "cumprod": 1, "max": -_INF, "min": _INF, "argmax": -_INF,
    "argmin": _INF, "logsumexp": -_INF, "softmax": -_INF, "log_softmax": -_INF, "logaddexp": -_INF,
    "softmin": _INF, "median": float("nan"),
}  # fmt: skip
"""What elements that are left out count as."""


def _filled(x: Any, mask: Any, value: Any) -> Any:
    """A Tensor with a value, or the one of an operation, where a mask does not hold."""
    if mask is None:
        return x
    value = _NEUTRAL.get(value, value)
    if x.dtype.kind in "iu" and not np.isfinite(value):
        value = np.iinfo(x.dtype).max if value > 0 else np.iinfo(x.dtype).min
    return ng.where(mask, x, x.dtype.type(value))


def _sum(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    return ng.sum(_filled(x, mask, 0), dim, keepdims=keepdim)


def _mean(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    return _sum(x, mask, dim, keepdim) / _sum(ng.ones_like(x), mask, dim, keepdim)


def _var(x: Any, mask: Any, dim: Any, unbiased: Any, keepdim: bool) -> Any:
    squares = _sum(ng.abs(x - _mean(x, mask, dim, True)) ** 2, mask, dim, keepdim)
    count = _sum(ng.ones_like(x), mask, dim, keepdim) - (0 if unbiased is False else 1)
    return squares / ng.maximum(count, 0.0)


def _norm(x: Any, mask: Any, order: Any, dim: Any, keepdim: bool) -> Any:
    return ng.vector_norm(
        _filled(x, mask, _INF if order < 0 else 0), ord=order, axis=dim, keepdims=keepdim
    )


TABLE = """
[whole 1 dtype axes]
{sum prod}(input, dim=None, *, keepdim=False, dtype=None, mask=None): ng.@(
    _filled(input, mask, "@"), dim, keepdims=keepdim)
[whole 1 dtype axis]
{cumsum cumprod}(input, dim, *, dtype=None, mask=None): ng.@(_filled(input, mask, "@"), dim)
[same 1 dtype axes]
{amax=max amin=min}(input, dim=None, *, keepdim=False, dtype=None, mask=None): ng.@(
    _filled(input, mask, "@"), dim, keepdims=keepdim)
[same 1 dtype axis]
{argmax argmin}(input, dim=None, *, keepdim=False, dtype=None, mask=None): ng.@(
    _filled(input, mask, "@"), dim, keepdims=keepdim)
[float 1 dtype axes]
logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None): ng.logsumexp(
    _filled(input, mask, "logsumexp"), dim, keepdims=keepdim)
mean(input, dim=None, *, keepdim=False, dtype=None, mask=None): _mean(input, mask, dim, keepdim)
norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None): _norm(
    input, mask, ord, dim, keepdim)
var(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): _var(
    input, mask, dim, unbiased, keepdim)
std(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): ng.sqrt(_var(
    input, mask, dim, unbiased, keepdim))
[float 1 dtype axis]
median(input, dim=-1, *, keepdim=False, dtype=None, mask=None): middle(
    "nanmedian", _filled(input, mask, "median"), dim, keepdim)[0]
{softmax log_softmax}(input, dim, *, dtype=None, mask=None): ng.@(
    _filled(input, mask, "@"), axis=dim)
softmin(input, dim, *, dtype=None, mask=None): ng.softmax(
    -_filled(input, mask, "softmin"), axis=dim)
normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None): _filled(
    input, mask, 0) / ng.maximum(_norm(input, mask, ord, dim, True), eps)
[float 2 dtype]
logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None): ng.logaddexp(
    _filled(input, input_mask, "logaddexp"), _filled(other, other_mask, "logaddexp"))
"""
publish("masked", globals(), table("masked", globals(), TABLE))
