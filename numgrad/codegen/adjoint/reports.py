"""Report of the values that a gradient keeps of the forward sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.backward import Backward
from numgrad.codegen.adjoint.compiled import Text
from numgrad.codegen.adjoint.representation import Allocate, KernelFunction, KernelLoop, Load, walk
from numgrad.codegen.adjoint.scopes import Scope
from numgrad.codegen.adjoint.split import SplitProgram
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradKernelError
from numgrad.markup import preformatted


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
class KeptArray:
    """An array that is kept whole, in each step or at the start of each segment of a loop.

    Attributes
    ----------
    name, dtype
        Its name in ``source("backward")``.
    line
        Where the loop begins.
    """

    name: str
    dtype: np.dtype
    line: int

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.dtype.itemsize} bytes an element, for the loop in line {self.line}"
        )


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
class LoopWithoutVectors:
    """An innermost loop that is not compiled to vectors, in one of a kernel's programs.

    Attributes
    ----------
    line
        Where it begins.
    sweep
        "function", "gradient" or "tangents".
    obstacle
        What keeps it from vectors, by names of ``source``.
    """

    line: int
    sweep: str
    obstacle: str

    def __str__(self) -> str:
        return f"loop in line {self.line}, {self.sweep}: not in vectors, as {self.obstacle}"


@dataclass(frozen=True)
class KernelReport:
    """Values that the gradient of a kernel keeps, loops that run again, parallel loops.

    Attributes
    ----------
    kept
        Values that are kept of the forward sweep.
    arrays
        Arrays that are kept whole.
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
    scalar
        The innermost loops that are not compiled to vectors, for each program.
    bytes
        What the gradient keeps in a call with the given arguments; None if none are given, or if it
        is known in the call only.
    """

    name: str
    kept: tuple[KeptValue, ...]
    again: tuple[int, ...]
    arrays: tuple[KeptArray, ...] = ()
    parallel: tuple[LoopInSweep, ...] = ()
    scalar: tuple[LoopWithoutVectors, ...] = ()
    bytes: int | None = None
    form: str = "joint"
    held: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def __str__(self) -> str:
        parts = [
            f"{len(items)} {word}{'s' * (len(items) > 1)}"
            for items, word in ((self.kept, "value"), (self.arrays, "array"))
            if items
        ]
        lines = [f"{self.name}: the gradient keeps {' and '.join(parts) or 'nothing'}"]
        if self.bytes is not None:
            lines[0] += f", {self.bytes:,} bytes in all"
        for value in self.kept:
            nested = f", in {value.depth} loops" if value.depth > 1 else ""
            lines.append(
                f"    {value.name}: {value.dtype.itemsize} bytes an iteration of the loop in line "
                f"{value.line}{nested}"
            )
        lines += [f"    {array}" for array in self.arrays]
        lines += [f"    iterations of the loop in line {line} run again" for line in self.again]
        lines += [f"    {loop}" for loop in (*self.parallel, *self.scalar)]
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
    function: KernelFunction,
    backward: Backward,
    scope: Scope,
    texts: Mapping[str, Text],
    split: SplitProgram | None,
    is_fused: bool,
    kept_bytes: int | None = None,
) -> KernelReport:
    """The report of a function's backward sweep, of programs by name, and of split mode."""
    tapes = backward.tapes

    def line(loop_line: int) -> int:
        return loop_line + scope.first - 1

    kept = [
        KeptValue(name, backward.function.dtypes[name], line(loop.line), len(tapes.chain(loop)))
        for name, loop in tapes.loops.items()
    ]
    again = sorted({line(loop.line) for loop in tapes.replayed if loop not in backward.fused})

    def lines_of(text: KernelFunction) -> dict[str, int]:
        """The lines of loops, by the names of their indices in texts."""
        loops = [s for s in walk(text.body) if isinstance(s, KernelLoop)]
        return {n: line(s.line) for s in loops for n in (s.variable, f"k{s.key}_")}

    lines = {word: lines_of(function) for word in texts}
    lines["gradient"] = lines_of(backward.function)
    statements = list(walk(backward.function.body))
    copies = {s.copy[0] for s in statements if isinstance(s, Load) and s.copy is not None}
    arrays = [
        KeptArray(s.array, backward.function.arrays[s.array].dtype, line(s.line))
        for s in statements
        if isinstance(s, Allocate) and s.array in copies
    ]
    parallel = []
    for word, text in texts.items():
        for loop in text.parallel.loops:
            sweep = f"{'backward' if loop.backwards else 'forward'} sweep"
            parallel.append(
                LoopInSweep(
                    lines[word][loop.variable],
                    sweep if word == "gradient" else word,
                    loop.obstacle,
                    tuple(loop.sums),
                )
            )
    form = "fused" if is_fused else "joint" if split is None else "split"
    held = () if split is None else split.held
    scalar = {
        LoopWithoutVectors(lines[word][variable], word, obstacle): None
        for word, text in texts.items()
        for variable, obstacle in text.scalar_loops().items()
        if variable in lines[word]
    }
    return KernelReport(
        scope.name,
        tuple(kept),
        tuple(again),
        tuple(arrays),
        tuple(parallel),
        tuple(scalar),
        kept_bytes,
        form,
        held,
    )


def kept_bytes(split: SplitProgram, given: Mapping[str, Any]) -> int | None:
    """The bytes that a gradient in split mode keeps in a call, with those of a segment or so."""
    total = split.nbytes(given)
    tapes, lengths = split.backward.tapes, split.lengths
    for name, loop in tapes.loops.items():
        root = tapes.root(loop)
        if root is None:
            continue
        size = split.function.dtypes[name].itemsize
        try:
            for one in tapes.chain(loop):
                first = {**given, root.variable: 0}
                bounds = [int(lengths.value(n, first)) for n in (one.low, one.high, one.step)]
                size *= len(range(*bounds))
        except (NumgradKernelError, ValueError):
            return None
        total += size
    return total
