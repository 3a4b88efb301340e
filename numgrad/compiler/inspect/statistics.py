"""Counts of calls, traces and kernels of jitted functions."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from numgrad.dataclass import dataclass

FUNCTIONS: WeakSet[Any] = WeakSet()
"""Every jitted function that is alive."""


@dataclass
class Statistics:
    """Counts of one jitted function.

    Attributes
    ----------
    name
        Its module and name.
    calls
        How often it was called, eager calls left out.
    traces
        How often its Python code ran to be traced.
    compiles
        How many kernels were made of it.
    cache_hits
        How many of these came from disk.
    seconds
        Time that tracing, and compiling kernels or loading them, took.
    """

    name: str
    calls: int = 0
    traces: int = 0
    compiles: int = 0
    cache_hits: int = 0
    seconds: float = 0.0


class StatisticsTable(tuple[Statistics, ...]):
    """Statistics of several functions, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no jitted functions"
        width = max(len(row.name) for row in self)
        head = (
            f"{'function':{width}} {'calls':>9} {'traces':>7} {'compiles':>9} {'hits':>5} {'s':>7}"
        )
        rows = [
            f"{row.name:{width}} {row.calls:9} {row.traces:7} {row.compiles:9} "
            f"{row.cache_hits:5} {row.seconds:7.2f}"
            for row in self
        ]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        from numgrad.markup import table  # which a first call does without

        head = ("function", "calls", "traces", "compiles", "from disk", "seconds")
        rows = (
            [row.name, *map(str, (row.calls, row.traces, row.compiles, row.cache_hits)),
             f"{row.seconds:.2f}"]
            for row in self
        )  # fmt: skip
        return table(rows, head)


def jit_stats() -> StatisticsTable:
    """Counts of calls, traces and kernels of each jitted function so far.

    Returns
    -------
    tuple of Statistics
        One for each function that was called, in alphabetical order; shown as a table.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.jit
    ... def double(x):
    ...     return 2 * x
    >>> for n in (3, 4, 5):
    ...     y = double(np.ones(n))
    >>> stats = next(s for s in ng.jit_stats() if s.name.endswith("double"))
    >>> stats.calls, stats.traces
    (3, 1)
    """
    results = [function.statistics for function in list(FUNCTIONS)]
    return StatisticsTable(sorted((s for s in results if s.calls), key=lambda s: s.name))
