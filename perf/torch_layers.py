"""Layers of middle size through ``numgrad.torch`` and PyTorch: ``python perf/torch_layers.py``.

Forward and backward of batches of 64 with width 256, in turns in one process: CPU time on one
thread, with ``--threads`` 2 the time that passes, since threads wait busily.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

BATCH, WIDTH, LENGTH = 64, 256, 32


def cases(torch: Any) -> Iterator[tuple[str, Callable[[], Any], list[Any]]]:
    """Name, what is computed, and whose gradients are asked for."""
    nn, F = torch.nn, torch.nn.functional
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        x = torch.tensor(rng.standard_normal(shape), dtype=torch.float32)
        return x.requires_grad_(True)

    def layer(module: Any) -> Any:
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(draw(*p.shape) * 0.05)
        return module

    x, w, b = draw(BATCH, WIDTH), draw(WIDTH, WIDTH), draw(WIDTH)
    labels = torch.tensor(rng.integers(WIDTH, size=BATCH))
    tokens = torch.tensor(rng.integers(1000, size=(BATCH, LENGTH)))
    images, sequence = draw(16, 32, 28, 28), draw(LENGTH, BATCH, WIDTH // 2)
    heads = draw(8, 4, 64, 32)
    square = draw(WIDTH, WIDTH)
    yield "matmul", lambda: (x @ w).sum(), [x, w]
    yield "linear", lambda: F.linear(x, w, b).sum(), [x, w, b]
    yield "matrix 256 x 256", lambda: (square @ w).sum(), [square, w]
    yield "softmax", lambda: (x.softmax(1) * x).sum(), [x]
    yield "cross entropy", lambda: F.cross_entropy(x, labels), [x]
    yield "gelu", lambda: F.gelu(x).sum(), [x]
    yield "tanh", lambda: x.tanh().sum(), [x]
    yield "sum and scale", lambda: ((x * 2 + b) / 3 - x).pow(2).mean(), [x, b]
    yield "layer norm", lambda: F.layer_norm(x, (WIDTH,), b, b).pow(2).sum(), [x, b]
    embed = layer(nn.Embedding(1000, 64))
    yield "embedding", lambda: embed(tokens).sum(), [embed.weight]
    conv = layer(nn.Conv2d(32, 32, 3, padding=1))
    yield "conv 3 x 3", lambda: conv(images).sum(), [images, *conv.parameters()]
    up = layer(nn.ConvTranspose2d(32, 16, 4, 2, 1))
    yield "transposed conv", lambda: up(images).sum(), [images, *up.parameters()]
    norm = layer(nn.BatchNorm2d(32))
    yield "batch norm", lambda: norm(images).pow(2).sum(), [images, *norm.parameters()]
    yield "max pool", lambda: F.max_pool2d(images, 2).sum(), [images]
    lstm = layer(nn.LSTM(WIDTH // 2, WIDTH // 2))
    yield "LSTM", lambda: lstm(sequence)[0].sum(), [sequence, *lstm.parameters()]
    gru = layer(nn.GRU(WIDTH // 2, WIDTH // 2))
    yield "GRU", lambda: gru(sequence)[0].sum(), [sequence, *gru.parameters()]
    attend = F.scaled_dot_product_attention
    yield "attention", lambda: attend(heads, heads, heads).sum(), [heads]
    mlp = layer(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))
    yield "MLP", lambda: F.cross_entropy(mlp(x), labels), list(mlp.parameters())


def seconds(torch: Any, function: Callable[[], Any], leaves: list[Any], count: int) -> float:
    """Seconds of a value with its gradients."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(count):
        torch.autograd.grad(function(), leaves)
    return (clock() - start) / count


def main() -> int:
    """Print a line a layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    libraries: list[Any] = [import_module("numgrad.torch"), import_module("torch")]
    for library in libraries:
        library.set_num_threads(options.threads)
    for own, other in zip(*map(cases, libraries), strict=True):
        name = own[0]
        if options.parts and not any(part in name for part in options.parts):
            continue
        sides: list[Any] = [(libraries[0], *own[1:]), (libraries[1], *other[1:])]
        values = [side[1]().item() for side in sides]
        apart = abs(values[0] - values[1]) / max(1.0, abs(values[1]))
        counts = [max(1, int(0.02 / max(seconds(*side, 3), 1e-6))) for side in sides]
        best = [math.inf, math.inf]
        for _ in range(options.rounds):
            for k, side in enumerate(sides):
                best[k] = min(best[k], seconds(*side, counts[k]))
        shown = f"{1e6 * best[0]:10.1f}{1e6 * best[1]:10.1f}{best[0] / best[1]:7.2f}"
        print(f"{name:20}{shown}{'' if apart < 1e-3 else '  DIFFERS'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
