"""Sums of products in blocks of lanes: Note [Block products] of ``lower.block_products``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests import lanes
from numgrad.compiler.lower import matrices as product
from tests.compiler.emulator import emulating


def distances(factors: Any, means: Any, x: Any) -> Any:
    """Half the sum of ``|L (x - m)|**2`` over samples and components."""
    product = np.einsum("kij,nkj->nki", factors, x[:, None, :] - means)
    return 0.5 * np.sum(product**2)


def by_hand(factors: np.ndarray, means: np.ndarray, x: np.ndarray) -> tuple:
    """Its value, and its gradients in factors and means."""
    value, in_factors, in_means = 0.0, [], []
    for factor, mean in zip(factors, means, strict=True):
        centred = x - mean
        value += 0.5 * np.sum((centred @ factor.T) ** 2)
        in_factors.append(factor @ (centred.T @ centred))
        in_means.append(-factor.T @ (factor @ centred.sum(axis=0)))
    return value, (np.array(in_factors), np.array(in_means))


def arguments(n: int, d: int, components: int = 3, dtype: Any = np.float64) -> list[np.ndarray]:
    draw = np.random.default_rng(d)
    factors = np.tril(draw.normal(size=(components, d, d)))
    given = factors, draw.normal(size=(components, d)), draw.normal(size=(n, d))
    return [a.astype(dtype) for a in given]


def check(found: tuple, expected: tuple, rtol: float = 1e-12) -> None:
    value, gradients = found
    np.testing.assert_allclose(value, expected[0], rtol=rtol)
    for a, b in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b)))


@pytest.mark.parametrize("contract", [False, True])
@pytest.mark.parametrize(("n", "d"), [(41, 5), (29, 3)])
def test_products_in_lanes_are_those_of_blocks(n, d, contract):
    given = arguments(n, d)
    with emulating(task=16, lanes=8, least=2):
        compiled = ng.jit(ng.value_and_grad(distances, (0, 1)), contract=contract)
        check(compiled(*given), by_hand(*given))
        source = compiled.source
    assert contract or source.count("        block_product(") == 3
    assert contract or "add_product(" not in source, "no product is left in loops"


def test_products_of_few_rows_stay_in_loops():
    given = arguments(26, 5)
    with emulating(task=16, lanes=8):
        compiled = ng.jit(ng.value_and_grad(distances, (0, 1)))
        check(compiled(*given), by_hand(*given))
        assert "block_product(" not in compiled.source


def test_what_waits_for_a_product_and_what_it_waits_for():
    def f(a: Any, b: Any, x: Any) -> Any:
        inner = np.tanh(np.einsum("kij,nkj->nki", a, x[:, None, :] * b))
        outer = np.einsum("kij,nkj->nki", a, np.exp(inner) * b)
        return np.sum(np.sum(outer * inner, axis=2) ** 2)

    draw = np.random.default_rng(0)
    given = [draw.normal(size=shape) * 0.3 for shape in ((3, 4, 4), (3, 4), (37, 4))]
    gradient = ng.value_and_grad(f, (0, 1, 2))
    with emulating(task=16, lanes=8, least=2):
        compiled = ng.jit(gradient)
        value, found = compiled(*given)
        assert "block_product(" in compiled.source
    assert value == pytest.approx(f(*given), rel=1e-13)
    for k, a in enumerate(found):
        steps = np.zeros_like(given[k])
        for at in np.ndindex(a.shape):
            step = np.zeros_like(a)
            step[at] = 1e-5
            moved = [[*given[:k], given[k] + s, *given[k + 1 :]] for s in (step, -step)]
            ends = [f(*each) for each in moved]
            steps[at] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(a, steps, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_for_any_number_of_threads(dtype):
    given = arguments(413, 18, dtype=dtype)
    compiled = ng.jit(ng.value_and_grad(distances, (0, 1)))
    found = compiled(*given)
    assert "block_product(" in compiled.source
    exact = [a.astype(np.float64) for a in given]
    check(found, by_hand(*exact), 1e-12 if dtype == "float64" else 2e-5)
    threads = ng.get_num_threads()
    try:
        for number in (1, 2):
            ng.set_num_threads(number)
            again = compiled(*given)
            assert np.array_equal(again[0], found[0])
            for a, b in zip(again[1], found[1], strict=True):
                assert np.array_equal(a, b)
    finally:
        ng.set_num_threads(threads)


def test_zeros_of_a_factor_meet_what_is_not_finite():
    factors, means, x = arguments(413, 18)
    x[5, 17] = np.inf
    x[200, 3] = np.nan

    def squares(factors: Any, centred: Any) -> Any:
        return np.sum(np.einsum("kij,nkj->nki", factors, centred) ** 2, axis=(1, 2))

    compiled = ng.jit(squares)
    found = compiled(factors, x[:, None, :] - means)
    with np.errstate(invalid="ignore"):
        expected = squares(factors, x[:, None, :] - means)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isnan(found[5]), "zero times infinity"


def test_products_as_wide_as_those_are_never_along_rows():
    given = arguments(300, 64, components=2)
    assert lanes.SHORT < 64 <= product.NARROW_MATRICES
    compiled = ng.jit(ng.value_and_grad(distances, (0, 1)))
    check(compiled(*given), by_hand(*given))
    assert compiled.source.count("        block_product(") >= 3
    assert compiled.report().count("[tiles in registers]") == 3
    assert "gemm(" not in compiled.source
