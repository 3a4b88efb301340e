"""Means by quadrature, and logarithms of small probabilities by continued fractions.

Such a tail begins 30 standard deviations from the mean (10 of float32), so that few steps of a
fraction give all digits: step ``n`` leaves ``n / 900`` (``n / 100``) of the error before it.

Such a rule is a sum of operations, so it has derivatives of every order, and a compiled form.

Note [Means of logarithms of factorials]
----------------------------------------
By the integral of Malmsten for the logarithm of the gamma function, with ``u = 1 - exp(-t)``,

    E[log k!] = integral of exp(-t) (E[k] - (1 - E[(1 - u)^k]) / u) / t over positive t,

which needs the generating function alone, ``E[(1 - u)^k]``, and no sum over k. Over the logarithm
of ``t`` the rule of trapezoids converges exponentially: the integrand is analytic where the
imaginary part is below pi / 2, so that a step ``h`` leaves an error of order ``exp(-pi^2 / h)``.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.operations.error_gamma_logistic import gammaln
from numgrad.operations.linear_algebra.matrices import constant
from numgrad.operations.shape import as_operand
from numgrad.operations.special_functions.gamma import betaln

_STEP = 0.25
_T = np.exp(np.arange(-60.0, 20.0, _STEP))
_U = np.minimum(
    -np.expm1(-_T), 1 - 2.0**-53
)  # below 1, where a generating function may be singular
_NORMAL = np.arange(-10.0, 10.0 + _STEP / 2, _STEP)
_SURE = 9.0
"""How far from 0 a normal density is to be looked at: beyond, less than 1e-18 is left."""


def over_times(integrand: Callable[[Any, Any], Any], dtype: np.dtype) -> Any:
    """The integral of a function of ``t`` and ``u`` divided by ``t``, along the last axis."""
    result = _STEP * np.sum(integrand(constant(_T), constant(_U)), axis=-1)
    return as_operand(result).astype(dtype)


def mean_log_factorial(mean: Any, missing: Callable[[Any], Any]) -> Any:
    """``E[log k!]``; ``missing`` of ``u`` is 1 less the generating function at ``1 - u``.

    Note [Means of logarithms of factorials].
    """
    each = np.expand_dims(mean, -1)
    return over_times(lambda t, u: np.exp(-t) * (each - missing(u) / u), mean.dtype)


def over_normals(integrand: Callable[[Any], Any], dtype: np.dtype) -> Any:
    """The integral over the line of what falls off as a normal density, along the last axis."""
    return _STEP * np.sum(integrand(constant(_NORMAL.astype(dtype))), axis=-1)


@cache
def _legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre between 0 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1), 0.5 * weights


def truncated(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Nodes for means over a normal distribution between ``a`` and ``b``.

    Returns
    -------
    tuple of Tensors
        Where the nodes begin, their distances from there, their probabilities and the logarithm of
        the density at each; of the last three the last axis is that of nodes.
    """
    right, left = a > 0, b < 0
    far_right = np.sqrt(np.where(right, a, 0.0) ** 2 + _SURE * _SURE)
    far_left = -np.sqrt(np.where(left, b, 0.0) ** 2 + _SURE * _SURE)
    low, high = np.where(a > far_left, a, far_left), np.where(b < far_right, b, far_right)
    top = np.where(right, low, np.where(left, high, 0.0))
    nodes, weights = [constant(x.astype(low.dtype)) for x in _legendre(100)]
    length = np.expand_dims(high - low, -1)
    distance = length * nodes
    beyond = distance - np.expand_dims(top - low, -1)
    # less the logarithm at the top, so that nothing underflows in a tail
    log = -0.5 * beyond * (beyond + 2 * np.expand_dims(top, -1))
    mass = length * np.sum(weights * np.exp(log), axis=-1, keepdims=True)
    log = log - np.log(mass)
    return low, distance, length * weights * np.exp(log), log


_WIDE = 14.0
"""How far angles are looked at, in units of what their concentration makes of them: to 1e-17."""


def angle_variance(kappa: Any) -> Any:
    """Variance of angles between -pi and pi of von Mises' distribution."""
    narrow = kappa > (_WIDE / math.pi) ** 2
    far = np.where(narrow, _WIDE / np.sqrt(np.where(narrow, kappa, 1.0)), math.pi)
    nodes, weights = [constant(x.astype(far.dtype)) for x in _legendre(100)]
    angle = np.expand_dims(far, -1) * nodes
    sine = np.sin(0.5 * angle)
    height = weights * np.exp(-2 * np.expand_dims(kappa, -1) * (sine * sine))
    return np.sum(height * (angle * angle), axis=-1) / np.sum(height, axis=-1)


_STEPS = np.linspace(0, 1, 161)


def over_widths(df: Any, far: Any) -> tuple[Any, Any]:
    """Nodes and weights for means over ``sqrt(chi2 / df)``, along the last axis.

    By the rule of trapezoids over ``t``, where the logarithm of ``chi2 / df`` is
    ``t - exp(-t - c)`` in units of its deviation. A function of ``far`` times the number changes
    down to ``-c`` and not below, where nodes are far apart; they reach to where the density is
    below 1e-17.
    """
    half, far = [np.expand_dims(_fixed(a), -1) for a in (0.5 * df, far)]
    unit = 1 / np.sqrt(1 + half)
    knee = np.minimum(np.log1p(far * far) / unit, 9 + 40 / (half * unit))
    low, high = -knee - 1 - np.log1p(40 / (half * unit)), 9 + np.log1p(45 / half) / unit
    grid = low + (high - low) * constant(_STEPS.astype(half.dtype))
    dense = np.exp(-grid - knee)
    log = unit * (grid - dense)
    # the logarithm of the density less its greatest, without cancellation near it
    near = np.abs(log) < 0.01
    few, many = np.where(near, log, 0.0), np.where(near, 1.0, log)
    series = 1 + few / 3 * (1 + few / 4 * (1 + few / 5 * (1 + few / 6 * (1 + few / 7))))
    below = np.where(near, 0.5 * (few * few) * series, np.expm1(many) - many)
    height = (1 + dense) * np.exp(-0.5 * np.expand_dims(df, -1) * below)
    return np.exp(0.5 * log), height / np.sum(height, axis=-1, keepdims=True)


def _fixed(a: Any) -> Any:
    """Without its derivatives, on which nodes do not depend."""
    return a if isinstance(a, np.ndarray | np.generic) else a.detach()


_FRACTION_STEPS = 8


def shares(u: Any, power: int = 1) -> tuple[Any, Any, Any, Any]:
    """``v / (1 + v)`` and ``1 / (1 + v)`` of ``v = u**power``, and their logarithms.

    Exact to the last digits also where the power overflows.
    """
    large = u > 1
    above, below = np.where(large, u, 1.0), np.where(large, 1.0, u)
    near = np.where(large, 1 / above, below)
    r = near if power == 1 else near**power
    small, rest = r / (1 + r), 1 / (1 + r)
    log_rest = -np.log1p(r)
    log_small = power * np.where(large, -np.log(above), np.log(below)) + log_rest
    return (
        np.where(large, rest, small),
        np.where(large, small, rest),
        np.where(large, log_rest, log_small),
        np.where(large, log_small, log_rest),
    )


def log_gamma_below(a: Any, x: Any) -> Any:
    """Logarithm of ``gammainc(a, x)`` where that is tiny.

    The fraction of Gauss for ``1F1(1, a + 1, x)``, of which all numbers are positive.
    """
    fraction = a - x + _FRACTION_STEPS
    for n in range(_FRACTION_STEPS, 0, -1):
        fraction = (a - x + (n - 1)) + n * x / fraction
    return a * np.log(x) - x - gammaln(a) - np.log(fraction)


def log_gamma_above(a: Any, x: Any) -> Any:
    """Logarithm of ``gammaincc(a, x)`` where that is tiny: Legendre's fraction."""
    fraction = x - a + (2 * _FRACTION_STEPS + 1)
    for n in range(_FRACTION_STEPS, 0, -1):
        fraction = (x - a + (2 * n - 1)) + n * (a - n) / fraction
    return a * np.log(x) - x - gammaln(a) - np.log(fraction)


def log_beta_below(a: Any, b: Any, x: Any, y: Any, logs: Any = None) -> Any:
    """Logarithm of ``betainc(a, b, x)``, where that is tiny and ``y`` is ``1 - x``.

    The fraction of DiDonato and Morris, "Significant digit computation of the incomplete beta
    function ratios", ACM Trans. Math. Softw. 18 (1992). ``logs`` are those of ``x`` and ``y``.
    """
    distance = (a + b) * y - b
    log_x, log_y = (np.log(x), np.log(y)) if logs is None else logs

    def own(n: int) -> Any:
        inner = n * (b - n) * x / (a + (2 * n - 1)) if n else 0.0
        return n + inner + (a + n) / (a + (2 * n + 1)) * (distance + 1 + n * (1 + y))

    fraction = own(_FRACTION_STEPS)
    for n in range(_FRACTION_STEPS, 0, -1):
        above = (a + (n - 1)) / (a + (2 * n - 1)) * (n * (b - n)) * x
        above = above * ((a + b + (n - 1)) * x / (a + (2 * n - 1)))
        fraction = own(n - 1) + above / fraction
    return a * log_x + b * log_y - betaln(a, b) - np.log(fraction)
