"""Products with Jacobians and Hessians, and the former by either mode: alone and composed."""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numgrad as ng

Pair = namedtuple("Pair", "u v")


@dataclass
class Weights:
    w: Any
    b: Any


RNG = np.random.default_rng(3)
M, X, V = RNG.standard_normal((3, 2)), RNG.standard_normal(2), RNG.standard_normal(2)
W = RNG.standard_normal(3)
A = np.arange(1.0, 4)


def f(x):
    return np.tanh(M @ (x * x)) * A


def scalar(x):
    return np.sum(np.sin(x) * x[::-1] ** 3)


def numerical(function, x, eps=1e-6):
    """The Jacobian by central differences."""
    columns = []
    for unit in np.eye(x.size):
        step = eps * unit.reshape(x.shape)
        columns.append((function(x + step) - function(x - step)) / (2 * eps))
    return np.stack(columns, axis=-1)


def transposed(function, x):
    value, product = ng.vjp(function, x)
    return np.stack([product(unit) for unit in np.eye(value.size)])


def along(function, x):
    return np.stack([ng.jvp(function, (x,), (unit,))[1] for unit in np.eye(x.size)], axis=-1)


def by_linearize(function, x):
    _, product = ng.linearize(function, x)
    return np.stack([product(unit) for unit in np.eye(x.size)], axis=-1)


MATRIX = {
    "jacobian": lambda g, x: ng.jacobian(g)(x),
    "jacrev": lambda g, x: ng.jacrev(g)(x),
    "jacfwd": lambda g, x: ng.jacfwd(g)(x),
    "vjp": transposed,
    "jvp": along,
    "linearize": by_linearize,
}
GRADIENT = {
    "grad": lambda g: ng.grad(g),
    "jacrev": lambda g: ng.jacrev(g),
    "jacfwd": lambda g: ng.jacfwd(g),
    "vjp": lambda g: lambda x: ng.vjp(g, x)[1](1.0),
    "linearize": lambda g: lambda x: by_linearize(g, x),
    "jvp": lambda g: lambda x: along(g, x),
    "jit of grad": lambda g: ng.jit(ng.grad(g)),
}


@pytest.mark.parametrize("name", MATRIX)
def test_first_derivatives(name):
    found = MATRIX[name](f, X)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, numerical(f, X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", MATRIX)
@pytest.mark.parametrize("first", GRADIENT)
def test_second_derivatives_by_any_two(name, first):
    found = MATRIX[name](GRADIENT[first](scalar), X)
    assert type(found) is np.ndarray
    truth = numerical(lambda x: numerical(scalar, x, 1e-4), X, 1e-4)
    np.testing.assert_allclose(found, ng.hessian(scalar)(X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MATRIX)
def test_what_they_give_can_be_differentiated_on_the_tape(name):
    s = ng.tensor(1.5, requires_grad=True)
    x = ng.tensor(X, requires_grad=True)
    total = (MATRIX[name](lambda x: f(x * s), x) ** 2).sum()
    by_s, by_x = ng.autograd.grad(total, (s, x))

    def written(s, x):
        return np.sum(numerical(lambda y: f(y * s), x, 1e-5) ** 2)

    np.testing.assert_allclose(
        by_s.item(), (written(1.5001, X) - written(1.4999, X)) / 2e-4, rtol=1e-5
    )
    np.testing.assert_allclose(
        by_x, numerical(lambda x: np.asarray(written(1.5, x)), X, 1e-4), rtol=1e-5
    )


COMPILED = {
    "vjp": lambda x: ng.vjp(f, x)[1](W),
    "jvp": lambda x: ng.jvp(f, (x,), (V,))[1],
    "linearize": lambda x: ng.linearize(f, x)[1](V),
    "hvp": lambda x: ng.hvp(scalar)(x, V),
    "jacfwd": lambda x: ng.jacfwd(f)(x),
    "jacrev": lambda x: ng.jacrev(f)(x),
    "stop_gradient": lambda x: ng.grad(lambda y: np.sum(y * ng.stop_gradient(y)))(x),
    "tree": lambda x: ng.vjp(lambda t: {"s": t["a"] * t["b"]}, {"a": x, "b": x * 2})[1]({"s": V}),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    eager, fast = COMPILED[name], ng.jit(COMPILED[name])
    for _ in range(2):
        found, expected = fast(X), eager(X)
        if name == "tree":
            found, expected = np.stack([*found.values()]), np.stack([*expected.values()])
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_transformed_functions_compile():
    """Their signature is that of the function, but for ``hvp``."""
    product = ng.hvp(lambda x, scale: scalar(x) * scale)
    expected = product(X, V, 2.0)
    np.testing.assert_allclose(ng.jit(product)(X, V, 2.0), expected, rtol=1e-12)
    np.testing.assert_allclose(ng.jit(product)(X, V, scale=2.0), expected, rtol=1e-12)
    np.testing.assert_allclose(ng.jit(ng.jacfwd(f))(X), ng.jacrev(f)(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["vjp", "jvp", "linearize", "hvp"])
def test_vectors_are_differentiated_too(name):
    """Products are linear in the vector."""
    vector, like = (W, W) if name == "vjp" else (V, V)
    function = {
        "vjp": lambda v: ng.vjp(f, X)[1](v),
        "jvp": lambda v: ng.jvp(f, (X,), (v,))[1],
        "linearize": lambda v: ng.linearize(f, X)[1](v),
        "hvp": lambda v: ng.hvp(scalar)(X, v),
    }[name]
    matrix = ng.jacobian(function)(vector)
    np.testing.assert_allclose(matrix @ like, function(like), rtol=1e-12)
    v = ng.tensor(vector, requires_grad=True)
    function(v).sum().backward()
    np.testing.assert_allclose(v.grad, matrix.sum(axis=0), rtol=1e-12)
    with ng.no_grad():
        assert not function(v).requires_grad
    v = ng.tensor(vector)
    assert type(function(v)) is ng.Tensor
    assert not function(v).requires_grad


def test_a_product_made_once_is_used_inside_other_transforms():
    _, pull = ng.vjp(f, X)
    _, push = ng.linearize(f, X)
    jacobian = ng.jacobian(f)(X)
    np.testing.assert_allclose(ng.jacobian(pull)(W), jacobian.T, rtol=1e-12)
    np.testing.assert_allclose(ng.jacfwd(push)(V), jacobian, rtol=1e-12)
    np.testing.assert_allclose(ng.jit(pull)(W), W @ jacobian, rtol=1e-12)
    np.testing.assert_allclose(ng.jit(push)(V), jacobian @ V, rtol=1e-12)
    assert type(pull(W)) is np.ndarray  # afterwards as before
    calls = []

    def seen(x):
        calls.append(1)
        return f(x)

    _, push = ng.linearize(seen, X)
    for _ in range(3):
        push(V)
    assert len(calls) == 1


# ------------------------------------------------------------------------------ against PyTorch


def model(weights, pair):
    """Any nesting in, any nesting out; of what NumPy and PyTorch share."""
    u, v = pair
    hidden = (u @ weights["w"]) * v[0] + weights["b"]
    return [hidden * hidden, {"n": (hidden**3).sum(), "u": (u * v[1],)}]


def energy(weights, pair):
    return model(weights, pair)[1]["n"]


WEIGHTS = {"b": RNG.standard_normal(3), "w": RNG.standard_normal((2, 3))}
PAIR = Pair(RNG.standard_normal(2), (np.array(1.3), RNG.standard_normal(2)))


def in_torch(function, *trees):
    """What a function of ``torch.func`` gives, as ndarrays."""
    torch = pytest.importorskip("torch")
    found = function(torch.func, *ng.tree.map(torch.tensor, trees))
    return ng.tree.map(lambda t: t.detach().resolve_conj().numpy(), found)


def assert_same(ours, theirs):
    def compare(a, b):
        assert type(a) in (np.ndarray, np.float64, np.complex128)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12, strict=isinstance(a, np.ndarray))

    if type(ours) is list:  # of which PyTorch makes tuples in places
        theirs = list(theirs)
    ng.tree.map(compare, ours, theirs)


@pytest.mark.parametrize("name", ["jacobian", "jacrev", "jacfwd"])
@pytest.mark.parametrize("argnums", [0, 1, (1, 0)])
def test_jacobians_of_nestings_agree_with_torch(name, argnums):
    ours = getattr(ng, name)(model, argnums)(WEIGHTS, PAIR)
    assert_same(ours, in_torch(lambda func, *x: func.jacrev(model, argnums)(*x), WEIGHTS, PAIR))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_products_of_nestings_agree_with_torch():
    point, tangents = (WEIGHTS, PAIR), ng.tree.map(np.cos, (WEIGHTS, PAIR))
    theirs = in_torch(lambda func, x, v: func.jvp(model, x, v), point, tangents)
    assert_same(ng.jvp(model, point, tangents), theirs)
    assert_same(ng.linearize(model, *point)[1](*tangents), theirs[1])
    cotangent = ng.tree.map(np.sin, model(WEIGHTS, PAIR))
    value, product = ng.vjp(model, *point)
    assert_same(value, model(*point))
    theirs = in_torch(lambda func, x, w: func.vjp(model, *x)[1](w), point, cotangent)
    assert_same(product(cotangent), theirs)
    theirs = in_torch(
        lambda func, w, p, v: func.jvp(lambda w: func.grad(energy)(w, p), (w,), (v,))[1],
        *point, tangents[0],
    )  # fmt: skip
    assert_same(ng.hvp(energy)(WEIGHTS, tangents[0], PAIR), theirs)
    theirs = in_torch(lambda func, *x: func.hessian(energy, (0, 1))(*x), *point)
    assert_same(ng.hessian(energy, (0, 1))(*point), theirs)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_products_of_complex_functions_agree_with_torch():
    z, v = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))

    def function(z):
        return z * z * abs(z)

    forward = in_torch(lambda func, z, v: func.jvp(function, (z,), (v,))[1], z, v)
    assert_same(ng.jvp(function, (z,), (v,))[1], forward)
    assert_same(ng.linearize(function, z)[1](v), forward)
    back = in_torch(lambda func, z, v: func.vjp(function, z)[1](v)[0], z, v)
    assert_same(ng.vjp(function, z)[1](v), back)


def test_holomorphic_functions():
    z = RNG.standard_normal(3) + 1j * RNG.standard_normal(3)

    def function(z):
        return z**3 + z.sum() * 1j

    def number(z):
        return (z**4).sum() * (1 + 2j)

    for transform in (ng.jacobian, ng.jacrev, ng.jacfwd):
        assert_same(transform(function, holomorphic=True)(z), np.diag(3 * z**2) + 1j)
    assert_same(ng.grad(number, holomorphic=True)(z), 4 * z**3 * (1 + 2j))
    assert_same(ng.hessian(number, holomorphic=True)(z), np.diag(12 * z**2) * (1 + 2j))
    fast = ng.jit(ng.grad(number, holomorphic=True))
    assert_same(fast(z), 4 * z**3 * (1 + 2j))
    with pytest.raises(TypeError, match="float64"):
        ng.grad(number, holomorphic=True)(X)
    with pytest.raises(TypeError, match="returned has dtype float64"):
        ng.jacobian(abs, holomorphic=True)(z)
    with pytest.raises(RuntimeError, match="holomorphic=True"):
        ng.grad(number)(z)


# ------------------------------------------------------------------------- arguments and results


def test_arguments_by_name():
    def loss(x, y=2.0, *, z=1.0):
        return x * y**2 * z**3

    assert ng.grad(loss, argnames="y")(3.0, 4.0) == 24.0
    assert ng.grad(loss, argnames="y")(3.0, y=4.0) == 24.0
    assert ng.grad(loss, argnames=("z", "x"))(3.0, z=1.0) == {"z": 36.0, "x": 4.0}
    assert ng.grad(loss, 0, argnames=["z"])(3.0, z=1.0) == (4.0, {"z": 36.0})
    assert ng.grad(loss, (0, 1), argnames="z")(3.0, 2.0, z=1.0) == ((4.0, 12.0), 36.0)
    assert ng.hessian(loss, argnames=("y",))(3.0, 4.0)["y"]["y"] == 6.0
    assert ng.jacfwd(loss, argnames="z")(3.0, 2.0, z=2.0) == 144.0
    assert ng.jit(ng.grad(loss, argnames="z"))(3.0, z=1.0) == 36.0
    value, gradient = ng.value_and_grad(loss, argnames="y")(3.0, 4.0)
    assert (value, gradient) == (48.0, 24.0)
    with pytest.raises(ValueError, match="argnames names 'z', which the call does not give"):
        ng.grad(loss, argnames="z")(3.0)
    with pytest.raises(ValueError, match="name an argument twice"):
        ng.grad(loss, 0, argnames="x")(3.0)
    with pytest.raises(TypeError, match="argnames is the name"):
        ng.grad(loss, argnames=3)


def test_dataclasses_and_registered_classes():
    weights = Weights(M, {"bias": W})
    found = ng.grad(lambda t: np.sum((t.w @ X + t.b["bias"]) ** 2))(weights)
    assert type(found) is Weights
    np.testing.assert_allclose(found.b["bias"], 2 * (M @ X + W))
    value, product = ng.vjp(lambda t: Weights(t.w * 2, t.b), weights)
    assert type(value) is Weights
    assert type(value.w) is np.ndarray
    pulled = ng.vjp(lambda t: {"a": t, "b": t * 2}, 1.0)[1]({"b": 10.0, "a": 1.0})
    assert pulled == 21.0  # by key, in any order
    pulled = product(Weights(M, {"bias": None}))
    np.testing.assert_allclose(pulled.w, 2 * M)
    np.testing.assert_array_equal(pulled.b["bias"], np.zeros(3))


def test_aux():
    for compiled in (lambda g: g, ng.jit):
        value, product, aux = ng.vjp(compiled(lambda x: (f(x), {"x": x, "n": 3})), X, has_aux=True)
        np.testing.assert_allclose(value, f(X))
        np.testing.assert_allclose(product(W), W @ ng.jacobian(f)(X))
        assert type(aux["x"]) is np.ndarray
        assert aux["n"] == 3
    value, product, aux = ng.jvp(lambda x: (f(x), (x * 2, "word")), (X,), (V,), has_aux=True)
    np.testing.assert_allclose(product, ng.jacobian(f)(X) @ V)
    assert type(aux[0]) is np.ndarray
    np.testing.assert_array_equal(aux[0], X * 2)
    _, _, aux = ng.linearize(lambda x: (f(x), None), X, has_aux=True)
    assert aux is None
    for transform in (ng.jacobian, ng.jacfwd, ng.jacrev):
        jacobian, aux = transform(lambda x: (f(x), x[0]), has_aux=True)(X)
        np.testing.assert_allclose(jacobian, ng.jacobian(f)(X), rtol=1e-12)
        assert aux == X[0]
    hessian, aux = ng.hessian(lambda x: (scalar(x), x), has_aux=True)(X)
    np.testing.assert_allclose(hessian, ng.hessian(scalar)(X))
    np.testing.assert_array_equal(aux, X)
    with pytest.raises(TypeError, match=r"jvp: .*pair"):
        ng.jvp(f, (X,), (V,), has_aux=True)


def test_tensors_in_tensors_out():
    x = ng.tensor(X)
    for value in (*ng.jvp(f, (x,), (V,)), *ng.jvp(f, (X,), (ng.tensor(V),)), ng.vjp(f, x)[1](W),
                  ng.linearize(f, x)[1](V), ng.hvp(scalar)(x, V), ng.jacfwd(f)(x)):  # fmt: skip
        assert type(value) is ng.Tensor
        assert not value.requires_grad
    single = X.astype(np.float32)
    assert ng.vjp(np.sin, single)[1](V).dtype == np.float32
    assert ng.jvp(np.sin, (single,), (V,))[1].dtype == np.float32
    assert ng.hvp(lambda x: np.sum(x**3))(single, [*V] and V).dtype == np.float32


def test_no_dependence_is_zero():
    def constant(x):
        return np.ones(3)

    zero = np.zeros((3, 2))
    for name, of in MATRIX.items():
        np.testing.assert_array_equal(of(constant, X), zero, err_msg=name)
        np.testing.assert_array_equal(of(lambda x: np.argsort(x).astype(float)[[0, 1, 0]], X), zero)
        np.testing.assert_array_equal(of(lambda x: np.round(x[[0, 1, 0]]), X), zero)
    np.testing.assert_array_equal(ng.hvp(lambda x: np.sum(x * 2))(X, V), np.zeros(2))
    np.testing.assert_array_equal(ng.jvp(f, (X,), (None,))[1], np.zeros(3))
    np.testing.assert_array_equal(ng.vjp(f, X)[1](None), np.zeros(2))
    beside = ng.vjp(lambda x: (np.argmax(x), x), X)  # integers come out
    assert beside[1]((1.0, None)).shape == (2,)


def test_stop_gradient():
    tree = {"a": ng.tensor(2.0, requires_grad=True), "b": (3, np.ones(2), None)}
    stopped = ng.stop_gradient(tree)
    assert not stopped["a"].requires_grad
    assert stopped["b"] is not None
    assert stopped["b"][0] == 3
    assert stopped["b"][2] is None
    assert ng.jvp(lambda x: x * ng.stop_gradient(x), (3.0,), (1.0,))[1] == 3.0
    assert ng.grad(ng.grad(lambda x: ng.stop_gradient(x**2) * x**2))(3.0) == 18.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ng.vjp(f), TypeError, "vjp: there is nothing to differentiate by"),
        (lambda: ng.vjp(3, X), TypeError, "vjp: .*function, got a int"),
        (lambda: ng.vjp(f, np.ones(2, int)), TypeError, "vjp: .*int64"),
        (lambda: ng.vjp(f, None), TypeError, "vjp: .*NoneType"),
        (lambda: ng.jvp(f, ("a",), (V,)), TypeError, "jvp: .*str"),
        (lambda: ng.jvp(f, X, V), TypeError, "jvp: primals is a ndarray; give a tuple"),
        (lambda: ng.jvp(f, (X,), (V, V)), ValueError, "jvp: 2 vectors for 1 arguments"),
        (lambda: ng.jvp(f, (X,), (W,)), ValueError, r"argument 0 .*\(3,\).*\(2,\)"),
        (lambda: ng.jvp(f, (X,), (V * 1j,)), ValueError, "complex128"),
        (lambda: ng.jvp(f, (X,), ({"a": V},)), ValueError, r"nested otherwise.*float64\[2\]"),
        (lambda: ng.jvp(f, (X,), ("a",)), TypeError, "has a str in it"),
        (lambda: ng.vjp(f, X)[1](V), ValueError, r"the vector .*\(2,\).*\(3,\)"),
        (lambda: ng.vjp(lambda x: [x], X)[1](V), ValueError, "nested otherwise"),
        (lambda: ng.vjp(lambda x: None, X), TypeError, "returned None"),
        (lambda: ng.linearize(f, X)[1](V, V), ValueError, "linearize: 2 vectors for 1"),
        (lambda: ng.hvp(f)(X, V), RuntimeError, r"hvp: .*shape \(3,\)"),
        (lambda: ng.hvp(scalar)(X, W), ValueError, r"hvp: .*\(3,\)"),
        (lambda: ng.jacfwd(lambda x: None)(X), TypeError, "jacfwd: .*returned None"),
        (lambda: ng.jacrev(f)("a"), TypeError, "jacrev: .*str"),
        (lambda: ng.inference_mode()(lambda: ng.vjp(f, X))(), RuntimeError, "inference_mode"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, ng.NumgradError)


def test_backward_inside_is_refused_and_modes_are_restored():
    def wrong(x):
        x.sum().backward()

    for call in (lambda: ng.jvp(wrong, (X,), (V,)), lambda: ng.vjp(wrong, X)):
        with pytest.raises(RuntimeError, match="inside a function"):
            call()
    assert ng.is_grad_enabled()
    with ng.no_grad():
        _, product = ng.vjp(f, X)
        np.testing.assert_allclose(product(W), W @ ng.jacobian(f)(X))
        assert not ng.is_grad_enabled()
