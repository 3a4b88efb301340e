"""In-place operations: section 3 of SEMANTICS.md, promise by promise, and their hooks.

Tests with ``lib`` hold in PyTorch, too.
"""

import numpy as np
import pytest

import numgrad as ng

# ---------------------------------------------------------------- section 3, promise by promise


def test_versions_are_shared(lib):
    """Promise 48."""
    x = lib.zeros(4)
    view, detached = x[:2], x.detach()
    assert x._version == 0
    view.add_(1.0)
    detached.mul_(2.0)
    with lib.no_grad():
        x[0] = 3.0
    assert x._version == view._version == detached._version == view.detach()._version == 3
    lib.autograd.graph.increment_version(x)
    assert view._version == 4
    assert x.clone()._version == 0


def test_every_operation_counts_once(lib):
    """Promise 48."""
    x = lib.ones(4)
    writes = [
        lambda: x.add_(1.0),
        lambda: x[::2].exp_(),
        lambda: x.fill_(1.0),
        lambda: x.zero_(),
        lambda: x.copy_(lib.ones(4)),
        lambda: x.__setitem__(slice(1, 3), 2.0),
        lambda: x.__setitem__([0, 2], 2.0),
        lambda: x.__setitem__(x > 1.0, 0.5),
        lambda: x.__iadd__(lib.ones(4)),
        lambda: x.clamp_(0.0, 1.0),
    ]
    for number, write in enumerate(writes, start=1):
        write()
        assert x._version == number


def test_a_leaf_that_requires_grad_cannot_be_written_to(lib, raises):
    """Promise 49."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    for write in (lambda: x.add_(1.0), lambda: x.zero_(), lambda: x.copy_(lib.ones(2))):
        with raises(RuntimeError, "a leaf that requires grad"):
            write()
    assert x._version == 0
    with lib.no_grad():
        x.mul_(3.0)
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [3.0, 6.0]
    v = lib.zeros(3)[:2].requires_grad_()  # a leaf that is a view
    with raises(RuntimeError, "a leaf that requires grad"):
        v.add_(1.0)


def test_nor_can_a_view_of_such_a_leaf(lib, raises):
    """Promise 50."""
    x = lib.ones(3, requires_grad=True)
    with raises(RuntimeError, "a view of a leaf"):
        x[:2].mul_(2.0)
    with raises(RuntimeError, "a view of a leaf"):
        x[0] = 1.0
    late = lib.zeros(3)
    early = late[:2]
    late.requires_grad_()
    with raises(RuntimeError, "a view of a leaf"):  # made before the base required grad
        early[0] = 1.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert late.is_leaf


def test_a_changed_saved_tensor_raises(lib):
    """Promise 51."""
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    b = a.clone()
    out = b.sin().sum()
    b[:1].add_(1.0)
    with pytest.raises(RuntimeError, match="version 1") as caught:
        out.backward()
    if lib is ng:
        for words in ("SinBackward", r"(2,)", "CopySlicesBackward", "version 0", "detect_anomaly"):
            assert words in str(caught.value)


def test_a_changed_saved_leaf_raises(lib):
    """Promise 51."""
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    out = (a * a).sum()
    with lib.no_grad():
        a.add_(1.0)
    with pytest.raises(RuntimeError, match="leaf" if lib is ng else None):
        out.backward()


def test_only_what_is_needed_is_saved(lib):
    """Promise 52."""
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    b, c = a * 2.0, lib.ones(2)
    out = (b + c).sum() + (b * 3.0).sum() + (b - c).sum() + (c * 4.0).sum()
    b.zero_()
    c.zero_()
    out.backward()
    assert a.grad.tolist() == [10.0, 10.0]


RESULT_SAVED = ("exp", "sqrt", "tanh", "sigmoid")
OPERAND_SAVED = ("sin", "log", "abs", "cos")


@pytest.mark.parametrize("name", RESULT_SAVED + OPERAND_SAVED)
def test_unary_operations_save_operand_or_result(lib, name):
    """Promise 53."""
    a = lib.tensor([0.5, 0.7], requires_grad=True)
    x = a * 1.0
    y = getattr(lib, name)(x)
    getattr(lib, name)(x).sum().backward(retain_graph=True)  # both are as they were
    expected, a.grad = a.grad.tolist(), None
    changed, kept = (y, x) if name in RESULT_SAVED else (x, y)
    kept.mul_(3.0)
    y.sum().backward(retain_graph=True)
    scale = 1.0 if kept is x else 3.0  # a change of the result is part of its history
    np.testing.assert_allclose(a.grad.tolist(), scale * np.array(expected), rtol=1e-13)
    total = y.sum()
    changed.mul_(2.0)
    with pytest.raises(RuntimeError):
        total.backward()


def test_products_and_reductions_save_what_they_need(lib):
    """Promise 53."""
    a = lib.tensor([2.0, 5.0], requires_grad=True)
    for combine in (lambda x, y: x * y, lambda x, y: x / y):
        for number in (0, 1):
            pair = [a * 1.0, a * 2.0]
            out = combine(*pair).sum()
            pair[number].add_(1.0)
            with pytest.raises(RuntimeError):
                out.backward()
    x = a * 1.0
    out = (x + x * 1.0).sum()
    x.add_(1.0)  # a sum saves nothing
    out.backward()
    x = a * 1.0
    out = x.max()
    x.add_(1.0)
    with pytest.raises(RuntimeError):
        out.backward()


def test_a_write_through_a_view_rewrites_history(lib):
    """Promise 54."""
    a = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = lib.tensor(5.0, requires_grad=True)
    x = a * 2.0
    view, other = x[:2], x[1:]
    view.mul_(b)
    assert "CopySlices" in x.grad_fn.name()
    assert view.grad_fn is not None
    assert view.grad_fn.name() != x.grad_fn.name()
    (x.sum() + 10.0 * other.sum()).backward()
    assert a.grad.tolist() == [10.0, 110.0, 22.0]
    assert b.grad.item() == 2.0 + 4.0 + 40.0


def test_gradients_of_overwritten_parts_are_zero(lib):
    """Promise 54."""
    a = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = a * 2.0
    x[1] = 7.0
    x[2:] = x[0]
    x.sum().backward()
    assert a.grad.tolist() == [4.0, 0.0, 0.0]


@pytest.mark.parametrize("made_by", ["unstack", "split"])
def test_one_of_several_views_cannot_be_written_to(lib, raises, made_by):
    """Promise 55."""
    x = lib.ones((2, 2), requires_grad=True) * 1.0
    if lib is ng:
        parts = ng.unstack(x) if made_by == "unstack" else ng.split(x, 2)
    else:
        parts = x.unbind() if made_by == "unstack" else x.split(1)
    with raises(RuntimeError, "one of several views"):
        parts[0].mul_(2.0)
    with raises(RuntimeError, "one of several views"):
        parts[1][0] = 2.0
    assert x._version == 0
    with lib.no_grad():
        parts[0].mul_(2.0)
    assert x.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_a_view_from_no_grad_cannot_be_written_to(lib, raises):
    """Promise 56."""
    for base in (lib.ones(3, requires_grad=True) * 1.0, lib.ones(3)):
        with lib.no_grad():
            view = base[:2]
        with raises(RuntimeError, "under no_grad"):
            view.mul_(lib.tensor(2.0, requires_grad=True))
        with raises(RuntimeError, "under no_grad"):
            view[:1][0] = lib.tensor(2.0, requires_grad=True)
        assert base._version == 0
        with lib.no_grad():
            view.mul_(2.0)
        assert base.tolist() == [2.0, 2.0, 1.0]
    leaf = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        view = leaf[:2]
    with raises(RuntimeError, "under no_grad"):
        view.fill_(0.0)


def test_a_view_that_a_function_returned_cannot_be_written_to(lib, raises):
    """Promise 57."""

    class Narrow(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2]

        @staticmethod
        def backward(ctx, g):
            return lib.concat([g, lib.zeros(1)])

    x = lib.ones(3, requires_grad=True) * 1.0
    with raises(RuntimeError, "function of yours"):
        Narrow.apply(x).mul_(2.0)


def test_an_expanded_tensor_cannot_be_written_to(lib, raises):
    """Promise 58."""
    x = lib.ones((3, 1))
    wide = lib.broadcast_to(x, (3, 4))
    with raises(RuntimeError, "several times"):
        wide.add_(1.0)
    with raises(RuntimeError, "several times"):
        wide[0].add_(1.0)
    if lib is ng:  # PyTorch writes through a part that shows each element once
        with raises(RuntimeError, "read-only"):
            wide[:, 0].add_(1.0)
    assert x._version == 0


def test_a_view_cannot_be_detached_in_place(lib, raises):
    """Promise 59."""
    a = lib.ones(3, requires_grad=True)
    x = a * 2.0
    view = x[:2]
    with raises(RuntimeError, "detach_: the tensor is a view"):
        view.detach_()
    assert x.detach_() is x
    assert x.is_leaf
    assert not x.requires_grad
    assert view.requires_grad
    view.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 0.0]


def test_out_does_not_record(lib, raises):
    """Promise 60."""
    a, out = lib.ones(2, requires_grad=True), lib.zeros(2)
    add = np.add if lib is ng else lib.add
    with raises(RuntimeError, "out="):
        add(a, a, out=out)
    with lib.no_grad():
        add(a, a, out=out)
    assert out.tolist() == [2.0, 2.0]
    assert not out.requires_grad
    assert out._version == 1


def test_assignment_makes_part_of_the_graph(lib):
    """Promise 61."""
    y = lib.ones(5, requires_grad=True)
    x = lib.zeros((5, 5))
    row = x[1]
    x[0] = y
    assert x.requires_grad
    assert not x.is_leaf
    assert row.requires_grad  # also a view made before
    (2.0 * x + x[0]).sum().backward()
    assert y.grad.tolist() == [7.0] * 5


def test_a_view_of_a_view_has_the_root_as_base(lib):
    """Promise 62."""
    x = lib.zeros((4, 4))
    view = x[1:]
    assert x._base is None
    assert not x._is_view()
    assert view._base is x
    assert view.reshape(-1)[2:][0]._base is x
    assert view._is_view()
    assert not view.clone()._is_view()
    assert not x.detach()._is_view()


def test_saved_tensors_may_be_changed_if_allowed(lib):
    """Promise 63."""
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.tensor([1.0, 2.0], requires_grad=True)
        b = a.clone()
        out = (b * b).sum() + b.exp().sum()
        b.sin_()
        b[0] = 100.0
        (out + b.sum()).backward()
    np.testing.assert_allclose(
        a.grad.tolist(), [2.0 + np.exp(1.0), 4.0 + np.exp(2.0) + np.cos(2.0)], rtol=1e-13
    )


def test_so_may_saved_results():
    """Promise 63."""
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        a = ng.tensor([1.0, 2.0], requires_grad=True)
        y = (a * 1.0).exp_()
        y.mul_(y)
        y.zero_()
        out = (a * 1.0).exp_()
        (y + out.mul_(3.0)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 3 * np.exp([1.0, 2.0]), rtol=1e-14)


# --------------------------------------------------------------------- hooks and retained gradients


def test_a_retained_gradient_follows_writes(lib):
    """Promise 79."""
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    x = a * 2.0
    view = x[:1]
    x.retain_grad()
    view.retain_grad()
    x.mul_(3.0)
    ((x * 5.0).sum() + (view * 7.0).sum()).backward()
    assert x.grad.tolist() == [12.0, 5.0]
    assert view.grad.tolist() == [7.0]
    assert a.grad.tolist() == [72.0, 30.0]


def test_a_retained_gradient_of_a_base_follows_writes_to_a_view(lib):
    """Promise 79."""
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    x = a * 2.0
    x.retain_grad()
    x[:1].mul_(3.0)
    x[1] = 5.0
    (x * 5.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert a.grad.tolist() == [30.0, 0.0]


def test_hooks_stay_with_their_version(lib):
    """Promise 80."""
    a = lib.tensor([1.0], requires_grad=True)
    x = a.clone()
    seen = []

    def doubling(name):
        return lambda g: (seen.append((name, g.item())), g * 2.0)[1]

    x.register_hook(doubling("old"))
    x.mul_(1.0)
    x.register_hook(doubling("new"))
    x.add_(0.0)
    x.register_hook(doubling("newest"))
    x.sum().backward()
    assert seen == [("newest", 1.0), ("new", 2.0), ("old", 4.0)]
    assert a.grad.item() == 8.0


def test_hooks_of_a_base_and_its_views(lib):
    a = lib.ones(3, requires_grad=True)
    x = a * 1.0
    view = x[:2]
    seen = []
    x.register_hook(lambda g: seen.append(("before", g.tolist())))
    view.mul_(2.0)
    x.register_hook(lambda g: seen.append(("after", g.tolist())))
    view.register_hook(lambda g: seen.append(("view", g.tolist())))
    (x.sum() + view.sum()).backward()
    assert seen == [
        ("view", [1.0, 1.0]),
        ("after", [2.0, 2.0, 1.0]),
        ("before", [4.0, 4.0, 1.0]),
    ]
