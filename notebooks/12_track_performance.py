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
# # Follow performance from commit to commit
#
# You maintain a simulation: some functions, their gradients, and users who notice when a release is
# slower. This guide times them with `python -m numgrad bench`, compares with an earlier version,
# and hands the long history to [asv](https://asv.readthedocs.io).
#
# ## A file of benchmarks
#
# A benchmark is a function whose name begins with `bench_`. Decorators give it parameters, and
# arguments that are made outside the time taken. Every combination of parameters is one benchmark.

# %%
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

folder = Path(tempfile.mkdtemp())
speeds = folder / "speeds.py"
speeds.write_text('''
import numpy as np
import numgrad as ng


def energy(positions, charge):
    """Of charges on a line, softened."""
    apart = positions[:, None] - positions[None, :]
    return 0.5 * charge**2 * np.sum(1 / np.sqrt(apart**2 + 0.01))


def charges(n):
    return {"positions": np.linspace(0.0, 1.0, n) ** 2, "charge": 0.1}


@ng.benchmark.parametrize("n", [8, 64])
@ng.benchmark.setup(charges)
def bench_forces(positions, charge):
    return ng.grad(energy)(positions, charge)


@ng.benchmark.against(bench_forces, "numpy")
def forces_by_hand(positions, charge):
    apart = positions[:, None] - positions[None, :]
    return -(charge**2) * np.sum(apart / (apart**2 + 0.01) ** 1.5, axis=1)
''')


def numgrad(*arguments):
    """Run a command of numgrad in the folder; print what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "numgrad", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    print(done.stdout + done.stderr)
    return done.returncode


# %%
assert numgrad("bench", speeds, "--list") == 0

# %% [markdown]
# ## Time them
#
# Each is timed as it is (*eager*) and as `ng.jit` compiles it; the first call, with what it compiles,
# and the largest memory of one call have columns of their own. `--against` adds counterparts that the
# file declares, under whatever name. Forms take turns in processes of their own, so a machine that
# is busy for a moment disturbs all alike.

# %%
assert numgrad("bench", speeds, "--rounds", 5, "--against", "numpy", "--json", "monday.json") == 0

# %% [markdown]
# The figures are in the file, all samples of them, and what machine they come from:

# %%
figures = json.loads((folder / "monday.json").read_text())
print(json.dumps(figures["machine"], indent=1))
assert figures["benchmarks"]

# %% tags=["gallery"]
figure, axes = plt.subplots(figsize=(6, 2.5), layout="constrained")
for k, form in enumerate(("eager", "compiled", "numpy")):
    best = [1e6 * min(entry["seconds"][form]) for entry in figures["benchmarks"]]
    axes.barh(np.arange(len(best)) + 0.25 * (1 - k), best, height=0.25, label=form)
axes.set_yticks(range(len(best)), [entry["name"] for entry in figures["benchmarks"]])
axes.set_xscale("log")
axes.set_xlabel("microseconds, the best of a few rounds")
axes.legend()
plt.show()

# %% [markdown]
# ## Compare with another version
#
# `--compare` takes a commit of the repository that the file is in, another checkout, or a virtual
# environment or Python in which another version is installed. Both are timed by turns of a few
# milliseconds, in CPU time on one thread, in pairs of processes: what else the machine does disturbs
# both alike. What seems to have moved by more than 5 % (`--threshold`) is timed again in as many
# pairs, and named if these say so too. What stays unclear within `--minutes` is *not decided*: that
# is no change, and no absence of one. Here the other version is this Python itself, so nothing moves:

# %%
status = numgrad(
    "bench", speeds, "--compare", sys.executable, "--only", "n=8", "--eager",
    "--minutes", 2, "--junit", "moved.xml",
)  # fmt: skip
assert status == 0
assert "<testsuite" in (folder / "moved.xml").read_text()

# %% [markdown]
# In a workflow, `python -m numgrad bench speeds.py --compare origin/main` has exit status 1 where
# something moved: `--fail-on slower` lets pass what became faster, `--fail-on undecided` nothing that
# is open, `--fail-on never` everything. `--junit FILE` writes what test reports show, and on GitHub
# what moved is shown beside the file (`--github` elsewhere). A benchmark that is gone is named.
#
# Figures of last week are compared as well, as ratios with 99 % intervals. But they do not tell a
# change of the program from one of the machine, so they decide nothing. Figures of another machine
# are refused, unless you say `--force`.

# %%
assert numgrad("bench", speeds, "--rounds", 5, "--compare", "monday.json") == 0

# %% [markdown]
# A benchmark that raises is named with its error; the others are timed, and the exit status is 1, so
# a script that runs this every night notices.

# %%
broken = folder / "broken.py"
broken.write_text("def bench_typo():\n    return undefined_name\n")
assert numgrad("bench", broken, "--eager", "--rounds", 2) == 1

# %% [markdown]
# ## A long history with asv
#
# For pages with a curve for every benchmark over all commits, `bench init` writes what asv needs into
# a package: `asv.conf.json` and a first benchmark. Then `pip install asv`, `asv run`, `asv publish`.

# %%
assert numgrad("bench", "init") == 0
print(sorted(path.name for path in folder.rglob("*.json")))
assert (folder / "asv.conf.json").exists()

# %% [markdown]
# ## In a test suite
#
# Users of [pytest-benchmark](https://pytest-benchmark.readthedocs.io) put
# `pytest_plugins = ["numgrad.testing.pytest_benchmark"]` into `conftest.py` and get the fixture
# `benchmark_warm`, which compiles before it times and waits for results of libraries that compute
# them later:
#
# ```python
# def test_forces(benchmark_warm):
#     benchmark_warm(ng.jit(ng.grad(energy)), positions, 0.1)
# ```
#
# numgrad itself compares two commits with `python perf/compare.py BASE HEAD`: see `perf/README.md`.
