"""Throughput of two Python threads against one, each with graphs of its own.

``python perf/concurrency.py`` prints one JSON object. Every thread computes and differentiates
chains on a million elements with kernels of one thread, of functions whose derivatives cost as much
as they do (what only moves memory shares its bandwidth); rounds with one thread and with two take
turns, and the smallest times count. The target is 1.6 times the throughput.
"""

from __future__ import annotations

import json
import threading
import time

import numpy as np

import numgrad as ng

SIZE, CHAINS, ROUNDS = 1_000_000, 12, 5


def work() -> None:
    """A few chains, forward and backward."""
    x = ng.tensor(np.linspace(0.1, 1.0, SIZE), requires_grad=True)
    for _ in range(CHAINS):
        y = x
        for _ in range(4):
            y = ng.sin(ng.erf(y))
        y.sum().backward()


def elapsed(count: int) -> float:
    """Seconds that ``count`` threads take, each for the whole work."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    ng.set_num_threads(1)
    work()
    rounds = [(elapsed(1), elapsed(2)) for _ in range(ROUNDS)]
    one, two = (min(column) for column in zip(*rounds, strict=True))
    print(json.dumps({"one": one, "two": two, "throughput": 2 * one / two}))


if __name__ == "__main__":
    main()
