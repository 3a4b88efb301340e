"""Elements selected by conditions and by choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import one_axis
from numgrad.core.declare import composite
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.operations.arithmetic import remainder
from numgrad.operations.choice import clip, where
from numgrad.operations.data_dependent import numbers_of
from numgrad.operations.join import stack
from numgrad.operations.shape import as_operand, astype, broadcast_arrays, expand_dims, ravel
from numgrad.operations.take import take, take_along_axis

_NUMBERS = (int, float, complex)
_CONDITION = np.array([True, False, True])
_CHOICE = np.array([[1, 0, 1]])


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


select.calls = [
    (((2, 3), (3,)), lambda a, b: select([_CONDITION, ~_CONDITION], [a, b])),
    (((3,), ()), lambda a, b: select([_CONDITION], [a], b)),
]


@composite(ref=np.choose, method=False, smooth=True)
def choose(x, choices, mode="raise"):
    """Of several arrays, at each place the element of the one whose number stands there.

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
    x, *found = broadcast_arrays(astype(x, dtype=np.int64), *[choices[k] for k in range(count)])
    if mode == "wrap":
        x = remainder(x, count)
    elif mode == "clip":
        x = clip(x, 0, count - 1)
    else:  # negative ones do not count from the end
        x = where(x < 0, count, x)
    try:
        return take_along_axis(stack(found), expand_dims(x, 0), axis=0)[0]
    except NumgradIndexError as error:
        raise NumgradValueError(
            f"choose: a number is not one of {count} choices, negative ones included: {error}"
        ) from None


choose.calls = [
    (((2, 3), (3,)), lambda a, b: choose(_CHOICE, [a, b])),
    (((3,), (3,)), lambda a, b: choose([5, -1, 0], [a, b], mode="wrap")),
]


def _chosen(operation: str, condition: Any, length: Any) -> Any:
    """Indices at which a condition holds, which may be shorter than the axis."""
    places = numbers_of(operation, condition)
    if places.ndim != 1:
        raise NumgradValueError(f"{operation}: the condition must be a vector, got {places.ndim}-d")
    (found,) = places.nonzero()
    if found.size and int(found[-1]) >= length:
        raise NumgradIndexError(
            f"{operation}: the condition holds at index {found[-1]}, and the axis has length "
            f"{length}"
        )
    return made(found)


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
    return take(x, _chosen("compress", condition, x.shape[axis]), axis=axis)


compress.calls = [
    (((2, 3),), lambda x: compress(_CONDITION, x, axis=1)),
    (((2, 2),), lambda x: compress([True, False], x)),
]


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
    places = numbers_of("extract", condition).ravel()
    return take(x, _chosen("extract", places, x.shape[0]))


extract.calls = [
    (((3,),), lambda x: extract(_CONDITION, x)),
]
