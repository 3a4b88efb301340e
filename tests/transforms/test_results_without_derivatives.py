"""Gradients of what is no floating number raise with a remedy; those of constants are zeros."""

import numpy as np
import pytest

import numgrad as ng

X = np.array([1.0, 2.0])

WITHOUT = {
    "comparison": lambda x: np.sum(x) > 0,
    "allclose": lambda x: np.allclose(x, 1.0),
    "argmax": lambda x: np.argmax(x),
    "count": lambda x: np.count_nonzero(x),
    "converted": lambda x: np.sum(x.astype(np.int64)),
    "mask": lambda x: np.any(np.isnan(x)),
    "length": lambda x: x.shape[0],
    "int": lambda x: 3,
    "bool": lambda x: True,
    "integer array": lambda x: np.array(3),
    "None": lambda x: None,
    "str": lambda x: "3",
    "object": lambda x: object(),
}
TRANSFORMS = {
    "grad": lambda f: ng.grad(f)(X),
    "value_and_grad": lambda f: ng.value_and_grad(f)(X),
    "has_aux": lambda f: ng.grad(lambda x: (f(x), 1), has_aux=True)(X),
    "argnames": lambda f: ng.grad(lambda x, y: f(x), argnames="y")(X, 1.0),
    "holomorphic": lambda f: ng.grad(f, holomorphic=True)(X + 0j),
    "jacobian": lambda f: ng.jacobian(f)(X),
    "jacfwd": lambda f: ng.jacfwd(f)(X),
    "jacrev": lambda f: ng.jacrev(f)(X),
    "nested jacobian": lambda f: ng.jacobian(lambda x: {"a": x, "b": f(x)})(X),
    "hessian": lambda f: ng.hessian(f)(X),
    "hvp": lambda f: ng.hvp(f)(X, X),
    "vjp": lambda f: ng.vjp(f, X),
    "jvp": lambda f: ng.jvp(f, (X,), (X,)),
    "linearize": lambda f: ng.linearize(f, X),
    "grad of grad": lambda f: ng.grad(lambda x: np.sum(ng.grad(f)(x)))(X),
    "grad(vmap)": lambda f: ng.grad(lambda x: ng.vmap(f)(x[None])[0])(X),
    "autograd.functional.jacobian": lambda f: ng.autograd.functional.jacobian(f, ng.tensor(X)),
    "autograd.functional.hessian": lambda f: ng.autograd.functional.hessian(f, ng.tensor(X)),
    "autograd.functional.vjp": lambda f: ng.autograd.functional.vjp(f, ng.tensor(X), None),
    "minimize": lambda f: ng.minimize(f, X),
    "least_squares": lambda f: ng.least_squares(f, X),
    "root": lambda f: ng.root(lambda x: [f(x), f(x)], X),
}
COMPILED = {
    "jit(grad)": lambda f: ng.jit(ng.grad(f))(X),
    "grad(jit)": lambda f: ng.grad(ng.jit(f))(X),
    "jit(jacobian)": lambda f: ng.jit(ng.jacobian(f))(X),
    "jit(jvp)": lambda f: ng.jit(lambda x: ng.jvp(f, (x,), (x,)))(X),
    "vmap(grad)": lambda f: ng.vmap(ng.grad(f))(np.stack([X, X])),
    "jit(vmap(grad))": lambda f: ng.jit(ng.vmap(ng.grad(f)))(np.stack([X, X])),
    "minimize(jit)": lambda f: ng.minimize(f, X, jit=True),
}
REFUSED = (ng.NumgradTypeError, ng.NumgradRuntimeError, ng.NumgradValueError)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_what_has_no_derivative_raises(transform):
    for name, f in WITHOUT.items():
        if transform == "grad(vmap)" and name in ("allclose", "None", "str", "object"):
            continue  # refused by vmap
        with pytest.raises(REFUSED) as caught:
            TRANSFORMS[transform](f)
        assert isinstance(caught.value, ng.NumgradError), name


@pytest.mark.parametrize("transform", COMPILED)
def test_what_has_no_derivative_raises_where_it_is_compiled(transform):
    for name in ("comparison", "argmax", "int"):
        with pytest.raises(REFUSED):
            COMPILED[transform](WITHOUT[name])


@pytest.mark.parametrize("name", ["comparison", "argmax", "count", "length", "int", "bool"])
def test_the_message_says_what_it_was_and_the_remedy(name):
    with pytest.raises(TypeError, match=r"grad: \w*<lambda> returned (bool|int64).*has_aux=True"):
        ng.grad(WITHOUT[name])(X)


@pytest.mark.parametrize("constant", [3.0, np.float32(3.0), np.array(3.0), ng.tensor(3.0)])
def test_a_floating_constant_has_a_gradient_of_zeros(constant):
    for transform in (ng.grad, ng.jacobian, ng.jacfwd, ng.jacrev):
        np.testing.assert_array_equal(transform(lambda x: constant)(X), [0.0, 0.0])
        np.testing.assert_array_equal(ng.jit(transform(lambda x: constant))(X), [0.0, 0.0])
    np.testing.assert_array_equal(ng.hessian(lambda x: constant)(X), np.zeros((2, 2)))
    np.testing.assert_array_equal(ng.hvp(lambda x: constant)(X, X), [0.0, 0.0])
    assert ng.jvp(lambda x: constant, (X,), (X,))[1] == 0.0


def test_piecewise_constant_floats_have_a_gradient_of_zeros():
    for f in (np.floor, np.sign, lambda x: np.where(x > 1.5, 1.0, 0.0), np.rint):
        np.testing.assert_array_equal(ng.grad(lambda x, f=f: np.sum(f(x)))(X), [0.0, 0.0])


def test_products_take_integers_beside_what_has_derivatives():
    def f(x):
        return {"value": np.sum(x**2), "place": np.argmax(x), "count": 2}

    value, product = ng.vjp(f, X)
    assert value["place"] == 1
    np.testing.assert_array_equal(product({"value": 1.0, "place": None, "count": None}), [2.0, 4.0])
    value, moved = ng.jvp(f, (X,), (X,))
    assert (moved["value"], moved["place"], moved["count"]) == (10.0, 0, 0)
    assert ng.linearize(f, X)[1](X)["value"] == 10.0
    with pytest.raises(TypeError, match="returned int64"):
        ng.jacobian(f)(X)


def test_complex_results_name_what_to_take():
    with pytest.raises(ng.NumgradRuntimeError, match=r"complex128.*holomorphic=True.*\.real"):
        ng.grad(lambda x: np.sum(x) * 1j)(X)
    with pytest.raises(ng.NumgradRuntimeError, match=r"shape \(2,\).*sum it"):
        ng.grad(lambda x: x)(X)
    assert ng.grad(lambda z: z**2, holomorphic=True)(1 + 2j) == 2 + 4j


def test_integer_arguments():
    assert ng.grad(np.square)(3) == 6.0  # a Python number means a float, as 3.0
    for x in (np.array([1, 2]), np.array([True, False]), True):
        with pytest.raises(ng.NumgradTypeError, match=r"(int64|bool).*astype\(float\)"):
            ng.grad(np.sum)(x)
    found = ng.minimize(lambda x: np.sum((x - 0.5) ** 2), np.array([1, 2]))  # a start is converted
    np.testing.assert_allclose(found.x, [0.5, 0.5], rtol=1e-6)
