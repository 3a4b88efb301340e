"""Bounds of integers that are computed, so that an index known to be in range needs no check.

Interval arithmetic (R. E. Moore, Interval Analysis, 1966) over terms; a bound is a polynomial of
lengths, as those are what an index is compared with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numgrad.codegen.dtypes import INT64
from numgrad.codegen.nests.polynomial import Length, add, constant
from numgrad.codegen.nests.terms import (
    CHOOSE,
    CONSTANT,
    GATHER,
    IOTA,
    ONE,
    SIZE,
    VIEW,
    Term,
    Terms,
    count,
)

DEEP = 16
"""Operations that are looked through."""
LARGE = 2**31
"""Constants above this are not looked at: sums of smaller ones do not overflow."""


class Bounds(NamedTuple):
    """The least and the largest number that a term may have, None if that is not known."""

    low: Length | None
    high: Length | None


UNKNOWN = Bounds(None, None)


def is_place(terms: Terms, index: Term, length: Length) -> bool:
    """Whether an index is that of one of ``length`` elements in every call, counted from 0."""
    low, high = bounds_of(terms, index)
    if high is None or not at_most(terms, (), low):
        return False
    return at_most(terms, add(high, ONE), length)


def bounds_of(terms: Terms, x: Term, deep: int = DEEP) -> Bounds:
    """The bounds of an integer term."""
    if x.dtype.kind not in "iub" or x.dtype == np.uint64 or not deep:
        return UNKNOWN
    if x.op == CONSTANT:
        number = int(x.detail)
        return Bounds(constant(number), constant(number)) if abs(number) < LARGE else UNKNOWN
    if x.op == SIZE:
        return Bounds(x.detail, x.detail)
    if x.op == IOTA:
        axis, _ = x.detail
        return Bounds((), add(count(x.shape) if axis is None else x.shape[axis], constant(-1)))
    if x.op in (VIEW, GATHER):
        return bounds_of(terms, x.args[0], deep - 1)
    operands = [bounds_of(terms, a, deep - 1) for a in x.args]
    if x.op == "cast" and x.dtype == INT64:
        return operands[0]
    if x.op == "remainder" and _positive(terms, operands[1].low):
        high = operands[1].high
        return Bounds((), None if high is None else add(high, constant(-1)))
    if x.op in ("add", "subtract") and x.dtype == INT64:
        a, b = operands
        if a.low is None or a.high is None or b.low is None or b.high is None:
            return UNKNOWN  # one without a bound may overflow
        if x.op == "subtract":
            return Bounds(add(a.low, b.high, -1), add(a.high, b.low, -1))
        return Bounds(add(a.low, b.low), add(a.high, b.high))
    if x.op in ("minimum", "maximum"):
        lows, highs = zip(*operands, strict=True)
        if x.op == "minimum":
            return Bounds(_least(terms, lows), _either(terms, highs, largest=False))
        return Bounds(_either(terms, lows, largest=True), _largest(terms, highs))
    if x.op == "where":
        operands = [operands[1], _unless(terms, x.args[0], x.args[2], operands[2], deep)]
    if x.op in ("where", CHOOSE):
        lows, highs = zip(*operands, strict=True)
        return Bounds(_least(terms, lows), _largest(terms, highs))
    return UNKNOWN


def _unless(terms: Terms, condition: Term, x: Term, bounds: Bounds, deep: int) -> Bounds:
    """The bounds of a term where a condition is false, such as ``x < 0`` in ``np.clip``."""
    if condition.op in ("bitwise_or", "logical_or"):
        for part in condition.args:
            bounds = _unless(terms, part, x, bounds, deep)
    elif condition.op in ("less", "greater") and condition.args[0] is x:
        low, high = bounds_of(terms, condition.args[1], deep - 1)
        if condition.op == "less":
            return Bounds(_either(terms, (bounds.low, low), largest=True), bounds.high)
        return Bounds(bounds.low, _either(terms, (bounds.high, high), largest=False))
    return bounds


def at_most(terms: Terms, a: Length | None, b: Length | None) -> bool:
    """Whether ``a <= b`` in every call."""
    return a is not None and b is not None and terms.sizes.exceeds(add(b, a, -1), -1)


def _positive(terms: Terms, low: Length | None) -> bool:
    return at_most(terms, constant(1), low)


def _least(terms: Terms, bounds: tuple[Length | None, ...]) -> Length | None:
    """The one that none of the others is below, if that is certain."""
    return next((a for a in bounds if all(at_most(terms, a, b) for b in bounds)), None)


def _largest(terms: Terms, bounds: tuple[Length | None, ...]) -> Length | None:
    return next((a for a in bounds if all(at_most(terms, b, a) for b in bounds)), None)


def _either(terms: Terms, bounds: tuple[Length | None, ...], *, largest: bool) -> Length | None:
    """The tighter of bounds that all hold, as far as they are known."""
    known = tuple(b for b in bounds if b is not None)
    tightest = _largest(terms, known) if largest else _least(terms, known)
    return tightest if tightest is not None else next(iter(known), None)
