"""Indices as polynomials of loops, lengths and computed integers; where views read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, atoms_of, constant, divide, multiply
from numgrad.compiler.lower.terms import ONE, Term, ravel

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
            part[0] if len(part) == 1 else add(part[0], multiply(next(rest), part[1]))
            for part in detail
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
