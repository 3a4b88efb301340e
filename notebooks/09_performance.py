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
# # Performance, and how it is tracked
#
# What was measured, how to measure it on your machine and from commit to commit, and what may be
# set: threads, cache, memory.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import numgrad as ng

# %% [markdown]
# ## Measured figures
#
# Every figure is a ratio between libraries timed in one run, in interleaved rounds, one process
# per library and all with the same number of threads. A ratio below 1 means that numgrad is
# faster.
#
# Measured with NumPy 2.4, Numba 0.68, torch 2.13, JAX 0.10 and HIPS autograd 1.9 on two cores of
# an AMD EPYC (Zen 5), two threads each unless said, float64 unless said:
#
# | what | numgrad | against | ratio |
# |---|---|---|---|
# | `sum(exp(tanh(a*b)+a))`, forward and backward, n = 100 | 5.2 us | torch eager 29 us | 0.18 |
# | the same, n = 1,000 | 7.4 us | torch eager 33 us | 0.23 |
# | the same, n = 100,000 | 287 us | torch eager 384 us | 0.75 |
# | the same, n = 10,000,000 | 61 ms | torch eager 193 ms | 0.31 |
# | one recorded operation, n = 100: `a*b`, `a*2.0` | 0.3 us | torch eager | 0.19, 0.18 |
# | recorded `(32,64)+(64,)`, `a[2:50]`, 16x16 `@` | 0.5, 0.7, 1.7 us | torch eager | 0.28, 0.61, 0.67 |
# | exp, log, tanh, sin, erf, pow, 100,000 elements, one thread | 0.5 - 1.3 ns an element | faster of NumPy and torch | 0.77, 1.02, 0.93, 0.27, 0.50, 0.91 |
# | the same in float32 | 0.2 - 0.5 ns an element | faster of NumPy and torch | 0.48, 0.85, 1.03, 0.72, 0.36, 1.12 |
# | sum, mean, max of 1000x1000, each axis and all | 45 - 68 us | NumPy | 0.28 - 0.65 |
# | logsumexp of the same | 0.3 - 0.4 ms | SciPy | 0.03 - 0.04 |
# | a step of Adam, 100 tensors of 64 | 31 us | torch fused 390 us | 0.08 |
# | Adam, AdamW, SGD with momentum, 8 x 1024x1024, float32 and float64 | 2.9 - 8.8 ms, what memory gives | torch fused | 0.82 - 1.09 |
# | Adadelta, Adafactor, Adagrad, Adamax, ASGD, NAdam, RAdam, RMSprop, Rprop, 4 x (256x256 + 256) | 72 - 277 us | torch foreach | 0.07 - 0.30 |
# | LBFGS, SparseAdam, Muon (256x256, float32) | | torch | 0.76, 0.48, 3.6 |
# | a training step, MLP 64-256-256-10, batch 128, float32, Adam | 531 us | torch eager 590 us | 0.90 |
# | the same, MLP 10-32-1, batch 16 | 49 us | torch eager 125 us | 0.39 |
# | an epoch of a small CNN on 1,437 images of 8x8, float32 | 35 ms | torch eager 25 ms | 1.42 |
# | `import numgrad`, over NumPy's import | 0.09 s | | |
# | import to first gradient: warm, empty kernel cache | 0.33, 1.9 s | torch 0.83 s | |
#
# ## Against other libraries
#
# From the root of the source:
#
# ```
# python -m pip install '.[peers]' && python perf/vs_peers.py
# ```
#
# `--quick` takes shorter rounds, `--only PATTERN` chooses cases, `--libraries torch,jax` the
# peers, `--json FILE` keeps every time measured. `perf/README.md` explains the columns and the
# cases.
#
# ## GradBench
#
# [GradBench](https://github.com/gradbench/gradbench) compares tools for differentiation by 12 evals.
# `python perf/gradbench --checkout PATH` runs them as numgrad code (`perf/gradbench/README.md`)
# beside tools in C++, JAX and PyTorch, and GradBench judges the results: all are valid. Times of
# derivatives over those of other tools, smallest and largest of the sizes run by default, CPU time of
# one thread of an AMD EPYC (Zen 4, AVX-512) beside other work:
#
# | eval | C++ by hand | CoDiPack | JAX | PyTorch | differences in C++ |
# |---|---|---|---|---|---|
# | ba | 0.75 - 1.31 | 0.28 - 0.31 | | | 0.12 - 0.13 |
# | det | < 0.01 - 0.97 | < 0.01 - 1.56 | | | < 0.01 - 0.13 |
# | gmm | 0.14 - 0.21 | 0.03 - 0.06 | 0.10 - 0.42 | 0.03 - 0.17 | |
# | ht | 1.15 - 1.19 | 0.11 - 0.25 | | | |
# | kmeans | 0.64 - 0.78 | 0.02 - 0.05 | 0.27 - 0.66 | 0.05 - 0.14 | |
# | llsq | 0.17 - 1.22 | 0.03 - 0.26 | 0.03 - 0.16 | | < 0.01 - 0.01 |
# | lse | 0.24 - 0.27 | 0.08 - 0.11 | 0.15 - 0.48 | 0.03 - 0.25 | |
# | lstm | 0.31 | 0.66 | | < 0.01 | 0.01 |
# | ode | 18 - 226 | 0.10 - 0.16 | 0.45 - 0.63 | | |
# | particle | | | | | 0.30 - 0.41 |
# | saddle | | | | | 0.01 - 0.04 |
#
# `det` computes each minor once, tools in C++ as often as it occurs; the gradient of `ode` by hand is
# a closed form. Each size is among the {doc}`benchmarks`, with a chart of how cost grows with
# elements, steps, parameters and operations (`python perf/growth.py`). `python perf/science` compares
# eleven programs of science, from a Kalman filter to particles in cells, with JAX.
#
# ## From commit to commit
#
# asv follows numgrad alone. Benchmarks are in `perf/benchmarks/`; results go to `perf/results`,
# pages to `perf/html`.
#
# ```
# python -m pip install -e '.[perf]'
# asv machine --yes                          # once
# asv run --config perf/asv.conf.json --python=same --set-commit-hash HEAD
# asv publish --config perf/asv.conf.json && asv preview --config perf/asv.conf.json
# ```
#
# asv times the checkout as it is, with the Python that runs asv: check a commit out, run, check
# the next one out, run, and compare with `asv compare HASH1 HASH2`. On a machine that others use
# as well measure two commits in turns and look at ratios. No test asserts a time.
#
# ## Measuring your own code
#
# The first call compiles, or loads from disk; leave it out. Take the smallest of many times:
# noise only adds.


# %%
def best(run, *arguments, rounds=200):
    """Return the smallest of many times of a call, in microseconds."""
    run(*arguments)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times)


def chain(a, b):
    """A value that takes a few elementary functions of every element."""
    return np.sum(np.exp(np.tanh(a * b) + a))


eager = ng.value_and_grad(chain)
compiled = ng.jit(eager)
rng = np.random.default_rng(0)
lengths = [10, 100, 1_000, 10_000, 100_000]
times = {"eager": [], "compiled": []}
for n in lengths:
    a, b = rng.uniform(-1, 1, (2, n))
    times["eager"].append(best(eager, a, b, rounds=50))
    times["compiled"].append(best(compiled, a, b, rounds=50))

# %% tags=["gallery"]
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for form, microseconds in times.items():
    axes.loglog(lengths, microseconds, "o-", label=form)
axes.set_xlabel("elements")
axes.set_ylabel("value and gradient, us")
axes.legend()
plt.show()

# %% [markdown]
# Where the time goes: counts of calls, traces and kernels, and what a kernel does in its loops,
# with an estimate of the bytes that it moves.

# %%
print(ng.jit_stats())
print(compiled.report())

# %% [markdown]
# ## Threads and determinism
#
# Elementwise operations and reductions give the same bits for any number of threads: reductions
# sum blocks of fixed size in a fixed order. Products of real matrices of up to 2**25
# multiplications do so too, larger and complex ones are as reproducible as the BLAS under them.
# Kernels run in parallel only where the work pays for it. Several Python threads may use
# numgrad, and run backward, at the same time (kernels with much work release the interpreter's
# lock, so with `ng.set_num_threads(1)` they run beside each other); only the order in which they
# add into a leaf that they share is not fixed. In a process forked after the thread pool started,
# kernels run serially, with the same bits, where the threading layer would not survive it (GNU
# OpenMP); `spawn` keeps them parallel. A fork waits until a kernel that another thread compiles
# is complete, and so does Ctrl-C.

# %%
large = rng.normal(size=1_000_000)
threads = ng.get_num_threads()
found = []
for count in (1, threads):
    ng.set_num_threads(count)
    found.append(np.sum(np.exp(ng.asarray(large))).item())
assert found[0] == found[1]  # to the last bit
ng.set_num_threads(threads)

# %% [markdown]
# ## Kernels on disk
#
# A kernel is compiled when an operation first meets a combination of dtypes and layouts,
# typically in a fraction of a second, and kept in the user's cache directory for the processes
# that follow. What is in that directory is run, so it and its files are used only if they belong
# to you or root and neither group nor others may write to them, below directories not open to
# everybody (Windows: not checked); otherwise a warning says what to do, and kernels are kept for
# the one process.
#
# | command | does |
# |---|---|
# | `python -m numgrad cache` | says where compiled kernels are; `cache clear` removes them |
# | `python -m numgrad warmup` | compiles the kernels of the table ahead of use; `--dtype`, `--op` |
# | `python -m numgrad doctor` | prints versions, CPU, threading layer, cache, BLAS: for bug reports |
#
# ## Settings
#
# | variable | meaning |
# |---|---|
# | `NUMGRAD_CACHE_DIR` | another directory for compiled kernels |
# | `NUMGRAD_NUM_THREADS` | most threads a kernel may use; `ng.set_num_threads(n)` at run time |
# | `NUMGRAD_JIT`, `NUMGRAD_CHECK_JIT` | `0`: `ng.jit` runs everything eagerly; `1`: runs both and compares; `ng.config.jit`, `ng.config.check_jit` at run time |
# | `NUMGRAD_KEEP_MEMORY` | `0` leaves glibc as it is; otherwise up to 256 MiB of freed memory is kept for the next arrays |
# | `NUMGRAD_POOL_BYTES` | most bytes of large arrays and temporaries (32 MB and more each) that are kept for the next ones, 1 GiB unless set; what is not used for some seconds is given back; `ng.config.pool_bytes` at run time |
