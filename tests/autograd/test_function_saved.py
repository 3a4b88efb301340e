"""What a Function saves, and second derivatives: promises 99 and 105 of SEMANTICS.md."""

import gc
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.function.function import Function, once_differentiable
from numgrad.errors import NumgradRuntimeError
from tests.autograd.functions import base, leaf, powers, scaling

# ------------------------------------------------------------------ promise 99: saved tensors


def saving(lib, *saved):
    """A Function that saves what ``saved`` makes of input and output, and hands it to a list."""
    seen = []

    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(*[choose(x, y) for choose in saved])
        return y

    def backward(ctx, g):
        seen.append(ctx.saved_tensors)
        return g * 2

    return scaling(lib, forward, backward), seen


@pytest.mark.parametrize("value", [3, "a", [1.0], np.ones(2)])
def test_only_tensors_are_saved(lib, raises, value):
    """Promise 99."""
    f, _ = saving(lib, lambda x, y: x, lambda x, y: value)
    with raises(TypeError, "F: ctx.save_for_backward takes Tensors, argument 1"):
        f.apply(leaf(lib))


def test_inputs_are_the_same_objects(lib):
    """Promise 99."""
    f, seen = saving(lib, lambda x, y: x, lambda x, y: None, lambda x, y: y, lambda x, y: x + 1)
    x = leaf(lib)
    y = f.apply(x)
    y.sum().backward()
    ((given, nothing, result, constant),) = seen
    assert given is x
    assert nothing is None
    assert result is not y
    assert result.tolist() == y.tolist()
    assert result.requires_grad
    assert result.grad_fn is y.grad_fn
    assert not constant.requires_grad
    assert constant.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("which", [0, 1])
def test_saved_tensors_are_version_checked(lib, raises, which):
    """Promise 99."""
    f, _ = saving(lib, lambda x, y: (x, y)[which])
    x = leaf(lib) * 1
    y = f.apply(x)
    (x, y)[which].mul_(2)
    with raises(RuntimeError, "FBackward: .* at version 0.* version 1"):
        y.sum().backward()


def test_only_what_is_saved_is_checked(lib):
    """Promise 99."""

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.save_for_backward(a)
        return a, b

    def backward(ctx, g, h):
        return ctx.saved_tensors[0] * (2 * g + 3 * h)

    x = leaf(lib)
    a, b = scaling(lib, forward, backward).apply(x)
    b.mul_(2)
    a.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [4.0, 8.0]
    a.mul_(2)
    with pytest.raises(RuntimeError, match="version"):
        a.sum().backward()


def test_what_is_not_read_is_not_checked(lib):
    """Promise 99."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib)
    y = x * 1
    z = scaling(lib, forward).apply(y)
    y.mul_(2)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_saved_tensors_are_freed_by_the_backward(lib, raises):
    """Promise 99."""
    kept = []

    def forward(ctx, x):
        kept.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    f = scaling(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    y = f.apply(leaf(lib)).sum()
    y.backward(retain_graph=True)
    y.backward()
    with raises(RuntimeError, "FBackward: .*retain_graph=True"):
        _ = kept[0].saved_tensors
    with raises(RuntimeError, "retain_graph=True"):
        y.backward()


def test_a_ctx_that_outlives_its_graph():
    """Promise 99."""
    kept = []
    scaling(ng, lambda ctx, x: kept.append(ctx) or x * 2).apply(leaf(ng))
    with pytest.raises(NumgradRuntimeError, match="the graph of this ctx is gone"):
        _ = kept[0].saved_tensors


def test_a_second_backward_where_nothing_was_saved(lib):
    """Promise 99."""
    x = leaf(lib)
    y = scaling(lib).apply(x)
    y.backward(lib.ones(2))
    y.backward(lib.ones(2))
    assert x.grad.tolist() == [4.0, 4.0]


def test_the_last_of_two_calls_counts(lib):
    """Promise 99."""
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        assert ctx.saved_tensors == ()
        ctx.save_for_backward(x, x)
        return x * 2

    scaling(lib, forward, lambda ctx, g: seen.append(len(ctx.saved_tensors))).apply(
        leaf(lib)
    ).sum().backward()
    assert seen == [2]


def test_hooks_pack_what_is_saved(lib):
    """Promise 99."""
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t

    def unpack(t):
        unpacked.append(t.tolist())
        return t

    f, seen = saving(lib, lambda x, y: x, lambda x, y: y, lambda x, y: None)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = f.apply(leaf(lib))
    assert packed == [[1.0, 2.0], [2.0, 4.0]]
    assert unpacked == []
    y.sum().backward()
    assert unpacked == packed
    assert [None if t is None else t.tolist() for t in seen[0]] == [*packed, None]


def test_what_hooks_unpack_has_its_place_in_the_graph(lib):
    """Promise 99."""
    x = leaf(lib, 2.0, 3.0) * 1
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1):
        y = powers(lib).apply(x, 4).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x)
    assert h.tolist() == [48.0, 108.0]


def test_needs_input_grad_is_a_tuple(lib):
    """Promise 99."""
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * 2

    scaling(lib, forward).apply(leaf(lib), 3, lib.tensor([1.0]), leaf(lib))
    with lib.no_grad():
        scaling(lib, forward).apply(leaf(lib))
    assert seen == [(True, False, False, True), (True,)]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_no_reference_cycles(which):
    """Promise 99."""
    choices = (lambda x, y: x, lambda x, y: y, lambda x, y: x * 3)
    f, _ = saving(ng, choices[which])
    gc.collect()
    gc.disable()
    try:
        y = f.apply(leaf(ng) * 1)
        node = weakref.ref(y.grad_fn)
        tensor = weakref.ref(y)
        del y
        assert node() is None
        assert tensor() is None
    finally:
        gc.enable()


def test_no_cycle_through_a_dirty_input():
    """Promise 99."""

    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    gc.collect()
    gc.disable()
    try:
        y = scaling(ng, forward).apply(leaf(ng) * 1)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_a_tensor_of_inference_mode_cannot_be_saved():
    """Promise 99."""
    with ng.inference_mode():
        t = ng.ones(2) * 1
    f, _ = saving(ng, lambda x, y: t)
    with pytest.raises(NumgradRuntimeError, match="inference mode"):
        f.apply(leaf(ng))


# ------------------------------------------------------------ promise 105: once differentiable


def sine(lib, seen=None):
    once = lib.autograd.function.once_differentiable

    class Sine(base(lib)):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @once
        def backward(ctx, g):
            if seen is not None:
                seen.append(lib.is_grad_enabled())
            return g * ctx.saved_tensors[0].cos()

    return Sine


def test_once_differentiable_runs_with_grad_mode_off(lib):
    """Promise 105."""
    seen = []
    x = leaf(lib)
    y = sine(lib, seen).apply(x).sum()
    lib.autograd.grad(y, x, create_graph=True)
    assert seen == [False]


def test_a_second_derivative_of_once_differentiable_raises(lib, raises):
    """Promise 105."""
    x, weight = leaf(lib), leaf(lib)
    y = sine(lib).apply(x)
    (g,) = lib.autograd.grad(y, x, weight, create_graph=True)
    np.testing.assert_allclose(g.tolist(), [np.cos(1.0), 2 * np.cos(2.0)], rtol=1e-15)
    with raises(RuntimeError, "Sine.backward: is marked once_differentiable"):
        g.sum().backward()


def test_it_raises_also_when_only_saved_tensors_are_differentiated():
    """Promise 105."""
    x = leaf(ng)
    (g,) = ng.autograd.grad(sine(ng).apply(x).sum(), x, create_graph=True)
    with pytest.raises(NumgradRuntimeError, match="once_differentiable"):
        ng.autograd.grad(g.sum(), x)


def test_paths_around_once_differentiable_stay_open(lib):
    """Promise 105."""
    x, z = leaf(lib), leaf(lib)
    y = sine(lib).apply(x) + z**3
    _gx, gz = lib.autograd.grad(y.sum(), (x, z), create_graph=True)
    (h,) = lib.autograd.grad(gz.sum(), z)
    assert h.tolist() == [6.0, 12.0]


def test_once_differentiable_backward_may_use_plain_numpy():
    """Promise 105."""

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.numpy()
            return ctx.x**3

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 3 * g.numpy() * ctx.x**2

    x = leaf(ng)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
    assert Cube.backward.__name__ == "backward"
