"""Hypergeometric functions, and integrals of exponentials and sines over their argument."""

import numpy as np

from numgrad.operations.special_functions import declare


@declare.special(domain=(0.1, 0.9))
def hyp0f1(v, z):
    """Confluent hypergeometric limit function.

    Derivatives in parameters are differences of order ten, right to about ten digits, second ones
    to about eight. So it is for all these functions.

    Examples
    --------
    >>> ng.special.hyp0f1(1.5, ng.tensor([0.0, 1.0]))
    tensor([1.       , 1.8134302])
    """


hyp0f1.vjp(
    v=lambda g, v, z: g * declare.pole_difference(lambda p: hyp0f1(p, z), v),
    z=lambda g, v, z: g * hyp0f1(v + 1, z) / v,
)


@declare.special(domain=(0.1, 0.9))
def hyp1f1(a, b, x):
    """Confluent hypergeometric function of the first kind.

    Examples
    --------
    >>> ng.special.hyp1f1(1.0, 2.0, ng.tensor([0.0, 1.0]))
    tensor([1.        , 1.71828183])
    """


hyp1f1.vjp(
    a=lambda g, a, b, x: g * declare.central_difference(lambda p: hyp1f1(p, b, x), a),
    b=lambda g, a, b, x: g * declare.pole_difference(lambda p: hyp1f1(a, p, x), b),
    x=lambda g, a, b, x: g * (a / b) * np.where(a == -1, 1, hyp1f1(a + 1, b + 1, x)),
)


@declare.special(domain=(0.1, 0.9))
def hyp2f1(a, b, c, z):
    """Gauss's hypergeometric function.

    Examples
    --------
    >>> ng.special.hyp2f1(1.0, 1.0, 2.0, ng.tensor([0.0, 0.5]))
    tensor([1.        , 1.38629436])
    """


hyp2f1.vjp(
    a=lambda g, a, b, c, z: g * declare.central_difference(lambda p: hyp2f1(p, b, c, z), a),
    b=lambda g, a, b, c, z: g * declare.central_difference(lambda p: hyp2f1(a, p, c, z), b),
    c=lambda g, a, b, c, z: g * declare.pole_difference(lambda p: hyp2f1(a, b, p, z), c),
    z=lambda g, a, b, c, z: g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, z),
)


@declare.special(domain=(0.1, 0.9))
def hyperu(a, b, x):
    """Confluent hypergeometric function of the second kind.

    Examples
    --------
    >>> ng.special.hyperu(1.0, 0.5, ng.tensor([1.0, 2.0]))
    tensor([0.48425569, 0.31452308])
    """


hyperu.vjp(
    a=lambda g, a, b, x: g * declare.central_difference(lambda p: hyperu(p, b, x), a),
    b=lambda g, a, b, x: g * declare.central_difference(lambda p: hyperu(a, p, x), b),
    # of orders 0 and -1 it is a constant and 1, also where the other function is endless
    x=lambda g, a, b, x: (
        g * np.where(a == 0, 0, -a * np.where(a == -1, 1, hyperu(a + 1, b + 1, x)))
    ),
)


@declare.special()
def exprel(x):
    """``(exp(x) - 1) / x``, 1 at 0.

    Examples
    --------
    >>> ng.special.exprel(ng.tensor([0.0, 1.0]))
    tensor([1.        , 1.71828183])
    """


exprel.vjp(x=lambda g, x: 0.5 * g * hyp1f1(2, 3, x))


@declare.special(domain=(0.3, 3.0))
def exp1(x):
    """Exponential integral of ``exp(-t) / t`` from ``x`` on.

    Examples
    --------
    >>> ng.special.exp1(ng.tensor([0.5, 1.0]))
    tensor([0.55977359, 0.21938393])
    """


exp1.vjp(x=lambda g, x: -g * np.exp(-x) / x)


@declare.special(domain=(0.3, 3.0))
def expi(x):
    """Exponential integral of ``exp(t) / t`` up to ``x``, a principal value.

    Examples
    --------
    >>> ng.special.expi(ng.tensor([-1.0, 1.0]))
    tensor([-0.21938393,  1.89511782])
    """


expi.vjp(x=lambda g, x: g * np.exp(x) / x)


@declare.special(domain=(0.3, 3.0))
def expn(n, x):
    """Exponential integral of integer order; others are truncated.

    Examples
    --------
    >>> ng.special.expn(2, ng.tensor([0.5, 1.0]))
    tensor([0.32664386, 0.14849551])
    """


def _expn_vjp(g, n, x):
    n = np.trunc(n)
    lowest = np.exp(-x) * (1 + x) / (x * x)
    return -g * np.where(n == 0, lowest, expn(np.where(n == 0, 1, n) - 1, x))


expn.vjp(x=_expn_vjp)


@declare.special(domain=(0.3, 0.9))
def spence(z):
    """Dilogarithm of ``1 - z``, the integral of ``log(t) / (1 - t)`` from 1 to ``z``.

    Examples
    --------
    >>> ng.special.spence(ng.tensor([0.5, 1.0, 2.0]))
    tensor([ 0.58224053,  0.        , -0.82246703])
    """


def _spence_vjp(g, z):
    d = 1 - z
    near = np.abs(d) < 1e-4
    # log(1 - d) / d near its removable point
    series = -(1 + d * (1 / 2 + d * (1 / 3 + d * (1 / 4 + d * (1 / 5)))))
    return g * np.where(near, series, np.log(np.where(near, 2, z)) / np.where(near, 1, d))


spence.vjp(z=_spence_vjp)


@declare.special(domain=(-2.0, 2.0))
def wrightomega(z):
    """Wright's omega function of real operands: ``y + log(y)`` is ``z``.

    Examples
    --------
    >>> ng.special.wrightomega(ng.tensor([0.0, 1.0]))
    tensor([0.56714329, 1.        ])
    """


wrightomega.vjp(z=lambda g, y: g * y / (1 + y))
