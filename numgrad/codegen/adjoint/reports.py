"""Report of the values that a gradient keeps of the forward sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from numgrad.codegen.adjoint.backward import Backward
from numgrad.codegen.adjoint.parallel import ParallelText
from numgrad.codegen.adjoint.representation import KernelLoop, walk
from numgrad.codegen.adjoint.scopes import Scope
from numgrad.codegen.adjoint.split import SplitProgram


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
class LoopInSweep:
    """A loop that is written with ``prange``, in one of a kernel's programs.

    Attributes
    ----------
    line
        Where it begins.
    sweep
        "function", "tangents", "forward sweep" or "backward sweep".
    obstacle
        What keeps it from being parallel; empty if nothing does.
    copies
        Arrays of which each task has a sum of its own. The loop is serial in calls where these
        would cost more than an eighth of its work.
    """

    line: int
    sweep: str
    obstacle: str
    copies: tuple[str, ...]

    def __str__(self) -> str:
        where = f"prange in line {self.line}, {self.sweep}"
        if self.obstacle:
            return f"{where}: serial, as {self.obstacle}"
        copies = f", with sums of {', '.join(self.copies)} in each task" if self.copies else ""
        return f"{where}: parallel{copies}"


@dataclass(frozen=True)
class KernelReport:
    """Values that the gradient of a kernel keeps, loops that run again, parallel loops.

    Attributes
    ----------
    kept
        Values that are kept of the forward sweep.
    again
        Lines of loops of which each iteration runs again before it is reversed.
    parallel
        The loops that are written with ``prange``, for each program.
    form
        "fused" if a recorded call computes the gradient with the value: Note [Fused sweeps] in
        ``fused``; "split" if it holds what the backward sweep reads: Note [Split mode] in
        ``split``; "joint" if the backward computes the function again.
    held
        Names of what a recorded call holds in split mode until its backward, besides operands.
    """

    name: str
    kept: tuple[KeptValue, ...]
    again: tuple[int, ...]
    parallel: tuple[LoopInSweep, ...] = ()
    form: str = "joint"
    held: tuple[str, ...] = ()

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
        lines += [f"    {loop}" for loop in self.parallel]
        if self.form == "fused":
            lines.append("    a recorded call computes the gradient with the value, and holds it")
        elif self.form == "split":
            held = ", ".join(self.held) or "nothing besides its operands"
            lines.append(f"    a recorded call holds until its backward: {held}")
        else:
            lines.append(
                "    a backward computes the function again: how much it would read of the call "
                "does not follow from lengths and integers"
            )
        return "\n".join(lines)


def report_of(
    backward: Backward,
    scope: Scope,
    texts: Mapping[str, ParallelText],
    split: SplitProgram | None,
) -> KernelReport:
    """The report of a backward sweep, of programs by name, and of split mode."""
    tapes = backward.tapes

    def line(loop_line: int) -> int:
        return loop_line + scope.first - 1

    kept = [
        KeptValue(name, backward.function.dtypes[name], line(loop.line), len(tapes.chain(loop)))
        for name, loop in tapes.loops.items()
    ]
    again = sorted({line(loop.line) for loop in tapes.replayed if loop not in backward.fused})
    lines: dict[str, int] = {}
    for s in walk(backward.function.body):
        if isinstance(s, KernelLoop):
            lines |= {s.variable: line(s.line), f"k{s.key}_": line(s.line)}
    parallel = []
    for word, text in texts.items():
        for loop in text.loops:
            sweep = f"{'backward' if loop.backwards else 'forward'} sweep"
            parallel.append(
                LoopInSweep(
                    lines[loop.variable],
                    sweep if word == "gradient" else word,
                    loop.obstacle,
                    tuple(loop.sums),
                )
            )
    form = "fused" if backward.fused else "joint" if split is None else "split"
    held = split.held if split is not None and form == "split" else ()
    return KernelReport(scope.name, tuple(kept), tuple(again), tuple(parallel), form, held)
