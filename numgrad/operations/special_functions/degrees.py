"""Trigonometric functions of degrees."""

import math

from numgrad.operations.special_functions.declare import special

_DEGREE = math.pi / 180


@special()
def sindg(x):
    """Sine of degrees.

    Examples
    --------
    >>> ng.special.sindg(ng.tensor([0.0, 30.0, 180.0]))
    tensor([ 0. ,  0.5, -0. ])
    """


@special()
def cosdg(x):
    """Cosine of degrees.

    Examples
    --------
    >>> ng.special.cosdg(ng.tensor([0.0, 60.0, 90.0]))
    tensor([ 1. ,  0.5, -0. ])
    """


@special()
def tandg(x):
    """Tangent of degrees.

    Examples
    --------
    >>> ng.special.tandg(ng.tensor([0.0, 45.0]))
    tensor([0., 1.])
    """


@special(domain=(5.0, 80.0))
def cotdg(x):
    """Cotangent of degrees.

    Examples
    --------
    >>> ng.special.cotdg(ng.tensor([45.0, 90.0]))
    tensor([1., 0.])
    """


@special()
def radian(d, m, s):
    """Radians of degrees, minutes and seconds of arc.

    Parameters
    ----------
    d
        Degrees.
    m
        Minutes.
    s
        Seconds.

    Examples
    --------
    >>> ng.special.radian(ng.tensor([0.0, 180.0]), 30.0, 0.0)
    tensor([0.00872665, 3.1503193 ])
    """


sindg.vjp(x=lambda g, x: g * (_DEGREE * cosdg(x)))
cosdg.vjp(x=lambda g, x: g * (-_DEGREE * sindg(x)))
tandg.vjp(x=lambda g, y: g * (_DEGREE * (1 + y * y)))
cotdg.vjp(x=lambda g, y: g * (-_DEGREE * (1 + y * y)))
radian.vjp(
    d=lambda g: g * _DEGREE, m=lambda g: g * (_DEGREE / 60), s=lambda g: g * (_DEGREE / 3600)
)
