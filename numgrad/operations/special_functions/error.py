"""The error function's kin and the normal distribution."""

import math

import numpy as np

from numgrad.operations.error_gamma_logistic import erf, exp_product, normal_density
from numgrad.operations.special_functions.declare import special

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


def _place(a, b):
    """The product, 0 also where one is endless."""
    none = (a == 0) | (b == 0)
    return np.where(none, 0, np.where(none, 1, a) * np.where(none, 1, b))


def _owens_t_b(g, a, b):
    place = _place(a, b)
    return g * np.exp(-0.5 * (a * a + place * place)) / (2 * math.pi * (1 + b * b))


owens_t.vjp(
    a=lambda g, a, b: g * (-0.5 * normal_density(a) * erf(_ROOT_HALF * _place(a, b))),
    b=_owens_t_b,
)
