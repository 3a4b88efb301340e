"""Sums and products of everything up to an element, differences, linear recurrences."""

from collections.abc import Sequence
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.axis_sweeps import cumprod_backward_kernel, cumulative_kernel
from numgrad.codegen.dtypes import check_dtype, convert
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.declare import OPS, BatchOperand, Meta, Op, bind, composite, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.recurrence import recurrence_kernel
from numgrad.operations.arrangement import flip, roll
from numgrad.operations.extend import pad_constant
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.shared_rules import along_axis

_ELEMENT_NS = 0.8  # a dependent addition or product


@cache
def _cumulate(
    kind: str, in_dtype: np.dtype, out_dtype: np.dtype, columns: bool, parallel: bool
) -> Any:
    return cumulative_kernel(kind, in_dtype, out_dtype, columns, parallel).entry


@cache
def _cumprod_back(dtype: np.dtype, columns: bool, parallel: bool) -> Any:
    return cumprod_backward_kernel(dtype, columns, parallel).entry


def _launch(kernel: Any, arrays: tuple, shape: tuple[int, ...], axis: int) -> None:
    """Call a kernel along ``axis`` of contiguous arrays of ``shape``."""
    outer, length, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    columns = inner != 1
    sizes = (outer, length, inner) if columns else (outer, length)
    size = outer * length * inner
    if not size:
        return
    entry = threads.choose(
        partial(kernel, columns, False),
        partial(kernel, columns, True),
        # one row cannot be shared
        size * _ELEMENT_NS if outer * inner > 1 else 0.0,
    )
    entry(*[a.ravel() for a in arrays], *sizes)


def _accumulated_dtype(operation: str, x: np.ndarray | Meta, dtype: Any) -> np.dtype:
    if dtype is not None:
        dtype = np.dtype(dtype)
        check_dtype(operation, dtype)
        if x.dtype.kind == "c" and dtype.kind != "c":
            raise NumgradTypeError(
                f"{operation}: a complex operand cannot be added up as {dtype}; use real()"
            )
        return dtype
    check_dtype(operation, x.dtype)
    return np.add.reduce(np.empty(1, x.dtype)).dtype  # small integers widen


def _forward(operation: str, x: np.ndarray, axis: int | None, dtype: Any) -> np.ndarray:
    out_dtype = _accumulated_dtype(operation, x, dtype)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_axis(operation, axis, x.ndim)
    if out_dtype.kind in "iu":
        x = convert(x, out_dtype, copy=False)
    x = np.ascontiguousarray(x)
    out = np.empty(x.shape, out_dtype)
    _launch(partial(_cumulate, operation, x.dtype, out_dtype), (x, out), x.shape, axis)
    return out


def _forward_result(operation: str, x: Meta, axis: int | None, dtype: Any) -> Meta:
    shape = (prod(x.shape),) if axis is None else x.shape
    normalize_axes(operation, 0 if axis is None else axis, len(shape))
    return Meta(shape, _accumulated_dtype(operation, x, dtype))


def _shaped(operation: str, g: Any, meta: Any, axis: int | None) -> tuple[tuple[int, ...], int]:
    """Shape in which the operation ran along an axis, and that axis."""
    if axis is None:
        return (prod(meta.shape),), 0
    return meta.shape, normalize_axes(operation, axis, len(meta.shape))[0]


@primitive(
    ref=np.cumsum,
    linear=True,
    samples=[(((3, 4),), {"axis": 1}), (((3, 4),), {"axis": 0}), (((3, 4),), {})],
)
def cumsum(x, *, axis=None, dtype=None):
    """Sum of all elements up to each one along an axis; without one, of the flattened operand.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis. Bool and small integers become int64.

    Examples
    --------
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.cumsum(x, axis=0)
    tensor([[1., 2.],
            [4., 6.]])
    >>> ng.cumsum(x)
    tensor([ 1.,  3.,  6., 10.])
    """
    return _forward("cumsum", x, axis, dtype)


cumsum.shape(lambda x, *, axis, dtype: _forward_result("cumsum", x, axis, dtype))


def _cumsum_vjp(g, meta_x, axis):
    _, axis = _shaped("cumsum", g, meta_x, axis)
    return reshape(flip(cumsum(flip(g, axis=axis), axis=axis), axis=axis), meta_x.shape)


cumsum.vjp(x=_cumsum_vjp)
cumsum.batch(along_axis)


@cumsum.vjp_kernel
def _cumsum_backward(call, mask, g):
    shape, axis = _shaped("cumsum", g, call.metas[0], call.params["axis"])
    g = np.ascontiguousarray(g)
    out = np.empty(shape, g.dtype)
    _launch(partial(_cumulate, "cumsum_reversed", g.dtype, g.dtype), (g, out), shape, axis)
    return [out.reshape(call.metas[0].shape)]


@primitive(
    ref=np.cumprod, samples=[(((3, 4),), {"axis": 1}), (((3, 4),), {"axis": 0}), (((3, 4),), {})]
)
def cumprod(x, *, axis=None, dtype=None):
    """Product of all elements up to each one along an axis, or of the flattened operand.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis. Bool and small integers become int64.

    Examples
    --------
    >>> x = ng.tensor([2.0, 3.0, 4.0], requires_grad=True)
    >>> y = ng.cumprod(x)
    >>> y.detach()
    tensor([ 2.,  6., 24.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([16., 10.,  6.])
    """
    return _forward("cumprod", x, axis, dtype)


cumprod.shape(lambda x, *, axis, dtype: _forward_result("cumprod", x, axis, dtype))


def _before(y: Any, axis: int, fill: float, reverse: bool = False) -> Any:
    """``y`` moved on by one along an axis, ``fill`` first."""
    if y.shape[axis] == 0:
        return y
    section = slice(1, None) if reverse else slice(None, -1)
    return _led(getitem(y, ((slice(None),) * axis) + (section,)), axis, fill, reverse)


def _led(y: Any, axis: int, fill: float, reverse: bool = False) -> Any:
    """``y`` with one ``fill`` more along an axis, before the others or after them."""
    widths = [(0, 0)] * len(y.shape)
    widths[axis] = (0, 1) if reverse else (1, 0)
    return pad_constant(y, widths=tuple(widths), values=fill)


def _cumprod_vjp(g, x, y, meta_x, axis):
    # Note [Gradient of cumprod] in kernels.cumulative: no division, so right for any zeros
    shape, axis = _shaped("cumprod", g, meta_x, axis)
    following = roll(np.conj(reshape(x, shape)), -1, axis)
    t = linear_recurrence(following, g, axis=axis, reverse=True)
    return reshape(np.conj(_before(y, axis, 1)) * t, meta_x.shape)


cumprod.vjp(x=_cumprod_vjp)
cumprod.batch(along_axis)


@cumprod.vjp_kernel
def _cumprod_backward(call, mask, g, x, y):
    shape, axis = _shaped("cumprod", g, call.metas[0], call.params["axis"])
    g, y = np.ascontiguousarray(g), np.ascontiguousarray(y)
    x = np.ascontiguousarray(x, y.dtype)
    out = np.empty(shape, g.dtype)
    _launch(partial(_cumprod_back, g.dtype), (g, x, y, out), shape, axis)
    return [out.reshape(call.metas[0].shape)]


cumprod.kink(x=([2.0, 0.0, 3.0], [1, 8, 0]))
cumprod.kink(x=([0.0, 0.0, 3.0], [1, 0, 0]))


@composite(ref="numpy.cumulative_sum", smooth=True)
def cumulative_sum(x, axis=None, dtype=None, include_initial=False):
    """``cumsum`` as the Array API has it; ``include_initial`` puts a zero first.

    Returns
    -------
    Tensor
        Of the shape of ``x``, one longer along the axis with ``include_initial``.

    Examples
    --------
    >>> ng.cumulative_sum(ng.tensor([2.0, 3.0, 4.0]), include_initial=True)
    tensor([0., 2., 5., 9.])
    """
    return _cumulative("cumulative_sum", cumsum, x, axis, dtype, include_initial, 0)


@composite(ref="numpy.cumulative_prod")
def cumulative_prod(x, axis=None, dtype=None, include_initial=False):
    """``cumprod`` as the Array API has it; ``include_initial`` puts a one first.

    Returns
    -------
    Tensor
        Of the shape of ``x``, one longer along the axis with ``include_initial``.

    Examples
    --------
    >>> ng.cumulative_prod(ng.tensor([2.0, 3.0, 4.0]), include_initial=True)
    tensor([ 1.,  2.,  6., 24.])
    """
    return _cumulative("cumulative_prod", cumprod, x, axis, dtype, include_initial, 1)


cumulative_prod.kink(x=([2.0, 0.0, 3.0], [1, 8, 0]))


def _cumulative(
    name: str, op: Any, x: Any, axis: int | None, dtype: Any, initial: bool, fill: int
) -> Any:
    x = as_operand(x)
    if axis is None:
        if len(x.shape) != 1:
            raise NumgradValueError(f"{name}: give the axis, the operand has shape {x.shape}")
        axis = 0
    axis = one_axis(name, axis, len(x.shape))
    y = op(x, axis=axis, dtype=dtype)
    return _led(y, axis, fill) if initial else y


@primitive(
    method=False,
    samples=[(((3, 4), (3, 4)), {"axis": 1}), (((3, 4), (3, 4)), {"axis": 0, "reverse": True})],
    smooth=True,
)
def linear_recurrence(a, b, *, axis=-1, reverse=False):
    """``y[k] = a[k] y[k-1] + b[k]`` along an axis, starting with ``y[0] = b[0]``.

    With ``reverse`` it starts at the end. Operands have the same shape and floating dtype.

    Parameters
    ----------
    a
        Factors of what came before.
    b
        Summands.
    reverse
        Whether it starts at the end.

    Returns
    -------
    Tensor
        Of the shape and dtype of the operands.

    Examples
    --------
    >>> a = ng.tensor([0.5, 0.5, 0.5], requires_grad=True)
    >>> y = ng.linear_recurrence(a, ng.tensor([1.0, 1.0, 1.0]))
    >>> y.detach()
    tensor([1.  , 1.5 , 1.75])
    >>> y[-1].backward()
    >>> a.grad
    tensor([0. , 0.5, 1.5])
    """
    dtype = _recurrence_result(a, b, axis=axis, reverse=reverse).dtype
    axis = one_axis("linear_recurrence", axis, a.ndim)
    a, b = np.ascontiguousarray(a, dtype), np.ascontiguousarray(b, dtype)
    out = np.empty(a.shape, dtype)
    if out.size:
        sizes = prod(a.shape[:axis]), a.shape[axis], prod(a.shape[axis + 1 :])
        recurrence_kernel(dtype)(a.ravel(), b.ravel(), out.ravel(), *sizes, reverse)
    return out


@linear_recurrence.shape
def _recurrence_result(a, b, *, axis, reverse):
    if a.ndim != b.ndim or a.shape != b.shape:
        raise NumgradValueError(
            f"linear_recurrence: shapes {a.shape} and {b.shape} differ; they must be equal"
        )
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    check_dtype("linear_recurrence", dtype)
    normalize_axes("linear_recurrence", axis, a.ndim)
    return Meta(a.shape, dtype)


def _recurrence_vjp(g, a, axis, reverse):
    axis %= len(a.shape)
    following = roll(np.conj(a), 1 if reverse else -1, axis)
    return linear_recurrence(following, g, axis=axis, reverse=not reverse)


linear_recurrence.vjp(
    a=lambda g, a, y, axis, reverse: (
        _recurrence_vjp(g, a, axis, reverse) * np.conj(_before(y, axis % len(a.shape), 0, reverse))
    ),
    b=_recurrence_vjp,
)


@linear_recurrence.batch
def _batched_recurrence(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    axis = operands[0].axes(params["axis"])
    return bind(op, tuple([o.repeated(size) for o in operands]), {**params, "axis": axis})


@composite(ref=np.diff, smooth=True)
def diff(x, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis, taken ``n`` times.

    Parameters
    ----------
    n : int
        How often differences are taken.
    prepend : array_like
        What is put before the operand first, along the axis.
    append : array_like
        What is put after it.

    Returns
    -------
    Tensor
        Shorter by ``n`` along the axis.

    Examples
    --------
    >>> x = ng.tensor([1.0, 4.0, 9.0, 16.0])
    >>> ng.diff(x), ng.diff(x, n=2)
    (tensor([3., 5., 7.]), tensor([2., 2.]))
    """
    x = as_operand(x)
    if n < 0:
        raise NumgradValueError(f"diff: n must not be negative, got {n}")
    if n == 0:
        return x
    axis = one_axis("diff", axis, len(x.shape))
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    pieces = [as_operand(piece) for piece in (prepend, x, append) if piece is not None]
    if len(pieces) > 1:
        pieces = [piece if len(piece.shape) else broadcast_to(piece, one) for piece in pieces]
        x = concat(pieces, axis=axis)
    lead = (slice(None),) * axis
    for _ in range(n):
        later, earlier = getitem(x, (*lead, slice(1, None))), getitem(x, (*lead, slice(None, -1)))
        x = OPS["not_equal" if x.dtype == np.bool_ else "subtract"](later, earlier)
    return x
