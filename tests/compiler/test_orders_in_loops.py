"""Sorts and searches in steps of loops: Note [Calls in loops] in ``compiler.lower``."""

import warnings

import numpy as np
import pytest

import numgrad as ng

NAN = np.nan


def scanned(step, length=2):
    return lambda *x: ng.scan(lambda c, _: (c, step(*c)), x, None, length=length)[1]


def first(result):
    """What the first step collected."""
    return [np.asarray(r)[0] for r in (result if isinstance(result, list | tuple) else [result])]


@pytest.fixture(autouse=True)
def natively():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rows(dtype, n, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 9, size=(3, n)).astype(dtype)
    if x.dtype.kind == "f" and n > 4:
        x[:, [1, 3]] = NAN, -np.inf
    return x


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("dtype", ["float64", "int16", "float32", "uint8", "int64"])
def test_orders_are_those_of_a_stable_sort(dtype):
    fast = ng.jit(
        scanned(
            lambda x: (
                np.sort(x), np.argsort(x, kind="stable"), np.sort(x, axis=0), ng.sort(x, axis=None),
                ng.argsort(x, descending=True), ng.sort(x, descending=True), ng.topk(x, 1)[1],
            )
        )
    )  # fmt: skip
    for n in (1, 2, 7, 8, 9, 17, 64, 100):
        x = rows(dtype, n)
        order = np.argsort(x, axis=-1, kind="stable")
        down = n - 1 - np.argsort(x[:, ::-1], axis=-1, kind="stable")[:, ::-1]
        expected = [
            np.take_along_axis(x, order, -1), order, np.sort(x, axis=0), np.sort(x, axis=None),
            down, np.take_along_axis(x, down, -1), down[:, :1],
        ]  # fmt: skip
        for got, wanted in zip(first(fast(x)), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype
    assert "Python" not in fast.report()


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_places_in_a_sorted_row(dtype):
    def step(a, v):
        sides = [np.searchsorted(a, v, side) for side in ("left", "right")]
        return (*sides, np.searchsorted(a, v[0, 0]), np.searchsorted(a, v[:1, :1]))

    fast = ng.jit(scanned(step))
    for n in (2, 3, 8, 33):
        a = np.sort(rows(dtype, n)[0])
        v = rows(dtype, 6, 1)
        for got, wanted in zip(first(fast(a, v)), step(a, v), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert "Python" not in fast.report()


DRAW = np.random.default_rng(7)
SMOOTH = {
    "points": lambda x: x * 0.9 + np.interp(0.1, np.sort(x[0]), x[1]),
    "quantile": lambda x: x + np.quantile(x, [0.1, 0.55], axis=1).sum(axis=0)[:, None] ** 2,
    "sort": lambda x: np.sort(x, axis=0) * np.arange(1.0, 4)[:, None],
    "median": lambda x: x - np.median(x, axis=1, keepdims=True) ** 2,
    "interp": lambda x: x + np.interp(x, [-2.0, -0.3, 0.5, 3.0], [1.0, -1.0, 2.0, 0.0]),
    "topk": lambda x: x * ng.topk(x, 2, axis=1)[0].sum(axis=1, keepdims=True),
    "partition": lambda x: x + np.partition(x, 2, axis=1)[:, 2:3] ** 2,
}


def numpy_step(name, x):
    if name == "topk":
        return x * np.sort(x, axis=1)[:, -2:].sum(axis=1, keepdims=True)
    return SMOOTH[name](x)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_steps(name):
    def value(x, w):
        return np.sum(ng.scan(lambda c, _: (SMOOTH[name](c), None), x, None, length=2)[0] * w)

    def by_numpy(x, w):
        for _ in range(2):
            x = numpy_step(name, x)
        return np.sum(x * w)

    fast = ng.jit(ng.value_and_grad(value))
    x, w, d = DRAW.normal(size=(3, 3, 5))
    got, slope = fast(x, w)
    np.testing.assert_allclose(got, by_numpy(x, w), rtol=1e-12)
    h = 1e-6
    expected = (by_numpy(x + h * d, w) - by_numpy(x - h * d, w)) / (2 * h)
    np.testing.assert_allclose(np.sum(slope * d), expected, rtol=1e-6, atol=1e-7)
    assert "Python" not in fast.report()


def test_interpolation_at_nan_infinite_points_and_beyond():
    xp, fp = np.array([0.0, 1.0, 1.0, 2.0, np.inf]), np.array([1.0, 2.0, 5.0, 4.0, 4.0])
    x = np.array([NAN, -1.0, 0.0, 0.25, 1.0, 1.5, 2.0, 7.0, np.inf, -np.inf])
    fast = ng.jit(scanned(np.interp))
    (got,) = first(fast(x, xp, fp))
    np.testing.assert_array_equal(got, np.interp(x, xp, fp))
