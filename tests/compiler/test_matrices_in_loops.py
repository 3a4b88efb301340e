"""Small matrices in the steps of compiled loops: native, and as eager code computes them.

Larger ones and stacks: ``test_stacks_in_loops``.
"""

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops import loop_program
from numgrad.compiler.lower import matrices as lower_matrices
from numgrad.errors import NumgradLinAlgError

RNG = np.random.default_rng(0)
N = 3
XS = ng.asarray(RNG.normal(size=(5, N * N)))
FLIP = 3 * np.eye(N)[::-1].copy()
EYE, ONES, RISING = np.eye(N), np.ones(N), np.arange(1.0, 4.0)


@pytest.fixture
def native(monkeypatch):
    """The loops that were written, and which of them are kernels."""
    seen = []
    written = loop_program.LoopProgram._written

    def noted(self):
        found = written(self)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(loop_program.LoopProgram, "_written", noted)
    return seen


def definite(x):
    return x @ x.T + EYE


def factored(a):
    lower = np.linalg.cholesky(a)
    upper = ng.linalg.cholesky(a, upper=True)
    half = ng.linalg.solve_triangular(lower, a[0], lower=True)
    return half * np.sum(upper) + ng.linalg.solve_triangular(lower, half, trans=1, lower=True)


STEPS = {
    "solve": lambda m: np.linalg.solve(m, ONES) + np.linalg.solve(m.T, m * 2 + 1)[0],
    "inv": lambda m: np.linalg.inv(m) @ RISING,
    "slogdet": lambda m: np.linalg.slogdet(m)[0] * np.linalg.slogdet(m)[1] * ONES,
    "det": lambda m: np.linalg.det(m) * ONES,
    "cholesky": lambda m: factored(definite(m)),
}


def loop(step):
    """Of matrices whose rows must be exchanged."""

    def f(p):
        def one(c, x):
            y = step(FLIP + x.reshape(N, N) * p + 0.1 * c)
            return np.sin(y), np.sum(y * y)

        last, rows = ng.scan(one, p * ONES, XS)
        return np.sum(last * RISING) + np.sum(rows)

    return f


@pytest.mark.parametrize("name", STEPS)
def test_values_and_gradients_are_those_of_eager_code_and_loops_are_kernels(name, native):
    f, p = loop(STEPS[name]), np.float64(0.7)
    both = ng.value_and_grad(f)
    value, slope = ng.jit(both)(p)
    assert native
    assert all(native)
    np.testing.assert_allclose((value, slope), both(p), rtol=1e-11)
    step = 1e-5
    differences = (f(np.float64(p + step)) - f(np.float64(p - step))) / (2 * step)
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


@pytest.mark.parametrize("name", ["solve", "cholesky"])
def test_second_derivatives(name, native):
    second = ng.grad(ng.grad(loop(STEPS[name])))
    np.testing.assert_allclose(ng.jit(second)(np.float64(0.7)), second(np.float64(0.7)), rtol=1e-9)
    assert all(native)


def test_float32(native):
    def f(p):
        def step(c, x):
            a = np.stack([np.stack([x, c]), np.stack([c * 2, p])])
            return np.linalg.inv(a)[0, 0] + np.linalg.solve(a, a[0])[1], None

        return ng.scan(step, p, ng.asarray(np.arange(4, dtype=np.float32)))[0]

    p = np.float32(0.7)
    found, wanted = ng.jit(f)(p), f(p)
    assert found.dtype == wanted.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert all(native)


@pytest.mark.parametrize("name", ["solve", "inv", "cholesky"])
def test_singular_matrices_raise_as_eager_code_does(name):
    def f(p):
        def step(c, x):
            a = np.stack([np.stack([x, p]), np.stack([p, x])])
            operands = (a, np.stack([c, c])) if name == "solve" else (a,)
            return np.sum(getattr(np.linalg, name)(*operands)), None

        return ng.scan(step, p, ng.asarray([3.0, 1.0, 2.0]))[0]

    ng.jit(f)(np.float64(0.5))
    with pytest.raises(NumgradLinAlgError) as eager:
        f(np.float64(1.0))
    with pytest.raises(NumgradLinAlgError, match=str(eager.value).split(":")[1].strip()):
        ng.jit(f)(np.float64(1.0))


def test_determinants_of_singular_matrices_and_their_gradients():
    def f(p):
        def step(c, x):
            a = np.stack([np.stack([x, p]), np.stack([p, x])])
            return c + np.linalg.det(a), np.linalg.slogdet(a)

        total, (signs, logarithms) = ng.scan(step, 0.0 * p, ng.asarray([3.0, 1.0, -1.0, 0.5]))
        return total, signs, logarithms

    for found, wanted in zip(ng.jit(f)(np.float64(1.0)), f(np.float64(1.0)), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-15)
    slope = ng.jit(ng.grad(lambda p: f(p)[0]))(np.float64(1.0))
    np.testing.assert_allclose(slope, -8.0, rtol=1e-12)


@pytest.mark.parametrize("shape", [(12, 12), (2, 3, 3)])
def test_larger_and_complex_matrices_go_step_by_step(shape, native, monkeypatch):
    monkeypatch.setattr(lower_matrices, "MOST_CALLED", 10)
    matrices = RNG.normal(size=shape) + 5 * np.eye(shape[-1])
    matrices = ng.asarray(matrices + 0j if shape[-1] == 3 else matrices)

    def f(p):
        def step(c, _):
            return np.sin(np.linalg.inv(matrices * p + c)), None

        return np.sum(ng.scan(step, matrices, None, length=2)[0]).real

    np.testing.assert_allclose(ng.jit(f)(np.float64(2.0)), f(np.float64(2.0)), rtol=1e-12)
    assert not any(native)


def test_matrices_among_the_arguments_are_as_small_as_a_call_has_them(native):
    def f(a, b):
        def step(c, x):
            return np.sin(np.linalg.solve(a + x, c)), np.linalg.slogdet(a + x)[1]

        last, rows = ng.scan(step, b, ng.asarray(np.arange(4.0)))
        return np.sum(last) + np.sum(rows)

    both = ng.jit(ng.value_and_grad(f, (0, 1)))
    for n in (3, 2, 9):
        del native[:]
        a, b = RNG.normal(size=(n, n)) + 5 * np.eye(n), RNG.normal(size=n)
        found, wanted = both(a, b), ng.value_and_grad(f, (0, 1))(a, b)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
        for x, y in zip(found[1], wanted[1], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11)
        assert any(native)


@pytest.mark.parametrize("lengths", [(9, 3, 20), (4, 10, 2), (12, 8, 9)])
def test_products_of_what_is_in_registers_and_what_is_in_memory(lengths):
    m, k, n = lengths
    w, v = 0.3 * RNG.normal(size=(k, n)), 0.3 * RNG.normal(size=(n, k))

    def f(w, v):
        def step(c, x):
            hidden = np.tanh((c + x) @ w)
            return 0.5 * np.tanh(hidden @ v) + 0.1 * (c.T @ c)[:1], np.sum(hidden**2)

        last, sums = ng.scan(step, np.zeros((m, k)), np.ones((3, m, k)))
        return np.sum(last**2) + np.sum(sums)

    gradient = ng.grad(f, (0, 1))
    for found, expected in zip(ng.jit(gradient)(w, v), gradient(w, v), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
