"""Functions with several results: Airy's, integrals of sines and Bessel functions, Jacobi's."""

import math

import numpy as np

from numgrad.operations.special_functions import bessel
from numgrad.operations.special_functions.declare import arrived, either, several
from numgrad.operations.special_functions.elliptic import ellipeinc, third_integral


@several(count=4, dtypes=either)
def airy(z):
    """Airy functions and their derivatives.

    Parameters
    ----------
    z
        Argument.

    Returns
    -------
    tuple of Tensors
        Ai, its derivative, Bi, its derivative.

    Examples
    --------
    >>> ng.special.airy(ng.tensor([0.0, 1.0]))[0]
    tensor([0.35502805, 0.13529242])
    """


airy.vjp(
    z=lambda g, z, y: arrived(g, lambda: y[1], lambda: z * y[0], lambda: y[3], lambda: z * y[2])
)


@several(count=2, dtypes=either)
def sici(x):
    """Sine and cosine integrals.

    Returns
    -------
    tuple of Tensors
        The integral of ``sin(t) / t`` from 0, and that of ``cos(t) / t``.

    Examples
    --------
    >>> ng.special.sici(ng.tensor([1.0, 2.0]))
    (tensor([0.94608307, 1.60541298]), tensor([0.33740392, 0.42298083]))
    """


# derivatives of sin(x) / x, written as a quotient, would cancel near 0
sici.vjp(x=lambda g, x: arrived(g, lambda: bessel.spherical_jn(0, x), lambda: np.cos(x) / x))


@several(count=2, dtypes=either)
def shichi(x):
    """Hyperbolic sine and cosine integrals.

    Returns
    -------
    tuple of Tensors
        The integral of ``sinh(t) / t`` from 0, and that of ``cosh(t) / t``.

    Examples
    --------
    >>> ng.special.shichi(ng.tensor([1.0, 2.0]))
    (tensor([1.05725088, 2.50156743]), tensor([0.83786694, 2.45266692]))
    """


shichi.vjp(x=lambda g, x: arrived(g, lambda: bessel.spherical_in(0, x), lambda: np.cosh(x) / x))


@several(count=2, dtypes=either)
def fresnel(z):
    """Fresnel integrals.

    Parameters
    ----------
    z
        Argument.

    Returns
    -------
    tuple of Tensors
        The integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0.

    Examples
    --------
    >>> ng.special.fresnel(ng.tensor([0.0, 1.0]))
    (tensor([0.        , 0.43825915]), tensor([0.       , 0.7798934]))
    """


def _fresnel_vjp(g, z):
    phase = (0.5 * math.pi) * (z * z)
    return arrived(g, lambda: np.sin(phase), lambda: np.cos(phase))


fresnel.vjp(z=_fresnel_vjp)

# ------------------------------------------------------------------------- of Bessel functions


@several(count=4, dtypes=either)
def airye(z):
    """Airy functions and their derivatives, scaled; the first two are NaN below 0 if real.

    Returns
    -------
    tuple of Tensors
        Ai and its derivative times ``exp(2 / 3 * z**1.5)``, Bi and its derivative divided by the
        absolute value of that for complex ``z``.

    Examples
    --------
    >>> ng.special.airye(ng.tensor([1.0, 100.0]))[0]
    tensor([0.26351364, 0.08919692])
    """


def _airye_vjp(g, z, y):
    if z.dtype.kind == "c":
        return _complex_airye_vjp(g, z, y)
    root = np.sqrt(np.where(z > 0, z, 0))
    return arrived(
        g,
        lambda: y[1] + root * y[0],
        lambda: z * y[0] + root * y[1],
        lambda: y[3] - root * y[2],
        lambda: z * y[2] - root * y[3],
    )


def _complex_airye_vjp(g, z, y):
    """The last two have no derivative, as they are divided by an exponential of a real part."""
    root = np.sqrt(z)
    falls = np.sign(np.real(z * root)) * np.conj(root)
    result = arrived(
        g,
        lambda: np.conj(y[1] + root * y[0]),
        lambda: np.conj(z * y[0] + root * y[1]),
        lambda: np.conj(y[3]),
        lambda: np.conj(z * y[2]),
    )
    for k in (2, 3):
        if g[k] is not None:
            result = result - np.real(g[k] * np.conj(y[k])) * falls
    return result


airye.holomorphic = False
airye.vjp(z=_airye_vjp)


@several(count=4)
def itairy(x):
    """Integrals of Airy functions from 0.

    Returns
    -------
    tuple of Tensors
        The integrals of Ai, Bi up to ``x``, and of these at negative arguments.

    Examples
    --------
    >>> ng.special.itairy(ng.tensor([0.0, 1.0]))[0]
    tensor([0.        , 0.23631733])
    """


def _itairy_vjp(g, x):
    here, there = airy(x), airy(-x)
    return arrived(g, lambda: here[0], lambda: here[2], lambda: there[0], lambda: there[2])


itairy.vjp(x=_itairy_vjp)


@several(count=2)
def itj0y0(x):
    """Integrals of Bessel functions of order 0.

    Returns
    -------
    tuple of Tensors
        The integrals of ``j0`` and of ``y0`` from 0 to ``x``.

    Examples
    --------
    >>> ng.special.itj0y0(ng.tensor([1.0, 2.0]))
    (tensor([0.91973041, 1.42577029]), tensor([-0.63706938, -0.28219285]))
    """


@several(count=2)
def iti0k0(x):
    """Integrals of modified Bessel functions of order 0.

    Returns
    -------
    tuple of Tensors
        The integrals of ``i0`` and of ``k0`` from 0 to ``x``.

    Examples
    --------
    >>> ng.special.iti0k0(ng.tensor([1.0, 2.0]))
    (tensor([1.0865211 , 2.77500191]), tensor([1.24250985, 1.47367573]))
    """


@several(count=2)
def it2j0y0(x):
    """Integrals of Bessel functions of order 0 over their argument.

    Returns
    -------
    tuple of Tensors
        The integral of ``(1 - j0(t)) / t`` from 0 to ``x``, of ``y0(t) / t`` from ``x`` on.

    Examples
    --------
    >>> ng.special.it2j0y0(ng.tensor([1.0, 2.0]))
    (tensor([0.12116525, 0.4419194 ]), tensor([0.3952729 , 0.16650135]))
    """


@several(count=2)
def it2i0k0(x):
    """Integrals of modified Bessel functions of order 0 over their argument.

    Returns
    -------
    tuple of Tensors
        The integral of ``(i0(t) - 1) / t`` from 0 to ``x``, of ``k0(t) / t`` from ``x`` on.

    Examples
    --------
    >>> ng.special.it2i0k0(ng.tensor([1.0, 2.0]))
    (tensor([0.12897944, 0.56735375]), tensor([0.20851829, 0.03617749]))
    """


def _from_one(x, difference, sign):
    """``difference / x``, of a function of order 0 from its value at 0, by a series near that."""
    small = np.abs(x) < 0.1
    s = sign * 0.25 * np.where(small, x * x, 0)
    series = 0.25 * x * (1 + s / 4 * (1 + s / 9 * (1 + s / 16)))
    return np.where(small, series, difference / np.where(small, 1, x))


itj0y0.vjp(x=lambda g, x: arrived(g, lambda: bessel.j0(x), lambda: bessel.y0(x)))
iti0k0.vjp(x=lambda g, x: arrived(g, lambda: bessel.i0(x), lambda: bessel.k0(x)))
it2j0y0.vjp(
    x=lambda g, x: arrived(g, lambda: _from_one(x, 1 - bessel.j0(x), -1), lambda: -bessel.y0(x) / x)
)
it2i0k0.vjp(
    x=lambda g, x: arrived(g, lambda: _from_one(x, bessel.i0(x) - 1, 1), lambda: -bessel.k0(x) / x)
)


@several(count=4, domain=(0.2, 0.9))
def ellipj(u, m):
    """Jacobi's elliptic functions; the derivative in ``m`` is NaN at ``m = 1``.

    Parameters
    ----------
    u
        Argument.

    Returns
    -------
    tuple of Tensors
        sn, cn, dn and the amplitude, of which ``ellipkinc`` is the inverse.

    Examples
    --------
    >>> ng.special.ellipj(ng.tensor([0.0, 1.0]), 0.5)[0]
    tensor([0.        , 0.80300182])
    """


def _ellipj_u(g, m, y):
    sn, cn, dn, _ = y
    return arrived(g, lambda: cn * dn, lambda: -sn * dn, lambda: -m * sn * cn, lambda: dn)


def _ellipj_m(g, u, m, y):
    # at a fixed argument the amplitude moves by what its inverse does, times -dn
    sn, cn, dn, phi = y
    third = third_integral(phi, m, u, ellipeinc(phi, m))
    turn = -0.5 * (dn * (u - third) - sn * cn) / (1 - m)
    bend = -(0.5 * sn * sn + m * sn * cn * turn) / dn
    return arrived(g, lambda: cn * turn, lambda: -sn * turn, lambda: bend, lambda: turn)


ellipj.vjp(u=_ellipj_u, m=_ellipj_m)
