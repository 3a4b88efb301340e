"""Derivatives as factors: what a gradient formula makes of ones, times what arrives.

Over the real numbers that is the formula, unless it selects: where a formula has ``where(c, g, 0)``
nothing arrives, and a factor of 0 would make NaN of NaN and of infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.op import Op

_SELECTING = {"where", "maximum", "minimum", "fmax", "fmin", "clip", "nan_to_num"}


def scaled(op: Op, factor: Any, t: Any) -> Any:
    """A tangent or gradient times the factor of an operation, which may have selected."""
    if op.name in _SELECTING:
        return np.where(factor == 0, 0.0, factor * t)
    return factor * t
