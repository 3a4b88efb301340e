"""Writing along an axis where what meets in one place is reduced."""

from typing import Any

import numpy as np

from numgrad.core.declare import composite, ones, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arithmetic import floor_divide
from numgrad.operations.choice import maximum, where
from numgrad.operations.scatter import multiply_at, scattered
from numgrad.operations.shape import astype, broadcast_to
from numgrad.operations.take import take
from numgrad.operations.write import put

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@primitive(internal=True, method=False, keeps_dtype=True, real_only=True)
def extreme_at(x, positions, values, *, largest, include_self):
    """The operand with extrema at positions of its elements in C order."""
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"extreme_at: not defined for {x.dtype}: there is no larger one")
    out = np.array(x, order="C")
    flat, targets = out.reshape(-1), positions.ravel()
    if not include_self:
        flat[targets] = values.ravel()  # any of those that meet there will do to begin with
    (np.maximum if largest else np.minimum).at(flat, targets, values.ravel())
    return out


extreme_at.shape(lambda x, positions, values, *, largest, include_self: x)


def _matches(
    x: Any, y: Any, positions: Any, values: Any, include_self: bool
) -> tuple[Any, Any, Any]:
    """Masks of operand and values that equal the extremum, and how many there are."""
    dtype = y.dtype
    at_operand = astype(x == y, dtype=dtype)
    if not include_self:
        at_operand = put(at_operand, positions, np.zeros((), dtype))
        untouched = put(ones(tuple(y.shape), dtype), positions, np.zeros((), dtype))
        at_operand = where(untouched == 1, 1, at_operand)
    of_values = astype(values == take(y, positions), dtype=dtype)
    return at_operand, of_values, put(at_operand, positions, of_values, accumulate=True)


def _of_operand(g, x, y, positions, values, include_self):
    at_operand, _, count = _matches(x, y, positions, values, include_self)
    return g * at_operand / maximum(count, 1)


def _of_values(g, x, y, positions, values, include_self):
    _, of_values, count = _matches(x, y, positions, values, include_self)
    return take(g / maximum(count, 1), positions) * of_values


extreme_at.no_derivative("positions")
extreme_at.vjp(x=_of_operand, values=_of_values)
extreme_at.kink(
    x=([1.0, 0.0], [1 / 3, 1]),
    positions=(np.array([0, 0]), None),
    values=([1.0, 1.0], [1 / 3, 1 / 3]),
    params={"largest": True, "include_self": True},
)


@composite(keeps_dtype=True)
def scatter_reduce(x, index, source, *, axis, reduce, include_self=True):
    """The operand with a reduction of those elements of another array that an index sends there.

    Shapes and indices are those of ``scatter``. Equal extrema share the gradient.

    Parameters
    ----------
    source
        Array of which the part that ``index`` covers is used.
    reduce : {'sum', 'prod', 'mean', 'amax', 'amin'}
        What is made of elements that meet in one place.
    include_self
        Whether the element of ``x`` is one of them.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0])
    >>> ng.scatter_reduce(x, [0, 0, 2], [5.0, 6.0, 7.0], axis=0, reduce="mean")
    tensor([4., 2., 5.])
    >>> ng.scatter_reduce(x, [0, 0], [5.0, 6.0], axis=0, reduce="prod", include_self=False)
    tensor([30.,  2.,  3.])
    """
    if reduce not in _REDUCTIONS:
        raise NumgradValueError(
            f"scatter_reduce: reduce {reduce!r} is not available; use one of {_REDUCTIONS}"
        )
    x, positions, source = scattered("scatter_reduce", x, index, source, axis)
    source = broadcast_to(astype(source, dtype=x.dtype, copy=False), tuple(positions.shape))
    if reduce in ("amax", "amin"):
        return extreme_at(
            x, positions, source, largest=reduce == "amax", include_self=bool(include_self)
        )
    dtype = x.dtype
    if not include_self:
        x = put(x, positions, np.asarray(reduce == "prod", dtype))
    if reduce == "prod":
        return multiply_at(x, positions, source)
    total = put(x, positions, source, accumulate=True)
    if reduce == "sum":
        return total
    counts = put(
        np.full(tuple(x.shape), int(include_self)), positions, np.ones((), int), accumulate=True
    )
    counts = maximum(counts, 1)
    if dtype.kind in "iu":
        return astype(floor_divide(total, counts), dtype=dtype)
    return total / astype(counts, dtype=total.real.dtype if dtype.kind == "c" else dtype)


scatter_reduce.kink(
    x=([1.0], [0.5]), index=([0], None), source=([1.0], [0.5]), params={"axis": 0, "reduce": "amax"}
)
