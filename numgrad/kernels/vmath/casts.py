"""Floats as integers, which C leaves undefined out of range: what NumPy gives on x86.

There a conversion out of range, or of NaN, is the smallest integer. Shorter integers are what is
left of one of 32 bits; unsigned ones of 32 and 64 bits are as far above half their range as the
float is. (Of 32 unsigned bits NumPy's own answers depend on where in an array a number lies.)
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import select

_HALF_32, _HALF_64 = 2.0**31, 2.0**63
_HALF = np.int64(2**31)
_LEAST = np.int64(-(2**63))


@device
def to_int32_f64(x):
    """The integer of 32 bits, in 64."""
    return np.int64(select((x > -_HALF_32 - 1.0) & (x < _HALF_32), x, -_HALF_32))


@device
def to_int64_f64(x):
    """The integer of 64 bits."""
    return np.int64(select((x >= -_HALF_64) & (x < _HALF_64), x, -_HALF_64))


@device
def to_uint32_f64(x):
    """The lower 32 bits of the result are the unsigned integer."""
    if x >= _HALF_32:
        return to_int32_f64(x - _HALF_32) + _HALF
    return to_int32_f64(x)


@device
def to_uint64_f64(x):
    """The unsigned integer's bits."""
    if x >= _HALF_64:
        return to_int64_f64(x - _HALF_64) ^ _LEAST
    return to_int64_f64(x)


@device
def to_int32_f32(x):
    """The integer of 32 bits, in 64."""
    return to_int32_f64(np.float64(x))


@device
def to_int64_f32(x):
    """The integer of 64 bits."""
    return to_int64_f64(np.float64(x))


@device
def to_uint32_f32(x):
    """The lower 32 bits of the result are the unsigned integer."""
    return to_uint32_f64(np.float64(x))


@device
def to_uint64_f32(x):
    """The unsigned integer's bits."""
    return to_uint64_f64(np.float64(x))
