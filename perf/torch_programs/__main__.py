"""Programs written for PyTorch with ``numgrad.torch`` in its place: losses and times.

``python perf/torch_programs [PROGRAM...] [--seconds S] [--json FILE]`` runs each program of the
files here with both libraries from the same initial values, compares the losses, and prints the CPU
time of a training step of each, the smallest of slices taken in turns, on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

for name in ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

FILES = ("polynomials", "basics", "transforms", "networks")
LARGER: dict[str, dict[str, int]] = {
    "by_hand": {"count": 100_000},
    "by_optimizer": {"count": 100_000},
    "optimization": {"count": 512, "features": 128, "width": 256},
    "digits": {"batch": 256, "channels": 32},
    "adversarial": {"batch": 64, "width": 32, "latent": 64},
    "language_model": {"width": 128, "length": 64, "batch": 16},
}
"""Programs that are timed with larger tensors too."""
TOLERANCE = 2e-4
"""Largest difference of losses of ten steps, of their size."""


def programs() -> dict[str, Callable[..., Any]]:
    """The programs by name, in the order of the files."""
    return {
        name: f
        for file in FILES
        for name, f in vars(import_module(file)).items()
        if callable(f) and getattr(f, "__module__", "") == file and name[0].islower()
        if not name.startswith("_") and not isinstance(f, type)
    }


def cases(chosen: list[str]) -> Iterator[tuple[str, Callable[..., Any], dict[str, int]]]:
    """Programs at their own size, and larger ones."""
    for name, program in programs().items():
        if not chosen or name in chosen:
            yield name, program, {}
            if name in LARGER:
                sizes = LARGER[name]
                yield f"{name} " + "x".join(map(str, sizes.values())), program, sizes


def distance(own: list[float], other: list[float]) -> float:
    """The largest difference of two lists of losses, of the size of the numbers."""
    assert len(own) == len(other), (len(own), len(other))
    return max(
        abs(a - b) / max(1.0, abs(b))
        for a, b in zip(map(float, own), map(float, other), strict=True)
    )


def cpu_time() -> float:
    """CPU time of this process and of the processes that it started and that ended, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(
    libraries: list[Any], program: Callable[..., Any], sizes: dict[str, int], seconds: float
) -> tuple[float, list[float]]:
    """The distance of losses, and the smallest CPU time of a step by library."""
    trains = [program(library, **sizes) for library in libraries]
    losses = [train(10) for train in trains]
    error = distance(*losses)
    steps = []
    for train in trains:
        train(10)
        start = cpu_time()
        train(10)
        steps.append(max(1, int(0.05 / max(1e-6, (cpu_time() - start) / 10))))
    best = [math.inf] * len(trains)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for k, train in enumerate(trains):
            start = cpu_time()
            train(steps[k])
            best[k] = min(best[k], (cpu_time() - start) / steps[k])
    return error, best


def main() -> int:
    """Print a line a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--seconds", type=float, default=2.0, help="for both libraries together")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    libraries = [import_module("numgrad.torch"), import_module("torch")]
    for library in libraries:
        library.set_num_threads(1)
    rows = {}
    print(f"{'program':32}{'numgrad us':>12}{'torch us':>12}{'ratio':>8}{'losses':>10}")
    for name, program, sizes in cases(options.programs):
        error, best = measure(libraries, program, sizes, options.seconds)
        rows[name] = {"us": [1e6 * t for t in best], "difference": error}
        shown = f"{1e6 * best[0]:12.1f}{1e6 * best[1]:12.1f}{best[0] / best[1]:8.2f}{error:10.1e}"
        print(f"{name:32}{shown}{'' if error < TOLERANCE else '  DIFFERS'}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
