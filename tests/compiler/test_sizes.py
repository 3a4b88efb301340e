"""Arithmetic and comparisons of sizes agree with integers wherever the guards hold."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import numgrad as ng
from numgrad.compiler.graph.sizes import Size, Sizes

ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LOOKS = {"int": int, "bool": bool, "range": lambda n: len(range(n)), "hash": hash}

axis = st.tuples(st.just("axis"), st.integers(0, 2))
expressions = st.recursive(
    axis | axis | st.integers(-6, 6),
    lambda parts: st.tuples(st.sampled_from(sorted(ARITHMETIC)), parts, parts),
    max_leaves=5,
)
statements = st.one_of(
    st.tuples(st.sampled_from(sorted(COMPARISONS)), expressions, expressions),
    st.tuples(st.sampled_from(sorted(COMPARISONS)), expressions, st.integers(-3, 6)),
    st.tuples(st.sampled_from(["value", "value", *sorted(LOOKS)]), expressions),
)
lengths = st.lists(st.integers(2, 9), min_size=3, max_size=3)


def value(expression: Any, axes: Sequence[Any]) -> Any:
    if isinstance(expression, int):
        return expression
    sign, *parts = expression
    if sign == "axis":
        return axes[parts[0]]
    return ARITHMETIC[sign](*(value(part, axes) for part in parts))


def run(program: Sequence[tuple], axes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Every number that is computed, and everything that was found out."""
    numbers, outcomes = [], []
    for sign, *parts in program:
        try:
            given = [value(part, axes) for part in parts]
            numbers += given
            if sign != "value":
                outcomes.append((COMPARISONS.get(sign) or LOOKS[sign])(*given))
        except ZeroDivisionError:
            outcomes.append("division by zero")
    return numbers, outcomes


def holds(sizes: Sizes, axes: Sequence[int]) -> bool:
    scope = {f"n{k}": n for k, n in enumerate(axes)}
    return all(eval(guard.text(lambda k: f"n{k}"), scope) for guard in sizes.guards)


@pytest.mark.slow(cases=0)
@settings(max_examples=500, deadline=None)
@given(st.lists(statements, min_size=1, max_size=6), lengths, st.lists(lengths, max_size=30))
def test_programs_agree_with_integers_wherever_the_guards_hold(program, hints, others):
    sizes = Sizes()
    numbers, outcomes = run(program, [sizes.axis(n) for n in hints])
    assert [sizes.hint(n) for n in numbers] == run(program, hints)[0]
    assert holds(sizes, hints)
    for axes in (hints, *others):
        if not holds(sizes, axes):
            continue
        expected, expected_outcomes = run(program, axes)
        assert outcomes == expected_outcomes
        table = dict(enumerate(axes))
        assert [sizes.evaluate(n, table) for n in numbers] == expected
        scope = {f"n{k}": n for k, n in enumerate(axes)}
        texts = [sizes.text(n, lambda k: f"n{k}") for n in numbers]
        assert [eval(text, scope) for text in texts] == expected


@pytest.fixture
def sizes() -> Sizes:
    return Sizes()


def test_what_always_holds_needs_no_guard(sizes):
    n, m = sizes.axis(5), sizes.axis(5)
    assert n != 1
    assert n > 0
    assert n * m >= 4
    assert n + 1 != 0
    assert n * m == m * n
    assert (n * m) // m == n
    assert (4 * n + 6) % 2 == 0
    assert not sizes.guards
    assert [sizes.axis(0), sizes.axis(1)] == [0, 1]


def test_equal_lengths_have_one_symbol(sizes):
    n, m, k = (sizes.axis(length) for length in (6, 6, 5))
    assert n == m
    assert repr(m) == "n0"
    assert m - 1 == k
    assert repr(k * m) == "n0*n0 - n0"
    assert len(sizes.guards) == 2
    assert n - m == 0
    assert k < n
    assert len(sizes.guards) == 2
    assert len(range(k - 1)) == 4
    assert (sizes.resolve(n), sizes.resolve(m), sizes.resolve(k)) == (6, 6, 5)


def test_guards_say_how_long_an_axis_is_at_least(sizes):
    n, m = sizes.axis(9), sizes.axis(9)
    assert n > 4
    assert not m < 5
    assert len(sizes.guards) == 2
    assert n >= 5
    assert n * m - 25 >= 0
    assert n != 4
    assert sizes.always("<", 4, m)
    assert sizes.always("<=", 5, n)
    assert not sizes.always("<=", 6, n)
    assert len(sizes.guards) == 2


def test_a_quotient_may_be_negative(sizes):
    n = sizes.axis(9)
    assert (n - 5) // 2 >= 0
    assert not holds(sizes, [4])


@pytest.mark.parametrize("number", [2.0, 8.5, 9.0, 9.5, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("sign", sorted(COMPARISONS))
def test_comparisons_with_floats(sign, number):
    for turned in (False, True):
        sizes = Sizes()
        n = sizes.axis(9)
        pair = (number, n) if turned else (n, number)
        outcome = COMPARISONS[sign](*pair)
        for length in range(2, 14):
            if holds(sizes, [length]):
                other = (number, length) if turned else (length, number)
                assert COMPARISONS[sign](*other) == outcome


def test_numbers_of_numpy(sizes):
    n = sizes.axis(9)
    for three in (np.int64(3), np.int32(3)):
        for result in (n * three, three * n, n + three - three + 2 * n):
            assert isinstance(result, Size)
            assert repr(result) == "3*n0"
        assert isinstance(three - n, Size)
    assert n + True - np.True_ == n
    assert not sizes.guards
    assert np.int64(9) == n
    assert len(sizes.guards) == 1
    assert np.sqrt(n) == 3.0
    assert np.arange(n).dtype == np.dtype(int)
    assert np.zeros((n, 2)).shape == (9, 2)


def test_numbers_that_are_no_lengths_are_made_by_the_trace(sizes):
    n = sizes.axis(9)
    sizes.on_number = lambda size: float(sizes.hint(size))
    assert (n / 2, 2 / n, n * 0.5, 0.5 + n, n - 0.5, 0.5 - n) == (4.5, 2 / 9, 4.5, 9.5, 8.5, -8.5)
    assert (n // 2.0, 20.0 % n, n**0.5, 2**n) == (4.0, 2.0, 3.0, 512.0)
    np.testing.assert_array_equal(np.ones(2) * n, [9.0, 9.0])
    assert not sizes.guards
    with pytest.raises(TypeError):
        n + "text"


def test_what_python_does_with_integers(sizes):
    n = sizes.axis(9)
    assert repr(n << 1) == "2*n0"
    assert repr(~n) == "-n0 - 1"
    assert [repr(x) for x in divmod(n * n, n)] == ["n0", "0"]
    assert divmod(20, n) == (20 // n, 20 % n)
    assert f"{n}" == "n0"
    assert not [g for g in sizes.guards if g.sign == "=="]
    assert f"{n:03d}" == "009"
    assert (n & 1, n | 2, n ^ 1, n >> 1) == (1, 11, 8, 4)
    for divide in (operator.floordiv, operator.mod, divmod):
        with pytest.raises(ZeroDivisionError):
            divide(n, 0)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("dtype", ["int8", "uint64", "uint8", "int16"])
def test_narrow_indices_and_lengths_they_cannot_hold(dtype):
    x, k = np.arange(40000.0).reshape(400, 100), np.array([3, 90, 99], dtype)
    for f in (
        lambda x, k: x[k, k],
        lambda x, k: x[np.arange(3), k] + x[k, 3],
        lambda x, k: np.take(x, k, axis=0, mode="wrap"),
        lambda x, k: np.take(x, k, axis=1, mode="clip"),
        lambda x, k: (k < x.shape[0]) & (k != x.size) & (k >= -x.shape[1] * (dtype != "uint64")),
    ):
        np.testing.assert_array_equal(ng.jit(f)(x, k), f(x, k))
    gradient = ng.jit(ng.grad(lambda x: np.sum(x[k, k])))(x)
    np.testing.assert_array_equal(np.argwhere(gradient), np.stack([k, k], 1))
    with pytest.raises(IndexError, match="out of range"):
        ng.jit(lambda x, k: x[k, k])(x[:50], k)


def test_a_length_that_a_narrow_dtype_cannot_hold_is_an_error():
    fast = ng.jit(lambda k, x: k * len(x))
    np.testing.assert_array_equal(fast(np.array([5], np.int16), np.zeros(700)), [3500])
    with pytest.raises(ng.NumgradValueError, match="70000 does not fit int16"):
        fast(np.array([5], np.int16), np.zeros(70000))


@pytest.mark.parametrize(
    "half", [lambda a: a[::2], lambda a: a[1::2], lambda a: a[::-2], lambda a: a.reshape(-1, 2)]
)
def test_lengths_that_meet_in_parts_first(half):
    """What a half of one length equals changes once the lengths are known to be equal."""
    fast = ng.jit(lambda a, b: (half(a) + half(b), a * b, a[: len(a) // 2] - b[len(b) // 2 :]))
    for n in (8, 12, 40):
        a, b = np.linspace(0.0, 1.0, n), np.linspace(1.0, 3.0, n)
        expected = half(a) + half(b), a * b, a[: n // 2] - b[n // 2 :]
        for ours, theirs in zip(fast(a, b), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
