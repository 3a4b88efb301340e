"""What a Function returns: promises 57 and 102 to 104 of SEMANTICS.md."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradRuntimeError
from tests.autograd.functions import leaf, scaling

# ------------------------------------------------------------------------------- kinds of outputs


def test_values_that_are_no_tensors_come_back_as_they_are(lib):
    def forward(ctx, x, options):
        return x * 2, 7, "a", None, options

    def backward(ctx, *grads):
        assert grads[1:] == (None,) * 4
        return grads[0] * 2, None

    x, options = leaf(lib), {"b": 1}
    outputs = scaling(lib, forward, backward).apply(x, options)
    assert isinstance(outputs, tuple)
    assert outputs[1:4] == (7, "a", None)
    assert outputs[4] is options
    outputs[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_tuple_of_one_stays_a_tuple(lib):
    x = leaf(lib)
    outputs = scaling(lib, lambda ctx, x: (x * 2,)).apply(x)
    assert isinstance(outputs, tuple)
    assert len(outputs) == 1
    outputs[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("kind", [np.asarray, np.float64, lambda v: np.asarray(v)[None]])
def test_arrays_become_tensors(kind):
    x = leaf(ng, 2.0)
    f = scaling(ng, lambda ctx, x: kind(x.numpy().sum() * 2), lambda ctx, g: 2 * g.reshape(1))
    y = f.apply(x)
    assert isinstance(y, ng.Tensor)
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_arrays_over_the_memory_of_an_input_are_views():
    x = leaf(ng) * 1
    y = scaling(ng, lambda ctx, x: x.numpy()[::-1]).apply(x)
    assert y._base is x
    with pytest.raises(NumgradRuntimeError, match=r"clone\(\) from forward"):
        y.mul_(2)


def test_one_node_with_several_outputs(lib):
    def backward(ctx, g, h):
        return 2 * g + 3 * h

    x = leaf(lib)
    a, b = scaling(lib, lambda ctx, x: (x * 2, x * 3), backward).apply(x)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    (a * 10 + b).sum().backward()
    assert x.grad.tolist() == [23.0, 23.0]


def test_an_output_returned_twice_has_both_gradients():
    def forward(ctx, x):
        y = x * 2
        return y, y

    x = leaf(ng)
    a, b = scaling(ng, forward, lambda ctx, g, h: 2 * g + 2 * h).apply(x)
    (a * 3 + b).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


def test_integer_outputs_have_no_gradient(lib):
    def backward(ctx, g, h):
        assert h.tolist() == [0, 0]
        return g * 2

    x = leaf(lib)
    real, integer = scaling(lib, lambda ctx, x: (x * 2, x > 1), backward).apply(x)
    assert not integer.requires_grad
    assert integer.grad_fn is None
    real.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---------------------------------------------------------------------- promise 57: views


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: x[:1], lambda x: (x, x[1:])])
def test_views_that_a_function_returns_cannot_be_written_to(lib, raises, returned):
    """Promise 57."""
    f = scaling(lib, lambda ctx, x: returned(x), lambda ctx, *g: None)
    y = f.apply(leaf(lib) * 1)
    y = y[-1] if isinstance(y, tuple) else y
    assert y._is_view()
    with raises(RuntimeError, r"index the base|clone\(\) from forward"):
        y.mul_(2)
    assert y.tolist()[-1] in (1.0, 2.0)


def test_values_of_its_own_can_be_written_to(lib):
    """Promise 57."""
    x = leaf(lib)
    y = scaling(lib).apply(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


# ------------------------------------------------------------------- promise 102: dirty inputs


def doubling_in_place(lib):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    return scaling(lib, forward)


def test_a_dirty_input_has_a_new_history(lib):
    """Promise 102."""
    x = leaf(lib)
    z = x * 3
    y = doubling_in_place(lib).apply(z)
    assert y is z
    assert z.grad_fn.name() == "FBackward"
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_views_of_a_dirty_input_follow(lib):
    """Promise 102."""
    x = leaf(lib)
    z = x * 3
    view = z[:1]
    doubling_in_place(lib).apply(z)
    view.sum().backward()
    assert x.grad.tolist() == [6.0, 0.0]


def test_a_dirty_view_rewrites_its_base(lib):
    """Promise 102."""
    x = leaf(lib)
    z = x * 3
    view = z[:1]
    y = doubling_in_place(lib).apply(view)
    assert y is view
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 3.0]


def test_a_dirty_constant_joins_the_graph(lib):
    """Promise 102."""

    def forward(ctx, buffer, x):
        buffer.add_(x)
        ctx.mark_dirty(buffer)
        return buffer

    buffer, x = lib.zeros(2), leaf(lib)
    scaling(lib, forward, lambda ctx, g: (g, g)).apply(buffer, x)
    assert buffer.requires_grad
    (buffer * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_retained_gradients_follow_a_dirty_input(lib):
    """Promise 102."""
    z = leaf(lib) * 3
    z.retain_grad()
    doubling_in_place(lib).apply(z)
    (z * 5).sum().backward()
    assert z.grad.tolist() == [5.0, 5.0]


def test_a_dirty_output_can_be_saved(lib):
    """Promise 102."""

    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    x = leaf(lib, 0.0, 1.0)
    y = scaling(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 1)
    y.sum().backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.tolist(), np.exp([0.0, 1.0]), rtol=1e-15)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="version"):
        y.sum().backward()


def test_a_dirty_view_can_be_saved():
    """Promise 102."""

    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    x = leaf(ng, 0.0, 1.0)
    z = x * 1
    scaling(ng, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(z[1:])
    z.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0, np.e], rtol=1e-15)


def test_marking_dirty_counts_as_a_write(lib):
    """Promise 102."""

    def unseen(ctx, x):
        x.detach().numpy()[...] = 7.0
        ctx.mark_dirty(x)
        return x

    z = leaf(lib) * 1
    w = z * z
    scaling(lib, unseen).apply(z)
    assert z._version == 1
    assert z.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="version"):
        w.sum().backward()


def test_in_no_grad_a_dirty_input_keeps_its_history(lib):
    """Promise 102."""
    z = leaf(lib) * 1
    node = z.grad_fn
    with lib.no_grad():
        y = doubling_in_place(lib).apply(z)
    assert z.grad_fn is node
    assert z.tolist() == [2.0, 4.0]
    assert not y.requires_grad
    assert y.tolist() == [2.0, 4.0]


def test_a_leaf_cannot_be_dirty(lib, raises):
    """Promise 102."""
    with raises(RuntimeError, "F: ctx.mark_dirty: .* is a leaf"):
        doubling_in_place(lib).apply(leaf(lib))
    with raises(RuntimeError, "a view of a leaf"):
        doubling_in_place(lib).apply(leaf(lib)[:1])


def test_only_inputs_can_be_dirty(lib):
    """Promise 102."""

    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    x = leaf(lib)
    with pytest.warns(UserWarning, match="mark_dirty") as caught:
        y = scaling(lib, forward).apply(x)
    assert caught[0].filename == __file__ or lib is not ng
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_dirty_input_must_be_returned(lib, raises):
    """Promise 102."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    with raises(RuntimeError, "marked dirty, but forward does not return it"):
        scaling(lib, forward).apply(leaf(lib) * 1)


def test_only_tensors_can_be_dirty(lib, raises):
    """Promise 102."""
    with raises((TypeError, RuntimeError), "ctx.mark_dirty takes Tensors"):
        scaling(lib, lambda ctx, x: ctx.mark_dirty(3) or x * 2).apply(leaf(lib))


# --------------------------------------------------------- promise 103: not differentiable


def test_marked_outputs_get_zeros(lib):
    """Promise 103."""
    seen = []

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        ctx.save_for_backward(b)
        return a, b

    def backward(ctx, g, h):
        seen.append((h.tolist(), ctx.saved_tensors[0].requires_grad))
        return g * 2

    x = leaf(lib)
    a, b = scaling(lib, forward, backward).apply(x)
    assert not b.requires_grad
    assert b.grad_fn is None
    (a + b).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert seen == [([0.0, 0.0], False)]


def test_a_marked_input_is_detached(lib):
    """Promise 103."""
    x = leaf(lib)
    y = scaling(lib, lambda ctx, x: ctx.mark_non_differentiable(x) or x).apply(x)
    assert y is not x
    assert not y.requires_grad
    assert not y._is_view()
    assert x.requires_grad
    y.mul_(1)
    assert x._version == 1


def test_a_marked_dirty_input_is_detached(lib):
    """Promise 103."""

    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x, x * 3

    z = leaf(lib) * 1
    y, _ = scaling(lib, forward, lambda ctx, g, h: 3 * h).apply(z)
    assert not y.requires_grad
    assert y.tolist() == z.tolist() == [2.0, 4.0]


# ------------------------------------------------------- promise 104: an input as it came


def test_an_input_as_it_came_is_returned_as_a_new_tensor(lib):
    """Promise 104."""
    x = leaf(lib)
    seen = []
    y = scaling(lib, lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert y._base is x
    assert y.grad_fn.name() == "FBackward"
    assert x.grad_fn is None
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y + x * 10).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]
    assert seen == [[1.0, 1.0]]


def test_writes_to_a_returned_input_go_through_without_a_graph(lib):
    """Promise 104."""
    x = lib.ones(2)
    y = scaling(lib, lambda ctx, x: x).apply(x)
    assert y is not x
    assert y._is_view()
    y.mul_(2)
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("part", [slice(None), slice(1, 2)])
def test_later_writes_to_an_input_reach_what_was_returned_of_it(part):
    """Promise 104."""
    x, w = ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0], requires_grad=True)
    for forward in (lambda ctx, x: x, lambda ctx, x: x[part], lambda ctx, x: x.numpy()[part]):
        x = ng.tensor([1.0, 2.0])
        y = scaling(ng, forward).apply(x)
        assert not y.requires_grad
        x.mul_(w)  # PyTorch refuses to use y from here on
        expected = np.zeros(2)
        expected[part if y.size == 1 else slice(None)] = [2.0] if y.size == 1 else [1.0, 2.0]
        (found,) = ng.autograd.grad(y.sum(), w)
        np.testing.assert_array_equal(found, expected)
        y = scaling(ng, forward).apply(x.detach())
        y.mul_(w[: y.size])
        assert y.requires_grad


def test_results_recorded_inside_forward_are_cut_off(lib):
    def forward(ctx, x):
        with lib.enable_grad():
            return x * 2

    x = leaf(lib)
    y = scaling(lib, forward, lambda ctx, g: g * 7).apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_a_captured_leaf_stays_one():
    w = leaf(ng)
    y = scaling(ng, lambda ctx, x: w).apply(leaf(ng))
    assert y is not w
    assert w.is_leaf
    assert y.grad_fn.name() == "FBackward"
