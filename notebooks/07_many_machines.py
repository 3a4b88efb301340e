# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From one process to many machines
#
# Two ways lead out of one process. Programs whose *ranks* all run the same script and average what they
# find use `ng.distributed`, on MPI: this is how networks are trained. Functions that are sums over their
# data are cut into pieces by `ng.parallel`, and computed by threads, processes or Dask.
#
# The first needs `pip install 'numgrad-jit[mpi]'` (mpi4py, and an MPI for one machine; a cluster brings
# its own), Dask needs `'numgrad-jit[dask]'`. Cells that need what is not installed say so.

# %%
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import numgrad as ng

HAS_MPI = ng.distributed.is_mpi_available()
FOLDER = Path(tempfile.mkdtemp())


def launch(ranks, program):
    """Run a program on several ranks, print what they print."""
    if ranks > 1 and not HAS_MPI:
        print(f"{program} on {ranks} ranks: mpi4py is not installed")
        return ""
    command = [sys.executable, "-m", "numgrad", "launch", "-n", str(ranks), str(FOLDER / program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        print(f"{program} on {ranks} ranks did not run:", done.stderr.strip().rpartition("\n")[2])
    print(done.stdout, end="")
    return done.stdout


# %% [markdown]
# ## A logistic regression
#
# A program for any number of ranks: each takes its rows and computes the gradient of its part, and
# `all_reduce` adds the parts up. All ranks get the same bits, so they all take the same step. Without
# a launcher there is one rank, and the same program runs.

# %%
(FOLDER / "regression.py").write_text("""
import numpy as np
import numgrad as ng
from numgrad import distributed as dist

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

draw = np.random.default_rng(0)  # all ranks draw the same data, and keep their rows
x, truth = draw.normal(size=(4000, 5)), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
y = (draw.random(4000) < 1 / (1 + np.exp(-x @ truth))).astype(float)
rows = slice(rank, None, size)

@ng.value_and_grad
def loss(w, x, y):
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)

w = np.zeros(5)
for step in range(200):
    value, gradient = loss(w, x[rows], y[rows])
    total = np.append(gradient, value)
    dist.all_reduce(total)
    w -= 2.0 * total[:-1] / len(x)
if rank == 0:
    print(f"{size} ranks: loss {total[-1] / len(x):.12f}, w {w.round(4)}")
""")
found = [launch(ranks, "regression.py") for ranks in (1, 2, 4)]
losses = [float(text.split("loss ")[1].split(",")[0]) for text in found if text]
assert np.ptp(losses) < 1e-10  # sums of other parts round differently, no more

# %% [markdown]
# ## The digits
#
# A network is wrapped by `DistributedDataParallel`: ranks begin with the parameters of the first, and
# each `backward` averages gradients over ranks while it goes on. `DistributedSampler` gives each rank its
# part of every epoch. The rest of the script is that of one process. The checkpoint is written once, and
# loads for any number of ranks.

# %%
(FOLDER / "digits.py").write_text("""
from pathlib import Path
import numpy as np
from sklearn.datasets import load_digits
import numgrad as ng
from numgrad import distributed as dist, nn

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
ng.random.manual_seed(rank)

digits = load_digits()
images, labels = (digits.data / 16).astype(np.float32), digits.target
train, test = (images[:1440], labels[:1440]), (images[1440:], labels[1440:])
sampler = ng.data.DistributedSampler(train[0], seed=1)
loader = ng.data.DataLoader(train, batch_size=64 // size, sampler=sampler)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(ng.float32)
model = nn.parallel.DistributedDataParallel(model)
optimizer = ng.optim.ZeroRedundancyOptimizer(model.parameters(), ng.optim.Adam, lr=3e-3)
for epoch in range(6):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

optimizer.consolidate_state_dict(to=0)  # each rank has a share of Adam's moments
state = None
if rank == 0:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
dist.checkpoint.save(state, Path(__file__).with_name("digits.safetensors"))
with ng.no_grad():
    right = (model.module(ng.tensor(test[0])).numpy().argmax(axis=1) == test[1]).mean()
if rank == 0:
    print(f"{size} ranks of {64 // size} rows a step: {right:.1%} of the held-out digits")
""")
for ranks in (1, 2, 4):
    launch(ranks, "digits.py")
print(sorted(ng.load(FOLDER / "digits.safetensors")["model"]))

# %% [markdown]
# ### When something is wrong
#
# A collective compares what ranks call before anything is sent; a rank that raises, dies or leaves ends
# the others.

# %%
(FOLDER / "wrong.py").write_text("""
import numgrad as ng
ng.distributed.init_process_group()
ng.distributed.all_reduce(ng.zeros(3 + ng.distributed.get_rank()))
""")
if HAS_MPI:
    command = [sys.executable, "-m", "numgrad", "launch", "-n", "2", str(FOLDER / "wrong.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    print("status", done.returncode)
    print(next(line for line in done.stderr.splitlines() if "NumgradRuntimeError" in line))

# %% [markdown]
# ## What to expect of 1,000 ranks
#
# Time of an all-reduce is measured on two ranks here, and $t = a + B / b$ is fitted to it, with the
# latency $a$ and the bandwidth $b$. The usual algorithms need $2 \log_2 n$ messages one after another, and
# move $2 (n-1)/n$ times the data:
# $$t_n = a \log_2 n + 2 \, \frac{n - 1}{n} \, \frac{B}{b} .$$
# For two ranks this is the line that was fitted. A network has its own $a$ and $b$: measure there. The
# second line below is for 5 us and 10 GB/s.

# %% tags=["gallery"]
(FOLDER / "latencies.py").write_text("""
import time
import numpy as np
import numgrad as ng
dist = ng.distributed
dist.init_process_group()
for size in (8, 1024, 8192, 65536, 524288, 4194304):
    array, times = np.ones(size // 8), []
    for _ in range(15):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(array)
        times.append(time.perf_counter() - began)
    if dist.get_rank() == 0:
        print(size, min(times))
""")
text = launch(2, "latencies.py")
if not text:  # as measured between two processes of a machine with two cores
    text = "8 24e-6\n1024 25e-6\n8192 33e-6\n65536 95e-6\n524288 380e-6\n4194304 2200e-6"
sizes, times = np.array([line.split() for line in text.splitlines()], float).T
rows = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]  # relative errors
latency, slope = np.linalg.lstsq(rows, np.ones_like(sizes), rcond=None)[0]
latency, slope = max(latency, 1e-7), max(slope, 1e-12)
print(f"latency {1e6 * latency:.1f} us, bandwidth {1e-9 / slope:.2f} GB/s")


def all_reduce_seconds(ranks, size, latency, slope):
    """The model of an all-reduce."""
    return latency * np.log2(ranks) + 2 * (ranks - 1) / ranks * size * slope


ranks = 2 ** np.arange(1, 11)
step, size = 50e-3, 4 * 1.13e6  # an MLP of 1.1 million float32 parameters, 50 ms a step
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.loglog(sizes, 1e6 * times, "o", label="measured, 2 ranks")
left.loglog(sizes, 1e6 * all_reduce_seconds(2, sizes, latency, slope), label="fitted")
left.loglog(sizes, 1e6 * all_reduce_seconds(1000, sizes, latency, slope), "--", label="1,000 ranks")
left.set(xlabel="bytes", ylabel="us", title="all-reduce")
left.legend()
for name, a, b in (("this machine", latency, slope), ("5 us, 10 GB/s", 5e-6, 1e-10)):
    seconds = all_reduce_seconds(ranks, size, a, b)
    right.semilogx(ranks, step / (step + seconds), "o-", label=name)
    at = all_reduce_seconds(1000, size, a, b)
    print(
        f"{name}: 1,000 ranks, {1e3 * at:.2f} ms for {size / 1e6:.1f} MB, "
        f"efficiency {step / (step + at):.1%} if nothing overlaps"
    )
right.set(xlabel="ranks", ylabel="efficiency", ylim=(0, 1.05), title="a step of 50 ms")
right.legend()
plt.show()

# %% [markdown]
# ## Functions on pieces of their data
#
# `ng.parallel.value_and_grad` cuts the arguments that are not differentiated along their first axis. The
# pieces are added up in their order: one worker or ten, the result has the same bits. Executors of
# processes and of Dask get the function pickled; with `jit=True` each worker compiles it once.


# %%
def negative_log_likelihood(w, x, y):
    """Of a logistic regression, for some rows."""
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


draw = np.random.default_rng(0)
x, truth = draw.normal(size=(20000, 5)), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
y = (draw.random(20000) < 1 / (1 + np.exp(-x @ truth))).astype(float)

with ThreadPoolExecutor(2) as two, ThreadPoolExecutor(5) as five:
    values = [
        ng.parallel.value_and_grad(negative_log_likelihood, executor, chunks=8)(np.zeros(5), x, y)
        for executor in (None, two, five)
    ]
    assert len({value.tobytes() + gradient.tobytes() for value, gradient in values}) == 1

    likelihood = ng.parallel.value_and_grad(negative_log_likelihood, two, chunks=2)
    w = ng.zeros(5, requires_grad=True)
    result = ng.optim.minimize([w], lambda: likelihood(w, x, y)[0])
    print(result.message, w.detach().numpy().round(3))

    print(ng.parallel.map(lambda row: np.abs(row).max(), x[:6], two))

# %% [markdown]
# Dask's arrays stay where their blocks are: what travels are the parameters and the gradients. What a
# lost worker had is computed again.

# %%
if find_spec("distributed") is None or find_spec("dask") is None:
    print("Dask is not installed")
else:
    import dask.array as da
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        blocks = client.persist((da.from_array(x, chunks=(5000, 5)), da.from_array(y, chunks=5000)))
        on_dask = ng.parallel.value_and_grad(negative_log_likelihood, client)
        value, gradient = on_dask(np.zeros(5), *blocks)
        here, _ = ng.value_and_grad(negative_log_likelihood)(np.zeros(5), x, y)
        print(value, here)
        assert abs(value - here) < 1e-9 * here
