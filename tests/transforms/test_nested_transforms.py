"""Transforms of functions that contain transforms: nothing that is followed outside gets lost."""

import itertools

import numpy as np
import pytest

import numgrad as ng

fw = ng.autograd.forward_ad
functional = ng.autograd.functional


def h(y, x):
    return np.sin(x) * y**3


def tape_grad(f):
    def inner(y, *args):
        y = ng.asarray(y).clone().requires_grad_()
        return ng.autograd.grad(f(y, *args), y, create_graph=True)[0]

    return inner


def forward(f):
    return lambda y, *args: fw.jvp(lambda y: f(y, *args), [ng.asarray(y)], [ng.tensor(1.0)])[1]


def with_array(transform):
    def of(f):
        return lambda y, *args: transform(
            lambda y: f(y, *args), y if isinstance(y, ng.Tensor) else np.array(y)
        )

    return of


# transform of a function of y (and more), and which derivative by y it gives
INNER = {
    "grad": (ng.grad, 1),
    "value_and_grad": (lambda f: lambda *a: ng.value_and_grad(f)(*a)[1], 1),
    "jacobian": (ng.jacobian, 1),
    "hessian": (ng.hessian, 2),
    "grad of grad": (lambda f: ng.grad(ng.grad(f)), 2),
    "value": (lambda f: lambda *a: ng.value_and_grad(f)(*a)[0], 0),
    "aux": (lambda f: lambda *a: ng.grad(lambda *b: (f(*b), f(*b)), has_aux=True)(*a)[1], 0),
    "autograd.grad": (tape_grad, 1),
    "forward mode": (forward, 1),
    "forward of grad": (lambda f: forward(ng.grad(f)), 2),
    "functional.jacobian": (with_array(lambda f, y: functional.jacobian(f, y, True)), 1),
    "functional.vhp": (with_array(lambda f, y: functional.vhp(f, y, None, True)[1]), 2),
}
JITTED = {
    "jit of grad": (lambda f: ng.jit(ng.grad(f)), 1),
    "grad of jit": (lambda f: ng.grad(ng.jit(f)), 1),
    "jit of jacobian": (lambda f: ng.jit(ng.jacobian(f)), 1),
}


def backward(f):
    def outer(x):
        x = ng.tensor(x, requires_grad=True)
        f(x).backward()
        return x.grad

    return outer


# transform of a function of x, and which derivative it gives
OUTER = {
    "grad": (ng.grad, 1),
    "jacobian": (ng.jacobian, 1),
    "hessian": (ng.hessian, 2),
    "backward": (backward, 1),
    "forward mode": (forward, 1),
    "forward of grad": (lambda f: forward(ng.grad(f)), 2),
    "functional.jacobian": (with_array(functional.jacobian), 1),
    "functional.hessian": (with_array(lambda f, x: functional.hessian(f, x, vectorize=True)), 2),
    "forward-mode columns": (
        with_array(lambda f, x: functional.jacobian(f, x, vectorize=True, strategy="forward-mode")),
        1,
    ),
}

Y = 1.3


def calls(transform):
    """Ways in which what the inner function is differentiated at depends on ``x``."""
    return {
        "closure": lambda x: transform(lambda y: h(y, x))(Y),
        "other argument": lambda x: transform(h)(Y, x),
        "argument": lambda x: transform(lambda y: h(y, 0.5))(x),
        "both": lambda x: transform(lambda y: h(y, x))(x),
    }


def truth(way, inner, outer, x):
    """Derivative ``outer`` of ``sin(a) d^inner/dy^inner y**3`` by x."""
    p = np.polynomial.Polynomial([0, 0, 0, 1.0]).deriv(inner) if inner else None
    p = np.polynomial.Polynomial([0, 0, 0, 1.0]) if p is None else p
    sine = [np.sin(x), np.cos(x), -np.sin(x)]
    if way in ("closure", "other argument"):
        return p(Y) * sine[outer]
    if way == "argument":
        return p.deriv(outer)(x) * np.sin(0.5)
    first = p.deriv()
    if outer == 1:
        return first(x) * sine[0] + p(x) * sine[1]
    return p.deriv(2)(x) * sine[0] + 2 * first(x) * sine[1] + p(x) * sine[2]


def check(outer, inner, table):
    transform, count = table[inner]
    around, order = OUTER[outer]
    for way, function in calls(transform).items():
        found = ng.asarray(around(function)(0.7)).detach()
        np.testing.assert_allclose(
            found, truth(way, count, order, 0.7), rtol=1e-12, err_msg=f"{outer} of {inner}: {way}"
        )


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(OUTER, INNER)))
def test_a_transform_inside_keeps_what_is_followed_outside(outer, inner):
    check(outer, inner, INNER)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("inner", JITTED)
@pytest.mark.parametrize("outer", ["grad", "backward", "forward mode"])
def test_a_compiled_transform_inside_keeps_it_too(outer, inner):
    check(outer, inner, JITTED)


@pytest.mark.parametrize("inner", ["grad", "hessian", "forward mode"])
def test_all_of_it_compiles(inner):
    transform, count = INNER[inner]
    for way, function in calls(transform).items():
        np.testing.assert_allclose(
            ng.jit(ng.grad(function))(0.7), truth(way, count, 1, 0.7), rtol=1e-12, err_msg=way
        )


def test_perturbations_of_different_levels_are_not_confused():
    def of(transform):
        return lambda x: x * transform(lambda y: x + y)(1.0)

    for inner in (ng.grad, forward, tape_grad, lambda f: ng.jit(ng.grad(f))):
        for outer in (ng.grad, forward, backward):
            found = ng.asarray(outer(of(inner))(1.0)).detach()
            assert found.item() == 1.0  # and not 2
    # the inner variable is the outer one: a constant to the inner transform where it is closed over
    found = ng.grad(lambda x: x * ng.grad(lambda y: x * y)(x))(3.0)
    assert found == 6.0
    third = ng.grad(lambda x: ng.grad(lambda y: ng.grad(lambda z: x * y**2 * z**3)(x))(x))(2.0)
    assert third == 6 * 4 * 2.0**3  # d/dx (6 x**4)


def test_three_levels_of_arrays():
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal(3), rng.standard_normal((2, 3))

    def f(x):
        rows = ng.jacobian(lambda y: np.tanh(m @ (x * y)))(x)
        curved = ng.hessian(lambda z: np.sum(np.sin(z) * x) * z[0] * x[1])(x * 2)
        return np.sum(rows**2) + np.sum(curved @ x) * ng.grad(lambda t: np.exp(t * x[0]))(0.5)

    def written_out(x):  # in NumPy, for complex steps
        rows = (1 - np.tanh(m @ (x * x)) ** 2)[:, None] * m * x
        z, first = 2 * x, np.eye(3)[0]
        slope = np.outer(np.cos(z) * x, first)
        curved = (slope + slope.T - np.diag(np.sin(z) * x) * z[0]) * x[1]
        return np.sum(rows**2) + np.sum(curved @ x) * np.exp(0.5 * x[0]) * x[0]

    def gradient(x):
        return np.array([written_out(x + 1e-30j * e).imag / 1e-30 for e in np.eye(3)])

    second = [(gradient(x + 1e-5 * e) - gradient(x - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(f(x), written_out(x), rtol=1e-12)
    np.testing.assert_allclose(ng.grad(f)(x), gradient(x), rtol=1e-10)
    np.testing.assert_allclose(ng.hessian(f)(x), second, rtol=1e-6)
    t = ng.tensor(x, requires_grad=True)
    f(t).backward()
    np.testing.assert_allclose(t.grad, gradient(x), rtol=1e-10)


def test_arrays_come_out_at_the_outermost_level_only():
    kinds = []

    def inner(x):
        found = ng.grad(lambda y: y * y)(2.0)
        kinds.append(type(found))
        return found * x

    assert type(ng.grad(inner)(1.0)) is np.float64
    assert type(ng.grad(lambda y: y * y)(2.0)) is np.float64
    with fw.dual_level():
        inner(1.0)
    assert kinds == [ng.Tensor, ng.Tensor]


def test_a_result_leads_to_what_the_function_closes_over_or_nowhere():
    w = ng.tensor(0.5, requires_grad=True)
    value, gradient = ng.value_and_grad(lambda y: y * np.sin(w))(1.0)
    (value + gradient).backward()
    assert w.grad.item() == pytest.approx(2 * np.cos(0.5))
    with ng.no_grad():  # nothing outside is to be differentiated
        assert type(ng.grad(lambda y: y * np.sin(w))(1.0)) is np.float64
    inside = ng.grad(lambda y: y * np.sin(w.detach()))(1.0)
    assert type(inside) is np.float64
    value, gradient = ng.value_and_grad(lambda y: y**3)(ng.tensor(2.0))
    assert not value.requires_grad
    assert not gradient.requires_grad
    gradient, aux = ng.grad(lambda y: (y**3, y * w), has_aux=True)(2.0)
    aux.backward()
    assert w.grad.item() == pytest.approx(2 * np.cos(0.5) + 2.0)
    constant = ng.grad(lambda x: x * ng.no_grad()(lambda: ng.grad(lambda y: y * x)(1.0))())(3.0)
    assert constant == 3.0


def test_hooks_see_what_flows_through_a_transform_inside():
    seen = []

    def f(x):
        inner = ng.grad(lambda y: y**2 * x)(3.0)
        inner.register_hook(seen.append)
        return inner * 5

    assert ng.grad(f)(1.0) == 30.0
    assert [g.item() for g in seen] == [5.0]
