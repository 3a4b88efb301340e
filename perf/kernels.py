"""Loops differentiated by ``ng.kernel``: ``python perf/kernels.py [names]``.

For each kernel, the CPU time of value and gradient together as a multiple of that of the function,
both compiled and on one thread; the gradient written by hand as a multiple of the same, where there
is one (`handwritten/kernels.py`); how long the first call took; and the form of the gradient, as
`report()` says it: fused, split or joint. What is compared runs in turns.

    python perf/kernels.py                       # those of the table
    python perf/kernels.py thomas garch          # any of `tests.codegen.adjoint.science`
    python perf/kernels.py --all                 # each of them
    python perf/kernels.py heat --seconds 5
    python perf/kernels.py lennard_jones barrier_option pruning --threads 2

With ``--threads`` two columns more: how many times faster the function and the gradient are with so
many threads than with one, by wall-clock time in turns, the best run and the median.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import numgrad as ng
from perf.handwritten.kernels import BY_HAND
from tests.codegen.adjoint.science import CASES, Case

TABLE = (
    "lennard_jones", "thomas", "deposit", "soft_dtw", "barrier_option", "heat", "heat_in_place",
    "wave", "pruning", "smith_waterman", "newton_roots",
)  # fmt: skip


def clock(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least CPU time of each, measured in turns."""
    least = dict.fromkeys(calls, float("inf"))
    end = time.process_time() + seconds
    rounds = 0
    while rounds < 3 or time.process_time() < end:
        rounds += 1
        for name, call in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], time.process_time() - start)
    return least


def speedups(calls: dict[str, Callable[[], Any]], threads: int, seconds: float) -> list[str]:
    """The time with one thread by that with several: of the best runs, and of the medians."""
    times: dict[tuple[str, int], list[float]] = {}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times.get(("gradient", 1), ())) < 5:
        for name in ("function", "gradient"):
            for count in (1, threads):
                ng.set_num_threads(count)
                start = time.perf_counter()
                calls[name]()
                times.setdefault((name, count), []).append(time.perf_counter() - start)
    ng.set_num_threads(1)
    return [
        f"{min(times[name, 1]) / min(times[name, threads]):.2f} "
        f"({median(times[name, 1]) / median(times[name, threads]):.2f})"
        for name in ("function", "gradient")
    ]


def statements(case: Case, name: str) -> tuple[dict[str, Callable[[], Any]], float, str]:
    """What is measured of a kernel, how long its first gradient took, and in which form."""
    arguments = case.draw(case.large)
    kernel = ng.kernel(case.function, writes=case.writes)
    places = [
        k
        for k, a in enumerate(arguments)
        if np.asarray(a).dtype.kind in "fc" and not isinstance(a, (bool, int))
    ]
    primals = [np.asarray(arguments[k]) for k in places]

    def call(*given: Any) -> Any:
        values = list(arguments)
        for k, value in zip(places, given, strict=True):
            values[k] = value
        return kernel(*values)

    def first_of(outputs: Any) -> tuple[Any, ...]:
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return tuple(o for o in outputs if o.dtype.kind in "fc")

    seeds = tuple(np.ones(o.shape, o.dtype) for o in first_of(call(*primals)))

    def both() -> Any:
        _, pullback = ng.vjp(lambda *given: first_of(call(*given)), *primals)
        return pullback(seeds)

    start = time.process_time()
    both()
    spent = time.process_time() - start
    found: dict[str, Callable[[], Any]] = {"function": lambda: call(*primals), "gradient": both}
    if name in BY_HAND:
        found["by hand"] = BY_HAND[name](arguments)
    return found, spent, kernel.report(*arguments).form


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *CASES], help="kernels")
    parser.add_argument("--all", action="store_true", help="each kernel of science")
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds for each")
    parser.add_argument("--threads", type=int, default=1, help="threads to compare with one")
    options = parser.parse_args()
    ng.set_num_threads(1)
    heads = [f"{word} x{options.threads}" for word in ("function", "gradient")]
    more = "".join(f"{head:>16}" for head in heads) if options.threads > 1 else ""
    head = f"{'kernel':22}{'function':>12}{'gradient':>10}{'by hand':>9}{'first call':>12}  form  "
    print(head + more)
    for name in options.names or (CASES if options.all else TABLE):
        calls, spent, form = statements(CASES[name], name)
        least = clock(calls, options.seconds)
        base = least["function"]
        ratios = [f"{least[k] / base:.2f}" if k in least else "" for k in ("gradient", "by hand")]
        more = ""
        if options.threads > 1:
            rows = speedups(calls, options.threads, options.seconds)
            more = "".join(f"{text:>16}" for text in rows)
        first = f"{spent:10.2f} s  {form:6}"
        print(
            f"{name:22}{base * 1e3:9.2f} ms{ratios[0]:>10}{ratios[1]:>9}{first}{more}", flush=True
        )


if __name__ == "__main__":
    main()
