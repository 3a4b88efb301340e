"""Differential equations solved, with gradients: by SciPy, and by loops that compile."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.integrate.ivp": "solve_ivp", "numgrad.integrate.ode": "odeint"})
