"""What users make of gradients in compiled functions: right, or refused by name."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradRuntimeError, NumgradTraceError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = 1.1


def in_scan(step):
    return lambda x: ng.scan(lambda c, _: (step(c), None), x, length=2)[0]


def with_hook(hook):
    def step(c):
        y = c * c
        y.register_hook(hook)
        return y * c

    return step


def with_rule(rule):
    @ng.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (rule(g, x),))
    return lambda c: square(c) * c


NOT_LINEAR = {
    "square": with_hook(lambda g: g * g),
    "clip": with_hook(lambda g: np.clip(g, -1, 1)),
    "added": with_hook(lambda g: g + 1),
    "constant": with_hook(np.ones_like),
    "detached": with_hook(lambda g: g * g.detach()),
    "chosen": with_hook(lambda g: np.where(g > 0, g, 0)),
    "rule": with_rule(lambda g, x: g / np.abs(g) * x),
}
LINEAR = {
    "scaled": with_hook(lambda g: 3 * g - g / 2),
    "zero": with_hook(np.zeros_like),
    "detached": with_hook(lambda g: 2 * g.detach()),
    "looked at": with_hook(lambda g: None),
    "rule": with_rule(lambda g, x: np.sum(5 * x * np.stack([g, -2 * g]))),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_second_derivatives_of_a_step_with_a_rule_that_is_not_linear(name):
    f = in_scan(NOT_LINEAR[name])
    np.testing.assert_allclose(ng.jit(ng.grad(f))(X), ng.grad(f)(X))
    for derive in (ng.jit(ng.hessian(f)), ng.hessian(ng.jit(f))):
        with pytest.raises(NumgradRuntimeError, match="is not linear in that"):
            derive(X)


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_of_a_step_with_a_rule_that_is_linear(name):
    f = in_scan(LINEAR[name])
    expected = ng.hessian(f)(X)
    for derive in (ng.jit(ng.hessian(f)), ng.hessian(ng.jit(f))):
        np.testing.assert_allclose(derive(X), expected)


def test_forward_mode_of_gradients_with_a_rule_that_is_not_linear():
    f = ng.jacfwd(ng.grad(in_scan(NOT_LINEAR["square"])))
    np.testing.assert_allclose(ng.jit(f)(X), f(X))


def with_node_hook(x):
    y = x * x
    y.grad_fn.register_hook(lambda gs, _: tuple(None if g is None else 7 * g for g in gs))
    return y * x


def with_node_prehook(x):
    y = x * x
    y.grad_fn.register_prehook(lambda gs: (7 * gs[0],))
    return y * x


@pytest.mark.parametrize("f", [with_node_hook, with_node_prehook])
def test_hooks_of_nodes(f):
    for order in (ng.grad, ng.hessian):
        np.testing.assert_allclose(ng.jit(order(f))(X), order(f)(X))
    np.testing.assert_allclose(ng.grad(ng.jit(f))(X), ng.grad(f)(X))
    with pytest.raises(NumgradRuntimeError, match="a hook of a node"):
        ng.hessian(ng.jit(f))(X)


def test_functions_that_keep_what_a_step_saves_are_refused():
    def step(c):
        with ng.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
            return c * c

    with pytest.raises(NumgradTraceError, match="saved_tensors_hooks: a step"):
        ng.jit(ng.grad(in_scan(step)))(X)


@pytest.mark.parametrize("present", [None, 10.0])
def test_gradients_of_arguments_are_not_accumulated(present):
    @ng.jit
    def f(x):
        y = (x * x).sum()
        y.backward()
        return y

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    x.grad = None if present is None else ng.full(2, present)
    with pytest.raises(NumgradTraceError, match=r"sets \.grad of an argument"):
        f(x)
    assert present is None if x.grad is None else x.grad.tolist() == [present] * 2


def test_a_backward_in_a_step_does_not_reach_a_leaf_outside():
    w = ng.tensor(2.0, requires_grad=True)

    def step(c):
        with ng.enable_grad():
            (w * c).sum().backward()
        return c * 2

    with pytest.raises(NumgradTraceError, match=r"sets \.grad of a tensor outside"):
        ng.jit(in_scan(step))(X)
    assert w.grad is None


def test_forward_mode_goes_through_what_is_not_recorded():
    def f(x):
        with ng.no_grad():
            y = x * 2
        return y * x

    for derive in (ng.jacfwd(f), ng.jit(ng.jacfwd(f))):
        np.testing.assert_allclose(derive(np.array([1.0, 2.0])), [[4, 0], [0, 8]])


@pytest.mark.parametrize("name", ["square", "added", "rule"])
def test_second_derivatives_of_what_is_computed_from_a_compiled_function(name):
    f = NOT_LINEAR[name]
    np.testing.assert_allclose(ng.hessian(ng.jit(f))(X), ng.hessian(f)(X))
    with pytest.raises(NumgradRuntimeError, match="not linear in the gradient"):
        ng.hessian(lambda x: ng.jit(f)(x) ** 3)(X)


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_where_a_compiled_function_has_a_linear_rule(name):
    f = LINEAR[name]
    expected = ng.hessian(lambda x: f(x) ** 3)(X)
    np.testing.assert_allclose(ng.hessian(lambda x: ng.jit(f)(x) ** 3)(X), expected)
