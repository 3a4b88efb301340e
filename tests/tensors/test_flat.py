"""``Tensor.flat``, parameters of ``astype``, and what is said of attributes that are absent."""

import numpy as np
import pytest

import numgrad as ng

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def read(x):
    return x.flat[1] ** 2 + sum(v * v for v in x.flat) * x.flat[2:].sum() + x.T.flat[1]


def written(x):
    y = x * 1.0
    y.flat[1:3] = x[0] * 2
    y.flat[0] = 7.0
    y.T.flat[[3]] = x[1, 0]
    return np.sum(y**2)


@pytest.mark.parametrize("f", [read, written])
def test_elements_in_order(f):
    slope = ng.grad(f)(X)
    assert ng.testing.gradcheck(f, [ng.tensor(X, requires_grad=True)])
    np.testing.assert_allclose(ng.jit(ng.grad(f))(X), slope, rtol=1e-14)
    np.testing.assert_allclose(ng.vmap(ng.grad(f))(np.stack([X, X]))[1], slope, rtol=1e-14)


def test_it_is_as_numpys():
    for array in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.zeros((2, 0))):
        x, expected = ng.tensor(array), array.copy()
        np.testing.assert_array_equal(np.asarray(x.flat), expected.flat)
        np.testing.assert_array_equal(x.flat.copy(), expected.flat.copy())
        np.testing.assert_array_equal(x.flat == 2, expected.flat == 2)
        assert len(x.flat) == len(expected.flat)
        x.flat, expected.flat = [1.0, 2.0], [1.0, 2.0]  # which begin again
        np.testing.assert_array_equal(x, expected)
        if array.size:
            x.flat[4], expected.flat[4] = 9.0, 9.0
            np.testing.assert_array_equal(x, expected)
            x.flat[0].fill_(5.0)  # no view
            np.testing.assert_array_equal(x, expected)
    with pytest.raises(ng.errors.NumgradRuntimeError):
        ng.tensor(X, requires_grad=True).flat[0] = 1.0


def test_parameters_of_astype():
    x = ng.tensor(X)
    for given in ({"order": "C"}, {"order": "K"}, {"casting": "unsafe"}, {"subok": False}):
        assert x.astype(np.float32, **given).dtype == np.float32
    for given in ({"order": "F"}, {"casting": "no"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(given))):
            x.astype(np.float32, **given)


def test_attributes_that_are_not_there_name_what_is():
    x = ng.tensor(X)
    for name, near in (
        ("view", "reshape"), ("fill", "fill_"), ("flags", "numpy"), ("meann", "mean"),
        ("creator", "grad_fn"), ("qqqqqq", "nothing"), ("put", "np.put"),
    ):  # fmt: skip
        assert not hasattr(x, name)
        with pytest.raises(ng.errors.NumgradAttributeError, match=near):
            getattr(x, name)
    for name in ("__array_interface__", "_something"):
        assert not hasattr(x, name)


@pytest.mark.parametrize(
    ("home", "name", "near"),
    [
        (ng.linalg, "choleski", "cholesky"), (ng.linalg, "inv_ex", "inv"),
        (ng.signal, "convolv", "convolve"), (ng.special, "zetac", "zeta"), (ng.fft, "fftt", "fft"),
        (ng.stats, "nct", "scipy.stats"), (ng.stats, "norme", "norm"), (ng, "summ", "sum"),
        (ng.ndimage, "zooom", "zoom"), (ng.nn.init, "constant", "constant_"),
        (ng.nn.functional, "max_pool2d_with_indices", "return_indices"),
        (ng.func, "functional_call", "nn"), (ng.autograd, "gradcheck", "testing"),
    ],
)  # fmt: skip
def test_names_that_are_not_there_name_what_is(home, name, near):
    with pytest.raises(AttributeError, match=near):
        getattr(home, name)
