"""Small arrays of fixed shape as scalars: eager code's bits, no loop, pieces of bounded length."""

import re

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating


def slope(state, p):
    x, y, z = state[0], state[1], state[2]
    return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def lorenz(state, p):
    for _ in range(3):
        k = slope(state, p)
        state = state + 0.01 * slope(state + 0.005 * k, p)
    return np.sum(state**2)


POINT = np.array([1.0, 2.0, 20.0]), np.array([10.0, 28.0, 8.0 / 3.0])


def source(fast):
    (specialisation,) = fast.specialisations
    return specialisation.program.source


@pytest.mark.parametrize("piece", [3, 20, 500])
def test_steps_in_pieces(monkeypatch, piece):
    monkeypatch.setattr("numgrad.codegen.nests.tasks.PIECE", piece)
    both = ng.value_and_grad(lorenz, argnums=(0, 1))
    value, (by_state, by_p) = both(*POINT)
    with emulating(piece=piece):
        fast = ng.jit(lambda *given: both(*given), dynamic=False)
        found, (state, p) = fast(*POINT)
    assert found == value
    assert state.tolist() == by_state.tolist()
    assert p.tolist() == by_p.tolist()
    text = source(fast)
    assert " for " not in text
    assert "def nest" not in text
    bodies = re.split(r"def piece_\d+.*", text.partition("def kernel")[0])[1:]
    assert bool(bodies) == (piece < 500)
    assert all(len(re.findall(r"^    v\d+ = ", body, re.MULTILINE)) <= piece for body in bodies)


def test_compiled_steps_have_the_bits_of_eager_ones():
    both = ng.value_and_grad(lorenz, argnums=(0, 1))
    value, gradients = both(*POINT)
    found, others = ng.jit(lambda *given: both(*given))(*POINT)
    assert found == value
    for a, b in zip(gradients, others, strict=True):
        assert a.tolist() == b.tolist()


def test_a_sum_in_an_element_that_nothing_uses():
    def second(x, y):
        product = np.sum(np.pad(x[1:], (0, 1)) * x)
        return (y + np.pad(product.reshape(1), (0, 1)))[1:] * x[0]

    x, y = np.array([3.0, 2.0, 5.0]), np.array([1.0, 7.0])
    with emulating():
        fast = ng.jit(second, dynamic=False)
        assert fast(x, y).tolist() == [21.0]
    assert "sum" not in source(fast)


def several(x):
    m = x.reshape(4, 4)
    return (
        np.sum(x), np.sum(m, axis=1), np.prod(x), np.max(m, axis=0), np.argmax(x), np.cumsum(x),
        np.all(x > 0), np.tril(m @ m.T), np.sum(x[::-3]), np.sum(-0.0 * x), np.diff(x),
    )  # fmt: skip


def test_reductions_have_the_bits_of_eager_ones():
    x = np.random.default_rng(5).normal(size=16)
    expected, found = several(x), ng.jit(several, dynamic=False)(x)
    eager = [np.sum(ng.tensor(x)).item(), np.sum(ng.tensor(x).reshape(4, 4), axis=1).tolist()]
    assert found[0] == eager[0]
    assert found[1].tolist() == eager[1]
    assert not np.signbit(found[9])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


def test_elements_at_computed_places_and_in_loops():
    """A small array is in memory where a nest reads it, or an index that is computed."""

    def f(x, k):
        w = np.stack([np.sum(x, axis=0)[0], x[0, 1], 2.0 * x[1, 0]])
        return w[k] * np.sum(x[:, :1] * w), x[:, :1] * (w + 1.0)

    x, k = np.arange(24.0).reshape(8, 3), np.array(1)
    with emulating():
        found = ng.jit(f)(x, k)
    for a, b in zip(found, f(x, k), strict=True):
        np.testing.assert_array_equal(a, b)


def test_large_arrays_of_fixed_shape_keep_their_loops():
    with emulating():
        fast = ng.jit(lambda x: np.exp(x) + 1.0, dynamic=False)
        fast(np.ones(65))
    assert "def nest_0" in source(fast)


def test_the_shortest_arrays_have_no_loop_however_many_there_are(monkeypatch):
    monkeypatch.setattr("numgrad.codegen.nests.small_arrays.MOST_SCALARS", 10)
    with emulating():
        fast = ng.jit(lambda s, p: lorenz(s, p), dynamic=False)
        assert fast(*POINT) == pytest.approx(lorenz(*POINT), rel=1e-14)
    assert "def nest" not in source(fast)
