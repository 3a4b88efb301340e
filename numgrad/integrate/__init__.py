"""Integrals and differential equations, with gradients: by SciPy, and by loops that compile.

Names and parameters of integrals are those of ``scipy.integrate``.

>>> import numpy as np, numgrad as ng
>>> ng.grad(lambda k: ng.integrate.quad(lambda x: np.exp(-k * x), 0, np.inf)[0])(2.0).round(6)
np.float64(-0.25)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.integrate.ivp": "solve_ivp",
        "numgrad.integrate.ode": "odeint",
        "numgrad.integrate.quadrature": "dblquad fixed_quad nquad quad quad_vec tplquad",
        "numgrad.operations.calculus": "cumulative_simpson cumulative_trapezoid romb simpson "
        "trapezoid",
    },
)
