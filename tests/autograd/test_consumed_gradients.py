"""Large elementwise backwards write their gradient over what arrived, if the engine owns it."""

import tracemalloc

import numpy as np
import pytest

import numgrad as ng

N = 40_000
RNG = np.random.default_rng(7)
X = RNG.normal(size=N)
G = RNG.normal(size=N)


def leaf(x=X):
    return ng.tensor(x, requires_grad=True)


def test_a_chain_of_large_operations_takes_one_gradient_more():
    x = leaf(RNG.normal(size=1_000_000))

    def peak(depth):
        y = x
        for _ in range(depth):
            y = ng.tanh(y)
        g = ng.ones(x.shape)
        tracemalloc.start()
        y.backward(g, retain_graph=True)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        x.grad = None
        return found / x.nbytes

    peak(3)
    assert peak(3) < 1.5


@pytest.mark.parametrize("shape", [(N,), (200, N // 200)])
def test_values_are_those_of_the_derivative(shape):
    x = leaf(X.reshape(shape))
    y = ng.exp(ng.tanh(ng.sigmoid(x) * 3.0) + 0.5)
    y.backward(ng.tensor(G.reshape(shape)))
    s = 1 / (1 + np.exp(-X))
    t = np.tanh(3 * s)
    expected = G * np.exp(t + 0.5) * (1 - t * t) * 3.0 * s * (1 - s)
    np.testing.assert_allclose(x.grad.numpy().ravel(), expected, rtol=1e-12, atol=1e-15)


def test_rare_arguments_are_read_before_they_are_written_over():
    x = leaf(np.where(np.arange(N) % 7 == 0, X * 1e9, X))
    ng.sin(ng.cos(ng.sin(x)) * 1e8).backward(ng.tensor(G))
    a = x.detach().numpy()
    c = np.cos(np.sin(a))
    expected = G * np.cos(c * 1e8) * 1e8 * -np.sin(np.sin(a)) * np.cos(a)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-6 * 1e8)


def test_what_the_caller_gave_or_keeps_stays_as_it_is():
    x = leaf()
    given = ng.tensor(G)
    y = ng.tanh(x)
    z = ng.tanh(y)
    y.retain_grad()
    z.backward(given)
    np.testing.assert_array_equal(given.numpy(), G)
    zs = np.tanh(np.tanh(X))
    np.testing.assert_allclose(y.grad.numpy(), G * (1 - zs * zs), rtol=1e-13)
    inner, outer = ng.autograd.grad(ng.tanh(ng.tanh(y2 := ng.tanh(x))).sum(), (y2, x))
    t = np.tanh(X)
    np.testing.assert_allclose(outer.numpy(), inner.numpy() * (1 - t * t), rtol=1e-12)


def test_hooks_see_what_arrived():
    x = leaf()
    y = ng.tanh(x)
    z = ng.tanh(y)
    seen = []
    y.grad_fn.register_hook(lambda made, arrived: seen.extend((*made, *arrived)))
    z.backward(ng.tensor(G))
    made, arrived = (g.numpy() for g in seen)
    zs, ys = np.tanh(np.tanh(X)), np.tanh(X)
    np.testing.assert_allclose(arrived, G * (1 - zs * zs), rtol=1e-13)
    np.testing.assert_allclose(made, arrived * (1 - ys * ys), rtol=1e-10)


def test_a_gradient_that_goes_to_two_operands_is_no_ones():
    x, y = leaf(), leaf(G)
    ng.tanh(ng.tanh(x) + ng.exp(y)).backward(ng.ones(N))
    t = np.tanh(np.tanh(X) + np.exp(G))
    np.testing.assert_allclose(x.grad.numpy(), (1 - t * t) * (1 - np.tanh(X) ** 2), atol=1e-14)
    np.testing.assert_allclose(y.grad.numpy(), (1 - t * t) * np.exp(G), rtol=1e-10, atol=1e-14)


def test_twice_over_a_graph_that_is_kept():
    x = leaf()
    y = ng.sum(ng.exp(ng.tanh(ng.tanh(x))))
    y.backward(retain_graph=True)
    first = x.grad.numpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * first)
