"""Gamma, beta and zeta functions: ratios, incomplete functions, their inverses, factorials.

Note [Derivatives of Riemann's zeta function]
---------------------------------------------
Right of 3 they are sums of powers, and Euler and Maclaurin's rest of these, both differentiated.
Elsewhere the product with ``s - 1`` has no pole: its Taylor coefficients are Cauchy's integrals
over a circle of radius 1, by the trapezoidal rule of 32 points; a division gives those of the
function. Either way they are right to about twelve digits.
"""

import importlib
import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.kernels.zeta import EULER_MACLAURIN
from numgrad.operations.error_gamma_logistic import digamma, gamma, gammaln, zeta as hurwitz_zeta
from numgrad.operations.shape import as_array, as_operand
from numgrad.operations.special_functions.declare import derivative, either, moved, several, special
from numgrad.operations.special_functions.scipy_elementary import xlog1py, xlogy


@special(domain=(0.5, 4.0))
def loggamma(x):
    """Logarithm of the gamma function, NaN for negative operands.

    Examples
    --------
    >>> ng.special.loggamma(ng.tensor([0.5, 3.0]))
    tensor([0.57236494, 0.69314718])
    """


loggamma.vjp(x=lambda g, x: g * digamma(x))


@special(domain=(-2.5, 4.0))
def rgamma(x):
    """Reciprocal of the gamma function, 0 at its poles.

    Examples
    --------
    >>> ng.special.rgamma(ng.tensor([-1.0, 0.5, 3.0]))
    tensor([0.        , 0.56418958, 0.5       ])
    """


def rgamma_slope(x, y):
    """Derivative of the reciprocal ``y``, by reflection where digamma has poles."""
    left, far = x < 0.5, y == 0
    mirrored = 1 - np.where(left, x, 0)
    near_poles = gamma(mirrored) * np.cos(math.pi * mirrored) + y * digamma(mirrored)
    return -np.where(left, near_poles, y * digamma(np.where(left | far, 1, x)))


def _at_pole(x):
    """Where the gamma function has a pole."""
    return (x <= 0) & (x == np.floor(x))


rgamma.vjp(x=lambda g, x, y: g * rgamma_slope(x, y))


@special(differentiable=False, domain=(-2.5, 4.0))
def gammasgn(x):
    """Sign of the gamma function.

    Examples
    --------
    >>> ng.special.gammasgn(ng.tensor([-0.5, 2.0]))
    tensor([-1.,  1.])
    """


@special(domain=(0.5, 4.0))
def poch(z, m):
    """Rising factorial ``gamma(z + m) / gamma(z)``.

    Parameters
    ----------
    m
        Number of factors.

    Examples
    --------
    >>> ng.special.poch(ng.tensor([1.0, 2.0]), 3)
    tensor([ 6., 24.])
    """


def _digammas(a, b):
    """``digamma(a) - digamma(b)``, which is finite where both have poles; of ends at one alone."""
    both = _at_pole(a) & _at_pole(b)
    mirrored = digamma(1 - np.where(both, a, 0)) - digamma(1 - np.where(both, b, 0))
    return np.where(both, mirrored, digamma(np.where(both, 1, a)) - digamma(np.where(both, 1, b)))


def _poch_slope(z, m, y):
    """Derivative in ``z``, also where the value is 0 since ``z`` has a pole."""
    end = z + m
    crossed = _at_pole(z) & ~_at_pole(end)
    plain = y * _digammas(np.where(crossed, 1, end), np.where(crossed, 1, z))
    first, last = np.where(crossed, z, 1), np.where(crossed, end, 1)
    inverse = rgamma(first)
    product = gamma(last) * (digamma(last) * inverse + rgamma_slope(first, inverse))
    return np.where(crossed, product, plain)


poch.vjp(
    z=lambda g, z, m, y: g * _poch_slope(z, m, y),
    m=lambda g, z, m, y: g * y * digamma(np.where((y == 0) & _at_pole(z + m), 1, z + m)),
)


@special(domain=(0.5, 4.0))
def beta(a, b):
    """Beta function, ``gamma(a) gamma(b) / gamma(a + b)``.

    Examples
    --------
    >>> ng.special.beta(ng.tensor([1.0, 2.0]), 3.0)
    tensor([0.33333333, 0.08333333])
    """


def _beta_slope(a, b, y):
    """Derivative in ``a``, also where the value is 0 since the sum has a pole."""
    total = a + b
    crossed = _at_pole(total) & ~_at_pole(a) & ~_at_pole(b)
    flat = crossed | (y == 0)  # underflown
    plain = y * _digammas(np.where(flat, 1, a), np.where(flat, 1, total))
    first, other, last = (np.where(crossed, x, 1) for x in (a, b, total))
    inverse = rgamma(last)
    slope = digamma(first) * inverse + rgamma_slope(last, inverse)
    return np.where(crossed, gamma(first) * gamma(other) * slope, plain)


beta.vjp(
    a=lambda g, a, b, y: g * _beta_slope(a, b, y), b=lambda g, a, b, y: g * _beta_slope(b, a, y)
)


@special(domain=(0.5, 4.0))
def betaln(a, b):
    """Logarithm of the absolute value of the beta function.

    Examples
    --------
    >>> ng.special.betaln(ng.tensor([1.0, 200.0]), 300.0)
    tensor([  -5.70378247, -337.98011307])
    """


betaln.vjp(a=lambda g, a, b: g * _digammas(a, a + b), b=lambda g, a, b: g * _digammas(b, a + b))


@special(domain=(0.5, 4.0))
def binom(x, k):
    """Binomial coefficient ``x`` over ``k`` of real numbers.

    Parameters
    ----------
    k
        How many are chosen.

    Examples
    --------
    >>> ng.special.binom(ng.tensor([4.0, 5.5]), 2)
    tensor([ 6.   , 12.375])
    """


def _binom_parts(x, k):
    """Where a reciprocal in ``gamma(x + 1) rgamma(k + 1) rgamma(x - k + 1)`` is 0, and these.

    There its derivative is not 0; elsewhere the numbers are others, since they could overflow.
    """
    pole = _at_pole(k + 1) | _at_pole(x - k + 1)
    order, others = np.where(pole, k + 1, 1), np.where(pole, x - k + 1, 1)
    return (pole, gamma(np.where(pole, x + 1, 1)), order, rgamma(order), others, rgamma(others))


def _binom_by_x(g, x, k, y):
    pole, whole, _, first, others, second = _binom_parts(x, k)
    rest = np.where(pole, 1, x - k + 1)
    plain = y * (digamma(np.where(pole, 1, x + 1)) - digamma(rest))
    slope = digamma(np.where(pole, x + 1, 1)) * second + rgamma_slope(others, second)
    return g * np.where(pole, whole * first * slope, plain)


def _binom_by_k(g, x, k, y):
    pole, whole, order, first, others, second = _binom_parts(x, k)
    plain = y * (digamma(np.where(pole, 1, x - k + 1)) - digamma(np.where(pole, 1, k + 1)))
    slopes = rgamma_slope(order, first) * second - first * rgamma_slope(others, second)
    return g * np.where(pole, whole * slopes, plain)


binom.vjp(x=_binom_by_x, k=_binom_by_k)

# ------------------------------------------------------------------------------------ incomplete


_LARGE = 12.0


def gamma_density(a, x):
    """``x**(a - 1) exp(-x) / gamma(a)``, the derivative of gammainc.

    Logarithms of large shapes cancel: there it is Stirling's formula, around ``x = a``.
    """
    endless = np.isinf(x) | np.isinf(a)
    a, x = np.where(endless, 1, a), np.where(endless, 0, x)
    end = x == 0  # where the logarithm of a power has no derivative
    small = np.where(
        end,
        np.power(np.where(end, x, 1), a - 1) * np.exp(-x - gammaln(a)),
        np.exp(xlogy(a - 1, np.where(end, 1, x)) - x - gammaln(a)),
    )
    large, inside = a > _LARGE, x > 0
    shape, point = np.where(large, a, 20), np.where(large & inside, x, 20)
    inverse = 1 / shape
    square = inverse * inverse
    rest = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360)))
    correction = inverse * (1 / 12 - square * (1 / 360 - square * rest))
    away = (point - shape) * inverse
    height = np.sqrt(shape / (2 * math.pi)) / point
    around = np.where(inside, height * np.exp(shape * (np.log1p(away) - away) - correction), 0)
    return np.where(endless, 0, np.where(large, around, small))


@derivative(scalar="gammainc_a", domain=(0.5, 4.0))
def gammainc_a(a, x):
    """Derivative of ``gammainc`` with respect to ``a``."""


@derivative(scalar="gammainc_aa", domain=(0.5, 4.0))
def gammainc_aa(a, x):
    """Second derivative of ``gammainc`` with respect to ``a``."""


def _weighed_density(a, x, factor):
    """The density times a function of its logarithmic derivative in ``a``; 0 where it vanishes."""
    density = gamma_density(a, x)
    return density * factor(np.log(np.where(density == 0, 1, x)) - digamma(a))


gammainc_a.vjp(
    a=lambda g, a, x: g * gammainc_aa(a, x),
    x=lambda g, a, x: g * _weighed_density(a, x, lambda slope: slope),
)
gammainc_aa.vjp(x=lambda g, a, x: g * _weighed_density(a, x, lambda s: s * s - hurwitz_zeta(2, a)))


@special(domain=(0.5, 4.0))
def gammainc(a, x):
    """Regularized lower incomplete gamma function: distribution of a gamma variable of shape ``a``.

    The derivatives in ``a`` are differences of order ten in the logarithm of the function or of its
    complement, right to about eleven digits, in far tails too; a third one raises.

    Examples
    --------
    >>> ng.special.gammainc(2.0, ng.tensor([0.0, 1.0, 5.0]))
    tensor([0.        , 0.26424112, 0.95957232])
    """


gammainc.vjp(a=lambda g, a, x: g * gammainc_a(a, x), x=lambda g, a, x: g * gamma_density(a, x))


@special(domain=(0.5, 4.0))
def gammaincc(a, x):
    """Regularized upper incomplete gamma function, ``1 - gammainc(a, x)``.

    The derivative in ``a`` is that of ``gammainc``.

    Examples
    --------
    >>> ng.special.gammaincc(2.0, ng.tensor([0.0, 1.0, 100.0]))
    tensor([1.00000000e+00, 7.35758882e-01, 3.75727674e-42])
    """


gammaincc.vjp(a=lambda g, a, x: -g * gammainc_a(a, x), x=lambda g, a, x: -g * gamma_density(a, x))


@special(domain=(0.1, 0.9))
def gammaincinv(a, p):
    """Where ``gammainc(a, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gammaincinv(2.0, ng.tensor([0.1, 0.5]))
    tensor([0.53181161, 1.67834699])
    """


gammaincinv.vjp(
    a=lambda g, a, y: -g * moved(gammainc_a(a, y), gamma_density(a, y)),
    p=lambda g, a, y: g / gamma_density(a, y),
)


@special(domain=(0.1, 0.9))
def gammainccinv(a, p):
    """Where ``gammaincc(a, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.gammainccinv(2.0, ng.tensor([1e-10, 0.5]))
    tensor([26.33398161,  1.67834699])
    """


gammainccinv.vjp(
    a=lambda g, a, y: -g * moved(gammainc_a(a, y), gamma_density(a, y)),
    p=lambda g, a, y: -g / gamma_density(a, y),
)


def beta_density(a, b, x):
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``, the derivative of betainc."""
    end = (x == 0) | (x == 1)  # where the logarithm of a power has no derivative
    inner, outer = np.where(end, 0.5, x), np.where(end, x, 0.5)
    powers = np.power(outer, a - 1) * np.power(1 - outer, b - 1) * np.exp(-betaln(a, b))
    return np.where(
        end, powers, np.exp(xlogy(a - 1, inner) + xlog1py(b - 1, -inner) - betaln(a, b))
    )


def _slope(x, a, b):
    """Factor of the density in its derivative with respect to ``a``."""
    return np.log(x) - digamma(a) + digamma(a + b)


def _slope_b(x, a, b):
    return np.log1p(-x) - digamma(b) + digamma(a + b)


@derivative(domain=(0.15, 0.85), scalar="betainc_a")
def betainc_a(a, b, x):
    """Derivative of ``betainc`` with respect to ``a``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_b")
def betainc_b(a, b, x):
    """Derivative of ``betainc`` with respect to ``b``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_aa")
def betainc_aa(a, b, x):
    """Second derivative of ``betainc`` with respect to ``a``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_ab")
def betainc_ab(a, b, x):
    """Second derivative of ``betainc`` with respect to ``a`` and ``b``."""


@derivative(domain=(0.15, 0.85), scalar="betainc_bb")
def betainc_bb(a, b, x):
    """Second derivative of ``betainc`` with respect to ``b``."""


betainc_a.vjp(
    a=lambda g, a, b, x: g * betainc_aa(a, b, x),
    b=lambda g, a, b, x: g * betainc_ab(a, b, x),
    x=lambda g, a, b, x: g * (beta_density(a, b, x) * _slope(x, a, b)),
)
betainc_b.vjp(
    a=lambda g, a, b, x: g * betainc_ab(a, b, x),
    b=lambda g, a, b, x: g * betainc_bb(a, b, x),
    x=lambda g, a, b, x: g * (beta_density(a, b, x) * _slope_b(x, a, b)),
)
betainc_aa.vjp(
    x=lambda g, a, b, x: (
        g
        * beta_density(a, b, x)
        * (_slope(x, a, b) ** 2 - hurwitz_zeta(2, a) + hurwitz_zeta(2, a + b))
    )
)
betainc_ab.vjp(
    x=lambda g, a, b, x: (
        g * beta_density(a, b, x) * (_slope(x, a, b) * _slope_b(x, a, b) + hurwitz_zeta(2, a + b))
    )
)
betainc_bb.vjp(
    x=lambda g, a, b, x: (
        g
        * beta_density(a, b, x)
        * (_slope_b(x, a, b) ** 2 - hurwitz_zeta(2, b) + hurwitz_zeta(2, a + b))
    )
)


@special(domain=(0.15, 0.85))
def betainc(a, b, x):
    """Regularized incomplete beta function: distribution of a beta variable.

    The derivatives in ``a`` and ``b`` are differences of order ten in the logarithm of the function
    or of its complement, right to about eleven digits, in far tails too; third ones raise.

    Examples
    --------
    >>> ng.special.betainc(2.0, 3.0, ng.tensor([0.0, 0.5, 1.0]))
    tensor([0.    , 0.6875, 1.    ])
    """


betainc.vjp(
    a=lambda g, a, b, x: g * betainc_a(a, b, x),
    b=lambda g, a, b, x: g * betainc_b(a, b, x),
    x=lambda g, a, b, x: g * beta_density(a, b, x),
)


@special(domain=(0.15, 0.85))
def betaincc(a, b, x):
    """Complement of the regularized incomplete beta function, ``1 - betainc(a, b, x)``.

    Derivatives in ``a`` and ``b`` are those of ``betainc``.

    Examples
    --------
    >>> ng.special.betaincc(2.0, 3.0, ng.tensor([0.0, 0.5, 0.999]))
    tensor([1.000e+00, 3.125e-01, 3.997e-09])
    """


betaincc.vjp(
    a=lambda g, a, b, x: -g * betainc_a(a, b, x),
    b=lambda g, a, b, x: -g * betainc_b(a, b, x),
    x=lambda g, a, b, x: -g * beta_density(a, b, x),
)


@special(domain=(0.15, 0.85))
def betaincinv(a, b, p):
    """Where ``betainc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.betaincinv(2.0, 3.0, ng.tensor([0.1, 0.5]))
    tensor([0.14255932, 0.38572757])
    """


@special(domain=(0.15, 0.85))
def betainccinv(a, b, p):
    """Where ``betaincc(a, b, x)`` is ``p``.

    Examples
    --------
    >>> ng.special.betainccinv(2.0, 3.0, ng.tensor([0.1, 0.5]))
    tensor([0.67953942, 0.38572757])
    """


betaincinv.vjp(
    a=lambda g, a, b, y: -g * moved(betainc_a(a, b, y), beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(betainc_b(a, b, y), beta_density(a, b, y)),
    p=lambda g, a, b, y: g / beta_density(a, b, y),
)
betainccinv.vjp(
    a=lambda g, a, b, y: -g * moved(betainc_a(a, b, y), beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(betainc_b(a, b, y), beta_density(a, b, y)),
    p=lambda g, a, b, y: -g / beta_density(a, b, y),
)


_RIGHT, _POINTS, _TERMS, _MOST = 3.0, 32, 30, 3000


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of power series, which are along the first axis."""
    return np.array([sum(a[j] * b[k - j] for j in range(k + 1)) for k in range(len(a))])


def _reciprocal(distance: np.ndarray, order: int) -> np.ndarray:
    """The power series of one over a number ``distance`` away from 0."""
    return np.array([(-1) ** k * distance ** -(k + 1.0) for k in range(order + 1)])


def _of_powers(s: np.ndarray, order: int) -> np.ndarray:
    """A derivative by the sum of powers."""
    first = min(_TERMS + int(np.max(np.abs(np.imag(s)), initial=0)), _MOST)
    k = np.arange(2.0, first).reshape(-1, *(1,) * s.ndim)
    total = np.sum((-np.log(k)) ** order * k**-s, axis=0)
    log = math.log(first)
    power = np.array([(-log) ** k / math.factorial(k) * first**-s for k in range(order + 1)])
    rest = first * _product(power, _reciprocal(s - 1, order)) + 0.5 * power
    factor = power / first
    for j, weight in enumerate(EULER_MACLAURIN):
        for m in (2 * j - 1, 2 * j) if j else (0,):
            moved = np.concatenate([np.zeros_like(factor[:1]), factor[:-1]])
            factor = (s + m) * factor + moved
        rest = rest + weight * factor
        factor = factor / first**2
    return total + math.factorial(order) * rest[order]


def _on_circle(s: np.ndarray, order: int) -> np.ndarray:
    """A derivative by values around a place."""
    turns = np.exp(2j * np.pi * (np.arange(_POINTS) + 0.5) / _POINTS).reshape(-1, *(1,) * s.ndim)
    points = s + turns
    try:
        values = (points - 1) * importlib.import_module("scipy.special").zeta(points)
    except TypeError:
        raise NumgradNotImplementedError(
            "zeta: derivatives with respect to 's' need SciPy 1.15 or later, which computes zeta "
            "of complex numbers; update it, or detach() s"
        ) from None
    values = np.where(points == 1, 1, values)
    series = np.array([np.mean(values * turns**-k, axis=0) for k in range(order + 1)])
    return math.factorial(order) * _product(series, _reciprocal(s - 1, order))[order]


def _derivative(s: np.ndarray, *, n: int) -> np.ndarray:
    """The derivative of order ``n`` of Riemann's zeta function."""
    point = np.asarray(s, np.complex128)
    right = point.real > _RIGHT
    result = np.empty(point.shape, np.complex128)
    with np.errstate(all="ignore"):
        if right.any():
            result[right] = _of_powers(point[right], n)
        if not right.all():
            result[~right] = _on_circle(point[~right], n)
    result = np.where(point == np.inf, 0, result)
    return result if np.iscomplexobj(s) else np.real(result)


@several(samples=(), dtypes=either, internal=True, ref="scipy.special.zeta")
def riemann_zeta(s):
    """Riemann's zeta function."""


@several(samples=(), dtypes=either, values=_derivative, internal=True,
         ref=None)  # fmt: skip
def riemann_zeta_slope(s, *, n):
    """The derivative of order ``n`` of Riemann's zeta function."""


riemann_zeta.vjp(s=lambda g, s: g * riemann_zeta_slope(s, n=1))
riemann_zeta_slope.vjp(s=lambda g, s, n: g * riemann_zeta_slope(s, n=n + 1))


def zeta(s: Any, x: Any = None) -> Any:
    """Riemann's zeta function of real or complex numbers; with ``x`` that of Hurwitz.

    Parameters
    ----------
    s
        Exponent. Riemann's function has derivatives of every order, Hurwitz's two in ``s``.
    x
        Where the sum of ``(k + x)**-s`` begins, which is ``ng.zeta(s, x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.zeta(ng.tensor([0.0, 2.0]))
    tensor([-0.5       ,  1.64493407])
    >>> ng.special.zeta(2.0, ng.tensor([1.0, 2.0]))
    tensor([1.64493407, 0.64493407])
    """
    return riemann_zeta(s) if x is None else hurwitz_zeta(s, x)


def comb(n: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Number of combinations of ``n`` things taken ``k`` at a time, of real numbers.

    Parameters
    ----------
    exact
        As in SciPy, Python's integers, of which there is no gradient.
    repetition
        Whether a thing may be taken again.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.comb(5, ng.tensor([2.0, 3.0]))
    tensor([10., 10.])
    """
    if exact:
        return math.comb(n + k - 1, k) if repetition and n else math.comb(n, k)
    if repetition:
        return comb(n + k - 1, k)
    n, k = as_array(n), as_array(k)
    inside = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, binom(np.where(inside, n, 1.0), np.where(inside, k, 0.0)), 0.0)


def factorial(n: Any, exact: bool = False) -> Any:
    """Factorial of real numbers, 0 for negative ones.

    Parameters
    ----------
    exact
        As in SciPy, a Python integer, of which there is no gradient.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.factorial(ng.tensor([0.0, 3.0, 4.5]))
    tensor([ 1.        ,  6.        , 52.34277778])
    """
    if exact:
        return math.factorial(n)
    n = as_array(n)
    inside = n >= 0
    return np.where(inside, gamma(np.where(inside, n, 0.0) + 1), 0.0)


def perm(n: Any, k: Any, exact: bool = False) -> Any:
    """Number of arrangements of ``k`` of ``n`` things, of real numbers.

    Parameters
    ----------
    exact
        As in SciPy, Python's integers, of which there is no gradient.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.perm(5, ng.tensor([2.0, 3.0]))
    tensor([20., 60.])
    """
    if exact:
        return math.perm(n, k)
    n, k = as_array(n), as_array(k)
    inside = (k <= n) & (n >= 0) & (k >= 0)
    first = np.where(inside, n - k + 1, 1.0)
    return np.where(inside, poch(first, np.where(inside, k, 0.0)), 0.0)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension ``d``.

    Raises
    ------
    NumgradValueError
        If ``d`` is not a positive integer.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.multigammaln(ng.tensor([2.0, 5.0]), 3)
    tensor([1.59631259, 9.1406447 ])
    """
    if int(d) != d or d < 1:
        raise NumgradValueError(f"multigammaln: d must be a positive integer, got {d!r}")
    a = as_operand(a)
    total: Any = d * (d - 1) / 4 * math.log(math.pi)
    for j in range(int(d)):
        total = total + gammaln(a - j / 2)
    return total
