"""Extremes and logarithms of sums of everything up to an element."""

from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import Meta, composite, one_axis, primitive
from numgrad.errors import NumgradTypeError
from numgrad.operations.arrangement import roll
from numgrad.operations.cumulative import linear_recurrence
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.shared_rules import along_axis
from numgrad.operations.sorting import ordered_shape, plain_axis
from numgrad.operations.take import gather_along_backward, take_along_axis


@primitive(internal=True, method=False, differentiable=False)
def running_places(x, *, axis, largest):
    """Index of the last extreme element up to each one; a NaN is more extreme than any number."""
    check_dtype("running_places", x.dtype)
    y = (np.maximum if largest else np.minimum).accumulate(x, axis=axis)
    counting = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    is_extreme = x == y
    if x.dtype.kind in "fc":
        is_extreme |= np.isnan(x)
    return np.maximum.accumulate(np.where(is_extreme, counting, 0), axis=axis)


running_places.shape(lambda x, *, axis, largest: Meta(x.shape, np.dtype(np.int64)))
running_places.batch(along_axis)


@primitive(internal=True, method=False)
def running_extremes(x, *, axis, largest):
    """Most extreme element up to each one; the gradient goes to where ``running_places`` says."""
    return (np.maximum if largest else np.minimum).accumulate(x, axis=axis)


running_extremes.shape(lambda x, *, axis, largest: Meta(x.shape, x.dtype))
running_extremes.batch(along_axis)


def _running_vjp(g, x, axis, largest):
    positions = running_places(x, axis=axis, largest=largest)
    return gather_along_backward(g, positions, shape=tuple(x.shape), axis=axis)


def _running_jvp(t_x, x, axis, largest):
    return take_along_axis(t_x, running_places(x, axis=axis, largest=largest), axis=axis)


running_extremes.vjp(x=_running_vjp).jvp(_running_jvp)
running_extremes.kink(
    params={"axis": 0, "largest": True}, x=([1.0, 1.0, np.nan, 0.0], [1, 1, 2, 0])
)


class RunningExtremes(NamedTuple):
    """Extremes up to each element, and where they are."""

    values: Any
    indices: Any


def _extremes(name: str, x: Any, axis: Any, return_indices: bool, largest: bool) -> Any:
    x = as_operand(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = one_axis(name, axis, len(x.shape))
    values = running_extremes(x, axis=axis, largest=largest)
    if not return_indices:
        return values
    return RunningExtremes(values, running_places(x, axis=axis, largest=largest))


@composite()
def cummax(x, axis=None, return_indices=False):
    """Largest of all elements up to each one along an axis, NaN from a NaN on.

    As ``np.maximum.accumulate``; the gradient goes to the last of equal elements. PyTorch's returns
    the indices always.

    Parameters
    ----------
    return_indices : bool
        Whether to return the indices of these elements too.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis; with ``return_indices`` ``values`` and ``indices``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 3.0, 2.0, 4.0], requires_grad=True)
    >>> y = ng.cummax(x)
    >>> y.detach()
    tensor([1., 3., 3., 4.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 2., 0., 1.])
    """
    return _extremes("cummax", x, axis, return_indices, True)


@composite()
def cummin(x, axis=None, return_indices=False):
    """Smallest of all elements up to each one along an axis, NaN from a NaN on.

    As ``np.minimum.accumulate``; the gradient goes to the last of equal elements. PyTorch's returns
    the indices always.

    Parameters
    ----------
    return_indices : bool
        Whether to return the indices of these elements too.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis; with ``return_indices`` ``values`` and ``indices``.

    Examples
    --------
    >>> ng.cummin(ng.tensor([2.0, 3.0, 1.0]), return_indices=True)
    RunningExtremes(values=tensor([2., 2., 1.]), indices=tensor([0, 0, 2]))
    """
    return _extremes("cummin", x, axis, return_indices, False)


cummax.kink(x=([1.0, 1.0, 0.0], [1, 2, 0]))
cummin.kink(x=([1.0, 1.0, 2.0], [1, 2, 0]))


@primitive(
    ref=lambda x, axis=None: np.logaddexp.accumulate(
        x.reshape(-1) if axis is None else x, axis=axis or 0
    ),
    samples=[(((3, 4),), {"axis": 1}), (((3, 4),), {})],
    smooth=True,
    real_only=True,
)
def logcumsumexp(x, *, axis=None):
    """``log(cumsum(exp(x)))`` along an axis without overflow.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis; floating.

    Examples
    --------
    >>> ng.logcumsumexp(ng.tensor([1000.0, 1000.0]))
    tensor([1000.        , 1000.69314718])
    """
    dtype = _floating(x)
    x, axis = plain_axis("logcumsumexp", x, axis)
    with np.errstate(invalid="ignore"):
        return np.logaddexp.accumulate(x.astype(dtype, copy=False), axis=axis)


def _floating(x: Any) -> np.dtype:
    if x.dtype.kind == "c":
        raise NumgradTypeError("logcumsumexp: takes real operands, got complex ones")
    return np.result_type(x.dtype, np.float32 if x.dtype.kind == "f" else np.float64)


logcumsumexp.shape(lambda x, *, axis: Meta(ordered_shape("logcumsumexp", x, axis), _floating(x)))
logcumsumexp.batch(along_axis)


def _logcumsumexp_vjp(g, x, y, axis):
    # the sum of g_j exp(x_i - y_j) over j >= i, without an exponential that is larger than 1
    flat = reshape(x, tuple(y.shape))
    axis = 0 if axis is None else axis
    following = roll(y, -1, axis)
    factors = np.exp(np.where(y == following, 0, y - following))
    t = linear_recurrence(np.minimum(factors, 1), g, axis=axis, reverse=True)
    share = np.where(flat == -np.inf, 0, np.exp(np.where(y == -np.inf, 0, flat - y)))
    return reshape(share * t, tuple(x.shape))


logcumsumexp.vjp(x=_logcumsumexp_vjp)
