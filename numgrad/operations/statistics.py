"""Averages, covariances, ranges."""

import builtins
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import composite, filled, normalize_axes, state
from numgrad.errors import NumgradTypeError, NumgradValueError, NumgradZeroDivisionError
from numgrad.operations.arrangement import permute_dims
from numgrad.operations.diagonal import diagonal
from numgrad.operations.join import concat
from numgrad.operations.matmul import matmul
from numgrad.operations.reduce import max, mean, min, sum
from numgrad.operations.shape import as_operand, broadcast_to, reshape, squeeze


@composite(ref=np.average, method=False, smooth=True)
def average(x, axis=None, weights=None, returned=False, *, keepdims=False):
    """Mean over axes with weights, both of which have gradients.

    Parameters
    ----------
    weights : array_like
        Of the shape of ``x``, or of its lengths along the axes; None is the plain mean.
    returned : bool
        Whether the sum of the weights is returned too.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``; with ``returned`` a pair.

    Raises
    ------
    NumgradZeroDivisionError
        If weights add up to zero.

    Examples
    --------
    >>> w = ng.tensor([1.0, 1.0, 2.0], requires_grad=True)
    >>> y = ng.average([1.0, 2.0, 4.0], weights=w)
    >>> y.detach()
    tensor(2.75)
    >>> y.backward()
    >>> w.grad
    tensor([-0.4375, -0.1875,  0.3125])
    """
    x = as_operand(x)
    if weights is None:
        y = mean(x, axis=axis, keepdims=keepdims)
        count = prod([x.shape[k] for k in normalize_axes("average", axis, len(x.shape))])
        return (y, filled(tuple(y.shape), count, y.dtype)) if returned else y
    weights = _along("average", x, as_operand(weights), axis)
    dtype = np.result_type(x.dtype, weights.dtype)
    if x.dtype.kind not in "fc":
        dtype = np.result_type(dtype, np.float64)
    x, weights = x.astype(dtype), weights.astype(dtype)
    total = sum(weights, axis=axis, keepdims=keepdims)
    known = state.ground.numbers(total)
    axes = normalize_axes("average", axis, len(x.shape))
    of_none = any(x.shape[k] == 0 for k in axes) and 0 not in total.shape
    if of_none or (known is not None and (known == 0).any()):
        raise NumgradZeroDivisionError(
            "average: weights add up to zero, so there is no mean of them"
        )
    y = sum(x * weights, axis=axis, keepdims=keepdims) / total
    return (y, broadcast_to(total, y.shape) if total.shape != y.shape else total) if returned else y


def _along(name: str, x: Any, weights: Any, axis: Any) -> Any:
    """Weights with the axes of ``x``."""
    shape, sizes = tuple(x.shape), tuple(weights.shape)
    if sizes == shape:
        return weights
    if axis is None:
        raise NumgradTypeError(
            f"{name}: give the axis of weights of shape {sizes}, which is not that of the operand, "
            f"{shape}"
        )
    axes = normalize_axes(name, axis, len(shape))
    listed = axis if isinstance(axis, tuple) else (axis,)
    if sizes != tuple([shape[k] for k in listed]):
        raise NumgradValueError(
            f"{name}: weights of shape {sizes} for axis={axis} of shape {shape}; they have its "
            "lengths"
        )
    order = np.argsort([k % len(shape) for k in listed]).tolist()
    lengths = tuple([n if k in axes else 1 for k, n in enumerate(shape)])
    return broadcast_to(reshape(permute_dims(weights, order), lengths), shape)


def _observations(name: str, x: Any, rowvar: bool, dtype: Any) -> Any:
    """A row for each variable, a column for each observation."""
    if len(x.shape) > 2:
        raise NumgradValueError(f"{name}: takes at most two axes, got shape {tuple(x.shape)}")
    if len(x.shape) < 2:
        x = reshape(x, (1, prod(x.shape)))
    elif not rowvar:
        x = x.T
    return x.astype(dtype)


def _real(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _counts(name: str, weights: Any, what: str, size: Any) -> Any:
    weights = as_operand(weights)
    if len(weights.shape) != 1 or weights.shape[0] != size:
        raise NumgradValueError(
            f"{name}: {what} of shape {tuple(weights.shape)} for {size} observations; it has one "
            "axis and an element for each"
        )
    known = state.ground.numbers(weights)
    if known is not None and (known < 0).any():
        raise NumgradValueError(f"{name}: {what} must not be negative")
    if what == "fweights" and known is not None and (known != np.around(known)).any():
        raise NumgradTypeError(f"{name}: fweights are counts and must be whole numbers")
    return weights.astype(np.float64)


@composite(ref=np.cov, method=False, smooth=True)
def cov(x, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """Covariances of variables, of which each row of ``x`` has the observations.

    Parameters
    ----------
    y : array_like
        More variables, of the same number of observations.
    rowvar : bool
        False if each column is a variable.
    bias : bool
        Whether to divide by the number of observations rather than by one less.
    ddof : int
        What is taken off the number of observations, in place of ``bias``.
    fweights : array_like of int
        How often each observation was made.
    aweights : array_like
        Weight of each observation.
    dtype : dtype_like
        Dtype of the result, at least float64 by default.

    Returns
    -------
    Tensor
        A row and a column for each variable; 0-d for one variable.

    Examples
    --------
    >>> ng.cov([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
    tensor([[ 1., -2.],
            [-2.,  4.]])
    """
    return squeeze(_covariances("cov", x, y, rowvar, bias, ddof, fweights, aweights, dtype))


def _covariances(
    name: str, x: Any, y: Any, rowvar: bool, bias: bool, ddof: Any, fweights: Any, aweights: Any,
    dtype: Any,
) -> Any:  # fmt: skip
    if ddof is not None and ddof != int(ddof):
        raise NumgradValueError(f"{name}: ddof must be a whole number, got {ddof}")
    x = as_operand(x)
    y = None if y is None else as_operand(y)
    if dtype is None:
        dtype = np.result_type(*[a.dtype for a in (x, y) if a is not None], np.float64)
    x = _observations(name, x, rowvar, dtype)
    if y is not None:
        y = _observations(name, y, rowvar, dtype)
        if x.shape[1] != y.shape[1]:
            raise NumgradValueError(
                f"{name}: {x.shape[1]} and {y.shape[1]} observations; they must be as many"
            )
        x = concat(x, y, axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    n = x.shape[1]
    weights = None if fweights is None else _counts(name, fweights, "fweights", n)
    if aweights is not None:
        aweights = _counts(name, aweights, "aweights", n)
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        centred = x - mean(x, axis=1, keepdims=True)
        freedom, weighted = n - ddof, centred
        if isinstance(freedom, int):  # none to spare: NaN and infinities, as NumPy
            freedom = builtins.max(freedom, 0)
    else:
        weights = weights.astype(_real(x.dtype))
        total = sum(weights)
        centred = x - average(x, 1, weights, keepdims=True)
        if ddof == 0:
            freedom = total
        elif aweights is None:
            freedom = total - ddof
        else:
            freedom = total - ddof * sum(weights * aweights) / total
        weighted = centred * weights
    return matmul(centred, np.conj(weighted).T) / freedom


@composite(ref=np.corrcoef, method=False, smooth=True)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """Correlation coefficients of variables, of which each row of ``x`` has the observations.

    Parameters
    ----------
    y : array_like
        More variables, of the same number of observations.
    rowvar : bool
        False if each column is a variable.
    dtype : dtype_like
        Dtype of the result, at least float64 by default.

    Returns
    -------
    Tensor
        A row and a column for each variable; 0-d for one variable.

    Examples
    --------
    >>> ng.corrcoef([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = _covariances("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    scale = np.sqrt(np.real(diagonal(c)))
    c = c / scale[:, None] / scale[None, :]
    if c.dtype.kind == "c":
        c = np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)
    else:
        c = np.clip(c, -1, 1)
    return squeeze(c)


@composite(ref=np.ptp)
def ptp(x, axis=None, *, keepdims=False):
    """Largest minus smallest element over axes; equal elements share the gradient.

    Returns
    -------
    Tensor
        Without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.ptp(ng.tensor([[1.0, 4.0], [7.0, 7.5]]), axis=1)
    tensor([3. , 0.5])
    """
    x = as_operand(x)
    return max(x, axis=axis, keepdims=keepdims) - min(x, axis=axis, keepdims=keepdims)


ptp.kink(x=([2.0, 2.0, 0.0], [0.5, 0.5, -1]))
