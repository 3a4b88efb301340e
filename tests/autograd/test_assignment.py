"""``x[index] = value`` and its kin: gradients, and that graphs are released."""

import gc
import weakref

import numpy as np
import pytest

import numgrad as ng
from tests.autograd.writing import leaf, raises_and_changes_nothing, same_gradients, weighted


def test_assignment_in_a_loop():
    y = leaf(6)
    out = ng.zeros((2, 3))
    for i in np.arange(2):
        for j in range(3):
            out[i, j] = y[3 * int(i) + j] ** 2
    weighted(out).backward()
    expected = 2 * y.detach().numpy() * np.cos(1.0 + np.arange(6))
    np.testing.assert_allclose(y.grad.numpy(), expected, rtol=1e-14)


@pytest.mark.slow(cases=0)
def test_long_loop_neither_overflows_nor_forgets():
    y = leaf(1)
    out = ng.zeros(20_000)
    for i in range(len(out)):
        out[i] = y[0]
    (g,) = ng.autograd.grad(out.sum(), y)
    assert g.item() == 20_000.0
    del out


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("fill", ["elements", "views", "augmented", "operations"])
def test_graph_is_released(fill):
    """Without the garbage collector: nothing refers to itself."""
    gc.collect()
    gc.disable()
    try:
        y = leaf(4)
        out = ng.zeros(4)
        for i in range(4):
            if fill == "elements":
                out[i] = y[i] * 2.0
            elif fill == "views":
                out[i : i + 1].copy_(y[i])
            elif fill == "augmented":
                out[i] += y[i] * 2.0
            else:
                out.add_(y).mul_(2.0).sin_()
        out.sum().backward()
        released = [weakref.ref(out), weakref.ref(out.grad_fn)]
        del out
        assert [r() for r in released] == [None, None]
    finally:
        gc.enable()


def test_base_that_was_dropped():
    y = leaf()
    x = ng.zeros(10).reshape(2, 5)
    x[0][1] = y * 3.0
    assert x.requires_grad
    weighted(x).backward()
    np.testing.assert_allclose(y.grad.item(), 3 * np.cos(2.0))
    assert x._base.shape == (10,)


def test_duplicate_indices_keep_the_last():
    v = leaf(3)
    x = ng.zeros(2)
    x[[0, 1, 0]] = v
    x.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 1.0]
    np.testing.assert_array_equal(x.detach().numpy(), v.detach().numpy()[[2, 1]])


def test_assignment_of_lists_of_tensors():
    a, b = leaf(), leaf(seed=1)
    for index in (slice(1, 3), [1, 2]):
        x = ng.zeros(3)
        x[index] = [a, b * 2.0]
        ga, gb = ng.autograd.grad(x.sum(), (a, b))
        assert (ga.item(), gb.item()) == (1.0, 2.0)


@pytest.mark.slow(cases=0)
def test_augmented_assignment():
    def written(a, b):
        x = a * 1.0
        x += b
        x[1] *= b[0]
        x[[0, 2]] -= b[1]
        x[x > 1.0] /= 2.0
        x **= 2
        x[::2] %= 1.7
        return x

    def functional(a, b):
        x = a + b
        x = ng.stack([x[0] - b[1], x[1] * b[0], x[2] - b[1]])
        x = ng.where(x > 1.0, x / 2.0, x)
        x = x * x
        return ng.stack([x[0] % 1.7, x[1], x[2] % 1.7])

    rng = np.random.default_rng(3)
    same_gradients(written, functional, rng.uniform(1, 2, 3), rng.uniform(0.5, 1, 3))


def test_matmul_in_place():
    a, b = np.random.default_rng(4).uniform(size=(2, 3, 3))

    def written(a, b):
        x = a * 1.0
        x @= b
        x @= x
        return x

    same_gradients(written, lambda a, b: (a @ b) @ (a @ b), a, b)
    square = ng.eye(3)
    raises_and_changes_nothing(
        ng.NumgradValueError, "matmul_", square, lambda: square.__imatmul__(np.ones(3))
    )
