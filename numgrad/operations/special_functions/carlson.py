"""The arithmetic-geometric mean, and Carlson's symmetric elliptic integrals."""

import math

import numpy as np

from numgrad.kernels import carlson as _carlson  # noqa: F401 (what kernels call)
from numgrad.operations.special_functions.declare import derivative, special
from numgrad.operations.special_functions.elliptic import cosine_integral


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

# -------------------------------------------------------------------------------------- Carlson


@special(domain=(0.5, 3.0))
def elliprc(a, b):
    """Degenerate symmetric elliptic integral, ``elliprf(a, b, b)``.

    Derivatives are those for a positive ``b``, NaN for a principal value.

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

    Derivatives are integrals as well, computed by the trapezoidal rule; they are NaN for a
    principal value, where ``p`` is negative.

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


carlson.without("i", "j", "k", "n")
carlson.vjp(
    a=lambda g, i, j, k, n, a, b, c, p: g * (-i * carlson(i + 1, j, k, n, a, b, c, p)),
    b=lambda g, i, j, k, n, a, b, c, p: g * (-j * carlson(i, j + 1, k, n, a, b, c, p)),
    c=lambda g, i, j, k, n, a, b, c, p: g * (-k * carlson(i, j, k + 1, n, a, b, c, p)),
    p=lambda g, i, j, k, n, a, b, c, p: g * (-n * carlson(i, j, k, n + 1, a, b, c, p)),
)


def _third(g, weight, *given):
    """Derivative of the integral with a factor of 3/2, by what has the exponent ``weight``."""
    return g * ((-1.5 * weight) * carlson(*given))


elliprc.vjp(
    a=lambda g, a, b: g * elliprd(b, b, a) * (-1 / 6),
    b=lambda g, a, b: g * elliprd(a, b, b) * (-1 / 3),
)
elliprf.vjp(
    a=lambda g, a, b, c: g * elliprd(b, c, a) * (-1 / 6),
    b=lambda g, a, b, c: g * elliprd(c, a, b) * (-1 / 6),
    c=lambda g, a, b, c: g * elliprd(a, b, c) * (-1 / 6),
)
elliprg.vjp(
    a=lambda g, a, b, c: g * (3 * elliprf(a, b, c) - a * elliprd(b, c, a)) / 12,
    b=lambda g, a, b, c: g * (3 * elliprf(a, b, c) - b * elliprd(c, a, b)) / 12,
    c=lambda g, a, b, c: g * (3 * elliprf(a, b, c) - c * elliprd(a, b, c)) / 12,
)
elliprd.vjp(
    a=lambda g, a, b, c: _third(g, 0.5, 1.5, 0.5, 1.5, 0, a, b, c, 1),
    b=lambda g, a, b, c: _third(g, 0.5, 0.5, 1.5, 1.5, 0, a, b, c, 1),
    c=lambda g, a, b, c: _third(g, 1.5, 0.5, 0.5, 2.5, 0, a, b, c, 1),
)
elliprj.vjp(
    a=lambda g, a, b, c, p: _third(g, 0.5, 1.5, 0.5, 0.5, 1, a, b, c, p),
    b=lambda g, a, b, c, p: _third(g, 0.5, 0.5, 1.5, 0.5, 1, a, b, c, p),
    c=lambda g, a, b, c, p: _third(g, 0.5, 0.5, 0.5, 1.5, 1, a, b, c, p),
    p=lambda g, a, b, c, p: _third(g, 1.0, 0.5, 0.5, 0.5, 2, a, b, c, p),
)
