"""Adapters to optimizers, samplers and estimators of other libraries.

A function is described once, as ``ng.objective(f, start, jit=True)``: its arguments by name and
shape, its value and exact derivatives. What a library wants besides a plain function is here, as a
view of that. Libraries are imported when an adapter is called; ``python -m pip install
'numgrad-jit[ecosystem]'`` brings them.

>>> import numpy as np, numgrad as ng
>>> def log_density(p):
...     return -0.5 * np.sum(p["x"] ** 2) - 0.5 * (p["y"] - 1.0) ** 2
>>> normal = ng.objective(log_density, {"x": np.zeros(2), "y": 0.0})
>>> ng.ecosystem.log_density(normal)(np.ones((4, 3)))
array([-1., -1., -1., -1.])

=====================  ===========================================================================
iminuit                ``minuit(cost, errordef=...)``
lmfit                  ``lmfit_jacobian(model)`` for ``Dfun``
NLopt                  ``nlopt_problem(cost, "LD_SLSQP", constraints, bounds)``
cyipopt                ``ipopt_problem(cost, constraints, bounds)``
emcee, dynesty, zeus   ``log_density(objective)``; ``prior_transform(objective, distributions)``
BlackJAX, NumPyro      ``jax_function(objective)``
nutpie                 ``nutpie_model(objective)``
PyMC                   ``pytensor_op(f, *examples)``
ArviZ                  ``arviz_draws(objective, draws)``
scikit-learn           ``Regressor(...)``, ``Classifier(...)``
=====================  ===========================================================================

What takes a function and its gradient as ``scipy.optimize`` does needs none of these: give it
``objective.fun`` and ``objective.jac``.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {},
    late={
        "numgrad.ecosystem.estimators": "Classifier Regressor",
        "numgrad.ecosystem.minimizers": "ipopt_problem lmfit_jacobian minuit nlopt_problem",
        "numgrad.ecosystem.pytensor_operations": "pytensor_op",
        "numgrad.ecosystem.samplers": "arviz_draws jax_function log_density nutpie_model "
        "prior_transform",
    },
)
