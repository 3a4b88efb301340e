"""Rounding to integers and to decimal places."""

import numpy as np

from numgrad.core.declare import composite, elementwise


@elementwise(ref=np.floor, special=(0.5,), real=True)
def floor(x):
    """Largest integer not above the operand.

    Examples
    --------
    >>> ng.floor(ng.tensor([-1.5, 0.2, 2.0]))
    tensor([-2.,  0.,  2.])
    """
    return np.floor(x)


floor.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.ceil, special=(0.5,), real=True)
def ceil(x):
    """Smallest integer not below the operand.

    Examples
    --------
    >>> ng.ceil(ng.tensor([-1.5, 0.2, 2.0]))
    tensor([-1.,  1.,  2.])
    """
    return np.ceil(x)


ceil.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.trunc, special=(0.5,), aliases=("fix",), real=True)
def trunc(x):
    """The operand without its fractional part.

    Examples
    --------
    >>> ng.trunc(ng.tensor([-1.7, 1.7]))
    tensor([-1.,  1.])
    """
    return np.trunc(x)


trunc.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.rint, special=(0.5, 1.5, 2.5))
def rint(x):
    """Nearest integer, halves to even.

    Examples
    --------
    >>> ng.rint(ng.tensor([0.5, 1.5, -1.7]))
    tensor([ 0.,  2., -2.])
    """
    return np.rint(x)


rint.kink(x=([0.5, 2.5, 1.0], [0, 0, 0]))


for _step in (floor, ceil, trunc, rint):
    _step.vjp(x=lambda: 0)


@composite(ref=np.round, aliases=("around",))
def round(x, decimals=0):
    """The operand rounded to ``decimals`` decimal places, halves to even; integers stay so.

    Parameters
    ----------
    decimals
        Places after the point; a negative number counts those before.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.round(ng.tensor([0.125, 2.5, 17.3]), 1)
    tensor([ 0.1,  2.5, 17.3])
    """
    from numgrad.operations.shape import as_operand, astype, copy

    x = as_operand(x)
    integers = x.dtype.kind in "iu"
    if integers and decimals >= 0:
        return copy(x)
    if decimals == 0:
        return rint(x)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return rint(x * scale) / scale
    result = rint(x / scale) * scale
    return astype(result, dtype=x.dtype) if integers else result


round.calls = [
    (((2, 3),), lambda x: round(x, 1)),
]
round.kink(x=([0.25, 1.0], [0, 0]), params={"decimals": 1})
