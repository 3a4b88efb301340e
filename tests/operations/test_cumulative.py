"""Cumulative sums and products, differences, linear recurrences, places of extremes."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck
from tests.quiet import quiet

rng = np.random.default_rng(3)
AXES = [None, 0, 1, -1]


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex128"])
def test_values_are_numpys(name, axis, dtype):
    x = rng.integers(0, 3, size=(3, 4, 2)).astype(dtype)
    for layout in (x, x.T, x[::-1, ::2], x[:0], x[:, :0]):
        got = getattr(ng, name)(ng.from_numpy(layout), axis=axis)
        expected = getattr(np, name)(layout, axis=axis)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
        assert got.dtype == expected.dtype


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", ["float64", pytest.param("complex128", marks=pytest.mark.slow)])
@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_gradients(axis, dtype, zeros):
    x = rng.uniform(0.5, 1.5, size=(3, 4)).astype(dtype)
    if dtype == "complex128":
        x = x * np.exp(1j * rng.normal(size=x.shape))
    x.ravel()[[1, 2, 6][:zeros]] = 0
    t = ng.tensor(x, requires_grad=True)
    assert gradcheck(lambda t: ng.cumsum(t, axis=axis), (t,))
    assert gradgradcheck(lambda t: ng.sin(ng.cumsum(t, axis=axis)), (t,))
    assert gradcheck(lambda t: ng.cumprod(t, axis=axis), (t,))
    assert gradgradcheck(lambda t: ng.cumprod(t, axis=axis), (t,))


def test_third_derivative_of_cumprod_with_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    t = ng.tensor(x, requires_grad=True)
    g = t
    y = ng.cumprod(t)[-1]  # x0 x1 x2 x3 x4
    (g,) = ng.autograd.grad(y, t, create_graph=True)
    (g,) = ng.autograd.grad(g[1], t, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0, 0, 30, 0])
    (g,) = ng.autograd.grad(g[3], t)
    np.testing.assert_allclose(g.numpy(), [15, 0, 10, 0, 6])


def test_dtype_parameter():
    t = ng.tensor(np.array([1.5, 2.5], np.float32), requires_grad=True)
    y = ng.cumsum(t, dtype=np.float64)
    assert y.dtype == np.float64
    y.sum().backward()
    assert t.grad.dtype == np.float32
    np.testing.assert_array_equal(t.grad.numpy(), [2.0, 1.0])
    assert ng.cumprod(ng.tensor([1, 2], dtype=np.int8), dtype=np.float32).dtype == np.float32
    with pytest.raises(ng.NumgradTypeError, match="complex"):
        ng.cumsum(ng.tensor([1j]), dtype=np.float64)
    with pytest.raises(ng.NumgradTypeError, match="float16"):
        ng.cumsum(t, dtype=np.float16)


@pytest.mark.slow(cases=0)
def test_large_operands_in_parallel():
    x = rng.normal(size=(300, 700))
    for axis in (0, 1):
        t = ng.tensor(x, requires_grad=True)
        y = ng.cumsum(t, axis=axis)
        np.testing.assert_allclose(y.detach().numpy(), np.cumsum(x, axis))
        ng.sum(y * x).backward()
        expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
        np.testing.assert_allclose(t.grad.numpy(), expected)


@pytest.mark.parametrize("initial", [False, True])
def test_array_api_names(initial):
    x = rng.normal(size=(3, 4))
    t = ng.tensor(x, requires_grad=True)
    got = ng.cumulative_sum(t, axis=1, include_initial=initial)
    np.testing.assert_allclose(got.detach().numpy()[:, initial:], np.cumsum(x, 1))
    got = ng.cumulative_prod(t, axis=1, include_initial=initial)
    np.testing.assert_allclose(got.detach().numpy()[:, initial:], np.cumprod(x, 1))
    assert gradcheck(lambda t: ng.cumulative_sum(t, axis=0, include_initial=initial), (t,))
    with pytest.raises(ng.NumgradValueError, match="axis"):
        ng.cumulative_sum(t)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_linear_recurrence(reverse, axis, dtype):
    a = rng.normal(size=(4, 3)).astype(dtype)
    b = rng.normal(size=(4, 3)).astype(dtype) * (1 if dtype == "float64" else 1 + 1j)
    expected = np.moveaxis(b.copy(), axis, 0)
    coefficients = np.moveaxis(a, axis, 0)
    order = range(len(expected) - 2, -1, -1) if reverse else range(1, len(expected))
    for k in order:
        expected[k] += coefficients[k] * expected[k + 1 if reverse else k - 1]
    ta, tb = ng.tensor(a, requires_grad=True), ng.tensor(b, requires_grad=True)
    got = ng.linear_recurrence(ta, tb, axis=axis, reverse=reverse)
    np.testing.assert_allclose(got.detach().numpy(), np.moveaxis(expected, 0, axis))

    def f(a, b):
        return ng.linear_recurrence(a, b, axis=axis, reverse=reverse)

    assert gradcheck(f, (ta, tb))
    assert gradgradcheck(f, (ta, tb))
    with pytest.raises(ng.NumgradValueError, match="differ"):
        ng.linear_recurrence(ta, tb[:1])


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_diff(axis, n):
    x = rng.normal(size=(3, 4))
    t = ng.tensor(x, requires_grad=True)
    np.testing.assert_allclose(ng.diff(t, n, axis).detach().numpy(), np.diff(x, n, axis))
    got = ng.diff(t, n, axis, prepend=1.0, append=0)
    np.testing.assert_allclose(
        got.detach().numpy(), np.diff(x, n, axis, prepend=1.0, append=0), atol=1e-14
    )
    if n:
        assert gradcheck(lambda t: ng.diff(t, n, axis, prepend=1.0), (t,))
    with pytest.raises(ng.NumgradValueError, match="negative"):
        ng.diff(t, -1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float32", "float64", "complex64"])
def test_places_of_extremes(name, axis, dtype):
    x = rng.integers(0, 4, size=(3, 5, 2)).astype(dtype)
    if np.dtype(dtype).kind in "fc":
        x[1, 2, 0] = np.nan
    for layout in (x, x.T, x[::-1, ::2]):
        for keepdims in (False, True):
            got = getattr(ng, name)(ng.from_numpy(layout), axis=axis, keepdims=keepdims)
            expected = quiet(getattr(np, name), layout, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(got.numpy(), np.asarray(expected), strict=True)


def test_errors():
    t = ng.tensor(np.ones((3, 4)), requires_grad=True)
    assert not ng.argmax(t).requires_grad
    for f in (ng.cumsum, ng.cumprod, ng.argmax, ng.diff):
        with pytest.raises(ng.NumgradIndexError, match="axis 2"):
            f(t, axis=2)
    with pytest.raises(ng.NumgradValueError, match="no elements"):
        ng.argmax(t[:0], axis=0)
    assert ng.argmax(t[:0], axis=1).shape == (0,)


def test_gradient_agrees_with_torch():
    torch = pytest.importorskip("torch")
    x = np.array([[2.0, 0.0, 3.0, 0.0], [1.0, 2.0, 0.0, 4.0]])
    a, t = torch.tensor(x, requires_grad=True), ng.tensor(x, requires_grad=True)
    (torch.cumprod(a, 1) * torch.arange(4)).sum().backward()
    ng.sum(ng.cumprod(t, axis=1) * np.arange(4)).backward()
    np.testing.assert_allclose(t.grad.numpy(), a.grad.numpy())
