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
# # In Jupyter
#
# What numgrad shows in a notebook, how a session behaves when cells are run again, and what
# happens while it compiles.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import numgrad as ng
from numgrad import nn

# %% [markdown]
# ## Tensors, results
#
# The last value of a cell shows itself: vectors and matrices as tables, results of solvers with what
# they found first.

# %%
ng.minimize(lambda p: np.sum((p["a"] - 1.0) ** 2) + p["b"] ** 4, {"a": np.zeros(2), "b": 1.0})

# %% [markdown]
# ## Plots
#
# Matplotlib takes Tensors that do not require grad. From others say `detach()`: so no gradient is
# lost by accident.

# %% tags=["gallery"]
x = ng.tensor(np.linspace(-3.0, 3.0, 121), requires_grad=True)
y = np.exp(-(x**2)) * np.sin(3 * x)
y.sum().backward()

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(x.detach(), y.detach(), label="f")
ax.plot(x.detach(), x.grad, label="f'")
ax.legend()
plt.show()

# %% [markdown]
# ## Pictures of graphs
#
# `ng.viz.make_dot` draws what a Tensor remembers. The last value of a cell shows itself; `source`
# has the DOT text, `render` writes a file, SVG without Graphviz.

# %%
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
loss = model(np.ones((5, 3))).mean()
ng.viz.make_dot(loss, params=dict(model.named_parameters()))


# %% [markdown]
# The graph of a compiled function is a picture too; printed, it is text beside your lines.


# %%
@ng.jit
def energy(a, b):
    """A number from two arrays."""
    return np.sum(np.exp(np.tanh(a * b) + a))


step = ng.jit(ng.value_and_grad(energy))
a, b = np.linspace(0.0, 1.0, 100), np.ones(100)
value, gradient = step(a, b)
step.graph(a, b)

# %%
print(step.graph(a, b))

# %% [markdown]
# ## Looking inside
#
# `ng.ops` is the table of operations. An entry shows the formula, the formula of its gradient,
# and the kernels that this session has compiled or loaded.

# %%
print(ng.ops["tanh"])
np.sum(np.tanh(ng.tensor([0.1, 0.2], requires_grad=True))).backward()
print(ng.ops["tanh"].signatures)  # argument types of each kernel
print(ng.ops["tanh"].source)  # the generated Python source
assembly = ng.ops["tanh"].asm()  # and .llvm()

# %% [markdown]
# A compiled function has the same: `step.source`, `step.llvm`, `step.asm`. Its report says which
# operations are in which loop, which loops are vectorised, how many bytes move, and how long it
# took.

# %%
step.report()

# %% [markdown]
# After `%load_ext numgrad` there are two magics: `%ngreport step` shows the same report, and a cell
# that begins with `%%ngprofile` shows where its time went, by operation and by line of the cell
# (`--by-name`: by operation; `--trace FILE` for ui.perfetto.dev).

# %%
# %load_ext numgrad

# %%
# %%ngprofile
x = ng.tensor(np.linspace(0.0, 1.0, 10_000), requires_grad=True)
for _ in range(20):
    y = np.sum(np.exp(-x) * np.sin(x))
    y.backward()

# %% [markdown]
# `help(ng.tanh)` and Shift-Tab show the documentation; completion knows the methods of a Tensor
# from the type stubs that are installed with numgrad. `ng.tanh(t)` and `t.tanh()` complete
# further than `np.tanh(t)`, which NumPy's own stubs take for an ndarray.
#
# ## While it compiles
#
# A kernel is compiled when an operation first meets a combination of dtypes and layouts,
# typically in a fraction of a second, and kept on disk: after a restart of the session it is
# loaded. What takes longer than a second says so in a line below the cell. Interrupting the cell
# waits until the kernel in work is complete, so nothing is left half done. When you time
# something, run it once before.
#
# `progress=True` shows how far `ng.minimize`, `ng.least_squares` and `ng.curve_fit` have got, and
# `ng.data.progress` how far a loop of your own: `for batch in ng.data.progress(loader)`. Interrupted
# or not, the line ends before what is printed next.

# %%
bar = ng.data.progress(range(200), "training")
for epoch in bar:
    bar.note(loss=0.9**epoch)

# %%
for attempt in ("first call", "second call"):
    begin = time.perf_counter()
    step(a, b)
    print(f"{attempt}: {(time.perf_counter() - begin) * 1e6:.0f} us")
print(ng.jit_stats())  # calls, traces, kernels and seconds of every compiled function

# %% [markdown]
# ## Running cells again
#
# An operation enters the table once: a cell that declares it cannot run again. While you try
# formulas out, declare with `register=False`: this leaves the table (and the methods of Tensor)
# alone, and the name can be used again.


# %%
@ng.elementwise(register=False)
def bell(x):
    """Bell curve ``exp(-x**2)``."""
    return np.exp(-(x * x))


bell.vjp(x=lambda g, x, y: -2 * g * x * y)
assert np.isclose(bell(1.0).item(), np.exp(-1.0))


# %%
@ng.elementwise(register=False)
def bell(x):
    """Bell curve of half the width."""
    return np.exp(-4 * (x * x))


bell.vjp(x=lambda g, x, y: -8 * g * x * y)
assert np.isclose(bell(1.0).item(), np.exp(-4.0))

# %% [markdown]
# A compiled function reads arrays and Tensors from other cells at each call. A Python number from
# another cell is part of the kernel; when it has changed, the function is traced anew.

# %%
scale, offset = 2.0, np.zeros(3)


@ng.jit
def line(x):
    """Read one number and one array from outside."""
    return scale * x + offset


print(line(np.ones(3)))
offset[:] = 10.0  # read at the next call
print(line(np.ones(3)), line.statistics.traces)
scale = 3.0  # traced again
print(line(np.ones(3)), line.statistics.traces)
assert line.statistics.traces == 2

# %% [markdown]
# `ng.config.jit = False` runs everything eagerly: then `print` and `%debug` see numbers in every
# line. `ng.config.check_jit = True` runs both and compares.

# %%
ng.config.jit = False
assert np.allclose(line(np.ones(3)), 13.0)
ng.config.jit = True

# %% [markdown]
# ## Errors
#
# They name the operation, what was seen and what to do; `%debug` goes to your line. Where a NaN
# appears in a backward, `detect_anomaly` finds the line of the forward that made it.

# %%
try:
    model(np.ones((5, 4)))
except ng.NumgradError as error:
    print(error)

# %% [markdown]
# ## What stays in memory
#
# A Tensor that requires grad keeps its graph, and `Out[...]` keeps what a cell shows. Keep
# `loss.item()` in lists of losses, not `loss`. Up to 256 MiB of freed memory is kept for the next
# arrays, and up to 1 GiB of large ones (32 MB and more) for some seconds;
# `ng.config.pool_bytes = 0` gives the latter back at once, and the environment variable
# `NUMGRAD_KEEP_MEMORY=0` leaves all of it to the system.
#
# Processes forked from a notebook (`multiprocessing` on Linux) run kernels serially where the
# threading layer would not survive the fork, with the same bits; `spawn` keeps them parallel.
