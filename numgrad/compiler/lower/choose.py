"""Arrays joined from others: from which of them, and from where, an element comes.

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

from dataclasses import dataclass

from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, divide, multiply, value_of
from numgrad.compiler.lower.terms import ONE, Term

Index = tuple[Length, ...]


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
    found = []
    start: Length = ()
    for k, piece in enumerate(pieces):
        place = add(index[axis], start, -1)
        start = add(start, piece.shape[axis])
        conditions = (Condition(">=", place),) if k else ()
        if k < len(pieces) - 1:
            conditions += (_below(index[axis], start),)
        at = tuple(place if a == axis else i for a, i in enumerate(index))
        found.append(Alternative(piece, at, conditions))
    return found


def _below(value: Length, bound: Length) -> Condition:
    return Condition(">=", add(add(bound, value, -1), constant(-1)))


def _placed(x: Term, shape: Index, index: Index, parts: tuple) -> Alternative:
    at: list[Length] = []
    conditions: list[Condition] = []
    for n, i, part in zip(shape, index, parts, strict=True):
        if len(part) == 1:
            if n != ONE:
                conditions.append(Condition("==", add(i, part[0], -1)))
            continue
        start, step, length = part
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
    place = row if offset >= 0 else column
    on = add(add(column, row, -1), constant(offset), -1)
    rest = [i for a, i in enumerate(index) if a not in (axis1, axis2)]
    conditions = [Condition("==", on)]
    if x.shape[-1] != ONE:
        conditions.append(_below(place, x.shape[-1]))
    return Alternative(x, (*rest, place), tuple(conditions))
