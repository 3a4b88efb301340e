"""``np.piecewise`` with functions: beside NumPy's own, with gradients, compiled and batched."""

import numpy as np
import pytest

import numgrad as ng

X = np.array([-4.0, -1.0, 0.5, 4.0, 9.0])

# conditions, functions, derivatives; several functions are not defined elsewhere
PROGRAMS = {
    "otherwise a function": (
        lambda x: [x < 0, x > 2],
        [lambda v: -3.0 * v, np.sqrt, np.square],
        [lambda v: -3.0 + 0 * v, lambda v: 0.5 / np.sqrt(v), lambda v: 2 * v],
    ),
    "otherwise nothing": (
        lambda x: [x < 0, x > 2],
        [5.0, np.log],
        [lambda v: 0 * v, lambda v: 1 / v, lambda v: 0 * v],
    ),
    "otherwise a number": (
        lambda x: [x > 0],
        [lambda v: v**1.5, 7],
        [lambda v: 1.5 * np.sqrt(v), lambda v: 0 * v],
    ),
    "the last counts": (
        lambda x: [x > -2, x > 2],
        [np.exp, lambda v: 1 / v],
        [np.exp, lambda v: -1 / v**2, lambda v: 0 * v],
    ),
    "one condition": (lambda x: x < 0, [np.negative, np.sqrt], [lambda v: -1 + 0 * v,
                                                              lambda v: 0.5 / np.sqrt(v)]),
    "none holds": (lambda x: [x > 100], [np.log, lambda v: v], [None, lambda v: 1 + 0 * v]),
}  # fmt: skip


def made(name):
    conditions, functions, _ = PROGRAMS[name]
    return lambda x: np.piecewise(x, conditions(x), functions)


def derivative(name, x):
    conditions, _, slopes = PROGRAMS[name]
    return np.piecewise(x, conditions(x), [s or (lambda v: v) for s in slopes])


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    f, true = made(name), derivative(name, X)
    wide = (X.reshape(5, 1), np.outer(X, [1.0, 0.5])) if name != "one condition" else ()
    for x in (X, *wide):
        for call in (lambda x: f(ng.tensor(x)).numpy(), ng.jit(lambda x: f(x))):
            np.testing.assert_allclose(call(x), f(x), rtol=1e-15)
    for grad in (ng.grad(lambda x: np.sum(f(x))), ng.jit(ng.grad(lambda x: np.sum(f(x))))):
        np.testing.assert_allclose(grad(X), true, rtol=1e-14)
    for push in (lambda x: ng.jvp(f, (x,), (np.ones(5),))[1], ng.vmap(ng.grad(f))):
        np.testing.assert_allclose(push(X), true, rtol=1e-14)
        np.testing.assert_allclose(ng.jit(push)(X), true, rtol=1e-14)
    np.testing.assert_allclose(ng.vmap(f)(X), f(X), rtol=1e-15)
    np.testing.assert_allclose([ng.jit(ng.grad(f))(v) for v in X], true, rtol=1e-14)


@pytest.mark.parametrize("transform", [lambda f: f, ng.jit])
def test_what_functions_close_over_and_get(transform):
    def program(a, x):
        return np.sum(ng.piecewise(x, [x < 0], [lambda v, b: v * a * b, lambda v, b: v + b], a))

    slopes = transform(ng.grad(program, argnums=(0, 1)))(2.0, X)
    np.testing.assert_allclose(slopes[0], 2 * 2.0 * (-5.0) + 3)
    np.testing.assert_allclose(slopes[1], [4.0, 4.0, 1.0, 1.0, 1.0])
    # the conditions have numbers, the functions a Tensor; a number may be one too
    below = X < 0
    constant = transform(ng.grad(lambda a: np.sum(ng.piecewise(X, [below], [lambda v: v * a, a]))))
    np.testing.assert_allclose(constant(2.0), -5.0 + 3)


def test_elements_that_a_function_mixes():
    def of_means(x):
        return np.piecewise(x, [x < 0], [lambda v: v - np.mean(v), lambda v: np.sum(v) + 0 * v])

    np.testing.assert_allclose(ng.jit(of_means)(X), of_means(X), rtol=1e-15)
    with pytest.raises(ng.NumgradError, match="sort needs to know how many elements"):
        ng.jit(lambda x: np.piecewise(x, [x < 0], [np.sort, np.sqrt]))(X)
    integers = np.array([-3, 2])
    halves = ng.jit(lambda x: np.piecewise(x, [x < 0], [lambda v: v / 2, 3.7]))(integers)
    np.testing.assert_array_equal(
        halves, np.piecewise(integers, [integers < 0], [lambda v: v / 2, 3.7])
    )
