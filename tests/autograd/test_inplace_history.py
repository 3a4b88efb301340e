"""In-place operations under grad modes, on saved values, and every method of the table."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.operations.special_functions.declare import SpecialFunction
from numgrad.tensors.inplace import OTHERS, has_inplace_form, inplace, inplace_names
from numgrad.testing.samples import draw
from tests.autograd.writing import leaf, same_gradients, weighted
from tests.operations.cases import EVERY_LAYOUT, turn
from tests.operations.reference import ELEMENTWISE, by_name

# --------------------------------------------------------------------------------- grad modes


def test_step_of_gradient_descent():
    p = leaf(3)
    start = p.detach().numpy().copy()
    (p * p).sum().backward()
    identity = p
    with ng.no_grad():
        p -= 0.1 * p.grad
        p[0] += 1.0
        p[1:].mul_(2.0)
    assert p is identity
    assert p.is_leaf
    assert p.requires_grad
    expected = 0.8 * start
    expected[0] += 1
    expected[1:] *= 2
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-14)
    p.grad *= 0.5
    p.grad.zero_()
    (p * p).sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), 2 * expected)


def test_views_of_a_detached_tensor():
    p = leaf(3)
    d = p.detach()
    loss = (p * p).sum()
    d[:2].fill_(7.0)
    assert p.tolist()[:2] == [7.0, 7.0]
    assert p.is_leaf
    with pytest.raises(ng.NumgradRuntimeError, match="version 1"):
        loss.backward()
    view = d[1:]
    view.mul_(leaf())  # the detached tensor joins a graph, the leaf does not
    assert d.requires_grad
    assert p.is_leaf


def test_value_changed_in_no_grad_keeps_its_history():
    a = leaf(3)
    x = a * 2.0
    with ng.no_grad():
        x[0] = 100.0
    x.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]
    assert x[0].item() == 100.0


def test_view_made_in_no_grad_stays_a_constant():
    a = leaf(3)
    x = a * 2.0
    with ng.no_grad():
        view = x[:2]
    x.mul_(3.0)
    assert not view.requires_grad
    assert repr(view).endswith("grad_fn=<Invalid>)")
    np.testing.assert_array_equal(view.numpy(), x[:2].detach().numpy())


def test_view_of_a_base_that_was_written_to_and_detached():
    x = leaf(3) * 1.0
    view = x[:2]
    x.mul_(2.0)
    x.detach_()
    assert not view.requires_grad
    assert view.sum().grad_fn is None


def test_inference_mode():
    with ng.inference_mode():
        x = ng.ones(3) * 0.5
        x.add_(0.5)
        x[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 1.0]
    for write in (lambda: x.add_(1.0), lambda: x.__setitem__(0, 1.0), lambda: x[:2].zero_()):
        with pytest.raises(ng.NumgradRuntimeError, match="inference mode"):
            write()
    assert x.tolist() == [5.0, 1.0, 1.0]


# ------------------------------------------------------------------------------- saved values


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "exp", "tanh", "log1p", "arctan"])
def test_rare_arguments(name):
    """Some kernels look at their operands again for arguments of extreme size."""
    array = np.array([1e300, 1e22, 0.5, 1e-310, 3e5] * 5)
    x = ng.tensor(array)
    getattr(x, f"{name}_")()
    np.testing.assert_array_equal(x.numpy(), getattr(ng, name)(ng.tensor(array)).numpy())


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "sigmoid"])
def test_saved_result_of_an_in_place_operation_was_changed(name):
    for where in (slice(None), slice(1, 3)):
        x = leaf(4) * 0.9
        getattr(x[where], f"{name}_")()
        total = x.sum()
        x[:1].add_(1.0)  # shares the version, if not the memory
        with pytest.raises(ng.NumgradRuntimeError, match="its own result"):
            total.backward()


@pytest.mark.parametrize("name", ["sin", "log", "abs", "cos"])
def test_saved_operand_of_an_in_place_operation_is_kept(name):
    def written(a):
        x = a * 1.0
        getattr(x, f"{name}_")()
        return x.mul_(3.0).add_(1.0)

    array = np.linspace(0.3, 1.0, 4)
    same_gradients(written, lambda a: getattr(ng, name)(a) * 3.0 + 1.0, array)


def test_operands_saved_by_in_place_operations():
    """The target is kept as it was, another operand is checked."""
    x, b = leaf(3) * 1.0, leaf(3, seed=1) * 1.0
    x.mul_(b)
    x.add_(1.0)
    total = x.sum()
    b.add_(1.0)
    with pytest.raises(ng.NumgradRuntimeError, match=r"MultiplyBackward.*version 1"):
        total.backward()


def test_second_derivatives():
    a = leaf(3)

    def third(x):
        x = x * 1.0
        x.mul_(x).mul_(a)
        x[1:].sin_()
        x[:1] = x[1:2].clone() * x[:1].clone()
        return x.sum()

    assert ng.testing.gradgradcheck(third, [leaf(3, seed=5)])


# ------------------------------------------------------------------------------------- the table


def test_methods_exist():
    for op in [op for op in OPS.values() if has_inplace_form(op)]:
        for name in inplace_names(op):
            method = getattr(ng.Tensor, name)
            assert method.__name__ in inplace_names(op), op.name
            assert op.name in method.__doc__, op.name
        assert f"{op.name}_" in inplace_names(op), op.name


def test_methods_exist_for_what_keeps_the_shape():
    assert all(has_inplace_form(op) for op in ELEMENTWISE if op.method and not op.internal)
    assert {op.name for op in OPS.values() if has_inplace_form(op)} >= set(OTHERS)
    assert not hasattr(ng.Tensor, "matmul_")


def table_operands(op):
    """Operands of one call, the first of which has the result's shape."""
    drawn = [draw(op, shape, float, k) for k, shape in enumerate([(3, 4), (4,), (3, 1)])]
    return drawn[: len(op.inputs)]


def takes_floats(op):
    try:
        op.result_types([np.dtype(float)] * len(op.inputs))
    except ng.NumgradTypeError:
        return False
    return True


# special functions are no methods, so they have no form in place
PUBLIC = [op for op in ELEMENTWISE if not op.internal and not isinstance(op, SpecialFunction)]
FLOATING = [op for op in PUBLIC if takes_floats(op)]
INTEGER = [op for op in PUBLIC if not takes_floats(op)]
PLACES = {
    "root": (0, lambda t: t),
    "rows": (((1, 1), (0, 0)), lambda t: t[1:-1]),
    "strided": (((0, 0), (1, 1)), lambda t: t[::-1, 1:-1]),
}


SWEPT = [
    (op, place)
    for op in FLOATING
    for k, place in enumerate(PLACES)
    if op.name in EVERY_LAYOUT or turn(op) % len(PLACES) == k
]


@pytest.mark.slow
@pytest.mark.parametrize(("op", "place"), SWEPT, ids=[f"{op.name}-{place}" for op, place in SWEPT])
def test_in_place_form_of_elementwise_operations(op, place):
    """Some operations in all places, each of the others, whose loops are the same, in one."""
    padding, part = PLACES[place]
    first, *others = table_operands(op)
    arrays = [np.pad(first, padding, mode="edge") if padding else first, *others]

    def written(a, *rest):
        x = a * 1.0
        target = part(x)
        assert inplace(op, f"{op.name}_", target, rest, {}) is target
        return x

    def functional(a, *rest):
        x = part(a * 1.0)
        new = op(x, *rest) + 0.0 * x  # a comparison is part of no graph, what it is written to is
        at = part(np.arange(a.size).reshape(a.shape))
        return ng.put(a * 1.0, at, new)

    leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
    found = []
    for function in (written, functional):
        out = function(*leaves)
        grads = ng.autograd.grad(weighted(out), leaves, materialize_grads=True)
        found.append([t.detach().numpy() for t in (out, *grads)])
    for actual, expected in zip(*found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-14, strict=True)


@pytest.mark.parametrize("op", **by_name(INTEGER))
def test_in_place_form_of_integer_operations(op):
    args = [np.array([6, 5, 12]), np.array([1, 2, 3])][: len(op.inputs)]
    x = ng.tensor(args[0])
    assert getattr(x, f"{op.name}_")(*args[1:]) is x
    np.testing.assert_array_equal(x.numpy(), op(*args).numpy(), strict=True)


OTHER_CALLS = {
    "clip": lambda v: ((0.8, 1.2), {}),
    "round": lambda v: ((), {"decimals": 1}),
    "nan_to_num": lambda v: ((), {}),
    "deg2rad": lambda v: ((), {}),
    "rad2deg": lambda v: ((), {}),
    "cumsum": lambda v: ((), {"axis": 1}),
    "cumprod": lambda v: ((), {"axis": 0}),
    "tril": lambda v: ((), {}),
    "triu": lambda v: ((), {"k": 1}),
    "index_add": lambda v: (([2, 0], v[:2]), {"axis": 0}),
    "index_copy": lambda v: (([2, 0], v[:2]), {"axis": 0}),
    "index_fill": lambda v: (([2, 0], v[0, 0]), {"axis": 0}),
    "index_put": lambda v: ((v[:2],), {"index": [2, 0]}),
    "scatter": lambda v: (([[0, 1, 2, 2]], v), {"axis": 0}),
    "scatter_add": lambda v: (([[0, 1, 2, 2]], v), {"axis": 0}),
    "masked_fill": lambda v: ((np.eye(3, 4, dtype=bool), v[0, 0]), {}),
    "masked_scatter": lambda v: ((np.eye(3, 4, dtype=bool), v), {}),
    "put": lambda v: (([1, -1], v[0, :2]), {}),
}


@pytest.mark.parametrize("place", ["root", "view"])
@pytest.mark.parametrize("name", OTHERS)
def test_in_place_form_of_other_operations(name, place):
    def written(a, v):
        x = a * 1.0
        target = x if place == "root" else x[1:]
        args, params = OTHER_CALLS[name](v)
        assert getattr(target, f"{name}_")(*args, **params) is target
        return target + 0.0 * v.sum()

    def functional(a, v):
        args, params = OTHER_CALLS[name](v)
        return OPS[name](a if place == "root" else a[1:], *args, **params) + 0.0 * v.sum()

    rng = np.random.default_rng(9)
    shape = (3, 4) if place == "root" else (4, 4)
    same_gradients(written, functional, rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 1.5, (3, 4)))


def test_views_of_views_that_cannot_be_written_to():
    """Promise 57: nor can a view of one; a write would reach a leaf, or miss a Function."""

    class Reversed(ng.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2]

        @staticmethod
        def backward(ctx, g):
            return None

    base = ng.ones(3, requires_grad=True) * 1
    plain = ng.zeros(2)
    with ng.no_grad():
        leaf = plain.reshape(2)
    leaf.requires_grad_()
    for view, words in (
        (ng.unstack(base.reshape(3, 1))[0].reshape(1, 1), "several views"),
        (Reversed.apply(base)[:1], "ReversedBackward"),
        (leaf[:1], "a view made under"),
    ):
        with pytest.raises(RuntimeError, match=words):
            view.mul_(2)
    base[1:][:1].mul_(2)
    assert base.tolist() == [1.0, 2.0, 1.0]
