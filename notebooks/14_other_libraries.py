# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # With other libraries
#
# Optimizers, samplers and estimators that you use already take exact gradients from numgrad. A
# function is described once, with the names and shapes of its parameters, and all libraries see
# that: what takes a function and its gradient as SciPy does takes it as it is, and for what others
# want besides, {doc}`ng.ecosystem <generated/reference/numgrad.ecosystem->` has adapters.
#
# `python -m pip install 'numgrad-jit[ecosystem]'` installs the libraries, apart from PyMC, which pins
# an older Numba, and cyipopt, which is built from source with Ipopt (`apt install
# coinor-libipopt-dev gfortran`, or conda-forge).

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import optimize

import numgrad as ng

# %% [markdown]
# ## A function, described once
#
# Counts that decay in time above a constant background, with a negative log likelihood that is
# Poisson's. Parameters that are positive are given by their logarithms, as samplers prefer.

# %%
rng = np.random.default_rng(0)
time = np.linspace(0.0, 10.0, 40)


def rate(p, time):
    """Expected counts."""
    return np.exp(p["log_amplitude"] - np.exp(p["log_decay"]) * time) + np.exp(p["log_background"])


start = {"log_amplitude": 3.0, "log_decay": -1.0, "log_background": 1.0}
counts = rng.poisson(rate({"log_amplitude": 3.4, "log_decay": -0.7, "log_background": 1.2}, time))


def cost(p):
    """The negative log likelihood, up to a constant."""
    expected = rate(p, time)
    return np.sum(expected - counts * np.log(expected))


def log_density(p):
    """The log posterior, with wide Gaussian priors."""
    return -cost(p) - 0.5 * sum((value / 5.0) ** 2 for value in p.values())


misfit = ng.objective(cost, start, jit=True)
posterior = ng.objective(log_density, start, jit=True)
print(misfit.fun_and_jac(misfit.x0))

# %% [markdown]
# `fun`, `jac`, `hess`, `hessp` and `fun_and_jac` take vectors; `ravel` and `unravel` go between these
# and the dictionary. That is all that SciPy needs, and whatever calls functions as it does:

# %%
result = optimize.minimize(misfit.fun, misfit.x0, jac=misfit.jac)
best = misfit.unravel(result.x)
print({name: round(float(value), 4) for name, value in best.items()}, result.nfev, "evaluations")

# %% [markdown]
# ## matplotlib
#
# Tensors are drawn as arrays are. One that requires grad is not, since the picture would have no
# gradient: the error says so, and `.detach()` is the remedy.

# %% tags=["gallery"]
expected = rate({name: ng.tensor(value) for name, value in best.items()}, time)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(time, counts, ".", label="counts")
axes.plot(time, expected, label="fit")  # a Tensor
axes.set_xlabel("time")
axes.legend()
plt.show()

# %%
try:
    axes.plot(time, expected.requires_grad_())
except ng.NumgradRuntimeError as error:
    print(error)

# %% [markdown]
# ## pandas and xarray
#
# Parameters may be a Series: the function finds them by label, and gradients and solutions are
# Series. Arrays of xarray are labelled in the same way. What is computed of both Series and Tensors
# must have the same labels, in the same order: nothing is aligned silently.

# %%
parameters = pd.Series(start)
table = pd.DataFrame({"start": parameters, "gradient": ng.grad(cost)(parameters)})
table["best"] = ng.minimize(cost, parameters).x
print(table.round(4))

# %% [markdown]
# ## scikit-learn
#
# `ng.ecosystem.Regressor` and `Classifier` are estimators for any model and loss; without a model
# they are linear. Here a Poisson regression, with a network beside it, in a pipeline and a search.

# %%
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X = rng.normal(size=(300, 3))
y = rng.poisson(np.exp(0.3 * X[:, 0] - 0.5 * X[:, 1] ** 2 + 1.0))


def network(p, X):
    """A layer of eight hidden units."""
    return np.tanh(X @ p["w"] + p["b"]) @ p["v"] + p["c"]


def weights(n_features, n_outputs):
    """Random weights to start from."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(n_features, 8)), rng.normal(size=8)
    return {"w": hidden[0], "b": np.zeros(8), "v": 0.1 * hidden[1], "c": 0.0}


linear = ng.ecosystem.Regressor(loss="poisson", alpha=1e-3)
deep = ng.ecosystem.Regressor(network, weights, loss="poisson", jit=True, max_iter=50)
search = GridSearchCV(
    make_pipeline(StandardScaler(), deep),
    {"regressor__alpha": [1e-3, 1e-1]},
    cv=3,
    error_score="raise",
)
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # fifty iterations are enough here
    search.fit(X, y)
print("linear:", round(linear.fit(X, y).score(X, y), 2))
print("network:", round(search.score(X, y), 2), search.best_params_)

# %% [markdown]
# ## iminuit
#
# Names, gradient and the definition of errors come with the cost:
#
# ```python
# m = ng.ecosystem.minuit(misfit, errordef=0.5)  # of a negative log likelihood
# m.migrad()
# m.minos("log_decay")
# print(m.params)
# assert m.valid and abs(m.values["log_decay"] - best["log_decay"]) < 1e-2
# ```
#
# ## lmfit
#
# The Jacobian that lmfit takes as `Dfun`, of a model or a function, with parameters that are
# fixed, bounded and tied by expressions as lmfit has them:
#
# ```python
# import lmfit
#
# def decay(time, amplitude, decay, background):
#     return amplitude * np.exp(-decay * time) + background
#
# model = lmfit.Model(decay)
# params = model.make_params(amplitude=20, decay={"value": 0.3, "min": 0}, background=3)
# exact = {"Dfun": ng.ecosystem.lmfit_jacobian(model)}
# fit = model.fit(counts, params, time=time, fit_kws=exact)
# print(fit.fit_report())
# assert fit.success and fit.nfev < 20
# ```
#
# ## NLopt and Ipopt
#
# Constraints and bounds are those of `ng.minimize`; Ipopt gets the elements of the Jacobian and of
# the Hessian of the Lagrangian that are not zero:
#
# ```python
# less = ng.constraint(lambda p: p["log_amplitude"] + p["log_background"], -np.inf, 4.0)
# opt = ng.ecosystem.nlopt_problem(misfit, "LD_SLSQP", less, {"log_decay": (-2, 0)})
# opt.set_xtol_rel(1e-8)
# x = opt.optimize(misfit.x0)
# assert abs(x[0] + x[2] - 4.0) < 1e-6
# ```
#
# ```python
# problem = ng.ecosystem.ipopt_problem(misfit, less, {"log_decay": (-2, 0)})
# problem.add_option("print_level", 0)
# x, info = problem.solve(misfit.x0)
# print(misfit.unravel(x), info["status_msg"])
# ```
#
# ## emcee, dynesty and ArviZ
#
# Samplers without gradients get a compiled log density, emcee all walkers in one call:
#
# ```python
# import emcee
#
# sampler = emcee.EnsembleSampler(
#     32, 3, ng.ecosystem.log_density(posterior), vectorize=True
# )
# walkers = result.x + 0.01 * rng.normal(size=(32, 3))
# sampler.run_mcmc(walkers, 500)
# chains = sampler.get_chain(discard=100).swapaxes(0, 1)
# distance = np.abs(chains.mean((0, 1)) - result.x)
# assert np.all(distance < 3 * chains.std((0, 1)))
# ```
#
# ```python
# import arviz
#
# draws = rng.normal(result.x, 0.1, (4, 100, 3))  # those of a sampler
# data = ng.ecosystem.arviz_draws(posterior, draws)
# print(arviz.summary(data))
# ```
#
# ```python
# import dynesty
# from scipy import stats
#
# likelihood = ng.objective(lambda p: -cost(p), start, jit=True)
# prior = ng.ecosystem.prior_transform(
#     likelihood, {name: stats.norm(0, 5) for name in start}
# )
# log_likelihood = ng.ecosystem.log_density(likelihood)
# nested = dynesty.NestedSampler(log_likelihood, prior, 3, nlive=50)
# nested.run_nested(print_progress=False, maxiter=200)
# ```
#
# ## nutpie and BlackJAX
#
# The no-U-turn sampler, of a log density and its gradient:
#
# ```python
# import nutpie
#
# model = ng.ecosystem.nutpie_model(posterior)
# trace = nutpie.sample(model, draws=300, tune=300, chains=2, progress_bar=False)
# print(trace.posterior["log_decay"].mean())
# ```
#
# ```python
# import blackjax
# import jax
#
# function = ng.ecosystem.jax_function(posterior)  # has jax.grad, jit and vmap
# window = blackjax.window_adaptation(blackjax.nuts, function)
# adapted, _ = window.run(jax.random.key(0), start, 200)
# kernel = jax.jit(blackjax.nuts(function, **adapted.parameters).step)
# state, _ = kernel(jax.random.key(1), adapted.state)
# ```
#
# ## PyMC
#
# A function becomes an operation of a model, with its gradient:
#
# ```python
# import pymc as pm
#
# def log_likelihood(log_amplitude, log_decay, log_background):
#     p = {"log_amplitude": log_amplitude, "log_decay": log_decay}
#     return -cost(p | {"log_background": log_background})
#
# likelihood = ng.ecosystem.pytensor_op(ng.jit(log_likelihood), 0.0, 0.0, 0.0)
# with pm.Model() as model:
#     variables = [pm.Normal(name, 0, 5) for name in start]
#     pm.Potential("likelihood", likelihood(*variables))
#     trace = pm.sample(200, tune=200, chains=2, cores=1, progressbar=False)
# ```
