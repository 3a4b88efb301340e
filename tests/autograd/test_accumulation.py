"""Gradients that meet at one place: added up right, in place where nobody else looks."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.plan import LARGE

RNG = np.random.default_rng(3)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, LARGE + 7])
def test_operand_used_by_several_operations(n):
    a, b, w = RNG.normal(size=n), RNG.normal(size=n), RNG.normal(size=1)
    x, y, z = (ng.tensor(v, requires_grad=True) for v in (a, b, w))
    value = ng.sum(x * y + x * x * z + ng.tanh(x) * y * z + x / (2 + y * y))
    value.backward()
    t = np.tanh(a)
    np.testing.assert_allclose(
        x.grad.numpy(),
        b + 2 * a * w + (1 - t * t) * b * w + 1 / (2 + b * b),
        rtol=1e-12,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        y.grad.numpy(), a + t * w - 2 * a * b / (2 + b * b) ** 2, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(z.grad.numpy(), [np.sum(a * a + t * b)], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 4), (LARGE // 100, 101)])
def test_reductions_that_meet_an_elementwise_gradient(shape):
    a = RNG.normal(size=shape)
    x = ng.tensor(a, requires_grad=True)
    value = ng.sum(ng.exp(x)) + ng.sum(ng.logsumexp(x, axis=1)) + ng.sum(ng.softmax(x) * a)
    value.backward()
    p = np.exp(a - a.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    expected = np.exp(a) + p + p * (a - np.sum(p * a, axis=1, keepdims=True))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-11)


@pytest.mark.parametrize("n", [5, LARGE + 7])
def test_gradients_that_others_hold_are_not_written(n):
    x = ng.tensor(RNG.normal(size=n), requires_grad=True)
    cotangent = np.ones(n)
    (x + x).backward(ng.from_numpy(cotangent), retain_graph=True)
    np.testing.assert_array_equal(cotangent, np.ones(n))
    np.testing.assert_array_equal(x.grad.numpy(), np.full(n, 2.0))
    first = x.grad
    kept = first.numpy().copy()
    (y,) = ng.autograd.grad(ng.sum(x * x), x)
    np.testing.assert_array_equal(first.numpy(), kept)
    assert not np.shares_memory(y.numpy(), first.numpy())
    ng.sum(x * 3.0).backward()
    assert x.grad is first
    np.testing.assert_array_equal(first.numpy(), kept + 3.0)


def test_two_leaves_never_share_a_gradient():
    a, b = (ng.tensor(RNG.normal(size=4), requires_grad=True) for _ in range(2))
    (a + b).backward(np.ones(4))
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())


@pytest.mark.parametrize("by", [2.0, RNG.normal(size=(3, 4, 2))], ids=["number", "array"])
def test_a_gradient_lies_in_memory_as_a_dense_leaf_does(by):
    """Promise 8."""
    whole = RNG.normal(size=(4, 2, 3))
    dense = whole, whole.T.copy().T, whole.copy()[:, ::-1].copy()
    for array in (a.transpose(2, 0, 1) for a in dense):
        x = ng.asarray(array).requires_grad_()
        for _ in range(2):
            ng.sum(x * by).backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(2 * by, (3, 4, 2)))
        assert x.grad.numpy().strides == array.strides
    rows = ng.asarray(RNG.normal(size=(4, 6))[:, ::2].T).requires_grad_()
    ng.sum(rows).backward()
    assert rows.grad.numpy().flags.c_contiguous


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "dtypes"),
    [
        (ng.sum, ("float64", "float32")),
        (ng.sum, ("float32", "float64")),
        (ng.mean, ("float32", "float64")),
        (ng.prod, ("float64", "float32")),
        (ng.var, ("float32", "float64")),
        (ng.std, ("float64", "float32")),
    ],
)
def test_reduction_in_another_dtype_gives_the_operand_a_gradient_of_its_own(operation, dtypes):
    own, other = dtypes
    a = np.linspace(1, 2, 6).astype(own)
    gradients = []
    for dtype in (None, other):
        x = ng.tensor(a, requires_grad=True)
        value = operation(x * 2.0, dtype=dtype)
        assert value.dtype == (dtype or own)
        value.backward()
        assert x.grad.dtype == own
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "complex128"])
def test_sum_in_a_dtype_is_that_of_numpy(dtype):
    a = np.arange(100, dtype=np.int16)
    found = ng.sum(ng.tensor(a), dtype=dtype)
    assert found.dtype == np.sum(a, dtype=dtype).dtype
    assert found.item() == np.sum(a, dtype=dtype)
