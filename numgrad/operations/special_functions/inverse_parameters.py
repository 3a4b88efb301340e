"""Inverses of distribution functions in a parameter, under SciPy's older names.

Note [Inverse in a parameter]
-----------------------------
Where ``F(a, x) = p`` defines ``a``, its derivatives are ``1 / F_a`` with respect to ``p`` and
``-F_x / F_a`` to ``x``. Those of ``F`` in parameters are differences, right to about eleven digits.
"""

import math

import numpy as np

from numgrad.operations.special_functions import distributions, gamma
from numgrad.operations.special_functions.declare import moved, special
from numgrad.operations.special_functions.distributions import exp_product, ndtri

# -------------------------------------------------------------------------- beta, gamma, chi2


@special(domain=(0.3, 0.7))
def btdtria(p, b, x):
    """The ``a`` for which ``betainc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.btdtria(ng.tensor([0.25, 0.75]), 1.0, 0.5)
    tensor([2.       , 0.4150375])
    """


@special(domain=(0.3, 0.7))
def btdtrib(a, p, x):
    """The ``b`` for which ``betainc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.btdtrib(1.0, ng.tensor([0.25, 0.75]), 0.5)
    tensor([0.4150375, 2.       ])
    """


btdtria.vjp(
    p=lambda g, b, x, y: g / gamma.betainc_a(y, b, x),
    b=lambda g, b, x, y: -g * gamma.betainc_b(y, b, x) / gamma.betainc_a(y, b, x),
    x=lambda g, b, x, y: -g * gamma.beta_density(y, b, x) / gamma.betainc_a(y, b, x),
)
btdtrib.vjp(
    a=lambda g, a, x, y: -g * gamma.betainc_a(a, y, x) / gamma.betainc_b(a, y, x),
    p=lambda g, a, x, y: g / gamma.betainc_b(a, y, x),
    x=lambda g, a, x, y: -g * gamma.beta_density(a, y, x) / gamma.betainc_b(a, y, x),
)


@special(domain=(0.3, 0.7))
def gdtria(p, b, x):
    """The rate ``a`` for which ``gdtr(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gdtria(ng.tensor([0.5, 0.9]), 1.0, 2.0)
    tensor([0.34657359, 1.15129255])
    """


@special(domain=(0.3, 0.7))
def gdtrib(a, p, x):
    """The shape ``b`` for which ``gdtr(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gdtrib(1.0, ng.tensor([0.5, 0.9]), 2.0)
    tensor([2.32348868, 0.82982446])
    """


@special(domain=(0.3, 0.7))
def gdtrix(a, b, p):
    """The quantile ``x`` for which ``gdtr(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gdtrix(1.0, 1.0, ng.tensor([0.5, 0.9]))
    tensor([0.69314718, 2.30258509])
    """


gdtria.vjp(
    p=lambda g, b, x, y: g / (x * gamma.gamma_density(b, y * x)),
    b=lambda g, b, x, y: -g * gamma.gammainc_a(b, y * x) / (x * gamma.gamma_density(b, y * x)),
    x=lambda g, x, y: -g * y / x,
)
gdtrib.vjp(
    a=lambda g, a, x, y: -g * x * gamma.gamma_density(y, a * x) / gamma.gammainc_a(y, a * x),
    p=lambda g, a, x, y: g / gamma.gammainc_a(y, a * x),
    x=lambda g, a, x, y: -g * a * gamma.gamma_density(y, a * x) / gamma.gammainc_a(y, a * x),
)
gdtrix.vjp(
    a=lambda g, a, y: -g * y / a,
    b=lambda g, a, b, y: -g * moved(gamma.gammainc_a(b, a * y), a * gamma.gamma_density(b, a * y)),
    p=lambda g, a, b, y: g / (a * gamma.gamma_density(b, a * y)),
)


@special(domain=(0.3, 0.7))
def chdtriv(p, x):
    """The degrees of freedom ``v`` for which ``chdtr(v, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.chdtriv(ng.tensor([0.2, 0.5]), 3.0)
    tensor([5.90527117, 3.64062784])
    """


chdtriv.vjp(
    p=lambda g, x, y: 2 * g / gamma.gammainc_a(0.5 * y, 0.5 * x),
    x=lambda g, x, y: (
        -g * gamma.gamma_density(0.5 * y, 0.5 * x) / gamma.gammainc_a(0.5 * y, 0.5 * x)
    ),
)


@special(domain=(0.3, 0.45))
def fdtridfd(dfn, p, x):
    """The ``dfd`` for which ``fdtr(dfn, dfd, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.fdtridfd(2.0, ng.tensor([0.5, 0.55]), 1.0)
    tensor([2.       , 3.6769965])
    """


fdtridfd.vjp(
    dfn=lambda g, dfn, x, y: (
        -g * distributions.f_slope_n(dfn, y, x) / distributions.f_slope_d(dfn, y, x)
    ),
    p=lambda g, dfn, x, y: g / distributions.f_slope_d(dfn, y, x),
    x=lambda g, dfn, x, y: (
        -g * distributions.f_density(dfn, y, x) / distributions.f_slope_d(dfn, y, x)
    ),
)


@special(domain=(0.72, 0.75))
def stdtridf(p, t):
    """The degrees of freedom ``df`` for which ``stdtr(df, t)`` is ``p``.

    Examples
    --------
    >>> ng.special.stdtridf(ng.tensor([0.75, 0.8]), 1.0)
    tensor([1.       , 2.6387439])
    """


stdtridf.vjp(
    p=lambda g, t, y: g / distributions.student_slope(y, t),
    t=lambda g, t, y: -g * distributions.student_density(y, t) / distributions.student_slope(y, t),
)

# ---------------------------------------------------------------------------------------- normal


@special(domain=(0.55, 0.9))
def nrdtrimn(p, std, x):
    """The mean of the normal distribution of which ``p`` is the probability below ``x``.

    Parameters
    ----------
    std
        Standard deviation.

    Examples
    --------
    >>> ng.special.nrdtrimn(ng.tensor([0.5, 0.975]), 1.0, 2.0)
    tensor([2.        , 0.04003602])
    """


@special(domain=(0.55, 0.9))
def nrdtrisd(mn, p, x):
    """The standard deviation of the normal distribution with probability ``p`` below ``x``.

    Parameters
    ----------
    mn
        Mean.

    Examples
    --------
    >>> ng.special.nrdtrisd(0.0, ng.tensor([0.6, 0.975]), 2.0)
    tensor([7.89430775, 1.02042691])
    """


def _quantile_slope(q):
    return math.sqrt(2 * math.pi) * exp_product(0.5 * q, q)


nrdtrimn.vjp(
    p=lambda g, p, std: -g * std * _quantile_slope(ndtri(p)),
    std=lambda g, p: -g * ndtri(p),
    x=lambda g: g,
)
nrdtrisd.vjp(
    mn=lambda g, p: -g / ndtri(p),
    p=lambda g, p, y: -g * (y / ndtri(p)) * _quantile_slope(ndtri(p)),
    x=lambda g, p: g / ndtri(p),
)

# ------------------------------------------------------------------------------------- of counts


def _successes(k, n):
    """Parameters of the beta function, NaN where no probability is asked for."""
    k, n = np.floor(k), np.trunc(n)
    inside = (k >= 0) & (k < n)
    return np.where(inside, k + 1, math.nan), np.where(inside, n - k, math.nan)


def _failures(k, n):
    k, n = np.trunc(k), np.trunc(n)
    inside = (k >= 0) & (n >= 1)
    return np.where(inside, n, math.nan), np.where(inside, k + 1, math.nan)


def _events(k):
    """A count is cut off, so that what lies above -1 is 0."""
    return np.where((k > -1) & (k < math.inf), np.trunc(k) + 1, math.nan)


@special(scalar=None, domain=(0.1, 0.9), signed_zeros=False)
def bdtri(k, n, p):
    """The chance of success for which ``bdtr`` of ``k`` and ``n`` is ``p``.

    Parameters
    ----------
    n
        Number of trials.

    Examples
    --------
    >>> ng.special.bdtri(1, 3, ng.tensor([0.5, 0.972]))
    tensor([0.5, 0.1])
    """
    a, b = _successes(k, n)
    return gamma.betainccinv(a, b, p)


@special(scalar=None, domain=(0.1, 0.9))
def nbdtri(k, n, p):
    """The chance of success for which ``nbdtr`` of ``k`` and ``n`` is ``p``.

    Parameters
    ----------
    n
        Number of successes.

    Examples
    --------
    >>> ng.special.nbdtri(1, 3, ng.tensor([0.0037, 0.3125]))
    tensor([0.1, 0.5])
    """
    a, b = _failures(k, n)
    return gamma.betaincinv(a, b, p)


@special(scalar=None, domain=(0.1, 0.9))
def pdtri(k, p):
    """The mean for which ``pdtr(k, m)`` is ``p``.

    Examples
    --------
    >>> ng.special.pdtri(2, ng.tensor([0.5, 0.9]))
    tensor([2.67406031, 1.10206533])
    """
    return gamma.gammainccinv(_events(k), np.where(p < 1, p, math.nan))


def _bdtri_vjp(g, k, n, y):
    a, b = _successes(k, n)
    return -g / gamma.beta_density(a, b, y)


def _nbdtri_vjp(g, k, n, y):
    a, b = _failures(k, n)
    return g / gamma.beta_density(a, b, y)


bdtri.vjp(p=_bdtri_vjp)
nbdtri.vjp(p=_nbdtri_vjp)
pdtri.vjp(p=lambda g, k, y: -g / gamma.gamma_density(_events(k), y))


@special(domain=(0.3, 0.6))
def pdtrik(p, m):
    """The real number ``k`` of events for which ``pdtr(k, m)`` is ``p``.

    Parameters
    ----------
    m
        Mean.

    Examples
    --------
    >>> ng.special.pdtrik(ng.tensor([0.5, 0.9]), 3.0)
    tensor([2.32673701, 4.79181771])
    """


def _above(y, slope):
    """A derivative of what is 0 where even no event is more probable than asked for."""
    return np.where(y > 1e-90, slope, 0)


pdtrik.vjp(
    p=lambda g, m, y: -g * _above(y, 1 / gamma.gammainc_a(y + 1, m)),
    m=lambda g, m, y: -g * _above(y, gamma.gamma_density(y + 1, m) / gamma.gammainc_a(y + 1, m)),
)


@special(domain=(0.3, 0.6))
def bdtrik(p, n, x):
    """The real number ``k`` for which ``bdtr(k, n, x)`` is ``p``.

    Parameters
    ----------
    n
        Number of trials.
    x
        Chance of success.

    Examples
    --------
    >>> ng.special.bdtrik(ng.tensor([0.5, 0.9]), 10.0, 0.3)
    tensor([2.42930796, 4.38563859])
    """


@special(domain=(0.3, 0.6))
def bdtrin(k, p, x):
    """The real number ``n`` of trials for which ``bdtr(k, n, x)`` is ``p``.

    Parameters
    ----------
    x
        Chance of success.

    Examples
    --------
    >>> ng.special.bdtrin(2.0, ng.tensor([0.5, 0.9]), 0.3)
    tensor([8.57109773, 4.22615959])
    """


@special(domain=(0.3, 0.6))
def nbdtrik(p, n, x):
    """The real number ``k`` for which ``nbdtr(k, n, x)`` is ``p``.

    Parameters
    ----------
    n
        Number of successes.
    x
        Chance of success.

    Examples
    --------
    >>> ng.special.nbdtrik(ng.tensor([0.5, 0.9]), 5.0, 0.3)
    tensor([10.23115049, 19.51527681])
    """


@special(domain=(0.3, 0.6))
def nbdtrin(k, p, x):
    """The real number ``n`` of successes for which ``nbdtr(k, n, x)`` is ``p``.

    Parameters
    ----------
    x
        Chance of success.

    Examples
    --------
    >>> ng.special.nbdtrin(2.0, ng.tensor([0.5, 0.9]), 0.3)
    tensor([1.46115059, 0.32899701])
    """


def _binomial_slope(k, n, x):
    """Derivative of the distribution function in ``k``, along with which ``n - k`` shrinks."""
    return gamma.betainc_b(k + 1, n - k, x) - gamma.betainc_a(k + 1, n - k, x)


bdtrik.vjp(
    p=lambda g, n, x, y: g * _above(y, 1 / _binomial_slope(y, n, x)),
    n=lambda g, n, x, y: g * _above(y, gamma.betainc_b(y + 1, n - y, x) / _binomial_slope(y, n, x)),
    x=lambda g, n, x, y: (
        g * _above(y, gamma.beta_density(y + 1, n - y, x) / _binomial_slope(y, n, x))
    ),
)
bdtrin.vjp(
    k=lambda g, k, x, y: g * _binomial_slope(k, y, x) / gamma.betainc_b(k + 1, y - k, x),
    p=lambda g, k, x, y: -g / gamma.betainc_b(k + 1, y - k, x),
    x=lambda g, k, x, y: (
        -g * gamma.beta_density(k + 1, y - k, x) / gamma.betainc_b(k + 1, y - k, x)
    ),
)
nbdtrik.vjp(
    p=lambda g, n, x, y: g * _above(y, 1 / gamma.betainc_b(n, y + 1, x)),
    n=lambda g, n, x, y: (
        -g * _above(y, gamma.betainc_a(n, y + 1, x) / gamma.betainc_b(n, y + 1, x))
    ),
    x=lambda g, n, x, y: (
        -g * _above(y, gamma.beta_density(n, y + 1, x) / gamma.betainc_b(n, y + 1, x))
    ),
)
nbdtrin.vjp(
    k=lambda g, k, x, y: -g * gamma.betainc_b(y, k + 1, x) / gamma.betainc_a(y, k + 1, x),
    p=lambda g, k, x, y: g / gamma.betainc_a(y, k + 1, x),
    x=lambda g, k, x, y: -g * gamma.beta_density(y, k + 1, x) / gamma.betainc_a(y, k + 1, x),
)
