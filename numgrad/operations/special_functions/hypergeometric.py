"""Hypergeometric functions, integrals of exponentials over their argument, orthogonal polynomials.

The polynomials, at a point, are of integer and, but for Hermite's, real order. None has a gradient
with respect to its order, or to parameters of its weight. Whole orders are
taken by recurrence, where SciPy takes those of floating dtype by hypergeometric functions: the last
digits and the signs of zeros may be others.
"""

import math

import numpy as np

from numgrad.operations.error_gamma_logistic import scipy_special
from numgrad.operations.special_functions.declare import (
    central_difference,
    pole_difference,
    special,
)


@special(domain=(0.1, 0.9))
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
    v=lambda g, v, z: g * pole_difference(lambda p: hyp0f1(p, z), v),
    z=lambda g, v, z: g * hyp0f1(v + 1, z) / v,
)


@special(domain=(0.1, 0.9))
def hyp1f1(a, b, x):
    """Confluent hypergeometric function of the first kind.

    Examples
    --------
    >>> ng.special.hyp1f1(1.0, 2.0, ng.tensor([0.0, 1.0]))
    tensor([1.        , 1.71828183])
    """


hyp1f1.vjp(
    a=lambda g, a, b, x: g * central_difference(lambda p: hyp1f1(p, b, x), a),
    b=lambda g, a, b, x: g * pole_difference(lambda p: hyp1f1(a, p, x), b),
    x=lambda g, a, b, x: g * (a / b) * np.where(a == -1, 1, hyp1f1(a + 1, b + 1, x)),
)


@special(domain=(0.1, 0.9))
def hyp2f1(a, b, c, z):
    """Gauss's hypergeometric function.

    Examples
    --------
    >>> ng.special.hyp2f1(1.0, 1.0, 2.0, ng.tensor([0.0, 0.5]))
    tensor([1.        , 1.38629436])
    """


hyp2f1.vjp(
    a=lambda g, a, b, c, z: g * central_difference(lambda p: hyp2f1(p, b, c, z), a),
    b=lambda g, a, b, c, z: g * central_difference(lambda p: hyp2f1(a, p, c, z), b),
    c=lambda g, a, b, c, z: g * pole_difference(lambda p: hyp2f1(a, b, p, z), c),
    z=lambda g, a, b, c, z: g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, z),
)


@special(domain=(0.1, 0.9))
def hyperu(a, b, x):
    """Confluent hypergeometric function of the second kind.

    Examples
    --------
    >>> ng.special.hyperu(1.0, 0.5, ng.tensor([1.0, 2.0]))
    tensor([0.48425569, 0.31452308])
    """


hyperu.vjp(
    a=lambda g, a, b, x: g * central_difference(lambda p: hyperu(p, b, x), a),
    b=lambda g, a, b, x: g * central_difference(lambda p: hyperu(a, p, x), b),
    # of orders 0 and -1 it is a constant and 1, also where the other function is endless
    x=lambda g, a, b, x: (
        g * np.where(a == 0, 0, -a * np.where(a == -1, 1, hyperu(a + 1, b + 1, x)))
    ),
)


@special()
def exprel(x):
    """``(exp(x) - 1) / x``, 1 at 0.

    Examples
    --------
    >>> ng.special.exprel(ng.tensor([0.0, 1.0]))
    tensor([1.        , 1.71828183])
    """


exprel.vjp(x=lambda g, x: 0.5 * g * hyp1f1(2, 3, x))


@special(domain=(0.3, 3.0))
def exp1(x):
    """Exponential integral of ``exp(-t) / t`` from ``x`` on.

    Examples
    --------
    >>> ng.special.exp1(ng.tensor([0.5, 1.0]))
    tensor([0.55977359, 0.21938393])
    """


exp1.vjp(x=lambda g, x: -g * np.exp(-x) / x)


@special(domain=(0.3, 3.0))
def expi(x):
    """Exponential integral of ``exp(t) / t`` up to ``x``, a principal value.

    Examples
    --------
    >>> ng.special.expi(ng.tensor([-1.0, 1.0]))
    tensor([-0.21938393,  1.89511782])
    """


expi.vjp(x=lambda g, x: g * np.exp(x) / x)


@special(domain=(0.3, 3.0))
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


@special(domain=(0.3, 0.9))
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


@special(domain=(-2.0, 2.0))
def wrightomega(z):
    """Wright's omega function of real operands: ``y + log(y)`` is ``z``.

    Examples
    --------
    >>> ng.special.wrightomega(ng.tensor([0.0, 1.0]))
    tensor([0.56714329, 1.        ])
    """


wrightomega.vjp(z=lambda g, y: g * y / (1 + y))


def _of_whole(name):
    """SciPy's function, which takes orders of integer dtype only."""
    return lambda n, x: scipy_special(name)(np.asarray(n, np.int64), x)


def _below(n, f):
    """``f(n - 1)``, 0 for the constant."""
    return np.where(n == 0, 0, f(np.where(n == 0, 1, n) - 1))


def _below_any(n, f):
    """The same of polynomials that are 0 for negative integers."""
    none = (n < 0) & (n == np.floor(n))
    return np.where(none, 0, _below(np.where(none, 1, n), f))


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_legendre(n, x):
    """Legendre polynomial.

    Examples
    --------
    >>> ng.special.eval_legendre(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-0.5  , -0.125,  1.   ])
    """


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_chebyt(n, x):
    """Chebyshev polynomial of the first kind.

    Examples
    --------
    >>> ng.special.eval_chebyt(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-1. , -0.5,  1. ])
    """


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_chebyu(n, x):
    """Chebyshev polynomial of the second kind.

    Examples
    --------
    >>> ng.special.eval_chebyu(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-1.,  0.,  3.])
    """


@special(domain=(0.1, 0.9))
def eval_gegenbauer(n, alpha, x):
    """Gegenbauer polynomial.

    Examples
    --------
    >>> ng.special.eval_gegenbauer(2, 1.5, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-1.5  ,  0.375,  6.   ])
    """


@special(domain=(0.1, 0.9))
def eval_jacobi(n, alpha, beta, x):
    """Jacobi polynomial.

    Examples
    --------
    >>> ng.special.eval_jacobi(2, 0.5, 1.5, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-0.625 , -0.3125,  1.875 ])
    """


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_laguerre(n, x):
    """Laguerre polynomial.

    Examples
    --------
    >>> ng.special.eval_laguerre(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 1.   ,  0.125, -0.5  ])
    """


@special(domain=(0.1, 0.9))
def eval_genlaguerre(n, alpha, x):
    """Generalized Laguerre polynomial.

    Examples
    --------
    >>> ng.special.eval_genlaguerre(2, 0.5, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 1.875,  0.75 , -0.125])
    """


@special(ref=_of_whole("eval_hermite"), domain=(0.1, 0.9))
def eval_hermite(n, x):
    """Physicist's Hermite polynomial; orders are truncated to integers.

    Examples
    --------
    >>> ng.special.eval_hermite(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-2., -1.,  2.])
    """


@special(ref=_of_whole("eval_hermitenorm"), domain=(0.1, 0.9))
def eval_hermitenorm(n, x):
    """Probabilist's Hermite polynomial; orders are truncated to integers.

    Examples
    --------
    >>> ng.special.eval_hermitenorm(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([-1.  , -0.75,  0.  ])
    """


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_chebyc(n, x):
    """Chebyshev polynomial of the first kind on -2 to 2.

    Examples
    --------
    >>> ng.special.eval_chebyc(2, ng.tensor([0.0, 1.0, 2.0]))
    tensor([-2., -1.,  2.])
    """


@special(domain=(0.1, 0.9), signed_zeros=False)
def eval_chebys(n, x):
    """Chebyshev polynomial of the second kind on -2 to 2.

    Examples
    --------
    >>> ng.special.eval_chebys(2, ng.tensor([0.0, 1.0, 2.0]))
    tensor([-1.,  0.,  3.])
    """


@special(domain=(0.1, 0.9))
def eval_sh_legendre(n, x):
    """Legendre polynomial on 0 to 1.

    Examples
    --------
    >>> ng.special.eval_sh_legendre(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 1. , -0.5,  1. ])
    """


@special(domain=(0.1, 0.9))
def eval_sh_chebyt(n, x):
    """Chebyshev polynomial of the first kind on 0 to 1.

    Examples
    --------
    >>> ng.special.eval_sh_chebyt(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 1., -1.,  1.])
    """


@special(domain=(0.1, 0.9))
def eval_sh_chebyu(n, x):
    """Chebyshev polynomial of the second kind on 0 to 1.

    Examples
    --------
    >>> ng.special.eval_sh_chebyu(2, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 3., -1.,  3.])
    """


@special(domain=(0.1, 0.9))
def eval_sh_jacobi(n, p, q, x):
    """Jacobi polynomial on 0 to 1, with leading coefficient 1.

    Parameters
    ----------
    p
        Parameter, larger than ``q - 1``.
    q
        Second parameter.

    Examples
    --------
    >>> ng.special.eval_sh_jacobi(2, 2.0, 1.5, ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 0.1875, -0.0625,  0.1875])
    """


def _second_kind(n, x):
    """Half the derivative of Chebyshev's polynomial, which is odd around degree -1."""
    mirrored, none = n < -1, n == -1
    degree = np.where(none, 0, np.where(mirrored, -n - 2, n))
    result = _below(degree, lambda k: eval_gegenbauer(k, 2, x))
    return np.where(mirrored, -result, result)


def _positive(n):
    """The degree from 0 on of the same Legendre function."""
    return np.where(n < -0.5, -n - 1, n)


eval_legendre.vjp(x=lambda g, n, x: g * _below(_positive(n), lambda k: eval_gegenbauer(k, 1.5, x)))
eval_chebyt.vjp(x=lambda g, n, x: g * n * _below(n, lambda k: eval_chebyu(k, x)))
eval_chebyu.vjp(x=lambda g, n, x: 2 * g * _second_kind(n, x))
eval_gegenbauer.vjp(
    x=lambda g, n, alpha, x: (
        2 * g * alpha * _below_any(n, lambda k: eval_gegenbauer(k, alpha + 1, x))
    )
)
eval_jacobi.vjp(
    x=lambda g, n, alpha, beta, x: (
        0.5
        * g
        * (n + alpha + beta + 1)
        * _below_any(n, lambda k: eval_jacobi(k, alpha + 1, beta + 1, x))
    )
)
eval_laguerre.vjp(x=lambda g, n, x: -g * _below(n, lambda k: eval_genlaguerre(k, 1, x)))
eval_genlaguerre.vjp(
    x=lambda g, n, alpha, x: -g * _below(n, lambda k: eval_genlaguerre(k, alpha + 1, x))
)
eval_hermite.vjp(
    x=lambda g, n, x: 2 * g * np.trunc(n) * _below(np.trunc(n), lambda k: eval_hermite(k, x))
)
eval_hermitenorm.vjp(
    x=lambda g, n, x: g * np.trunc(n) * _below(np.trunc(n), lambda k: eval_hermitenorm(k, x))
)
eval_chebyc.vjp(x=lambda g, n, x: g * n * _below(n, lambda k: eval_chebyu(k, 0.5 * x)))
eval_chebys.vjp(x=lambda g, n, x: g * _second_kind(n, 0.5 * x))
eval_sh_legendre.vjp(
    x=lambda g, n, x: 2 * g * _below(_positive(n), lambda k: eval_gegenbauer(k, 1.5, 2 * x - 1))
)
eval_sh_chebyt.vjp(x=lambda g, n, x: 2 * g * n * _below(n, lambda k: eval_chebyu(k, 2 * x - 1)))
eval_sh_chebyu.vjp(x=lambda g, n, x: 4 * g * _second_kind(n, 2 * x - 1))
eval_sh_jacobi.vjp(
    x=lambda g, n, p, q, x: g * n * _below(n, lambda k: eval_sh_jacobi(k, p + 2, q + 1, x))
)


@special(domain=(0.1, 0.9))
def lpmv(m, v, x):
    """Associated Legendre function of integer order ``m`` and real degree ``v``, from -1 to 1.

    Parameters
    ----------
    m
        Order.
    v
        Degree.

    Examples
    --------
    >>> ng.special.lpmv(1, 2.0, ng.tensor([0.0, 0.5]))
    tensor([ 0.        , -1.29903811])
    """


def _lpmv_end(m, v, x):
    """Derivative at an end for an order that is not 0: that of ``(1 - x**2)**(abs(m) / 2)``."""
    first = np.where(m > 0, 0.5 * v * (v + 1), -0.5)
    # of orders 1 and -1 it is endless, unless the function is 0
    first = np.where(first == 0, 0, math.inf * np.where(first == 0, 1, first))
    second = np.where(m > 0, -0.25 * (v - 1) * v * (v + 1) * (v + 2), -0.25)
    right = np.where(np.abs(m) == 1, first, np.where(np.abs(m) == 2, second, 0))
    total = np.abs(v + m)
    odd, whole = total - 2 * np.floor(0.5 * total) == 1, v == np.floor(v)
    left = np.where(whole, np.where(odd, right, -right), math.nan)  # where the function is endless
    return np.where(x > 0, right, left)


def _lpmv_vjp(g, m, v, x, y):
    # by the polynomial of order 0; others are powers of 1 - x**2 times such
    plain, end = m == 0, (x == 1) | (x == -1)
    degree = np.where(plain, _positive(v), 0)
    result = _below(degree, lambda k: eval_gegenbauer(k, 1.5, x))
    inner = np.where(plain | end, 0, x)
    other = ((v + 1) * inner * y - (v - m + 1) * lpmv(m, v + 1, inner)) / (1 - inner * inner)
    return g * np.where(plain, result, np.where(end, _lpmv_end(m, v, x), other))


lpmv.vjp(x=_lpmv_vjp)


def assoc_laguerre(x, n, k=0.0):
    """Associated Laguerre polynomial of degree ``n``: ``eval_genlaguerre(n, k, x)``.

    Parameters
    ----------
    x
        Argument.
    n
        Degree.
    k
        Order, above -1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.assoc_laguerre(ng.tensor([0.0, 1.0]), 2, 1)
    tensor([3. , 0.5])
    """
    return eval_genlaguerre(n, k, x)
