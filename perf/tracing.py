"""CPU seconds of tracing, passes and lowering by the size of the graph: ``python perf/tracing.py``.

Nothing is compiled. Time should grow like the number of nodes: the last column is about the same in
all lines of a function.

    python perf/tracing.py                      # every function, about 1,500 to 20,000 nodes
    python perf/tracing.py rk4 --nodes 6000     # one function, one size
    python perf/tracing.py rk4 --profile lower  # where a stage spends its time
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.compiler.call.signature import Arguments, Parameters
from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.run import program
from numgrad.compiler.run.program import Options
from numgrad.compiler.trace.tracing import trace

STAGES = ("trace", "passes", "lower")
NODES = (1_500, 6_000, 20_000)


def elementwise(steps: int) -> tuple[Callable, tuple]:
    """A chain of operations on a vector, and its gradient."""

    def f(x: Any) -> Any:
        y = x
        for _ in range(steps):
            y = np.sin(y) * 0.5 + x
        return np.sum(y)

    return ng.value_and_grad(f), (np.linspace(0.1, 1.0, 100),)


def _lorenz(u: Any) -> Any:
    x, y, z = u[0], u[1], u[2]
    return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])


def rk4(steps: int) -> tuple[Callable, tuple]:
    """Steps of Runge and Kutta for the equations of Lorenz, and the gradient."""

    def f(u: Any) -> Any:
        h = 0.01
        for _ in range(steps):
            k1 = _lorenz(u)
            k2 = _lorenz(u + 0.5 * h * k1)
            k3 = _lorenz(u + 0.5 * h * k2)
            k4 = _lorenz(u + h * k3)
            u = u + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return np.sum(u)

    return ng.value_and_grad(f), (np.array([1.0, 2.0, 3.0]),)


def recurrent(steps: int) -> tuple[Callable, tuple]:
    """A recurrent network over rows of a matrix, and the gradients, also on the tape."""

    def f(w: Any, v: Any, x: Any) -> Any:
        h = ng.zeros(8)
        for k in range(steps):
            h = np.tanh(h @ w + x[k] @ v)
        return np.sum(h * h)

    draw = np.random.default_rng(0)
    w, v = (ng.tensor(draw.normal(size=(8, 8)) * 0.3, requires_grad=True) for _ in range(2))
    return f, (w, v, draw.normal(size=(steps, 8)))


FUNCTIONS = {"elementwise": elementwise, "rk4": rk4, "recurrent": recurrent}


class Stages:
    """Seconds of each stage of compiling a function once."""

    def __init__(self, profiled: str | None = None) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.profiler = cProfile.Profile()
        self.profiled = profiled
        self.nodes = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        inside = self.profiler if name == self.profiled else nullcontext()
        begin = time.process_time()
        with inside:
            yield
        self.seconds[name] += time.process_time() - begin

    def run(self, function: Callable, arguments: tuple) -> None:
        """Compile, except for what follows lowering."""
        parameters = Parameters(function, (), (), ())
        given = Arguments.of(parameters, parameters.bind(arguments, {}))
        recorded = any(isinstance(a, ng.Tensor) for a in arguments)
        gc.collect()
        with self.stage("trace"):
            traced = trace(given, dynamic=True, recorded=recorded)
        parts = [traced.graph]
        if traced.parts is not None:
            parts = [traced.parts.forward, traced.parts.backward]
        self.nodes = sum(len(part.nodes) for part in parts)
        for part in parts:
            self._lower(part)

    def _lower(self, graph: Graph) -> None:
        optimize = program.optimize

        def timed(graph: Graph, **options: Any) -> Any:
            with self.stage("passes"):
                return optimize(graph, **options)

        program.optimize = timed  # pyright: ignore
        before = self.seconds["passes"]
        try:
            with self.stage("lower"):
                made = program.KernelProgram(graph, Options())
                assert made.source
        finally:
            program.optimize = optimize  # pyright: ignore
        self.seconds["lower"] -= self.seconds["passes"] - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("functions", nargs="*", choices=[[], *FUNCTIONS], metavar="FUNCTION")
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=1, help="of which the fastest counts")
    parser.add_argument("--profile", choices=STAGES)
    parser.add_argument("--sort", default="tottime")
    options = parser.parse_args()
    print(f"{'function':<14}{'nodes':>8}", *(f"{s:>9}" for s in STAGES), f"{'ms a node':>11}")
    for name in options.functions or FUNCTIONS:
        make = FUNCTIONS[name]
        Stages().run(*make(2))  # import what is imported late
        per_step = _per_step(make)
        for wanted in options.nodes or NODES:
            function, arguments = make(max(round(wanted / per_step), 1))
            rounds = []
            for _ in range(options.rounds):
                stages = Stages(options.profile)
                stages.run(function, arguments)
                rounds.append(stages)
            best = min(rounds, key=lambda r: sum(r.seconds.values()))
            total = sum(best.seconds.values())
            print(
                f"{name:<14}{best.nodes:>8}",
                *(f"{best.seconds[s]:>9.2f}" for s in STAGES),
                f"{1e3 * total / best.nodes:>11.3f}",
                flush=True,
            )
            if options.profile:
                pstats.Stats(best.profiler).sort_stats(options.sort).print_stats(38)


def _per_step(make: Callable) -> float:
    """How many nodes a further step has."""
    found = []
    for steps in (4, 14):
        stages = Stages()
        stages.run(*make(steps))
        found.append(stages.nodes)
    return (found[1] - found[0]) / 10


if __name__ == "__main__":
    main()
