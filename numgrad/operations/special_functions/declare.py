"""How special functions are declared: by SciPy's name, with SciPy's value in kernels.

Complex operands are taken by those with a form for them in the kernel library; their gradient
formulas hold for both.

Note [Derivatives of special functions]
---------------------------------------
Those with respect to arguments are closed formulas, written in operations, so there are derivatives
of any order. Those with respect to orders and parameters of shape are closed formulas where there
is one; for incomplete gamma and beta functions and Bessel functions they are computed by Note
[Differences in a parameter] of ``kernels.differences``, twice; a third time raises. For others, and
at complex places, they are the same differences of operations (``differences``), of any order. What
has none raises as well: no gradient is silently zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from numgrad.core.elementwise import Elementwise
from numgrad.core.formula import GradientFormula
from numgrad.core.op import Op
from numgrad.kernels import differences as _differences  # noqa: F401 (what kernels call)
from numgrad.operations.promotion import by_library


class Special(Op):
    """What is known about all special functions."""

    parameters: ClassVar = {
        "v": ("", "Order."),
        "n": ("", "Order."),
        "z": ("", "Argument."),
        "m": ("", "Parameter."),
        "c": ("", "Third parameter."),
        "p": ("", "Probability."),
        "k": ("", "Count."),
        "alpha": ("", "Parameter."),
        "beta": ("", "Second parameter."),
        "phi": ("", "Amplitude, in radians."),
        "delta": ("", "Where it becomes linear."),
        "r": ("", "Residual."),
        "lmbda": ("", "Power."),
        "df": ("", "Degrees of freedom."),
        "dfn": ("", "Degrees of freedom of the numerator."),
        "dfd": ("", "Degrees of freedom of the denominator."),
        "t": ("", "Quantile."),
    }

    def undeclared(self, name: str) -> GradientFormula:
        """A refusal, also where the body is a formula, in which a count may be rounded."""
        return Op.undeclared(self, name)


class SpecialFunction(Special, Elementwise):
    """An elementwise function that the kernel library has under its name."""


class ParameterDerivative(SpecialFunction):
    """A part of gradient formulas: a derivative by differences, without a reference of its own."""


def special(
    family: type[SpecialFunction] = SpecialFunction, **options: Any
) -> Callable[[Callable[..., Any]], SpecialFunction]:
    """Declare a special function, whose body is its documentation."""

    def declare(function: Callable[..., Any]) -> SpecialFunction:
        name = function.__name__
        given = {
            "ref": f"scipy.special.{name}",
            "scalar": name,
            "method": False,
            "smooth": True,
            **by_library(name),
            **options,
        }
        return family(function, **given)

    return declare


def derivative(**options: Any) -> Callable[[Callable[..., Any]], SpecialFunction]:
    """Declare a derivative in a parameter that gradient formulas name."""

    def declare(function: Callable[..., Any]) -> SpecialFunction:
        given = {"internal": True, "ref": None, **options}
        return special(family=ParameterDerivative, **given)(function)

    return declare


def moved(slope: Any, density: Any) -> Any:
    """How far a quantile moves: the change of the distribution function over its density.

    Where there is no change it is 0, also at an end of the support, where the density may be 0 or
    infinite.
    """
    still = (slope == 0) & ((density == 0) | np.isinf(density))
    return np.where(still, 0, slope / np.where(still, 1, density))
