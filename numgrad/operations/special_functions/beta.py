"""The incomplete beta function, its complement and their inverses."""

import numpy as np

from numgrad.operations.special import digamma
from numgrad.operations.special import zeta as hurwitz_zeta
from numgrad.operations.special_functions.convex import xlog1py, xlogy
from numgrad.operations.special_functions.declare import derivative, moved, special
from numgrad.operations.special_functions.gamma import betaln


def beta_density(a, b, x):
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``, the derivative of betainc."""
    end = (x == 0) | (x == 1)  # where the logarithm of a power has no derivative
    inner, outer = np.where(end, 0.5, x), np.where(end, x, 0.5)
    powers = np.power(outer, a - 1) * np.power(1 - outer, b - 1) * np.exp(-betaln(a, b))
    return np.where(
        end, powers, np.exp(xlogy(a - 1, inner) + xlog1py(b - 1, -inner) - betaln(a, b))
    )


def _slope(x, a, b):
    """What the density is multiplied by in its derivative with respect to ``a``."""
    return np.log(x) - digamma(a) + digamma(a + b)


def _slope_b(x, a, b):
    return np.log1p(-x) - digamma(b) + digamma(a + b)


@derivative(domain=(0.15, 0.85), scalar="betainc_a")
def betainc_a(a, b, x):
    """Derivative of ``betainc`` with respect to ``a``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_b")
def betainc_b(a, b, x):
    """Derivative of ``betainc`` with respect to ``b``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_aa")
def betainc_aa(a, b, x):
    """Second derivative of ``betainc`` with respect to ``a``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_ab")
def betainc_ab(a, b, x):
    """Second derivative of ``betainc`` with respect to ``a`` and ``b``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_bb")
def betainc_bb(a, b, x):
    """Second derivative of ``betainc`` with respect to ``b``."""


betainc_a.vjp(
    a=lambda g, a, b, x: g * betainc_aa(a, b, x),
    b=lambda g, a, b, x: g * betainc_ab(a, b, x),
    x=lambda g, a, b, x: g * (beta_density(a, b, x) * _slope(x, a, b)),
)
betainc_b.vjp(
    a=lambda g, a, b, x: g * betainc_ab(a, b, x),
    b=lambda g, a, b, x: g * betainc_bb(a, b, x),
    x=lambda g, a, b, x: g * (beta_density(a, b, x) * _slope_b(x, a, b)),
)
betainc_aa.vjp(
    x=lambda g, a, b, x: (
        g * beta_density(a, b, x) * (_slope(x, a, b) ** 2 - hurwitz_zeta(2, a) + hurwitz_zeta(2, a + b))
    )
)
betainc_ab.vjp(
    x=lambda g, a, b, x: (
        g * beta_density(a, b, x) * (_slope(x, a, b) * _slope_b(x, a, b) + hurwitz_zeta(2, a + b))
    )
)
betainc_bb.vjp(
    x=lambda g, a, b, x: (
        g * beta_density(a, b, x) * (_slope_b(x, a, b) ** 2 - hurwitz_zeta(2, b) + hurwitz_zeta(2, a + b))
    )
)


@special(domain=(0.15, 0.85))
def betainc(a, b, x):
    """Regularized incomplete beta function: distribution of a beta variable.

    The derivatives in ``a`` and ``b`` are differences of order ten in the logarithm of the function
    or of its complement, right to about eleven digits, in far tails too; third ones raise.

    Examples
    --------
    >>> ng.special.betainc(2.0, 3.0, ng.tensor([0.0, 0.5, 1.0]))
    tensor([0.    , 0.6875, 1.    ])
    """


betainc.vjp(
    a=lambda g, a, b, x: g * betainc_a(a, b, x),
    b=lambda g, a, b, x: g * betainc_b(a, b, x),
    x=lambda g, a, b, x: g * beta_density(a, b, x),
)


@special(domain=(0.15, 0.85))
def betaincc(a, b, x):
    """Complement of the regularized incomplete beta function, ``1 - betainc(a, b, x)``.

    Derivatives in ``a`` and ``b`` are those of ``betainc``.

    Examples
    --------
    >>> ng.special.betaincc(2.0, 3.0, ng.tensor([0.0, 0.5, 0.999]))
    tensor([1.000e+00, 3.125e-01, 3.997e-09])
    """


betaincc.vjp(
    a=lambda g, a, b, x: -g * betainc_a(a, b, x),
    b=lambda g, a, b, x: -g * betainc_b(a, b, x),
    x=lambda g, a, b, x: -g * beta_density(a, b, x),
)


@special(domain=(0.15, 0.85))
def betaincinv(a, b, p):
    """Where ``betainc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.betaincinv(2.0, 3.0, ng.tensor([0.1, 0.5]))
    tensor([0.14255932, 0.38572757])
    """


@special(domain=(0.15, 0.85))
def betainccinv(a, b, p):
    """Where ``betaincc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.betainccinv(2.0, 3.0, ng.tensor([0.1, 0.5]))
    tensor([0.67953942, 0.38572757])
    """


betaincinv.vjp(
    a=lambda g, a, b, y: -g * moved(betainc_a(a, b, y), beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(betainc_b(a, b, y), beta_density(a, b, y)),
    p=lambda g, a, b, y: g / beta_density(a, b, y),
)
betainccinv.vjp(
    a=lambda g, a, b, y: -g * moved(betainc_a(a, b, y), beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(betainc_b(a, b, y), beta_density(a, b, y)),
    p=lambda g, a, b, y: -g / beta_density(a, b, y),
)
