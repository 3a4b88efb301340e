"""Carlson's symmetric integrals with any exponents, which all their derivatives are.

Note [Carlson's integrals]
--------------------------
The integral over positive ``t`` of ``(t + a)**-i (t + b)**-j (t + c)**-k (t + p)**-n`` has
derivatives of the same kind. With ``t = exp(u)`` the integrand is analytic in a strip around the
line of ``u``, as wide as the arguments are away from the negative half-line, and decays on both
sides like an exponential: so the trapezoidal rule converges like one. Its step is such that
``exp(-40)`` of the integral is left out. Complex arguments turn the path to the middle of their
angles.
"""

import math

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import fabs, maximum, minimum
from numgrad.kernels.vmath.complex_exponential import exp_c128
from numgrad.kernels.vmath.complex_inverse import log_c128
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.inverse_trigonometric import atan2_f64
from numgrad.kernels.vmath.logarithm import log_f64
from numgrad.kernels.vmath.precision import float64s

MODULE = "numgrad.kernels.carlson"
_REST = np.float64(40.0)  # what is left out is exp(-40) of the whole
_WIDEST = np.float64(2 * math.pi * math.pi / 40)  # the step for positive arguments
_PI, _STEP = np.float64(math.pi), np.float64(2 * math.pi / 40)
_HALF, _TWO, _ONE, _ZERO, _LEAST, _MOST = float64s("0.5 2.0 1.0 0.0 -745.0 709.0")


@device
def _logarithm(weight, size, none):
    """The logarithm of a weight, of a size that counts."""
    if weight == _ZERO or size == _ZERO:
        return none
    return log_f64(size)


@device
def _missing(weight, size):
    """The exponent of an argument that is 0."""
    if size == _ZERO:
        return weight
    return _ZERO


@outlined
def carlson_f64(i, j, k, n, a, b, c, p):
    """The integral of real arguments, none below 0; infinite where it diverges."""
    if not (a >= _ZERO and b >= _ZERO and c >= _ZERO and p >= _ZERO):
        return np.nan
    if a + b + c + p == np.inf:
        return _ZERO
    low = _ONE - (_missing(i, a) + _missing(j, b) + _missing(k, c) + _missing(n, p))
    high = i + j + k + n - _ONE
    if not (low > _ZERO and high > _ZERO):
        return np.inf
    first = minimum(
        minimum(_logarithm(i, a, _MOST), _logarithm(j, b, _MOST)),
        minimum(_logarithm(k, c, _MOST), _logarithm(n, p, _MOST)),
    )
    last = maximum(
        maximum(_logarithm(i, a, _LEAST), _logarithm(j, b, _LEAST)),
        maximum(_logarithm(k, c, _LEAST), _logarithm(n, p, _LEAST)),
    )
    first = first - _REST / low
    last = last + _REST / high
    steps = np.int64((last - first) / _WIDEST) + 1
    total = _ZERO
    for m in range(steps):
        u = first + m * _WIDEST
        t = exp_f64(u)
        total += exp_f64(
            u - i * log_f64(t + a) - j * log_f64(t + b) - k * log_f64(t + c) - n * log_f64(t + p)
        )
    return total * _WIDEST


@device
def carlson_f32(i, j, k, n, a, b, c, p):
    """The integral, computed in float64."""
    return np.float32(
        carlson_f64(
            np.float64(i), np.float64(j), np.float64(k), np.float64(n),
            np.float64(a), np.float64(b), np.float64(c), np.float64(p),
        )
    )  # fmt: skip


@device
def _size(z):
    return maximum(fabs(z.real), fabs(z.imag))


@device
def _angle(weight, z, none):
    if weight == _ZERO or (z.real == _ZERO and z.imag == _ZERO):
        return none
    return atan2_f64(z.imag, z.real)


@outlined
def carlson_c128(i, j, k, n, a, b, c, p):
    """The integral of complex arguments, none of which is real and below 0."""
    size = _size(a) + _size(b) + _size(c) + _size(p)
    if size == np.inf:
        return complex(_ZERO, _ZERO)
    low = _ONE - (
        _missing(i, _size(a))
        + _missing(j, _size(b))
        + _missing(k, _size(c))
        + _missing(n, _size(p))
    )
    high = i + j + k + n - _ONE
    if not (size >= _ZERO):
        return complex(np.nan, np.nan)
    if not (low > _ZERO and high > _ZERO):
        return complex(np.inf, _ZERO)
    least = minimum(
        minimum(_angle(i, a, _PI), _angle(j, b, _PI)), minimum(_angle(k, c, _PI), _angle(n, p, _PI))
    )
    most = maximum(
        maximum(_angle(i, a, -_PI), _angle(j, b, -_PI)),
        maximum(_angle(k, c, -_PI), _angle(n, p, -_PI)),
    )
    turn = _HALF * (least + most)
    room = _PI - _HALF * (most - least)
    if least <= -_PI or most >= _PI or room < np.float64(1e-3):
        return complex(np.nan, np.nan)
    step = _STEP * room
    first = minimum(
        minimum(_logarithm(i, _size(a), _MOST), _logarithm(j, _size(b), _MOST)),
        minimum(_logarithm(k, _size(c), _MOST), _logarithm(n, _size(p), _MOST)),
    )
    last = maximum(
        maximum(_logarithm(i, _size(a), _LEAST), _logarithm(j, _size(b), _LEAST)),
        maximum(_logarithm(k, _size(c), _LEAST), _logarithm(n, _size(p), _LEAST)),
    )
    first = first - _REST / low
    last = last + _REST / high
    steps = np.int64((last - first) / step) + 1
    total = complex(_ZERO, _ZERO)
    for m in range(steps):
        u = complex(first + m * step, turn)
        t = exp_c128(u)
        total = total + exp_c128(
            u
            - complex(i, _ZERO) * log_c128(t + a)
            - complex(j, _ZERO) * log_c128(t + b)
            - complex(k, _ZERO) * log_c128(t + c)
            - complex(n, _ZERO) * log_c128(t + p)
        )
    return total * complex(step, _ZERO)


library.LIBRARY["carlson"] = (MODULE, "carlson")
library.EXTERNALS["carlson"] = ()
library.COMPLEX_LIBRARY["carlson"] = MODULE
library.REAL_BESIDE["carlson"] = 4
