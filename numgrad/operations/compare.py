"""Comparisons, tests, logic and bits: operations without gradients."""

import numpy as np

from numgrad.core.declare import composite, elementwise
from numgrad.operations.shape import as_operand


def _infinite(value: int, limits: np.iinfo) -> float:
    """A number that compares with all integers of a dtype as one that lies beyond them."""
    return np.inf if value > limits.max else -np.inf


@elementwise(ref=np.equal, dunder="eq", differentiable=False, beyond=_infinite)
def equal(a, b):
    """Whether the operands are equal.

    Examples
    --------
    >>> ng.equal(ng.tensor([1.0, np.nan]), [1.0, np.nan])
    tensor([ True, False])
    """
    return a == b


@elementwise(ref=np.not_equal, dunder="ne", differentiable=False, beyond=_infinite)
def not_equal(a, b):
    """Whether the operands differ.

    Examples
    --------
    >>> ng.not_equal(ng.tensor([1.0, np.nan]), [1.0, np.nan])
    tensor([False,  True])
    """
    return a != b


@elementwise(ref=np.less, dunder="lt", differentiable=False, beyond=_infinite)
def less(a, b):
    """Whether the first operand is smaller.

    Examples
    --------
    >>> ng.less(ng.tensor([1.0, 2.0, 3.0]), 2)
    tensor([ True, False, False])
    """
    return a < b


@elementwise(ref=np.less_equal, dunder="le", differentiable=False, beyond=_infinite)
def less_equal(a, b):
    """Whether the first operand is not larger.

    Examples
    --------
    >>> ng.less_equal(ng.tensor([1.0, 2.0, 3.0]), 2)
    tensor([ True,  True, False])
    """
    return a <= b


@elementwise(ref=np.greater, dunder="gt", differentiable=False, beyond=_infinite)
def greater(a, b):
    """Whether the first operand is larger.

    Examples
    --------
    >>> ng.greater(ng.tensor([1.0, 2.0, 3.0]), 2)
    tensor([False, False,  True])
    """
    return a > b


@elementwise(ref=np.greater_equal, dunder="ge", differentiable=False, beyond=_infinite)
def greater_equal(a, b):
    """Whether the first operand is not smaller.

    Examples
    --------
    >>> ng.greater_equal(ng.tensor([1.0, 2.0, 3.0]), 2)
    tensor([False,  True,  True])
    """
    return a >= b


@elementwise(ref=np.isnan, differentiable=False)
def isnan(x):
    """Whether an element is NaN.

    Examples
    --------
    >>> ng.isnan(ng.tensor([1.0, np.inf, np.nan]))
    tensor([False, False,  True])
    """
    return np.isnan(x)


@elementwise(ref=np.isinf, differentiable=False)
def isinf(x):
    """Whether an element is infinite.

    Examples
    --------
    >>> ng.isinf(ng.tensor([1.0, -np.inf, np.nan]))
    tensor([False,  True, False])
    """
    return np.isinf(x)


@elementwise(ref=np.isfinite, differentiable=False)
def isfinite(x):
    """Whether an element is neither infinite nor NaN.

    Examples
    --------
    >>> ng.isfinite(ng.tensor([1.0, np.inf, np.nan]))
    tensor([ True, False, False])
    """
    return np.isfinite(x)


@elementwise(ref=np.signbit, differentiable=False)
def signbit(x):
    """Whether the sign bit is set, as it is for -0.0.

    Examples
    --------
    >>> ng.signbit(ng.tensor([-0.0, 0.0, -3.0]))
    tensor([ True, False,  True])
    """
    return np.signbit(x)


@elementwise(ref=np.logical_and, differentiable=False)
def logical_and(a, b):
    """Whether both operands are non-zero.

    Examples
    --------
    >>> ng.logical_and(ng.tensor([0, 1, 2]), True)
    tensor([False,  True,  True])
    """
    return np.logical_and(a, b)


@elementwise(ref=np.logical_or, differentiable=False)
def logical_or(a, b):
    """Whether an operand is non-zero.

    Examples
    --------
    >>> ng.logical_or(ng.tensor([0, 1, 2]), False)
    tensor([False,  True,  True])
    """
    return np.logical_or(a, b)


@elementwise(ref=np.logical_xor, differentiable=False)
def logical_xor(a, b):
    """Whether exactly one operand is non-zero.

    Examples
    --------
    >>> ng.logical_xor(ng.tensor([0, 1, 2]), True)
    tensor([ True, False, False])
    """
    return np.logical_xor(a, b)


@elementwise(ref=np.logical_not, differentiable=False)
def logical_not(x):
    """Whether the operand is zero.

    Examples
    --------
    >>> ng.logical_not(ng.tensor([0, 1, 2]))
    tensor([ True, False, False])
    """
    return np.logical_not(x)


@elementwise(ref=np.bitwise_and, dunder="and", differentiable=False)
def bitwise_and(a, b):
    """Bits set in both operands.

    Examples
    --------
    >>> ng.bitwise_and(ng.tensor([6, 5]), 3)
    tensor([2, 1])
    """
    return a & b


@elementwise(ref=np.bitwise_or, dunder="or", differentiable=False)
def bitwise_or(a, b):
    """Bits set in either operand.

    Examples
    --------
    >>> ng.bitwise_or(ng.tensor([6, 5]), 3)
    tensor([7, 7])
    """
    return a | b


@elementwise(ref=np.bitwise_xor, dunder="xor", differentiable=False)
def bitwise_xor(a, b):
    """Bits set in exactly one operand.

    Examples
    --------
    >>> ng.bitwise_xor(ng.tensor([6, 5]), 3)
    tensor([5, 6])
    """
    return a ^ b


@elementwise(
    ref=np.invert, dunder="invert", differentiable=False, aliases=("bitwise_not", "bitwise_invert")
)
def invert(x):
    """All bits changed; for bool, negation.

    Examples
    --------
    >>> ng.invert(ng.tensor([True, False])), ng.invert(ng.tensor([0, 5]))
    (tensor([False,  True]), tensor([-1, -6]))
    """
    return ~x


@elementwise(
    ref=np.left_shift, dunder="lshift", differentiable=False, aliases=("bitwise_left_shift",)
)
def left_shift(a, b):
    """Bits moved towards the high end.

    Examples
    --------
    >>> ng.left_shift(ng.tensor([1, 5]), 2)
    tensor([ 4, 20])
    """
    return a << b


@elementwise(
    ref=np.right_shift, dunder="rshift", differentiable=False, aliases=("bitwise_right_shift",)
)
def right_shift(a, b):
    """Bits moved towards the low end.

    Examples
    --------
    >>> ng.right_shift(ng.tensor([4, 21]), 2)
    tensor([1, 5])
    """
    return a >> b


@composite(ref=np.isclose, differentiable=False)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether elements are equal within a tolerance.

    Returns
    -------
    Tensor
        Booleans of the shape the operands broadcast to.

    Examples
    --------
    >>> ng.isclose(ng.tensor([1.0, 2.0]), [1.0 + 1e-9, 2.1])
    tensor([ True, False])
    """
    b = as_operand(b)
    if b.dtype.kind in "biu":  # whose differences booleans lack, and short integers wrap
        b = b.astype(np.float64)
    near = np.abs(a - b) <= atol + rtol * np.abs(b)
    near = (near & np.isfinite(b)) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@composite(ref=np.allclose, differentiable=False, method=False)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are equal within a tolerance.

    Returns
    -------
    bool

    Examples
    --------
    >>> ng.allclose(ng.tensor([1.0, 2.0]), [1.0, 2.0 + 1e-9])
    True
    """
    from numgrad.operations.reduce import all

    return bool(all(isclose(a, b, rtol, atol, equal_nan)))
