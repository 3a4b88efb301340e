"""Logarithms of probabilities so small that they underflow, by continued fractions.

Such a tail begins 30 standard deviations from the mean (10 of float32), so that few steps of a
fraction give all digits: step ``n`` leaves ``n / 900`` (``n / 100``) of the error before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.operations.special import gammaln
from numgrad.operations.special_functions.gamma import betaln

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
