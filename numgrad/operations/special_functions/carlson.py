"""The arithmetic-geometric mean, and Carlson's symmetric elliptic integrals."""

import math

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
    """Derivative in ``b``: the mean is ``pi a / 2`` over the complete integral of ``1 - r**2``."""
    ratio = b / a
    return (2 / math.pi) * (mean / a) * (mean / b) * cosine_integral(ratio * ratio)


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

    Derivatives are differences of order ten, right to about eleven digits; second ones raise.

    Examples
    --------
    >>> ng.special.elliprd(ng.tensor([0.0, 1.0]), 1.0, 1.0)
    tensor([2.35619449, 1.        ])
    """


@derivative(domain=(0.5, 3.0))
def elliprd_a(a, b, c):
    """Derivative of ``elliprd`` with respect to ``a``."""


@derivative(domain=(0.5, 3.0))
def elliprd_c(a, b, c):
    """Derivative of ``elliprd`` with respect to ``c``."""


for _op in (elliprd_a, elliprd_c):
    _op.without("a", "b", "c")
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
    a=lambda g, a, b, c: g * elliprd_a(a, b, c),
    b=lambda g, a, b, c: g * elliprd_a(b, a, c),
    c=lambda g, a, b, c: g * elliprd_c(a, b, c),
)
elliprd.once = ("a", "b", "c")
