"""Kelvin functions, and integrals of Struve and Bessel functions that are elementwise."""

import math

import numpy as np

from numgrad.operations.special_functions.bessel import modstruve, struve
from numgrad.operations.special_functions.declare import special


@special(domain=(0.3, 4.0))
def ber(x):
    """Kelvin function ber, the real part of ``J0(x exp(3 pi i / 4))``.

    Examples
    --------
    >>> ng.special.ber(ng.tensor([0.0, 1.0]))
    tensor([1.        , 0.98438178])
    """


@special(domain=(0.3, 4.0))
def bei(x):
    """Kelvin function bei, the imaginary part of ``J0(x exp(3 pi i / 4))``.

    Examples
    --------
    >>> ng.special.bei(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.24956604])
    """


@special(domain=(0.3, 4.0), signed_zeros=False)
def berp(x):
    """Derivative of the Kelvin function ber.

    Examples
    --------
    >>> ng.special.berp(ng.tensor([0.0, 1.0]))
    tensor([ 0.        , -0.06244575])
    """


@special(domain=(0.3, 4.0))
def beip(x):
    """Derivative of the Kelvin function bei.

    Examples
    --------
    >>> ng.special.beip(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.49739651])
    """


@special(domain=(0.3, 4.0))
def ker(x):
    """Kelvin function ker, the real part of ``K0(x exp(pi i / 4))``.

    Examples
    --------
    >>> ng.special.ker(ng.tensor([1.0, 3.0]))
    tensor([ 0.28670621, -0.06702923])
    """


@special(domain=(0.3, 4.0))
def kei(x):
    """Kelvin function kei, the imaginary part of ``K0(x exp(pi i / 4))``.

    Examples
    --------
    >>> ng.special.kei(ng.tensor([1.0, 3.0]))
    tensor([-0.49499464, -0.05112188])
    """


@special(domain=(0.3, 4.0))
def kerp(x):
    """Derivative of the Kelvin function ker.

    Examples
    --------
    >>> ng.special.kerp(ng.tensor([1.0, 3.0]))
    tensor([-0.69460389,  0.02147619])
    """


@special(domain=(0.3, 4.0))
def keip(x):
    """Derivative of the Kelvin function kei.

    Examples
    --------
    >>> ng.special.keip(ng.tensor([1.0, 3.0]))
    tensor([0.35236991, 0.09204305])
    """


_NEAR = 1.0
_BEI = [(-1) ** k * (2 * k + 1) / (2 * math.factorial(2 * k + 1) ** 2) for k in range(6)]
_BER = [(-1) ** k * k / math.factorial(2 * k) ** 2 for k in range(1, 7)]


def _over(x, y, terms, first):
    """``y / x``, near 0 by ``first`` times a series of ``(x / 2)**4``: derivatives would cancel."""
    near = np.abs(x) < _NEAR
    s = np.square(np.square(0.5 * np.where(near, x, 0)))
    total = 0.0
    for term in reversed(terms):
        total = term + s * total
    return np.where(near, first * total, y / np.where(near, 1, x))


def berp_over(x, y):
    """``berp(x) / x``, by the first of them."""
    return _over(x, y, _BER, 0.25 * x * x)


def beip_over(x, y):
    """``beip(x) / x``, by the first of them."""
    return _over(x, y, _BEI, 1.0)


ber.vjp(x=lambda g, x: g * berp(x))
bei.vjp(x=lambda g, x: g * beip(x))
berp.vjp(x=lambda g, x, y: g * (-bei(x) - berp_over(x, y)))
beip.vjp(x=lambda g, x, y: g * (ber(x) - beip_over(x, y)))
ker.vjp(x=lambda g, x: g * kerp(x))
kei.vjp(x=lambda g, x: g * keip(x))
kerp.vjp(x=lambda g, x, y: g * (-kei(x) - y / x))
keip.vjp(x=lambda g, x, y: g * (ker(x) - y / x))


@special(domain=(0.3, 4.0))
def itstruve0(x):
    """Integral of the Struve function of order 0 from 0 to ``x``.

    Examples
    --------
    >>> ng.special.itstruve0(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.30109043])
    """


@special(domain=(0.3, 4.0))
def it2struve0(x):
    """Integral of the Struve function of order 0 over its argument, from ``x`` on.

    Examples
    --------
    >>> ng.special.it2struve0(ng.tensor([1.0, 2.0]))
    tensor([0.95719735, 0.46909296])
    """


@special(domain=(0.3, 4.0))
def itmodstruve0(x):
    """Integral of the modified Struve function of order 0 from 0 to ``x``.

    Examples
    --------
    >>> ng.special.itmodstruve0(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.33647263])
    """


# the first is even, the integrand of the second has a value at 0, the third is even
itstruve0.vjp(x=lambda g, x: g * struve(0, x))


def _struve_share(x):
    """``struve(0, x) / x``, which goes on at 0."""
    none = x == 0
    near = (2 / math.pi) * (1 - x * x / 9)
    return np.where(none, near, struve(0, x) / np.where(none, 1, x))


it2struve0.vjp(x=lambda g, x: -g * _struve_share(x))
itmodstruve0.vjp(x=lambda g, x: g * modstruve(0, x))


@special(domain=(0.3, 1.5))
def besselpoly(a, lmb, nu):
    """Integral of ``x**lmb * jv(nu, 2 * a * x)`` from 0 to 1; with a gradient in ``a`` alone.

    Parameters
    ----------
    lmb
        Power.
    nu
        Order.

    Examples
    --------
    >>> ng.special.besselpoly(ng.tensor([0.0, 1.0]), 0.5, 1.0)
    tensor([0.        , 0.30092457])
    """


besselpoly.vjp(
    a=lambda g, a, lmb, nu: g * (besselpoly(a, lmb + 1, nu - 1) - besselpoly(a, lmb + 1, nu + 1))
)
