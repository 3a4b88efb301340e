"""Report of the values that a gradient keeps of the forward sweep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numgrad.codegen.adjoint.backward import Backward
from numgrad.codegen.adjoint.scopes import Scope


@dataclass(frozen=True)
class KeptValue:
    """A value that is kept in each iteration of a loop.

    Attributes
    ----------
    name, dtype
        Its name in ``source("backward")``, without the number at its end the user's.
    line
        Where the loop begins.
    depth
        How many loops count its iterations; 1 if room for one run of the loop is enough.
    """

    name: str
    dtype: np.dtype
    line: int
    depth: int


@dataclass(frozen=True)
class KernelReport:
    """Values that the gradient of a kernel keeps, and loops that run again.

    Attributes
    ----------
    kept
        Values that are kept of the forward sweep.
    again
        Lines of loops of which each iteration runs again before it is reversed.
    """

    name: str
    kept: tuple[KeptValue, ...]
    again: tuple[int, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: the gradient keeps {len(self.kept) or 'nothing'}"]
        if self.kept:
            lines[0] += " value" + "s" * (len(self.kept) > 1)
        for value in self.kept:
            nested = f", in {value.depth} loops" if value.depth > 1 else ""
            lines.append(
                f"    {value.name}: {value.dtype.itemsize} bytes an iteration of the loop in line "
                f"{value.line}{nested}"
            )
        lines += [f"    iterations of the loop in line {line} run again" for line in self.again]
        return "\n".join(lines)


def report_of(backward: Backward, scope: Scope) -> KernelReport:
    """The report of a backward sweep."""
    tapes = backward.tapes

    def line(loop_line: int) -> int:
        return loop_line + scope.first - 1

    kept = [
        KeptValue(name, backward.function.dtypes[name], line(loop.line), len(tapes.chain(loop)))
        for name, loop in tapes.loops.items()
    ]
    again = sorted({line(loop.line) for loop in tapes.replayed})
    return KernelReport(scope.name, tuple(kept), tuple(again))
