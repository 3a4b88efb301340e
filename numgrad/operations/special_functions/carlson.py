"""Carlson's symmetric elliptic integrals.

Note [Principal values]
-----------------------
Where the last argument of ``elliprc`` or ``elliprj`` is negative the integral is Cauchy's principal
value, and those that derivatives otherwise are do not exist. There they are by partial fractions,
``1 / ((t + a) (t + p)) = (1 / (t + a) - 1 / (t + p)) / (p - a)``, whose denominator is negative, so
that nothing cancels; the last one follows from the others, as the integral is homogeneous.
"""

import numpy as np

from numgrad.kernels import carlson as _carlson  # noqa: F401 (what kernels call)
from numgrad.operations.special_functions.declare import derivative, special


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
    values] of ``carlson`` where ``p`` is negative.

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


def _third(g, weight, *given):
    """Derivative of the integral with a factor of 3/2, by what has the exponent ``weight``."""
    return g * ((-1.5 * weight) * carlson(*given))


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
    found = _third(1, 0.5, 1.5, 0.5, 0.5, 1, a, b, c, np.where(p < 0, 1, p))
    return g * np.where(p < 0, _principal(a, b, c, np.where(p < 0, p, -1), y), found)


def _third_last(g, a, b, c, p, y):
    """Derivative of ``elliprj`` in ``p``."""
    negative = np.where(p < 0, p, -1)
    total = 1.5 * y
    for x, other, last in ((a, b, c), (b, c, a), (c, a, b)):
        none = x == 0  # of which the derivative is endless, and no share
        inner = np.where(none, 1, x)
        total = total + np.where(none, 0, x * _principal(inner, other, last, negative, y))
    found = _third(1, 1.0, 0.5, 0.5, 0.5, 2, a, b, c, np.where(p < 0, 1, p))
    return g * np.where(p < 0, -total / negative, found)


elliprj.vjp(
    a=lambda g, a, b, c, p, y: _third_kind(g, a, b, c, p, y),
    b=lambda g, a, b, c, p, y: _third_kind(g, b, c, a, p, y),
    c=lambda g, a, b, c, p, y: _third_kind(g, c, a, b, p, y),
    p=_third_last,
)
