"""Probabilities of normal vectors between limits, with derivatives of any order.

Note [Normal vectors between limits]
------------------------------------
By a limit the derivative is the density there times the probability of the other numbers, given the
one at the limit: of one dimension less. By a correlation it is the second derivative by both
limits (Plackett, 1954), for a matrix of which both elements change. So gradients are again such
probabilities, of vectors with one and two numbers less.

Values are closed formulas of one number; of two the integral of their density over correlations
from -1 on, which is positive, by the double exponential rule; of more SciPy's integral over points
of a lattice, which a seed makes the same at every call.
"""

import copy
import importlib
import inspect
import math
from typing import Any

import numpy as np

from numgrad.core.declare import Meta, broadcast_lengths, broadcasting_rule, primitive
from numgrad.operations.linear_algebra.matrices import constant
from numgrad.operations.shared_rules import floating

_AT_ONCE = 4096  # pairs, so that integrands fit into the cache
_PLACES = np.arange(-112, 113) / 32
_SHARE = 1 / (1 + np.exp(-math.pi * np.sinh(_PLACES)))
"""Places of the rule in an interval, as shares of it from the left."""
_WEIGHTS = math.pi * np.cosh(_PLACES) * _SHARE * _SHARE[::-1] / 32


def _one(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The probability of an interval, by the tails that are smaller."""
    ndtr = importlib.import_module("scipy.special").ndtr
    right = low > 0
    return ndtr(np.where(right, -low, high)) - ndtr(np.where(right, -high, low))


def _pair(h: np.ndarray, k: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The probability that two numbers are below ``h`` and ``k``."""
    h, k, r = (np.ravel(a) for a in np.broadcast_arrays(h, k, r))
    result = np.maximum(_one(-k, h), 0)  # where they are opposite
    for first in range(0, h.size, _AT_ONCE):
        chunk = slice(first, first + _AT_ONCE)
        result[chunk] += _since_opposite(*(a[chunk, None] for a in (h, k, r)))
    return np.where(np.isnan(h + k + r), np.nan, result)


def _since_opposite(h: np.ndarray, k: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The integral of the density at ``h`` and ``k`` over correlations from -1 to ``r``.

    These are minus the cosine of an angle, of which small distances from both ends are known.
    """
    r = np.clip(r, -1, 1)
    length, left = np.arccos(-r), np.arccos(r)
    angle = length * _SHARE
    rest = left + length * _SHARE[::-1]
    near = angle < rest
    sine = np.sin(np.where(near, angle, rest))
    double = 2 * np.sin(0.5 * np.where(near, rest, angle)) ** 2  # one plus the larger cosine
    gap = np.where(near, h + k, h - k)
    # where the ends meet the density is 0, or the gap
    exponent = -0.5 * (gap / np.where(sine == 0, 1, sine)) ** 2 + np.where(near, h * k, -h * k) / (
        double
    )
    exponent = np.where((sine == 0) & (gap != 0), -np.inf, exponent)
    return np.sum(_WEIGHTS * np.exp(exponent), axis=1) * length[:, 0] / (2 * math.pi)


def _several(limits: np.ndarray, correlation: np.ndarray, seed: int, options: dict) -> float:
    """The probability of a vector of three or more, by SciPy."""
    if np.isnan(limits).any() or np.isnan(correlation).any():
        return math.nan
    rng = np.random.default_rng(seed)
    low, high = limits if len(limits) == 2 else (np.full_like(limits[0], -np.inf), limits[0])
    family = copy.copy(importlib.import_module("scipy.stats").multivariate_normal)
    if "rng" not in inspect.signature(family.cdf).parameters:
        result = _by_lattice(low, high, correlation, rng, **options)
        if not math.isnan(result):
            return result
    family.random_state = rng
    return family.cdf(high, cov=correlation, allow_singular=True, lower_limit=low, **options)


def _by_lattice(
    low: np.ndarray, high: np.ndarray, correlation: np.ndarray, rng: Any, *,
    maxpts: int | None, abseps: float, releps: float,
) -> float:  # fmt: skip
    """The same integral where SciPy's public one draws at random, without a seed: before 1.16.

    It is NaN where a density underflows.
    """
    module = importlib.import_module("scipy.stats._qmvnt")
    low = np.maximum(low, -1e3)  # of deviations; infinity less infinity is NaN
    sign = (-1) ** np.count_nonzero(high < low)
    with np.errstate(all="ignore"):
        return sign * module._qauto(
            module._qmvn, correlation, np.minimum(low, high), np.maximum(low, high), rng,
            error=abseps, limit=maxpts or 1_000_000 * len(high), n_batches=10,
        )[0]  # fmt: skip


@primitive(internal=True, method=False, smooth=True, real_only=True)
def normal_probability(limits, correlation, *, seed, maxpts, abseps, releps):
    """Probability of standard normal vectors below limits, or between lower and upper ones.

    ``limits`` are finite, of shape ``(..., 1, n)``, or ``(..., 2, n)`` with lower ones first.
    """
    meta = _probability_shape(limits, correlation)
    sides, n = limits.shape[-2:]
    limits = np.broadcast_to(limits, (*meta.shape, sides, n)).astype(np.float64, copy=False)
    matrix = np.broadcast_to(correlation, (*meta.shape, n, n)).astype(np.float64, copy=False)
    limits, matrix = limits.reshape(-1, sides, n), matrix.reshape(-1, n, n)
    low, high = limits[:, 0], limits[:, -1]
    if n == 1:
        results = (
            _one(low[:, 0], high[:, 0]) if sides == 2 else _one(-np.inf + 0 * high, high)[:, 0]
        )
    elif n == 2:
        r = 0.5 * (matrix[:, 0, 1] + matrix[:, 1, 0])
        results = _pair(high[:, 0], high[:, 1], r)
        if sides == 2:
            results = results - _pair(low[:, 0], high[:, 1], r) - _pair(high[:, 0], low[:, 1], r)
            results = results + _pair(low[:, 0], low[:, 1], r)
    else:
        options = {"maxpts": maxpts, "abseps": abseps, "releps": releps}
        results = [_several(a, m, seed, options) for a, m in zip(limits, matrix, strict=True)]
    return np.asarray(results, meta.dtype).reshape(meta.shape)


@normal_probability.shape
def _probability_shape(limits, correlation, **_):
    _, dtype = floating("multivariate_normal.cdf", [limits.dtype, correlation.dtype])
    return Meta(broadcast_lengths(limits.shape[:-2], correlation.shape[:-2]), dtype)


normal_probability.batch(broadcasting_rule)


def _others(n: int) -> np.ndarray:
    """For each number those that are not it."""
    return np.array([[j for j in range(n) if j != i] for i in range(n)]).reshape(n, n - 1)


def _given_each(limits: Any, correlation: Any) -> tuple[Any, Any, Any]:
    """Limits and correlations of the others where each number is at each of its limits.

    Their axes begin with the side of that limit and the number. Besides, standard deviations.
    """
    n = limits.shape[-1].__index__()
    others = _others(n)
    beside = correlation[..., constant(others), constant(np.arange(n)[:, None])]
    wide = np.sqrt((1 - beside) * (1 + beside))
    among = correlation[..., constant(others[:, :, None]), constant(others[:, None, :])]
    partial = (among - beside[..., :, None] * beside[..., None, :]) / (
        wide[..., :, None] * wide[..., None, :]
    )
    theirs = np.moveaxis(limits[..., constant(others)], -3, -2)[..., None, :, :, :]
    moved = theirs - beside[..., None, :, None, :] * limits[..., None, None]
    return moved / wide[..., None, :, None, :], partial[..., None, :, :, :], wide


def _densities(limits: Any) -> Any:
    """Densities at the limits, with the signs that the limits have in a probability."""
    height = np.exp(-0.5 * (limits * limits)) * (1 / math.sqrt(2 * math.pi))
    return (
        height
        if limits.shape[-2] == 1
        else height * constant(np.array([[-1.0], [1.0]], height.dtype))
    )


def _slopes(limits: Any, correlation: Any, options: dict[str, Any]) -> Any:
    """Derivatives by limits."""
    result = _densities(limits)
    if limits.shape[-1] == 1:
        return result
    others, partial, _ = _given_each(limits, correlation)
    return result * normal_probability(others, partial, **options)


def _bends(limits: Any, correlation: Any, options: dict[str, Any]) -> Any:
    """Derivatives by correlations: half of those by both limits, once for each element."""
    n = limits.shape[-1].__index__()
    if n == 1:
        return 0 * correlation
    others, partial, wide = _given_each(limits, correlation)
    both = np.sum(_slopes(others, partial, options), axis=-2) / wide[..., None, :, :]
    result = 0.5 * np.sum(_densities(limits)[..., None] * both, axis=-3)
    row, column = np.indices((n, n))
    index = row * (n - 1) + np.minimum(column - (column > row), n - 2)
    return np.reshape(result, (*result.shape[:-2], n * (n - 1)))[..., constant(index)] * constant(
        row != column
    )


normal_probability.vjp(
    limits=lambda g, limits, correlation, seed, maxpts, abseps, releps: (
        g[..., None, None] * _slopes(limits, correlation, _options(seed, maxpts, abseps, releps))
    ),
    correlation=lambda g, limits, correlation, seed, maxpts, abseps, releps: (
        g[..., None, None] * _bends(limits, correlation, _options(seed, maxpts, abseps, releps))
    ),
)


def _options(seed: int, maxpts: Any, abseps: float, releps: float) -> dict[str, Any]:
    return {"seed": seed, "maxpts": maxpts, "abseps": abseps, "releps": releps}
