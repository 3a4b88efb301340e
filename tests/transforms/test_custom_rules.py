"""custom_vjp and custom_jvp: under every transform, of any order, nested arguments, errors."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError


def vjp_rule():
    """sin(x) * y["k"] with a derivative of its own: that of three times as much."""

    @ng.custom_vjp
    def f(x, y):
        return {"out": np.sin(x) * y["k"]}

    def forward(x, y):
        return f.function(x, y), (np.cos(x), x, y["k"], "note", None)

    def backward(residuals, g):
        cosine, x, k, note, nothing = residuals
        assert (note, nothing) == ("note", None)
        return 3 * g["out"] * cosine * k, {"k": 3 * g["out"] * np.sin(x)}

    f.defvjp(forward, backward)
    return f


def jvp_rule():
    @ng.custom_jvp
    def f(x, y):
        return {"out": np.sin(x) * y["k"]}

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        moved = 3 * (dx * np.cos(x) * y["k"] + np.sin(x) * dy["k"])
        return f(x, y), {"out": moved}

    return f


RULES = {"vjp": vjp_rule, "jvp": jvp_rule}
X = np.array([0.3, 1.2, -0.7])


@pytest.mark.parametrize("kind", RULES)
def test_first_derivatives(kind):
    f = RULES[kind]()
    assert type(f(X, {"k": 2.0})["out"]) is np.ndarray  # arrays only: the function as it is
    for compiled in (lambda g: g, ng.jit):
        found = compiled(ng.grad(lambda x, y: np.sum(f(x, y)["out"]), (0, 1)))(X, {"k": X * 2})
        np.testing.assert_allclose(found[0], 3 * np.cos(X) * X * 2, rtol=1e-12)
        np.testing.assert_allclose(found[1]["k"], 3 * np.sin(X), rtol=1e-12)
    x = ng.tensor(X, requires_grad=True)
    f(x, y={"k": 2})["out"].sum().backward()
    np.testing.assert_allclose(x.grad, 6 * np.cos(X), rtol=1e-12)
    rows = ng.jacobian(lambda x: f(x, {"k": 2.0}))(X)["out"]
    np.testing.assert_allclose(rows, np.diag(6 * np.cos(X)), rtol=1e-12)
    many = np.linspace(0, 1, 20)
    rows = ng.jacobian(lambda x: f(x, {"k": 2.0}))(many)["out"]
    np.testing.assert_allclose(rows, np.diag(6 * np.cos(many)), rtol=1e-12)
    _, product = ng.linearize(lambda x: f(x, {"k": 2.0})["out"], X)
    np.testing.assert_allclose(product(X), 6 * np.cos(X) * X, rtol=1e-12)


@pytest.mark.parametrize("kind", RULES)
def test_higher_derivatives_are_those_of_the_rule(kind):
    f = RULES[kind]()

    def total(x, k=2.0):
        return np.sum(f(x, {"k": k})["out"])

    # residuals are functions of the arguments, not constants
    np.testing.assert_allclose(ng.hessian(total)(X), np.diag(-6 * np.sin(X)), rtol=1e-12)
    mixed = ng.grad(lambda k: np.sum(ng.grad(total)(X, k)))(2.0)
    np.testing.assert_allclose(mixed, np.sum(3 * np.cos(X)), rtol=1e-12)
    third = ng.grad(lambda x: np.sum(ng.grad(lambda x: np.sum(ng.grad(total)(x)))(x)))(X)
    np.testing.assert_allclose(third, -6 * np.cos(X), rtol=1e-12)
    np.testing.assert_allclose(ng.jit(ng.hessian(total))(X), np.diag(-6 * np.sin(X)), rtol=1e-12)
    np.testing.assert_allclose(ng.hvp(total)(X, X), -6 * np.sin(X) * X, rtol=1e-12)


def test_forward_mode():
    f = jvp_rule()
    for compiled in (lambda g: g, ng.jit):
        value, moved = compiled(lambda x, v: ng.jvp(lambda x: f(x, {"k": 2.0}), (x,), (v,)))(X, X)
        np.testing.assert_allclose(value["out"], 2 * np.sin(X), rtol=1e-12)
        np.testing.assert_allclose(moved["out"], 6 * np.cos(X) * X, rtol=1e-12)
    columns = ng.jacfwd(lambda x: f(x, {"k": x})["out"])(X)
    np.testing.assert_allclose(columns, np.diag(3 * (np.cos(X) * X + np.sin(X))), rtol=1e-12)
    nested = ng.jacfwd(ng.jacfwd(lambda x: f(x, {"k": 2.0})["out"]))(0.5)
    np.testing.assert_allclose(nested, -6 * np.sin(0.5), rtol=1e-12)
    slope = ng.jacfwd(ng.grad(lambda x: f(x, {"k": 2.0})["out"]))(0.5)
    np.testing.assert_allclose(slope, -6 * np.sin(0.5), rtol=1e-12)
    rows = ng.jacfwd(ng.grad(lambda x: np.sum(f(x, {"k": 2.0})["out"])))(X)
    np.testing.assert_allclose(rows, np.diag(-6 * np.sin(X)), rtol=1e-12)
    _, pull = ng.vjp(lambda x: vjp_rule()(x, {"k": 2.0})["out"], X)
    np.testing.assert_allclose(ng.jvp(pull, (X,), (X,))[1], 6 * np.cos(X) * X, rtol=1e-12)
    with pytest.raises(NotImplementedError, match=r"f: custom_vjp .* use ng\.custom_jvp"):
        ng.jacfwd(ng.grad(lambda x: vjp_rule()(x, {"k": 2.0})["out"]))(0.5)
    with pytest.raises(NotImplementedError, match=r"f: custom_vjp .* use ng\.custom_jvp"):
        ng.jvp(lambda x: vjp_rule()(x, {"k": 2.0}), (X,), (X,))


@pytest.mark.parametrize("kind", RULES)
def test_inside_a_compiled_function_that_is_differentiated_later(kind):
    f = RULES[kind]()
    fast = ng.jit(lambda x: f(x, {"k": 2.0})["out"])
    np.testing.assert_allclose(fast(X), 2 * np.sin(X))  # without gradients first
    np.testing.assert_allclose(ng.jacobian(fast)(X), np.diag(6 * np.cos(X)), rtol=1e-12)
    second = ng.hessian(lambda x: np.sum(fast(x)))(X)
    np.testing.assert_allclose(second, np.diag(-6 * np.sin(X)), rtol=1e-12)
    if kind == "jvp":
        moved = ng.jvp(fast, (X,), (X,))[1]
        np.testing.assert_allclose(moved, 6 * np.cos(X) * X, rtol=1e-12)


@pytest.mark.parametrize("kind", RULES)
def test_inside_vmap(kind):
    """Gradients by example, of what examples share, of second order, in batches of batches."""
    f = RULES[kind]()
    batch = np.stack([X, 2 * X, X - 1])
    scale = np.array([1.0, 0.5, -2.0])

    def loss(x, k):
        return np.sum(f(x, {"k": k})["out"] * x)

    def slope(x, k):
        return 3 * np.cos(x) * k * x + np.sin(x) * k

    by_example = ng.vmap(ng.grad(loss, (0, 1)), in_axes=(0, 0))
    for found in (by_example(batch, scale), ng.jit(by_example)(batch, scale)):
        np.testing.assert_allclose(found[0], slope(batch, scale[:, None]), rtol=1e-12)
        np.testing.assert_allclose(found[1], np.sum(3 * np.sin(batch) * batch, axis=1), rtol=1e-12)
    shared = ng.grad(lambda k: np.sum(ng.vmap(loss, in_axes=(0, None))(batch, k)))(2.0)
    np.testing.assert_allclose(shared, np.sum(3 * np.sin(batch) * batch), rtol=1e-12)
    plain = np.stack([ng.hessian(loss)(x, 2.0) for x in batch])
    found = ng.vmap(ng.hessian(loss), in_axes=(0, None))(batch, 2.0)
    np.testing.assert_allclose(found, plain, rtol=1e-12)
    twice = ng.vmap(ng.vmap(ng.grad(loss), in_axes=(None, 0)), in_axes=(0, None))(batch, scale)
    np.testing.assert_allclose(twice, slope(batch[:, None], scale[:, None]), rtol=1e-12)


def test_two_results_one_of_which_is_an_argument():
    @ng.custom_vjp
    def f(x, y):
        return x * y, y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, g: (g[0] * r[1] * 5, g[1] + g[0] * r[0]))

    def total(x, y):
        product, same = f(x, y)
        return product**2 + same

    x, y = 1.5, 0.7
    first = [10 * x * y**2, 1 + 2 * x**2 * y]
    second = [[50 * y**2, 20 * x * y], [12 * x * y, 2 * x**2]]  # as the rule says, not symmetric
    for k in (0, 1):
        np.testing.assert_allclose(ng.grad(total, k)(x, y), first[k], rtol=1e-12)
        for m in (0, 1):
            found = ng.grad(ng.grad(total, k), m)(x, y)
            np.testing.assert_allclose(found, second[k][m], rtol=1e-12)


def test_what_has_no_gradient():
    @ng.custom_vjp
    def f(x, index, unused):
        return np.take(x, index)

    f.defvjp(
        lambda x, index, unused: (f.function(x, index, unused), None),
        lambda _, g: (np.stack([g, g * 0, g * 0]), None, None),
    )
    gradient, by_unused = ng.grad(f, (0, 2))(X, 0, {"a": 1.0, "b": X})
    np.testing.assert_array_equal(gradient, [1.0, 0.0, 0.0])
    assert by_unused["a"] == 0.0
    np.testing.assert_array_equal(by_unused["b"], np.zeros(3))


def test_errors():
    @ng.custom_vjp
    def f(x, *, word=1):
        return x * 1.0

    x = ng.tensor(X, requires_grad=True)
    with pytest.raises(ng.NumgradRuntimeError, match=r"f: has no rule yet.*defvjp"):
        f(x)
    with pytest.raises(ng.NumgradTypeError, match="word can be passed by name only"):
        f(x, word=2)
    with pytest.raises(ng.NumgradTypeError, match=r"custom_vjp: .*got a int"):
        ng.custom_vjp(3)
    with pytest.raises(ng.NumgradTypeError, match="defvjp"):
        f.defvjp(3, 4)
    f.defvjp(lambda x: x * 1.0, lambda _, g: g)
    with pytest.raises(ng.NumgradTypeError, match=r"f: the forward of defvjp returned a Tensor.*"):
        f(x)
    f.defvjp(lambda x: (x * 1.0, None), lambda _, g: g)
    with pytest.raises(ng.NumgradTypeError, match="returned Tensor for 1 argument"):
        f(x).sum().backward()
    f.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g, g))
    with pytest.raises(ng.NumgradTypeError, match="returned 2 gradients for 1 argument"):
        f(x).sum().backward()

    @ng.custom_vjp
    def g(x):
        return x["a"] * 1.0

    g.defvjp(lambda x: (g.function(x), None), lambda _, t: ({"b": t},))
    with pytest.raises(ng.NumgradValueError, match="nested otherwise"):
        g({"a": x}).sum().backward()


def test_a_forward_that_calls_its_function_is_traced():
    @ng.custom_vjp
    def scaled(x, y):
        return {"product": x * y, "sum": np.sum(x)}

    scaled.defvjp(
        lambda x, y: (scaled(x, y), (x, y)),
        lambda saved, g: (g["product"] * saved[1] * 10 + g["sum"], g["product"] * saved[0]),
    )
    x = np.array([1.0, 2.0])
    loss = ng.grad(lambda x, y: np.sum(scaled(x, y)["product"]) + scaled(x, y)["sum"])
    np.testing.assert_array_equal(ng.jit(scaled)(x, 2 * x)["product"], 2 * x * x)
    np.testing.assert_array_equal(ng.jit(loss)(x, 2 * x), 20 * x + 1)
    np.testing.assert_array_equal(loss(x, 2 * x), 20 * x + 1)


@ng.custom_jvp
def doubled(x):
    return x * 2.0


WRONG = {
    "a tangent of shape (1,)": lambda t: t[:1],
    "a tangent of shape (5,)": lambda t: np.ones(5),
    "and dtype complex128": lambda t: 1j * t,
    "a str as the tangent": lambda t: "t",
    "a tuple as the tangent": lambda t: (t, t),
}


@pytest.mark.parametrize("said", WRONG)
@pytest.mark.parametrize("derive", [ng.jacfwd, ng.jacrev])
def test_a_wrong_tangent_names_the_rule(said, derive):
    doubled.defjvp(lambda primals, tangents: (primals[0], WRONG[said](tangents[0])))
    with pytest.raises(NumgradError) as error:
        derive(doubled)(np.ones(2))
    assert str(error.value).startswith("doubled: the rule of defjvp returned ")
    assert said in str(error.value)
