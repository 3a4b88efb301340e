"""Elementary functions of SciPy's names: entropies, losses, powers, degrees, log-sums."""

import math
from typing import Any

import numpy as np

from numgrad.core.declare import elementwise
from numgrad.errors import NumgradValueError
from numgrad.operations import reduce
from numgrad.operations.shape import as_operand
from numgrad.operations.special_functions.declare import special
from numgrad.operations.special_functions.hypergeometric import hyp1f1, hyp2f1


@special(domain=(0.3, 3.0))
def xlogy(a, b):
    """``a * log(b)``, 0 where ``a`` is unless ``b`` is NaN.

    Examples
    --------
    >>> ng.special.xlogy(ng.tensor([0.0, 2.0]), ng.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """


xlogy.vjp(
    a=lambda g, b: g * np.log(b), b=lambda g, a, b: g * (a / np.where((a == 0) & (b == 0), 1, b))
)


@special(domain=(0.3, 3.0))
def xlog1py(a, b):
    """``a * log(1 + b)``, 0 where ``a`` is unless ``b`` is NaN.

    Examples
    --------
    >>> ng.special.xlog1py(ng.tensor([0.0, 2.0]), ng.tensor([-1.0, 1e-20]))
    tensor([0.e+00, 2.e-20])
    """


xlog1py.vjp(
    a=lambda g, b: g * np.log1p(b),
    b=lambda g, a, b: g * (a / np.where((a == 0) & (b == -1), 1, 1 + b)),
)


@special(domain=(0.3, 3.0))
def powm1(a, b):
    """``a**b - 1``, accurate where that is small.

    Examples
    --------
    >>> ng.special.powm1(ng.tensor([1.0, 2.0]), 1e-20)
    tensor([0.00000000e+00, 6.93147181e-21])
    """


def _power_by_base(a, b):
    """The power's derivative; 0 where the exponent and the base are."""
    none = (a == 0) & (b == 0)
    return np.where(none, 0, b * np.power(a, np.where(none, 1, b) - 1))


powm1.vjp(
    a=lambda g, a, b: g * _power_by_base(a, b),
    b=lambda g, a, y: g * xlogy(y + 1, a),  # flat where the power is 0
)


@special(domain=(0.3, 3.0))
def entr(x):
    """Summand ``-x log(x)`` of the entropy, ``-inf`` for negative operands.

    Examples
    --------
    >>> ng.special.entr(ng.tensor([0.0, 0.5, 1.0]))
    tensor([ 0.        ,  0.34657359, -0.        ])
    """


entr.vjp(x=lambda g, x: g * (-np.log(x) - 1))


def _log_ratio(a, b):
    """``log(a / b)``; where ``a`` is 0, with the derivative by ``b`` that is left there."""
    none = (a == 0) & (b > 0)
    return np.where(none, np.log(a) - np.log(b), np.log(np.where(none, 1, a) / b))


@special(domain=(0.3, 3.0))
def rel_entr(a, b):
    """Summand ``a log(a / b)`` of the relative entropy.

    Examples
    --------
    >>> ng.special.rel_entr(ng.tensor([0.0, 0.5]), 0.25)
    tensor([0.        , 0.34657359])
    """


rel_entr.vjp(
    a=lambda g, a, b: g * (_log_ratio(a, b) + 1),
    b=lambda g, a, b: -g * (a / np.where((a == 0) & (b == 0), 1, b)),
)


@special(domain=(0.3, 3.0))
def kl_div(a, b):
    """Summand ``a log(a / b) - a + b`` of the Kullback-Leibler divergence.

    Examples
    --------
    >>> ng.special.kl_div(ng.tensor([0.0, 0.5]), 0.25)
    tensor([0.25      , 0.09657359])
    """


def _nearest_and_excess(a, b):
    """Whether two numbers are near, and their difference over ``b`` there."""
    near = np.abs(a - b) < 0.5 * b
    return near, np.where(near, a - b, 0) / np.where(near, b, 1)


def _kl_div_a(g, a, b):
    near, excess = _nearest_and_excess(a, b)
    return g * np.where(near, np.log1p(excess), _log_ratio(a, b))


def _kl_div_b(g, a, b):
    near, excess = _nearest_and_excess(a, b)
    return g * np.where(near, -excess, 1 - a / np.where((a == 0) & (b == 0), 1, b))


kl_div.vjp(a=_kl_div_a, b=_kl_div_b)


@special(domain=(0.3, 3.0))
def huber(delta, r):
    """Huber's loss: ``r**2 / 2`` up to ``delta``, from there on linear.

    Examples
    --------
    >>> ng.special.huber(1.0, ng.tensor([0.5, -3.0]))
    tensor([0.125, 2.5  ])
    """


huber.vjp(
    delta=lambda g, delta, r: g * np.where(np.abs(r) <= delta, 0, np.abs(r) - delta),
    r=lambda g, delta, r: g * np.where(np.abs(r) <= delta, r, np.sign(r) * delta),
)


@special(domain=(0.3, 3.0))
def pseudo_huber(delta, r):
    """Smooth form of Huber's loss, ``delta**2 (sqrt(1 + (r / delta)**2) - 1)``.

    Examples
    --------
    >>> ng.special.pseudo_huber(1.0, ng.tensor([0.5, -3.0]))
    tensor([0.11803399, 2.16227766])
    """


def _length(delta, r):
    """The root of the sum of squares, but not 0."""
    length = np.hypot(delta, r)
    return np.where(length == 0, 1, length)


# Both derivatives go to limits for large residuals, where terms of second ones, if quotients were
# differentiated, would cancel: they have formulas of their own, of s = r / delta.


def _root(s):
    return np.sqrt(1 + s * s)


@elementwise(
    internal=True,
    method=False,
    domain=(0.3, 3.0),
    ref=lambda delta, r: r / np.sqrt(1 + (r / delta) ** 2),
    real_only=True,
    smooth=True,
)
def pseudo_huber_r(delta, r):
    """Derivative of ``pseudo_huber`` with respect to the residual."""
    return delta * (r / _length(delta, r))


@elementwise(
    internal=True,
    method=False,
    domain=(0.3, 3.0),
    ref=lambda delta, r: delta * (np.sqrt(1 + (r / delta) ** 2) - 1) ** 2 / np.hypot(1, r / delta),
    real_only=True,
    smooth=True,
)
def pseudo_huber_delta(delta, r):
    """Derivative of ``pseudo_huber`` with respect to where it becomes linear."""
    length = _length(delta, r)
    share = r / (length + delta)
    return (r * share) * (r / length) * share


def _mixed_slope(g, delta, r):
    s = r / delta
    share = s / _root(s)
    return g * (share * share * share)


def _delta_slope(g, delta, r):
    s = r / delta
    root = _root(s)
    above = s * s / (1 + root)
    return g * -((above / root) ** 2 * ((2 * root + 1) / root))


pseudo_huber_r.vjp(
    delta=_mixed_slope, r=lambda g, delta, r: g / _root(r / delta) / np.square(_root(r / delta))
)
pseudo_huber_delta.vjp(delta=_delta_slope, r=_mixed_slope)
pseudo_huber.vjp(
    delta=lambda g, delta, r: g * pseudo_huber_delta(delta, r),
    r=lambda g, delta, r: g * pseudo_huber_r(delta, r),
)


def _power_slope(log, lmbda):
    """Derivative of ``(exp(lmbda * log) - 1) / lmbda`` with respect to ``lmbda``."""
    gone = np.isinf(log) & (lmbda * log < 0)  # the power is 0
    endless = lmbda * log == np.inf  # for which SciPy's function does not return
    log, factor = np.where(gone | endless, 0, log), np.where(endless, 0, lmbda)
    result = np.where(endless, np.inf, 0.5 * log * log * hyp1f1(2, 3, factor * log))
    return np.where(gone, 1 / np.square(np.where(gone, lmbda, 1)), result)


@special(domain=(0.3, 3.0))
def boxcox(x, lmbda):
    """Power transform of Box and Cox, ``(x**lmbda - 1) / lmbda``, or ``log(x)``.

    Examples
    --------
    >>> ng.special.boxcox(ng.tensor([1.0, 2.0]), 0.5)
    tensor([0.        , 0.82842712])
    """


boxcox.vjp(
    x=lambda g, x, lmbda: g * np.power(x, lmbda - 1),
    lmbda=lambda g, x, lmbda: g * _power_slope(np.log(x), lmbda),
)


@special(domain=(0.3, 3.0))
def boxcox1p(x, lmbda):
    """Power transform of ``1 + x``, accurate for small operands.

    Examples
    --------
    >>> ng.special.boxcox1p(ng.tensor([1e-10, 2.0]), 0.5)
    tensor([1.00000000e-10, 1.46410162e+00])
    """


boxcox1p.vjp(
    x=lambda g, x, lmbda: g * np.power(1 + x, lmbda - 1),
    lmbda=lambda g, x, lmbda: g * _power_slope(np.log1p(x), lmbda),
)


def _root_slope(x, lmbda, y):
    """Derivative of ``y = (1 + lmbda * x)**(1 / lmbda)`` with respect to ``lmbda``."""
    end = lmbda * x == -1  # of the domain, where one factor is 0 and the other endless
    inner, other = np.where(end, 0, x), np.where(end, lmbda, 1)
    result = -0.5 * inner * inner * hyp2f1(2, 2, 3, -lmbda * inner)
    return np.where(end, np.power(0, 1 / other - 1) * x / other, y * result)


@special(domain=(0.1, 0.9))
def inv_boxcox(x, lmbda):
    """Inverse of the power transform of Box and Cox, ``(1 + lmbda x)**(1 / lmbda)``.

    Examples
    --------
    >>> ng.special.inv_boxcox(ng.tensor([0.0, 1.0]), 0.5)
    tensor([1.  , 2.25])
    """


inv_boxcox.vjp(
    x=lambda g, lmbda, y: g * np.power(y, 1 - lmbda),
    lmbda=lambda g, x, lmbda, y: g * _root_slope(x, lmbda, y),
)


@special(domain=(0.1, 0.9))
def inv_boxcox1p(x, lmbda):
    """Inverse of ``boxcox1p``.

    Examples
    --------
    >>> ng.special.inv_boxcox1p(ng.tensor([1e-10, 1.0]), 0.5)
    tensor([1.00e-10, 1.25e+00])
    """


inv_boxcox1p.vjp(
    x=lambda g, lmbda, y: g * np.power(1 + y, 1 - lmbda),
    lmbda=lambda g, x, lmbda, y: g * _root_slope(x, lmbda, 1 + y),
)


@special()
def exp10(x):
    """``10**x``.

    Examples
    --------
    >>> ng.special.exp10(ng.tensor([-1.0, 2.0]))
    tensor([  0.1, 100. ])
    """


exp10.vjp(x=lambda g, y: math.log(10) * g * y)


@special()
def cosm1(x):
    """``cos(x) - 1``, accurate for small operands.

    Examples
    --------
    >>> ng.special.cosm1(ng.tensor([1e-10, 1.0]))
    tensor([-5.00000000e-21, -4.59697694e-01])
    """


cosm1.vjp(x=lambda g, x: -g * np.sin(x))


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


def diric(x: Any, n: int) -> Any:
    """Periodic sinc function ``sin(n x / 2) / (n sin(x / 2))`` of Dirichlet.

    Parameters
    ----------
    x
        Operand.
    n
        A positive integer.

    Raises
    ------
    NumgradValueError
        If ``n`` is not a positive integer.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.diric(ng.tensor([0.0, math.pi / 2]), 3)
    tensor([1.        , 0.33333333])
    """
    if int(n) != n or n < 1:
        raise NumgradValueError(f"diric: n must be a positive integer, got {n!r}")
    # a sum of cosines, which has no poles to remove
    x = as_operand(x)
    steps = np.arange(int(n)) - (n - 1) / 2
    return np.sum(np.cos(np.expand_dims(x, -1) * steps), axis=-1) / n


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``log(sum(b * exp(a)))`` over axes, without overflow.

    Parameters
    ----------
    b
        Weights, which may be negative or 0.
    return_sign
        Whether the result is the logarithm of the absolute value and a sign; without it a negative
        sum is NaN.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.logsumexp(ng.tensor([1000.0, 1000.0]), b=ng.tensor([1.0, 2.0]))
    tensor(1001.09861229)
    """
    a = as_operand(a)
    if b is None:
        y = reduce.logsumexp(a, axis=axis, keepdims=keepdims)
        return (y, np.sign(np.exp(np.minimum(y, 0.0)))) if return_sign else y
    b = as_operand(b)
    # where a weight is 0 its summand is, whatever the exponent
    a, b = np.broadcast_arrays(a, b)
    counted = b != 0
    shift = np.where(counted, a, -math.inf)
    shift = np.max(shift, axis=axis, keepdims=True, initial=-math.inf)  # of nothing as well
    shift = np.where(np.isfinite(shift), shift, 0.0)
    total = np.sum(
        np.where(counted, b, 0.0) * np.exp(np.where(counted, a - shift, 0.0)),
        axis=axis,
        keepdims=keepdims,
    )
    shift = shift if keepdims else np.sum(shift, axis=axis)
    with np.errstate(divide="ignore"):  # of plain arrays whose sum is 0
        if not return_sign:
            return np.log(total) + shift
        return np.log(np.abs(total)) + shift, np.sign(total)


def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum over axes; without an axis, over all of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.softmax(ng.tensor([[0.0, 0.0], [0.0, 0.0]]))
    tensor([[0.25, 0.25],
            [0.25, 0.25]])
    """
    return reduce.softmax(x, axis=_all(x) if axis is None else axis)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of ``softmax``; without an axis, over all of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.log_softmax(ng.tensor([0.0, 0.0]))
    tensor([-0.69314718, -0.69314718])
    """
    return reduce.log_softmax(x, axis=_all(x) if axis is None else axis)


def _all(x: Any) -> tuple[int, ...]:
    return tuple(range(len(as_operand(x).shape)))
