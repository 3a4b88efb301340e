"""Python loops that a trace unrolls: how often lines of the user's code call, and a warning.

A loop that runs while a function is traced leaves its operations once for each iteration. That one
does so is seen by a line that calls over and over again: a single call, of an optimizer's step or
of a recurrent layer, may append many operations, and no line of the user's repeats them.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType, FrameType

from numgrad.compiler.graph.graph import Graph
from numgrad.core.bytecode import Sites
from numgrad.errors import UnrolledLoopWarning, warn
from numgrad.libraries import is_users

MOST_UNROLLED = 2_000
"""Operations of unrolled loops up to which nothing is said."""
OFTEN = 16
"""How often a line calls at least that counts as one of a loop."""


class CallingLines:
    """The lines of the user's code that call operations.

    Attributes
    ----------
    calls
        How often each did, by ``file:line`` and the place in the line.
    sites
        The instructions that do, if anybody asks.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self.sites: Sites | None = None
        self._entered: FrameType | None = None
        self._known: dict[tuple[CodeType, int], str] = {}

    def current(self) -> str | None:
        """The line that is being run; counts the call if it is a new one."""
        entered, frame = None, sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if is_users(name):
                place = frame.f_lasti
                line = self._known.get((frame.f_code, place))
                if line is None:
                    line = self._known[frame.f_code, place] = f"{name}:{frame.f_lineno}"
                if entered is not self._entered:
                    self._entered = entered
                    self.calls[line, place] += 1
                    if self.sites is not None:
                        self.sites.add(frame)
                return line
            entered, frame = frame, frame.f_back
        return None

    def end(self) -> None:
        """Let go of the last call."""
        self._entered = None


def warn_of_loops(function: str, graph: Graph, lines: CallingLines) -> bool:
    """Say if Python loops became very many operations; a gradient's count as those of its line."""
    ran: dict[str | None, int] = {}
    for (line, _), times in lines.calls.items():
        if times >= OFTEN:
            ran[line] = max(times, ran.get(line, 0))
    made = Counter(node.line for node in graph.nodes if node.line in ran)
    total = made.total()
    if total <= MOST_UNROLLED:
        return False
    line, count = made.most_common(1)[0]
    warn(
        f"jit: Python loops in {function} were unrolled into {total:,} operations, {count:,} of "
        f"them from {line}, which ran {ran[line]:,} times; compiling so many takes "
        "long. Write a loop as operations on arrays that have an axis for its iterations; where "
        "an iteration needs the one before, with ng.scan or ng.fori_loop, which stay loops",
        UnrolledLoopWarning,
    )
    return True
