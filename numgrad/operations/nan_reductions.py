"""Reductions and running sums of the elements that are not NaN.

Where there are none, sums and products are those of no elements, and the others NaN (NumPy warns).
"""

from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import Meta, composite, normalize_axes, ones, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.compare import logical_not
from numgrad.operations.cumulative import cumprod, cumsum
from numgrad.operations.extend import with_elements
from numgrad.operations.reduce import all, deviation, max, min, prod, sum
from numgrad.operations.shape import as_operand, broadcast_to


def _skipped(name: str, x: Any, where: Any) -> Any:
    """A mask of what does not count, None if everything does."""
    skipped = np.isnan(x) if x.dtype.kind in "fc" else None
    if where is True or where is None:
        return skipped
    where = as_operand(where)
    if where.dtype != np.bool_:
        raise NumgradTypeError(f"{name}: where= has dtype {where.dtype} and must be boolean")
    left_out = broadcast_to(logical_not(where), tuple(x.shape))
    return left_out if skipped is None else skipped | left_out


def _filled(x: Any, skipped: Any, value: float) -> Any:
    return x if skipped is None else np.where(skipped, value, x)


def _total(
    name: str, x: Any, neutral: int, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    x = as_operand(x)
    reduce = prod if neutral else sum
    x = _filled(x, _skipped(name, x, where), neutral)
    out = reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)
    if initial is None:
        return out
    initial = np.asarray(initial).astype(out.dtype)
    return out * initial if neutral else out + initial


@composite(ref=np.nansum, smooth=True)
def nansum(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
    """Sum over axes, NaN taken as zero.

    Parameters
    ----------
    initial
        Number that is added.
    where : array_like of bool
        What counts.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> x = ng.tensor([1.0, np.nan, 3.0], requires_grad=True)
    >>> y = ng.nansum(x)
    >>> y.detach()
    tensor(4.)
    >>> y.backward()
    >>> x.grad
    tensor([1., 0., 1.])
    """
    return _total("nansum", x, 0, axis, dtype, keepdims, initial, where)


@composite(ref=np.nanprod, method=False, smooth=True)
def nanprod(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
    """Product over axes, NaN taken as one.

    Parameters
    ----------
    initial
        Number by which it is multiplied.
    where : array_like of bool
        What counts.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.nanprod(ng.tensor([2.0, np.nan, 3.0]))
    tensor(6.)
    """
    return _total("nanprod", x, 1, axis, dtype, keepdims, initial, where)


def _extremum(
    name: str, x: Any, largest: bool, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    x = as_operand(x)
    reduce = max if largest else min
    if where is not True and where is not None and initial is None:
        raise NumgradValueError(
            f"{name}: with where= there may be nothing to reduce; give initial="
        )
    if initial is not None:
        initial = np.asarray(initial).astype(x.dtype)
        x = with_elements(name, x, axis, initial)
    skipped = _skipped(name, x, where)
    neutral = initial if initial is not None else (-np.inf if largest else np.inf)
    out = reduce(_filled(x, skipped, neutral), axis=axis, keepdims=keepdims)
    if initial is not None:
        return (np.maximum if largest else np.minimum)(out, initial)
    if skipped is None:
        return out
    return np.where(all(skipped, axis=axis, keepdims=keepdims), np.nan, out)


@composite(ref=np.nanmax, method=False)
def nanmax(x, axis=None, *, keepdims=False, initial=None, where=True):
    """Largest element over axes that is not NaN; equal elements share the gradient.

    Parameters
    ----------
    initial
        Number that the result is not below.
    where : array_like of bool
        What counts.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.nanmax(ng.tensor([[1.0, np.nan], [np.nan, np.nan]]), axis=1)
    tensor([ 1., nan])
    """
    return _extremum("nanmax", x, True, axis, keepdims, initial, where)


@composite(ref=np.nanmin, method=False)
def nanmin(x, axis=None, *, keepdims=False, initial=None, where=True):
    """Smallest element over axes that is not NaN; equal elements share the gradient.

    Parameters
    ----------
    initial
        Number that the result is not above.
    where : array_like of bool
        What counts.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.nanmin(ng.tensor([[1.0, np.nan], [np.nan, np.nan]]), axis=1)
    tensor([ 1., nan])
    """
    return _extremum("nanmin", x, False, axis, keepdims, initial, where)


def _mean(name: str, x: Any, axis: Any, dtype: Any, where: Any) -> tuple[Any, Any, Any]:
    """Floating numbers with zeros for those left out; their number; a mask of the others."""
    skipped = _skipped(name, x, where)
    computing = np.dtype(dtype) if dtype is not None else x.dtype
    if x.dtype.kind == "c" and computing.kind != "c":
        raise NumgradTypeError(f"{name}: complex numbers have no mean of dtype {computing}")
    if computing.kind not in "fc":
        computing = np.dtype(np.float64)
    x = x.astype(computing)
    counted = ones(tuple(x.shape), np.dtype(bool)) if skipped is None else ~skipped
    count = sum(counted, axis=axis, keepdims=True)
    real = np.dtype(f"f{computing.itemsize // 2}") if computing.kind == "c" else computing
    return _filled(x, skipped, 0), count.astype(real), skipped


def _without(x: Any, name: str, axis: Any, keepdims: bool) -> Any:
    """``x`` without the axes, of length 1, over which was reduced."""
    if keepdims:
        return x
    axes = normalize_axes(name, axis, len(x.shape))
    remaining = [n for k, n in enumerate(x.shape) if k not in axes]
    return x.reshape(tuple(remaining))


@composite(ref=np.nanmean, smooth=True)
def nanmean(x, axis=None, dtype=None, *, keepdims=False, where=True):
    """Arithmetic mean over axes of what is not NaN.

    Parameters
    ----------
    where : array_like of bool
        What counts.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; floating or complex.

    Examples
    --------
    >>> x = ng.tensor([1.0, np.nan, 3.0], requires_grad=True)
    >>> y = ng.nanmean(x)
    >>> y.detach()
    tensor(2.)
    >>> y.backward()
    >>> x.grad
    tensor([0.5, 0. , 0.5])
    """
    x, count, _ = _mean("nanmean", as_operand(x), axis, dtype, where)
    return _without(sum(x, axis=axis, keepdims=True) / count, "nanmean", axis, keepdims)


def _variance(
    name: str, x: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any,
    correction: Any,
) -> Any:  # fmt: skip
    if correction is not None:
        if ddof != 0:
            raise NumgradValueError(
                f"{name}: ddof and correction are two names of one thing; give one"
            )
        ddof = correction
    x, count, skipped = _mean(name, as_operand(x), axis, dtype, where)
    if mean is None:
        mean = sum(x, axis=axis, keepdims=True) / count
    d = _filled(x - mean, skipped, 0)
    squares = d * d if d.dtype.kind == "f" else np.square(d.real) + np.square(d.imag)
    freedom = count - ddof
    y = sum(squares, axis=axis, keepdims=True) / np.where(freedom > 0, freedom, np.nan)
    return _without(y, name, axis, keepdims)


@composite(ref=np.nanvar, method=False, smooth=True)
def nanvar(
    x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None
):
    """Variance over axes of what is not NaN; NaN where there are no more than ``ddof`` elements.

    Parameters
    ----------
    where : array_like of bool
        What counts.
    mean
        Mean over the axes, which keep length 1, if it is known.
    correction
        The Array API's name of ``ddof``.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; floating.

    Examples
    --------
    >>> ng.nanvar(ng.tensor([1.0, np.nan, 3.0]))
    tensor(1.)
    """
    return _variance("nanvar", x, axis, dtype, ddof, keepdims, where, mean, correction)


@composite(ref=np.nanstd, method=False)
def nanstd(
    x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None
):
    """Standard deviation over axes of what is not NaN; a gradient of 0 where all are equal.

    Parameters
    ----------
    where : array_like of bool
        What counts.
    mean
        Mean over the axes, which keep length 1, if it is known.
    correction
        The Array API's name of ``ddof``.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; floating.

    Examples
    --------
    >>> ng.nanstd(ng.tensor([1.0, np.nan, 5.0]))
    tensor(2.)
    """
    return deviation(_variance("nanstd", x, axis, dtype, ddof, keepdims, where, mean, correction))


nanstd.kink(x=([2.0, np.nan, 2.0], [0, 0, 0]))
nanmax.kink(x=([2.0, np.nan, 2.0], [0.5, 0, 0.5]))
nanmin.kink(x=([2.0, np.nan, 2.0], [0.5, 0, 0.5]))


# ----------------------------------------------------------------------------------------- places


def _place(name: str, function: Any, x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    check_dtype(name, x.dtype)
    normalize_axes(name, axis, x.ndim)
    try:
        return function(x, axis=axis, keepdims=keepdims)
    except ValueError as error:
        raise NumgradValueError(f"{name}: {error}, of shape {x.shape}") from None


def _place_shape(name: str, x: Any, axis: Any, keepdims: bool) -> Meta:
    axes = normalize_axes(name, axis, x.ndim)
    remaining = [1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes]
    return Meta(tuple(remaining), np.dtype(np.int64))


@primitive(ref=np.nanargmax, differentiable=False, method=False)
def nanargmax(x, *, axis=None, keepdims=False):
    """Index of the first largest element that is not NaN along an axis, or of all.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Raises
    ------
    NumgradValueError
        If all elements are NaN.

    Examples
    --------
    >>> ng.nanargmax(ng.tensor([1.0, np.nan, 3.0]))
    tensor(2)
    """
    return _place("nanargmax", np.nanargmax, x, axis, keepdims)


@primitive(ref=np.nanargmin, differentiable=False, method=False)
def nanargmin(x, *, axis=None, keepdims=False):
    """Index of the first smallest element that is not NaN along an axis, or of all.

    Returns
    -------
    Tensor
        Of dtype int64; without the axis, or with length 1 there if ``keepdims``.

    Raises
    ------
    NumgradValueError
        If all elements are NaN.

    Examples
    --------
    >>> ng.nanargmin(ng.tensor([1.0, np.nan, 3.0]))
    tensor(0)
    """
    return _place("nanargmin", np.nanargmin, x, axis, keepdims)


nanargmax.shape(lambda x, *, axis, keepdims: _place_shape("nanargmax", x, axis, keepdims))
nanargmin.shape(lambda x, *, axis, keepdims: _place_shape("nanargmin", x, axis, keepdims))


# ------------------------------------------------------------------------------------ running sums


@composite(ref=np.nancumsum, method=False, smooth=True)
def nancumsum(x, axis=None, dtype=None):
    """``cumsum`` with NaN taken as zero.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis.

    Examples
    --------
    >>> ng.nancumsum(ng.tensor([1.0, np.nan, 3.0]))
    tensor([1., 1., 4.])
    """
    x = as_operand(x)
    return cumsum(_filled(x, _skipped("nancumsum", x, True), 0), axis=axis, dtype=dtype)


@composite(ref=np.nancumprod, method=False, smooth=True)
def nancumprod(x, axis=None, dtype=None):
    """``cumprod`` with NaN taken as one.

    Returns
    -------
    Tensor
        Of the shape of ``x``, or with one axis.

    Examples
    --------
    >>> ng.nancumprod(ng.tensor([2.0, np.nan, 3.0]))
    tensor([2., 2., 6.])
    """
    x = as_operand(x)
    return cumprod(_filled(x, _skipped("nancumprod", x, True), 1), axis=axis, dtype=dtype)
