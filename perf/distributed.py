"""Data parallel programs on two processes of one thread each, against one, PyTorch and mpi4py.

``python perf/distributed.py`` prints one JSON object. All is float32, and a process has one thread,
for kernels and for BLAS. Programs that are compared run in turns, and the best round of each
counts. It needs the extra ``mpi``, for the comparison with gloo PyTorch.

- ``ddp``: samples a second of an MLP 64-1024-1024-10, 512 rows a rank: 2 ranks against 1, at least
  1.6 times; and against ``torch.nn.parallel.DistributedDataParallel`` on gloo, not slower.
- ``all_reduce``: 25 MB of gradients in buckets against ``MPI.COMM_WORLD.Allreduce`` in place, at
  most 1.2 times, from gradients to means in their place. A backward with and without means is there
  to see what they cost in use; ``all_reduce`` is that of one array of 25 MB.
- ``parallel``: milliseconds of a call of ``ng.parallel.value_and_grad`` on two processes with
  hardly any data or work, at most 2.
- ``latencies``: microseconds of an all-reduce by bytes, latency and bandwidth fitted to them.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

WIDTHS, ROWS = (64, 1024, 1024, 10), 512
WARM_UP, STEPS, ROUNDS = 3, 40, 3


def best_of(calls: int, call: Any, before: Any = None) -> float:
    """The shortest time of several."""
    times = []
    for _ in range(calls):
        if before is not None:
            before()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def best_of_all(comm: Any, calls: int, call: Any) -> float:
    """The shortest time of several, from the first rank's begin to the last rank's end."""
    times = []
    for _ in range(calls):
        comm.Barrier()
        began = time.perf_counter()  # of the machine, the same for all processes
        call()
        every = comm.allgather((began, time.perf_counter()))
        times.append(max(end for _, end in every) - min(begin for begin, _ in every))
    return min(times)


# ------------------------------------------------------------------------------------------ ranks


def ddp_rank() -> dict[str, float]:
    """Samples a second of this many ranks."""
    import numgrad as ng
    from numgrad import nn

    ng.distributed.init_process_group()
    rank, size = ng.distributed.get_rank(), ng.distributed.get_world_size()
    layers: list[Any] = []
    for a, b in pairwise(WIDTHS):
        layers += [nn.Linear(a, b), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers[:-1]).to(ng.float32))
    optimizer = ng.optim.SGD(model.parameters(), lr=0.01)
    draw = np.random.default_rng(rank)
    x = ng.tensor(draw.normal(size=(ROWS, WIDTHS[0])).astype(np.float32))
    y = ng.tensor(draw.integers(0, WIDTHS[-1], ROWS))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    seconds = best_of(STEPS, step, ng.distributed.barrier)
    slowest = np.array(seconds)
    ng.distributed.all_reduce(slowest, ng.distributed.ReduceOp.MAX)
    return {"samples": size * ROWS / float(slowest)}


def torch_rank() -> dict[str, float]:
    """Samples a second of PyTorch on gloo; rank and size are in the environment."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    layers: list[Any] = []
    for a, b in pairwise(WIDTHS):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    draw = np.random.default_rng(rank)
    x = torch.from_numpy(draw.normal(size=(ROWS, WIDTHS[0])).astype(np.float32))
    y = torch.from_numpy(draw.integers(0, WIDTHS[-1], ROWS))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    seconds = best_of(STEPS, step, torch.distributed.barrier)
    slowest = torch.tensor(seconds)
    torch.distributed.all_reduce(slowest, torch.distributed.ReduceOp.MAX)
    torch.distributed.destroy_process_group()
    return {"samples": size * ROWS / float(slowest)}


def all_reduce_rank() -> dict[str, Any]:
    """Milliseconds for 25 MB in buckets and by mpi4py, and latencies."""
    from mpi4py import MPI

    import numgrad as ng
    from numgrad.distributed.group import group_of
    from numgrad.nn.parallel.reducer import Reducer

    ng.distributed.init_process_group()
    comm = MPI.COMM_WORLD
    params = [ng.zeros(125_000, dtype=np.float32, requires_grad=True) for _ in range(50)]
    reducer = Reducer([(str(k), p) for k, p in enumerate(params)], group_of("perf"), 25 << 20)
    loss = sum([p.sum() for p in params], start=ng.tensor(0.0))
    loss.backward(retain_graph=True)
    flat = np.ones(50 * 125_000, np.float32)

    def backward(enabled: bool) -> None:
        reducer.enabled = enabled
        for p in params:
            p.grad = None
        loss.backward(retain_graph=True)

    def averaged() -> None:
        """What hooks do in a backward: give gradients, send buckets, put means in their place."""
        reducer._waiting = set(range(len(params)))
        reducer._clear()
        for k in reversed(range(len(params))):
            grad: Any = params[k].grad
            reducer._give(k, grad.numpy())
        reducer._waiting = set()
        reducer._finish()

    calls: dict[str, Any] = {
        "mpi4py": lambda: comm.Allreduce(MPI.IN_PLACE, flat),
        "all_reduce": lambda: ng.distributed.all_reduce(flat),
        "averaged": averaged,
        "backward with means": lambda: backward(True),
        "backward without": lambda: backward(False),
    }
    found = dict.fromkeys(calls, np.inf)
    for _ in range(20):
        for name, call in calls.items():
            found[name] = min(found[name], 1e3 * best_of_all(comm, 4, call))
    times = {}
    for size in (8, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24):
        array = np.ones(size // 8)
        best = best_of_all(comm, 30, lambda a=array: ng.distributed.all_reduce(a))
        times[size] = round(1e6 * best, 2)
    return {"milliseconds": found, "latencies": times}


ROLES = {"ddp": ddp_rank, "torch": torch_rank, "all_reduce": all_reduce_rank}


# --------------------------------------------------------------------------------------- launching


def launched(role: str, ranks: int) -> dict[str, Any]:
    """The result of the first of some ranks."""
    command = [sys.executable, "-m", "numgrad", "launch", "--threads", "1", "-n", str(ranks)]
    done = subprocess.run(
        [*command, __file__, role], capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(done.stdout.splitlines()[-1])


def gloo(ranks: int) -> dict[str, Any]:
    """What PyTorch's ranks found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "torch"],
            env={
                **os.environ,
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    texts = [one.communicate(timeout=300)[0] for one in started]
    return json.loads(texts[0].splitlines()[-1])


def of_one_number(w: Any, x: Any) -> Any:
    """A function that is hardly any work."""
    return np.sum(w * x)


def parallel_call() -> float:
    """Milliseconds of a call on two processes."""
    import numgrad as ng

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        f = ng.parallel.value_and_grad(of_one_number, executor, chunks=2, jit=True)
        x = np.ones(2)
        for _ in range(50):
            f(1.0, x)
        return 1e3 * best_of(200, lambda: f(1.0, x))


def fitted(times: dict[str, float]) -> dict[str, float]:
    """Latency in microseconds and gigabytes a second of ``latency + bytes / bandwidth``."""
    sizes, seconds = np.array([float(s) for s in times]), np.array(list(times.values()))
    rows = np.column_stack([np.ones_like(sizes), sizes]) / seconds[:, None]  # relative errors
    latency, slope = np.linalg.lstsq(rows, np.ones_like(sizes), rcond=None)[0]
    return {"latency": latency, "bandwidth": 1e-3 / slope}


def main() -> None:
    """Measure and print."""
    one, two, peer, peers = [], [], [], []
    for _ in range(ROUNDS):
        one.append(launched("ddp", 1)["samples"])
        two.append(launched("ddp", 2)["samples"])
        if find_spec("torch") is not None:
            peer.append(gloo(1)["samples"])
            peers.append(gloo(2)["samples"])
    reduced = launched("all_reduce", 2)
    found = reduced["milliseconds"]
    figures = {
        "ddp": {
            "one": max(one),
            "two": max(two),
            "ratio": max(two) / max(one),
            "torch": max(peers, default=None),
            "to torch": max(two) / max(peers) if peers else None,
            "torch's ratio": max(peers) / max(peer) if peers else None,
        },
        "all_reduce": {
            **found,
            "ratio": found["averaged"] / found["mpi4py"],
        },
        "parallel": parallel_call(),
        "latencies": {**reduced["latencies"], **fitted(reduced["latencies"])},
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        text = json.dumps(ROLES[sys.argv[1]]())
        if os.environ.get("RANK", "0") == "0" and os.environ.get("PMI_RANK", "0") == "0":
            print(text)
    else:
        main()
