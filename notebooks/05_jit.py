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
# # A function as one kernel
#
# Eager code runs one kernel for each operation, and each of them reads and writes whole arrays.
# `ng.jit` runs a function once on stand-ins for its arguments, notes the operations, those of the
# gradient included, and compiles all of them together. We look at what is noted, at what is
# generated, and at what it brings.

# %%
import time

import numpy as np

import numgrad as ng
from numgrad import nn

# %% [markdown]
# ## A function and its gradient


# %%
def chain(a, b):
    """A value that takes a few elementary functions of every element."""
    return np.sum(np.exp(np.tanh(a * b) + a))


fast = ng.jit(ng.value_and_grad(chain, argnums=(0, 1)))

rng = np.random.default_rng(0)
a, b = rng.random((2, 100_000))
value, (in_a, in_b) = fast(a, b)  # traces, compiles, runs
print(value)

# %% [markdown]
# ndarrays in, ndarrays out; with a Tensor among the arguments, or one from outside that requires
# grad, Tensors come out. The numbers are those of eager code: every element bit by bit, but for fixed
# powers such as `x**1.5`, which are products and roots (4 units in the last place at most); sums
# within their rounding error.

# %%
expected, gradients = ng.value_and_grad(chain, argnums=(0, 1))(a, b)
np.testing.assert_allclose(value, expected, rtol=1e-13)
np.testing.assert_array_equal(in_a, gradients[0])
np.testing.assert_array_equal(in_b, gradients[1])

# %% [markdown]
# ## The graph
#
# This is what was noted: operations on typed values, with your lines above them. Lengths are
# symbols, so the kernel serves arrays of any length. What follows the sum is the gradient: formulas
# of the same operations.

# %%
graph = fast.graph(a, b)
print(graph)

# %% [markdown]
# In a notebook a graph shows itself as a picture.

# %% tags=["gallery"]
graph

# %% [markdown]
# ## The source
#
# Passes simplify the graph: what is computed twice is computed once, what nobody reads is left out.
# Then loops are made of it, as few as possible. Here it is a single one: it reads two arrays,
# writes two, and keeps everything else in registers. Below it are the kernel, which cuts the work
# into tasks for threads, and the Python function around it. `fast.llvm` and `fast.asm` go on from
# here.

# %%
print(fast.source[fast.source.index("@outlined") :])

# %% [markdown]
# The report says which operations ended in which loop, what LLVM made of it, and estimates what
# moves through memory.

# %%
print(fast.report())

# %% [markdown]
# ## The speed
#
# The same function in NumPy without any gradient, as eager numgrad with its gradient, and compiled
# with its gradient. At 100 elements what counts is the way to the kernel, at 100,000 what happens
# to each element.


# %%
def seconds(run, *arguments):
    """The best of several times of a call."""
    run(*arguments)
    times = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.2:
        start = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


eager = ng.value_and_grad(chain, argnums=(0, 1))
for n in (100, 100_000):
    part = a[:n].copy(), b[:n].copy()
    compiled, taped, numpy = (seconds(run, *part) for run in (fast, eager, chain))
    print(
        f"n = {n:7}: value and gradient compiled {compiled * 1e6:7.1f} us, eager numgrad takes "
        f"{taped / compiled:.1f} times that, NumPy for the value alone {numpy / compiled:.1f} times"
    )

# %% [markdown]
# ## What a compiled function is made for
#
# The kinds of its arguments: how they nest, dtypes, numbers of axes, which lengths are 0 or 1. And
# what the Python code found out while it ran: the number that it read from outside, the length that
# decided a branch. These are guards; a call that does not satisfy them is traced anew.

# %%
scale = 2.0


@ng.jit
def scaled(x):
    """A sum whose weights depend on how many terms there are."""
    if x.shape[0] > 1000:  # a branch on a length: guarded
        return np.sum(x) * scale / 1000
    return np.sum(x) * scale  # a number from outside: guarded by its value


for n in (10, 20, 2000):
    scaled(np.ones(n))
scale = 3.0
print(scaled(np.ones(10)))
print(scaled.statistics)
print(*[s.reason for s in scaled.specialisations[1:]], sep="\n")

# %% [markdown]
# A branch on a *value* cannot be compiled that way: there is none while the function is traced. The
# error says where and what to do instead.


# %%
@ng.jit
def clipped(x):
    """Not like this."""
    return x if x.sum() > 0 else 0 * x


try:
    clipped(a)
except ng.NumgradTypeError as error:
    print(error)

print(ng.jit(lambda x: np.where(x.sum() > 0, x, 0.0))(a)[:3])

# %% [markdown]
# ## A training step
#
# A module, its loss, the backward and the optimizer in one function. It has no arguments but data:
# the parameters are found where they are, and updated in place.

# %%
ng.random.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = ng.optim.Adam(model.parameters(), lr=0.01)


def step(x, y):
    """One step of Adam on the mean squared error."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


train = ng.jit(step)
x = rng.standard_normal((256, 8))
y = np.sin(x.sum(axis=1, keepdims=True))
x, y = ng.tensor(x), ng.tensor(y)
losses = [train(x, y).item() for _ in range(200)]
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
compiled, taped = seconds(train, x, y), seconds(step, x, y)
print(
    f"a compiled step takes {compiled * 1e6:.0f} us, an eager one {taped / compiled:.1f} times that"
)

# %% [markdown]
# ## Gradients in a loop of Numba
#
# `.native(*examples)` gives the function as machine code without Python around it, with loops and
# branches (`ng.scan`, `while_loop`, `cond`), sorts, transforms, systems of equations and functions
# of `ng.kernel` in it. `.njit` is what Numba calls. Here Hamiltonian Monte Carlo makes leapfrog steps
# (Neal, *MCMC using Hamiltonian dynamics*, 2011) on the posterior of a logistic regression.

# %%
import numba

rows = rng.normal(size=(200, 3))
labels = (rows @ [1.0, -2.0, 0.5] + rng.logistic(size=200) > 0) * 1.0


def minus_log_density(w):
    """Logistic regression with a standard normal prior."""
    z = rows @ w
    return np.sum(np.logaddexp(0, z) - labels * z) + np.sum(w * w) / 2


native = ng.jit(ng.value_and_grad(minus_log_density)).native(np.zeros(3), shapes="fixed")
print(native)
energy_and_force = native.njit


@numba.njit
def sample(draws, steps, size):
    np.random.seed(0)
    x, out, accepted = np.zeros(3), np.empty((draws, 3)), 0
    u, slope = energy_and_force(x)
    for k in range(draws):
        p = np.random.normal(0, 1, 3)
        before, y, v, g = u + np.sum(p * p) / 2, x.copy(), u, slope
        for _ in range(steps):
            p = p - size / 2 * g
            y = y + size * p
            v, g = energy_and_force(y)
            p = p - size / 2 * g
        if np.log(np.random.random()) < before - v - np.sum(p * p) / 2:
            x, u, slope, accepted = y, v, g, accepted + 1
        out[k] = x
    return out, accepted / draws


sample(10, 10, 0.1)
start = time.perf_counter()
draws, accepted = sample(5000, 10, 0.1)
seconds = time.perf_counter() - start
print(f"{50_000 / seconds:,.0f} leapfrog steps a second, {accepted:.0%} accepted")
print("means", draws.mean(0).round(2), "deviations", draws.std(0).round(2))

# %% [markdown]
# What has no kernel of ours, such as eigenvalues, is refused with its name and line.

# %%
try:
    ng.jit(lambda a: np.linalg.eigvalsh(a)).native(np.eye(3))
except ng.NumgradNotImplementedError as error:
    print(error)

# %% [markdown]
# ## The rules
#
# - **In and out**: ndarrays, Tensors, numbers, and tuples, lists and dicts of them. With a Tensor that
#   requires grad the compiled function is one node of the tape, with a compiled backward. It composes
#   with `ng.grad` and its like in both orders; modules, optimizers and `autograd.Function` work inside.
# - **What is read from outside** is read at each call if it is an array or Tensor (views of it too),
#   and guarded by its value if it is a Python number or the length of an array. What plain NumPy
#   computes from an array outside (`table[0]` as a number, `table.sum()`, `2 * table`) is computed at
#   the trace, and the function is traced again when the array has other numbers. For arrays that
#   change often write `ng.asarray(table)[0]`, or pass the array as an argument. Parameters are updated
#   in place. An argument is written to only if `donate=` names it.
# - **Compiled for** nesting, dtypes, numbers of axes, which lengths are 0 or 1, values of
#   `static_argnums`; and for a branch or loop on a length the way that it went. Anything else in a
#   call is read at run time. `dynamic=False` compiles for each shape.
# - **Loops of Python** are unrolled: their operations are compiled one by one, a thousand iterations
#   take long. Compile what one iteration calls, or write the loop as `ng.scan` or `ng.kernel`:
#   [the last section on loops](06_loops.py) has a script in all these ways.
# - **Not possible**: a Python branch on a *value* (`np.where` is), `float(t)`, `t.numpy()`, results
#   whose shape depends on values. The error names your line and the way out.
# - **Loops of Python are unrolled**: each step becomes operations of its own, so a simulation of
#   thousands of steps compiles long and gains little (a warning says so). Write it with `ng.scan` or
#   `ng.fori_loop` (notebook 06), or loops over elements as an `ng.kernel` (notebook 13).
# - **Bits**: elementwise code gives those of eager code, sums differ within their rounding error, and
#   loops give the same for any number of threads. `contract=True` lets a product and a sum become one
#   instruction, which rounds once.
# - **Debugging**: `ng.config.jit = False` runs everything eagerly, `ng.config.check_jit = True` runs
#   both and compares.

# %% [markdown]
# ## What it cost
#
# Compiled code is kept on disk. The next process that runs this notebook loads it.

# %%
print(ng.jit_stats())
