"""Error, gamma and logistic functions."""

import math

import numpy as np

from numgrad.op import composite, elementwise


@elementwise(ref="scipy.special.expit", scalar="sigmoid", aliases=("expit",))
def sigmoid(x):
    """Logistic function, ``1 / (1 + exp(-x))``."""
    return 1 / (1 + np.exp(-x))


sigmoid.vjp(x=lambda g, y: g * np.conj(y * (1 - y)))


@elementwise(ref=lambda x: np.logaddexp(x, 0.0), scalar="softplus")
def softplus(x):
    """``log(1 + exp(x))`` without overflow."""
    return np.log1p(np.exp(x))


softplus.vjp(x=lambda g, x: g * np.conj(sigmoid(x)))


@elementwise(ref="scipy.special.logit", scalar="logit", domain=(0.1, 0.9))
def logit(x):
    """Inverse of the logistic function, ``log(x / (1 - x))``."""
    return np.log(x) - np.log1p(-x)


logit.vjp(x=lambda g, x: g / np.conj(x) / np.conj(1 - x))


@elementwise(scalar="exp_product", method=False, internal=True)
def exp_product(a, b):
    """``exp(a * b)`` of real operands, their product not rounded."""
    return _real_only("exp_product", a)


exp_product.vjp(a=lambda g, b, y: g * (y * b), b=lambda g, a, y: g * (y * a))


@elementwise(ref="scipy.special.erf", scalar="erf")
def erf(x):
    """Error function of real operands."""
    return _real_only("erf", x)


erf.vjp(x=lambda g, x: g * (2 / math.sqrt(math.pi) * exp_product(-x, x)))


@elementwise(ref="scipy.special.erfc", scalar="erfc")
def erfc(x):
    """``1 - erf(x)``, accurate in the tail."""
    return _real_only("erfc", x)


erfc.vjp(x=lambda g, x: g * (-2 / math.sqrt(math.pi) * exp_product(-x, x)))


@elementwise(ref="scipy.special.erfinv", scalar="erfinv", domain=(-0.9, 0.9))
def erfinv(x):
    """Inverse of the error function."""
    return _real_only("erfinv", x)


erfinv.vjp(x=lambda g, y: g * (math.sqrt(math.pi) / 2 * exp_product(y, y)))


@elementwise(ref="scipy.special.gamma", scalar="gamma", domain=(0.5, 4.0))
def gamma(x):
    """Gamma function."""
    return _real_only("gamma", x)


gamma.vjp(x=lambda g, x, y: g * y * digamma(x))


@elementwise(ref="scipy.special.gammaln", scalar="gammaln", domain=(0.5, 4.0), aliases=("lgamma",))
def gammaln(x):
    """Logarithm of the absolute value of the gamma function."""
    return _real_only("gammaln", x)


gammaln.vjp(x=lambda g, x: g * digamma(x))


@elementwise(ref="scipy.special.digamma", scalar="digamma", domain=(0.5, 4.0), aliases=("psi",))
def digamma(x):
    """Derivative of ``gammaln``."""
    return _real_only("digamma", x)


digamma.vjp(x=lambda g, x: g * zeta(2, x))


@elementwise(ref="scipy.special.zeta", scalar="zeta", domain=(1.5, 4.0))
def zeta(s, x):
    """Hurwitz zeta function, the sum of ``(k + x)**-s``; differentiable in ``x``."""
    return _real_only("zeta", s)


zeta.vjp(x=lambda g, s, x: g * (-s * zeta(s + 1, x)))


@composite(ref="scipy.special.polygamma", method=False)
def polygamma(n, x):
    """Derivative of order ``n`` (an integer not below 0) of ``digamma``."""
    if n == 0:
        return digamma(x)
    return zeta(float(n + 1), x) * ((-1.0) ** (n + 1) * math.gamma(n + 1))


def _real_only(name, x):
    from numgrad.errors import NumgradTypeError

    raise NumgradTypeError(f"{name}: defined for real operands only")
