"""Writing where a mask is true; operand and mask broadcast against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import broadcast_lengths
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.choice import where
from numgrad.operations.shape import as_operand, broadcast_to, ravel
from numgrad.operations.take import take
from numgrad.operations.write import as_number, converted

_MASK = np.array([[True, False, True], [False, True, False]])  # what these are tried with


def _mask(operation: str, mask: Any) -> Any:
    mask = as_operand(mask)
    if mask.dtype != np.bool_:
        raise NumgradTypeError(
            f"{operation}: the mask has dtype {mask.dtype} and must be boolean; compare, as in "
            "mask != 0"
        )
    return mask


def _common_shape(operation: str, x: Any, mask: Any) -> tuple[int, ...]:
    try:
        return broadcast_lengths(x.shape, mask.shape)
    except ValueError:
        raise NumgradValueError(
            f"{operation}: operand of shape {tuple(x.shape)} and mask of shape "
            f"{tuple(mask.shape)} do not broadcast; axes are matched from the right and must be "
            "equal or 1"
        ) from None


@composite(errors=[(((3,), (3,), ()), {}, "NumgradTypeError")], smooth=True, keeps_dtype=True)
def masked_fill(x, mask, value):
    """The operand with a number where a mask is true; both broadcast against each other.

    Parameters
    ----------
    x
        Array.
    mask
        Booleans.
    value
        Number or 0-d array, which may require grad.

    Returns
    -------
    Tensor
        Of the shape that ``x`` and ``mask`` broadcast to, and of the dtype of ``x``.

    Raises
    ------
    NumgradTypeError
        If the mask is not boolean, or the value does not fit into the dtype of ``x``.
    NumgradValueError
        If the value is not 0-d, or shapes do not broadcast.

    Examples
    --------
    >>> ng.masked_fill(ng.tensor([1.0, -2.0]), [False, True], 0.0)
    tensor([1., 0.])
    """
    x, mask = as_operand(x), _mask("masked_fill", mask)
    _common_shape("masked_fill", x, mask)
    return where(mask, as_number("masked_fill", value, x.dtype), x)


masked_fill.calls = [
    (((2, 3), ()), lambda x, v: masked_fill(x, _MASK, v)),
]


@primitive(internal=True, differentiable=False, method=False)
def mask_ranks(mask, *, size):
    """How many elements of a mask are true before each one, in C order; 0 where it is false."""
    counts = np.cumsum(mask).reshape(mask.shape)
    if mask.size and counts.flat[-1] > size:
        raise NumgradValueError(
            f"masked_scatter: the mask is true for {counts.flat[-1]} elements and the source has "
            f"{size}; it needs one for each"
        )
    return np.where(mask, counts - 1, 0)


mask_ranks.shape(lambda mask, *, size: Meta(mask.shape, np.dtype(np.int64)))


@composite(errors=[(((3,), (3,), (3,)), {}, "NumgradTypeError")], smooth=True, keeps_dtype=True)
def masked_scatter(x, mask, source):
    """The operand with the elements of another array, in order, where a mask is true.

    Parameters
    ----------
    x
        Array; it and the mask broadcast against each other.
    mask
        Booleans.
    source
        Array of at least as many elements as the mask has true ones; the rest is not used.

    Returns
    -------
    Tensor
        Of the shape that ``x`` and ``mask`` broadcast to, and of the dtype of ``x``.

    Raises
    ------
    NumgradTypeError
        If the mask is not boolean, or the source does not fit into the dtype of ``x``.
    NumgradValueError
        If the source has too few elements, or shapes do not broadcast.

    Examples
    --------
    >>> ng.masked_scatter(ng.zeros(3), [True, False, True], [1.0, 2.0])
    tensor([1., 0., 2.])
    """
    x, mask, source = as_operand(x), _mask("masked_scatter", mask), as_operand(source)
    shape = _common_shape("masked_scatter", x, mask)
    source = ravel(converted("masked_scatter", source, x.dtype))
    mask = broadcast_to(mask, shape)
    ranks = mask_ranks(mask, size=source.shape[0])
    if not source.shape[0]:  # nothing is written: any element will do to read
        source = broadcast_to(OPS["sum"](source), (1,))
    return where(mask, take(source, ranks), x)


masked_scatter.calls = [
    (((2, 3), (4,)), lambda x, v: masked_scatter(x, _MASK, v)),
]
