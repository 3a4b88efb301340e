"""Measures how cost grows with elements, steps, parameters and operations, on one thread.

``python perf/growth.py [CURVE...] [--json FILE] [--chart FILE]`` prints times of the CPU, and the
slopes of their logarithms: 1 means linear. ``notebooks/growth.json`` is what the site draws.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
LEAST, SECONDS, MOST = 3, 0.2, 1000
"""A figure is the smallest of at least so many calls, of those that fit into so many seconds."""


def best(f: Callable, *args: Any) -> float:
    """CPU seconds of the fastest call, after a first one."""
    f(*args)
    times: list[float] = []
    while len(times) < LEAST or (sum(times) < SECONDS and len(times) < MOST):
        began = time.process_time()
        f(*args)
        times.append(time.process_time() - began)
    return min(times)


def elements(compiled: bool) -> Iterator[tuple[int, float]]:
    """Value and gradient of a sum of elementwise functions."""
    import numpy as np

    import numgrad as ng

    f: Any = ng.value_and_grad(lambda a, b: np.sum(np.exp(np.tanh(a * b) + a)), (0, 1))
    f = ng.jit(f) if compiled else f
    for n in (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000):
        yield n, best(f, *np.random.default_rng(0).uniform(-1.0, 1.0, (2, n)))


def reductions() -> Iterator[tuple[int, float]]:
    """Value and gradient of the variance of rows of 100, compiled."""
    import numpy as np

    import numgrad as ng

    f: Any = ng.jit(ng.value_and_grad(lambda x: np.sum(np.std(x, axis=1) * np.max(x, axis=1))))
    for n in (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000):
        yield n, best(f, np.random.default_rng(0).normal(size=(n // 100, 100)))


def steps() -> Iterator[tuple[int, float]]:
    """Value and gradient of so many Runge-Kutta steps of Lorenz's system, by a compiled scan."""
    import numpy as np
    from loops import LOOPS

    import numgrad as ng

    stated = LOOPS["lorenz"]
    for n in (10, 100, 1000, 10_000, 100_000):
        f = ng.jit(stated.written(np, ng, steps=n))
        yield n, best(f, *stated.arguments(steps=n))


def parameters(compiled: bool) -> Iterator[tuple[int, float]]:
    """Value and gradient of Rosenbrock's function of so many parameters."""
    import numpy as np

    import numgrad as ng

    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    f: Any = ng.value_and_grad(rosenbrock)
    f = ng.jit(f) if compiled else f
    for n in (10, 100, 1000, 10_000):
        yield n, best(f, np.random.default_rng(0).normal(size=n))


def hessian() -> Iterator[tuple[int, float]]:
    """The Hessian of Rosenbrock's function by its sparsity, compiled."""
    import numpy as np

    import numgrad as ng

    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    for n in (10, 100, 1000, 10_000):
        x = np.random.default_rng(0).normal(size=n)
        pattern = ng.func.sparsity(ng.grad(rosenbrock), x)
        yield n, best(ng.hessian(ng.jit(rosenbrock), sparsity=pattern), x)


def operations(what: str) -> Iterator[tuple[int, float]]:
    """An unrolled loop and its gradient: trace and compile at the first call, run afterwards."""
    import numpy as np
    from problems import PROBLEMS

    import numgrad as ng

    stated = PROBLEMS["long chain"]
    for n in (500, 1000, 2000, 4000, 8000, 16_000):
        f = stated.written(np, ng.logsumexp, operations=n)
        args = stated.arguments(n=100, operations=n)
        g: Any = ng.value_and_grad(f, stated.argnums)
        if what == "eager":
            yield n, best(g, *args)
            continue
        g = ng.jit(g)
        began = time.process_time()
        g(*args)
        first = time.process_time() - began
        yield n, (first if what == "first" else best(g, *args))


CURVES: dict[str, Callable[[], Iterator[tuple[int, float]]]] = {
    "elements, eager": lambda: elements(False),
    "elements, compiled": lambda: elements(True),
    "reduced elements, compiled": reductions,
    "steps of a scan": steps,
    "parameters, eager": lambda: parameters(False),
    "parameters, compiled": lambda: parameters(True),
    "parameters, sparse Hessian": hessian,
    "operations, eager": lambda: operations("eager"),
    "operations, first call": lambda: operations("first"),
    "operations, compiled": lambda: operations("run"),
}


def slope(points: list[list[float]]) -> float:
    """The slope of the logarithms of a curve, by least squares over the larger half of it."""
    import numpy as np

    upper = np.log(np.array(points[len(points) // 2 - 1 :]))
    return float(np.polyfit(upper[:, 0], upper[:, 1], 1)[0])


def main() -> None:
    """Measure the curves asked for, with an empty kernel cache."""
    parser = argparse.ArgumentParser(prog="python perf/growth.py", description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=f"part of a name: {[*CURVES]}")
    parser.add_argument("--most", type=float, default=1e9, help="largest n")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--chart", type=Path, help="draw those of --json, as PNG or SVG")
    args = parser.parse_args()
    from gradbench.cpp import processor

    import numgrad as ng

    ng.set_num_threads(1)
    results: dict[str, Any] = {"cpu": processor(), "curves": {}}
    for name, measured in CURVES.items():
        if args.curves and not any(part in name for part in args.curves):
            continue
        points: list[list[float]] = []
        for n, seconds in measured():
            points.append([n, float(f"{seconds:.4g}")])
            print(f"{name:28} {n:10,} {1e6 * seconds:14,.1f} us", flush=True)
            if n >= args.most:
                break
        results["curves"][name] = {"points": points, "slope": round(slope(points), 3)}
        print(f"{name:28} slope {results['curves'][name]['slope']:.2f}", flush=True)
    if args.json:
        curves = ",\n".join(
            f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in results["curves"].items()
        )
        cpu = json.dumps(results["cpu"])
        args.json.write_text(f'{{\n "cpu": {cpu},\n "curves": {{\n{curves}\n }}\n}}\n')
    if args.json and args.chart:
        sys.path.append(str(HERE.parent / "notebooks"))
        from _site.chart import draw_growth  # pyright: ignore

        draw_growth(args.json, args.chart)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMGRAD_CACHE_DIR"] = cache
        main()
