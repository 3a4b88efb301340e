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
# # Fits and inverse problems
#
# You have a model, data, and a solver of SciPy's. numgrad hands the solver what it otherwise
# estimates by finite differences: exact gradients, Jacobians and Hessians, for parameters in any
# containers.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import optimize

import numgrad as ng
from numgrad.cli import nist

# %% [markdown]
# ## Fit a curve
#
# `ng.curve_fit` takes what SciPy's does, and returns more: standard errors, bands of confidence, a
# table, a plot. NIST's problem Gauss1 is two peaks on a decaying baseline, with certified answers.


# %%
def peaks(x, height, decay, first, at1, width1, second, at2, width2):
    """Two bells on a decaying baseline."""
    baseline = height * np.exp(-decay * x)
    bell1 = first * np.exp(-(((x - at1) / width1) ** 2))
    bell2 = second * np.exp(-(((x - at2) / width2) ** 2))
    return baseline + bell1 + bell2


gauss1 = nist.load("Gauss1")
fit = ng.curve_fit(peaks, gauss1.x, gauss1.y, gauss1.starts[0])
fit

# %%
assert np.allclose(fit.parameters, gauss1.certified, rtol=1e-6)
assert np.allclose(fit.standard_errors, gauss1.deviations, rtol=1e-6)

axes = fit.plot(plt.figure(figsize=(7, 3.5)).gca(), level=0.999)
axes.set_xlabel("channel")
axes.set_ylabel("counts")
axes.figure

# %% [markdown]
# The band says where the curve is; with `prediction=True` it says where new data are.

# %%
low, high = fit.confidence_band(prediction=True)
inside = (low < gauss1.y) & (gauss1.y < high)
print(f"{inside.mean():.1%} of the data are inside of the 95 % band of single measurements")
assert 0.9 < inside.mean() < 0.99

# %% [markdown]
# `jit=True` compiles model and Jacobian, once for each model: worth it where a model is fitted again
# and again.

# %%
again = ng.curve_fit(peaks, gauss1.x, gauss1.y, gauss1.starts[1], jit=True)
assert np.allclose(again.parameters, fit.parameters, rtol=1e-5)

# %% [markdown]
# Who stays with SciPy's `curve_fit` gives it `ng.curve_jac(model)`.

# %%
found, covariance = optimize.curve_fit(
    peaks, gauss1.x, gauss1.y, gauss1.starts[1], jac=ng.curve_jac(peaks)
)
assert np.allclose(found, fit.parameters, rtol=1e-4)

# %% [markdown]
# ## Robust least squares, parameters in containers
#
# `ng.least_squares` takes residuals. Parameters come in any nesting of arrays, and the result has
# the same. Here every tenth measurement is far off, which a robust loss bears.

# %%
rng = np.random.default_rng(0)
times = np.linspace(0, 10, 80)
truth = {"rates": np.array([0.2, 2.0]), "heights": np.array([1.0, 2.0])}


def decays(p):
    """A sum of decays."""
    return np.sum(p["heights"] * np.exp(-p["rates"] * times[:, None]), axis=1)


measured = decays(truth) + 0.005 * rng.standard_normal(80)
measured[::10] += 1.0
start = {"rates": np.array([0.1, 1.0]), "heights": np.ones(2)}
plain = ng.least_squares(lambda p: decays(p) - measured, start)
robust = ng.least_squares(lambda p: decays(p) - measured, start, loss="cauchy", f_scale=0.01)
for name, result in {"truth": truth, "plain": plain.x, "robust": robust.x}.items():
    print(f"{name:8}", *(f"{key} {np.round(value, 3)}" for key, value in result.items()))
assert np.allclose(np.sort(robust.x["rates"]), truth["rates"], rtol=0.1)

figure, axes = plt.subplots(figsize=(7, 3))
axes.plot(times, measured, ".", color="0.6", label="data")
axes.plot(times, decays(plain.x), label="plain")
axes.plot(times, decays(robust.x), label="robust")
axes.set_xlabel("time")
axes.set_ylabel("signal")
axes.legend()
figure

# %% [markdown]
# ## Minimize, with second derivatives and constraints
#
# `ng.minimize` takes any of SciPy's methods. Methods of second order get exact products with the
# Hessian: Rosenbrock's valley in 1,000 dimensions.


# %%
def rosenbrock(x):
    """A valley with its minimum at ones."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


valley = ng.minimize(rosenbrock, np.zeros(1000), method="trust-ncg", jit=True)
print(valley.message, valley.nit, "iterations,", valley.nhev, "products")
assert np.allclose(valley.x, 1, atol=1e-6)

# %% [markdown]
# Shares of a portfolio: least variance for a return of at least 7 %, nothing sold short.

# %%
returns = np.array([0.04, 0.06, 0.09, 0.12])
spread = np.array([0.05, 0.09, 0.15, 0.25])
correlation = 0.3 + 0.7 * np.eye(4)
risk = correlation * np.outer(spread, spread)

wanted = [
    ng.constraint(np.sum, 1, 1),
    ng.constraint(lambda shares: shares @ returns, 0.07),
]
shares = ng.minimize(
    lambda shares: shares @ risk @ shares,
    np.full(4, 0.25),
    method="SLSQP",
    bounds=[(0, 1)] * 4,
    constraints=wanted,
    tol=1e-12,
).x
print("shares", np.round(shares, 3), " risk", np.round(np.sqrt(shares @ risk @ shares), 4))
assert abs(shares @ returns - 0.07) < 1e-8

# %% [markdown]
# `ng.objective` gives the same functions to solvers of others.

# %%
valley = ng.objective(rosenbrock, np.zeros(5))
step = np.linalg.solve(valley.hess(valley.x0), -valley.jac(valley.x0))
print("a step of Newton's method:", np.round(step, 3))

# %% [markdown]
# ## Roots and integrals
#
# `ng.root` solves equations with the exact Jacobian; `ng.quad` integrates, with gradients in limits
# and parameters. The median of a distribution is a root of an integral.


# %%
def density(x, shape):
    """Gamma's, of scale 1, not normalised."""
    return x ** (shape - 1) * np.exp(-x)


def share_below(x, shape):
    """The part of the area to the left of x."""
    area = ng.quad(density, 0, np.inf, args=(shape,), epsabs=1e-12)[0]
    return ng.quad(density, 0, x[0], args=(shape,), epsabs=1e-12)[0] / area


median = ng.root(lambda x: share_below(x, 3.0) - 0.5, [2.0]).x[0]
print(f"median {median:.6f}")
assert np.isclose(median, 2.674060313723)
