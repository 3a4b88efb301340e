"""Comparisons, tests, logic and bits: operations without gradients."""

import numpy as np

from numgrad.core.declare import composite, elementwise


@elementwise(ref=np.equal, dunder="eq", differentiable=False)
def equal(a, b):
    """Whether the operands are equal."""
    return a == b


@elementwise(ref=np.not_equal, dunder="ne", differentiable=False)
def not_equal(a, b):
    """Whether the operands differ."""
    return a != b


@elementwise(ref=np.less, dunder="lt", differentiable=False)
def less(a, b):
    """Whether the first operand is smaller."""
    return a < b


@elementwise(ref=np.less_equal, dunder="le", differentiable=False)
def less_equal(a, b):
    """Whether the first operand is not larger."""
    return a <= b


@elementwise(ref=np.greater, dunder="gt", differentiable=False)
def greater(a, b):
    """Whether the first operand is larger."""
    return a > b


@elementwise(ref=np.greater_equal, dunder="ge", differentiable=False)
def greater_equal(a, b):
    """Whether the first operand is not smaller."""
    return a >= b


@elementwise(ref=np.isnan, differentiable=False)
def isnan(x):
    """Whether an element is NaN."""
    return np.isnan(x)


@elementwise(ref=np.isinf, differentiable=False)
def isinf(x):
    """Whether an element is infinite."""
    return np.isinf(x)


@elementwise(ref=np.isfinite, differentiable=False)
def isfinite(x):
    """Whether an element is neither infinite nor NaN."""
    return np.isfinite(x)


@elementwise(ref=np.signbit, differentiable=False)
def signbit(x):
    """Whether the sign bit is set, as it is for -0.0."""
    return np.signbit(x)


@elementwise(ref=np.logical_and, differentiable=False)
def logical_and(a, b):
    """Whether both operands are non-zero."""
    return np.logical_and(a, b)


@elementwise(ref=np.logical_or, differentiable=False)
def logical_or(a, b):
    """Whether an operand is non-zero."""
    return np.logical_or(a, b)


@elementwise(ref=np.logical_xor, differentiable=False)
def logical_xor(a, b):
    """Whether exactly one operand is non-zero."""
    return np.logical_xor(a, b)


@elementwise(ref=np.logical_not, differentiable=False)
def logical_not(x):
    """Whether the operand is zero."""
    return np.logical_not(x)


@elementwise(ref=np.bitwise_and, dunder="and", differentiable=False)
def bitwise_and(a, b):
    """Bits set in both operands."""
    return a & b


@elementwise(ref=np.bitwise_or, dunder="or", differentiable=False)
def bitwise_or(a, b):
    """Bits set in either operand."""
    return a | b


@elementwise(ref=np.bitwise_xor, dunder="xor", differentiable=False)
def bitwise_xor(a, b):
    """Bits set in exactly one operand."""
    return a ^ b


@elementwise(
    ref=np.invert, dunder="invert", differentiable=False, aliases=("bitwise_not", "bitwise_invert")
)
def invert(x):
    """All bits changed; for bool, negation."""
    return ~x


@elementwise(
    ref=np.left_shift, dunder="lshift", differentiable=False, aliases=("bitwise_left_shift",)
)
def left_shift(a, b):
    """Bits moved towards the high end."""
    return a << b


@elementwise(
    ref=np.right_shift, dunder="rshift", differentiable=False, aliases=("bitwise_right_shift",)
)
def right_shift(a, b):
    """Bits moved towards the low end."""
    return a >> b


@composite(ref=np.isclose, differentiable=False)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether elements are equal within a tolerance."""
    near = np.abs(a - b) <= atol + rtol * np.abs(b)
    near = (near & np.isfinite(b)) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@composite(ref=np.allclose, differentiable=False, method=False)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are equal within a tolerance."""
    from numgrad.operations.reduce import all

    return bool(all(isclose(a, b, rtol, atol, equal_nan)))
