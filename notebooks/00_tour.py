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
# # A tour of numgrad
#
# NumPy code, with gradients. We differentiate functions, fit a curve to noisy data, look at how
# sure the fit is, follow a gradient through the complex plane, and see what was compiled on the
# way.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import numgrad as ng

# %% [markdown]
# ## Tensors remember
#
# A Tensor that requires grad records the operations applied to it. `backward()` goes through the
# record in reverse and leaves the gradient in `.grad`.

# %%
x = ng.tensor(np.linspace(-4.0, 4.0, 201), requires_grad=True)
y = np.sin(3 * x) * np.exp(-(x**2) / 4)  # NumPy's own functions
y.sum().backward()

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(x.detach(), y.detach(), label="f")
ax.plot(x.detach(), x.grad, label="f'")
ax.legend()
plt.show()

# %% [markdown]
# The graph of operations is there to look at, and gradients can be differentiated again.

# %%
print(y.grad_fn, y.grad_fn.next_functions)

t = ng.tensor(2.0, requires_grad=True)
derivative = t**5
for order in range(1, 6):
    (derivative,) = ng.autograd.grad(derivative, t, create_graph=True)
    print(order, derivative.item())

# %% [markdown]
# ## Functions of functions
#
# `ng.grad`, `ng.value_and_grad`, `ng.jacobian` and `ng.hessian` take a function of arrays and
# return a function of arrays, which is what SciPy asks for. Here: a decaying oscillation,
# measured with noise.

# %%
rng = np.random.default_rng(7)
time = np.linspace(0.0, 10.0, 120)
truth = np.array([2.0, 0.25, 3.0])


def model(p, time):
    """Amplitude, decay rate and angular frequency of a damped oscillation."""
    return p[0] * np.exp(-p[1] * time) * np.cos(p[2] * time)


measured = model(truth, time) + 0.15 * rng.normal(size=time.size)


def loss(p):
    """Half the sum of squares of the residuals, in units of the noise."""
    return 0.5 * np.sum(((model(p, time) - measured) / 0.15) ** 2)


start = np.array([1.0, 0.1, 2.9])
fit = minimize(ng.value_and_grad(loss), start, jac=True, method="BFGS")
print(fit.x, fit.nit, "iterations")

# %% [markdown]
# The inverse of the exact Hessian at the minimum is the covariance of the parameters; with the
# Jacobian of the model it gives the uncertainty of the curve.

# %% tags=["gallery"]
covariance = np.linalg.inv(ng.hessian(loss)(fit.x))
for name, value, sigma, true in zip(
    ("amplitude", "decay", "frequency"), fit.x, np.sqrt(np.diag(covariance)), truth, strict=True
):
    print(f"{name:>10} {value:.4f} +- {sigma:.4f}   (true {true})")

slope = ng.jacobian(model)(fit.x, time)
sigma = np.sqrt(np.einsum("ij,jk,ik->i", slope, covariance, slope))

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(time, measured, ".", color="0.6")
ax.plot(time, model(fit.x, time))
ax.fill_between(time, model(fit.x, time) - 2 * sigma, model(fit.x, time) + 2 * sigma, alpha=0.3)
assert np.allclose(fit.x, truth, atol=0.15)

# %% [markdown]
# Parameters may be a nesting of dicts, tuples and lists: the gradient has the same form. A small
# network, by plain gradient descent:

# %%
grid = np.linspace(-1.0, 1.0, 80)[:, None]
target = np.abs(grid) - 0.5
weights = {
    "hidden": (rng.normal(size=(1, 16)), rng.normal(size=16)),
    "out": (rng.normal(size=(16, 1)) / 4, np.zeros(1)),
}


def network(w, x):
    """One hidden layer of 16 units."""
    hidden = np.tanh(x @ w["hidden"][0] + w["hidden"][1])
    return hidden @ w["out"][0] + w["out"][1]


step = ng.value_and_grad(lambda w: np.mean((network(w, grid) - target) ** 2))
history = []
for _ in range(500):
    value, gradient = step(weights)
    history.append(value)
    weights = {
        layer: tuple(p - 0.1 * g for p, g in zip(weights[layer], gradient[layer], strict=True))
        for layer in weights
    }
print(f"mean square error {history[0]:.3f} -> {history[-1]:.5f}")
assert history[-1] < 0.1 * history[0]

# %% [markdown]
# ## Complex numbers
#
# The gradient of a real function of complex numbers is `dL/dx + i dL/dy`: an arrow in the plane
# that points uphill. Here over the modulus of a polynomial, whose zeros the arrows flee.

# %%
axis = np.linspace(-1.6, 1.6, 22)
z = ng.tensor(axis[None, :] + 1j * axis[:, None], requires_grad=True)
modulus = np.abs(z**3 - 1)
np.log(modulus).sum().backward()
arrows = z.grad.numpy() / np.abs(z.grad.numpy())

fig, ax = plt.subplots(figsize=(4, 4))
ax.contourf(axis, axis, np.log(modulus.detach().numpy()), 20, cmap="Blues")
ax.quiver(axis, axis, arrows.real, arrows.imag)
ax.set_aspect("equal")
plt.show()

# %% [markdown]
# ## No gradient is lost silently
#
# A NumPy function without an operation behind it raises when a gradient is at stake, and works on
# plain Tensors.

# %%
try:
    np.trim_zeros(x)
except ng.NumgradError as error:
    print(error)
print(np.trim_zeros(x.detach()))

# %% [markdown]
# ## What was compiled
#
# Each operation is a formula and a gradient formula, turned into kernels when first needed and
# kept on disk. `ng.ops` shows all of it, down to the assembly.

# %%
print(ng.ops["tanh"])

# %%
print(ng.ops["tanh"].source)

# %% [markdown]
# The next notebook adds operations of our own.
