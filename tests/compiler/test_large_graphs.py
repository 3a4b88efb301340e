"""Graphs of very many operations: work that grows like their number, loops shared among some."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests import loop_tree
from tests.compiler import programs
from tests.compiler.emulator import emulated, emulating
from tests.compiler.tracing import trace


def lorenz(u: Any) -> Any:
    x, y, z = u[0], u[1], u[2]
    return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.5 * z])


def midpoint(u: Any, steps: int) -> Any:
    for _ in range(steps):
        u = u + 0.01 * lorenz(u + 0.005 * lorenz(u))
    return np.sum(u * u)


def chain(x: Any, steps: int) -> Any:
    y = x
    for _ in range(steps):
        y = np.sin(y) * 0.5 + x
    return np.sum(y)


def steps_taken(function: Any, argument: Any) -> int:
    """How many Python and C functions are called until a function and its gradient are lowered."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    fast = ng.jit(ng.grad(function))
    sys.setprofile(note)
    try:
        emulated(fast.graph(argument))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(("function", "few"), [(chain, 60), (midpoint, 8)])
def test_work_grows_like_the_number_of_operations(function, few, monkeypatch):
    monkeypatch.setattr(loop_tree, "MOST_TOGETHER", 20)
    argument = np.array([1.0, 2.0, 3.0])
    steps_taken(lambda u: function(u, 2), argument)
    once, twice = (steps_taken(lambda u, k=k: function(u, k * few), argument) for k in (1, 2))
    assert twice < 2.2 * once


@pytest.mark.parametrize("together", [1, 3, 10])
def test_loops_that_few_statements_share(together, monkeypatch):
    monkeypatch.setattr(loop_tree, "MOST_TOGETHER", together)
    u = np.array([1.0, 2.0, 3.0])
    with emulating(task=16, lanes=8):
        value, g = ng.jit(ng.value_and_grad(lambda u: midpoint(u, 3)))(u)
    expected, wanted = ng.value_and_grad(lambda u: midpoint(u, 3))(u)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(g, wanted, rtol=1e-13)


@pytest.mark.filterwarnings("ignore:jit. f uses an array")
@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("seed", range(30))
def test_programs_whose_loops_few_statements_share(seed, monkeypatch):
    monkeypatch.setattr(loop_tree, "MOST_TOGETHER", 1 + seed % 4)
    draw = random.Random(seed)
    names = sorted({**programs.UNARY, **programs.BINARY})
    arguments = programs.arguments_of(seed, 5, 4)
    steps = [
        (draw.choice(names), draw.randrange(3), draw.randrange(10), draw.randrange(16))
        for _ in range(5)
    ]
    steps = programs.settle(steps, [arguments])

    def f(a: Any, b: Any) -> Any:
        return programs.loss(steps, a, b, *arguments[2:])

    gradient = ng.value_and_grad(f, argnums=(0, 1))
    with np.errstate(all="ignore"):
        with emulating(task=16, lanes=8):
            value, found = ng.jit(gradient)(*arguments[:2])
        expected, wanted = gradient(*arguments[:2])
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_elements_looked_up_in_what_was_doubled_many_times():
    def f(x: Any, index: Any) -> Any:
        for _ in range(60):
            x = x + x
        return x[index]

    index = np.array([1, 0])
    (found,) = emulated(trace(f, np.ones(3), index)).run(np.ones(3), index)
    np.testing.assert_array_equal(found, [2.0**60] * 2)
