"""Operations that are defined for real operands only, and how these are declared."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.declare import elementwise
from numgrad.core.elementwise import Elementwise
from numgrad.operations.promotion import by_library, floating, kept
from numgrad.operations.special import erfc, exp_product, logistic, softplus


def real_elementwise(
    types: Callable[..., Any] = floating, **options: Any
) -> Callable[[Callable[..., Any]], Elementwise]:
    """Declare an elementwise operation of real operands; ``types`` takes its name besides them."""

    def declare(function: Callable[..., Any]) -> Elementwise:
        name = function.__name__
        return Elementwise(function, types=partial(types, name), real=True, **options)

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
