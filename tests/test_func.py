"""Transforms of functions: grad, value_and_grad, jacobian, hessian."""

import numpy as np
import pytest

import numgrad as ng


def cube(x):
    return np.sum(x**3)


def test_kind_in_is_kind_out():
    x = np.array([1.0, 2.0])
    value, gradient = ng.value_and_grad(cube)(x)
    assert value == 9.0
    assert type(gradient) is np.ndarray
    np.testing.assert_array_equal(gradient, [3.0, 12.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])
    assert isinstance(ng.grad(cube)(ng.tensor(x)), ng.Tensor)
    assert ng.grad(lambda x: x * x)(3) == 6.0
    assert ng.grad(cube)(x.astype(np.float32)).dtype == np.float32


def test_argnums_aux_and_trees():
    def f(a, b, scale=1.0):
        return np.sum(a["w"] * b) * scale, a["w"]

    a, b = {"w": np.array([1.0, 2.0])}, np.array([3.0, 4.0])
    (value, aux), (ga, gb) = ng.value_and_grad(f, argnums=(0, 1), has_aux=True)(a, b, scale=2.0)
    assert value == 22.0
    np.testing.assert_array_equal(aux, a["w"])
    assert type(aux) is np.ndarray
    np.testing.assert_array_equal(ga["w"], [6.0, 8.0])
    np.testing.assert_array_equal(gb, [2.0, 4.0])
    gradient, aux = ng.grad(f, argnums=-1, has_aux=True)(a, b)
    np.testing.assert_array_equal(gradient, [1.0, 2.0])
    nested = ng.grad(lambda t: np.sum(t[0] * t[1][0]))((b, [b * 2]))
    np.testing.assert_array_equal(nested[1][0], b)


def test_jacobian_and_hessian():
    rng = np.random.default_rng(0)
    m, x = rng.standard_normal((3, 2)), rng.standard_normal(2)

    def f(x):
        return np.sin(np.sum(x * m, axis=1))

    jacobian = ng.jacobian(f)(x)
    np.testing.assert_allclose(jacobian, np.cos(m @ x)[:, None] * m, rtol=1e-13)
    assert ng.jacobian(lambda a, b: a * b, argnums=(0, 1))(x, x)[1].shape == (2, 2)
    hessian = ng.hessian(lambda x: np.sum(np.exp(x)) + x[0] * x[1])(x)
    np.testing.assert_allclose(hessian, np.diag(np.exp(x)) + np.eye(2)[::-1], rtol=1e-13)
    np.testing.assert_array_equal(ng.jacobian(lambda x: np.ones(2))(x), np.zeros((2, 2)))


def test_nesting():
    def inner(x):
        return ng.grad(lambda y: np.sum(y**3 * x))(x).sum()

    x = ng.tensor([2.0], requires_grad=True)
    assert ng.grad(inner)(x).item() == pytest.approx(36.0)  # d/dx 3 x^3 with y = x through both


def test_no_backward_inside_a_transform():
    """Promise 110."""
    parameter = ng.tensor(2.0, requires_grad=True)

    def f(x):
        (x.sum() * parameter).backward()
        return x.sum()

    with pytest.raises(RuntimeError, match="inside a function that ng"):
        ng.grad(f)(np.ones(2))
    assert parameter.grad is None
    (parameter * 3).backward()  # and outside all is as before
    assert parameter.grad.item() == 3.0


def test_what_has_no_gradient_is_refused():
    """Promise 110."""
    with pytest.raises(RuntimeError, match="jacobian"):
        ng.grad(lambda x: x * 2)(np.ones(2))
    with pytest.raises(RuntimeError, match="hessian"):
        ng.hessian(lambda x: x * 2)(np.ones(2))
    with pytest.raises(ValueError, match="argument 1"):
        ng.grad(cube, argnums=1)(np.ones(2))
    with pytest.raises(TypeError, match="int64"):
        ng.grad(cube)(np.ones(2, int))
    with pytest.raises(TypeError, match="pair"):
        ng.grad(cube, has_aux=True)(np.ones(2))


def test_result_that_does_not_depend():
    np.testing.assert_array_equal(ng.grad(lambda x: np.sum(np.ones(2)))(np.ones(2)), [0, 0])
    with ng.no_grad():
        np.testing.assert_array_equal(ng.grad(cube)(np.ones(2)), [3, 3])
