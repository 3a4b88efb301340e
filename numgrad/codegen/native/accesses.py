"""Which memory the iterations of a loop in lanes touch, and whether they may."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.values import Array


class NotVector(Unsupported):
    """A loop that is not written in lanes; it is written as it stands."""


Root = Any
"""The memory that an access is to: of an array its root."""


def may_overlap(a: Root, b: Root) -> bool:
    """Whether arrays of two roots may be the same or overlap."""
    if a == b:
        return True
    if not (isinstance(a, frozenset) or isinstance(b, frozenset)):
        return False
    return not _roots(a).isdisjoint(_roots(b))


def one_of(a: Array, b: Array) -> str | frozenset[str]:
    """The root of an array that is a part of either."""
    return a.root if a.root == b.root else _roots(a.root) | _roots(b.root)


def _roots(root: Root) -> frozenset[Root]:
    return root if isinstance(root, frozenset) else frozenset((root,))


class NearParts(NotVector):
    """A loop in lanes if some parts of an array are so many bytes apart, or more."""

    def __init__(self, distances: dict[tuple[str, str], int]) -> None:
        super().__init__("an array is used at other places than it is written")
        self.distances = distances


LARGEST = 16
"""Bytes of the widest element."""


class LanePlace(NamedTuple):
    """Where the lanes read or write.

    Attributes
    ----------
    computed
        Whether it is not at equal distances.
    row
        Whether it is at elements beside each other.
    """

    base: str
    offset: str
    step: str
    computed: bool
    row: bool

    def at_index_of(self, other: LanePlace) -> bool:
        """Whether each lane has one index here and there, of arrays that begin anywhere."""
        same = (self.offset, self.step) == (other.offset, other.step)
        return same and not (self.computed or other.computed)


@dataclass
class Lanes:
    """The lanes of the innermost loop while its body is translated.

    Attributes
    ----------
    accesses
        Where the body reads and writes memory: ``(array, writes, place)``.
    apart
        Whether parts of one array that begin at different places are known to be as far apart as
        the lanes go.
    around
        How many loops are around this one.
    mask
        Which lanes are in the loop, an operand; empty if all are.
    rest
        How many lanes ``mask`` has, an operand, if these are the first ones; else empty.
    block
        The block of instructions that every iteration runs, where there are no others.
    """

    count: int
    apart: bool = False
    around: int = 0
    mask: str = ""
    rest: str = ""
    block: str = ""
    accesses: list[tuple[Any, bool, LanePlace]] = field(default_factory=list)

    def first(self, mask: str, count: str) -> Lanes:
        """The first lanes: those of a mask."""
        return Lanes(self.count, self.apart, self.around, mask, count)

    def check(self) -> None:
        """Refuse a body whose iterations may read what others have written."""
        written: dict[Any, dict[LanePlace, None]] = {}
        for root, writes, place in self.accesses:
            if writes:
                written.setdefault(root, {})[place] = None
        for root, _, place in self.accesses:
            if any(
                root != other and may_overlap(root, other) and not place.at_index_of(p)
                for other, places in written.items()
                for p in places
            ):
                raise NotVector("an array may be one that is written at another place")
        near: dict[tuple[str, str], int] = {}
        for root, writes, place in self.accesses:
            for other in written.get(root, ()):
                if other == place:
                    continue
                if not (place.at_index_of(other) and place.row):
                    raise NotVector("an array is used at other places than it is written")
                near[place.base, other.base] = self.count * LARGEST
            if root in written and not writes and place.computed:
                raise NotVector("several lanes may add to one place")
        if near and not self.apart:
            raise NearParts(near)
