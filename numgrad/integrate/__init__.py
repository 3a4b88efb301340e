"""Differential equations solved by SciPy, with gradients."""

from numgrad.integrate.ivp import solve_ivp as solve_ivp

__all__ = ["solve_ivp"]


def __dir__() -> list[str]:
    return __all__
