"""Differential equations solved, with gradients: by SciPy, and by loops that compile."""

from numgrad.integrate.ivp import solve_ivp as solve_ivp
from numgrad.integrate.ode import odeint as odeint

__all__ = ["odeint", "solve_ivp"]


def __dir__() -> list[str]:
    return __all__
