"""Elliptic integrals, and the arithmetic-geometric mean."""

import math
from importlib import import_module

import numpy as np

from numgrad.operations.real import real_elementwise
from numgrad.operations.special_functions.carlson import elliprd
from numgrad.operations.special_functions.declare import special
from numgrad.operations.special_functions.hypergeometric import hyp2f1

_SMALL = 0.01


def _apart(m):
    """Whether ``m`` is so small that differences over it cancel, and itself elsewhere."""
    small = np.abs(m) < _SMALL
    return small, np.where(small, m, 0), np.where(small, 0.5, m)


def complete_slope(first, second, m, rest):
    """Derivative of the first integral; ``rest`` is ``1 - m``."""
    small, near, far = _apart(m)
    series = (math.pi / 8) * hyp2f1(1.5, 1.5, 2, near)
    return np.where(small, series, (second - rest * first) / (2 * far * rest))


def _cosine_integral(p):
    of, circle = import_module("scipy.special"), np.equal(p, 1)
    rest = (of.ellipe(1 - p) - p * of.ellipkm1(p)) / np.where(circle, 1, 1 - p)
    return np.where(circle, math.pi / 4, rest)


@special(domain=(0.1, 0.9))
def ellipk(m):
    """Complete elliptic integral of the first kind.

    Examples
    --------
    >>> ng.special.ellipk(ng.tensor([0.0, 0.5, 1.0]))
    tensor([1.57079633, 1.85407468,        inf])
    """


@special(domain=(0.1, 0.9))
def ellipkm1(p):
    """Complete elliptic integral of the first kind around ``m = 1``: ``ellipk(1 - p)``.

    Parameters
    ----------
    p
        Complement of the parameter.

    Examples
    --------
    >>> ng.special.ellipkm1(ng.tensor([1e-30, 0.5]))
    tensor([35.92507076,  1.85407468])
    """


@special(domain=(0.1, 0.9))
def ellipe(m):
    """Complete elliptic integral of the second kind.

    Examples
    --------
    >>> ng.special.ellipe(ng.tensor([0.0, 0.5, 1.0]))
    tensor([1.57079633, 1.35064388, 1.        ])
    """


def _ellipe_vjp(g, m, y):
    small, near, far = _apart(m)
    series = (-math.pi / 8) * hyp2f1(0.5, 1.5, 2, near)
    return g * np.where(small, series, (y - ellipk(far)) / (2 * far))


@real_elementwise(internal=True, method=False, domain=(0.1, 0.9), ref=_cosine_integral, smooth=True)
def cosine_integral(p):
    """Integral of ``cos(t)**2 / sqrt(1 - m sin(t)**2)`` up to a right angle, where m is ``1 - p``.

    It is ``(E - p K) / m``, and so is the derivative of the first integral but for ``2 p``.
    """
    m = 1 - p
    small, near, far = _apart(m)
    series = (math.pi / 4) * hyp2f1(0.5, 0.5, 2, near)
    return np.where(small, series, (ellipe(m) - p * ellipkm1(p)) / far)


def _cosine_integral_vjp(g, p, y):
    small, near, far = _apart(1 - p)
    series = (math.pi / 32) * hyp2f1(1.5, 1.5, 3, near)
    return g * -np.where(small, series, (0.5 * ellipkm1(p) - y) / far)


cosine_integral.vjp(p=_cosine_integral_vjp)
ellipk.vjp(m=lambda g, m, y: g * complete_slope(y, ellipe(m), m, 1 - m))
ellipkm1.vjp(p=lambda g, p: -g * cosine_integral(p) / (2 * p))
ellipe.vjp(m=_ellipe_vjp)


@special(domain=(0.5, 3.0))
def agm(a, b):
    """Arithmetic-geometric mean of two numbers of one sign.

    Examples
    --------
    >>> ng.special.agm(ng.tensor([1.0, 24.0]), 6.0)
    tensor([ 2.95132874, 13.45817148])
    """


def _agm_slope(a, b, mean):
    """Derivative in ``b``: the mean is ``pi a / 2`` over the complete integral of ``1 - r**2``.

    Where a number is 0 so is the mean, by the larger number flat, by the other one endless.
    """
    none = (a == 0) | (b == 0)
    large, small = (np.where(none, 1, x) for x in (a, b))
    ratio = small / large
    around = (2 / math.pi) * (mean / large) * (mean / small) * cosine_integral(ratio * ratio)
    return np.where(none, np.where((b == 0) & (a != 0), math.inf, 0), around)


agm.vjp(a=lambda g, a, b, y: g * _agm_slope(b, a, y), b=lambda g, a, b, y: g * _agm_slope(a, b, y))


@special(domain=(0.1, 0.9))
def ellipkinc(phi, m):
    """Incomplete elliptic integral of the first kind.

    Examples
    --------
    >>> ng.special.ellipkinc(ng.tensor([0.0, 1.0]), 0.5)
    tensor([0.        , 1.08321677])
    """


@special(domain=(0.1, 0.9))
def ellipeinc(phi, m):
    """Incomplete elliptic integral of the second kind.

    Examples
    --------
    >>> ng.special.ellipeinc(ng.tensor([0.0, 1.0]), 0.5)
    tensor([0.        , 0.92732988])
    """


def _root(phi, m):
    return np.sqrt(1 - m * np.sin(phi) ** 2)


def third_integral(phi, m, first, second):
    """Integral of ``sin(t)**2 / sqrt(1 - m sin(t)**2)``, which is ``(F - E) / m``."""
    small, near, far = _apart(m)
    sine, product = np.sin(phi), np.sin(phi) * np.cos(phi)
    integral, power, series, weight = phi, product, 0.0, 1.0
    for k in range(1, 8):  # integrals of even powers of the sine, by parts
        integral = ((2 * k - 1) * integral - power) / (2 * k)
        series = series + weight * integral
        power = power * sine * sine
        weight = weight * near * ((2 * k - 1) / (2 * k))
    return np.where(small, series, (first - second) / far)


def _ellipkinc_vjp(g, phi, m):
    """By Carlson's integral, in which nothing cancels, and complete ones for half turns."""
    turns = np.rint(phi / math.pi)
    rest = phi - math.pi * turns
    sine, cosine, whole = np.sin(rest), np.cos(rest), turns != 0
    within = sine * sine * sine / 6 * elliprd(cosine * cosine, 1, 1 - m * sine * sine)
    inner = np.where(whole, m, 0.5)
    half = complete_slope(ellipk(inner), ellipe(inner), inner, 1 - inner)
    return g * (within + np.where(whole, 2 * turns * half, 0))


ellipkinc.vjp(phi=lambda g, phi, m: g / _root(phi, m), m=_ellipkinc_vjp)
ellipeinc.vjp(
    phi=lambda g, phi, m: g * _root(phi, m),
    m=lambda g, phi, m, y: g * (-0.5 * third_integral(phi, m, ellipkinc(phi, m), y)),
)
