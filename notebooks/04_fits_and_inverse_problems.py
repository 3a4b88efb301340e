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
from scipy import optimize, sparse

import numgrad as ng
from numgrad.cli import nist

# %% [markdown]
# ## Fit a curve
#
# `ng.curve_fit` takes what SciPy's does, and returns more: standard errors, bands of confidence, a
# report, a plot. NIST's problem Gauss1 is two peaks on a decaying baseline, with certified answers.


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

# %% tags=["gallery"]
assert np.allclose(fit.parameters, gauss1.certified, rtol=1e-6)
assert np.allclose(fit.standard_errors, gauss1.deviations, rtol=1e-6)

axes = fit.plot(plt.figure(figsize=(7, 3.5)).gca(), level=0.999)
axes.set_xlabel("channel")
axes.set_ylabel("counts")
plt.show()

# %% [markdown]
# The band says where the curve is; with `prediction=True` it says where new data are.

# %%
low, high = fit.confidence_band(prediction=True)
inside = (low < gauss1.y) & (gauss1.y < high)
print(f"{inside.mean():.1%} of the data are inside of the 95 % band of single measurements")
assert 0.9 < inside.mean() < 0.99

# %% [markdown]
# ## Parameters by name
#
# Parameters are started, bounded, fixed (`fixed={"decay": 0.01}`) and tied to others by name. A tie is
# an expression or a function of parameters; derivatives and errors go through it. Have the peaks one
# width? Then one parameter less explains the data, and AIC and BIC say whether as well.

# %%
start = dict(zip(fit.names, gauss1.starts[0], strict=True))
one_width = ng.curve_fit(
    peaks, gauss1.x, gauss1.y, start,
    tie={"width2": "width1"}, bounds={"decay": (0, None)},
)  # fmt: skip
one_width

# %%
print(f"AIC {fit.aic:.1f} with two widths, {one_width.aic:.1f} with one")
assert one_width.parameters["width2"] == one_width.parameters["width1"]
assert fit.aic < one_width.aic

# %% [markdown]
# Standard errors take the model to be linear near the estimate. `profile` does not: an end of its
# interval is where the best fit with that parameter held there is worse by what the level allows. Of
# few data on a rate of growth it is not symmetric, and a bound may end it. `contour` does the same
# for two parameters, `bootstrap` fits samples that are drawn anew.

# %% tags=["gallery"]
days = np.array([1.0, 2, 3, 5, 7, 10])  # Bates and Watts, data on biochemical oxygen demand
demand = np.array([8.3, 10.3, 19.0, 16.0, 15.6, 19.8])


def saturation(t, limit, rate):
    """What approaches a limit."""
    return limit * (1 - np.exp(-rate * t))


bod = ng.curve_fit(saturation, days, demand, {"limit": 20.0, "rate": 0.5})
low, high = bod.profile("rate", level=0.8)
drawn = bod.bootstrap(300, "parametric", seed=0)
print(f"rate {bod.parameters['rate']:.3f} +- {bod.standard_errors['rate']:.3f}")
print(f"80 % interval by profile {low:.3f} to {high:.3f}")
print("by errors                ", *bod.confidence_intervals(0.8)[1].round(3))
print("by bootstrap             ", *drawn.confidence_intervals(0.8)[1].round(3))
assert high - bod.parameters["rate"] > bod.parameters["rate"] - low

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
bod.plot(left, level=0.8)
bod.plot_contour("limit", "rate", right, levels=[0.5, 0.8], points=60)
plt.show()

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
plt.show()

# %% [markdown]
# ## Interpolation inside a model
#
# `ng.interpolate` has SciPy's splines and tables, with gradients in data and places. A line whose
# shape was measured once is found again, moved and stretched, on a background of which nothing is
# known but that it is smooth: a spline through six values that are fitted as well.

# %%
measured_at = np.linspace(-3, 3, 25)
shape = np.exp(-(measured_at**2)) * (1 + 0.5 * np.sin(3 * measured_at))
line = ng.interpolate.CubicSpline(measured_at, shape)
knots, channels = np.linspace(0, 20, 6), np.linspace(0, 20, 150)


def spectrum(p):
    """The line and the background under it."""
    inside = np.clip((channels - p["shift"]) / p["width"], -3, 3)
    background = ng.interpolate.CubicSpline(knots, p["background"], bc_type="natural")
    return p["height"] * line(inside) + background(channels)


truth = {"shift": 8.0, "width": 1.5, "height": 3.0, "background": [1.0, 1.4, 1.3, 0.9, 0.8, 1.1]}
counted = spectrum(truth).numpy() + 0.05 * np.random.default_rng(1).standard_normal(150)
guess = {"shift": 7.5, "width": 1.0, "height": 2.0, "background": np.ones(6)}
fitted = ng.least_squares(lambda p: spectrum(p) - counted, guess, jit=True).x
print("shift, width, height", *(np.round(fitted[k], 3) for k in ("shift", "width", "height")))
assert np.allclose(fitted["shift"], 8.0, atol=0.02)

figure, axes = plt.subplots(figsize=(7, 3))
axes.plot(channels, counted, ".", color="0.6", label="data")
axes.plot(channels, spectrum(fitted), label="fit")
axes.plot(knots, fitted["background"], "o", label="values of the background")
axes.set_xlabel("channel")
axes.legend()
plt.show()

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

# %% [markdown]
# ## Differential equations
#
# `ng.solve_ivp` is SciPy's, by any of its methods, and differentiates the exact solution: by the
# equations of sensitivities or of the adjoint. Predators and prey: find the rates that explain noisy
# counts of both, and where both began.

# %% tags=["gallery"]
times = np.linspace(0, 15, 40)


def lotka_volterra(t, y, rates):
    """How prey and predators grow."""
    prey, predators = y
    return [
        rates[0] * prey - rates[1] * prey * predators,
        rates[2] * prey * predators - rates[3] * predators,
    ]


def populations(p):
    """Both at the times of the counts."""
    rates, start = p["rates"], p["start"]
    solution = ng.solve_ivp(
        lotka_volterra, (0, 15), start, t_eval=times, args=(rates,), rtol=1e-6, jit=True
    )
    return solution.y


truth = {"rates": np.array([1.1, 0.4, 0.1, 0.4]), "start": np.array([10.0, 5.0])}
counts = populations(truth).numpy() * (1 + 0.03 * rng.standard_normal((2, 40)))
guess = {"rates": np.array([1.0, 0.5, 0.12, 0.45]), "start": np.array([9.0, 6.0])}
found = ng.least_squares(lambda p: populations(p) - counts, guess, x_scale="jac").x
print("rates", np.round(found["rates"], 3), " start", np.round(found["start"], 2))
assert np.allclose(found["rates"], truth["rates"], rtol=0.05)

figure, axes = plt.subplots(figsize=(7, 3))
for label, seen, fitted, colour in zip(
    ("prey", "predators"), counts, populations(found).numpy(), ("C0", "C1"), strict=True
):
    axes.plot(times, seen, ".", color=colour)
    axes.plot(times, fitted, color=colour, label=label)
axes.set_xlabel("time")
axes.set_ylabel("population")
axes.legend()
plt.show()

# %% [markdown]
# Robertson's chemistry is stiff: rates differ by nine powers of ten. `Radau`, `BDF` and `LSODA` are
# given exact Jacobians. Which reaction decides what is left of the first substance?


# %%
def robertson(t, y, k):
    """Three substances, three reactions."""
    flows = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
    return [flows[2] - flows[0], flows[0] - flows[1] - flows[2], flows[1]]


def left(log):
    """What is left after 40 s, by the logarithms of the rates."""
    found = ng.solve_ivp(
        robertson, (0, 40), [1.0, 0.0, 0.0], "Radau", args=(np.exp(log),), rtol=1e-6, atol=1e-10
    )
    return found.y[0, -1]


k = np.array([0.04, 3e7, 1e4])
share, slopes = ng.value_and_grad(left)(np.log(k))
print(f"{share:.4f} are left; slopes by the logarithms of the rates: {np.round(slopes, 4)}")
assert np.isclose(share, 0.71582707, rtol=1e-5)

# %% [markdown]
# All rates times 1.01 is time times 1.01. So the slopes sum up to that by the logarithm of time,
# which the gradient by the end of the span is.

# %%
by_time = ng.grad(
    lambda end: ng.solve_ivp(
        robertson, (0, end), [1.0, 0.0, 0.0], "Radau", args=(k,), rtol=1e-6, atol=1e-10
    ).y[0, -1]
)(40.0)
assert np.isclose(slopes.sum(), 40 * by_time, rtol=1e-3)

# %% [markdown]
# ## Networks and differential equations: a PINN and a neural ODE
#
# A *physics-informed neural network* (PINN) is a network whose parameters make the residuals of a
# differential equation small at collocation points: `ng.vmap(ng.grad(ng.grad(u)))` is its second
# derivative there (the Laplacian, in more dimensions the trace of `ng.hessian`). Here
# $u'' = -\pi^2 \sin \pi x$ with $u(0) = u(1) = 0$, by Levenberg-Marquardt.


# %%
def network(p, x):
    """A layer of tanh, of one number."""
    return np.tanh(x * p["w"] + p["b"]) @ p["v"]


collocation = np.linspace(0, 1, 40)


def physics(p):
    """Residuals of the equation at collocation points, and of the values at both ends."""

    def u(x):
        return network(p, x)

    bend = ng.vmap(ng.grad(ng.grad(u)))(collocation)
    equation = bend + np.pi**2 * np.sin(np.pi * collocation)
    return np.concatenate([equation, [10 * u(0.0), 10 * u(1.0)]])


draw = np.random.default_rng(0).normal
weights = {"w": 3 * draw(size=12), "b": draw(size=12), "v": 0.1 * draw(size=12)}
solution = ng.least_squares(physics, weights, jit=True, max_nfev=200)
places = np.linspace(0, 1, 101)
values = np.array([network(solution.x, x) for x in places])
error = np.abs(values - np.sin(np.pi * places)).max()
print(f"{solution.nfev} evaluations, largest error {error:.1e}")
assert error < 1e-4

# %% [markdown]
# A *neural ODE* has a network for its right-hand side; `ng.odeint` compiles with it, and gradients go
# through the solver. Twenty-six states of a damped spiral are enough for a field that continues it.


# %%
def spiral(y, t):
    """The field that the network does not know."""
    return np.stack([-0.1 * y[0] + 2.0 * y[1], -2.0 * y[0] - 0.1 * y[1]])


def field(y, t, p):
    """A network of the state."""
    return np.tanh(y @ p["w"] + p["b"]) @ p["v"]


moments, first = np.linspace(0, 5, 26), np.array([2.0, 0.0])
orbit = ng.odeint(spiral, first, moments)


def distance(p):
    """Mean square of what the network's orbit differs by."""
    return np.mean((ng.odeint(field, first, moments, p, method="rk4") - orbit) ** 2)


untrained = {"w": draw(size=(2, 16)), "b": np.zeros(16), "v": 0.1 * draw(size=(16, 2))}
trained = ng.minimize(distance, untrained, options={"maxiter": 300}, jit=True)
print(f"mean square {distance(untrained):.2f} before, {trained.fun:.1e} after {trained.nit} steps")
assert trained.fun < 1e-3

# %% tags=["gallery"]
later = np.linspace(0, 8, 161)
figure, (left_axes, right_axes) = plt.subplots(1, 2, figsize=(8, 3))
left_axes.plot(places, values)
left_axes.plot(collocation, np.sin(np.pi * collocation), ".", markersize=3)
left_axes.set(xlabel="x", title="PINN, and the solution")
right_axes.plot(*ng.odeint(field, first, later, trained.x).T)
right_axes.plot(*orbit.T, ".")
right_axes.set(title="neural ODE, and what it was fitted to")
plt.show()

# %% [markdown]
# ## An inverse problem
#
# Heat flows through a plate of unknown conductivity, heated evenly, with cold edges: solve
# $-\nabla\cdot(c\nabla u) = 1$ on 64 x 64 cells. The temperature was measured, with noise, in every
# cell; which conductivity explains it? 4,096 unknowns, and each gradient costs one more solution of
# the sparse system, by factors that are there already.

# %%
cells = 64
number = np.arange(cells**2).reshape(cells, cells)
sides = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
pairs = [(a.ravel(), b.ravel()) for a, b in sides]
rows = np.concatenate([number.ravel(), *[x for a, b in pairs for x in (a, b)]])
columns = np.concatenate([number.ravel(), *[x for a, b in pairs for x in (b, a)]])
places = ng.sparse.pattern(sparse.coo_array((np.ones(len(rows)), (rows, columns))))


def temperature(log):
    """The temperature of each cell, by the logarithms of conductivities."""
    c = np.exp(log).reshape(cells, cells)
    across, along = (c[:, :-1] + c[:, 1:]) / 2, (c[:-1] + c[1:]) / 2
    total = (
        np.concatenate([2 * c[:, :1], across], axis=1)
        + np.concatenate([across, 2 * c[:, -1:]], axis=1)
        + np.concatenate([2 * c[:1], along])
        + np.concatenate([along, 2 * c[-1:]])
    )
    across, along = across.reshape(-1), along.reshape(-1)
    elements = np.concatenate([total.reshape(-1), -across, -across, -along, -along])
    return ng.sparse.spsolve(elements, places, np.full(cells**2, 1.0 / cells**2))


x, y = np.meshgrid(*[(np.arange(cells) + 0.5) / cells] * 2)
truth = np.where((x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.04, 1.0, 0.0)  # a disk that conducts better
exact = temperature(truth.ravel())
sigma = 0.002 * exact.max()
seen = exact + sigma * rng.standard_normal(cells**2)


def misfit(log):
    """Squares of residuals, and a little for differences of neighbours."""
    field = log.reshape(cells, cells)
    rough = np.sum((field[1:] - field[:-1]) ** 2) + np.sum((field[:, 1:] - field[:, :-1]) ** 2)
    return np.sum(((temperature(log) - seen) / sigma) ** 2) / 2 + rough


result = ng.minimize(
    misfit, np.zeros(cells**2), method="L-BFGS-B", options={"maxiter": 150}, jit=True
)
disk = truth == 1
found = result.x.reshape(cells, cells)
print(
    f"{result.nfev} evaluations; mean in the disk {found[disk].mean():.2f}, around it "
    f"{found[~disk].mean():.2f}"
)
assert found[disk].mean() - found[~disk].mean() > 0.5

figure, pictures = plt.subplots(1, 3, figsize=(9, 2.8))
for axes, picture, title in zip(
    pictures,
    (seen.reshape(cells, cells), truth, found),
    ("temperature", "log c: truth", "log c: found"),
    strict=True,
):
    figure.colorbar(axes.imshow(picture, origin="lower"), ax=axes)
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
