"""Stacks and larger matrices in steps of loops, which call kernels."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradLinAlgError
from tests.compiler.emulator import emulating

DRAW = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def natively():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def transposed(a):
    return np.swapaxes(a, -1, -2)


def definite(a):
    return a @ transposed(a) + 3 * np.eye(a.shape[-1])


STEPS = {
    "solve": lambda a: np.linalg.solve(definite(a), np.linalg.cholesky(definite(a))),
    "two sides": lambda a: (
        np.linalg.solve(a, np.sin(a)) + np.linalg.solve(transposed(a), a[..., :1])
    ),
    "slogdet": lambda a: a * np.sum(np.linalg.slogdet(a)[0] * np.linalg.slogdet(a)[1]) * 0.05,
    "inv": lambda a: np.linalg.inv(a) + 0.1 * a,
    "det": lambda a: a + np.sum(np.linalg.det(a / 2)) * 0.01,
}


SHAPES = ((9, 9), (2, 3, 3)), ((3, 1, 1), (21, 21))


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(("name", "shapes"), [(n, s) for s in SHAPES for n in STEPS])
def test_values_and_gradients_are_those_of_numpy(name, shapes):
    step = STEPS[name]

    def value(a, w):
        return np.sum(ng.scan(lambda c, _: (step(c), None), a, None, length=2)[0] * w)

    fast = ng.jit(ng.value_and_grad(value))
    for shape in shapes:
        a, w, d = DRAW.normal(size=(3, *shape))
        a = a + 4 * np.eye(shape[-1])[::-1]  # whose rows are exchanged
        got, slope = fast(a, w)
        np.testing.assert_allclose(got, np.sum(step(step(a)) * w), rtol=1e-8, atol=1e-10)
        h = 1e-6
        ahead, behind = (np.sum(step(step(a + s * d)) * w) for s in (h, -h))
        np.testing.assert_allclose(np.sum(slope * d), (ahead - behind) / (2 * h), rtol=2e-5)
        assert "Python" not in fast.report()


@pytest.mark.parametrize(("lower", "trans", "unit"), [(True, 0, False), (False, 1, True)])
def test_triangles(lower, trans, unit):
    options = {"lower": lower, "trans": trans, "unit_diagonal": unit}

    def step(a, b):
        return ng.linalg.solve_triangular(a, b, **options)

    fast = ng.jit(lambda a, b: ng.scan(lambda c, _: (c, step(*c)), (a, b), None, length=2)[1])
    a, b = DRAW.normal(size=(12, 12)) + 4 * np.eye(12), DRAW.normal(size=(12, 2))
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(triangle, 1.0)
    for right in (b, b[:, 0]):
        expected = np.linalg.solve(triangle.T if trans else triangle, right)
        np.testing.assert_allclose(fast(a, right)[0], expected, rtol=1e-10)
    assert "Python" not in fast.report()


def test_kernels_that_are_called_stay_within_their_operands():
    def step(a):
        lower = np.linalg.cholesky(definite(a))
        x = np.linalg.solve(a, np.fft.irfft(np.fft.rfft(np.sort(a)) * 0.5, 3))
        y = np.fft.fft(ng.linalg.solve_triangular(lower, x, lower=True), axis=0).real
        return y + np.searchsorted(np.sort(a[:, 0]), a)

    with emulating():
        fast = ng.jit(lambda a: ng.scan(lambda c, _: (c, step(c)), a, None, length=2)[1])
        a = DRAW.normal(size=(3, 3)) + 4 * np.eye(3)[::-1]
        batch = ng.jit(ng.vmap(lambda a: ng.scan(lambda c, _: (c, rows(c)), a, None, length=2)[1]))

        def rows(a):
            return np.linalg.solve(a, np.fft.ifft(np.sort(a, axis=0)).real)

        both = batch(np.stack([a, 2 * a]))
        result = fast(a)
    np.testing.assert_allclose(both[:, 0], [rows(a), rows(2 * a)], rtol=1e-10)
    x = np.linalg.solve(a, np.sort(a) * 0.5)
    y = np.fft.fft(np.linalg.solve(np.linalg.cholesky(definite(a)), x), axis=0).real
    np.testing.assert_allclose(result[0], y + np.searchsorted(np.sort(a[:, 0]), a), rtol=1e-10)


def test_float32_and_errors_are_those_of_eager_code():
    def steps(a):
        return ng.scan(lambda c, _: (c, np.linalg.solve(c, c[:, 0])), a, None, length=2)[1]

    fast = ng.jit(steps)
    a = (DRAW.normal(size=(10, 10)) + 4 * np.eye(10)).astype("float32")
    result = fast(a)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result[0], np.eye(10)[0], atol=1e-5)
    singular = a.astype("float64")
    singular[3] = 0.0
    with pytest.raises(NumgradLinAlgError, match="solve"):
        fast(singular)
    definite = ng.jit(
        lambda a: ng.scan(lambda c, _: (c, np.linalg.cholesky(c)), a, None, length=1)[1]
    )
    with pytest.raises(NumgradLinAlgError, match="cholesky"):
        definite(-np.eye(10))
