"""Random numbers with gradients in the parameters that they were drawn with.

What NumPy drew is the value. Its derivatives are those of the function of the parameters that gives
this number for the same chance: of location and scale, or of Note [Implicit reparameterisation].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import has_tangent
from numgrad.core.interpreter import state
from numgrad.tensors.tensor import Tensor


def differentiated(value: Any) -> bool:
    """Whether a parameter is to be differentiated."""
    return isinstance(value, Tensor) and (
        (value.requires_grad and state.grad_enabled) or has_tangent(value)
    )


def fixed(value: Any) -> Any:
    """A parameter as it is drawn with."""
    return value.detach() if isinstance(value, Tensor) else value


def _placed(z: Any, were: tuple, loc: Any, scale: Any) -> Any:
    return loc + scale * ((z - were[0]) / were[1])


def _uniform(z: Any, were: tuple, low: Any, high: Any) -> Any:
    return _placed(z, (were[0], were[1] - were[0]), low, high - low)


def _scaled(z: Any, were: tuple, scale: Any) -> Any:
    return scale * (z / were[0])


def _gamma(z: Any, were: tuple, shape: Any, scale: Any = 1.0) -> Any:
    from numgrad.operations.special_functions.distributions import gamma_path

    return scale * gamma_path(shape, z / (were[1] if len(were) > 1 else 1.0))


def _beta(z: Any, were: tuple, a: Any, b: Any) -> Any:
    from numgrad.operations.special_functions.distributions import beta_path

    return beta_path(a, b, z)


def _student(z: Any, were: tuple, df: Any) -> Any:
    from numgrad.operations.special_functions.distributions import student_path

    return student_path(df, z)


def _fisher(z: Any, were: tuple, dfnum: Any, dfden: Any) -> Any:
    from numgrad.operations.special_functions.distributions import beta_path

    path = beta_path(0.5 * dfnum, 0.5 * dfden, were[0] * z / (were[0] * z + were[1]))
    ratio = path / (1 - path)
    return z * ((ratio / fixed(ratio)) * ((dfden / were[1]) / (dfnum / were[0])))


def _triangular(z: Any, were: tuple, left: Any, mode: Any, right: Any) -> Any:
    """Parts of the triangle on both sides of the top keep their shares of the distance."""
    low, top, high = were
    rising = z < top
    rise = _share(rising, (right - left) * (mode - left), (high - low) * (top - low))
    fall = _share(
        ~rising & (z < high), (right - left) * (right - mode), (high - low) * (high - top)
    )
    return np.where(rising, left + (z - low) * rise, right - (high - z) * fall)


def _share(mask: Any, area: Any, was: Any) -> Any:
    return np.sqrt(np.where(mask, area, 1.0) / np.where(mask, was, 1.0))


def _angle(z: Any, were: tuple, mu: Any, kappa: Any) -> Any:
    from numgrad.operations.special_functions.distributions import angle_path, turned

    _, away = turned(z - were[0])
    return z + (mu - were[0]) + (angle_path(kappa, away) - away)


def _arrival(z: Any, were: tuple, mean: Any, scale: Any) -> Any:
    from numgrad.operations.special_functions.distributions import arrival_path

    return arrival_path(mean, scale, z)


def _noncentral(z: Any, were: tuple, df: Any, nonc: Any) -> Any:
    from numgrad.operations.special_functions.noncentral import noncentral_path

    return noncentral_path(df, nonc, z)


def _noncentral_f(z: Any, were: tuple, dfnum: Any, dfden: Any, nonc: Any) -> Any:
    from numgrad.operations.special_functions.noncentral import noncentral_f_path

    return noncentral_f_path(dfnum, dfden, nonc, z)


PATHS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), _placed),
    "uniform": _uniform,
    "lognormal": lambda z, were, mean, sigma: np.exp(_placed(np.log(z), were, mean, sigma)),
    **dict.fromkeys(("exponential", "rayleigh"), _scaled),
    "weibull": lambda z, were, a: np.exp(np.log(z) * (were[0] / a)),
    "power": lambda z, were, a: np.exp(np.log(z) * (were[0] / a)),
    "pareto": lambda z, were, a: np.expm1(np.log1p(z) * (were[0] / a)),
    "gamma": _gamma,
    "standard_gamma": _gamma,
    "chisquare": lambda z, were, df: 2 * _gamma(0.5 * z, were, 0.5 * df),
    "beta": _beta,
    "standard_t": _student,
    "f": _fisher,
    "triangular": _triangular,
    "vonmises": _angle,
    "wald": _arrival,
    "noncentral_chisquare": _noncentral,
    "noncentral_f": _noncentral_f,
}
"""Functions of what was drawn, of the parameters it was drawn with, and of the parameters."""

STANDARD: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(
        ("normal", "laplace", "logistic", "gumbel", "uniform", "lognormal"), (0.0, 1.0)
    ),
    **dict.fromkeys(("exponential", "rayleigh", "weibull", "power", "pareto", "gamma"), (1.0,)),
}
"""Last parameters of numbers from which those of any such parameters follow."""


def allowed(name: str, parameters: tuple) -> Any:
    """Whether there is a distribution of ``STANDARD`` with these parameters."""
    if name == "uniform":
        return parameters[0] <= parameters[1]
    last = parameters[-1]
    return last > 0 if name in ("power", "pareto") else last >= 0
