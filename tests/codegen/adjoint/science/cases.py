"""The table of kernels of science."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A function of loops, and how to call it.

    Attributes
    ----------
    arguments
        Of a generator of random numbers and a size, what it is called with.
    writes
        Names of arguments that it overwrites.
    size, large
        Sizes for tests and for measurements.
    """

    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator, int], tuple[Any, ...]]
    writes: tuple[str, ...]
    size: int
    large: int

    def draw(self, size: int | None = None, seed: int = 0) -> tuple[Any, ...]:
        return self.arguments(np.random.default_rng(seed), size or self.size)

    @property
    def written(self) -> list[int]:
        names = list(inspect.signature(self.function).parameters)
        return [names.index(name) for name in self.writes]


CASES: dict[str, Case] = {}


def case(
    arguments: Callable[[np.random.Generator, int], tuple[Any, ...]],
    writes: tuple[str, ...] = (),
    size: int = 6,
    large: int = 1000,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Puts a function into the table."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = Case(function, arguments, writes, size, large)
        return function

    return put
