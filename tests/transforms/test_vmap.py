"""``vmap`` against the same function called for one example after the other."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad import errors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))
W = RNG.normal(size=(4, 3))


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


def vector(x):
    return np.sin(x) * x[::-1]


def scalar(x):
    return np.sum(np.sin(x) * x**2) * x[0]


def wide(x):
    return np.concatenate([np.sin(x * k) for k in range(1, 40)])


def recurrent(x):
    state = x[0]
    for k in range(1, len(x)):
        state = np.tanh(state + x[k])
    return state


def writing(x):
    y = np.zeros_like(x)
    y[0] = x[1] * 2
    y[np.argmax(x)] = x[2] ** 2
    y[1:3] += x[1:3]
    y[[3, -1]] *= 2
    y *= x[0]
    return y


def looped(f, *columns):
    return np.stack([f(*row) for row in zip(*columns, strict=True)])


FUNCTIONS = {
    "value": vector,
    "grad": ng.grad(scalar),
    "grad of a recurrence": ng.grad(recurrent),
    "jacobian": ng.jacobian(vector),
    "jacobian by columns": ng.jacobian(wide),
    "jacrev": ng.jacrev(vector),
    "jacfwd": ng.jacfwd(vector),
    "hessian": ng.hessian(scalar),
    "forward over reverse": ng.jacfwd(ng.grad(scalar)),
    "reverse over forward": ng.jacrev(ng.jacfwd(scalar)),
    "forward twice": ng.jacfwd(ng.jacfwd(scalar)),
    "hvp": lambda x: ng.hvp(scalar)(x, np.ones(4)),
    "hvp with a vector of the example": lambda x: ng.hvp(scalar)(x, x),
    "jvp": lambda x: ng.jvp(vector, (x,), (x * 2,))[1],
    "jvp of a gradient": lambda x: ng.jvp(ng.grad(scalar), (x,), (x,))[1],
    "shared, forward over reverse": lambda x: ng.jvp(ng.grad(lambda w: loss(w, x)), (W,), (W,))[1],
    "vjp": lambda x: ng.vjp(vector, x)[1](np.arange(4.0)),
    "linearize": lambda x: ng.linearize(vector, x)[1](x),
    "functional": lambda x: (
        ng.autograd.functional.jacobian(vector, ng.asarray(x)).numpy()
        if isinstance(x, np.ndarray)
        else ng.autograd.functional.jacobian(vector, x)
    ),
    "writing": lambda x: (
        np.asarray(writing(ng.asarray(x))) if isinstance(x, np.ndarray) else writing(x)
    ),
    "grad of writing": ng.grad(lambda x: np.sum(writing(x) ** 2)),
    "checkpoint": ng.grad(lambda x: np.sum(ng.checkpoint(np.sin, x))),
    "stop_gradient": ng.grad(lambda x: np.sum(x * ng.stop_gradient(x))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_is_the_loop(name):
    f = FUNCTIONS[name]
    np.testing.assert_allclose(ng.vmap(f)(X), looped(f, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["grad", "hessian", "grad of writing", "jvp of a gradient"])
def test_compiled(name):
    f = FUNCTIONS[name]
    np.testing.assert_allclose(ng.jit(ng.vmap(f))(X), looped(f, X), rtol=1e-12, atol=1e-12)


def test_gradients_of_what_is_shared_are_by_example():
    by_example = looped(lambda x: ng.grad(loss)(W, x), X)
    mapped = ng.vmap(ng.grad(loss), in_axes=(None, 0))
    np.testing.assert_allclose(mapped(W, X), by_example, rtol=1e-13)
    np.testing.assert_allclose(ng.jit(mapped)(W, X), by_example, rtol=1e-12)
    nested = ng.vmap(ng.grad(lambda p, x: loss(p["w"], x)), in_axes=(None, 0))
    np.testing.assert_allclose(nested({"w": W}, X)["w"], by_example, rtol=1e-13)

    # of a penalty on these gradients
    def penalty(w):
        return np.sum(mapped(w, X) ** 2)

    step = RNG.normal(size=W.shape)
    by_difference = (penalty(W + 1e-6 * step) - penalty(W - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose(np.sum(ng.grad(penalty)(W) * step), by_difference, rtol=1e-7)
    along = ng.jvp(lambda w: mapped(w, X), (W,), (step,))[1]
    np.testing.assert_allclose(
        along, looped(lambda x: ng.hvp(lambda w: loss(w, x))(W, step), X), rtol=1e-12
    )


def test_gradients_flow_to_what_a_function_closes_over():
    w = ng.tensor(W, requires_grad=True)
    ng.vmap(lambda x: loss(w, x))(X).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), ng.grad(lambda w: loss(w, X))(W), rtol=1e-13)


def test_levels_nest():
    Y = RNG.normal(size=(6, 4))

    def kernel(x, y):
        return np.exp(-np.sum((x - y) ** 2))

    def pairs(f):
        return ng.vmap(ng.vmap(f, in_axes=(None, 0)), in_axes=(0, None))

    table = np.exp(-((X[:, None] - Y) ** 2).sum(-1))
    np.testing.assert_allclose(pairs(kernel)(X, Y), table, rtol=1e-13)
    expected = -2 * (X[:, None] - Y) * table[..., None]
    np.testing.assert_allclose(pairs(ng.grad(kernel))(X, Y), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        pairs(ng.jacfwd(ng.grad(kernel)))(X, Y),
        [[ng.hessian(kernel)(x, y) for y in Y] for x in X],
        rtol=1e-11,
        atol=1e-14,
    )


def test_products_are_mapped_over_vectors():
    _, pull = ng.vjp(vector, X[0])
    _, push = ng.linearize(vector, X[0])
    matrix = ng.jacobian(vector)(X[0])
    np.testing.assert_allclose(ng.vmap(pull)(np.eye(4)), matrix, rtol=1e-13)
    np.testing.assert_allclose(ng.vmap(push, out_axes=1)(np.eye(4)), matrix, rtol=1e-13)
    inside = ng.vmap(lambda x: ng.vmap(ng.vjp(vector, x)[1])(np.eye(4)))
    np.testing.assert_allclose(inside(X), looped(ng.jacobian(vector), X), rtol=1e-13)


def test_axes_and_nestings():
    def f(d, s, k=1.0):
        return {"a": d["x"] * s, "b": (d["y"][0], 2.0), "k": k + 0.0}

    y = np.arange(6.0).reshape(2, 3)
    out = ng.vmap(f, in_axes=({"x": 1, "y": 0}, None), out_axes={"a": 1, "b": 0, "k": -1})(
        {"x": y.T, "y": y}, 10.0, k=np.arange(2.0)
    )
    np.testing.assert_array_equal(out["a"], y.T * 10)
    np.testing.assert_array_equal(out["b"][0], y[:, 0])
    np.testing.assert_array_equal(out["b"][1], [2.0, 2.0])
    np.testing.assert_array_equal(out["k"], [0.0, 1.0])
    assert all(isinstance(x, np.ndarray) for x in ng.tree.leaves(out))
    assert isinstance(ng.vmap(np.sin)(ng.tensor(X)), ng.Tensor)
    np.testing.assert_array_equal(ng.vmap(lambda: 3.0, axis_size=2)(), [3.0, 3.0])
    assert ng.vmap(lambda x: 3.0, out_axes=None)(X) == 3.0
    assert ng.vmap(lambda x: (x, "name"), out_axes=(0, None))(X)[1] == "name"
    assert ng.vmap(lambda x: x, out_axes=(1,))(X).shape == X.T.shape
    assert ng.vmap(np.sum)(np.zeros((0, 3))).shape == (0,)
    np.testing.assert_array_equal(
        ng.vmap(lambda x, i: x[i])(X[:2], np.array([1, -1])), X[[0, 1], [1, 3]]
    )
    assert ng.vmap(ng.grad(lambda x: x**3))(np.ones(2, np.float32)).dtype == np.float32


def test_each_example_draws_numbers_of_its_own():
    rng = ng.random.default_rng(0)
    assert len(set(ng.vmap(lambda x: rng.standard_normal() + x)(np.zeros(50)))) == 50
    orders = ng.vmap(lambda x: x[rng.permutation(8)])(np.tile(np.arange(8.0), (20, 1)))
    np.testing.assert_array_equal(np.sort(orders), np.tile(np.arange(8.0), (20, 1)))
    assert len({tuple(row) for row in orders}) == 20
    picks = ng.vmap(lambda x: x[rng.choice(8, 8, replace=False)])(np.tile(np.arange(8.0), (20, 1)))
    np.testing.assert_array_equal(np.sort(picks), np.tile(np.arange(8.0), (20, 1)))
    drop = ng.nn.functional.dropout
    masks = ng.vmap(lambda x: drop(x, 0.5))(np.ones((20, 32)))
    assert len({tuple(row) for row in masks}) == 20
    assert set(masks.ravel()) == {0.0, 2.0}
    # also where all examples share the operand; and the backward drops the same
    assert (
        len({tuple(row) for row in ng.vmap(lambda x: drop(ng.ones(32), 0.5) + x)(np.zeros(20))})
        == 20
    )
    value, gradient = ng.vmap(ng.value_and_grad(lambda x: np.sum(drop(x, 0.5))))(np.ones((20, 32)))
    np.testing.assert_allclose(gradient.sum(1), value)
    compiled = ng.jit(ng.vmap(lambda x: drop(x, 0.5) + rng.standard_normal()))
    assert len({tuple(row) for row in compiled(np.ones((20, 32)))}) == 20


ERRORS = {
    "no function": (lambda: ng.vmap(3), "takes a function, got a int"),
    "lengths": (lambda: ng.vmap(np.add)(X, np.ones(3)), "argument \\[0\\]: 5, argument \\[1\\]: 3"),
    "axis": (lambda: ng.vmap(np.sin, in_axes=2)(X), "shape \\(5, 4\\) and no axis 2"),
    "scalar": (lambda: ng.vmap(np.sin)(3.0), "shape \\(\\) and no axis 0"),
    "None": (lambda: ng.vmap(lambda x: x)(None), "is a NoneType"),
    "nesting": (lambda: ng.vmap(np.sin, in_axes=(0, 0))(X), "nest it as that is"),
    "keys": (lambda: ng.vmap(len, in_axes=({"b": 0},))({"a": X}), "keys \\['a'\\]"),
    "no axes": (lambda: ng.vmap(np.sin, in_axes="a")(X), "axes as integers"),
    "no number": (lambda: ng.vmap(lambda: 1.0)(), "give axis_size"),
    "result": (lambda: ng.vmap(lambda x: None)(X), "the result is a NoneType"),
    "out_axes": (lambda: ng.vmap(np.sin, out_axes=None)(X), "not the same for all"),
    "no such out_axes": (lambda: ng.vmap(np.sin, out_axes=5)(X), "axis 5 is out of range"),
    "if": (lambda: ng.vmap(lambda x: 1.0 if x[0] > 0 else 0.0)(X), "np.where instead of if"),
    "mask": (lambda: ng.vmap(lambda x: x[x > 0])(X), "np.where"),
    "shared": (lambda: ng.vmap(lambda x: ng.zeros(3).__setitem__(0, x[0]))(X), "zeros_like"),
    "too wide": (
        lambda: ng.vmap(lambda x: np.zeros_like(x).__setitem__(0, np.ones(3)))(X),
        "cannot take shape \\(3,\\)",
    ),
    "grad": (
        lambda: ng.vmap(lambda x: ng.autograd.grad(x.sum(), x))(ng.tensor(X, requires_grad=True)),
        "use ng.grad",
    ),
    "backward": (lambda: ng.vmap(lambda x: x.backward())(X), "only the whole batch"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    with pytest.raises(errors.NumgradError, match=message):
        call()
    np.testing.assert_array_equal(ng.vmap(np.sin)(X), np.sin(X))  # nothing is left behind


@pytest.mark.parametrize("through", [lambda f: f, ng.jit], ids=["eager", "jit"])
def test_an_example_is_not_written_to_what_all_share(through):
    def f(x):
        shared = ng.zeros(3)
        shared[0] = x.sum()
        return shared

    with pytest.raises(errors.NumgradRuntimeError, match=r"all examples share.*np\.zeros_like"):
        through(ng.vmap(f))(np.ones((2, 3)))


def _fills(x):
    y = np.zeros_like(x)
    y[0] = x[0] * x[1]
    y[1:].copy_(x[1:] ** 2)
    return (y.mul_(x)).sum()


def _writes_unrecorded(x):
    y = x * 2.0
    with ng.no_grad():
        y.mul_(x)
    y.detach().add_(1.0)
    return (y * x).sum()


def _replaces_data(x):
    y = x**2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.data.mul_(2.0)
        y.data = y.data * x
    return (y * x).sum()


@pytest.mark.parametrize("f", [_fills, _writes_unrecorded, _replaces_data])
@pytest.mark.parametrize("derivative", [ng.grad, ng.jacfwd])
def test_examples_are_written_to_by_methods(f, derivative):
    batch = np.array([[1.1, 0.7], [2.2, -1.4]])
    expected = np.stack([derivative(f)(x) for x in batch])
    for mapped in (
        ng.vmap(derivative(f)),
        ng.jit(ng.vmap(derivative(f))),
        ng.vmap(derivative(ng.jit(f))),
    ):
        np.testing.assert_allclose(mapped(batch), expected)
    np.testing.assert_allclose(
        ng.grad(lambda x: ng.vmap(f)(x).sum())(batch), [ng.grad(f)(x) for x in batch]
    )


def closed(x):
    """A branch reads what it closes over, which has no value where it is not taken."""
    return ng.cond(x > 0, lambda: np.sqrt(x) * np.log(x), lambda: 0.5 * x)


def closed_in_turn(x):
    def inner(y):
        return ng.cond(y > 1, lambda: np.log(x - 1) * y, lambda: np.sqrt(x))

    return ng.cond(x > 0, lambda: inner(x), lambda: x * x)


def stepped(x):
    """A loop that some examples do not enter closes over them."""
    return ng.while_loop(
        lambda c: (c[0] < 2) & (x > 0), lambda c: (c[0] + 1, c[1] + np.sqrt(x)), (0, 0.0)
    )[1]


def drawn(x):
    u = ng.random.default_rng(3).standard_normal()
    return ng.cond(u > 0, lambda: x * np.sqrt(u), lambda: x * np.log(-u))


@pytest.mark.parametrize("derive", [ng.grad, lambda f: ng.grad(ng.grad(f))])
@pytest.mark.parametrize("f", [closed, closed_in_turn, stepped])
def test_branches_that_close_over_examples(f, derive):
    points = np.array([4.0, -1.0, 0.5, 0.0, -3.0])
    with np.errstate(all="ignore"):
        expected = [derive(f)(x) for x in points]
        np.testing.assert_allclose(ng.vmap(derive(f))(points), expected, rtol=1e-12)
        np.testing.assert_allclose(ng.jit(ng.vmap(derive(f)))(points), expected, rtol=1e-12)
    assert np.all(np.isfinite(expected))


def derived(w, x):
    """Derivatives in a branch, of what is read from outside, and a branch in it."""

    def inner():
        slope = ng.jvp(lambda y: np.sqrt(y * w), (x,), (w,))[1]
        return ng.cond(x < 5, lambda: ng.grad(lambda y: np.log(y) * w)(x), lambda: slope)

    return ng.cond(x > 0, inner, lambda: w * x)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_derivatives_in_branches_that_close_over_examples(compiled):
    points = np.array([-4.0, 4.0, 0.5, 9.0])
    with np.errstate(all="ignore"):
        found = ng.vmap(ng.grad(derived, (0, 1)), (None, 0))
        found = (ng.jit(found) if compiled else found)(1.3, points)
        expected = np.transpose([ng.grad(derived, (0, 1))(1.3, x) for x in points])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_branches_that_close_over_draws_of_examples():
    points = np.arange(1.0, 7.0)
    found = ng.vmap(ng.grad(drawn))(points)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(ng.jit(ng.vmap(ng.grad(drawn)))(points), found, rtol=1e-12)


def test_a_branch_of_some_examples_writes_to_nothing_around_it():
    def f(x):
        y = np.zeros_like(x)

        def write():
            y[0] = 1.0
            return y

        return ng.cond(x[0] > 0, write, lambda: y)

    with pytest.raises(errors.NumgradRuntimeError, match="outside of it"):
        ng.vmap(f)(X)


def test_lengths_of_batches_of_views_stay_open_in_compiled_functions():
    def f(a, x):
        return np.broadcast_to(x[0], x.shape) + np.reshape(a, x.shape) + np.sum(x)

    compiled = ng.jit(ng.vmap(f, in_axes=(None, 0)))
    for n, m in ((4, 3), (5, 2)):
        a, x = np.arange(float(m)), np.arange(float(n * m)).reshape(n, m)
        expected = x[:, :1] + a + x.sum(1, keepdims=True)
        np.testing.assert_array_equal(compiled(a, x), expected)
    assert compiled.statistics.traces == 1


def written(x, v):
    """Writes at indices, slices and numbers, of which some repeat."""
    y = np.zeros((3, 4)) + x
    y[[1, -2, 1], 0] = np.stack([v[0], v[1], v[0] * v[1]])
    y[0:2, 1:2] = v[:, None]
    y[2] = v[0]
    y[..., None, 3] = v[1]
    y = ng.put(y, [0, 5], v[1]) + ng.put(x, [0, 0, -1], v[0] * x[0, :3], accumulate=True)
    return ng.index_copy(y, [-1], x[:1] * v[0], axis=0) + ng.index_add(x, [1, 1], x[:2], axis=-2)


@pytest.mark.parametrize("compiled", [False, True])
def test_writes_of_examples(compiled):
    rng = np.random.default_rng(5)
    x, v = rng.normal(size=(4, 3, 4)), rng.normal(size=(4, 2))
    f, slopes = ng.vmap(written), ng.vmap(ng.jacfwd(written, 1))
    if compiled:
        f, slopes = ng.jit(f), ng.jit(slopes)
    each = [np.asarray(written(ng.tensor(a), ng.tensor(b))) for a, b in zip(x, v, strict=True)]
    np.testing.assert_array_equal(f(x, v), each)
    step = 1e-6 * np.eye(2)[:, None]
    differences = (f(x, v + step[0]) - f(x, v - step[0]), f(x, v + step[1]) - f(x, v - step[1]))
    np.testing.assert_allclose(slopes(x, v), np.stack(differences, -1) / 2e-6, atol=1e-8)
    with pytest.raises(IndexError, match="12"):
        ng.vmap(lambda a: ng.put(a, [12], a[0, 0]))(x)


def test_writes_of_a_batch_do_not_grow_with_its_length():
    graph = ng.jit(ng.jacfwd(lambda v: written(ng.ones((3, 4)), v[:2]))).graph
    few, many = (len(str(graph(np.ones(n))).splitlines()) for n in (2, 40))
    assert many <= few + 2


def test_examples_draw_different_numbers_the_same_or_none():
    def draw(x, randomness):
        rng = ng.random.default_rng(0)
        return ng.vmap(lambda x: x + rng.uniform(size=2), randomness=randomness)(x)

    x = np.zeros(3)
    different, same = draw(x, "different"), draw(x, "same")
    assert len(np.unique(different)) == 6
    assert (same == same[0]).all()
    assert len(np.unique(same)) == 2
    with pytest.raises(RuntimeError, match="randomness='same'"):
        draw(x, "error")
    with pytest.raises(ValueError, match="randomness is 'error', 'different' or 'same'"):
        draw(x, "none")
