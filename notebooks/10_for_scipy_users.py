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
# # For SciPy users
#
# Your functions stay as they are: NumPy in, NumPy out. numgrad adds the derivative, which
# `scipy.optimize`, `scipy.integrate` and others otherwise estimate by finite differences.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import optimize, special

import numgrad as ng

# %% [markdown]
# ## Gradients of functions
#
# `ng.grad`, `ng.value_and_grad`, `ng.jacobian` and `ng.hessian` turn a function of arrays into
# the function that computes derivatives. ndarrays in, ndarrays out: what SciPy's solvers expect.


# %%
def rosenbrock(x):
    """A valley with its minimum at ones."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


start = np.zeros(10)
exact = optimize.minimize(ng.value_and_grad(rosenbrock), start, jac=True)
estimated = optimize.minimize(rosenbrock, start)
print("calls with gradients:", exact.nfev, " with finite differences:", estimated.nfev)
assert np.allclose(exact.x, 1.0, atol=1e-4)

newton = optimize.minimize(
    rosenbrock, start, jac=ng.grad(rosenbrock), hess=ng.hessian(rosenbrock), method="trust-exact"
)
print("error:", np.abs(newton.x - 1.0).max(), "after", newton.nit, "iterations")

# %% [markdown]
# The paths in two dimensions: second derivatives make steps that bend with the valley.

# %% tags=["gallery"]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
grid = np.meshgrid(np.linspace(-1.4, 1.4, 200), np.linspace(-0.5, 1.6, 200))
heights = np.apply_along_axis(rosenbrock, 0, np.array(grid))
axes.contour(*grid, heights, levels=np.logspace(-1, 3, 9), colors="0.8")
for method, derivatives in {
    "BFGS": {"jac": ng.grad(rosenbrock)},
    "trust-exact": {"jac": ng.grad(rosenbrock), "hess": ng.hessian(rosenbrock)},
}.items():
    path = [np.array([-1.2, 1.0])]
    optimize.minimize(rosenbrock, path[0], method=method, callback=path.append, **derivatives)
    axes.plot(*np.transpose(path), "o-", markersize=3, label=f"{method}, {len(path) - 1} steps")
axes.legend()
plt.show()

# %% [markdown]
# Residuals and their Jacobian, for `least_squares` and `root`:

# %%
time = np.linspace(0.0, 4.0, 40)
measured = 2.0 * np.exp(-0.7 * time) + 0.01 * np.cos(40 * time)


def residuals(p):
    """What a decay with amplitude and rate leaves unexplained."""
    return p[0] * np.exp(-p[1] * time) - measured


fit = optimize.least_squares(residuals, np.ones(2), jac=ng.jacobian(residuals))
print(fit.x)
assert np.allclose(fit.x, [2.0, 0.7], atol=0.02)

# %% [markdown]
# Operations on Tensors, so also what runs inside of a transform, give NaN and infinities as NumPy
# does, but without its warnings: `np.errstate` is heeded under `ng.autograd.detect_anomaly()`, which
# names the line.
#
# The transforms nest, and see what a function closes over: inside another one, and where the
# value depends on a Tensor from outside that requires grad, Tensors come out. Arguments may be
# nested tuples, lists and dicts of arrays; `argnums` chooses among several, `has_aux=True` lets
# the function return something besides its value.


# %%
def loss(parameters, x, y):
    """Mean square of a line's residuals."""
    return np.mean((parameters["slope"] * x + parameters["offset"] - y) ** 2)


x = np.linspace(0.0, 1.0, 5)
value, gradient = ng.value_and_grad(loss)({"slope": 0.0, "offset": 0.0}, x, 2 * x)
print(value, gradient["slope"], gradient["offset"])  # 1.5 -1.5 -2.0

assert ng.jacobian(np.cumsum)(x).shape == (5, 5)
assert np.allclose(ng.hessian(rosenbrock)(np.ones(2)), [[802.0, -400.0], [-400.0, 200.0]])
assert np.isclose(ng.grad(ng.grad(np.sin))(1.0), -np.sin(1.0))

# %% [markdown]
# Where a solver calls a function often, compile it with its gradient into one kernel:

# %%
compiled = ng.jit(ng.value_and_grad(rosenbrock))
assert np.allclose(optimize.minimize(compiled, start, jac=True).x, exact.x, atol=1e-4)

# %% [markdown]
# `ng.optim.minimize` runs SciPy's minimizers over Tensors, such as the parameters of a module.

# %%
center = ng.tensor([0.0, 0.0], requires_grad=True)
result = ng.optim.minimize([center], lambda: np.sum((center - np.array([3.0, -1.0])) ** 2))
print(result.fun, center)

# %% [markdown]
# ## Tensors
#
# A `Tensor` holds an ndarray and, if it requires grad, remembers what was done with it.
# `backward()` adds to the `.grad` of the leaves, `ng.autograd.grad` returns gradients and touches
# nothing.

# %%
w = ng.tensor(np.ones((3, 2)), requires_grad=True)  # a copy; ng.asarray shares memory
data = ng.random.default_rng(0).normal(size=(5, 3))
mean_square = ((data @ w).tanh() ** 2).mean()
mean_square.backward()
assert w.grad.shape == (3, 2)

t = ng.tensor(2.0, requires_grad=True)
(first,) = ng.autograd.grad(t**3, t, create_graph=True)
(second,) = ng.autograd.grad(first, t)  # gradients of gradients, to any order
assert first.item() == 12.0
assert second.item() == 12.0

with ng.no_grad():
    assert not (w * 2).requires_grad

# %% [markdown]
# The semantics are PyTorch's: gradients accumulate, a graph is freed by its first backward unless
# `retain_graph=True`, a root of several elements needs a gradient to start from.
#
# An ndarray of yours that a backward needs should not change in between. Of a small one a copy is
# kept, of a large one (or one shared through `ng.asarray`) a fingerprint of some 500 elements; if
# that no longer fits, the backward raises. It catches an array that was filled anew or changed by
# a formula. A write to a few elements of a large array can escape it, so pass a copy if you do
# that.

# %% [markdown]
# ## Operations
#
# `print(ng.ops)` lists them all. By field:
#
# - arithmetic, comparison, logical and bitwise operators; `abs`, `sign`, rounding, `maximum`,
#   `clip`, `where`, `remainder`, `nan_to_num`, `isclose`, ...
# - `exp`, `log`, `sqrt`, `power`, `hypot`, `logaddexp` and their kin, trigonometric and
#   hyperbolic functions with inverses, `sigmoid`, `softplus`, `erf`, `erfinv`, `gammaln`,
#   `digamma`, ...
# - `sum`, `mean`, `prod`, `max`, `var`, `std`, `logsumexp`, `softmax`, `norm`, `argmax`,
#   `cumsum`, `cumprod`, `diff`, ...
# - `reshape`, `permute_dims`, `broadcast_to`, `concat`, `stack`, `split`, `tile`, `repeat`,
#   `roll`, `flip`, `pad`, `tril`, `diagonal`, ...
# - slices, integer and boolean arrays as indices, for reading and writing; `take`,
#   `take_along_axis`, `put`, `index_add`, `scatter`, `masked_fill`, ...
# - `matmul`, `dot`, `tensordot`, `einsum`, `outer`, `kron`, ...
#
# Each is a function (`ng.tanh`), mostly also a method (`t.tanh()`), and what NumPy's function of
# that meaning does to a Tensor (`np.tanh(t)`). Names are NumPy's and the Array API's.

# %%
x = ng.tensor([3.0, 1.0, 2.0], requires_grad=True)
assert np.linalg.norm(x).requires_grad
assert special.erf(x).requires_grad  # a ufunc of SciPy's that has an operation
print(np.where(x > 1.5, np.log(x), 0.0))

# %% [markdown]
# ## NumPy functions on Tensors
#
# - A NumPy function (or SciPy ufunc, such as `scipy.special.erf`) that has an operation computes
#   it: the result is a Tensor with a gradient.
# - One that has none computes on the plain arrays, unless an argument requires grad: then only
#   results that have no derivative by nature (integers, booleans: `np.argsort`, `np.array_equal`)
#   are given, others raise `NumgradTypeError`. No gradient is lost silently; for the same reason
#   `np.asarray(t)`, `t.numpy()`, `float(t)` and so `math.sqrt(t)` raise on a Tensor that requires
#   grad. Say `t.detach()` or `t.item()` to drop it on purpose.
# - NumPy functions that write (`np.copyto`, `np.put`, `np.put_along_axis`, `np.fill_diagonal`,
#   `np.add.at`, ...) are in-place operations on Tensors, with gradients. `out=` takes a Tensor
#   where nothing requires grad; `where=` of ufuncs goes with `out=` only, else use `np.where`.
# - `t[i]` is a view of the Tensor, as in PyTorch, also where NumPy copies one number: swap
#   elements with `t[[0, 1]] = t[[1, 0]]`.
# - Every parameter means what it means to NumPy or raises; what is not there is named in the
#   error, such as norms of singular values (`np.linalg.norm(matrix, 2)`).

# %%
try:
    np.trim_zeros(x)
except TypeError as error:
    print(error)  # np.trim_zeros: has no gradient here and ...
assert np.trim_zeros(x.detach()).sum() == x.detach().sum()

# %% [markdown]
# Errors are `ng.NumgradError` and the built-in exception one would expect (`TypeError`,
# `ValueError`, `IndexError`, `RuntimeError`); they name the operation, the shapes or dtypes, and
# the remedy.

# %%
try:
    x + np.ones(2)
except ng.NumgradError as error:
    print(type(error).__mro__[1].__name__, "-", error)

# %% [markdown]
# ## Dtypes
#
# bool, signed and unsigned integers, float32, float64, complex64, complex128; the default is
# float64. Results have the dtypes NumPy 2 gives: Python numbers do not widen (`float32 * 2.0` is
# float32). Floating and complex Tensors can require grad; a gradient has the dtype of its Tensor.
# float16, longdouble and object arrays raise `NumgradTypeError`.

# %%
single = ng.tensor([1.0, 2.0], dtype="float32")
assert (single * 2.0).dtype == np.float32
assert (single * np.float64(2.0)).dtype == np.float64

# %% [markdown]
# Gradients of complex Tensors are `dL/dz*` for a real `L`, scaled as in PyTorch and in JAX up to
# conjugation: `dL/dx + i dL/dy`, the direction of steepest ascent (`z - step * z.grad` descends).

# %%
z = ng.tensor(3.0 + 4.0j, requires_grad=True)
np.abs(z).backward()
assert z.grad.item() == 0.6 + 0.8j
