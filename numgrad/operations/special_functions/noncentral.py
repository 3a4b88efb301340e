"""Noncentral distributions, Kolmogorov's, Tukey's, and Wright's functions."""

import math

import numpy as np

from numgrad.operations.special_functions import declare
from numgrad.operations.special_functions.bessel import ive
from numgrad.operations.special_functions.gamma import betaln, rgamma
from numgrad.operations.special_functions.hypergeometric import hyp0f1, hyp1f1
from numgrad.operations.special_functions.scipy_elementary import xlog1py, xlogy

# ------------------------------------------------------------------------ noncentral chi-squared


@declare.derivative(domain=(0.5, 4.0))
def chndtr_df(x, df, nc):
    """Derivative of ``chndtr`` with respect to the degrees of freedom."""


@declare.special(domain=(0.5, 4.0))
def chndtr(x, df, nc):
    """Distribution function of noncentral chi-squared.

    The derivative in ``df`` is one of differences of order ten, right to about ten digits of the
    largest; its own derivatives are such differences again, right to about eight.

    Parameters
    ----------
    nc
        Noncentrality.

    Examples
    --------
    >>> ng.special.chndtr(ng.tensor([1.0, 5.0]), 2.0, 1.0)
    tensor([0.2671202 , 0.81070996])
    """


@declare.special(domain=(0.3, 0.6))
def chndtrix(p, df, nc):
    """Quantile of noncentral chi-squared, the inverse of ``chndtr``.

    Parameters
    ----------
    nc
        Noncentrality.

    Examples
    --------
    >>> ng.special.chndtrix(ng.tensor([0.5, 0.9]), 2.0, 1.0)
    tensor([2.17703855, 6.77013026])
    """


def _pdf(x, df, nc):
    """Density, whose negative with two more degrees of freedom is the slope in ``nc``."""
    product = nc * x
    small = product < 1
    near = np.where(small, product, 0)
    series = (
        np.exp(xlogy(0.5 * df - 1, 0.5 * x) - 0.5 * (x + nc))
        * rgamma(0.5 * df)
        * hyp0f1(0.5 * df, 0.25 * near)
    )
    far_x, far_nc = np.where(small, 1, x), np.where(small, 1, nc)
    gap = np.sqrt(far_x) - np.sqrt(far_nc)
    power = np.exp((0.25 * df - 0.5) * np.log(far_x / far_nc) - 0.5 * gap * gap)
    return 0.5 * np.where(small, series, power * ive(0.5 * df - 1, np.sqrt(far_x * far_nc)))


chndtr_df.vjp(
    x=lambda g, x, df, nc: g * declare.shape_difference(lambda v: _pdf(x, v, nc), df),
    df=lambda g, x, df, nc: g * declare.shape_difference(lambda v: chndtr_df(x, v, nc), df),
    nc=lambda g, x, df, nc: -g * declare.shape_difference(lambda v: _pdf(x, v + 2, nc), df),
)
chndtr.vjp(
    x=lambda g, x, df, nc: g * _pdf(x, df, nc),
    df=lambda g, x, df, nc: g * chndtr_df(x, df, nc),
    nc=lambda g, x, df, nc: -g * _pdf(x, df + 2, nc),
)
chndtrix.vjp(
    p=lambda g, df, nc, y: g / _pdf(y, df, nc),
    df=lambda g, df, nc, y: -g * declare.moved(chndtr_df(y, df, nc), _pdf(y, df, nc)),
    nc=lambda g, df, nc, y: g * declare.moved(_pdf(y, df + 2, nc), _pdf(y, df, nc)),
)


@declare.special(domain=(0.5, 4.0))
def chndtrinc(x, df, p):
    """The noncentrality for which ``chndtr(x, df, nc)`` is ``p``.

    Examples
    --------
    >>> ng.special.chndtrinc(ng.tensor([5.0, 9.0]), 2.0, 0.5)
    tensor([3.95584692, 7.9787658 ])
    """


@declare.special(domain=(0.5, 4.0))
def chndtridf(x, p, nc):
    """The degrees of freedom for which ``chndtr(x, df, nc)`` is ``p``.

    Parameters
    ----------
    nc
        Noncentrality.

    Examples
    --------
    >>> ng.special.chndtridf(ng.tensor([5.0, 9.0]), 0.5, 1.0)
    tensor([4.75343743, 8.72060572])
    """


chndtrinc.vjp(
    x=lambda g, x, df, y: g * _pdf(x, df, y) / _pdf(x, df + 2, y),
    df=lambda g, x, df, y: g * chndtr_df(x, df, y) / _pdf(x, df + 2, y),
    p=lambda g, x, df, y: -g / _pdf(x, df + 2, y),
)
chndtridf.vjp(
    x=lambda g, x, nc, y: -g * _pdf(x, y, nc) / chndtr_df(x, y, nc),
    p=lambda g, x, nc, y: g / chndtr_df(x, y, nc),
    nc=lambda g, x, nc, y: g * _pdf(x, y + 2, nc) / chndtr_df(x, y, nc),
)

# ---------------------------------------------------------------------------------- noncentral F


@declare.special(domain=(0.5, 4.0))
def ncfdtr(dfn, dfd, nc, f):
    """Distribution function of noncentral F.

    Derivatives with respect to degrees of freedom are differences of order ten, right to about ten
    digits of the largest, second ones to about eight.

    Parameters
    ----------
    nc
        Noncentrality; gradients are NaN where it is so large that ``exp(nc / 2)`` overflows.
    f
        Quantile.

    Examples
    --------
    >>> ng.special.ncfdtr(2.0, 3.0, 1.0, ng.tensor([0.5, 2.0]))
    tensor([0.24744718, 0.60753089])
    """


@declare.special(domain=(0.3, 0.6))
def ncfdtri(dfn, dfd, nc, p):
    """Quantile of noncentral F, the inverse of ``ncfdtr``.

    Parameters
    ----------
    nc
        Noncentrality; gradients are NaN where it is so large that ``exp(nc / 2)`` overflows.

    Examples
    --------
    >>> ng.special.ncfdtri(2.0, 3.0, 1.0, ng.tensor([0.25, 0.5]))
    tensor([0.50642202, 1.37116388])
    """


def _mixture(a, b, nc, u, lead):
    """Sum of beta densities over Poisson weights, of which ``lead`` is the first one's order."""
    weight = xlogy(lead, u) + xlog1py(b, -u) - betaln(a, b) - 0.5 * nc
    return np.exp(weight)


def _place(dfn, dfd, f):
    total = dfd + dfn * f
    return dfn * f / total, dfn * dfd / (total * total)


def _f_pdf(dfn, dfd, nc, f):
    u, slope = _place(dfn, dfd, f)
    a, b = 0.5 * dfn, 0.5 * dfd
    return slope * _mixture(a, b, nc, u, a - 1) / (1 - u) * hyp1f1(a + b, a, 0.5 * nc * u)


def _f_slope(dfn, dfd, nc, f):
    u, _ = _place(dfn, dfd, f)
    a, b = 0.5 * dfn, 0.5 * dfd
    return -0.5 * _mixture(a, b, nc, u, a) / a * hyp1f1(a + b, a + 1, 0.5 * nc * u)


def _f_slope_n(dfn, dfd, nc, f):
    return declare.shape_difference(lambda v: ncfdtr(v, dfd, nc, f), dfn)


def _f_slope_d(dfn, dfd, nc, f):
    return declare.shape_difference(lambda v: ncfdtr(dfn, v, nc, f), dfd)


ncfdtr.vjp(
    dfn=lambda g, dfn, dfd, nc, f: g * _f_slope_n(dfn, dfd, nc, f),
    dfd=lambda g, dfn, dfd, nc, f: g * _f_slope_d(dfn, dfd, nc, f),
    nc=lambda g, dfn, dfd, nc, f: g * _f_slope(dfn, dfd, nc, f),
    f=lambda g, dfn, dfd, nc, f: g * _f_pdf(dfn, dfd, nc, f),
)
ncfdtri.vjp(
    dfn=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope_n(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    dfd=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope_d(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    nc=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    p=lambda g, dfn, dfd, nc, y: g / _f_pdf(dfn, dfd, nc, y),
)


# Note [Implicit reparameterisation] of ``distributions``: numbers that were drawn.


@declare.derivative(scalar=None, domain=(0.5, 4.0))
def noncentral_path(df, nc, x):
    """A number of noncentral chi-squared that was drawn."""
    return x


noncentral_path.vjp(
    df=lambda g, df, nc, y: -g * declare.moved(chndtr_df(y, df, nc), _pdf(y, df, nc)),
    nc=lambda g, df, nc, y: g * declare.moved(_pdf(y, df + 2, nc), _pdf(y, df, nc)),
    x=lambda g: g,
)


@declare.derivative(scalar=None, domain=(0.5, 4.0))
def noncentral_f_path(dfn, dfd, nc, f):
    """A number of noncentral F that was drawn."""
    return f


noncentral_f_path.vjp(
    dfn=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope_n(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    dfd=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope_d(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    nc=lambda g, dfn, dfd, nc, y: (
        -g * declare.moved(_f_slope(dfn, dfd, nc, y), _f_pdf(dfn, dfd, nc, y))
    ),
    f=lambda g: g,
)

# ----------------------------------------------------------------------------------- Kolmogorov


@declare.special(domain=(0.3, 2.0))
def kolmogorov(x):
    """Probability that the scaled distance of a sample from its distribution is larger.

    Examples
    --------
    >>> ng.special.kolmogorov(ng.tensor([0.0, 0.5, 1.0]))
    tensor([1.        , 0.96394524, 0.26999967])
    """


@declare.special(domain=(0.1, 0.9))
def kolmogi(p):
    """Inverse of ``kolmogorov``.

    Examples
    --------
    >>> ng.special.kolmogi(ng.tensor([0.5, 0.05]))
    tensor([0.82757356, 1.35809864])
    """


def _kolmogorov_slope(x):
    """Slope by the one of a theta function's two series for which four terms are enough."""
    small = x < 0.82
    far = np.where(small, 1, np.minimum(x, 40))  # where the tail is 0
    tail = 0.0
    for k in range(1, 5):
        tail = tail + (-1) ** k * k * k * np.exp(-2 * (k * k) * (far * far))
    near = np.where(small & (x > 0.04), x, 0.5)
    inverse = 1 / (near * near)
    head = 0.0
    for k in range(1, 8, 2):
        c = k * k * math.pi**2 / 8
        head = head + np.exp(-c * inverse) * (2 * c * inverse - 1)
    head = np.where(x > 0.04, -math.sqrt(2 * math.pi) * inverse * head, 0)
    return np.where(small, head, 8 * far * tail)


kolmogorov.vjp(x=lambda g, x: g * _kolmogorov_slope(x))
kolmogi.vjp(p=lambda g, y: g / _kolmogorov_slope(y))

# --------------------------------------------------------------------------------------- Tukey


@declare.special(domain=(0.2, 0.8))
def tklmbda(x, lmbda):
    """Distribution function of Tukey's lambda distribution.

    Parameters
    ----------
    lmbda
        Shape.

    Examples
    --------
    >>> ng.special.tklmbda(ng.tensor([-1.0, 0.0, 1.0]), 1.0)
    tensor([0. , 0.5, 1. ])
    """


def _tukey_density(p, lmbda):
    return 1 / (np.power(p, lmbda - 1) + np.power(1 - p, lmbda - 1))


def _tukey_slope(log, lmbda):
    """Derivative of ``(exp(lmbda * log) - 1) / lmbda`` with respect to ``lmbda``."""
    return 0.5 * log * log * hyp1f1(2, 3, lmbda * log)


def _tukey_x(g, lmbda, y):
    inside = (y > 0) & (y < 1)
    return g * np.where(inside, _tukey_density(np.where(inside, y, 0.5), lmbda), 0 * y)


def _tukey_lmbda(g, lmbda, y):
    inside = (y > 0) & (y < 1)
    p = np.where(inside, y, 0.5)
    moved = _tukey_slope(np.log(p), lmbda) - _tukey_slope(np.log1p(-p), lmbda)
    return -g * np.where(inside, _tukey_density(p, lmbda) * moved, 0 * y)


tklmbda.vjp(x=_tukey_x, lmbda=_tukey_lmbda)

# -------------------------------------------------------------------------------------- Wright


@declare.special(domain=(0.5, 2.0))
def wright_bessel(a, b, x):
    """Wright's generalized Bessel function; with a gradient in ``x`` alone.

    Examples
    --------
    >>> ng.special.wright_bessel(1.0, 1.5, ng.tensor([0.0, 1.0]))
    tensor([1.12837917, 2.04623686])
    """


@declare.special(domain=(0.5, 2.0))
def log_wright_bessel(a, b, x):
    """Logarithm of Wright's generalized Bessel function; with a gradient in ``x`` alone.

    Examples
    --------
    >>> ng.special.log_wright_bessel(1.0, 1.5, ng.tensor([0.0, 1.0]))
    tensor([0.12078224, 0.71600243])
    """


wright_bessel.vjp(x=lambda g, a, b, x: g * wright_bessel(a, b + a, x))
log_wright_bessel.vjp(x=lambda g, a, b, x, y: g * np.exp(log_wright_bessel(a, b + a, x) - y))
