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
# # Loops of your own
#
# Some programs are loops: over pairs of particles in a neighbour list, over time, over the cells of
# a table. Written with NumPy's functions they need masks and copies; Numba compiles them as they
# are, but gives no derivative. `@ng.kernel` compiles such a function and its derivatives.
#
# Three examples: forces of a crystal, a diffusivity from a measured profile, a soft alignment of
# two series. Then what the compiled gradient looks like, and what is refused.
#
# ## Molecular dynamics with a neighbour list
#
# The energy of a Lennard-Jones crystal, as one writes it for Numba. Integers and arrays of integers
# have no derivative; everything else has.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np

import numgrad as ng

rng = np.random.default_rng(0)


@ng.kernel
def energy(x, neighbours, counts, depth, sigma):
    total = 0.0
    for i in range(x.shape[0]):
        for k in range(counts[i]):
            j = neighbours[i, k]
            r2 = 0.0
            for axis in range(3):
                r2 += (x[i, axis] - x[j, axis]) ** 2
            s6 = (sigma * sigma / r2) ** 3
            total += 4.0 * depth * (s6 * s6 - s6)
    return total


side = 6
x = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3) * 1.12
x = x + 0.05 * rng.normal(size=x.shape)
apart = np.sqrt(((x[:, None] - x) ** 2).sum(-1))
pairs = np.triu(apart < 2.5, 1)
counts = pairs.sum(1)
neighbours = np.zeros((len(x), counts.max()), int)
for i, row in enumerate(pairs):
    neighbours[i, : counts[i]] = np.flatnonzero(row)

value, force = ng.value_and_grad(energy)(x, neighbours, counts, 1.0, 1.0)
print(
    f"{len(x)} atoms, {counts.sum()} pairs: energy {value:.3f}, largest force {abs(force).max():.2f}"
)

# %% [markdown]
# Is it right? A change along a random direction says so. And as the kernel is an operation like any
# other, all transforms apply: here the derivative by a parameter of the force field, and the
# curvature of the energy along a direction.

# %%
direction, h = rng.normal(size=x.shape), 1e-5
ahead = energy(x + h * direction, neighbours, counts, 1.0, 1.0)
behind = energy(x - h * direction, neighbours, counts, 1.0, 1.0)
print(
    "by differences", float(ahead - behind) / (2 * h), "by the gradient", np.sum(force * direction)
)

by_sigma = ng.grad(energy, argnums=4)(x, neighbours, counts, 1.0, 1.0)
curvature = ng.hvp(lambda x: energy(x, neighbours, counts, 1.0, 1.0))(x, direction)
print("by sigma", float(by_sigma), "curvature", float(np.sum(np.asarray(curvature) * direction)))

# %% [markdown]
# ## A stencil in time
#
# Heat flows through a bar whose conductivity varies. Two arrays are exchanged in every step, which
# a kernel may do; what it overwrites is named, and a call returns it and leaves the argument alone. After
# an odd number of exchanges that is still what the array that the caller passed would hold, as in Python.
#
# From the profile after 200 steps we find the conductivity again, as a sum of waves, by gradients through all steps.


# %%
@ng.kernel(writes="u")
def diffuse(u, k, dt, steps):
    new = u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            right = 0.5 * (k[i] + k[i + 1]) * (u[i + 1] - u[i])
            left = 0.5 * (k[i] + k[i - 1]) * (u[i] - u[i - 1])
            new[i] = u[i] + dt * (right - left)
        u, new = new, u


s = np.linspace(0.0, 1.0, 41)
start = np.exp(-((s - 0.4) ** 2) / 0.01) + s
waves = np.array([np.ones(41), *[f(2 * np.pi * k * s) for k in (1, 2) for f in (np.sin, np.cos)]])
true = np.array([0.1, 0.4, 0.0, -0.1, 0.0])
measured = np.asarray(diffuse(start, np.exp(true @ waves), 0.2, 200))


def misfit(c):
    return np.sum((diffuse(start, np.exp(c @ waves), 0.2, 200) - measured) ** 2)


fit = ng.minimize(misfit, np.zeros(5), method="BFGS")
print(f"misfit {float(misfit(np.zeros(5))):.3f} -> {fit.fun:.1e}")
print("logarithm of the conductivity, in waves", np.round(fit.x, 3))

# %% [markdown]
# ## A dynamic programme
#
# Soft dynamic time warping (Cuturi and Blondel, 2017) compares two series that run at different
# speeds. `ng.like("x")` declares an array that the kernel makes: its shape may be written as
# expressions of the parameters.


# %%
@ng.kernel(writes={"cost": ng.like("x", shape=("len(x) + 1", "len(y) + 1"))})
def soft_dtw(x, y, gamma, cost):
    cost[0, 1:] = 1e10
    cost[1:, 0] = 1e10
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1]):
            a, b, c = cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1]
            least = min(a, b, c)
            weights = math.exp((least - a) / gamma) + math.exp((least - b) / gamma)
            weights += math.exp((least - c) / gamma)
            cost[i, j] = (x[i - 1] - y[j - 1]) ** 2 + least - gamma * math.log(weights)


t = np.linspace(0.0, 1.0, 60)
one, other = np.sin(7 * t**2), np.sin(7 * t)


def distance(x, y):
    return soft_dtw(x, y, 0.02)[-1, -1]


print("distance", float(distance(one, other)))
barycentre = ng.minimize(
    lambda z: distance(z, one) + distance(z, other), 0.5 * (one + other), method="L-BFGS-B"
)
print(f"of a series between the two {barycentre.fun:.3f} after {barycentre.nit} iterations")

# %% tags=["gallery"]
figure, axes = plt.subplots(figsize=(7, 2.5))
axes.plot(t, one, label="one")
axes.plot(t, other, label="the other")
axes.plot(t, np.asarray(barycentre.x), label="between them, by its gradient")
axes.set_xlabel("time")
axes.legend()
plt.show()

# %% [markdown]
# A batch is a loop more, outermost: `ng.vmap` runs it in one call.

# %%
many = one + 0.1 * rng.normal(size=(20, 60))
print(np.round(np.asarray(ng.vmap(distance, in_axes=(0, None))(many, other)), 2))

# %% [markdown]
# ## What runs
#
# `source` shows the derivative as a program to read: names ending in `__b` are cotangents. `report`
# says what the gradient keeps of the forward sweep, and which loops run again.

# %%
print(energy.source("backward")[:1200], "...")
print(soft_dtw.report())

# %% [markdown]
# ## What is refused
#
# What has no derivative is refused with its line and what to write instead, when the function is
# decorated or first called with arguments of new dtypes. `help(ng.kernel)` has the language in a
# table.


# %%
def smooth(x):
    x[0] = 0.0  # overwritten, and not named
    return x[1]


def grouped(x):
    parts = {}  # not an array
    parts["first"] = x[0]
    return parts["first"]


def ranked(x):
    return np.sort(x)[0]  # no loop, and no derivative here


for function in (smooth, grouped, ranked):
    try:
        ng.kernel(function)(np.ones(3))
    except ng.errors.NumgradError as error:
        print(error)
