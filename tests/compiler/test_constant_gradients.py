"""What eager code keeps constant is so in graphs too, where these are differentiated again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.crossed import each_first

POINT = np.array([1.1, 0.7])
WEIGHT = ng.tensor([0.3, -1.2], requires_grad=True)
CASES: dict[str, Callable[[Any], Any]] = {}
WRITES: dict[str, Callable[[Any], Any]] = {}


def case(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a function to what is compared."""
    CASES[f.__name__] = f
    return f


@case
def gradient(x):
    (g,) = ng.autograd.grad((x**3).sum(), x)
    return (g * x).sum()


@case
def gradient_with_a_graph(x):
    (g,) = ng.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g * x).sum()


@case
def gradient_that_was_given(x):
    (g,) = ng.autograd.grad(x + 1.0, x, x * x)
    return (g * x).sum()


@case
def gradient_with_a_graph_under_no_grad(x):
    y = (x**3).sum()
    with ng.no_grad():
        (g,) = ng.autograd.grad(y, x, create_graph=True)
    return (g * x).sum()


@case
def gradient_of_a_weight(x):
    (g,) = ng.autograd.grad((WEIGHT**3 * x**2).sum(), WEIGHT)
    return (g * x).sum()


@case
def gradients_of_many(x):
    (g,) = ng.autograd.grad(x**3, x, ng.tensor(np.eye(2)), is_grads_batched=True)
    return (g @ x).sum()


@case
def what_a_hook_saw(x):
    seen = []
    y = x**2
    y.register_hook(seen.append)
    ng.autograd.grad((y**3).sum(), x)
    return (seen[0] * x).sum()


@case
def transform_under_no_grad(x):
    with ng.no_grad():
        g = ng.grad(lambda t: (t**3 * x).sum())(x)
    return (g * x).sum()


@case
def hessian_under_no_grad(x):
    with ng.no_grad():
        matrix = ng.hessian(lambda t: (t**3 * x).sum())(x)
    return (matrix @ x).sum()


@case
def descent(x):
    w = x * 1.0
    for _ in range(2):
        (g,) = ng.autograd.grad(((w * x) ** 2).sum(), w)
        w = w - 0.1 * g
    return (w * x).sum()


@case
def detached_in_place(x):
    y = x**2
    y.detach_()
    return (y * x**3).sum()


@case
def data(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (x.data**2 * x**3).sum()


def written(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a function that writes to memory, which is tried in steps of loops as well."""
    WRITES[f.__name__] = f
    return case(f)


@written
def written_under_no_grad(x):
    y = x * 2.0
    with ng.no_grad():
        y *= 5.0 * x
    return (y * x).sum()


@written
def written_under_no_grad_after_a_use(x):
    y = x * 1.0
    z = y + x
    with ng.no_grad():
        y.add_(x**2)
    return (y * z * x).sum()


@written
def part_written_under_no_grad(x):
    y = x * 2.0
    v = y[0]
    with ng.no_grad():
        y[0] *= 5.0
        y.reshape(2, 1)[1] = x[0]
    return (y * x).sum() * v


@written
def written_through_data(x):
    y = x * 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.data.mul_(3.0)
        y.data += x.detach()
        y.data[1] = x[0] * x[1]
    return (y * x**2).sum()


@written
def written_through_data_under_no_grad(x):
    y = x * 1.0
    with ng.no_grad():
        y.detach()[0] = x[1] * 3.0
    return (y * x**2).sum()


@written
def other_data(x):
    y = x**2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.data = y.data * 3.0
    return (y * x).sum()


@written
def hook(x):
    y = x**2
    z = y[0] * x
    y.register_hook(lambda g: g * 3.0)
    return (y * z).sum()


@written
def removed_hook(x):
    y = x**2
    y.register_hook(lambda g: g * g).remove()
    return (y**2).sum()


@written
def hook_of_a_part(x):
    y = x**2
    v = y[:1]
    v.register_hook(lambda g: g.detach() * 3.0)
    y *= x
    return (v * y).sum()


@written
def zeros_filled_under_no_grad(x):
    y = ng.zeros(2)
    with ng.no_grad():
        y.copy_(x**2)
    return (y * x**2).sum()


@pytest.mark.slow(cases=len(CASES))
@pytest.mark.parametrize(("name", "inside"), each_first([*CASES], [True, False]))
def test_second_derivatives_of_a_compiled_function_are_those_of_eager_code(name, inside):
    f = CASES[name]
    found = ng.hessian(ng.jit(f)) if inside else ng.jit(ng.hessian(f))
    np.testing.assert_allclose(found(POINT), ng.hessian(f)(POINT), atol=1e-12)


@pytest.mark.parametrize("f", WRITES.values(), ids=WRITES)
def test_derivatives_of_steps_that_write_are_those_of_eager_code(f):
    def loop(x):
        return ng.scan(lambda c, _: (c, f(c)), x, None, length=2)[1].sum()

    forward = [] if "hook" in f.__name__ else [ng.jacfwd]  # of an eager forward mode there is none
    for derivative in (ng.grad, ng.hessian, *forward):
        expected = 2 * derivative(f)(POINT)
        np.testing.assert_allclose(derivative(ng.jit(loop))(POINT), expected, atol=1e-12)


def test_data_of_a_tensor_around_a_compiled_function_is_not_replaced():
    w = ng.tensor(POINT, requires_grad=True)

    @ng.jit
    def f(x):
        w.data = x * 2.0
        return w * x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ng.errors.NumgradTraceError, match=r"tensor\.data\.copy_"):
            f(POINT)
    np.testing.assert_array_equal(w.detach(), POINT)


def test_memory_that_data_shares_is_not_written_to():
    def f(x):
        y, z = x * 2.0, x * 3.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y.data = z.detach()
        with ng.no_grad():
            z *= 2.0
        return (y * z).sum()

    with pytest.raises(ng.errors.NumgradTraceError, match="became that of another"):
        ng.jit(ng.grad(f))(POINT)


@pytest.mark.parametrize("ask", [
    lambda y: y.requires_grad, lambda y: y.is_leaf, lambda y: y.grad_fn,
])  # fmt: skip
def test_steps_cannot_ask_whether_they_are_differentiated(ask):
    def step(c, _):
        y = c * c
        assert not y.detach().requires_grad
        assert ng.zeros(2).is_leaf
        assert y.detach().requires_grad_().requires_grad
        ask(y)
        return y, None

    f = ng.jit(lambda x: ng.scan(step, x, None, length=2)[0].sum())
    with pytest.raises(ng.errors.NumgradError, match=r"outside of ng\.jit"):
        ng.grad(f)(POINT)


def test_a_hook_that_reads_the_step_is_refused():
    def step(c, _):
        y = c * c
        y.register_hook(lambda g: g * c)
        return y, None

    f = ng.jit(lambda x: ng.scan(step, x, None, length=2)[0].sum())
    with pytest.raises(ng.errors.NumgradError, match="reads what that computes"):
        ng.grad(f)(POINT)
    with pytest.raises(ng.errors.NumgradError, match="does not require grad"):
        ng.jit(lambda x: ng.map(lambda c: c.detach().register_hook(abs), x))(POINT)


def test_a_gradient_in_a_step_of_a_loop_is_constant():
    def step(carry, _):
        w = carry.detach().requires_grad_()
        with ng.enable_grad():
            (g,) = ng.autograd.grad((w**3 * carry).sum(), w)
        return carry * g, None

    def eager(x):
        for _ in range(2):
            x, _ = step(x, None)
        return x.sum()

    def compiled(x):
        return ng.scan(step, x, None, length=2)[0].sum()

    for derivative in (ng.grad, ng.hessian):
        expected = derivative(eager)(POINT)
        np.testing.assert_allclose(derivative(ng.jit(compiled))(POINT), expected)
        np.testing.assert_allclose(ng.jit(derivative(compiled))(POINT), expected)


def test_an_accumulated_gradient_is_constant():
    def f(x):
        w = (x * 2.0).detach().requires_grad_()
        (w**3 * x).sum().backward(inputs=[w])
        return (w.grad * x).sum()

    def curvature(f):
        x = ng.tensor(POINT, requires_grad=True)
        (g,) = ng.autograd.grad(f(x), x, create_graph=True)
        return g.numpy() if not g.requires_grad else ng.autograd.grad(g.sum(), x)[0].numpy()

    np.testing.assert_allclose(curvature(ng.jit(f)), curvature(f))


def test_a_gradient_keeps_tangents_in_a_compiled_function():
    def f(x):
        with ng.enable_grad():
            (g,) = ng.autograd.grad((WEIGHT**3 * x**2).sum(), WEIGHT)
        return g

    expected = ng.jacfwd(f)(POINT)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(ng.jacfwd(ng.jit(f))(POINT), expected)
    np.testing.assert_allclose(ng.jit(ng.jacfwd(f))(POINT), expected)


def test_examples_of_a_batch_are_detached_in_place():
    batch = np.stack([POINT, 2 * POINT])
    expected = [ng.grad(detached_in_place)(x) for x in batch]
    np.testing.assert_allclose(ng.vmap(ng.grad(detached_in_place))(batch), expected)


def test_a_dual_tensor_is_detached_in_place_in_a_compiled_function():
    expected = ng.jacfwd(detached_in_place)(POINT)
    np.testing.assert_allclose(ng.jit(ng.jacfwd(detached_in_place))(POINT), expected)


def test_a_jacobian_with_a_graph_is_followed_in_the_step_of_a_loop():
    def cubes(t):
        return t**3

    def summed(x):
        def step(c, _):
            full = ng.autograd.functional.jacobian(cubes, c, create_graph=True)
            plain = ng.autograd.functional.jacobian(cubes, c)
            return c, ((full + plain) @ c).sum()

        return ng.scan(step, x, None, length=2)[1].sum()

    np.testing.assert_allclose(ng.grad(ng.jit(summed))(POINT), 2 * (9 + 3) * POINT**2)


@ng.custom_vjp
def by_vjp(x):
    return x**2


by_vjp.defvjp(lambda x: (x**2, x), lambda x, g: (5 * g * x,))


@ng.custom_jvp
def by_jvp(x):
    return x**2


@by_jvp.defjvp
def _(primals, tangents):
    return by_jvp(*primals), 5 * primals[0] * tangents[0]


class Own(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y, e = x**2, np.exp(x)  # what is no output is constant in a second derivative
        ctx.kept = x.detach() * 2.0
        ctx.save_for_backward(x, y, e)
        ctx.factor = 3.0
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y, e = ctx.saved_tensors
        return g * (ctx.factor * x + y + e + ctx.kept)


class Two(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        counted = x**3
        ctx.mark_non_differentiable(counted)
        return x, counted

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        return -g * ctx.saved_tensors[0]


class Turned(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[::-1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -3 * g[::-1]


RULES: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda x: (by_vjp(x) ** 2).sum(),
    "jvp": lambda x: (by_jvp(x) ** 2).sum(),
    "both": lambda x: by_vjp(by_jvp(x) * x).sum(),
    "Function": lambda x: (Own.apply(x) ** 2).sum(),
    "view": lambda x: (Turned.apply(x) ** 2 * x).sum(),
    "two": lambda x: (Two.apply(x)[0] ** 2 * Two.apply(x)[1]).sum(),
}
LOOPS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "scan": lambda f: lambda x: ng.scan(lambda c, _: (c, f(c)), x, None, length=2)[1].sum(),
    "cond": lambda f: lambda x: 2 * ng.cond(x.sum() > 0, f, lambda t: t.sum(), x),
    "while": lambda f: (
        lambda x: ng.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1], c[2] + f(c[1])), (0, x, 0.0 * x.sum())
        )[2]
    ),
    "none": lambda f: lambda x: 2 * f(x),
}


@pytest.mark.slow(cases=len(RULES))
@pytest.mark.parametrize(
    ("rule", "loop", "inside"),
    each_first([*RULES], [*LOOPS], [True, False]),
)
def test_rules_hold_in_compiled_loops_and_branches(rule, loop, inside):
    def twice(x):
        return 2 * RULES[rule](x)

    looped = LOOPS[loop](RULES[rule])
    for derivative in (ng.grad, ng.hessian):
        expected = derivative(twice)(POINT)
        found = derivative(ng.jit(looped)) if inside else ng.jit(derivative(looped))
        np.testing.assert_allclose(found(POINT), expected)


@pytest.mark.parametrize("rule", [by_vjp, by_jvp, Own.apply])
def test_rules_hold_in_an_associative_scan(rule):
    def f(x):
        rows = ng.stack([x, 2 * x, x * x])
        return ng.associative_scan(lambda a, b: rule(a) + b * rule(b), rows).sum()

    np.testing.assert_allclose(ng.hessian(ng.jit(f))(POINT), ng.hessian(f)(POINT))


def test_a_rule_of_forward_mode_and_batches_hold_in_a_compiled_loop():
    looped, points = LOOPS["scan"](RULES["jvp"]), np.stack([POINT, 2 * POINT])
    expected = ng.grad(RULES["jvp"])(POINT) * 2
    np.testing.assert_allclose(ng.jacfwd(ng.jit(looped))(POINT), expected)
    np.testing.assert_allclose(ng.vmap(ng.grad(ng.jit(looped)))(points)[0], expected)
    with pytest.raises(NotImplementedError, match="custom_vjp gives a rule of reverse mode"):
        ng.jacfwd(ng.jit(LOOPS["scan"](RULES["vjp"])))(POINT)


class Once(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @ng.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return 5 * g * ctx.saved_tensors[0]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_backward_that_runs_once_has_one_derivative_in_a_compiled_loop(loop):
    looped = LOOPS[loop](lambda x: Once.apply(x).sum())
    np.testing.assert_allclose(ng.grad(ng.jit(looped))(POINT), 10 * POINT)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        ng.hessian(ng.jit(looped))(POINT)


class Dirty(ng.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x *= 2.0
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 5 * g


def reads_the_step(x):
    y = 3.0 * x

    @ng.custom_vjp
    def rule(t):
        return t * y

    rule.defvjp(lambda t: (t * y, None), lambda _, g: (2 * g * y,))
    return rule(x).sum()


@pytest.mark.parametrize(
    ("f", "match"),
    [(lambda x: Dirty.apply(x * 1.0).sum(), "Dirty: marks"), (reads_the_step, "pass that as an")],
)
def test_rules_that_cannot_be_followed_are_refused(f, match):
    looped = LOOPS["scan"](f)
    np.testing.assert_allclose(ng.jit(looped)(POINT), looped(POINT))
    with pytest.raises(ng.NumgradError, match=match):
        ng.grad(ng.jit(looped))(POINT)
