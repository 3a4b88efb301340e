"""NumPy's functions on Tensors."""

import numpy as np
import pytest
import scipy.special

import numgrad as ng


def leaf():
    return ng.tensor([[0.2, 0.5], [0.7, 0.9]], requires_grad=True)


FUNCTIONS = [
    np.tanh, np.sum, np.mean, np.cumsum, np.ravel, np.transpose, np.max,
    lambda x: np.sum(x, axis=0), lambda x: np.where(x > 0.4, x, 0.0), lambda x: np.clip(x, 0.3,
    0.8),
    lambda x: np.concatenate([x, x]), lambda x: np.stack([x, x], axis=1), lambda x: np.add(x, 1),
    lambda x: np.linalg.norm(x), lambda x: np.var(x, axis=1, ddof=1), lambda x: np.add.reduce(x),
    lambda x: np.multiply.accumulate(x, axis=1), lambda x: np.add.outer(x[0], x[1]),
    lambda x: scipy.special.expit(x), lambda x: scipy.special.gammaln(x), np.square,
    lambda x: np.reshape(x, (4,)), lambda x: np.round(x, 1), lambda x: np.nan_to_num(x),
    lambda x: np.multiply(2.0, x), lambda x: np.ones((2, 2)) * x, lambda x: np.float64(2) * x,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_with_an_operation_keep_the_gradient(function):
    x = leaf()
    y = function(x)
    assert isinstance(y, ng.Tensor)
    assert y.requires_grad
    expected = function(x.numpy(force=True))
    np.testing.assert_allclose(y.numpy(force=True), expected, rtol=1e-13)


def test_functions_without_one():
    x = leaf()
    with pytest.raises(TypeError, match=r"np\.convolve"):
        np.convolve(x[0], x[1])
    with pytest.raises(TypeError, match=r"np\.spacing"):
        np.spacing(x)
    plain = x.detach()
    np.testing.assert_array_equal(np.spacing(plain), np.spacing(plain.numpy()))
    assert type(np.histogram(plain)[0]) is np.ndarray


def test_keywords_and_out():
    x = leaf()
    with pytest.raises(TypeError, match="out"):
        np.exp(x, out=np.empty((2, 2)))
    with pytest.raises(TypeError, match="where"):
        np.exp(x, where=np.ones((2, 2), bool))
    with pytest.raises(RuntimeError, match="out="):
        np.exp(np.ones((2, 2)), out=x * 2)
    target = ng.zeros((2, 2))
    assert np.exp(x.detach(), out=target) is target
    np.testing.assert_array_equal(target.numpy(), np.exp(x.detach().numpy()))
    assert target._version == 1


def test_helpers():
    x = leaf()
    assert np.shape(x) == (2, 2)
    assert np.ndim(x) == 2
    assert np.size(x) == 4
    assert isinstance(np.zeros_like(x), ng.Tensor)
    assert np.result_type(x, np.float32) == np.float64
    assert not np.iscomplexobj(x)
    assert np.copy(x).requires_grad
    np.testing.assert_array_equal(np.allclose(x, x), True)


def test_array_on_the_left():
    x = leaf()
    a = np.ones((2, 2))
    for y in (a + x, a * x, a - x, a / x, a**x, a < x):
        assert isinstance(y, ng.Tensor)
    (a * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), a)
