"""Copies of arrays that are one array in NumPy.

Note [Shared copies]
--------------------
A name that a loop or a branch gives another array is an array of its own here, into which the
others are copied (Note [Arrays made anew] in ``statements``); and so is a part of an array in
another shape. NumPy copies nothing, so the two differ once an element of one of them is assigned to
and then read in the other. The program is refused if control can reach such a read, before either
name is given another array: reaching definitions of aliases (Muchnick, "Advanced Compiler Design
and Implementation", 1997, chapters 8.1 and 10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    KernelArray,
    KernelStatement,
    Load,
    Store,
    blocks_of,
    walk,
)


class SharedCopy(NamedTuple):
    """Statements that copy an array where NumPy has one, or that give a copy new elements.

    Attributes
    ----------
    array, source
        The copy, and the array that it is in NumPy; None for new elements.
    statements
        Those that copy.
    label
        What the user calls it.
    """

    array: str
    source: str | None
    statements: Sequence[KernelStatement]
    label: str


def stale_copy(
    top: Block, copies: Sequence[SharedCopy], arrays: Mapping[str, KernelArray]
) -> tuple[SharedCopy, Store] | None:
    """A copy that may differ from what it is in NumPy, and what changes one of them."""
    everything = list(walk(top))
    present = {id(s) for s in everything}
    copies = [c for c in copies if c.statements and id(c.statements[0]) in present]
    if not any(c.source for c in copies):
        return None
    return _Sharing(everything, copies, arrays).stale()


class _Sharing:
    def __init__(
        self,
        everything: Sequence[KernelStatement],
        copies: Sequence[SharedCopy],
        arrays: Mapping[str, KernelArray],
    ) -> None:
        self.copies, self.arrays = copies, arrays
        self.renewals: dict[str, list[KernelStatement]] = {}
        own: set[int] = set()
        for c in copies:
            self.renewals.setdefault(c.array, []).append(c.statements[0])
            own |= {id(s) for first in c.statements for s in _within(first)}
        self.stores: dict[str, list[Store]] = {}
        self.loads: dict[str, list[Load]] = {}
        for s in everything:
            if isinstance(s, Allocate):
                self.renewals.setdefault(s.array, []).append(s)
            elif isinstance(s, Load):
                self.loads.setdefault(s.array, []).append(s)
            elif isinstance(s, Store) and id(s) not in own:
                self.stores.setdefault(s.array, []).append(s)

    def stale(self) -> tuple[SharedCopy, Store] | None:
        for c in self.copies:
            if c.source is None:
                continue
            for one, other in ((c.array, c.source), (c.source, c.array)):
                for store in self.stores.get(one, ()):
                    for read in [other, *self._shared_with(other, one)]:
                        ends = (one, read) if read == other else (one,)
                        if self._reaches(c.statements[-1], store, *ends) and self._is_read(
                            read, store
                        ):
                            return c, store
        return None

    def _shared_with(self, array: str, without: str) -> set[str]:
        """Arrays that one may be by way of others."""
        seen, new = {array, without}, [array]
        while new:
            one = new.pop()
            for c in self.copies:
                if c.source is not None and one in (c.array, c.source):
                    new += {c.array, c.source} - seen
                    seen |= {c.array, c.source}
        return seen - {array, without}

    def _is_read(self, array: str, store: KernelStatement) -> bool:
        """Whether the elements of an array, as they are at a store, are of use."""
        if self.arrays[array].role != "local":
            return True
        return any(self._reaches(store, load, array) for load in self.loads.get(array, ()))

    def _reaches(self, start: KernelStatement, end: KernelStatement, *arrays: str) -> bool:
        """Whether control gets from one statement to another, and the arrays stay what they are."""
        renewals = [
            s for a in arrays for s in self.renewals.get(a, ()) if end.home.is_within(s.home)
        ]
        before = [s for s in renewals if s.place < end.place]
        if end.place > start.place and not any(s.place > start.place for s in before):
            return True
        around = set(start.home.loops()) & set(end.home.loops())
        return any(not any(loop in s.home.loops() for s in before) for loop in around)


def _within(statement: KernelStatement) -> list[KernelStatement]:
    """A statement and those inside of it."""
    return [statement, *[s for block in blocks_of(statement) for s in walk(block)]]
