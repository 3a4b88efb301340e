"""Distribution functions of SciPy's older names, and random numbers as functions of parameters.

The first are the error function's kin, of the normal distribution.

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
from numgrad.operations.error_gamma_logistic import erf, exp_product, normal_density
from numgrad.operations.special_functions import gamma
from numgrad.operations.special_functions.declare import derivative, moved, special

_ROOT_HALF = math.sqrt(0.5)
_SLOPE = 2 / math.sqrt(math.pi)
_FAR = 12.0


def _tail(t):
    """``1 + 3 t + 15 t**2 + ...``: the asymptotic series at ``t = 1 / (2 x**2)``."""
    total = 1.0
    for k in range(11, 0, -1):
        total = 1 + (2 * k + 1) * t * total
    return total


def _outside(x):
    """Whether the asymptotic series holds to the last place, and ``1 / (2 x**2)``."""
    far = np.abs(x) > _FAR
    inverse = 1 / np.where(far, x, 1)
    return far, 0.5 * inverse * inverse


@special()
def erfcx(x):
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``.

    Examples
    --------
    >>> ng.special.erfcx(ng.tensor([0.0, 1.0, 100.0]))
    tensor([1.        , 0.42758358, 0.00564161])
    """


def _erfcx_vjp(g, x, y):
    far, t = _outside(x)
    far = far & (x > 0)
    return g * np.where(far, -_SLOPE * t * _tail(-t), 2 * x * y - _SLOPE)


erfcx.vjp(x=_erfcx_vjp)


@special()
def erfi(x):
    """Imaginary error function, ``-1j * erf(1j * x)``.

    Examples
    --------
    >>> ng.special.erfi(ng.tensor([0.0, 1.0]))
    tensor([0.        , 1.65042576])
    """


erfi.vjp(x=lambda g, x: _SLOPE * g * exp_product(x, x))


@special()
def dawsn(x):
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)``.

    Examples
    --------
    >>> ng.special.dawsn(ng.tensor([0.0, 1.0, 100.0]))
    tensor([0.        , 0.53807951, 0.00500025])
    """


def _dawsn_vjp(g, x, y):
    far, t = _outside(x)
    if x.dtype.kind == "c":  # an exponential adds to the series off the real axis
        far = far & (np.real(x * x) > 0.25 * _FAR**2)
    return g * np.where(far, -t * _tail(t), 1 - 2 * np.where(far, 0, x) * y)


dawsn.vjp(x=_dawsn_vjp)


@special(domain=(0.1, 1.9), signed_zeros=False)
def erfcinv(x):
    """Inverse of the complementary error function.

    Examples
    --------
    >>> ng.special.erfcinv(ng.tensor([1e-100, 1.0, 2.0]))
    tensor([15.0655747,  0.       ,       -inf])
    """


erfcinv.vjp(x=lambda g, y: g * (-1 / _SLOPE * exp_product(y, y)))


@special()
def log_ndtr(x):
    """Logarithm of the probability that a standard normal number is smaller.

    Examples
    --------
    >>> ng.special.log_ndtr(ng.tensor([-100.0, 0.0, 10.0]))
    tensor([-5.00552421e+03, -6.93147181e-01, -7.61985302e-24])
    """


def _log_ndtr_vjp(g, x):
    if x.dtype.kind != "c":
        return g * (math.sqrt(2 / math.pi) / erfcx(-_ROOT_HALF * x))
    right = np.real(x) > 0  # erfcx overflows there, of which a complex quotient is NaN
    inside, outside = np.where(right, x, 1), np.where(right, -1, x)
    density = math.sqrt(0.5 / math.pi) * np.exp(-0.5 * inside * inside - log_ndtr(inside))
    return g * np.where(right, density, math.sqrt(2 / math.pi) / erfcx(-_ROOT_HALF * outside))


log_ndtr.vjp(x=_log_ndtr_vjp)


@special(domain=(0.05, 0.95))
def ndtri(p):
    """Quantile of the standard normal distribution, the inverse of ``ndtr``.

    Examples
    --------
    >>> ng.special.ndtri(ng.tensor([0.0, 0.5, 0.975]))
    tensor([      -inf, 0.        , 1.95996398])
    """


ndtri.vjp(p=lambda g, y: g * (math.sqrt(2 * math.pi) * exp_product(0.5 * y, y)))


@special(domain=(-4.0, -0.1))
def ndtri_exp(x):
    """Inverse of ``log_ndtr``.

    Examples
    --------
    >>> ng.special.ndtri_exp(ng.tensor([-1000.0, -1.0]))
    tensor([-44.61574773,  -0.33747496])
    """


ndtri_exp.vjp(x=lambda g, y: g * (math.sqrt(math.pi / 2) * erfcx(-_ROOT_HALF * y)))


@special()
def owens_t(a, b):
    """Owen's T function: probability of ``X > a`` and ``0 < Y < b X`` for standard normal ones.

    Examples
    --------
    >>> ng.special.owens_t(ng.tensor([0.0, 1.0]), 0.5)
    tensor([0.07379181, 0.04306469])
    """


def _product(a, b):
    """The product, 0 also where one is infinite."""
    none = (a == 0) | (b == 0)
    return np.where(none, 0, np.where(none, 1, a) * np.where(none, 1, b))


def _owens_t_b(g, a, b):
    product = _product(a, b)
    return g * np.exp(-0.5 * (a * a + product * product)) / (2 * math.pi * (1 + b * b))


owens_t.vjp(
    a=lambda g, a, b: g * (-0.5 * normal_density(a) * erf(_ROOT_HALF * _product(a, b))),
    b=_owens_t_b,
)


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
    a, b = np.where(near, 0.5, 0.5 * df), np.where(near, 0.5 * df, 0.5)
    shape = np.where(near, gamma.betainc_b(a, b, small), -gamma.betainc_a(a, b, small))
    slope = 0.5 * shape - gamma.beta_density(a, b, small) * (square / total) / total
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
    at_end = gamma.gamma_density(b + 1, a * x) * (b / np.where(end, a, 1))
    return np.where(end, at_end, x * gamma.gamma_density(b, a * np.where(end, 1, x)))


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
