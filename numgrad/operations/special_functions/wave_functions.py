"""Parabolic cylinder, Mathieu and spheroidal wave functions, which come with their derivative.

Note [Pairs]
------------
Parabolic cylinder, Mathieu and spheroidal wave functions are returned by SciPy with their
derivative in the argument. Their second derivative is what the differential equation says, so
there are derivatives of any order in the argument; in orders and parameters they raise. SciPy's
spheroidal functions of the second kind are left out: their values do not fit their derivatives.
"""

import math

import numpy as np

from numgrad.operations.special_functions.declare import arrived, several, special

_DEGREE = math.pi / 180

# ---------------------------------------------------------------------------- parabolic cylinder


@several(count=2)
def pbdv(v, x):
    """Parabolic cylinder function D and its derivative.

    Returns
    -------
    tuple of Tensors
        D of order ``v`` at ``x``, and its derivative there.

    Examples
    --------
    >>> ng.special.pbdv(0.5, ng.tensor([0.0, 1.0]))
    (tensor([0.58136832, 0.84220324]), tensor([ 0.60814011, -0.09456561]))
    """


@several(count=2)
def pbvv(v, x):
    """Parabolic cylinder function V and its derivative.

    Returns
    -------
    tuple of Tensors
        V of order ``v`` at ``x``, and its derivative there.

    Examples
    --------
    >>> ng.special.pbvv(0.5, ng.tensor([1.0, 2.0]))
    (tensor([0.22003509, 1.02113312]), tensor([0.92267136, 0.70534217]))
    """


@several(count=2)
def pbwa(a, x):
    """Parabolic cylinder function W and its derivative, for operands up to about 5.

    Returns
    -------
    tuple of Tensors
        W of parameter ``a`` at ``x``, and its derivative there.

    Examples
    --------
    >>> ng.special.pbwa(0.5, ng.tensor([1.0, 2.0]))
    (tensor([0.47413986, 0.19726074]), tensor([-0.29012439, -0.30112548]))
    """


def _parabolic_vjp(g, v, x, y):
    return arrived(g, lambda: y[1], lambda: (0.25 * x * x - v - 0.5) * y[0])


def _pbwa_vjp(g, a, x, y):
    return arrived(g, lambda: y[1], lambda: (a - 0.25 * x * x) * y[0])


pbdv.vjp(x=_parabolic_vjp)
pbvv.vjp(x=_parabolic_vjp)
pbwa.vjp(x=_pbwa_vjp)

# --------------------------------------------------------------------------------------- Mathieu


@special(domain=(1.0, 3.0))
def mathieu_a(m, q):
    """Characteristic value of the even Mathieu functions of order ``m``; without gradients.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Examples
    --------
    >>> ng.special.mathieu_a(ng.tensor([1.0, 2.0]), 0.5)
    tensor([1.46676684, 4.1009006 ])
    """


@special(domain=(1.0, 3.0))
def mathieu_b(m, q):
    """Characteristic value of the odd Mathieu functions of order ``m``; without gradients.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Examples
    --------
    >>> ng.special.mathieu_b(ng.tensor([1.0, 2.0]), 0.5)
    tensor([0.47065435, 3.97918922])
    """


@several(count=2, samples=())
def mathieu_cem(m, q, x):
    """Even Mathieu function and its derivative, of an argument in degrees.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative by an angle in radians.

    Examples
    --------
    >>> ng.special.mathieu_cem(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([0.93285557, 0.93280582])
    """


@several(count=2, samples=())
def mathieu_sem(m, q, x):
    """Odd Mathieu function and its derivative, of an argument in degrees.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative by an angle in radians.

    Examples
    --------
    >>> ng.special.mathieu_sem(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([0.00722918, 0.01445865])
    """


@several(count=2, samples=())
def mathieu_modcem1(m, q, x):
    """Even modified Mathieu function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.mathieu_modcem1(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([0.61410496, 0.60863355])
    """


@several(count=2, samples=())
def mathieu_modcem2(m, q, x):
    """Even modified Mathieu function of the second kind and its derivative.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.mathieu_modcem2(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([-0.59365576, -0.09021353])
    """


@several(count=2, samples=())
def mathieu_modsem1(m, q, x):
    """Odd modified Mathieu function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.mathieu_modsem1(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([0.3241278 , 0.53830822])
    """


@several(count=2, samples=())
def mathieu_modsem2(m, q, x):
    """Odd modified Mathieu function of the second kind and its derivative.

    Parameters
    ----------
    m
        Order.
    q
        Parameter.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.mathieu_modsem2(1, 0.5, ng.tensor([0.5, 1.0]))[0]
    tensor([-0.67616175, -0.21844021])
    """


def _angular_mathieu(value):
    def vjp(g, m, q, x, y):
        def bend():
            return (2 * q * np.cos(2 * _DEGREE * x) - value(m, q)) * y[0]

        return _DEGREE * arrived(g, lambda: y[1], bend)

    return vjp


def _radial_mathieu(value):
    def vjp(g, m, q, x, y):
        return arrived(g, lambda: y[1], lambda: (value(m, q) - 2 * q * np.cosh(2 * x)) * y[0])

    return vjp


mathieu_cem.vjp(x=_angular_mathieu(mathieu_a))
mathieu_sem.vjp(x=_angular_mathieu(mathieu_b))
for _op in (mathieu_modcem1, mathieu_modcem2):
    _op.vjp(x=_radial_mathieu(mathieu_a))
for _op in (mathieu_modsem1, mathieu_modsem2):
    _op.vjp(x=_radial_mathieu(mathieu_b))


@special(domain=(1.0, 3.0))
def pro_cv(m, n, c):
    """Characteristic value of prolate spheroidal wave functions; without gradients.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Examples
    --------
    >>> ng.special.pro_cv(1.0, 2.0, ng.tensor([0.5, 1.0]))
    tensor([6.10690013, 6.42469914])
    """


@special(domain=(1.0, 3.0))
def obl_cv(m, n, c):
    """Characteristic value of oblate spheroidal wave functions; without gradients.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Examples
    --------
    >>> ng.special.obl_cv(1.0, 2.0, ng.tensor([0.5, 1.0]))
    tensor([5.89261397, 5.56752745])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def pro_ang1(m, n, c, x):
    """Prolate spheroidal angular function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.pro_ang1(1, 2, 1.0, ng.tensor([0.2, 0.5]))[0]
    tensor([0.5862149 , 1.27620871])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def pro_ang1_cv(m, n, c, cv, x):
    """Prolate spheroidal angular function and its derivative, of a given characteristic value.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.
    cv
        Characteristic value of these; with another one the gradient is not that of the value.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.pro_ang1_cv(1, 2, 1.0, ng.special.pro_cv(1, 2, 1.0), ng.tensor([0.2, 0.5]))[0]
    tensor([0.5862149 , 1.27620871])
    """


@several(count=2, domain=(1.2, 3.0), samples=())
def pro_rad1(m, n, c, x):
    """Prolate spheroidal radial function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.pro_rad1(1, 2, 1.0, ng.tensor([1.5, 2.0]))[0]
    tensor([0.09904707, 0.17957273])
    """


@several(count=2, domain=(1.2, 3.0), samples=())
def pro_rad1_cv(m, n, c, cv, x):
    """Prolate spheroidal radial function and its derivative, of a given characteristic value.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.
    cv
        Characteristic value of these; with another one the gradient is not that of the value.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.pro_rad1_cv(1, 2, 1.0, ng.special.pro_cv(1, 2, 1.0), ng.tensor([1.5, 2.0]))[0]
    tensor([0.09904707, 0.17957273])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def obl_ang1(m, n, c, x):
    """Oblate spheroidal angular function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.obl_ang1(1, 2, 1.0, ng.tensor([0.2, 0.5]))[0]
    tensor([0.58957437, 1.32261049])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def obl_ang1_cv(m, n, c, cv, x):
    """Oblate spheroidal angular function and its derivative, of a given characteristic value.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.
    cv
        Characteristic value of these; with another one the gradient is not that of the value.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.obl_ang1_cv(1, 2, 1.0, ng.special.obl_cv(1, 2, 1.0), ng.tensor([0.2, 0.5]))[0]
    tensor([0.58957437, 1.32261049])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def obl_rad1(m, n, c, x):
    """Oblate spheroidal radial function of the first kind and its derivative.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.obl_rad1(1, 2, 1.0, ng.tensor([0.2, 0.5]))[0]
    tensor([0.01301863, 0.03514426])
    """


@several(count=2, domain=(0.1, 0.9), samples=())
def obl_rad1_cv(m, n, c, cv, x):
    """Oblate spheroidal radial function and its derivative, of a given characteristic value.

    Parameters
    ----------
    m
        Order.
    n
        Degree, at least the order.
    c
        Parameter of the spheroid.
    cv
        Characteristic value of these; with another one the gradient is not that of the value.

    Returns
    -------
    tuple of Tensors
        The function, and its derivative.

    Examples
    --------
    >>> ng.special.obl_rad1_cv(1, 2, 1.0, ng.special.obl_cv(1, 2, 1.0), ng.tensor([0.2, 0.5]))[0]
    tensor([0.01301863, 0.03514426])
    """


def _spheroidal(sign, square, value):
    """Formulas without and with the characteristic value among the operands.

    ``square`` is -1 where the equation has ``1 + x**2`` in place of ``1 - x**2``, ``sign`` that of
    ``c**2``, which is -1 for oblate ones.
    """

    def bend(m, c, cv, x, y):
        rest = 1 - square * x * x
        inner = cv - sign * square * (c * x) ** 2 - m * m / rest
        return (2 * square * x * y[1] - square * inner * y[0]) / rest

    def vjp(g, m, n, c, x, y):
        return arrived(g, lambda: y[1], lambda: bend(m, c, value(m, n, c), x, y))

    def of_value(g, m, c, cv, x, y):
        return arrived(g, lambda: y[1], lambda: bend(m, c, cv, x, y))

    return vjp, of_value


def _complete(op, of_value, *equation):
    formula, with_value = _spheroidal(*equation)
    op.vjp(x=formula)
    of_value.vjp(x=with_value)


_complete(pro_ang1, pro_ang1_cv, 1, 1, pro_cv)
_complete(pro_rad1, pro_rad1_cv, 1, 1, pro_cv)
_complete(obl_ang1, obl_ang1_cv, -1, 1, obl_cv)
_complete(obl_rad1, obl_rad1_cv, -1, -1, obl_cv)
