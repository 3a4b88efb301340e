"""Functions of complex results, Voigt's profile, and derivatives of Bessel functions.

Of order ``n`` the derivative of a cylinder function ``f`` is ``2**-n`` times a sum over ``i`` of
``phase**i * binom(n, i) * f(v - n + 2 i, z)`` (DLMF 10.6.7 and 10.29.5), with the sign of ``n`` for
that which falls.
"""

import math
from operator import index
from typing import Any, Protocol

import numpy as np

from numgrad.core.declare import Op, composite
from numgrad.errors import NumgradValueError
from numgrad.operations.error_gamma_logistic import floating
from numgrad.operations.shape import as_array
from numgrad.operations.special_functions import declare
from numgrad.operations.special_functions.bessel import beip_over, berp_over, iv, jv, kv, yv


@declare.several(dtypes=declare.complex_result)
def lambertw(z, *, k=0, tol=1e-8):
    """Lambert's W function: ``w * exp(w)`` is ``z``; complex, as in SciPy.

    Parameters
    ----------
    z
        Argument, real or complex.
    k
        Branch.
    tol
        Where the iteration ends.

    Returns
    -------
    Tensor
        Complex, of the shape of ``z``.

    Examples
    --------
    >>> ng.special.lambertw(ng.tensor([0.0, 1.0])).real
    tensor([0.        , 0.56714329])
    """


lambertw.vjp(z=lambda g, y: g * np.conj(np.exp(-y) / (1 + y)))


@declare.several(dtypes=declare.complex_result)
def wofz(z):
    """Faddeeva's function, ``exp(-z**2) * erfc(-1j * z)``; complex.

    Parameters
    ----------
    z
        Argument, real or complex.

    Returns
    -------
    Tensor
        Complex, of the shape of ``z``.

    Examples
    --------
    >>> ng.special.wofz(ng.tensor([0.0, 1.0])).real
    tensor([1.        , 0.36787944])
    """


# Far from 0 the two terms of the derivative cancel; there is a series of 1 / z**2 instead, beside
# which exponentials vanish, except where these are large.
_FAR = 30.0


def _wofz_vjp(g, z, y):
    x, height = np.real(z), np.imag(z)
    far = (np.abs(z) > _FAR) & ((height >= 0) | (np.abs(x) > 2 * np.abs(height)))
    t = 1 / np.where(far, z, 1)
    t = t * t
    near = (2j / math.sqrt(math.pi)) - 2 * np.where(far, 0, z) * y
    return g * np.conj(np.where(far, (-1j / math.sqrt(math.pi)) * (t * _asymptotic(t, 3)), near))


def _asymptotic(t, first):
    """``1 + first * t / 2 + first * (first + 2) * t**2 / 4 + ...``, of small ``t``."""
    total = 1.0
    for k in range(7, -1, -1):
        total = 1 + (0.5 * (first + 2 * k)) * (t * total)
    return total


wofz.vjp(z=_wofz_vjp)


@declare.several(dtypes=declare.complex_results, count=2)
def modfresnelp(x):
    """Modified Fresnel integrals of positive sign; complex.

    Returns
    -------
    tuple of Tensors
        The integral of ``exp(1j * t**2)`` from ``x`` on, and that times
        ``exp(-1j * (x**2 + pi / 4)) / sqrt(pi)``.

    Examples
    --------
    >>> ng.special.modfresnelp(ng.tensor([0.0, 1.0]))[1]
    tensor([0.5       +0.j        , 0.20779405+0.11515989j], dtype=complex128)
    """


@declare.several(dtypes=declare.complex_results, count=2)
def modfresnelm(x):
    """Modified Fresnel integrals of negative sign; complex.

    Returns
    -------
    tuple of Tensors
        The conjugates of what ``modfresnelp`` returns.

    Examples
    --------
    >>> ng.special.modfresnelm(ng.tensor([0.0, 1.0]))[1]
    tensor([0.5       +0.j        , 0.20779405-0.11515989j], dtype=complex128)
    """


def _fresnel_slopes(sign):
    edge = np.exp(-0.25j * sign * math.pi) / math.sqrt(math.pi)

    def vjp(g, x, y):
        return declare.arrived(
            g,
            lambda: np.conj(-np.exp(1j * sign * x * x)),
            lambda: np.conj(-2j * sign * x * y[1] - edge),
        )

    return vjp


modfresnelp.vjp(x=_fresnel_slopes(1))
modfresnelm.vjp(x=_fresnel_slopes(-1))


@declare.several(dtypes=declare.complex_results, count=4)
def kelvin(x):
    """Kelvin functions and their derivatives as complex numbers.

    Returns
    -------
    tuple of Tensors
        ``ber + 1j * bei``, ``ker + 1j * kei``, and their derivatives.

    Examples
    --------
    >>> ng.special.kelvin(ng.tensor([1.0, 2.0]))[0]
    tensor([0.98438178+0.24956604j, 0.75173418+0.97229163j], dtype=complex128)
    """


def _first_over(x, slope):
    return berp_over(x, np.real(slope)) + 1j * beip_over(x, np.imag(slope))


def _kelvin_vjp(g, x, y):
    return declare.arrived(
        g,
        lambda: np.conj(y[2]),
        lambda: np.conj(y[3]),
        lambda: np.conj(1j * y[0] - _first_over(x, y[2])),
        lambda: np.conj(1j * y[1] - y[3] / x),
    )


kelvin.vjp(x=_kelvin_vjp)

# --------------------------------------------------------------------------------------- Hankel


@declare.several(dtypes=declare.complex_result)
def hankel1(v, z):
    """Hankel function of the first kind; complex.

    The derivative in the order is one of differences of order ten, as that of ``jv``.

    Returns
    -------
    Tensor
        ``jv(v, z) + 1j * yv(v, z)``.

    Examples
    --------
    >>> ng.special.hankel1(0.5, ng.tensor([1.0, 2.0]))
    tensor([0.67139671-0.43109887j, 0.51301614+0.23478571j], dtype=complex128)
    """


@declare.several(dtypes=declare.complex_result)
def hankel2(v, z):
    """Hankel function of the second kind; complex, with derivatives as ``hankel1``.

    Returns
    -------
    Tensor
        ``jv(v, z) - 1j * yv(v, z)``.

    Examples
    --------
    >>> ng.special.hankel2(0.5, ng.tensor([1.0, 2.0]))
    tensor([0.67139671+0.43109887j, 0.51301614-0.23478571j], dtype=complex128)
    """


@declare.several(dtypes=declare.complex_result)
def hankel1e(v, z):
    """``hankel1(v, z) * exp(-1j * z)``, with derivatives as that has.

    Returns
    -------
    Tensor
        Complex, of the shape to which the operands broadcast.

    Examples
    --------
    >>> ng.special.hankel1e(0.5, ng.tensor([1.0, 2.0])).imag
    tensor([-0.79788456, -0.56418958])
    """


@declare.several(dtypes=declare.complex_result)
def hankel2e(v, z):
    """``hankel2(v, z) * exp(1j * z)``, with derivatives as that has.

    Returns
    -------
    Tensor
        Complex, of the shape to which the operands broadcast.

    Examples
    --------
    >>> ng.special.hankel2e(0.5, ng.tensor([1.0, 2.0])).imag
    tensor([0.79788456, 0.56418958])
    """


def _hankel(f, sign, scaled):
    """Gradients; a scaled function has an exponential besides."""

    def by_order(g, v, z):
        return g * np.conj(declare.central_difference(lambda v: f(v, z), v))

    def by_argument(g, v, z):  # not by the result, to which SciPy's sums for h1vp are added
        return g * np.conj(0.5 * (f(v - 1, z) - f(v + 1, z)))

    def by_argument_scaled(g, v, z, y):
        return g * np.conj(0.5 * (f(v - 1, z) - f(v + 1, z)) - 1j * sign * y)

    f.vjp(v=by_order, z=by_argument_scaled if scaled else by_argument)


_hankel(hankel1, 1, False)
_hankel(hankel2, -1, False)
_hankel(hankel1e, 1, True)
_hankel(hankel2e, -1, True)


@composite(ref="scipy.special.voigt_profile", method=False, samples=[(((2, 3), (3,), (3,)), {})],
           domain=(0.3, 3.0), real_only=True, smooth=True)  # fmt: skip
def voigt_profile(x, sigma, gamma):
    """Density of the sum of a normal and a Cauchy number: Voigt's profile.

    Parameters
    ----------
    sigma
        Standard deviation of the normal one.
    gamma
        Half of the width of the Cauchy one at half of its height.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast.

    Examples
    --------
    >>> ng.special.voigt_profile(ng.tensor([0.0, 1.0]), 1.0, 0.5)
    tensor([0.27895547, 0.20017964])
    """
    x, sigma, gamma = map(as_array, (x, sigma, gamma))
    floating("voigt_profile", [x.dtype, sigma.dtype, gamma.dtype])  # refuses complex ones
    # of a narrow normal number by a series of its variance: all of wofz would cancel in derivatives
    far = (gamma >= 0) & (sigma >= 0) & (np.hypot(x, gamma) > (math.sqrt(2) * _FAR) * sigma)
    root = 1 / np.where(far, x + 1j * gamma, 1)
    variance = np.where(far, sigma * sigma, 0)
    cauchy = (0.0 - np.imag(root * _asymptotic(2 * (variance * root * root), 1))) / math.pi
    scale = 1 / (math.sqrt(2) * np.where(far, 1, sigma))
    normal = np.real(wofz(np.where(far, 0, x + 1j * gamma) * scale)) * (scale / math.sqrt(math.pi))
    return np.where(far, cauchy, normal)


class Derivative(Protocol):
    """A derivative of order ``n`` by the argument of a function of order ``v``."""

    def __call__(self, v: Any, z: Any, n: int = 1) -> Any: ...


_PAGE = """Derivative of order ``n`` of ``{of}`` by ``z``.

    Parameters
    ----------
    v
        Order of the function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.{name}(0, ng.tensor([1.0])).round(6)
    {example}
    """


def _of(f: Op, name: str, example: str, *, phase: int, sign: int = 1) -> Derivative:
    """The function of SciPy's name that differentiates ``f``."""

    def derivative(v: Any, z: Any, n: int = 1) -> Any:
        try:
            order = index(n)
        except TypeError:
            order = -1
        if order < 0:
            raise NumgradValueError(
                f"{name}: n is {n!r}; it must be an integer that is not negative"
            )
        v, z = as_array(v), as_array(z)
        terms = [(phase**i * math.comb(order, i), v - order + 2 * i) for i in range(order + 1)]
        (_, first), *rest = terms
        total = f(first, z)
        for factor, at in rest:
            total = total + factor * f(at, z)
        return total * (0.5 * sign) ** order

    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = _PAGE.format(of=f.name, name=name, example=example)
    return derivative


jvp = _of(jv, "jvp", "tensor([-0.440051])", phase=-1)
yvp = _of(yv, "yvp", "tensor([0.781213])", phase=-1)
ivp = _of(iv, "ivp", "tensor([0.565159])", phase=1)
kvp = _of(kv, "kvp", "tensor([-0.601907])", phase=1, sign=-1)
h1vp = _of(hankel1, "h1vp", "tensor([-0.440051+0.781213j], dtype=complex128)", phase=-1)
h2vp = _of(hankel2, "h2vp", "tensor([-0.440051-0.781213j], dtype=complex128)", phase=-1)
