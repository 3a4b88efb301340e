"""Elliptic integrals, Carlson's symmetric ones too, and the arithmetic-geometric mean.

Note [Principal values]
-----------------------
Where the last argument of ``elliprc`` or ``elliprj`` is negative the integral is Cauchy's principal
value, and those that derivatives otherwise are do not exist. There they are by partial fractions,
``1 / ((t + a) (t + p)) = (1 / (t + a) - 1 / (t + p)) / (p - a)``, whose denominator is negative, so
that nothing cancels; the last one follows from the others, as the integral is homogeneous.
"""

import math
from importlib import import_module

import numpy as np

from numgrad.kernels import carlson as _carlson  # noqa: F401 (what kernels call)
from numgrad.operations.error_gamma_logistic import real_elementwise
from numgrad.operations.special_functions.declare import derivative, special
from numgrad.operations.special_functions.hypergeometric import hyp2f1


@special(domain=(0.5, 3.0))
def elliprc(a, b):
    """Degenerate symmetric elliptic integral, ``elliprf(a, b, b)``.

    Examples
    --------
    >>> ng.special.elliprc(ng.tensor([0.0, 1.0]), 1.0)
    tensor([1.57079633, 1.        ])
    """


@special(domain=(0.5, 3.0))
def elliprf(a, b, c):
    """Completely symmetric elliptic integral of the first kind.

    Examples
    --------
    >>> ng.special.elliprf(ng.tensor([0.0, 1.0]), 1.0, 1.0)
    tensor([1.57079633, 1.        ])
    """


@special(domain=(0.5, 3.0))
def elliprg(a, b, c):
    """Completely symmetric elliptic integral of the second kind.

    Examples
    --------
    >>> ng.special.elliprg(ng.tensor([0.0, 1.0]), 1.0, 1.0)
    tensor([0.78539816, 1.        ])
    """


@special(domain=(0.5, 3.0))
def elliprd(a, b, c):
    """Symmetric elliptic integral of the second kind, symmetric in ``a`` and ``b`` alone.

    Derivatives are integrals as well, computed by the trapezoidal rule.

    Examples
    --------
    >>> ng.special.elliprd(ng.tensor([0.0, 1.0]), 1.0, 1.0)
    tensor([2.35619449, 1.        ])
    """


@special(domain=(0.5, 3.0))
def elliprj(a, b, c, p):
    """Symmetric elliptic integral of the third kind, symmetric in all but the last argument.

    Derivatives are integrals as well, computed by the trapezoidal rule, or by Note [Principal
    values] of this file where ``p`` is negative.

    Parameters
    ----------
    p
        Fourth argument.

    Examples
    --------
    >>> ng.special.elliprj(ng.tensor([0.0, 1.0]), 1.0, 1.0, 1.0)
    tensor([2.35619449, 1.        ])
    """


@derivative(domain=(0.5, 3.0))
def carlson(i, j, k, n, a, b, c, p):
    """The integral of ``(t + a)**-i (t + b)**-j (t + c)**-k (t + p)**-n`` over positive ``t``."""


carlson.vjp(
    a=lambda g, i, j, k, n, a, b, c, p: g * (-i * carlson(i + 1, j, k, n, a, b, c, p)),
    b=lambda g, i, j, k, n, a, b, c, p: g * (-j * carlson(i, j + 1, k, n, a, b, c, p)),
    c=lambda g, i, j, k, n, a, b, c, p: g * (-k * carlson(i, j, k + 1, n, a, b, c, p)),
    p=lambda g, i, j, k, n, a, b, c, p: g * (-n * carlson(i, j, k, n + 1, a, b, c, p)),
)


def _third(g, weight, *arguments):
    """Derivative of the integral with a factor of 3/2, by what has the exponent ``weight``."""
    return g * ((-1.5 * weight) * carlson(*arguments))


def _degenerate_slopes(a, b, y):
    """Derivatives of ``elliprc``: Note [Principal values]."""
    principal = b < 0
    positive, negative = np.where(principal, 1, b), np.where(principal, b, -1)
    first = (y - 1 / np.sqrt(a)) / (2 * (negative - a))
    last = (y - np.sqrt(a) / negative) / (2 * (a - negative))
    return (
        np.where(principal, first, elliprd(positive, positive, a) * (-1 / 6)),
        np.where(principal, last, elliprd(a, positive, positive) * (-1 / 3)),
    )


elliprc.vjp(
    a=lambda g, a, b, y: g * _degenerate_slopes(a, b, y)[0],
    b=lambda g, a, b, y: g * _degenerate_slopes(a, b, y)[1],
)
elliprf.vjp(
    a=lambda g, a, b, c: g * elliprd(b, c, a) * (-1 / 6),
    b=lambda g, a, b, c: g * elliprd(c, a, b) * (-1 / 6),
    c=lambda g, a, b, c: g * elliprd(a, b, c) * (-1 / 6),
)


def _second_kind(a, b, c):
    """Derivative of ``elliprg`` in ``c``; where others are 0 that is half of the root of ``c``."""
    alone = (a == 0) & (b == 0)
    other = np.where(alone, 1, a)
    around = (3 * elliprf(other, b, c) - c * elliprd(other, b, c)) / 12
    return np.where(alone, 0.25 / np.sqrt(c), around)


elliprg.vjp(
    a=lambda g, a, b, c: g * _second_kind(b, c, a),
    b=lambda g, a, b, c: g * _second_kind(c, a, b),
    c=lambda g, a, b, c: g * _second_kind(a, b, c),
)
elliprd.vjp(
    a=lambda g, a, b, c: _third(g, 0.5, 1.5, 0.5, 1.5, 0, a, b, c, 1),
    b=lambda g, a, b, c: _third(g, 0.5, 0.5, 1.5, 1.5, 0, a, b, c, 1),
    c=lambda g, a, b, c: _third(g, 1.5, 0.5, 0.5, 2.5, 0, a, b, c, 1),
)


def _principal(a, b, c, p, y):
    """Derivative of ``elliprj`` in ``a`` where ``p`` is negative: Note [Principal values]."""
    return (y - elliprd(b, c, a)) / (2 * (p - a))


def _third_kind(g, a, b, c, p, y):
    """Derivative of ``elliprj`` in ``a``."""
    result = _third(1, 0.5, 1.5, 0.5, 0.5, 1, a, b, c, np.where(p < 0, 1, p))
    return g * np.where(p < 0, _principal(a, b, c, np.where(p < 0, p, -1), y), result)


def _third_last(g, a, b, c, p, y):
    """Derivative of ``elliprj`` in ``p``."""
    negative = np.where(p < 0, p, -1)
    total = 1.5 * y
    for x, other, last in ((a, b, c), (b, c, a), (c, a, b)):
        none = x == 0  # of which the derivative is endless, and no share
        inner = np.where(none, 1, x)
        total = total + np.where(none, 0, x * _principal(inner, other, last, negative, y))
    result = _third(1, 1.0, 0.5, 0.5, 0.5, 2, a, b, c, np.where(p < 0, 1, p))
    return g * np.where(p < 0, -total / negative, result)


elliprj.vjp(
    a=lambda g, a, b, c, p, y: _third_kind(g, a, b, c, p, y),
    b=lambda g, a, b, c, p, y: _third_kind(g, b, c, a, p, y),
    c=lambda g, a, b, c, p, y: _third_kind(g, c, a, b, p, y),
    p=_third_last,
)


_SMALL = 0.01


def _split_range(m):
    """Whether ``m`` is so small that differences over it cancel, and itself elsewhere."""
    small = np.abs(m) < _SMALL
    return small, np.where(small, m, 0), np.where(small, 0.5, m)


def complete_slope(first, second, m, rest):
    """Derivative of the first integral; ``rest`` is ``1 - m``."""
    small, near, far = _split_range(m)
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
    small, near, far = _split_range(m)
    series = (-math.pi / 8) * hyp2f1(0.5, 1.5, 2, near)
    return g * np.where(small, series, (y - ellipk(far)) / (2 * far))


@real_elementwise(internal=True, method=False, domain=(0.1, 0.9), ref=_cosine_integral, smooth=True)
def cosine_integral(p):
    """Integral of ``cos(t)**2 / sqrt(1 - m sin(t)**2)`` up to a right angle, where m is ``1 - p``.

    It is ``(E - p K) / m``, and so is the derivative of the first integral but for ``2 p``.
    """
    m = 1 - p
    small, near, far = _split_range(m)
    series = (math.pi / 4) * hyp2f1(0.5, 0.5, 2, near)
    return np.where(small, series, (ellipe(m) - p * ellipkm1(p)) / far)


def _cosine_integral_vjp(g, p, y):
    small, near, far = _split_range(1 - p)
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
    small, near, far = _split_range(m)
    sine, product = np.sin(phi), np.sin(phi) * np.cos(phi)
    integral, power, series, weight = phi, product, 0.0, 1.0
    for k in range(1, 8):  # integrals of even powers of the sine, by parts
        integral = ((2 * k - 1) * integral - power) / (2 * k)
        series = series + weight * integral
        power = power * sine * sine
        weight = weight * near * ((2 * k - 1) / (2 * k))
    return np.where(small, series, (first - second) / far)


def _ellipkinc_vjp(g, phi, m):
    """Gradient by Carlson's integral, where nothing cancels, and complete ones for half turns."""
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
