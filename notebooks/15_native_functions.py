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
# # Call compiled functions from Numba, SciPy and C
#
# A function of `ng.jit`, with its gradient, is machine code without an interpreter in its loops. This
# guide hands it to loops of Numba, to SciPy's integrators, and to a controller in C that never
# starts Python.
#
# ## A C signature
#
# `native` takes arguments such as the function will get. What it returns has a C signature, and can be
# called from Python to try it out. Its numbers have the bits of `ng.jit`, but where that calls a library
# (transforms, factorizations, sorts) kernels of ours do, and last bits, or the order of equal elements, may
# differ. Axes of 0 or 1 elements, which broadcast, are other programs: give them as examples of their own.

# %%
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numba
import numpy as np
from scipy.integrate import quad

import numgrad as ng


@ng.jit
def energy(x, stiffness):
    """Energy of a chain of springs, and its gradient."""
    return ng.value_and_grad(lambda x: 0.5 * stiffness * np.sum(np.diff(x) ** 4))(x)


native = energy.native(np.zeros(5), 1.0)
print(native)

# %% [markdown]
# ## In Numba's loops
#
# `.njit` takes arrays and returns arrays; `.njit_into` writes to arrays that the caller has. Either may
# be called in `prange`.

# %%
gradient = native.njit


@numba.njit
def relax(x, steps):
    for _ in range(steps):
        _, slope = gradient(x, 1.0)
        x = x - 0.1 * slope
    return x


relax(np.array([0.0, 2.0, -1.0, 3.0, 1.0]), 500)

# %% [markdown]
# ## In SciPy
#
# A `LowLevelCallable` spares `quad` a call of Python for each point; values after the signature are
# those of the other arguments.

# %%
wave = ng.jit(lambda t, w: np.exp(-0.5 * t) * np.sin(w * t) ** 2).native(0.0, 0.0)
quad(wave.low_level_callable("double(double)", 3.0), 0, 10)

# %% [markdown]
# ## In minimizers
#
# iminuit takes the address of a cost: that of a `numba.cfunc` of this signature, whose body may call
# `.njit`. It calls gradients by Python, so these come from `ng.jit`. cyipopt and `scipy.optimize` take no
# addresses; `ng.ecosystem` and `ng.optimize` have the functions that they take. IPOPT's interface for C has
# callbacks, which call an exported function by its header.

# %%
sample = np.random.default_rng(0).normal(1.0, 2.0, 1000)


def cost(p):
    """Minus the log density of a normal sample."""
    return 0.5 * np.sum(((sample - p[0]) / p[1]) ** 2) + sample.size * np.log(p[1])


value = ng.jit(cost).native(np.ones(2), shapes="fixed").njit


@numba.cfunc(numba.double(numba.uint32, numba.types.CPointer(numba.double)))
def cost_of_address(count, place):
    return value(numba.carray(place, (2,)))


try:
    from iminuit import Minuit
except ImportError:
    print("iminuit is not installed here")
else:
    minuit = Minuit(cost_of_address, [0.0, 1.0], grad=ng.jit(ng.grad(cost)), name=["mean", "width"])
    minuit.errordef = 0.5
    minuit.limits["width"] = (1e-3, None)
    minuit.migrad()
    print(minuit.values.to_dict(), minuit.errors.to_dict())

# %% [markdown]
# ## Threads, and memory of the caller
#
# A call runs in the thread that makes it. `threads=4` lets large loops, of half a millisecond and more, run
# in up to four, which the loop creates and waits for; that needs the C library alone, in exported code too.
# Bits are the same for any number. Calls beside another one, as in `prange`, run in their own thread.
#
# `workspace=True` adds a last argument, memory that the call uses: a controller then allocates nothing.
# What is beyond its size comes from `malloc`, and `needed` says how much a call had in use, so a first
# call tells the size. C has it as a structure, `.njit` as an array.

# %%
stiffness = np.eye(4) + 0.1
solved = ng.jit(np.linalg.solve).native(stiffness, np.ones(4), workspace=True)
print(solved)
memory = np.empty(solved.workspace_size, np.uint8)
solve_into = solved.njit_into


@numba.njit
def solve_all(rights, memory):
    out = np.empty_like(rights)
    for k in range(len(rights)):
        solve_into(stiffness, rights[k], out[k], memory)
    return out


solve_all(np.arange(12.0).reshape(3, 4), memory)

# %% [markdown]
# ## In files
#
# `ng.export` writes a shared library, an object for linkers, a header, and a description. On Linux that
# needs no compiler and no linker; on macOS and Windows the shared library needs clang, gcc or zig, the
# rest does not. `cpu=` makes code for other machines: `"generic"` runs on any of the same kind,
# `"x86-64-v3"` on those with AVX2, `"neoverse-n1"` and `"apple-m1"` on Arm.

# %%
folder = Path(tempfile.mkdtemp())
print(ng.export(energy, folder / "springs", np.zeros(5), 1.0, module=True))
print((folder / "springs.h").read_text())

# %% [markdown]
# `ng.load_native` gives the function back, by NumPy alone: nothing is traced or compiled. With
# `module=True` there is a module as well, which is imported where numgrad is not installed.

# %%
loaded = ng.load_native(folder / "springs")
loaded(np.array([0.0, 1.0, 3.0]), 2.0)

# %%
program = (
    "import numpy as np, springs_native; print(springs_native.energy(np.arange(3.0) ** 2, 2.0))"
)
print(subprocess.check_output([sys.executable, "-c", program], cwd=folder, text=True))

# %% [markdown]
# ## In a build
#
# The command does the same for a function of a module: `python -m numgrad export springs_model:energy
# --example "np.zeros(5)" --example 1.0 -o springs`. In CMake and in Meson:
#
# ```cmake
# add_custom_command(OUTPUT springs.o springs.h DEPENDS springs_model.py
#   COMMAND ${Python_EXECUTABLE} -m numgrad export springs_model:energy
#           --example "np.zeros(5)" --example 1.0 --cpu x86-64-v3 -o springs)
# target_sources(app PRIVATE main.c springs.o)
# ```
#
# ```meson
# springs = custom_target(input: 'springs_model.py', output: ['springs.o', 'springs.h'],
#   command: [find_program('python3'), '-m', 'numgrad', 'export', 'springs_model:energy',
#             '--example', 'np.zeros(5)', '--example', '1.0', '-o', meson.current_build_dir() / 'springs'])
# executable('app', 'main.c', springs)
# ```
#
# ## A controller in C
#
# Model-predictive control of a pendulum: each millisecond, a dozen gradient steps lower the cost of
# the next 20 torques, and the first of them is applied. The cost is a Python function; its gradient goes
# into a C program.


# %%
@ng.jit
def cost_and_slope(torques, state):
    """Cost of the next 20 torques, 0.05 s each, and its gradient."""

    def cost(torques):
        angle, speed, total = state[0], state[1], 0.0
        for torque in torques:
            speed = speed + 0.05 * (9.81 * np.sin(angle) + torque)
            angle = angle + 0.05 * speed
            total = total + angle**2 + 0.1 * speed**2 + 1e-3 * torque**2
        return total

    return ng.value_and_grad(cost)(torques)


_ = ng.export(cost_and_slope, folder / "pendulum", np.zeros(20), np.zeros(2), shapes="fixed")
controller = folder / "controller.c"
_ = controller.write_text(r"""
#include "pendulum.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HORIZON = 20, ITERATIONS = 12, STEPS = 3000 };

static void plan(double *torques, const double *state) {  /* steps of Barzilai and Borwein */
  double cost, slope[HORIZON], before[HORIZON], last[HORIZON], rate = 1e-2;
  for (int i = 0; i < ITERATIONS; ++i) {
    if (cost_and_slope(torques, state, &cost, slope)) return;
    double length = 0.0, turn = 0.0;
    for (int k = 0; i && k < HORIZON; ++k) {
      length += (torques[k] - before[k]) * (torques[k] - before[k]);
      turn += (torques[k] - before[k]) * (slope[k] - last[k]);
    }
    if (turn > 1e-12 * length) rate = length / turn;
    memcpy(before, torques, sizeof before);
    memcpy(last, slope, sizeof last);
    for (int k = 0; k < HORIZON; ++k)
      torques[k] = fmax(-20.0, fmin(20.0, torques[k] - rate * slope[k]));
  }
}

int main(void) {
  double state[2] = {0.6, 0.0}, torques[HORIZON] = {0.0};
  clock_t start = clock();
  for (int step = 0; step < STEPS; ++step) {
    plan(torques, state);
    state[1] += 1e-3 * (9.81 * sin(state[0]) + torques[0]);
    state[0] += 1e-3 * state[1];
    printf("%g %g\n", state[0], torques[0]);
  }
  fprintf(stderr, "%.1f\n", 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / STEPS);
  return 0;
}
""")

# %%
compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
if compiler is None:
    print("no C compiler is here to try it")
else:
    built = [compiler, "-O2", "controller.c", "pendulum.o", "-lm", "-o", "controller"]
    subprocess.run(built, cwd=folder, check=True)
    done = subprocess.run([folder / "controller"], capture_output=True, text=True, check=True)
    print(f"{done.stderr.strip()} microseconds a step, of 1000")
    angle, torque = np.array([line.split() for line in done.stdout.splitlines()], float).T
    time = np.arange(len(angle)) * 1e-3
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 4))
    axes[0].plot(time, angle)
    axes[0].set_ylabel("angle from upright")
    axes[1].plot(time, torque)
    axes[1].set_ylabel("torque")
    axes[1].set_xlabel("seconds")
    figure.tight_layout()

# %% [markdown]
# ## What to know
#
# - A C function returns 0 or a status; `springs_message(status)` of the header is its text. It is
#   reentrant, keeps no state and starts no thread unless `threads=` lets it.
# - Results must not overlap arguments: `ng.jit(f, donate="x")` is how a function overwrites one.
# - Ctrl-C waits until a call returns: give loops that may not end a limit of steps.
# - With `shapes="free"` lengths are arguments, except for those that tracing fixes, as a Jacobian's: `print`
#   of the function names these.
# - Nested arguments, such as dictionaries of parameters, are structures of the header, for `energy_nested`;
#   several functions go into one library as `ng.export({"f": f.native(x), "g": g.native(x)}, "model")`.
# - What the function captures is copied: parameters that change are arguments.
# - Products of matrices are our own in exported code, not BLAS; what only LAPACK or Python computes is
#   refused, with the operation and the line.
