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
# # Adding operations
#
# Three ways to teach numgrad something new: a formula, an `njit` function of one element, and an
# `njit` function of whole arrays. Each gets broadcasting, dtypes, higher derivatives and an entry
# in `ng.ops` where its family can give them.
#
# No derivative is silently zero. Of a formula it is derived where no rule says it; of an `njit`
# function it is not known, so a gradient with respect to an input without a rule raises, unless
# `no_derivative` declares that the input counts as a constant.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from numba import njit
from scipy.optimize import minimize

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

# %% [markdown]
# ## A formula
#
# The body says what one element of the result is, and that is enough: the derivative follows from
# it, of any order.


# %%
@ng.elementwise()
def growth(a, b):
    """Exponential growth, ``a * exp(b)``."""
    return a * np.exp(b)


print(ng.grad(growth, (0, 1))(2.0, 1.0), "with", 2 * math.e)

# %% [markdown]
# A rule of your own is shorter where the derivative has a simple form: `vjp` gives, for each input
# that you name, the gradient `g` of the result times the derivative. **What a gradient formula
# names is what the tape keeps**: `y` is the result, `x` the input. The derivative of this one needs
# `y` alone, so `x` can be forgotten; a derived one would keep all inputs.


# %%
@ng.elementwise()
def gudermannian(x):
    """Gudermannian function, ``2 arctan(tanh(x / 2))``."""
    return 2 * np.arctan(np.tanh(0.5 * x))


gudermannian.vjp(x=lambda g, y: g * np.cos(y))

# %%
x = ng.tensor(np.linspace(-5.0, 5.0, 101), requires_grad=True)
y = gudermannian(x)
y.sum().backward()

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(x.detach(), y.detach(), label="gd")
ax.plot(x.detach(), x.grad, label="gd'")
ax.legend()
plt.show()

# %% [markdown]
# Never trust a gradient formula unchecked: `gradcheck` compares it with central differences, and
# `gradgradcheck` does the same for its own gradient.

# %%
points = ng.tensor([-1.5, -0.2, 0.0, 0.7], requires_grad=True)
assert gradcheck(gudermannian, points)
assert gradgradcheck(gudermannian, points)

# %% [markdown]
# A wrong formula is caught, with both Jacobians in the message:


# %%
@ng.elementwise()
def wrong_square(x):
    """A square whose gradient forgets the 2."""
    return x * x


wrong_square.vjp(x=lambda g, x: g * x)

try:
    gradcheck(wrong_square, points)
except ng.GradcheckError as error:
    print(error)

# %% [markdown]
# From the two formulas numgrad generated kernels: here is what it wrote, and how much of the
# machine code works on several numbers at a time (packed instructions end in `pd` on x86).

# %%
print(ng.ops["gudermannian"])
print(ng.ops["gudermannian"].source)
instructions = ng.ops["gudermannian"].asm().split()
print(sum(word.endswith("pd") for word in instructions), "packed instructions")

# %% [markdown]
# Broadcasting, strides, float32, and Tensor methods come with the declaration.

# %%
single = ng.tensor(np.ones((3, 1)), dtype=np.float32) * ng.tensor(np.arange(4), dtype=np.float32)
print(single.gudermannian().dtype, gudermannian(single[:, ::2]).shape)

# %% [markdown]
# ## An `njit` function of one element
#
# Some functions are written with branches and loops rather than a formula. Newton's method for
# the Kepler equation `E - e sin(E) = M`, say: mean anomaly and eccentricity in, eccentric anomaly
# out. Nothing is derived from such code: without a rule a gradient raises.


# %%
@njit
def solve_kepler(m, e):
    """Eccentric anomaly by Newton's method, one element."""
    anomaly = m + e * math.sin(m)
    for _ in range(20):
        step = (anomaly - e * math.sin(anomaly) - m) / (1 - e * math.cos(anomaly))
        anomaly -= step
        if abs(step) < 1e-15:
            break
    return anomaly


@ng.elementwise(kernel=solve_kepler)
def kepler(m, e):
    """Eccentric anomaly of mean anomaly ``m`` and eccentricity ``e``."""


try:
    ng.grad(kepler)(1.0, 0.3)
except NotImplementedError as error:
    print(error)

# %% [markdown]
# The rule follows from the equation itself and knows nothing of Newton. An input that is a constant
# by nature, as a number of iterations is, would get `kepler.no_derivative("iterations")` in its
# place.

# %%
kepler.vjp(
    m=lambda g, e, y: g / (1 - e * np.cos(y)),
    e=lambda g, e, y: g * np.sin(y) / (1 - e * np.cos(y)),
)

# %% tags=["gallery"]
mean = ng.tensor(np.linspace(0.2, 6.0, 5), requires_grad=True)
eccentricity = ng.tensor([[0.1], [0.6]], requires_grad=True)  # broadcasts to (2, 5)
assert gradcheck(kepler, (mean, eccentricity))
assert gradgradcheck(kepler, (mean, eccentricity))

m = np.linspace(0.0, 2 * np.pi, 200)
fig, ax = plt.subplots(figsize=(6, 3))
for e in (0.0, 0.5, 0.9):
    ax.plot(m, kepler(m, e), label=f"e = {e}")
ax.legend()
plt.show()

# %% [markdown]
# ## An `njit` function of arrays
#
# A recursive filter, `y[i] = x[i] + a y[i - 1]`: each element depends on all before it. A
# `primitive` takes and returns whole ndarrays. Its gradient is the same filter run backwards in
# time; the one for the coefficient correlates that with the output, one step late.


# %%
@njit
def run_filter(x, a):
    """The filter over a 1-d array."""
    y = np.empty_like(x)
    state = 0.0
    for i in range(x.size):
        state = x[i] + a * state
        y[i] = state
    return y


@ng.primitive()
def recursive_filter(x, a):
    """The sequence ``y[i] = x[i] + a * y[i - 1]`` of a 1-d array."""
    return run_filter(x, a.item())


def reversed_filter(g, a):
    """The filter, backwards in time."""
    return np.flip(recursive_filter(np.flip(g), a))


recursive_filter.vjp(
    x=lambda g, a: reversed_filter(g, a),
    a=lambda g, a, y: np.sum(reversed_filter(g, a)[1:] * y[:-1]),
)

# %%
rng = np.random.default_rng(1)
signal = ng.tensor(rng.normal(size=8), requires_grad=True)
coefficient = ng.tensor(0.8, requires_grad=True)
assert gradcheck(recursive_filter, (signal, coefficient))
assert gradgradcheck(recursive_filter, (signal, coefficient))

# %% [markdown]
# The formulas call the operation itself and other operations, so they can be differentiated
# again. With it we recover the coefficient of a filter from its output alone:

# %%
noise = rng.normal(size=400)
observed = run_filter(noise, 0.7) + 0.05 * rng.normal(size=400)


def misfit(a):
    """Mean square of what the filter leaves unexplained."""
    return np.mean((recursive_filter(noise, a) - observed) ** 2)


fit = minimize(ng.value_and_grad(misfit), 0.1, jac=True, bounds=[(-0.99, 0.99)])
print("coefficient", fit.x, "after", fit.nit, "iterations")
assert abs(fit.x[0] - 0.7) < 0.02

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(observed[:80], ".", color="0.6")
ax.plot(run_filter(noise, fit.x[0])[:80], linewidth=1)
plt.show()

# %%
print(ng.ops["recursive_filter"])
