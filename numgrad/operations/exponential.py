"""Exponentials, logarithms, roots and hyperbolic functions."""

import math

import numpy as np

from numgrad.core.declare import elementwise
from numgrad.operations.error_gamma_logistic import logistic, sech_square


@elementwise(ref=np.exp, special=(0.0, 710.0, -746.0))
def exp(x):
    """Exponential of each element.

    Examples
    --------
    >>> x = ng.tensor([0.0, 1.0], requires_grad=True)
    >>> y = ng.exp(x)
    >>> y.detach()
    tensor([1.        , 2.71828183])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.        , 2.71828183])
    """
    return np.exp(x)


exp.vjp(x=lambda g, y: g * np.conj(y))
exp.kink(x=([-np.inf, 800.0, -800.0], [0, np.inf, 0]))


@elementwise(ref=np.exp2)
def exp2(x):
    """Two to the power of each element.

    Examples
    --------
    >>> ng.exp2(ng.tensor([-1.0, 0.0, 3.0]))
    tensor([0.5, 1. , 8. ])
    """
    return np.exp2(x)


exp2.vjp(x=lambda g, y: g * np.conj(y * math.log(2)))
exp2.kink(x=([-np.inf, 1100.0, -1100.0], [0, np.inf, 0]))


@elementwise(ref=np.expm1, special=(0.0,))
def expm1(x):
    """``exp(x) - 1``, accurate near zero.

    Examples
    --------
    >>> ng.expm1(ng.tensor([0.0, 1e-20, 1.0]))
    tensor([0.00000000e+00, 1.00000000e-20, 1.71828183e+00])
    """
    return np.expm1(x)


expm1.vjp(x=lambda g, x: g * np.conj(np.exp(x)))  # y + 1 has lost the small ones
expm1.kink(x=([-np.inf, 800.0, -800.0], [0, np.inf, 0]))


@elementwise(ref=np.log, domain=(0.2, 5.0), special=(0.0,))
def log(x):
    """Natural logarithm.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> y = ng.log(x)
    >>> y.detach()
    tensor([0.        , 0.69314718])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1. , 0.5])
    """
    return np.log(x)


log.vjp(x=lambda g, x: g / np.conj(x))
log.kink(x=([0.0, np.inf], [np.inf, 0]))


@elementwise(ref=np.log2, domain=(0.2, 5.0))
def log2(x):
    """Logarithm to base 2.

    Examples
    --------
    >>> ng.log2(ng.tensor([0.25, 1.0, 8.0]))
    tensor([-2.,  0.,  3.])
    """
    return np.log2(x)


log2.vjp(x=lambda g, x: g / np.conj(x * math.log(2)))
log2.kink(x=([0.0, np.inf], [np.inf, 0]))


@elementwise(ref=np.log10, domain=(0.2, 5.0))
def log10(x):
    """Logarithm to base 10.

    Examples
    --------
    >>> ng.log10(ng.tensor([0.01, 1.0, 1000.0]))
    tensor([-2.,  0.,  3.])
    """
    return np.log10(x)


log10.vjp(x=lambda g, x: g / np.conj(x * math.log(10)))
log10.kink(x=([0.0, np.inf], [np.inf, 0]))


@elementwise(ref=np.log1p, domain=(-0.7, 3.0), special=(0.0,))
def log1p(x):
    """``log(1 + x)``, accurate near zero.

    Examples
    --------
    >>> ng.log1p(ng.tensor([0.0, 1e-20, 1.0]))
    tensor([0.00000000e+00, 1.00000000e-20, 6.93147181e-01])
    """
    return np.log1p(x)


log1p.vjp(x=lambda g, x: g / np.conj(1 + x))
log1p.kink(x=([-1.0, np.inf], [np.inf, 0]))


@elementwise(ref=np.sqrt, domain=(0.2, 5.0), special=(0.0,))
def sqrt(x):
    """Square root.

    Examples
    --------
    >>> x = ng.tensor([4.0, 0.0], requires_grad=True)
    >>> y = ng.sqrt(x)
    >>> y.detach()
    tensor([2., 0.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0.25,  inf])
    """
    return np.sqrt(x)


sqrt.vjp(x=lambda g, y: g / (2 * np.conj(y)))
sqrt.kink(x=([0.0, -1.0], [np.inf, np.nan]))


@elementwise(ref=np.cbrt, domain=(0.2, 5.0), real_only=True)
def cbrt(x):
    """Real cube root.

    Examples
    --------
    >>> ng.cbrt(ng.tensor([-8.0, 0.0, 27.0]))
    tensor([-2.,  0.,  3.])
    """
    return np.cbrt(x)


cbrt.vjp(x=lambda g, y: g / (3 * y * y))
cbrt.kink(x=([0.0, -0.0, -8.0], [np.inf, np.inf, 1 / 12]))


@elementwise(ref=np.hypot, domain=(0.3, 3.0), real_only=True)
def hypot(a, b):
    """Length of the hypotenuse, ``sqrt(a*a + b*b)`` without overflow.

    Examples
    --------
    >>> ng.hypot(ng.tensor([3.0, 5e200]), ng.tensor([4.0, 12e200]))
    tensor([5.0e+000, 1.3e+201])
    """
    return np.hypot(a, b)


hypot.vjp(a=lambda g, a, y: g * (a / y), b=lambda g, b, y: g * (b / y))
hypot.kink(a=([0.0, 0.0], [np.nan, 0]), b=([0.0, 2.0], [np.nan, 1]))


@elementwise(ref=np.logaddexp, real_only=True, signed_zeros=False)
def logaddexp(a, b):
    """``log(exp(a) + exp(b))`` without overflow.

    Examples
    --------
    >>> ng.logaddexp(ng.tensor([0.0, 1000.0]), ng.tensor([0.0, 1000.0]))
    tensor([6.93147181e-01, 1.00069315e+03])
    """
    return np.logaddexp(a, b)


logaddexp.vjp(a=lambda g, a, b: g * logistic(a - b), b=lambda g, a, b: g * logistic(b - a))
logaddexp.kink(
    a=([-np.inf, np.inf, 0.0, -800.0, np.inf], [np.nan, 1, 1, 0, np.nan]),
    b=([-np.inf, 0.0, -np.inf, 800.0, np.inf], [np.nan, 0, 0, 1, np.nan]),
)


@elementwise(ref=np.logaddexp2, real_only=True, signed_zeros=False)
def logaddexp2(a, b):
    """``log2(2**a + 2**b)`` without overflow.

    Examples
    --------
    >>> ng.logaddexp2(ng.tensor([0.0, 2000.0]), ng.tensor([0.0, 2000.0]))
    tensor([1.000e+00, 2.001e+03])
    """
    return np.logaddexp2(a, b)


logaddexp2.vjp(
    a=lambda g, a, b: g * logistic((a - b) * math.log(2)),
    b=lambda g, a, b: g * logistic((b - a) * math.log(2)),
)
logaddexp2.kink(
    a=([-np.inf, np.inf, 0.0, -2000.0], [np.nan, 1, 1, 0]),
    b=([-np.inf, 0.0, -np.inf, 2000.0], [np.nan, 0, 0, 1]),
)


@elementwise(ref=np.sinh, special=(0.0,), smooth=True)
def sinh(x):
    """Hyperbolic sine.

    Examples
    --------
    >>> ng.sinh(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.17520119,  0.        ,  1.17520119])
    """
    return np.sinh(x)


sinh.vjp(x=lambda g, x: g * np.conj(np.cosh(x)))


@elementwise(ref=np.cosh, smooth=True)
def cosh(x):
    """Hyperbolic cosine.

    Examples
    --------
    >>> ng.cosh(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([1.54308063, 1.        , 1.54308063])
    """
    return np.cosh(x)


cosh.vjp(x=lambda g, x: g * np.conj(np.sinh(x)))


@elementwise(ref=np.tanh, special=(0.0, 300.0))
def tanh(x):
    """Hyperbolic tangent.

    Examples
    --------
    >>> x = ng.tensor([0.0, 1.0], requires_grad=True)
    >>> y = ng.tanh(x)
    >>> y.detach()
    tensor([0.        , 0.76159416])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.        , 0.41997434])
    """
    return np.tanh(x)


tanh.vjp(x=lambda g, y: g * np.conj(1 - y * y))
tanh.complex_vjp(x=lambda g, x: g * np.conj(sech_square(x)))
tanh.kink(x=([800.0, -800.0, np.inf, -np.inf], [0, 0, 0, 0]))


@elementwise(ref=np.arcsinh, aliases=("asinh",))
def arcsinh(x):
    """Inverse hyperbolic sine.

    Examples
    --------
    >>> ng.arcsinh(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.88137359,  0.        ,  0.88137359])
    """
    return np.arcsinh(x)


def _arcsinh_vjp(g, x):
    far = np.abs(x) > 1e9  # 1 does not count there, and a square may overflow
    near = np.where(far, 0, x)
    return g / np.where(far, np.abs(x), np.sqrt(near * near + 1))


def _complex_arcsinh_vjp(g, x):
    far = np.abs(x) > 1e9
    near = np.where(far, 1, x)
    turned = 1j * near
    root = np.sqrt(1 + turned) * np.sqrt(1 - turned)  # a sum with the square cancels near i
    re, im = np.real(near), np.imag(near)
    side = np.copysign(1.0, re) * np.sign(im)  # of the branch cut: products lose signs of zeros
    other = (re == 0) & (np.abs(im) > 1) & (side * np.imag(root) < 0)
    root = root * np.where(other, -1.0, 1.0)
    return g / np.conj(np.where(far, np.where(np.real(x) < 0, -x, x), root))


arcsinh.vjp(x=_arcsinh_vjp)
arcsinh.complex_vjp(x=_complex_arcsinh_vjp)
arcsinh.kink(x=([np.inf, -np.inf], [0, 0]))


@elementwise(ref=np.arccosh, aliases=("acosh",), domain=(1.3, 4.0))
def arccosh(x):
    """Inverse hyperbolic cosine.

    Examples
    --------
    >>> ng.arccosh(ng.tensor([1.0, 2.0]))
    tensor([0.       , 1.3169579])
    """
    return np.arccosh(x)


arccosh.vjp(x=lambda g, x: g / np.conj(np.sqrt(x - 1) * np.sqrt(x + 1)))
# -(-x - 1) is x + 1 with the sign of a zero imaginary part, the side of a branch cut
arccosh.complex_vjp(x=lambda g, x: g / np.conj(np.sqrt(x - 1) * np.sqrt(-(-x - 1))))
arccosh.kink(x=([1.0], [np.inf]))
arccosh.kink(x=([0.5, -2.0], [np.nan, np.nan]))


@elementwise(ref=np.arctanh, aliases=("atanh",), domain=(-0.8, 0.8))
def arctanh(x):
    """Inverse hyperbolic tangent.

    Examples
    --------
    >>> ng.arctanh(ng.tensor([0.0, 0.5, 1.0]))
    tensor([0.        , 0.54930614,        inf])
    """
    return np.arctanh(x)


arctanh.vjp(x=lambda g, x: g / np.conj(1 - x) / np.conj(1 + x))
arctanh.kink(x=([1.0, -1.0], [np.inf, np.inf]))
