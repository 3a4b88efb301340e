"""Loops cut where conditions on their index change, and carries that move along as addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops import loop_program
from tests.compiler.emulator import emulating
from tests.compiler.test_lower_ops import normal, programs
from tests.crossed import each_first

LENGTHS = (12, 40, 7, 3, 2, 5, 29)


def roll(x: Any) -> Any:
    return x * (np.roll(x, 1) - 2 * x + np.roll(x, -1))


def padded(x: Any) -> Any:
    return np.pad(np.diff(np.sin(x)), (2, 3)) * 2


def joined(x: Any) -> Any:
    return np.concatenate([x, x[1:] * 2, x[:0], -x[::-1], x[:1]]) + 1


def strided(x: Any) -> Any:
    y = ng.index_put(x, x[: (x.shape[0] + 1) // 2] * 2, index=(slice(None, None, 2),))
    return ng.index_put(y, x[1] + x[:1], index=(slice(1, 2),))


def triangles(x: Any) -> Any:
    square = x[:, None] * np.cos(x)
    return np.tril(square, -1) + np.triu(square, 2) * 3


def plane(x: Any) -> Any:
    u = x[:, None] * np.cos(x[1:])
    inner = u[1:-1, 1:-1] * 4 - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
    return np.pad(inner, 1) + np.roll(u, (1, -2), (0, 1))


def summed(x: Any) -> Any:
    """Conditions in loops that add up, and in one that takes up what was before."""
    pieces = np.concatenate([x, np.exp(-(x**2))]) * np.roll(np.concatenate([x, x]), 3)
    return np.cumsum(np.pad(x[1:] - x[:-1], 1)), np.sum(pieces), np.max(np.roll(x, 2) * x)


def looked_up(x: Any) -> Any:
    """A place that is computed from what conditions depend on."""
    place: Any = np.roll(ng.arange(x.shape[0]), 1)
    return np.take(x, place, axis=0) + np.pad(x[1:], (0, 1))


FUNCTIONS = [roll, padded, joined, strided, plane, triangles, summed, looked_up]


def _gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    def total(x: Any) -> Any:
        out = f(x)
        parts = out if isinstance(out, tuple) else (out,)
        return sum(np.sum(part * np.cos(part)) for part in parts)

    return ng.grad(total)


@pytest.mark.slow(cases=len(FUNCTIONS))
@pytest.mark.parametrize(("f", "task"), each_first(FUNCTIONS, [4096, 5]))
def test_ranges_hold_at_all_lengths(f, task):
    """Of kernels that are made for the first length."""
    for function in (f, _gradient(f)):
        for first in LENGTHS[: 3 if task == 5 else 1]:
            with emulating(task=task):
                compiled = ng.jit(function)
                compiled(normal(first))
                for n in LENGTHS:
                    x = normal(n, seed=n)
                    expected = function(ng.tensor(x))
                    for a, b in zip(_leaves(compiled(x)), _leaves(expected), strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _leaves(out: Any) -> tuple:
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize(("f", "count"), [(roll, 1), (joined, 3), (lambda x: np.tril(x), 2)])
def test_bodies_of_ranges_have_no_conditions(f, count):
    program, _ = programs(f, normal(100, 100) if count == 2 else normal(64))
    loops = [part for part in program.source.split("for i")[1:] if "store(" in part]
    plain = [part for part in loops if "load_if" not in part and "select" not in part]
    assert (len(plain), len(loops)) == (count, count + 1)


def test_ranges_have_the_same_bits():
    f = ng.jit(lambda x: (roll(x), padded(x), joined(x)))
    x = normal(100)
    for n in (100, 33, 5):
        given = ng.tensor(x[:n])
        for a, b in zip(f(given), (roll(given), padded(given), joined(given)), strict=True):
            np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------------------ carries


def damped(carry, x):
    """Two moments, of which the earlier one is needed for the gradient too."""
    before, now = carry
    return (now, np.roll(now, 1) * np.cos(before) + x), np.sum(before)


def three(carry, x):
    """Three moments, and a sum of its own."""
    a, b, c, total = carry
    return (b, c, np.sin(a * x) - b * c, total + a), b


def exchanged(carry, x):
    a, b, c = carry
    return (b, a, c * a * x), c * b


def doubled(carry, x):
    """Two parts that become the same one."""
    a, b, c = carry
    return (c, c, np.sin(a + b * x)), a


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(
    ("step", "reverse"), each_first([damped, three, exchanged, doubled], [False, True])
)
def test_parts_of_carries_that_move(step, reverse, monkeypatch):
    """As eager loops, gradients and second derivatives; also in several calls of a kernel."""
    monkeypatch.setattr(loop_program, "FIRST", 2)
    monkeypatch.setattr(loop_program, "longer", lambda steps, taken: 3)
    count = {damped: 2, three: 4, exchanged: 3, doubled: 3}[step]

    def f(p: Any, xs: Any) -> Any:
        start = tuple([p * (k + 1) for k in range(count)])
        carry, rows = ng.scan(step, start, xs, reverse=reverse)
        return sum(np.sum(c * np.cos(c)) for c in carry) + np.sum(rows**2)

    p, xs = normal(5) / 3, normal(8)[:, None] / 3
    for derivative in (f, ng.grad(f), ng.grad(lambda p, xs: np.sum(ng.grad(f)(p, xs) ** 2))):
        with emulating():
            compiled = ng.jit(derivative)
            for steps in (8, 0, 1, 3):
                expected = derivative(ng.tensor(p), ng.tensor(xs[:steps]))
                np.testing.assert_allclose(compiled(p, xs[:steps]), expected, rtol=1e-10)


def test_rows_that_a_step_returns_are_arrays_of_their_own():
    def f(p: Any) -> Any:
        return ng.scan(lambda c, _: ((c[1], c[0] + c[1]), c), (p, p * 2), length=6)[1]

    a, b = ng.jit(f)(np.arange(3.0))
    assert not np.shares_memory(a, b)
    np.testing.assert_array_equal(a[1:], b[:-1])
    of_both = ng.jit(ng.grad(lambda p: np.sum(f(p)[0] * f(p)[1] ** 2)))
    np.testing.assert_allclose(
        of_both(np.arange(3.0)), ng.grad(lambda p: np.sum(f(p)[0] * f(p)[1] ** 2))(np.arange(3.0))
    )
