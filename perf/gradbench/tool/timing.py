"""Functions of an eval as GradBench calls them: prepared, run repeatedly, timed, written out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

clock: Callable[[], int] = time.perf_counter_ns
"""Nanoseconds of wall clock, as GradBench wants; ``run.py --cpu`` makes them those of the CPU."""


class Timed:
    """A function of one prepared input; what it returns may be computed later, as in JAX."""

    wait: Callable[[Any], Any] = staticmethod(lambda output: output)
    """Returns its argument when that is computed."""

    def __init__(self, function: Callable, pre: Callable, post: Callable) -> None:
        self.function, self.pre, self.post = function, pre, post

    def __call__(self, prepared: Any) -> Any:
        return self.function(prepared)

    def wrapped(self, message: dict) -> dict:
        """Answers an input of the protocol: output and timings of as many runs as it asks for."""
        prepared = self.pre(message)
        runs = message.get("min_runs", 1) if isinstance(message, dict) else 1
        seconds = message.get("min_seconds", 0.0) if isinstance(message, dict) else 0.0
        times: list[int] = []
        while len(times) < runs or sum(times[1:]) < 1e9 * seconds:  # the first run may compile
            began = clock()
            output = self.wait(self.function(prepared))
            times.append(clock() - began)
        timings = [{"name": "evaluate", "nanoseconds": t} for t in times]
        return {"success": True, "output": self.post(output), "timings": timings}


def timed(pre: Callable, post: Callable, **limits: Any) -> Callable[[Callable], Timed]:
    """Decorate a function of an eval: ``pre`` makes its argument, ``post`` JSON of its results."""
    return lambda function: Timed(function, pre, post)


def as_lists(x: Any) -> Any:
    """An array as nested lists of numbers."""
    return np.asarray(x).tolist()
