"""Indices as polynomials of loops, lengths and computed integers; where views and choices read.

A term ``choose`` has as its detail how its operands are placed:

``("place", parts)``
    The first operand lies at a basic index of the second, which has the shape of the whole:
    ``parts`` has for each axis a position, or start, step and length of a slice.
``("join", axis)``
    The operands follow one another along an axis.
``("triangle", (offset, lower))``
    The first operand on and below (above) a diagonal of the last two axes, elsewhere the second.
``("diagonal", (offset, axis1, axis2))``
    The last axis of the first operand lies along a diagonal of the second.

Operands are read only where they are chosen, so nothing outside of an array is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from numgrad.codegen.nests.polynomial import (
    Length,
    add,
    atoms_of,
    constant,
    divide,
    multiply,
    value_of,
)
from numgrad.codegen.nests.terms import ONE, Term, ravel
from numgrad.dataclass import dataclass

Index = tuple[Length, ...]

LOOP, COMPUTED = 1_000_000, 2_000_000
"""Loops, and integers that a kernel computes, are the axes of ``sizes`` from these numbers on."""


def loop_index(loop: int) -> Length:
    """The index of a loop as a polynomial."""
    return (((("axis", LOOP + loop),), 1),)


@lru_cache(4096)
def loops_in(index: Length) -> frozenset[int]:
    """The loops that an index depends on."""
    return frozenset([a[1] - LOOP for a in atoms_of(index) if LOOP <= a[1] < COMPUTED])


@lru_cache(4096)
def computed_in(index: Length) -> frozenset[int]:
    """The computed integers that an index depends on."""
    return frozenset([atom[1] - COMPUTED for atom in atoms_of(index) if atom[1] >= COMPUTED])


def single_loop(index: Length) -> int | None:
    """The loop whose index this is, if it is nothing else."""
    if len(index) == 1 and index[0][1] == 1 and len(index[0][0]) == 1:
        atom = index[0][0][0]
        if atom[0] == "axis" and LOOP <= atom[1] < COMPUTED:
            return atom[1] - LOOP
    return None


def walking_loop(index: Length) -> int | None:
    """The loop whose index this is, if it is nothing else but shifted."""
    return single_loop(tuple(term for term in index if loops_in((term,)) or computed_in((term,))))


def source_index(term: Term, index: Index) -> Index:
    """Where a view reads its operand."""
    kind, detail = term.detail
    source = term.args[0].shape
    if kind == "broadcast":
        lead = len(index) - len(source)
        return tuple(() if n == ONE else index[lead + a] for a, n in enumerate(source))
    if kind == "insert":
        return tuple(i for a, i in enumerate(index) if a not in detail)
    if kind == "drop":
        rest = iter(index)
        return tuple(() if a in detail else next(rest) for a in range(len(source)))
    if kind == "permute":
        out: list[Length] = [()] * len(source)
        for a, axis in enumerate(detail):
            out[axis] = index[a]
        return tuple(out)
    if kind == "getitem":
        rest = iter(index)
        return tuple(
            entry[0] if len(entry) == 1 else add(entry[0], multiply(next(rest), entry[1]))
            for entry in detail
        )
    if kind == "diagonal":
        offset, axis1, axis2 = detail
        rest = iter(index)
        ends = {axis1: constant(max(-offset, 0)), axis2: constant(max(offset, 0))}
        return tuple(
            add(index[-1], ends[a]) if a in ends else next(rest) for a in range(len(source))
        )
    return unravel(ravel(term.shape, index), source)  # reshape


def unravel(offset: Length, shape: Sequence[Length]) -> Index:
    """The index of the element at an offset."""
    out: list[Length] = []
    for a in range(len(shape) - 1, -1, -1):
        if shape[a] == ONE:
            out.append(())
        elif all(n == ONE for n in shape[:a]):
            out.append(offset)
        else:
            out.append(divide("%", offset, shape[a]))
            offset = divide("//", offset, shape[a])
    return tuple(reversed(out))


@dataclass(frozen=True)
class Condition:
    """``value sign 0``, where the sign is ``>=`` or ``==``."""

    sign: str
    value: Length

    def known(self) -> bool | None:
        """Whether it holds, if that does not depend on anything."""
        number = value_of(self.value)
        if number is None:
            return None
        return number >= 0 if self.sign == ">=" else number == 0


@dataclass
class Alternative:
    """An operand with the index at which it is read where the conditions hold.

    ``inside`` says whether the index is in range only there.
    """

    term: Term
    index: Index
    conditions: tuple[Condition, ...] = ()
    inside: bool = True


def alternatives(term: Term, index: Index) -> list[Alternative]:
    """Where an element may come from: the first one whose conditions hold, else the last one."""
    kind, detail = term.detail
    if kind == "join":
        return _joined(term.args, index, detail)
    x, other = term.args
    rest = Alternative(other, index[len(index) - len(other.shape) :])
    if kind == "triangle":
        offset, lower = detail
        row, column = index[-2:]
        below = add(add(row, offset), column, -1)
        conditions = (Condition(">=", below if lower else multiply(below, constant(-1))),)
        return [Alternative(x, index, conditions, inside=False), rest]
    if kind == "diagonal":
        return [_on_diagonal(x, index, *detail), rest]
    return [_placed(x, term.shape, index, detail), rest]


def _joined(pieces: tuple[Term, ...], index: Index, axis: int) -> list[Alternative]:
    options = []
    start: Length = ()
    for k, piece in enumerate(pieces):
        position = add(index[axis], start, -1)
        start = add(start, piece.shape[axis])
        conditions = (Condition(">=", position),) if k else ()
        if k < len(pieces) - 1:
            conditions += (_below(index[axis], start),)
        at = tuple(position if a == axis else i for a, i in enumerate(index))
        options.append(Alternative(piece, at, conditions))
    return options


def _below(value: Length, bound: Length) -> Condition:
    return Condition(">=", add(add(bound, value, -1), constant(-1)))


def _placed(x: Term, shape: Index, index: Index, parts: tuple) -> Alternative:
    at: list[Length] = []
    conditions: list[Condition] = []
    for n, i, entry in zip(shape, index, parts, strict=True):
        if len(entry) == 1:
            if n != ONE:
                conditions.append(Condition("==", add(i, entry[0], -1)))
            continue
        start, step, length = entry
        distance = add(i, start, -1) if step > 0 else add(start, i, -1)
        if abs(step) != 1:
            stride = constant(abs(step))
            conditions.append(Condition("==", divide("%", distance, stride)))
            distance = divide("//", distance, stride)
        at.append(distance)
        if length == ONE:
            conditions.append(Condition("==", distance))
        else:
            conditions.append(Condition(">=", distance))
            last = add(start, multiply(length, constant(step)))  # where one more would lie
            if last != (n if step == 1 else constant(-1)):
                conditions.append(_below(distance, length))
    needed = [c for c in conditions if not _always(c, index, shape)]
    return Alternative(x, tuple(at), tuple(needed))


def _always(condition: Condition, index: Index, shape: Index) -> bool:
    """Whether a condition only says that an index is in range."""
    if condition.sign != ">=":
        return False
    return condition.value in index or any(
        condition == _below(i, n) for i, n in zip(index, shape, strict=True)
    )


def _on_diagonal(x: Term, index: Index, offset: int, axis1: int, axis2: int) -> Alternative:
    row, column = index[axis1], index[axis2]
    position = row if offset >= 0 else column
    on = add(add(column, row, -1), constant(offset), -1)
    rest = [i for a, i in enumerate(index) if a not in (axis1, axis2)]
    conditions = [Condition("==", on)]
    if x.shape[-1] != ONE:
        conditions.append(_below(position, x.shape[-1]))
    return Alternative(x, (*rest, position), tuple(conditions))
