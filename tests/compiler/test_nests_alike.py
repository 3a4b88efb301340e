"""Nests that differ in operands and lengths alone are calls of one function: Note [Nests alike]."""

import itertools
import re

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating


def layers(parameters, x):
    for w, b in parameters:
        x = np.tanh(x @ w + b)
    return np.sum(x * x)


def drawn(widths, dtype="float64"):
    draw = np.random.default_rng(len(widths))
    pairs = itertools.pairwise(widths)
    return [
        (draw.normal(size=(m, n)).astype(dtype) / 3, draw.normal(size=n).astype(dtype))
        for m, n in pairs
    ]


def functions(fast):
    return len(re.findall(r"^def nest_\d+\(", fast.source, re.MULTILINE))


def by_hand(parameters, x):
    """The gradient of ``layers``, written out."""
    values = [x]
    for w, b in parameters:
        values.append(np.tanh(values[-1] @ w + b))
    cotangent, gradients = 2 * values[-1], []
    for (w, _), x, y in zip(parameters[::-1], values[-2::-1], values[:0:-1], strict=True):
        inner = cotangent * (1 - y * y)
        gradients.append((x.T @ inner, inner.sum(axis=0)))
        cotangent = inner @ w.T
    return gradients[::-1]


@pytest.mark.parametrize("task", [4096, 16])
def test_layers_of_any_number_have_the_functions_of_a_few(task):
    counts = set()
    for depth in (4, 9):
        parameters = drawn([3 + k % 4 for k in range(depth + 1)])
        x = np.random.default_rng(0).normal(size=(7, 3))
        with emulating(task=task):
            fast = ng.jit(ng.grad(layers))
            gradients = fast(parameters, x)
        for got, expected in zip(gradients, by_hand(parameters, x), strict=True):
            np.testing.assert_allclose(got[0], expected[0], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-12)
        counts.add(functions(fast))
    (count,) = counts
    assert count < 9


def test_machine_code_of_layers_and_the_report_say_which_function():
    parameters, x = drawn([5, 4, 6, 5]), np.random.default_rng(1).normal(size=(6, 5))
    fast = ng.jit(ng.grad(layers))
    for got, expected in zip(fast(parameters, x), by_hand(parameters, x), strict=True):
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-12)
    assert "nest 1, in the function of nest 0" in fast.report()


@pytest.mark.parametrize(
    "step",
    [
        lambda x, k: np.tanh(x * (k + 2)),  # a number
        lambda x, k: np.tanh(x) if k % 2 else np.exp(-x),  # a function
        lambda x, k: np.tanh(x + x[0] if k else x + x[:, :1]),  # an index
        lambda x, k: np.tanh(x.astype("float32" if k else "float64") * 3),  # a dtype
        lambda x, k: np.cumsum(np.tanh(x) / 3, axis=k % 2),  # an axis
    ],
)
def test_nests_that_differ_have_functions_of_their_own(step):
    def steps(x):
        for k in range(2):
            x = step(x, k)
            x = x @ np.eye(5, dtype=x.dtype) if k == 0 else x  # ends a nest
        return x

    x = np.random.default_rng(2).normal(size=(5, 5))
    with emulating():
        fast = ng.jit(steps)
        result = fast(x)
    np.testing.assert_allclose(result, steps(x), rtol=1e-5)
    assert functions(fast) >= 2
