"""Jacobians by columns that are followed forward: the same as those by rows."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.structured_jacobians import columns_by_duals
from numgrad.errors import NumgradNotImplementedError

A = np.arange(12.0).reshape(4, 3) / 7
X = np.array([0.3, -0.7, 1.2])


def written(x):
    y = x * 2
    y[0] = x[1]
    return y


def nested(x):
    return ng.grad(lambda y: np.sum(np.sin(y) * x))(x * 2)


FUNCTIONS = {
    "sparse": lambda x: x[0] * np.exp(-x[1] * A) + x[2],
    "the same": lambda x: x,
    "views": lambda x: x[::-1].reshape(3, 1).T[0] * 2,
    "constant": lambda x: ng.zeros(2),
    "in part": lambda x: np.stack([x[0], ng.tensor(1.0)]),
    "products": lambda x: A @ x + x @ x,
    "reductions": lambda x: np.stack([np.prod(x), np.max(x), np.std(x), x.sum() ** 2]),
    "choices": lambda x: np.where(x > 0, x**2, np.abs(x)) + np.clip(x, -0.5, 0.5),
    "sorted": lambda x: np.cumsum(np.sort(x)) / np.sum(x),
    "integers": lambda x: x * np.floor(x) + np.argmax(x),
    "matrices": lambda x: np.linalg.solve(np.eye(3) + x * x[:, None], x),
    "joined": lambda x: np.concatenate([x, np.outer(x, x).ravel()]),
    "unstacked": lambda x: sum(k * part for k, part in enumerate(x)),
    "masked": lambda x: x[x > 0] * x[np.array([0, 2])],
    "gradient inside": nested,
    "written": written,
    "not selected": lambda x: np.where(x < 9, x * x[0], np.nan * np.where(x < 9, 0.0, x[1])),
    "float32": lambda x: x.astype(np.float32) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_as_by_rows(name):
    function = FUNCTIONS[name]
    expected, found = ng.jacrev(function)(X), ng.jacfwd(function)(X)
    assert found.shape == expected.shape
    assert found.dtype == (np.float32 if name == "float32" else np.float64)
    np.testing.assert_allclose(
        found, expected, rtol=1e-6 if name == "float32" else 1e-13, atol=1e-15
    )


@pytest.mark.parametrize("name", ["written", "float32"])
def test_what_is_left_to_other_ways(name):
    with pytest.raises(NumgradNotImplementedError, match="columns"):
        columns_by_duals(lambda x: [FUNCTIONS[name](x[0])], [ng.Tensor(X)])
    assert ng.jvp(np.sin, (1.0,), (1.0,))[1] == np.cos(1.0)  # nothing is left behind


def test_rules_of_the_users_are_left_to_other_ways():
    @ng.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda primals, tangents: (2 * primals[0], 2 * tangents[0]))
    np.testing.assert_array_equal(ng.jacfwd(lambda x: double(x) * x)(X), np.diag(4 * X))


def test_several_inputs_and_outputs():
    def function(a, b):
        return {"s": a * b, "p": np.sum(a)}

    for argnums in (0, 1, (0, 1)):
        expected = ng.jacrev(function, argnums)(X, 2.0)
        found = ng.jacfwd(function, argnums)(X, 2.0)
        ng.tree.map(np.testing.assert_allclose, found, expected)


def test_what_is_differentiated_further_keeps_its_graph():
    t = ng.tensor(2.0, requires_grad=True)
    ng.jacfwd(lambda x: x * t**2)(X).sum().backward()
    assert t.grad.item() == 12.0
    cubes = ng.jacfwd(ng.jacfwd(lambda x: x**3))(X)
    np.testing.assert_allclose(np.einsum("iii->i", cubes), 6 * X, rtol=1e-13)


def unrecorded(x):
    with ng.no_grad():
        y = x * 2
    return y * x


def with_a_gradient(x):
    w = ng.tensor(2.0, requires_grad=True)
    with ng.enable_grad():
        (g,) = ng.autograd.grad(w**3 * x.sum(), w)
    return g * x


@pytest.mark.parametrize("f", [unrecorded, with_a_gradient])
@pytest.mark.parametrize("rows", [2, 40])
def test_what_backwards_do_not_follow_is_constant_for_any_number_of_rows(f, rows):
    def spread(x):
        return np.sin(f(x) * ng.ones(rows))

    x = np.array([1.5])
    expected = ng.jacrev(spread)(x)
    np.testing.assert_allclose(ng.jacobian(spread)(x), expected)
    np.testing.assert_allclose(ng.jit(ng.jacobian(spread))(x), expected)
