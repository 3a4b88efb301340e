"""The eager tape and its walk backwards."""

from __future__ import annotations

import gc
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import numgrad as ng


@lru_cache(maxsize=1)
def _leaves(n: int) -> tuple[Any, Any]:
    """The chain's operands; only those of one size are kept, the largest take 160 MB."""
    rng = np.random.default_rng(0)
    a, b = (ng.tensor(rng.uniform(-1, 1, n), requires_grad=True) for _ in range(2))
    return a, b


class Chain:
    """``sum(exp(tanh(a * b) + a))``."""

    params = (100, 1_000, 100_000, 10_000_000)
    param_names = ("n",)

    def time_forward(self, n: int) -> None:
        a, b = _leaves(n)
        ng.sum(ng.exp(ng.tanh(a * b) + a))

    def time_forward_backward(self, n: int) -> None:
        a, b = _leaves(n)
        ng.sum(ng.exp(ng.tanh(a * b) + a)).backward()
        a.grad = None
        b.grad = None


SMALL = {
    "a * b": lambda a, b: a * b,
    "a * 2.0": lambda a, b: a * 2.0,
    "a[2:50]": lambda a, b: a[2:50],
    "a.reshape": lambda a, b: a.reshape(10, 10),
    "exp(a)": lambda a, b: ng.exp(a),
    "sum(a)": lambda a, b: ng.sum(a),
}


class Recording:
    """One operation on 100 elements, recorded and not."""

    params = (tuple(SMALL), (True, False))
    param_names = ("operation", "recording")

    def time_operation(self, name: str, recording: bool) -> None:
        # Thousand calls a time, so that changing the mode does not count.
        a, b = _leaves(100)
        operation = SMALL[name]
        with ng.set_grad_enabled(recording):
            for _ in range(1000):
                operation(a, b)


class HookedBackward:
    """The backward of 90 small nodes: no hook, one on a leaf of another graph, one on its leaf."""

    params = ("none", "elsewhere", "removed", "leaf")
    param_names = ("hook",)

    def setup(self, hook: str) -> None:
        x, self.other = (ng.tensor(np.ones(10), requires_grad=True) for _ in range(2))
        y = x
        for _ in range(30):
            y = ng.tanh(y * x + x)
        self.loss = ng.sum(y)
        self.loss.backward(retain_graph=True)
        if hook != "none":
            leaf = x if hook == "leaf" else self.other
            handle = leaf.register_hook(lambda g: None)
            if hook == "removed":
                handle.remove()

    def time_backward(self, hook: str) -> None:
        self.loss.backward(retain_graph=True)


class Matmul:
    """Products of small matrices, whose cost is that of the call."""

    params = (4, 16, 64)
    param_names = ("n",)

    def time_forward_backward(self, n: int) -> None:
        a, b = _leaves(n * n)
        y = a.reshape(n, n) @ b.reshape(n, n)
        y.backward(y.detach())
        a.grad = None
        b.grad = None


def _deep(nodes: int) -> Any:
    x = ng.tensor([0.5], requires_grad=True)
    for _ in range(nodes // 2):
        x = ng.sin(x * 1.25)
    return x


class DeepChain:
    """A chain of many nodes, half of which save their operand."""

    params = (250_000, 500_000, 1_000_000)
    param_names = ("nodes",)
    number, repeat, rounds, warmup_time = 1, 2, 1, 0
    timeout = 600

    def time_forward_backward(self, nodes: int) -> None:
        _deep(nodes).backward(np.ones(1))

    def track_bytes_per_node(self, nodes: int) -> float:
        gc.collect()
        before = _resident()
        y = _deep(nodes)
        held = _resident()
        y.backward(np.ones(1))
        return (max(held, _resident()) - before) / nodes

    track_bytes_per_node.unit = "bytes"


def _resident() -> int:
    """Bytes of memory this process holds."""
    text = Path("/proc/self/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
