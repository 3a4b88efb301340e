"""``autograd.Function``: calls and gradients. Promises 45 to 47, 69, 84, 95 to 101, 107."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.function.function import Function
from numgrad.autograd.hooks import user_code
from numgrad.core.interpreter import state
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from tests.autograd.functions import base, leaf, powers, scaling

# ------------------------------------------------------------------------------ the plain cases


def test_forward_and_backward(lib):
    x = leaf(lib, 2.0, 3.0)
    y = powers(lib).apply(x, 3)
    assert y.tolist() == [8.0, 27.0]
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def test_setup_context_in_place_of_a_ctx_in_forward(lib):
    class Product(base(lib)):
        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert output.tolist() == [6.0]
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    a, b = leaf(lib, 2.0), leaf(lib, 3.0)
    Product.apply(a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0], [2.0])


def test_setup_context_sees_arrays_as_tensors():
    class Exp(Function):
        @staticmethod
        def forward(x):
            return np.exp(x.numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(ng, 0.0, 1.0)
    Exp.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.0, 1.0]), rtol=1e-15)


def test_without_an_input_that_requires_grad_nothing_is_recorded(lib):
    f = scaling(lib)
    assert f.apply(lib.tensor([1.0])).grad_fn is None
    with lib.no_grad():
        assert f.apply(leaf(lib)).grad_fn is None


def test_arguments_by_name(lib):
    def forward(ctx, x, factor, shift=0.0):
        ctx.factor = factor
        assert ctx.needs_input_grad == (True, False)
        return x * factor + shift

    x = leaf(lib)
    f = scaling(lib, forward, lambda ctx, g: (g * ctx.factor, None))
    f.apply(x, factor=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_gradients_flow_through_arguments_by_name(lib):
    x, w = leaf(lib), leaf(lib)
    f = scaling(lib, lambda ctx, x, w: x + 2 * w, lambda ctx, g: (g, 2 * g))
    f.apply(x, w=w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_setup_context_gets_defaults():
    class Scale(Function):
        @staticmethod
        def forward(x, factor=2.0, *, shift=0.0):
            return x * factor + shift

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = leaf(ng)
    y = Scale.apply(x, shift=1.0)
    assert y.tolist() == [3.0, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(NumgradTypeError, match="'shift' reaches forward by name"):
        Scale.apply(x, shift=leaf(ng))
    with pytest.raises(NumgradTypeError, match=r"Scale.apply: .*'other'"):
        Scale.apply(x, other=1)


def test_double_backward(lib):
    x = leaf(lib, 2.0, 3.0)
    (g,) = lib.autograd.grad(powers(lib).apply(x, 4).sum(), x, create_graph=True)
    assert g.tolist() == [32.0, 108.0]
    (h,) = lib.autograd.grad(g.sum(), x)
    assert h.tolist() == [48.0, 108.0]


def test_second_derivatives_agree_with_finite_differences():
    x = ng.tensor([0.7, 1.3], requires_grad=True)

    def f(x):
        return (powers(ng).apply(x, 3) * x.exp()).sum()

    def slope(values):
        t = ng.tensor(values, requires_grad=True)
        return ng.autograd.grad(f(t), t)[0].numpy()

    (g,) = ng.autograd.grad(f(x), x, create_graph=True)
    (h,) = ng.autograd.grad(g.sum(), x)
    eps, at = 1e-6, x.detach().numpy()
    for k in range(2):
        step = eps * np.eye(2)[k]
        numeric = (slope(at + step) - slope(at - step)).sum() / (2 * eps)
        np.testing.assert_allclose(h.numpy()[k], numeric, rtol=1e-7)


def test_gradcheck():
    x = ng.tensor([0.7, 1.3], requires_grad=True)
    assert ng.testing.gradcheck(lambda x: powers(ng).apply(x, 3), (x,))


# --------------------------------------------------------------- promises 45, 46, 47: backwards


def deep(lib):
    class Deep(base(lib)):
        @staticmethod
        def forward(ctx, x):
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.x < 0:
                return g
            with lib.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return g

    return Deep


def test_a_backward_within_a_backward(lib):
    """Promise 45."""
    weight = leaf(lib, 3.0)

    def forward(ctx, x):
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = (ctx.x * weight).sum()
        return ctx.y.detach()

    def backward(ctx, g):
        ctx.y.backward()
        return g * ctx.x.grad

    x = leaf(lib, 5.0)
    (scaling(lib, forward, backward).apply(x) * 2).backward()
    assert (x.grad.tolist(), weight.grad.tolist()) == ([6.0], [5.0])


def test_two_thousand_levels():
    """Promise 45."""
    v = ng.tensor(2000.0, requires_grad=True)
    deep(ng).apply(v).sum().backward()
    assert v.grad.item() == 1.0
    assert state.depth == 0


def test_inner_tasks_run_before_older_ones(lib):
    """Promise 45."""
    order = []
    inner = leaf(lib)
    inner.register_hook(lambda g: order.append("inner"))

    def backward(ctx, g):
        with lib.enable_grad():
            (inner * 2).sum().backward()
        order.append("outer")
        return g

    x = leaf(lib)
    x.register_hook(lambda g: order.append("leaf"))
    scaling(lib, None, backward).apply(x).sum().backward()
    assert order == ["inner", "outer", "leaf"]


def test_indices_that_occur_twice_accumulate(lib):
    """Promise 46."""

    def forward(ctx, x, index):
        ctx.shape, ctx.index = x.shape, index
        return x[index]

    def backward(ctx, g):
        out = lib.zeros(ctx.shape)
        for position, k in enumerate(ctx.index):
            out[k] += g[position]
        return out, None

    x = leaf(lib, 1.0, 2.0, 3.0)
    scaling(lib, forward, backward).apply(x, [0, 0, 2]).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_errors_keep_type_and_message(lib, create_graph):
    """Promise 47."""

    class OfTheUser(Exception):
        pass

    def backward(ctx, g):
        raise OfTheUser("as it was")

    x = leaf(lib)
    y = scaling(lib, None, backward).apply(x).sum()
    with pytest.raises(OfTheUser, match=r"^as it was$"):
        lib.autograd.grad(y, x, create_graph=create_graph)
    assert x.grad is None
    assert lib.is_grad_enabled()


def test_errors_of_forward_leave_the_grad_mode(lib):
    """Promise 47."""
    with pytest.raises(ZeroDivisionError):
        scaling(lib, lambda ctx, x: 1 / 0).apply(leaf(lib))
    assert lib.is_grad_enabled()


# ------------------------------------------------------------------- promise 69: grad mode


def test_forward_and_backward_run_with_grad_mode_off(lib):
    """Promise 69."""
    seen = []

    def forward(ctx, x):
        seen.append(lib.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        seen.append(lib.is_grad_enabled())
        return g * 2

    x = leaf(lib)
    y = scaling(lib, forward, backward).apply(x).sum()
    y.backward(retain_graph=True)
    lib.autograd.grad(y, x, create_graph=True)
    assert seen == [False, False, True]


# ----------------------------------------------------------------------- promise 84: names


def test_the_node_is_named_after_the_function(lib):
    """Promise 84."""
    node = scaling(lib).apply(leaf(lib)).grad_fn
    assert node.name() == "FBackward"
    assert "AccumulateGrad" in node.next_functions[0][0].name()


def test_class_and_ctx_have_names():
    """Promise 84."""
    seen = []
    f = scaling(ng, lambda ctx, x: seen.append(ctx.name()) or x * 2)
    f.apply(leaf(ng))
    assert f.name() == seen[0] == "FBackward"


# ------------------------------------------------------------------- promise 95: instances


def test_functions_have_no_instances(lib, raises):
    """Promise 95."""
    f = scaling(lib)
    with pytest.warns(DeprecationWarning, match="F"):
        instance = f()
    with raises(RuntimeError, r"F\.apply"):
        instance(leaf(lib))


# ---------------------------------------------------------- promises 96, 97, 98: gradients


def gradient_of(lib, backward, *rest):
    x = leaf(lib)
    scaling(lib, lambda ctx, x, *rest: x * 2, backward).apply(x, *rest).sum().backward()
    return x.grad


def test_too_few_gradients_are_refused(lib, raises):
    """Promise 96."""
    with raises(RuntimeError, "returned 1 gradients, but forward has 2 inputs"):
        gradient_of(lib, lambda ctx, g: g, 3)


def test_surplus_nones_are_tolerated(lib):
    """Promise 96."""
    assert gradient_of(lib, lambda ctx, g: (g, None, None)).tolist() == [1.0, 1.0]


def test_surplus_gradients_are_refused(lib, raises):
    """Promise 96."""
    with raises(RuntimeError, "at position 1, but forward has only 1"):
        gradient_of(lib, lambda ctx, g: (g, g))


def test_a_gradient_for_what_is_no_tensor_is_refused(lib, raises):
    """Promise 97."""
    with raises(RuntimeError, "for input 1, which was no Tensor"):
        gradient_of(lib, lambda ctx, g: (g, g), 3)


def test_gradients_are_summed_to_the_shape(lib):
    """Promise 98."""
    assert gradient_of(lib, lambda ctx, g: lib.ones((3, 2))).tolist() == [3.0, 3.0]


def test_gradients_are_cast(lib):
    """Promise 98."""
    x = lib.tensor([1.0, 2.0], dtype=lib.float32, requires_grad=True)
    scaling(lib, None, lambda ctx, g: lib.ones(2, dtype=lib.float64)).apply(x).sum().backward()
    assert x.grad.dtype == lib.float32


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_summed_and_cast_when_recorded(create_graph):
    """Promise 98."""
    x = ng.tensor([[1.0], [2.0]], dtype=np.float32, requires_grad=True)
    y = scaling(ng, None, lambda ctx, g: ng.ones((4, 2, 3))).apply(x).sum()
    (g,) = ng.autograd.grad(y, x, create_graph=create_graph)
    assert (g.tolist(), g.dtype) == ([[12.0], [12.0]], np.float32)


@pytest.mark.parametrize("value", [lambda g: g.numpy(), lambda g: g.tolist()[0], lambda g: True])
def test_gradients_may_be_arrays_and_numbers(value):
    """Promise 98."""
    x = ng.tensor(5.0, requires_grad=True)
    scaling(ng, None, lambda ctx, g: value(g.reshape(1))).apply(x).backward()
    assert x.grad.shape == ()
    assert x.grad.item() == 1.0


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (lambda g: g.sum(), RuntimeError, r"shape \(\) for input 0 of shape \(2,\)"),
        (lambda g: g[:0], RuntimeError, r"shape \(0,\) for input 0"),
        (lambda g: g * 1j, RuntimeError, "real part"),
        (lambda g: [g], (TypeError, RuntimeError), "list as the gradient of input 0"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(lib, raises, value, error, words):
    """Promise 98."""
    with raises(error, words):
        gradient_of(lib, lambda ctx, g: value(g))


def test_gradients_of_inputs_that_need_none_are_not_looked_at(lib):
    constant = lib.tensor([1.0])
    assert gradient_of(lib, lambda ctx, g: (g, g), constant).tolist() == [1.0, 1.0]


def test_the_gradient_given_is_not_changed_by_accumulation():
    seen = []
    x = leaf(ng)
    y = scaling(ng, None, lambda ctx, g: seen.append(g) or g).apply(x)
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert seen[0].tolist() == [1.0, 1.0]


# ---------------------------------------------------------------- promise 100: what is missing


def test_forward_must_be_there(lib, raises):
    """Promise 100."""
    f = type("F", (base(lib),), {})
    with raises(NotImplementedError, "F: has no forward"):
        f.apply(leaf(lib))


@pytest.mark.parametrize("create_graph", [False, True])
def test_backward_must_be_there_when_differentiated(lib, raises, create_graph):
    """Promise 100."""
    f = type("F", (base(lib),), {"forward": staticmethod(lambda ctx, x: x * 2)})
    x = leaf(lib)
    y = f.apply(x).sum()
    with raises(NotImplementedError, "F: has no backward"):
        lib.autograd.grad(y, x, create_graph=create_graph)


def test_backward_and_vjp_exclude_each_other(lib, raises):
    """Promise 100."""
    f = scaling(lib, vjp=staticmethod(lambda ctx, g: g))
    with raises(RuntimeError, "F: has both backward and vjp"):
        f.apply(leaf(lib)).sum().backward()


def test_vjp_is_another_name(lib):
    """Promise 100."""
    members = {
        "forward": staticmethod(lambda ctx, x: x * 2),
        "vjp": staticmethod(lambda ctx, g: g * 2),
    }
    x = leaf(lib)
    type("F", (base(lib),), members).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# --------------------------------------------------------- promise 101: gradients that are absent


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("materialize", [True, False])
def test_unused_outputs_get_zeros_unless_told_otherwise(lib, create_graph, materialize):
    """Promise 101."""
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        return x * 2, x.sum()

    def backward(ctx, g, h):
        seen.append(h)
        return g * 2

    x = leaf(lib)
    y, _ = scaling(lib, forward, backward).apply(x)
    lib.autograd.grad(y.sum(), x, create_graph=create_graph)
    if materialize:
        assert seen[0].shape == ()
        assert seen[0].item() == 0.0
    else:
        assert seen == [None]


# ----------------------------------------------------------------------- promise 107: None


@pytest.mark.parametrize("create_graph", [False, True])
def test_none_means_no_gradient(lib, create_graph):
    """Promise 107."""
    x, z = leaf(lib), leaf(lib)
    y = scaling(lib, lambda ctx, x, z: x + z, lambda ctx, g: (None, g)).apply(x * 2, z)
    with warnings.catch_warnings(action="ignore"):
        y.sum().backward(create_graph=create_graph)
    assert x.grad is None
    assert z.grad.tolist() == [1.0, 1.0]


def test_user_code_counts_nesting():
    seen = []

    def backward(ctx, g):
        seen.append(state.depth)
        return g

    x = leaf(ng)
    with user_code(True, None):
        scaling(ng, None, backward).apply(x).sum().backward()
    assert seen == [2]
    assert state.depth == 0


def test_errors_are_of_numgrad():
    with pytest.raises(NumgradNotImplementedError):
        Function.apply(1)
    for name in ("forward", "setup_context", "backward", "vjp", "jvp", "vmap"):
        with pytest.raises(NumgradNotImplementedError, match=f"{name}: this Function"):
            getattr(Function, name)()
