"""Elementwise functions that few programs call: parts of numbers, neighbours, ``np.emath``."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.core.abstract import broadcast_lengths
from numgrad.core.batching import broadcasting_rule
from numgrad.core.declare import OPS, Meta, composite, elementwise, primitive, state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arithmetic import absolute, floor_divide, positive, real, remainder, trunc
from numgrad.operations.choice import where
from numgrad.operations.compare import equal
from numgrad.operations.shape import as_operand


@composite(ref=np.sinc)
def sinc(x):
    """``sin(pi x) / (pi x)``, 1 at 0.

    Returns
    -------
    Tensor
        Of the shape of ``x``; floating or complex.

    Examples
    --------
    >>> ng.sinc(ng.tensor([0.0, 0.5]))
    tensor([1.        , 0.63661977])
    """
    return sinc_pi(as_operand(x) * pi)


def _sinc_slope(x, y):
    small = np.abs(x) < 0.1
    safe = np.where(small, 1, x)
    s = x * x
    series = x * (-1 / 3 + s * (1 / 30 - s * (1 / 840 - s * (1 / 45360 - s / 3991680))))
    return np.where(small, series, (np.cos(safe) - y) / safe)


@elementwise(internal=True, method=False, ref=lambda x: np.sinc(x / np.pi), smooth=True)
def sinc_pi(x):
    """``sin(x) / x``, 1 at 0."""
    small = np.abs(x) < 0.1
    safe = np.where(small, 1, x)
    s = x * x
    series = 1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72)))
    return np.where(small, series, np.sin(safe) / safe)


sinc_pi.vjp(x=lambda g, x, y: g * np.conj(_sinc_slope(x, y)))
sinc.kink(x=([0.0], [0]))


# ------------------------------------------------------------------------ by a ufunc of NumPy's


def _of_ufunc(op: Any, ufunc: np.ufunc) -> None:
    """Let shapes, dtypes and batches be those of a ufunc."""

    def rule(*metas: Meta) -> Meta:
        _, out = resolve(ufunc, [m.dtype for m in metas])
        return Meta(broadcast_lengths(*[m.shape for m in metas]), out)

    op.types = ufunc
    op.shape(rule)
    op.batch(broadcasting_rule)


def _called(ufunc: np.ufunc, *operands: np.ndarray) -> Any:
    loop, _ = resolve(ufunc, [x.dtype for x in operands])  # raises an error of ours
    try:
        return ufunc(*[x.astype(d, copy=False) for x, d in zip(operands, loop, strict=True)])
    except ValueError as error:
        raise NumgradValueError(f"{ufunc.__name__}: {error}") from None


@primitive(ref=np.gcd, differentiable=False, method=False)
def gcd(a, b):
    """Greatest common divisor of integers.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to.

    Examples
    --------
    >>> ng.gcd(ng.tensor([12, 20]), 8)
    tensor([4, 4])
    """
    return _called(np.gcd, a, b)


@primitive(ref=np.lcm, differentiable=False, method=False)
def lcm(a, b):
    """Least common multiple of integers.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to.

    Examples
    --------
    >>> ng.lcm(ng.tensor([12, 20]), 8)
    tensor([24, 40])
    """
    return _called(np.lcm, a, b)


@primitive(ref=np.bitwise_count, differentiable=False, method=False)
def bitwise_count(x):
    """Number of ones in the binary digits of the magnitudes of integers.

    Returns
    -------
    Tensor
        Of dtype uint8 and the shape of ``x``.

    Examples
    --------
    >>> ng.bitwise_count(ng.tensor([7, 8]))
    tensor([3, 1], dtype=uint8)
    """
    return _called(np.bitwise_count, x)


@primitive(ref=np.nextafter, method=False, smooth=True)
def nextafter(a, b):
    """Next floating number after the first operand, towards the second; a gradient of 1 in it.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to.

    Examples
    --------
    >>> ng.nextafter(ng.tensor(1.0), 2.0) - 1.0 == np.finfo(float).eps
    tensor(True)
    """
    return _called(np.nextafter, a, b)


nextafter.vjp(a=lambda g: g, b=lambda g: g * 0)


@primitive(ref=np.spacing, method=False, smooth=True)
def spacing(x):
    """Distance to the next floating number of larger magnitude; a gradient of 0.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.spacing(ng.tensor(1.0)) == np.finfo(float).eps
    tensor(True)
    """
    return _called(np.spacing, x)


spacing.vjp(x=lambda g: g * 0)


@primitive(ref=np.ldexp, method=False, linear=True)
def ldexp(x, exponent):
    """``x * 2**exponent`` without rounding or overflow on the way.

    Parameters
    ----------
    exponent
        Integers.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to.

    Examples
    --------
    >>> ng.ldexp(ng.tensor([1.0, 3.0]), [3, -1])
    tensor([8. , 1.5])
    """
    return _called(np.ldexp, x, exponent)


ldexp.no_derivative("exponent")
ldexp.vjp(x=lambda g, exponent: ldexp(g, exponent))
for _op, _ufunc in (
    (gcd, np.gcd), (lcm, np.lcm), (bitwise_count, np.bitwise_count), (nextafter, np.nextafter),
    (spacing, np.spacing), (ldexp, np.ldexp),
):  # fmt: skip
    _of_ufunc(_op, _ufunc)


# ------------------------------------------------------------------------------- parts of numbers


def _real(name: str, x: Any) -> Any:
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"{name}: takes real operands, got complex ones")
    return x


def _floating(name: str, x: Any) -> Any:
    x = _real(name, x)
    if x.dtype.kind != "f":
        _, dtype = resolve(np.fabs, [x.dtype])
        x = x.astype(dtype)
    return x


@primitive(internal=True, method=False, differentiable=False)
def exponents(x):
    """Exponents of two that bring magnitudes between 0.5 and 1."""
    return np.frexp(x)[1]


exponents.shape(lambda x: Meta(x.shape, np.dtype(np.int32)))
exponents.batch(broadcasting_rule)


@composite(ref=np.frexp, method=False, smooth=True)
def frexp(x):
    """Numbers as ``mantissa * 2**exponent``, mantissas between 0.5 and 1 in magnitude.

    Returns
    -------
    tuple of Tensors
        Mantissas, and exponents of dtype int32; both of the shape of ``x``.

    Examples
    --------
    >>> ng.frexp(ng.tensor([1.0, 6.0]))
    (tensor([0.5 , 0.75]), tensor([1, 3], dtype=int32))
    """
    x = _floating("frexp", x)
    e = exponents(x)
    return ldexp(x, -e), e


@composite(ref=np.modf, method=False, smooth=True)
def modf(x):
    """Fractional and whole parts of numbers, both with their sign.

    Returns
    -------
    tuple of Tensors
        Of the shape of ``x``; the gradient goes to the fractional part.

    Examples
    --------
    >>> ng.modf(ng.tensor([1.25, -3.5]))
    (tensor([ 0.25, -0.5 ]), tensor([ 1., -3.]))
    """
    x = _floating("modf", x)
    whole = trunc(x)
    return where(np.isinf(x), 0, x - where(np.isinf(x), 0, whole)), whole


@composite(ref=np.divmod, method=False, smooth=True)
def divmod(a, b):
    """``floor_divide`` and ``remainder``.

    Returns
    -------
    tuple of Tensors
        Quotients rounded down, and remainders.

    Examples
    --------
    >>> ng.divmod(ng.tensor([7.0, -7.0]), 3.0)
    (tensor([ 2., -3.]), tensor([1., 2.]))
    """
    return floor_divide(a, b), remainder(a, b)


@composite(ref=np.fabs, method=False)
def fabs(x):
    """Magnitudes of real numbers, as floating numbers.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.fabs(ng.tensor([-1, 2]))
    tensor([1., 2.])
    """
    return absolute(_floating("fabs", x))


@composite(ref=np.isposinf, method=False, differentiable=False)
def isposinf(x):
    """Whether elements are positive infinities.

    Returns
    -------
    Tensor
        Of dtype bool and the shape of ``x``.

    Examples
    --------
    >>> ng.isposinf(ng.tensor([np.inf, -np.inf, 1.0]))
    tensor([ True, False, False])
    """
    return equal(_real("isposinf", x), np.inf)


@composite(ref=np.isneginf, method=False, differentiable=False)
def isneginf(x):
    """Whether elements are negative infinities.

    Returns
    -------
    Tensor
        Of dtype bool and the shape of ``x``.

    Examples
    --------
    >>> ng.isneginf(ng.tensor([np.inf, -np.inf, 1.0]))
    tensor([False,  True, False])
    """
    return equal(_real("isneginf", x), -np.inf)


@composite(ref=np.real_if_close, method=False, smooth=True)
def real_if_close(x, tol=100):
    """Real parts if all imaginary parts are nearly zero, else the operand.

    Parameters
    ----------
    tol : float
        In multiples of the precision if above 1, else absolute.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.real_if_close(ng.tensor([1.0 + 1e-15j, 2.0]))
    tensor([1., 2.])
    """
    x = as_operand(x)
    if x.dtype.kind != "c":
        return positive(x)
    known: Any = state.ground.numbers(x)
    if known is None:
        return x._array.refuse("real_if_close", "use real()")
    bound = tol * np.finfo(x.dtype).eps if tol > 1 else tol
    return real(x) if (np.abs(known.imag) < bound).all() else positive(x)


fabs.kink(x=([0.0], [0]))


def _extended(name: str, x: Any, outside: Callable[[np.ndarray], Any]) -> Any:
    """An operand, converted to complex numbers if some real one is ``outside`` of the domain."""
    x = as_operand(x)
    if x.dtype.kind == "c":
        return x
    numbers = state.ground.numbers(x)
    if numbers is None:
        raise NumgradTypeError(
            f"emath.{name}: whether the result is complex depends on numbers that come later in a "
            f"compiled or batched function; use np.{name}, of x.astype(complex) if it is to be so"
        )
    return x.astype(np.result_type(x.dtype, np.complex64)) if np.any(outside(numbers)) else x


def _negative(x: np.ndarray) -> Any:
    return x < 0


def _beyond_one(x: np.ndarray) -> Any:
    return np.abs(x) > 1


def _declare(name: str, outside: Callable[[np.ndarray], Any]) -> None:
    def function(x: Any) -> Any:
        return OPS[name](_extended(name, x, outside))

    function.__name__ = f"emath_{name}"
    function.__doc__ = f"``{name}``, complex where a real operand has no real result."
    composite(ref=getattr(np.emath, name), method=False, internal=True)(function)


for _name in ("sqrt", "log", "log2", "log10"):
    _declare(_name, _negative)
for _name in ("arccos", "arcsin", "arctanh"):
    _declare(_name, _beyond_one)


@composite(ref=np.emath.logn, method=False, internal=True)
def emath_logn(n, x):
    """Logarithm to the base ``n``, complex where a real operand has no real one."""
    log = OPS["log"]
    return log(_extended("log", x, _negative)) / log(_extended("log", n, _negative))


@composite(ref=np.emath.power, method=False, internal=True)
def emath_power(x, p):
    """The first operand raised to the second, complex where a base is negative."""
    p = as_operand(p)
    exponents = state.ground.numbers(p) if p.dtype.kind == "i" else None
    if exponents is not None and np.any(exponents < 0):
        p = p.astype(np.float64)
    return OPS["power"](_extended("power", x, _negative), p)
