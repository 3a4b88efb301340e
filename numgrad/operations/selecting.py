"""Elements selected by conditions and choices, and the places where elements stand."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import BatchOperand, Meta, Op, bind, composite, made, one_axis, primitive
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.kernels.index import scatter_add
from numgrad.kernels.sorting import places
from numgrad.operations.arithmetic import remainder
from numgrad.operations.choice import clip, where
from numgrad.operations.join import stack
from numgrad.operations.shape import as_operand, astype, broadcast_arrays, expand_dims, ravel
from numgrad.operations.shared_rules import OUTSIDE, no_shape, numbers_of
from numgrad.operations.take import take, take_along_axis

_INT64 = np.dtype(np.int64)
_MANY = 256
"""Elements from which kernels are faster than NumPy's functions."""
_SEARCHED = {np.dtype(name) for name in ("float64", "float32", "int64", "int32")}
_MASK = f"use ng.where(mask, x, 0), or {OUTSIDE}"


# ------------------------------------------------------------------------------------- in order


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    method=False,
    differentiable=False,
)
def searchsorted_places(a, v, *, side):
    """Where values go in a sorted sequence."""
    _check_search(a, side)
    check_dtype("searchsorted", a.dtype)
    check_dtype("searchsorted", v.dtype)
    return _places(a, v, side == "right")


def _places(a: np.ndarray, v: np.ndarray, right: bool) -> np.ndarray:
    """Positions as of ``np.searchsorted``; many numbers are searched for in blocks."""
    dtype = a.dtype if a.dtype == v.dtype else np.result_type(a, v)
    if v.size < _MANY or dtype not in _SEARCHED:
        return np.searchsorted(a, v, "right" if right else "left")
    return places(a.astype(dtype, copy=False), v.astype(dtype, copy=False), right)


def _check_search(a: Any, side: Any) -> None:
    if a.ndim != 1:
        raise NumgradValueError(
            f"searchsorted: the sequence must have one axis, got shape {tuple(a.shape)}"
        )
    if side not in ("left", "right"):
        raise NumgradValueError(f"searchsorted: side is 'left' or 'right', got {side!r}")


@searchsorted_places.shape
def _search_result(a, v, *, side):
    _check_search(a, side)
    return Meta(v.shape, _INT64)


@searchsorted_places.batch
def _batched_search(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    a, v = operands
    return NotImplemented if a.batched else bind(op, (a.value, v.value), params)


@composite(ref=np.searchsorted, differentiable=False)
def searchsorted(a, v, side="left", sorter=None):
    """Indices at which values would be inserted into a sorted sequence, NaN being last.

    Parameters
    ----------
    a
        Sequence in ascending order, with one axis.
    v
        Values to be placed.
    side : {'left', 'right'}
        Whether a value goes before or behind elements that equal it.
    sorter : array_like of int
        Indices that sort ``a``, if it is not sorted itself.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of ``v``.

    Examples
    --------
    >>> ng.searchsorted(ng.tensor([1.0, 2.0, 3.0]), [0.5, 2.0, 9.0])
    tensor([0, 1, 3])
    """
    a, v = as_operand(a), as_operand(v)
    if sorter is not None:
        sorter = as_operand(sorter)
        if len(a.shape) == 1 and tuple(sorter.shape) != tuple(a.shape):
            raise NumgradValueError(
                f"searchsorted: sorter has shape {tuple(sorter.shape)}, but sorts a of shape "
                f"{tuple(a.shape)}; they must be equal"
            )
        a = take(a, sorter)
    return searchsorted_places(a, v, side=side)


@primitive(ref=np.digitize, differentiable=False, method=False)
def digitize(x, bins, *, right=False):
    """Number of the interval between edges in which each element lies.

    Parameters
    ----------
    bins
        Edges, in ascending or in descending order.
    right : bool
        Whether an interval contains its right edge in place of its left one.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of ``x``: 0 before the first edge, their number behind the
        last.

    Raises
    ------
    NumgradValueError
        If the edges are in no order.

    Examples
    --------
    >>> ng.digitize(ng.tensor([0.5, 1.0, 7.0]), [0.0, 1.0, 2.0])
    tensor([1, 2, 3])
    """
    if x.dtype.kind == "c" or bins.dtype.kind == "c":
        raise NumgradTypeError("digitize: complex numbers lie in no interval; use real()")
    try:
        if x.size < _MANY or bins.ndim != 1 or not bins.size:
            return np.digitize(x, bins, right=right)
        np.digitize(x.ravel()[:1], bins)  # raises unless these are in order
        if bins[0] > bins[-1]:
            return bins.size - _places(bins[::-1], x, not right)
        # a NaN is neither above nor below
        in_order = bins[0] <= bins[-1]
        return _places(bins, x, not right) if in_order else np.digitize(x, bins, right=right)
    except ValueError as error:
        raise NumgradValueError(f"digitize: bins of shape {bins.shape}: {error}") from None


digitize.shape(lambda x, bins, *, right: Meta(x.shape, _INT64))


@digitize.batch
def _batched_digitize(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, bins = operands
    return NotImplemented if bins.batched else bind(op, (x.value, bins.value), params)


# --------------------------------------------------------------------------------- what is not zero


@primitive(ref=np.nonzero, differentiable=False, outputs=True)
def nonzero(x):
    """Indices of the elements that are not zero, an array for each axis.

    Returns
    -------
    tuple of Tensors
        Of dtype int64, with one axis; as an index they select these elements.

    Examples
    --------
    >>> ng.nonzero(ng.tensor([[1.0, 0.0], [0.0, 2.0]]))
    (tensor([0, 1]), tensor([0, 1]))
    """
    if not x.ndim:
        raise NumgradValueError("nonzero: a 0-d operand has no axis; use ng.atleast_1d(x)")
    return np.nonzero(x)


nonzero.shape(no_shape("nonzero", _MASK))


@primitive(ref=np.flatnonzero, differentiable=False, method=False)
def flatnonzero(x):
    """Indices of the elements that are not zero, in the flattened operand.

    Returns
    -------
    Tensor
        Of dtype int64, with one axis.

    Examples
    --------
    >>> ng.flatnonzero(ng.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([0, 3])
    """
    return np.flatnonzero(x)


flatnonzero.shape(no_shape("flatnonzero", _MASK))


@primitive(ref=np.argwhere, differentiable=False)
def argwhere(x):
    """Indices of the elements that are not zero, a row for each.

    Returns
    -------
    Tensor
        Of dtype int64: a row for each element found, a column for each axis.

    Examples
    --------
    >>> ng.argwhere(ng.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([[0, 0],
            [1, 1]])
    """
    return np.argwhere(x)


argwhere.shape(no_shape("argwhere", _MASK))


# ----------------------------------------------------------------------------------- sums by place


@primitive(ref=np.bincount, linear=True, method=False)
def bincount(x, weights=None, *, minlength=0, length=None):
    """How often each integer occurs, or the sum of weights where it does.

    Parameters
    ----------
    x
        Integers that are not negative, along one axis.
    weights
        Array of the shape of ``x``, which has a gradient.
    minlength : int
        Least length of the result.
    length : int
        Length of the result, which ``ng.jit`` has to know; by default one more than the largest
        integer.

    Returns
    -------
    Tensor
        Of dtype int64; with weights float64.

    Raises
    ------
    NumgradIndexError
        If an integer is not below ``length``.
    NumgradValueError
        If an integer is negative, or shapes differ.

    Examples
    --------
    >>> ng.bincount([0, 2, 2])
    tensor([1, 0, 2])
    >>> weights = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> ng.bincount([0, 2, 2], weights)[2].backward()
    >>> weights.grad
    tensor([0., 1., 1.])
    """
    _check_bincount(x, weights)
    if length is not None:
        if x.size and (largest := int(x.max())) >= length:
            raise NumgradIndexError(
                f"bincount: the integer {largest} is out of range for length={length}"
            )
        minlength = length
    if not x.size:
        x = x.astype(np.int64)
    if weights is not None and x.size >= _MANY:
        sums = _sums(x, weights, minlength)
        if sums is not None:
            return sums
    bins = x
    if x.dtype == np.uint64 and x.max() <= np.iinfo(np.int64).max:  # not taken before NumPy 2.3
        bins = x.astype(np.int64)
    try:
        return np.bincount(bins, weights, minlength)
    except (TypeError, ValueError) as error:
        kind = NumgradTypeError if isinstance(error, TypeError) else NumgradValueError
        raise kind(f"bincount: {error}; got dtype {x.dtype} and shape {x.shape}") from None


def _sums(x: np.ndarray, weights: np.ndarray, minlength: Any) -> np.ndarray | None:
    """Sums of weights, added in NumPy's order; None where NumPy has something to complain of."""
    if x.ndim != 1 or not isinstance(minlength, int | np.integer):
        return None
    x = np.asarray(x, np.int64, order="C")
    largest = int(x.view(np.uint64).max())  # in one pass: negative ones are the largest so
    if minlength < 0 or largest > np.iinfo(np.int64).max:
        return None
    sums = np.zeros(max(largest + 1, minlength))
    scatter_add(np.ascontiguousarray(weights, np.float64), x, sums, 1, sums.size, 1)
    return sums


def _check_bincount(x: Any, weights: Any) -> None:
    if x.dtype.kind not in "iub" and prod(x.shape):
        raise NumgradTypeError(
            f"bincount: needs integers, got dtype {x.dtype}; convert them with astype(int)"
        )
    if weights is None:
        return
    if weights.dtype.kind == "c":
        raise NumgradTypeError(
            "bincount: complex weights; add up real and imaginary parts, or use index_add"
        )
    if weights.ndim != x.ndim or weights.shape != x.shape:
        raise NumgradValueError(
            f"bincount: weights of shape {tuple(weights.shape)} for integers of shape "
            f"{tuple(x.shape)}; they must be the same"
        )


@bincount.shape
def _bincount_result(x, weights, *, minlength, length):
    _check_bincount(x, weights)
    if length is None:
        no_shape("bincount", "give length=")()
    return Meta((length,), _INT64 if weights is None else np.dtype(np.float64))


bincount.no_derivative("x")
bincount.vjp(weights=lambda g, x: take(g, x))


@bincount.vjp_kernel
def _bincount_backward(call, mask, g, x: Any = None):
    return [None, take(g, x)]  # which nobody else holds, so that it is not copied


_NUMBERS = (int, float, complex)


@composite(ref=np.select, method=False, smooth=True)
def select(condlist, choicelist, default=0):
    """Elements of the first choice whose condition holds, else the default.

    Parameters
    ----------
    condlist : sequence of array_like of bool
        Conditions; the first that holds decides.
    choicelist : sequence of array_like
        One array for each condition; all broadcast against each other.
    default : array_like
        What is taken where no condition holds.

    Returns
    -------
    Tensor
        Of the dtype the choices promote to.

    Examples
    --------
    >>> x = ng.tensor([-2.0, 0.5, 3.0])
    >>> ng.select([x < 0, x > 1], [-x, x**2], default=7.0)
    tensor([2., 7., 9.])
    """
    if len(condlist) != len(choicelist):
        raise NumgradValueError(
            f"select: {len(condlist)} conditions and {len(choicelist)} choices; give as many"
        )
    if not len(condlist):
        raise NumgradValueError("select: needs at least one condition")
    conditions = [as_operand(c) for c in condlist]
    for k, condition in enumerate(conditions):
        if condition.dtype != np.bool_:
            raise NumgradTypeError(
                f"select: condition {k} has dtype {condition.dtype} and must be boolean; compare, "
                "as in mask != 0"
            )
    choices = [c if type(c) in _NUMBERS else as_operand(c) for c in (*choicelist, default)]
    dtype = np.result_type(*[getattr(c, "dtype", c) for c in choices])
    out: Any = choices.pop()
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, choice, out)
    return out if out.dtype == dtype else astype(out, dtype=dtype)


@composite(ref=np.choose, method=False, smooth=True)
def choose(x, choices, mode="raise"):
    """Take, at each place, the element of the array whose number stands there.

    Parameters
    ----------
    x : array_like of int
        Numbers of choices.
    choices : sequence of array_like
        Arrays; they broadcast against each other and ``x``.
    mode : {'raise', 'wrap', 'clip'}
        What is done with numbers out of range.

    Returns
    -------
    Tensor
        Of the dtype the choices promote to.

    Examples
    --------
    >>> ng.choose([0, 1, 0], [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    tensor([ 1., 20.,  3.])
    """
    x = as_operand(x)
    if x.dtype.kind not in "iub":
        raise NumgradTypeError(f"choose: numbers of choices are integers, got dtype {x.dtype}")
    if mode not in ("raise", "wrap", "clip"):
        raise NumgradValueError(f"choose: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    count = len(choices)
    x, *result = broadcast_arrays(astype(x, dtype=np.int64), *[choices[k] for k in range(count)])
    if mode == "wrap":
        x = remainder(x, count)
    elif mode == "clip":
        x = clip(x, 0, count - 1)
    else:  # negative ones do not count from the end
        x = where(x < 0, count, x)
    try:
        return take_along_axis(stack(result), expand_dims(x, 0), axis=0)[0]
    except NumgradIndexError as error:
        raise NumgradValueError(
            f"choose: a number is not one of {count} choices, negative ones included: {error}"
        ) from None


def _true_places(operation: str, condition: Any, length: Any) -> Any:
    """Indices at which a condition holds, which may be shorter than the axis."""
    chosen = numbers_of(operation, condition)
    if chosen.ndim != 1:
        raise NumgradValueError(f"{operation}: the condition must be a vector, got {chosen.ndim}-d")
    (result,) = chosen.nonzero()
    if result.size and int(result[-1]) >= length:
        raise NumgradIndexError(
            f"{operation}: the condition holds at index {result[-1]}, and the axis has length "
            f"{length}"
        )
    return made(result)


@composite(ref=np.compress, method=False, smooth=True, keeps_dtype=False)
def compress(condition, x, axis=None):
    """The parts along an axis at which a condition holds; without an axis, of all elements.

    Parameters
    ----------
    condition : array_like of bool
        Vector; it may be shorter than the axis.

    Returns
    -------
    Tensor
        Shorter along the axis, of the dtype of ``x``.

    Examples
    --------
    >>> ng.compress([True, False, True], ng.tensor([[1.0, 2.0, 3.0]]), axis=1)
    tensor([[1., 3.]])
    """
    x = as_operand(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = one_axis("compress", axis, len(x.shape))
    return take(x, _true_places("compress", condition, x.shape[axis]), axis=axis)


@composite(ref=np.extract, method=False, smooth=True)
def extract(condition, x):
    """The elements where a condition of the same size holds, in C order.

    Parameters
    ----------
    condition : array_like of bool
        Flattened as ``x`` is.

    Returns
    -------
    Tensor
        With one axis, of the dtype of ``x``.

    Examples
    --------
    >>> x = ng.tensor([[1.0, -2.0], [3.0, -4.0]])
    >>> ng.extract(x > 0, x)
    tensor([1., 3.])
    """
    x = ravel(as_operand(x))
    chosen = numbers_of("extract", condition).ravel()
    return take(x, _true_places("extract", chosen, x.shape[0]))
