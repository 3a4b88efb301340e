"""Means that are integrals, by rules whose nodes are the same for all parameters.

Such a rule is a sum of operations, so it has derivatives of every order, and a compiled form.

Note [Means of logarithms of factorials]
----------------------------------------
By the integral of Malmsten for the logarithm of the gamma function, with ``u = 1 - exp(-t)``,

    E[log k!] = integral of exp(-t) (E[k] - (1 - E[(1 - u)^k]) / u) / t over positive t,

which needs the generating function alone, ``E[(1 - u)^k]``, and no sum over k. Over the logarithm
of ``t`` the rule of trapezoids converges exponentially: the integrand is analytic where the
imaginary part is below pi / 2, so that a step ``h`` leaves an error of order ``exp(-pi^2 / h)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.operations.linear_algebra.checks import constant
from numgrad.operations.shape import as_operand

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
    found = _STEP * np.sum(integrand(constant(_T), constant(_U)), axis=-1)
    return as_operand(found).astype(dtype)


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
