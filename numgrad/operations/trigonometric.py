"""Trigonometric functions and their inverses; angles in radians."""

import math

import numpy as np

from numgrad.core.declare import composite, elementwise
from numgrad.operations.arithmetic import multiply
from numgrad.operations.error_gamma_logistic import sech_square


@elementwise(ref=np.sin, special=(0.0, 1e22), smooth=True)
def sin(x):
    """Sine.

    Examples
    --------
    >>> x = ng.tensor([0.0, np.pi / 2], requires_grad=True)
    >>> y = ng.sin(x)
    >>> y.detach()
    tensor([0., 1.])
    >>> y.sum().backward()
    >>> np.round(x.grad, 4)
    tensor([1., 0.])
    """
    return np.sin(x)


sin.vjp(x=lambda g, x: g * np.conj(np.cos(x)))


@elementwise(ref=np.cos, special=(0.0, 1e22), smooth=True)
def cos(x):
    """Cosine.

    Examples
    --------
    >>> ng.cos(ng.tensor([0.0, np.pi / 3, np.pi]))
    tensor([ 1. ,  0.5, -1. ])
    """
    return np.cos(x)


cos.vjp(x=lambda g, x: g * np.conj(-np.sin(x)))


@elementwise(ref=np.tan, domain=(-1.2, 1.2), special=(0.0,))
def tan(x):
    """Tangent.

    Examples
    --------
    >>> ng.tan(ng.tensor([0.0, np.pi / 4]))
    tensor([0., 1.])
    """
    return np.tan(x)


tan.vjp(x=lambda g, y: g * np.conj(1 + y * y))


def _complex_tan_vjp(g, x):
    far = np.abs(np.imag(x)) > 400  # it is 0, and i times an infinity NaN
    square = sech_square(1j * np.where(far, 0, x))
    return g * np.conj(np.where(far, 0, square))


tan.complex_vjp(x=_complex_tan_vjp)
tan.kink(x=([np.pi / 2, -np.pi / 2], [1 + np.tan(np.pi / 2) ** 2] * 2))


def root_of_one_less_square(x):
    """``sqrt(1 - x * x)`` of complex numbers, on the branch cuts at the side of ``x``.

    That is the sign of a zero, which ``1 - x`` and ``1 + x`` lose.
    """
    return np.sqrt(-(x - 1)) * np.sqrt(-(-x - 1))


@elementwise(ref=np.arcsin, aliases=("asin",), domain=(-0.8, 0.8), special=(1.0, -1.0))
def arcsin(x):
    """Inverse sine.

    Examples
    --------
    >>> ng.arcsin(ng.tensor([0.0, 0.5, 1.0]))
    tensor([0.        , 0.52359878, 1.57079633])
    """
    return np.arcsin(x)


arcsin.vjp(x=lambda g, x: g / np.conj(np.sqrt(1 - x) * np.sqrt(1 + x)))
arcsin.complex_vjp(x=lambda g, x: g / np.conj(root_of_one_less_square(x)))
arcsin.kink(x=([1.0, -1.0, 2.0], [np.inf, np.inf, np.nan]))


@elementwise(ref=np.arccos, aliases=("acos",), domain=(-0.8, 0.8), special=(1.0, -1.0))
def arccos(x):
    """Inverse cosine.

    Examples
    --------
    >>> ng.arccos(ng.tensor([1.0, 0.0, -1.0]))
    tensor([0.        , 1.57079633, 3.14159265])
    """
    return np.arccos(x)


arccos.vjp(x=lambda g, x: -g / np.conj(np.sqrt(1 - x) * np.sqrt(1 + x)))
arccos.complex_vjp(x=lambda g, x: -g / np.conj(root_of_one_less_square(x)))
arccos.kink(x=([1.0, -1.0, 2.0], [-np.inf, -np.inf, np.nan]))


@elementwise(ref=np.arctan, aliases=("atan",))
def arctan(x):
    """Inverse tangent.

    Examples
    --------
    >>> ng.arctan(ng.tensor([0.0, 1.0, np.inf]))
    tensor([0.        , 0.78539816, 1.57079633])
    """
    return np.arctan(x)


def _arctan_vjp(g, x):
    far = np.abs(x) > 1e9  # 1 does not count there, and a square may overflow
    return g / np.where(far, x, 1 + x * x) / np.where(far, x, 1)


arctan.vjp(x=_arctan_vjp)
# a sum with the square would cancel near i
arctan.complex_vjp(x=lambda g, x: g / np.conj(x - 1j) / np.conj(x + 1j))
arctan.kink(x=([np.inf, -np.inf, 1e200], [0, 0, 0]))


@elementwise(ref=np.arctan2, aliases=("atan2",), domain=(0.3, 3.0), real_only=True)
def arctan2(a, b):
    """Angle of the point with ordinate ``a`` and abscissa ``b``.

    Parameters
    ----------
    a
        Ordinate.
    b
        Abscissa.

    Examples
    --------
    >>> ng.arctan2(ng.tensor([1.0, 1.0, -1.0]), ng.tensor([1.0, -1.0, 0.0]))
    tensor([ 0.78539816,  2.35619449, -1.57079633])
    """
    return np.arctan2(a, b)


def _arctan2_vjp_a(g, a, b):
    r = np.hypot(a, b)  # a * a would overflow and underflow
    r = np.where(r == 0, 1, r)
    return g * (b / r / r)


def _arctan2_vjp_b(g, a, b):
    return -_arctan2_vjp_a(g, b, a)


arctan2.vjp(a=_arctan2_vjp_a, b=_arctan2_vjp_b)
arctan2.kink(a=([0.0, 0.0], [0, -1]), b=([0.0, -1.0], [0, 0]))


@composite(ref=np.deg2rad, aliases=("radians",), smooth=True)
def deg2rad(x):
    """Degrees to radians.

    Returns
    -------
    Tensor
        Of the shape of ``x``; integers become floating.

    Examples
    --------
    >>> ng.deg2rad(ng.tensor([0.0, 90.0, 180.0]))
    tensor([0.        , 1.57079633, 3.14159265])
    """
    return multiply(x, math.pi / 180)


@composite(ref=np.rad2deg, aliases=("degrees",), smooth=True)
def rad2deg(x):
    """Radians to degrees.

    Returns
    -------
    Tensor
        Of the shape of ``x``; integers become floating.

    Examples
    --------
    >>> ng.rad2deg(ng.tensor([0.0, np.pi / 2, np.pi]))
    tensor([  0.,  90., 180.])
    """
    return multiply(x, 180 / math.pi)
