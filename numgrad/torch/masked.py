"""``torch.masked``: reductions of elements that a mask selects; Note [Rows of names] in ``calls``.

What is left out counts as the neutral element of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.torch.calls import FUNCTIONS, pairs, publish, table
from numgrad.torch.table_reductions import median as middle  # noqa: F401 (in the table)
from numgrad.torch.wrapping import unwrap, wrap

_INF = float("inf")
_SAME = (
    "sum=0 prod=1 cumsum=0 cumprod=1 amax=-inf amin=inf argmax=-inf argmin=inf softmax=-inf "
    "log_softmax=-inf"
)
"""Functions of the topmost module, and what elements that are left out count as."""


def _filled(x: Any, mask: Any, value: float) -> Any:
    """A Tensor with a value where a mask does not hold."""
    if mask is None:
        return x
    if x.dtype.kind in "iu" and not np.isfinite(value):
        value = np.iinfo(x.dtype).max if value > 0 else np.iinfo(x.dtype).min
    return ng.where(mask, x, x.dtype.type(value))


def _function(name: str, neutral: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, dtype: Any = None, mask: Any = None, **given: Any) -> Any:
        x = input if dtype is None else input.to(dtype)
        x = wrap(_filled(unwrap(x), unwrap(mask), float(neutral)))
        return FUNCTIONS[name](x, *args, **given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``torch.{name}`` of the elements that ``mask`` selects."
    return function


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
[float 1 dtype axes]
logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None): ng.logsumexp(
    _filled(input, mask, -_INF), dim, keepdims=keepdim)
mean(input, dim=None, *, keepdim=False, dtype=None, mask=None): _mean(input, mask, dim, keepdim)
norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None): _norm(
    input, mask, ord, dim, keepdim)
var(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): _var(
    input, mask, dim, unbiased, keepdim)
std(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None): ng.sqrt(_var(
    input, mask, dim, unbiased, keepdim))
[float 1 dtype axis]
median(input, dim=-1, *, keepdim=False, dtype=None, mask=None): middle(
    "nanmedian", _filled(input, mask, np.nan), dim, keepdim)[0]
softmin(input, dim, *, dtype=None, mask=None): ng.softmax(
    -_filled(input, mask, _INF), axis=dim)
normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None): _filled(
    input, mask, 0) / ng.maximum(_norm(input, mask, ord, dim, True), eps)
[float 2 dtype]
logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None): ng.logaddexp(
    _filled(input, input_mask, -_INF), _filled(other, other_mask, -_INF))
"""
publish("masked", globals(), table("masked", globals(), TABLE))
globals().update({name: _function(name, neutral) for name, neutral in pairs(_SAME)})
