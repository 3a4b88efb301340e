"""Build, differentiate and release a chain of N nodes: ``python perf/deep_chain.py LIBRARY N``.

Prints seconds of CPU time (everything runs in one thread) and bytes as one JSON object. A second
chain is released without a backward, in a thread whose stack of 256 KiB would overflow if the
release recursed.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

SMALL_STACK = 256 * 1024


def resident() -> int:
    """Bytes of memory this process holds."""
    text = Path("/proc/self/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def build(x: Any, sin: Any, nodes: int) -> Any:
    """Two operations a step: one that saves its operand and one that does not."""
    for _ in range(nodes // 2):
        x = sin(x * 1.25)
    return x


def main() -> None:
    """Measure and print."""
    library, nodes = sys.argv[1], int(sys.argv[2])
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
        sin, one = torch.sin, torch.ones(1, dtype=torch.float64)
    else:
        import numpy as np

        import numgrad as ng

        ng.set_num_threads(1)
        x = ng.tensor([0.5], requires_grad=True)
        sin, one = ng.sin, np.ones(1)
    build(x, sin, 1000).backward(one)
    x.grad = None
    gc.collect()
    before = resident()
    began = time.process_time()
    y = build(x, sin, nodes)
    built = time.process_time()
    held = resident()
    y.backward(one)
    walked = time.process_time()
    peak = resident()
    del y
    released = time.process_time()
    kept = [build(x, sin, nodes)]
    threading.stack_size(SMALL_STACK)
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    figures = {
        "build": built - began,
        "backward": walked - built,
        "release": released - walked,
        "bytes": max(held, peak) - before,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
