"""Iterations computed side by side: what they share, and loops around them that are unrolled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests import loop_tree
from tests.compiler.emulator import emulating


def mixture(d: int) -> Callable[..., Any]:
    """A Gaussian mixture whose triangular factors are looked up in a table of places."""
    place = np.zeros((d, d), np.int64)
    rows, columns = np.tril_indices(d, -1)
    place[rows, columns] = np.arange(rows.size)
    lower, diagonal = np.tri(d, k=-1, dtype=bool), np.eye(d)

    def f(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        below = np.where(lower, factors[:, d:][:, place], 0.0)
        matrices = np.exp(factors[:, :d])[:, :, None] * diagonal + below
        distances = np.einsum("kij,nkj->nki", matrices, x[:, None, :] - means)
        return np.sum(ng.logsumexp(weights - 0.5 * np.sum(distances**2, axis=2), axis=1))

    return f


def arguments(n: int, d: int, components: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(d)
    shapes = (components,), (components, d), (components, d * (d + 1) // 2), (n, d)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("d", [2, 5, 9])
def test_gradient_of_a_mixture(d):
    # d = 2: sums are scattered to an axis of length 1
    gradient = ng.value_and_grad(mixture(d), argnums=(0, 1, 2))
    given = arguments(26, d)
    with emulating(task=16, lanes=8):
        compiled = ng.jit(gradient)
        value, found = compiled(*given)
    expected, wanted = gradient(*given)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_samples_are_read_once_and_lie_side_by_side():
    with emulating(task=16, lanes=8):
        compiled = ng.jit(ng.value_and_grad(mixture(5), argnums=1))
        compiled(*arguments(26, 5))
        source = compiled.source
    block = source[source.index("for base in range") :]
    samples = r"for lane in range\(width\):\n *i\d+ = base \+ lane\n *e1 = load\(.*5\*i\d+"
    assert len(re.findall(samples, block)) == 1, "collected once, before the components"
    assert re.search(r"for k\d+ in range\(0, 5, 5\)", block), "a row of 5 is unrolled"


def test_unrolled_loops_of_any_length():
    def quadratic(a: Any, x: Any) -> Any:
        return np.sum(np.sum((x @ a) ** 2, axis=1) * x[:, 0])

    rng = np.random.default_rng(0)
    gradient = ng.value_and_grad(quadratic, argnums=(0, 1))
    with emulating(task=16, lanes=8):
        compiled = ng.jit(gradient)
        for n, d in ((26, 8), (31, 8), (27, 3), (40, 13)):
            given = rng.normal(size=(d, d)), rng.normal(size=(n, d))
            value, found = compiled(*given)
            expected, wanted = gradient(*given)
            np.testing.assert_allclose(value, expected, rtol=1e-12)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def by_example(w: Any, b: Any, x: Any, y: Any) -> Any:
    return np.sum((np.tanh(x @ w + b) - y) ** 2)


def test_derivatives_of_examples_are_written_along_rows():
    draw = np.random.default_rng(0)
    w, b, x, y = (draw.normal(size=shape) for shape in ((3, 17), 17, (26, 3), 26))
    with emulating(task=16, lanes=8):
        compiled = ng.jit(ng.vmap(ng.grad(by_example, (0, 1)), (None, None, 0, 0)))
        found = compiled(w, b, x, y)
        source = compiled.source
    made = np.tanh(x @ w + b)
    back = 2 * (made - y[:, None]) * (1 - made**2)
    for a, expected in zip(found, (x[:, :, None] * back[:, None], back), strict=True):
        np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-13)
    product = re.search(r"t(\d+) = empty\(\(n\d+, n\d+, n\d+\)", source)
    assert product
    around, _ = source.split(f"a{product[1]}, n0*n1*i0 + n1*i2 + i1")
    loops = re.findall(r" for (\w+) in ", around)
    assert loops[-3:] == ["lane", "i2", "i1"], "elements beside each other innermost"


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_extremes_along_the_first_axis_are_searched_side_by_side(dtype):
    """The elements of a column lie apart, those of a row beside each other: lanes are columns."""
    x = np.random.default_rng(0).integers(-9, 9, (130, 67)).astype(dtype)
    if dtype == "float64":
        x[5, 3] = x[90, 3] = x[7, 66] = np.nan
    for function in (np.argmax, np.argmin):
        fast = ng.jit(lambda x, function=function: function(x, axis=0))
        np.testing.assert_array_equal(fast(x), function(x, axis=0))
        assert "lane" in fast.source


def standardized(x: Any, axis: int) -> Any:
    d = x - np.mean(x, axis=axis, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=axis, keepdims=True)), np.max(x, axis=axis)


def of_column_and_row(x: Any, axis: int) -> Any:
    """Numbers for columns that wait for elements, which wait for others for columns."""
    m = np.mean(x, axis=axis)
    y = (x - m) * 2
    return y, y[0] * 3 + m, np.sum(y * y, axis=axis)


@pytest.mark.parametrize(
    ("function", "shape", "axis"),
    [
        (standardized, (70, 60), 0),
        (standardized, (3, 70, 60), 1),
        (standardized, (40, 6, 60), 1),
        (of_column_and_row, (70, 60), 0),
    ],
)
def test_columns_are_reduced_row_by_row(function, shape, axis):
    """The innermost loops walk along rows, wherever columns are reduced: Note [Columns]."""
    x = np.random.default_rng(1).normal(3.0, 2.0, shape)
    with emulating():
        fast = ng.jit(lambda x: function(x, axis))
        results = fast(x)
        source = fast.source
    for ours, expected in zip(results, function(x, axis), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-11)
    depth, inner = 0, None
    for line in source.splitlines():
        indent = len(line) - len(line.lstrip())
        if loop := re.match(r" +for (i\d+) in range", line):
            depth, inner = indent, loop[1]
        elif indent <= depth:
            inner = None
        elif inner:
            assert f"*{inner}" not in line, "elements beside each other innermost"


def test_rows_stay_rows_beside_sums_that_share_a_loop_with_their_columns():
    """What a small sum gives is a number for each column; it does not turn the rows around."""
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(60, 70)), rng.normal(size=(70, 80))
    with emulating():
        fast = ng.jit(lambda a, v: np.min(a + np.sum(v**2, axis=1), axis=1))
        np.testing.assert_allclose(fast(a, v), np.min(a + np.sum(v**2, axis=1), axis=1))
        assert re.search(r"acc\d+ = minimum", fast.source)


@pytest.mark.parametrize("length", [4, 12])
def test_short_rows_of_elements_read_once_are_no_lanes(length):
    """Lanes would gather each element, which takes longer than what they save, but of 4 each."""
    x = np.random.default_rng(0).normal(size=(40, length))
    with emulating():
        fast = ng.jit(lambda x: x / np.sum(x**2, axis=1, keepdims=True))
        np.testing.assert_allclose(fast(x), x / np.sum(x**2, axis=1, keepdims=True))
        assert ("lane" in fast.source) == (length < 8)


@pytest.mark.parametrize("rows", [3, 4, 9, 30])
def test_rows_that_are_added_to_the_same_sums_several_at_a_time(rows):
    """In their order, so with the bits that one row after the other gives; products by eights."""
    rng = np.random.default_rng(rows)
    x, w = rng.normal(size=(rows, 28)), rng.normal(size=28)

    def plain(x):
        return np.sum(x * 3.0, axis=0), np.max(x, axis=0)

    def weighted(x, w):
        return np.sum(x * np.tanh(x @ w)[:, None], axis=0)

    with emulating():
        fast, in_blocks = ng.jit(plain), ng.jit(weighted)
        total, largest = fast(x)
        np.testing.assert_allclose(in_blocks(x, w), weighted(x, w), rtol=1e-12)
        product = ng.jit(lambda z, x: z @ x)
        np.testing.assert_allclose(product(x[:, 0], x), x[:, 0] @ x, rtol=1e-12)
        by_rows = ng.jit(lambda x, w: x @ w)
        np.testing.assert_allclose(by_rows(x, w), x @ w, rtol=1e-12)
        assert re.search(r"acc\d+_3 = add_product", by_rows.source)
    assert re.search(r"for k\d+ in range", fast.source)
    assert rows < 24 or "for row in range" in in_blocks.source
    expected = np.zeros(28)
    for row in x:
        expected = expected + row * 3.0
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(largest, np.max(x, axis=0))


def test_products_share_the_loop_over_their_longest_axis(monkeypatch):
    """Columns among the other axes do not turn it inside: all of a mixture in one loop of lanes."""
    monkeypatch.setattr(loop_tree, "DEEP", 4)
    given, differentiated = arguments(24, 5), ng.value_and_grad(mixture(5), (1, 2))
    with emulating():
        fast = ng.jit(differentiated)
        value, grads = fast(*given)
    expected, truths = differentiated(*given)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for gradient, truth in zip(grads, truths, strict=True):
        np.testing.assert_allclose(gradient, truth, rtol=1e-10)
    nests = [nest for nest in fast.source.split("@outlined")[1:] if "add_product(" in nest]
    assert all("for base in range" in nest for nest in nests)


def test_what_rows_of_a_block_compute_once_is_computed_side_by_side():
    rng = np.random.default_rng(3)
    x, w, y = rng.normal(size=(40, 28)), rng.normal(size=28), rng.normal(size=40)
    with emulating(lanes=16):
        compiled = ng.jit(ng.grad(lambda w, x, y: np.sum(y * np.cosh(x @ w))))
        found = compiled(w, x, y)
    np.testing.assert_allclose(found, (y * np.sinh(x @ w)) @ x, rtol=1e-12)
    rows = compiled.source[compiled.source.index("for row in range") :]
    assert re.search(r"add_product\(b\w+, e\d+, load\(float64, h0, lane", rows)


def posed(turns: Any, points: Any, seen: Any) -> Any:
    """Points turned by few matrices, of which two at a time are looked up."""
    moved = np.sum(turns[:, None] * points[:, None], axis=3)
    pairs = moved[:, seen]
    return pairs[:, :, 0] * 0.5 + pairs[:, :, 1] ** 2


def test_long_loops_in_a_short_one_are_cut_into_blocks():
    rng = np.random.default_rng(1)
    turns, points = rng.normal(size=(20, 3, 3)), rng.normal(size=(61, 3))
    seen = rng.integers(0, 61, (70, 2))
    with emulating(task=16, lanes=8):
        compiled = ng.jit(posed)
        found = compiled(turns, points, seen)
    assert re.search(r"for i\d+ in range\(lo, hi\):\n(.*\n)? +for base in", compiled.source)
    moved = np.stack([points @ turn.T for turn in turns])
    want = 0.5 * moved[:, seen[:, 0]] + moved[:, seen[:, 1]] ** 2
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_few_iterations_around_tiny_loops_are_computed_side_by_side():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(20, 3, 3)), rng.normal(size=(3, 3))
    with emulating(task=16, lanes=8):
        compiled = ng.jit(lambda a, b: np.sum((a @ b) @ a, axis=2))
        found = compiled(a, b)
    assert "for base in range(lo, hi" in compiled.source
    np.testing.assert_allclose(found, np.sum(a @ b @ a, axis=2), rtol=1e-12)
