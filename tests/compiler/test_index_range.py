"""Indices known to be in range: every bound holds, no check is left, and others still raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests.polynomial import value_of
from numgrad.codegen.nests.terms import Terms
from numgrad.compiler.lower import index_range, lookup
from numgrad.compiler.lower.index_range import bounds_of

X = np.cos(np.arange(9.0))
PLACES = np.array([-30, -9, -1, 0, 3, 8, 9, 40, 2**40, 2**63 - 1])
IN_RANGE: dict[str, Callable[..., Any]] = {
    "remainder": lambda x, i: np.take(x, i % len(x)),
    "of a sum": lambda x, i: np.take(x, (i % len(x) + 1) % len(x)),
    "plus one": lambda x, i: np.take(x, i % (len(x) - 1) + 1),
    "minus": lambda x, i: np.take(x, len(x) - 1 - i % len(x)),
    "clip": lambda x, i: np.take(x, np.clip(i, 0, len(x) - 2) + 1),
    "minimum, maximum": lambda x, i: np.take(x, np.maximum(np.minimum(i, len(x) - 1), 0)),
    "where": lambda x, i: np.take(x, np.where(i > 3, i % len(x), len(x) - 1)),
    "rolled": lambda x, i: np.take(x, np.roll(i % len(x), 2)[::-1]),
    "a fixed length": lambda x, i: np.take(x[:4] * 2, i % 4),
    "counted": lambda x, i: ng.bincount(i % len(x), length=len(x)) * x,
}
OTHERS: dict[str, Callable[..., Any]] = {
    "one too far": lambda x, i: np.take(x, i % 10),
    "plus one, too far": lambda x, i: np.take(x, i % 9 + 1),
    "negative divisor": lambda x, i: np.take(x, i % -11),
    "clip too far": lambda x, i: np.take(x, np.clip(i, 0, len(x) - 1) + 1),
    "clip from below": lambda x, i: np.take(x, np.clip(i, -10, 8)),
    "where": lambda x, i: np.take(x, np.where(i > 3, i % 7, i)),
    "a sum that overflows": lambda x, i: np.take(x, np.minimum(np.maximum(i, 0) + 1, len(x) - 1)),
}


@pytest.fixture
def checks(monkeypatch):
    """Whether each index was known to be in range."""
    seen: list[bool] = []
    own = index_range.is_place

    def spy(terms, index, length):
        seen.append(own(terms, index, length))
        return seen[-1]

    monkeypatch.setattr(lookup, "is_place", spy)
    return seen


@pytest.mark.parametrize("name", IN_RANGE)
def test_an_index_in_range_is_not_checked(name, checks):
    f = IN_RANGE[name]
    np.testing.assert_array_equal(np.asarray(ng.jit(f)(X, PLACES)), np.asarray(f(X, PLACES)))
    assert checks
    assert all(checks)


def test_gradients_add_up_at_indices_in_range(checks):
    f = IN_RANGE["of a sum"]
    gradient = ng.jit(ng.grad(lambda x, i: np.sum(f(x, i) ** 2)))(X, PLACES)
    times = np.bincount((PLACES % 9 + 1) % 9, minlength=9)
    np.testing.assert_allclose(gradient, 2 * times * X, rtol=1e-14)
    assert checks
    assert all(checks)


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_index_is_checked(name, checks):
    f = OTHERS[name]
    with pytest.raises(IndexError):
        f(X, PLACES)
    with pytest.raises(IndexError):
        ng.jit(f)(X, PLACES)
    assert not any(checks)


def test_an_index_from_the_end_counts_from_there(checks):
    f = ng.jit(lambda x, i: np.take(x, i % -9))
    np.testing.assert_array_equal(np.asarray(f(X, PLACES)), X[PLACES % -9])
    assert checks == [False]


class Sizes:
    def exceeds(self, length, number):
        value = value_of(length)
        return value is not None and value > number

    def hint_of(self, length):
        return value_of(length)


def test_bounds_hold_for_random_expressions():
    draw = np.random.default_rng(0)
    int64 = np.dtype(np.int64)
    functions: dict[str, Any] = {
        "add": np.add, "subtract": np.subtract, "minimum": np.minimum, "maximum": np.maximum,
        "remainder": np.remainder, "multiply": np.multiply,
    }  # fmt: skip
    known = 0
    for _ in range(60):
        terms = Terms(Sizes(), lambda n: n)
        pool: list[tuple[Any, np.ndarray]] = [(terms.iota(((((), 5),),)), np.arange(5))]
        for _ in range(2):
            number = int(draw.integers(-6, 7))
            pool.append((terms.constant(number, int64), np.full(5, number)))
        unknown = terms.make("buffer", (), int64, 0, ((((), 5),),))
        pool.append((unknown, draw.integers(-20, 20, 5)))
        for _ in range(6):
            name = str(draw.choice(list(functions)))
            (a, u), (b, v) = (pool[draw.integers(len(pool))] for _ in range(2))
            if name == "remainder" and not np.all(v):
                continue
            less = terms.map("less", (a, b), np.dtype(bool))
            pool.append((terms.map(name, (a, b), int64), functions[name](u, v)))
            pool.append((terms.map("where", (less, b, a), int64), np.where(u < v, v, u)))
        for term, values in pool:
            low, high = bounds_of(terms, term)
            known += low is not None and high is not None
            assert low is None or value_of(low) <= values.min()
            assert high is None or value_of(high) >= values.max()
    assert known > 200
