"""Distribution functions of SciPy's older names, and random numbers as functions of parameters.

Note [Moments of angles] of ``kernels.von_mises`` says how integrals are computed, and why they have
derivatives of any order.

Note [Implicit reparameterisation]
----------------------------------
A number ``z`` that was drawn with a parameter has a probability ``F(z; a)`` of smaller ones. Kept
at this, it moves by ``dz / da = -(dF / da) / (dF / dz)`` (Figurnov, Mohamed, Mnih, 2018), whatever
algorithm drew it. Operations here have the number as value, and these derivatives. Formulas say
so of their result and not of the operand, so that in further derivatives it moves as well.
"""

import math

import numpy as np

from numgrad.kernels import von_mises as _von_mises  # noqa: F401 (what kernels call)
from numgrad.operations.error_gamma_logistic import normal_density
from numgrad.operations.special_functions import gamma
from numgrad.operations.special_functions.declare import derivative, moved, special
from numgrad.operations.special_functions.error import erfcx

# ---------------------------------------------------------------------------------- chi-squared


@special(domain=(0.5, 4.0))
def chdtr(v, x):
    """Distribution function of chi-squared with ``v`` degrees of freedom.

    Examples
    --------
    >>> ng.special.chdtr(2.0, ng.tensor([0.0, 1.0, 5.0]))
    tensor([0.        , 0.39346934, 0.917915  ])
    """


@special(domain=(0.5, 4.0))
def chdtrc(v, x):
    """Probability that a chi-squared number of ``v`` degrees of freedom is larger.

    Examples
    --------
    >>> ng.special.chdtrc(2.0, ng.tensor([0.0, 1.0, 5.0]))
    tensor([1.        , 0.60653066, 0.082085  ])
    """


@special(domain=(0.1, 0.9))
def chdtri(v, p):
    """Inverse of ``chdtrc``.

    Examples
    --------
    >>> ng.special.chdtri(2.0, ng.tensor([0.05, 0.5]))
    tensor([5.99146455, 1.38629436])
    """


chdtr.vjp(
    v=lambda g, v, x: 0.5 * g * gamma.gammainc_a(0.5 * v, 0.5 * x),
    x=lambda g, v, x: 0.5 * g * gamma.gamma_density(0.5 * v, 0.5 * x),
)
chdtrc.vjp(
    v=lambda g, v, x: -0.5 * g * gamma.gammainc_a(0.5 * v, 0.5 * x),
    x=lambda g, v, x: -0.5 * g * gamma.gamma_density(0.5 * v, 0.5 * x),
)
chdtri.vjp(
    v=lambda g, v, y: (
        -g * moved(gamma.gammainc_a(0.5 * v, 0.5 * y), gamma.gamma_density(0.5 * v, 0.5 * y))
    ),
    p=lambda g, v, y: -2 * g / gamma.gamma_density(0.5 * v, 0.5 * y),
)

# ---------------------------------------------------------------------------------- Student's t


FAR = 1e18
"""Numbers beyond which squares overflow in float32, and Student's tail is a power of them."""


def student_density(df, t):
    """The density of Student's distribution, which is normal of endless degrees of freedom."""
    normal = np.isinf(df)
    df = np.where(normal, 1, df)
    far = np.abs(t) > FAR  # where the square overflows
    near, distant = np.where(far, 1, t), np.where(far, np.abs(t), 1)
    rest = np.where(far, 2 * np.log(distant) - np.log(df), np.log1p(near * near / df))
    log = gamma.betaln(0.5, 0.5 * df) + 0.5 * np.log(df) + 0.5 * (df + 1) * rest
    return np.where(normal, normal_density(t), np.exp(-log))


def student_slope(df, t):
    """Derivative of the distribution function in the degrees of freedom.

    It is half of an incomplete beta function of ``t**2 / (df + t**2)``, or of the complement of
    that, whichever is smaller. At 0 it is the chord to a point so near that derivatives are right;
    beyond ``FAR`` the tail is a power of ``t``.
    """
    near_zero = 1e-6
    end = np.isinf(df) | np.isinf(t)
    df, t = np.where(end, 1, df), np.where(end, 0, t)
    beyond = np.where(np.abs(t) > FAR, np.abs(t) / FAR, 1)
    t = np.where(np.abs(t) > FAR, np.sign(t) * FAR, t)
    square = np.where(t == 0, near_zero**2, t * t)
    total = df + square
    near = square < df
    small = np.where(near, square, df) / total
    own, other = np.where(near, 0.5, 0.5 * df), np.where(near, 0.5 * df, 0.5)
    shape = np.where(near, gamma.betainc_b(own, other, small), -gamma.betainc_a(own, other, small))
    slope = 0.5 * shape - gamma.beta_density(own, other, small) * (square / total) / total
    tail = np.where(beyond > 1, FAR * student_density(df, FAR) / df * np.log(beyond), 0)
    slope = np.power(beyond, -df) * (0.5 * slope + tail)
    return np.where(t == 0, t / near_zero, np.sign(t)) * slope


@special(domain=(0.5, 4.0))
def stdtr(df, t):
    """Distribution function of Student's t.

    Examples
    --------
    >>> ng.special.stdtr(3.0, ng.tensor([-1e3, 0.0, 1.0]))
    tensor([1.10265382e-09, 5.00000000e-01, 8.04498891e-01])
    """


@special(domain=(0.1, 0.9))
def stdtrit(df, p):
    """Quantile of Student's t, the inverse of ``stdtr``.

    Examples
    --------
    >>> ng.special.stdtrit(3.0, ng.tensor([0.5, 0.975]))
    tensor([0.        , 3.18244631])
    """


stdtr.vjp(
    df=lambda g, df, t: g * student_slope(df, t), t=lambda g, df, t: g * student_density(df, t)
)
stdtrit.vjp(
    df=lambda g, df, y: -g * moved(student_slope(df, y), student_density(df, y)),
    p=lambda g, df, y: g / student_density(df, y),
)

# -------------------------------------------------------------------------------------------- F


def _ratio(dfn, dfd, x):
    """The argument of the incomplete beta function, and its derivative but for one factor."""
    total = dfd + dfn * x
    return dfn * x / total, 1 / (total * total)


def f_density(dfn, dfd, x):
    """The density of F."""
    u, slope = _ratio(dfn, dfd, x)
    return gamma.beta_density(0.5 * dfn, 0.5 * dfd, u) * (slope * dfn * dfd)


def _by_place(a, b, u):
    """``u (1 - u)`` times the beta density, in which powers meet that may be endless at 0."""
    total = a + b
    return gamma.beta_density(a + 1, b + 1, u) * (a * b / (total * (total + 1)))


def f_slope_n(dfn, dfd, x):
    """Derivative of the distribution function in ``dfn``."""
    u, _ = _ratio(dfn, dfd, x)
    a, b = 0.5 * dfn, 0.5 * dfd
    return 0.5 * gamma.betainc_a(a, b, u) + _by_place(a, b, u) / dfn


def f_slope_d(dfn, dfd, x):
    """Derivative of the distribution function in ``dfd``."""
    u, _ = _ratio(dfn, dfd, x)
    a, b = 0.5 * dfn, 0.5 * dfd
    return 0.5 * gamma.betainc_b(a, b, u) - _by_place(a, b, u) / dfd


@special(domain=(0.5, 4.0))
def fdtr(dfn, dfd, x):
    """Distribution function of Fisher's F.

    Examples
    --------
    >>> ng.special.fdtr(2.0, 3.0, ng.tensor([0.0, 1.0]))
    tensor([0.      , 0.535242])
    """


@special(domain=(0.5, 4.0))
def fdtrc(dfn, dfd, x):
    """Complement of the distribution function of Fisher's F.

    Examples
    --------
    >>> ng.special.fdtrc(2.0, 3.0, ng.tensor([0.0, 1.0]))
    tensor([1.      , 0.464758])
    """


@special(domain=(0.1, 0.9))
def fdtri(dfn, dfd, p):
    """Quantile of Fisher's F, the inverse of ``fdtr``.

    Examples
    --------
    >>> ng.special.fdtri(2.0, 3.0, ng.tensor([0.5, 0.95]))
    tensor([0.88110158, 9.5520945 ])
    """


fdtr.vjp(
    dfn=lambda g, dfn, dfd, x: g * f_slope_n(dfn, dfd, x),
    dfd=lambda g, dfn, dfd, x: g * f_slope_d(dfn, dfd, x),
    x=lambda g, dfn, dfd, x: g * f_density(dfn, dfd, x),
)
fdtrc.vjp(
    dfn=lambda g, dfn, dfd, x: -g * f_slope_n(dfn, dfd, x),
    dfd=lambda g, dfn, dfd, x: -g * f_slope_d(dfn, dfd, x),
    x=lambda g, dfn, dfd, x: -g * f_density(dfn, dfd, x),
)
fdtri.vjp(
    dfn=lambda g, dfn, dfd, y: -g * moved(f_slope_n(dfn, dfd, y), f_density(dfn, dfd, y)),
    dfd=lambda g, dfn, dfd, y: -g * moved(f_slope_d(dfn, dfd, y), f_density(dfn, dfd, y)),
    p=lambda g, dfn, dfd, y: g / f_density(dfn, dfd, y),
)

# ------------------------------------------------------------------------------------- of counts


@special(domain=(0.5, 4.0))
def gdtr(a, b, x):
    """Distribution function of the gamma distribution of rate ``a`` and shape ``b``.

    Examples
    --------
    >>> ng.special.gdtr(1.0, 2.0, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.26424112])
    """


@special(domain=(0.5, 4.0))
def gdtrc(a, b, x):
    """Complement of the distribution function of the gamma distribution.

    Examples
    --------
    >>> ng.special.gdtrc(1.0, 2.0, ng.tensor([0.0, 1.0]))
    tensor([1.        , 0.73575888])
    """


def _by_rate(a, b, x):
    """``x`` times the density, in which powers meet that may be endless at 0."""
    end = (x == 0) & (a != 0)
    met = gamma.gamma_density(b + 1, a * x) * (b / np.where(end, a, 1))
    return np.where(end, met, x * gamma.gamma_density(b, a * np.where(end, 1, x)))


gdtr.vjp(
    a=lambda g, a, b, x: g * _by_rate(a, b, x),
    b=lambda g, a, b, x: g * gamma.gammainc_a(b, a * x),
    x=lambda g, a, b, x: g * a * gamma.gamma_density(b, a * x),
)
gdtrc.vjp(
    a=lambda g, a, b, x: -g * _by_rate(a, b, x),
    b=lambda g, a, b, x: -g * gamma.gammainc_a(b, a * x),
    x=lambda g, a, b, x: -g * a * gamma.gamma_density(b, a * x),
)


@special(domain=(0.5, 4.0))
def pdtr(k, m):
    """Probability of at most ``k`` events in a Poisson process of mean ``m``.

    Examples
    --------
    >>> ng.special.pdtr(2, ng.tensor([0.5, 2.0]))
    tensor([0.98561232, 0.67667642])
    """


@special(domain=(0.5, 4.0))
def pdtrc(k, m):
    """Probability of more than ``k`` events in a Poisson process of mean ``m``.

    Examples
    --------
    >>> ng.special.pdtrc(2, ng.tensor([0.5, 2.0]))
    tensor([0.01438768, 0.32332358])
    """


pdtr.vjp(m=lambda g, k, m: -g * gamma.gamma_density(np.floor(k) + 1, m))
pdtrc.vjp(m=lambda g, k, m: g * gamma.gamma_density(np.floor(k) + 1, m))


def _counts(k, n):
    """Where there are more trials than successes, and parameters of the beta function there."""
    k, n = np.floor(k), np.trunc(n)
    inside = (k >= 0) & (k < n)
    return inside, np.where(inside, k, 0) + 1, np.where(inside, n - k, 1)


def _all_of(k, n):
    """Where all trials succeed."""
    return (k >= 0) & (np.floor(k) == np.trunc(n))


def _chance(p):
    return (p >= 0) & (p <= 1)


@special(scalar=None, domain=(0.1, 0.9))
def bdtr(k, n, p):
    """Probability of at most ``k`` successes in ``n`` trials of probability ``p``.

    Parameters
    ----------
    n
        Number of trials.

    Examples
    --------
    >>> ng.special.bdtr(1, 3, ng.tensor([0.1, 0.5]))
    tensor([0.972, 0.5  ])
    """
    inside, a, b = _counts(k, n)
    edge = np.where(_all_of(k, n) & _chance(p), 1, math.nan)
    return np.where(inside, gamma.betaincc(a, b, p), edge)


@special(scalar=None, domain=(0.1, 0.9))
def bdtrc(k, n, p):
    """Probability of more than ``k`` successes in ``n`` trials of probability ``p``.

    Parameters
    ----------
    n
        Number of trials.

    Examples
    --------
    >>> ng.special.bdtrc(1, 3, ng.tensor([0.1, 0.5]))
    tensor([0.028, 0.5  ])
    """
    inside, a, b = _counts(k, n)
    edge = np.where((k < 0) & (n == n), 1, np.where(_all_of(k, n), 0, math.nan))
    return np.where(inside, gamma.betainc(a, b, p), np.where(_chance(p), edge, math.nan))


def _bdtr_slope(k, n, p):
    inside, a, b = _counts(k, n)
    return np.where(inside, gamma.beta_density(a, b, p), 0)


bdtr.vjp(p=lambda g, k, n, p: -g * _bdtr_slope(k, n, p))
bdtrc.vjp(p=lambda g, k, n, p: g * _bdtr_slope(k, n, p))


def _some(n):
    """A number of successes that are waited for, at least one."""
    return np.where(n >= 1, np.trunc(n), math.nan)


def _trials(k):
    """One more than a number of failures."""
    return np.where(k > -1, np.trunc(k) + 1, math.nan)


@special(scalar=None, domain=(0.1, 0.9))
def nbdtr(k, n, p):
    """Probability of at most ``k`` failures before the ``n``-th success.

    Parameters
    ----------
    n
        Number of successes.

    Examples
    --------
    >>> ng.special.nbdtr(1, 3, ng.tensor([0.1, 0.5]))
    tensor([0.0037, 0.3125])
    """
    return gamma.betainc(_some(n), _trials(k), p)


@special(scalar=None, domain=(0.1, 0.9))
def nbdtrc(k, n, p):
    """Probability of more than ``k`` failures before the ``n``-th success.

    Parameters
    ----------
    n
        Number of successes.

    Examples
    --------
    >>> ng.special.nbdtrc(1, 3, ng.tensor([0.1, 0.5]))
    tensor([0.9963, 0.6875])
    """
    return gamma.betaincc(_some(n), _trials(k), p)


nbdtr.vjp(p=lambda g, k, n, p: g * gamma.beta_density(_some(n), _trials(k), p))
nbdtrc.vjp(p=lambda g, k, n, p: -g * gamma.beta_density(_some(n), _trials(k), p))


@derivative(domain=(0.3, 3.0))
def angles_within(n, kappa, x):
    """Integral of ``(1 - cos(t))**n exp(kappa (cos(t) - 1))`` from 0 to ``x``."""


@derivative(domain=(0.3, 3.0))
def angles_beyond(n, kappa, x):
    """The same integral from ``x`` to pi."""


@derivative(domain=(0.1, 0.4))
def angle_exceeded(kappa, q):
    """Angle beyond which there is a probability ``q``, of at most one half."""


def _weight(n, kappa, x):
    sine = np.sin(0.5 * x)
    square = sine * sine
    return np.power(2 * square, n) * np.exp(-2 * kappa * square)


angles_within.vjp(
    kappa=lambda g, n, kappa, x: -g * angles_within(n + 1, kappa, x),
    x=lambda g, n, kappa, x: g * _weight(n, kappa, x),
)
angles_beyond.vjp(
    kappa=lambda g, n, kappa, x: -g * angles_beyond(n + 1, kappa, x),
    x=lambda g, n, kappa, x: -g * _weight(n, kappa, x),
)


def _parts(kappa, x):
    """Whether the angle is near 0, ones for both cases, and the integral over all angles."""
    sine = np.sin(0.5 * x)
    near = 2 * sine * sine * (1 + kappa) < 1
    whole = 2 * angles_within(0, kappa, math.pi)
    return near, np.where(near, x, 0), np.where(near, math.pi, x), whole


def angle_density(kappa, x):
    """Density of the distribution at an angle."""
    sine = np.sin(0.5 * x)
    return np.exp(-2 * kappa * (sine * sine)) / (2 * angles_within(0, kappa, math.pi))


def angle_tail(kappa, x):
    """Probability of an angle between ``x``, which is from 0 to pi, and pi."""
    near, inner, outer, whole = _parts(kappa, x)
    return np.where(
        near, 0.5 - angles_within(0, kappa, inner) / whole, angles_beyond(0, kappa, outer) / whole
    )


def angle_tail_slope(kappa, x):
    """Derivative of ``angle_tail`` in ``kappa``, from what does not cancel."""
    near, inner, outer, whole = _parts(kappa, x)
    mean = 2 * angles_within(1, kappa, math.pi) / whole
    within = mean * angles_within(0, kappa, inner) - angles_within(1, kappa, inner)
    beyond = mean * angles_beyond(0, kappa, outer) - angles_beyond(1, kappa, outer)
    return np.where(near, -within, beyond) / whole


angle_exceeded.vjp(
    kappa=lambda g, kappa, y: g * angle_tail_slope(kappa, y) / angle_density(kappa, y),
    q=lambda g, kappa, y: -g / angle_density(kappa, y),
)


def turned(x):
    """Whole turns in an angle, and the rest of it, between -pi and pi."""
    turns = np.rint(x / (2 * math.pi))
    return turns, x - 2 * math.pi * turns


@derivative(scalar=None, domain=(0.5, 4.0))
def gamma_path(a, x):
    """A gamma number of shape ``a`` that was drawn."""
    return x


gamma_path.vjp(
    a=lambda g, a, y: -g * moved(gamma.gammainc_a(a, y), gamma.gamma_density(a, y)), x=lambda g: g
)


@derivative(scalar=None, domain=(0.15, 0.85))
def beta_path(a, b, x):
    """A beta number that was drawn."""
    return x


beta_path.vjp(
    a=lambda g, a, b, y: -g * moved(gamma.betainc_a(a, b, y), gamma.beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(gamma.betainc_b(a, b, y), gamma.beta_density(a, b, y)),
    x=lambda g: g,
)


@derivative(scalar=None, domain=(0.5, 4.0))
def student_path(df, t):
    """A number of Student's distribution that was drawn."""
    return t


student_path.vjp(
    df=lambda g, df, y: -g * moved(student_slope(df, y), student_density(df, y)), t=lambda g: g
)


@derivative(scalar=None, domain=(0.3, 3.0))
def angle_path(kappa, x):
    """An angle between -pi and pi that was drawn around 0."""
    return x


def _angle_slope(kappa, y):
    left = y < 0
    size = np.where(left, -y, y)
    result = angle_tail_slope(kappa, size) / angle_density(kappa, size)
    return np.where(left, -result, result)


angle_path.vjp(kappa=lambda g, kappa, y: g * _angle_slope(kappa, y), x=lambda g: g)


@derivative(scalar=None, domain=(0.5, 4.0))
def arrival_path(mean, scale, x):
    """A time of Wald's distribution that was drawn."""
    return x


def _arrival_slope(mean, scale, y):
    """Derivative in the mean; the density's exponential divides that of a normal tail."""
    away = np.sqrt(scale / y) * (y / mean + 1)
    tail = math.sqrt(math.pi / 2) * erfcx(math.sqrt(0.5) * away)
    return 2 * y * np.sqrt(scale * y) * tail / (mean * mean)


arrival_path.vjp(
    mean=lambda g, mean, scale, y: g * _arrival_slope(mean, scale, y),
    # times grow in proportion to both parameters
    scale=lambda g, mean, scale, y: g * (y - mean * _arrival_slope(mean, scale, y)) / scale,
    x=lambda g: g,
)
