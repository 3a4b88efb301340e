"""The gamma function's kin: logarithm, reciprocal, ratios, incomplete functions and inverses."""

import math

import numpy as np

from numgrad.operations.special import digamma, gamma, gammaln, zeta
from numgrad.operations.special_functions.convex import xlogy
from numgrad.operations.special_functions.declare import derivative, special


@special(domain=(0.5, 4.0))
def loggamma(x):
    """Logarithm of the gamma function, NaN for negative operands.

    Examples
    --------
    >>> ng.special.loggamma(ng.tensor([0.5, 3.0]))
    tensor([0.57236494, 0.69314718])
    """


loggamma.vjp(x=lambda g, x: g * digamma(x))


@special(domain=(-2.5, 4.0))
def rgamma(x):
    """Reciprocal of the gamma function, 0 at its poles.

    Examples
    --------
    >>> ng.special.rgamma(ng.tensor([-1.0, 0.5, 3.0]))
    tensor([0.        , 0.56418958, 0.5       ])
    """


def _rgamma_vjp(g, x, y):
    # by reflection where digamma has poles
    left = x < 0.5
    mirrored = 1 - np.where(left, x, 0)
    near_poles = gamma(mirrored) * np.cos(math.pi * mirrored) + y * digamma(mirrored)
    return -g * np.where(left, near_poles, y * digamma(np.where(left, 1, x)))


rgamma.vjp(x=_rgamma_vjp)


@special(differentiable=False, domain=(-2.5, 4.0))
def gammasgn(x):
    """Sign of the gamma function.

    Examples
    --------
    >>> ng.special.gammasgn(ng.tensor([-0.5, 2.0]))
    tensor([-1.,  1.])
    """


@special(domain=(0.5, 4.0))
def poch(z, m):
    """Rising factorial ``gamma(z + m) / gamma(z)``.

    Parameters
    ----------
    m
        Number of factors.

    Examples
    --------
    >>> ng.special.poch(ng.tensor([1.0, 2.0]), 3)
    tensor([ 6., 24.])
    """


poch.vjp(
    z=lambda g, z, m, y: g * y * (digamma(z + m) - digamma(z)),
    m=lambda g, z, m, y: g * y * digamma(z + m),
)


@special(domain=(0.5, 4.0))
def beta(a, b):
    """Beta function, ``gamma(a) gamma(b) / gamma(a + b)``.

    Examples
    --------
    >>> ng.special.beta(ng.tensor([1.0, 2.0]), 3.0)
    tensor([0.33333333, 0.08333333])
    """


beta.vjp(
    a=lambda g, a, b, y: g * y * (digamma(a) - digamma(a + b)),
    b=lambda g, a, b, y: g * y * (digamma(b) - digamma(a + b)),
)


@special(domain=(0.5, 4.0))
def betaln(a, b):
    """Logarithm of the absolute value of the beta function.

    Examples
    --------
    >>> ng.special.betaln(ng.tensor([1.0, 200.0]), 300.0)
    tensor([  -5.70378247, -337.98011307])
    """


betaln.vjp(
    a=lambda g, a, b: g * (digamma(a) - digamma(a + b)),
    b=lambda g, a, b: g * (digamma(b) - digamma(a + b)),
)


@special(domain=(0.5, 4.0))
def binom(x, k):
    """Binomial coefficient ``x`` over ``k`` of real numbers.

    Parameters
    ----------
    k
        How many are chosen.

    Examples
    --------
    >>> ng.special.binom(ng.tensor([4.0, 5.5]), 2)
    tensor([ 6.   , 12.375])
    """


binom.vjp(
    x=lambda g, x, k, y: g * y * (digamma(x + 1) - digamma(x - k + 1)),
    k=lambda g, x, k, y: g * y * (digamma(x - k + 1) - digamma(k + 1)),
)

# ------------------------------------------------------------------------------------ incomplete


_LARGE = 12.0


def gamma_density(a, x):
    """``x**(a - 1) exp(-x) / gamma(a)``, the derivative of gammainc.

    Logarithms of large shapes cancel: there it is Stirling's formula, around ``x = a``.
    """
    endless = np.isinf(x)
    x = np.where(endless, 0, x)
    small = np.exp(xlogy(a - 1, x) - x - gammaln(a))
    large, inside = a > _LARGE, x > 0
    shape, place = np.where(large, a, 20), np.where(large & inside, x, 20)
    inverse = 1 / shape
    square = inverse * inverse
    rest = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360)))
    correction = inverse * (1 / 12 - square * (1 / 360 - square * rest))
    away = (place - shape) * inverse
    height = np.sqrt(shape / (2 * math.pi)) / place
    around = np.where(inside, height * np.exp(shape * (np.log1p(away) - away) - correction), 0)
    return np.where(endless, 0, np.where(large, around, small))


@derivative(scalar="gammainc_a", domain=(0.5, 4.0))
def gammainc_a(a, x):
    """Derivative of ``gammainc`` with respect to ``a``."""


@derivative(scalar="gammainc_aa", domain=(0.5, 4.0))
def gammainc_aa(a, x):
    """Second derivative of ``gammainc`` with respect to ``a``."""


def _slope(a, x):
    return np.log(x) - digamma(a)


gammainc_a.vjp(
    a=lambda g, a, x: g * gammainc_aa(a, x),
    x=lambda g, a, x: g * (gamma_density(a, x) * _slope(a, x)),
)
gammainc_aa.without("a")
gammainc_aa.vjp(x=lambda g, a, x: g * (gamma_density(a, x) * (_slope(a, x) ** 2 - zeta(2, a))))


@special(domain=(0.5, 4.0))
def gammainc(a, x):
    """Regularized lower incomplete gamma function: distribution of a gamma variable of shape ``a``.

    The derivatives in ``a`` are differences of order ten in the logarithm of the function or of its
    complement, right to about eleven digits, in far tails too; a third one raises.

    Examples
    --------
    >>> ng.special.gammainc(2.0, ng.tensor([0.0, 1.0, 5.0]))
    tensor([0.        , 0.26424112, 0.95957232])
    """


gammainc.vjp(
    a=lambda g, a, x: g * gammainc_a(a, x),
    x=lambda g, a, x: g * gamma_density(a, x),
)


@special(domain=(0.5, 4.0))
def gammaincc(a, x):
    """Regularized upper incomplete gamma function, ``1 - gammainc(a, x)``.

    The derivative in ``a`` is that of ``gammainc``.

    Examples
    --------
    >>> ng.special.gammaincc(2.0, ng.tensor([0.0, 1.0, 100.0]))
    tensor([1.00000000e+00, 7.35758882e-01, 3.75727674e-42])
    """


gammaincc.vjp(
    a=lambda g, a, x: -g * gammainc_a(a, x),
    x=lambda g, a, x: -g * gamma_density(a, x),
)


@special(domain=(0.1, 0.9))
def gammaincinv(a, p):
    """Where ``gammainc(a, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gammaincinv(2.0, ng.tensor([0.1, 0.5]))
    tensor([0.53181161, 1.67834699])
    """


gammaincinv.vjp(
    a=lambda g, a, y: -g * gammainc_a(a, y) / gamma_density(a, y),
    p=lambda g, a, y: g / gamma_density(a, y),
)


@special(domain=(0.1, 0.9))
def gammainccinv(a, p):
    """Where ``gammaincc(a, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gammainccinv(2.0, ng.tensor([1e-10, 0.5]))
    tensor([26.33398161,  1.67834699])
    """


gammainccinv.vjp(
    a=lambda g, a, y: -g * gammainc_a(a, y) / gamma_density(a, y),
    p=lambda g, a, y: -g / gamma_density(a, y),
)
