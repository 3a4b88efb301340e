"""Choice of the values that are kept: a minimum cut between those gone and those needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Block,
    Define,
    KernelBranch,
    KernelLoop,
    Load,
    names_in,
    values_of,
    walk,
)
from numgrad.codegen.adjoint.rotations import cycle_of

_MANY = 200
"""Kept values of a block from which on no minimum is looked for."""


def smallest_cut(
    block: Block, needed: set[str], is_gone: Callable[[Load], bool], operations: Operations
) -> set[str]:
    """The fewest values of a block to keep, so that the needed ones follow from them.

    Gone are what a loop carries, elements that are overwritten, results of inner loops; what is
    dear to compute counts as gone. A value may be kept where it is defined.
    """
    sources, after, free = _graph(block, is_gone, operations)
    return _Flow(sources, after, free, needed).cut()


def _graph(
    block: Block, is_gone: Callable[[Load], bool], operations: Operations
) -> tuple[list[str], dict[str, set[str]], set[str]]:
    """Values that are gone, what follows from each value, and values that cannot be kept."""
    sources: list[str] = []
    after: dict[str, set[str]] = defaultdict(set)
    free: set[str] = set()
    loop = block.loop
    assert loop is not None
    if block is loop.body:
        sources += [
            c.name
            for c in loop.carried
            if c.moves and c.name != loop.variable and c.step is None and not cycle_of(loop, c)
        ]
    for s in block.statements:
        if isinstance(s, Define | Load):
            gone = operations.is_dear(s.operation) if isinstance(s, Define) else is_gone(s)
            if gone:
                sources.append(s.name)
            for value in values_of(s):
                for name in names_in(value):
                    after[name].add(s.name)
        elif isinstance(s, KernelBranch):
            names = {n for n, *_ in s.joined}
            free |= names
            values = [
                *values_of(s),
                *[v for t in (*walk(s.then), *walk(s.other)) for v in values_of(t)],
            ]
            for name in {n for v in values for n in names_in(v)}:
                after[name] |= names
        elif isinstance(s, KernelLoop):
            sources += [c.out for c in s.carried]
    return sources, after, free


_Node = tuple[str, str]


class _Flow:
    """A maximum flow by augmenting paths; each value lets one unit through, free ones any."""

    def __init__(
        self, sources: list[str], after: dict[str, set[str]], free: set[str], sinks: set[str]
    ) -> None:
        self.sources, self.after, self.free, self.sinks = sources, after, free, sinks
        self.full: set[str] = set()
        self.flow: dict[tuple[str, str], int] = defaultdict(int)
        self.reached: dict[_Node, _Node | None] = {}

    def cut(self) -> set[str]:
        while (at := self._augmenting()) is not None:
            self._augment(at)
            if len(self.full) > _MANY:
                return set(self.sources)
        reached = self.reached
        return {n for n, side in reached if side == "in" and (n, "out") not in reached}

    def _augmenting(self) -> _Node | None:
        """The end of a path from a source to a sink that takes one more unit."""
        self.reached = {(name, "in"): None for name in self.sources}
        queue: list[_Node] = list(self.reached)
        for at in queue:  # which grows
            name, side = at
            if side == "out" and name in self.sinks:
                return at
            for one in self._next(name, side):
                if one not in self.reached:
                    self.reached[one] = at
                    queue.append(one)
        return None

    def _next(self, name: str, side: str) -> list[_Node]:
        if side == "in":
            back = [(a, "out") for (a, b), units in self.flow.items() if b == name and units > 0]
            return [(name, "out"), *back] if name in self.free or name not in self.full else back
        onward = [(n, "in") for n in sorted(self.after[name])]
        return [*onward, (name, "in")] if name in self.full else onward

    def _augment(self, at: _Node) -> None:
        while (before := self.reached[at]) is not None:
            if before[0] == at[0]:
                (self.full.add if at[1] == "out" else self.full.discard)(at[0])
            elif at[1] == "in":
                self.flow[before[0], at[0]] += 1
            else:
                self.flow[at[0], before[0]] -= 1
            at = before
