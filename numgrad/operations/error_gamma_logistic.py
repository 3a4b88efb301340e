"""Error, gamma and logistic functions, and the declaration of functions of real operands."""

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.declare import Elementwise, bind, composite, elementwise, primitive
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import by_library, floating, kept


def sech_square(x):
    """``1 / cosh(x)**2``: ``1 - tanh(x)**2`` where that cancels."""
    return 4 * logistic(2 * x) * logistic(-2 * x)


@primitive(internal=True, method=False, differentiable=False)
def refused(g, *, message):
    """A gradient that does not exist, which raises when it is computed."""
    raise NumgradNotImplementedError(message)


refused.shape(lambda g, message: g)


@refused.batch
def _of_batches(op, operands, params, size):
    return bind(op, (operands[0].repeated(size),), params)


@elementwise(ref="scipy.special.expit", scalar="sigmoid", aliases=("expit",))
def sigmoid(x):
    """Logistic function, ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> x = ng.tensor([-1000.0, 0.0, 1.0], requires_grad=True)
    >>> y = ng.sigmoid(x)
    >>> y.detach()
    tensor([0.        , 0.5       , 0.73105858])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0.        , 0.25      , 0.19661193])
    """
    return 1 / (1 + np.exp(-x))


sigmoid.vjp(x=lambda g, y: g * np.conj(y * (1 - y)))
sigmoid.complex_vjp(x=lambda g, x, y: g * np.conj(y * logistic(-x)))
sigmoid.kink(x=([800.0, -800.0, np.inf, -np.inf], [0, 0, 0, 0]))
sigmoid.complex_ref = lambda x: 1 / (1 + np.exp(-x))


@elementwise(
    ref=lambda x: 1 / (1 + np.exp(-1.0 * x)), scalar="sigmoid", method=False, internal=True
)
def logistic(x):
    """``sigmoid`` in gradient formulas: saves its operand, as ``1 - y`` cancels on the right."""
    return 1 / (1 + np.exp(-x))


logistic.vjp(x=lambda g, x, y: g * np.conj(y * logistic(-x)))
logistic.kink(x=([800.0, -800.0, np.inf, -np.inf], [0, 0, 0, 0]))
logistic.complex_ref = lambda x: 1 / (1 + np.exp(-x))


@elementwise(ref=lambda x: np.logaddexp(x, 0.0), scalar="softplus")
def softplus(x):
    """``log(1 + exp(x))`` without overflow.

    Examples
    --------
    >>> ng.softplus(ng.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return np.log1p(np.exp(x))


softplus.vjp(x=lambda g, x: g * np.conj(logistic(x)))
softplus.kink(x=([800.0, -800.0, np.inf, -np.inf], [1, 0, 1, 0]))
softplus.complex_ref = lambda x: np.log1p(np.exp(x))


@elementwise(ref="scipy.special.logit", scalar="logit", domain=(0.1, 0.9))
def logit(x):
    """Inverse of the logistic function, ``log(x / (1 - x))``.

    Examples
    --------
    >>> ng.logit(ng.tensor([0.25, 0.5, 1.0]))
    tensor([-1.09861229,  0.        ,         inf])
    """
    return np.log(x) - np.log1p(-x)


logit.vjp(x=lambda g, x: g / np.conj(x) / np.conj(1 - x))
logit.kink(x=([0.0, 1.0], [np.inf, np.inf]))
logit.complex_ref = lambda x: np.log(x) - np.log1p(-x)


@elementwise(
    ref=lambda a, b: np.exp(a * b),
    scalar="exp_product",
    method=False,
    internal=True,
    holomorphic=True,
    smooth=True,
)
def exp_product(a, b):
    """``exp(a * b)``, of real operands with their product not rounded."""
    return np.exp(a * b)


exp_product.vjp(a=lambda g, b, y: g * (y * b), b=lambda g, a, y: g * (y * a))


@elementwise(ref="scipy.special.erf", scalar="erf", **by_library("erf", np.sqrt))
def erf(x):
    """Error function.

    Examples
    --------
    >>> ng.erf(ng.tensor([0.0, 1.0, np.inf]))
    tensor([0.        , 0.84270079, 1.        ])
    """


erf.vjp(x=lambda g, x: g * (2 / math.sqrt(math.pi) * exp_product(-x, x)))
erf.kink(x=([np.inf, -np.inf, 1e200], [0, 0, 0]))


@elementwise(ref="scipy.special.erfc", scalar="erfc", **by_library("erfc", np.sqrt))
def erfc(x):
    """``1 - erf(x)``, accurate in the tail.

    Examples
    --------
    >>> ng.erfc(ng.tensor([0.0, 1.0, 10.0]))
    tensor([1.00000000e+00, 1.57299207e-01, 2.08848758e-45])
    """


erfc.vjp(x=lambda g, x: g * (-2 / math.sqrt(math.pi) * exp_product(-x, x)))
erfc.kink(x=([np.inf, -np.inf, 1e200], [0, 0, 0]))


@elementwise(
    ref="scipy.special.erfinv",
    scalar="erfinv",
    domain=(-0.9, 0.9),
    real_only=True,
    signed_zeros=False,
)
def erfinv(x):
    """Inverse of the error function.

    Examples
    --------
    >>> ng.erfinv(ng.tensor([0.0, 0.5, 1.0]))
    tensor([0.        , 0.47693628,        inf])
    """
    return _real_only("erfinv", x)


erfinv.vjp(x=lambda g, y: g * (math.sqrt(math.pi) / 2 * exp_product(y, y)))
erfinv.kink(x=([1.0, -1.0], [np.inf, np.inf]))


@elementwise(
    ref="scipy.special.gamma", scalar="gamma", domain=(0.5, 4.0), **by_library("gamma", np.sqrt)
)
def gamma(x):
    """Gamma function.

    Examples
    --------
    >>> ng.gamma(ng.tensor([1.0, 5.0, 0.5]))
    tensor([ 1.        , 24.        ,  1.77245385])
    """


gamma.vjp(x=lambda g, x, y: g * y * digamma(x))
gamma.kink(x=([-1.0, -2.0], [np.nan, np.nan]))


@elementwise(
    ref="scipy.special.gammaln",
    scalar="gammaln",
    domain=(0.5, 4.0),
    aliases=("lgamma",),
    real_only=True,
)
def gammaln(x):
    """Logarithm of the absolute value of the gamma function.

    Examples
    --------
    >>> ng.gammaln(ng.tensor([1.0, 5.0, 1000.0]))
    tensor([0.00000000e+00, 3.17805383e+00, 5.90522042e+03])
    """
    return _real_only("gammaln", x)


gammaln.vjp(x=lambda g, x: g * digamma(x))
gammaln.kink(x=([0.0, -1.0, -2.0], [-np.inf, np.nan, np.nan]))


@elementwise(
    ref="scipy.special.digamma",
    scalar="digamma",
    domain=(0.5, 4.0),
    aliases=("psi",),
    **by_library("digamma", np.sqrt),
)
def digamma(x):
    """Derivative of ``gammaln``.

    Examples
    --------
    >>> ng.digamma(ng.tensor([1.0, 2.0]))
    tensor([-0.57721566,  0.42278434])
    """


digamma.vjp(x=lambda g, x: g * zeta(2, x))
digamma.kink(x=([0.0], [np.inf]))
digamma.kink(x=([-1.0, -2.0], [np.inf, np.inf]))


@elementwise(
    ref="scipy.special.zeta", scalar="zeta", domain=(1.5, 4.0), **by_library("zeta", np.true_divide)
)
def zeta(s, x):
    """Hurwitz zeta function, the sum of ``(k + x)**-s``.

    Parameters
    ----------
    s
        Exponent, above 1. There are two derivatives with respect to it, beside a real ``x``.
    x
        Where the sum begins.

    Examples
    --------
    >>> ng.zeta(2.0, ng.tensor([1.0, 2.0]))
    tensor([1.64493407, 0.64493407])
    """


@elementwise(
    scalar="zeta_s",
    smooth=True,
    internal=True,
    method=False,
    domain=(1.5, 4.0),
    **by_library("zeta_s"),
)
def zeta_s(s, x):
    """Derivative of ``zeta`` with respect to ``s``."""


@elementwise(
    scalar="zeta_ss",
    smooth=True,
    internal=True,
    method=False,
    domain=(1.5, 4.0),
    **by_library("zeta_ss"),
)
def zeta_ss(s, x):
    """Second derivative of ``zeta`` with respect to ``s``."""


zeta.vjp(s=lambda g, s, x: g * zeta_s(s, x), x=lambda g, s, x: g * (-s * zeta(s + 1, x)))
zeta_s.vjp(
    s=lambda g, s, x: g * zeta_ss(s, x),
    x=lambda g, s, x: -g * (zeta(s + 1, x) + s * zeta_s(s + 1, x)),
)
zeta_ss.vjp(x=lambda g, s, x: -g * (2 * zeta_s(s + 1, x) + s * zeta_ss(s + 1, x)))
zeta.kink(s=(2.0, None), x=([0.0], [-np.inf]))


@composite(ref="scipy.special.polygamma", method=False)
def polygamma(n, x):
    """Derivative of order ``n`` (an integer not below 0) of ``digamma``.

    Parameters
    ----------
    n : int or array of integers
        Order of the derivative; of what is none the result is NaN.

    Returns
    -------
    Tensor
        Of the shape to which ``n`` and ``x`` broadcast; integers become floating.

    Examples
    --------
    >>> ng.polygamma(1, ng.tensor([1.0, 2.0]))
    tensor([1.64493407, 0.64493407])
    """
    if isinstance(n, int | float | np.number) and n >= 0 and n == int(n):
        if n == 0:
            return digamma(x)
        return zeta(float(n + 1), x) * ((-1.0) ** (n + 1) * math.gamma(n + 1))
    n, x = as_operand(n), as_operand(x)
    none, order = n == 0, np.where(n == 0, 1, n)
    odd = order - 2 * np.floor(0.5 * order)
    sign = np.where(odd == 1, 1.0, np.where((odd == 0) & (n > 0), -1.0, math.nan))
    factor = sign * gamma(order + 1.0)
    if not len(n.shape) and x.dtype.kind == "f":  # a number, by which the dtype does not change
        order, factor = order.astype(x.dtype), factor.astype(x.dtype)
    return np.where(none, digamma(x), zeta(order + 1.0, x) * factor)


polygamma.kink(n=(1, None), x=([0.0], [-np.inf]))


def _real_only(name, x):
    other = "; loggamma takes complex ones" if name == "gammaln" else ""
    raise NumgradTypeError(f"{name}: defined for real operands only{other}")


def real_elementwise(
    types: Callable[..., Any] = floating, **options: Any
) -> Callable[[Callable[..., Any]], Elementwise]:
    """Declare an elementwise operation of real operands; ``types`` takes its name besides them."""

    def declare(function: Callable[..., Any]) -> Elementwise:
        name = function.__name__
        return Elementwise(function, types=partial(types, name), real_only=True, **options)

    return declare


def scipy_special(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``, imported when a reference is computed."""
    return getattr(importlib.import_module("scipy.special"), name)


@real_elementwise(types=kept, special=(0.0,), ref=lambda x: np.maximum(x, 0))
def relu(x):
    """The operand where it is positive, else 0; NaN stays NaN.

    Examples
    --------
    >>> x = ng.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> y = ng.relu(x)
    >>> y.detach()
    tensor([0., 0., 2.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """
    return np.where(x <= 0, 0, x)


relu.vjp(x=lambda g, y: np.where(y <= 0, 0, g))
relu.kink(x=([0.0, -0.0, np.inf, -np.inf, np.nan], [0, 0, 1, 0, 1]))


@elementwise(ref="scipy.special.ndtr", scalar="ndtr", method=False, internal=True, smooth=True,
             **by_library("ndtr"))  # fmt: skip
def ndtr(x):
    """Probability that a standard normal number is smaller."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


def normal_density(x):
    """Density of the standard normal distribution, as a part of formulas."""
    return math.sqrt(0.5 / math.pi) * exp_product(x * -0.5, x)


ndtr.vjp(x=lambda g, x: g * normal_density(x))


@real_elementwise(ref="scipy.special.log_expit", method=False)
def log_sigmoid(x):
    """Logarithm of ``sigmoid``, accurate where that underflows.

    Examples
    --------
    >>> ng.log_sigmoid(ng.tensor([-1000.0, 0.0]))
    tensor([-1.00000000e+03, -6.93147181e-01])
    """
    return -softplus(-x)


log_sigmoid.vjp(x=lambda g, x: g * logistic(-x))
log_sigmoid.kink(x=([800.0, -800.0, np.inf, -np.inf], [0, 1, 0, 1]))
