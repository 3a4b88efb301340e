"""The same bits for any number of threads, serial or parallel, and compiled again; error bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import cache, compile as jit

pytestmark = pytest.mark.slow  # kernels are the same for every Python

EPS = np.finfo(np.float64).eps


def reductions(x: Any) -> Any:
    """Sums over all axes, over rows and over columns, of products and of exponentials."""
    y = np.exp(x - np.max(x, axis=1, keepdims=True))
    p = y / np.sum(y, axis=1, keepdims=True)
    return np.sum(x), np.sum(x * p, axis=0), np.sum(x * x, axis=1), np.sum(p, axis=0)


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    return rng.normal(size=(700, 90)) * 10.0 ** rng.integers(-6, 6, size=(700, 90))


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """A process that has neither loaded nor kept any kernel."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "_loaded", {})


def bits(out: Any) -> list[bytes]:
    return [np.asarray(part).tobytes() for part in out]


@pytest.mark.slow(cases=0)
def test_bits_do_not_depend_on_threads_nor_on_the_compilation(matrix, anew, monkeypatch):
    if ng.get_num_threads() < 2:
        pytest.skip("one thread only")
    serial = ng.jit(reductions, parallel=False)
    expected = bits(serial(matrix))
    parallel = ng.jit(reductions, parallel=True)
    before = ng.get_num_threads()
    try:
        for count in (1, 2, before):
            ng.set_num_threads(count)
            assert bits(parallel(matrix)) == expected
    finally:
        ng.set_num_threads(before)
    for _ in range(5):
        assert bits(parallel(matrix)) == expected
    monkeypatch.setattr(jit, "_loaded", {})
    cache.clear()
    again = ng.jit(reductions, parallel=False)
    assert bits(again(matrix)) == expected
    assert again.statistics.cache_hits == 0


@pytest.mark.parametrize("n", [1, 2, 127, 4096, 4097, 100_003])
def test_sums_are_within_their_error_bound(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, size=n)
    total, squares, mean = _sums(x)
    bound = n * EPS * math.fsum(np.abs(x))
    assert abs(total - math.fsum(x)) <= bound
    assert abs(squares - math.fsum(x * x)) <= n * EPS * math.fsum(x * x)
    assert abs(mean - math.fsum(x) / n) <= bound / n + EPS * abs(mean)


_sums = ng.jit(lambda x: (np.sum(x), np.sum(x * x), np.mean(x)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3), (40, 300), (2, 7, 900)])
def test_sums_along_each_axis_are_within_their_error_bound(shape):
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, size=shape)
    for axis in range(len(shape)):
        found = ng.jit(lambda x, axis=axis: np.sum(x, axis=axis))(x)
        rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
        for value, row in zip(found.ravel(), rows, strict=True):
            bound = shape[axis] * EPS * math.fsum(np.abs(row))
            assert abs(value - math.fsum(row)) <= bound


def test_infinities_and_nans_in_sums():
    x = np.zeros(20_000)
    x[3] = np.inf
    assert _sums(x)[0] == np.inf
    x[15_000] = -np.inf
    assert np.isnan(_sums(x)[0])
