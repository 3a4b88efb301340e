"""Spheroidal wave functions of the first kind: Note [Pairs] in ``pairs``."""

from numgrad.operations.special_functions.declare import special
from numgrad.operations.special_functions.several import arrived, several


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


def _at_value(value):
    return lambda op, x: op(1.0, 2.0, 1.0, value(1.0, 2.0, 1.0), x)


@several(count=2, domain=(0.1, 0.9), calls=lambda op, x: op(1.0, 2.0, 1.0, x))
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


@several(count=2, domain=(0.1, 0.9), calls=_at_value(pro_cv))
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


@several(count=2, domain=(1.2, 3.0), calls=lambda op, x: op(1.0, 2.0, 1.0, x))
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


@several(count=2, domain=(1.2, 3.0), calls=_at_value(pro_cv))
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


@several(count=2, domain=(0.1, 0.9), calls=lambda op, x: op(1.0, 2.0, 1.0, x))
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


@several(count=2, domain=(0.1, 0.9), calls=_at_value(obl_cv))
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


@several(count=2, domain=(0.1, 0.9), calls=lambda op, x: op(1.0, 2.0, 1.0, x))
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


@several(count=2, domain=(0.1, 0.9), calls=_at_value(obl_cv))
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
