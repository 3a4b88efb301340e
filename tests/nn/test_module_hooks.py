"""Hooks of modules: their order (SEMANTICS.md, promise 82), what they may change, their removal."""

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn


def everywhere(lib):
    """Where the hooks of all modules are registered."""
    return nn if lib is ng else lib.nn.modules.module


class Removed(list):
    """Handles that are removed at the end of the block."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for handle in self:
            handle.remove()


def layer(lib, factor=2.0):
    class Times(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = lib.nn.Parameter(lib.tensor(factor))

        def forward(self, x, offset=0.0):
            return x * self.factor + offset

    return Times()


def test_hooks_run_in_order(lib):
    """Promise 82."""
    model = layer(lib)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    def note(what):
        return lambda *args: seen.append(what)

    glob = everywhere(lib)
    with Removed() as handles:
        handles += [
            model.register_full_backward_hook(note("backward")),
            model.register_full_backward_pre_hook(note("backward_pre")),
            model.register_forward_hook(note("forward")),
            model.register_forward_pre_hook(note("forward_pre")),
            glob.register_module_full_backward_hook(note("all backward")),
            glob.register_module_full_backward_pre_hook(note("all backward_pre")),
            glob.register_module_forward_hook(note("all forward")),
            glob.register_module_forward_pre_hook(note("all forward_pre")),
            model.factor.register_hook(note("parameter")),
            x.register_hook(note("input")),
        ]
        y = model(x)
        assert seen == ["all forward_pre", "forward_pre", "all forward", "forward"]
        seen.clear()
        y.sum().backward()
    assert seen == [
        "all backward_pre",
        "backward_pre",
        "parameter",
        "all backward",
        "backward",
        "input",
    ]
    seen.clear()
    model(x).sum().backward()
    assert seen == []
    np.testing.assert_array_equal(x.grad, [4.0, 4.0])


def test_prepended_hooks_run_first(lib):
    model = layer(lib)
    x = lib.ones(2, requires_grad=True)
    seen = []
    for register in (
        model.register_forward_pre_hook,
        model.register_forward_hook,
        model.register_full_backward_pre_hook,
        model.register_full_backward_hook,
    ):
        kind = register.__name__
        register(lambda *args, kind=kind: seen.append((kind, 1)))
        register(lambda *args, kind=kind: seen.append((kind, 2)))
        register(lambda *args, kind=kind: seen.append((kind, 0)), prepend=True)
    model(x).sum().backward()
    assert [number for _, number in seen] == [0, 1, 2] * 4


def test_forward_hooks_change_arguments_and_results(lib):
    model, x = layer(lib), lib.tensor([1.0, 2.0])
    with model.register_forward_pre_hook(lambda module, args: args[0] + 1):
        np.testing.assert_array_equal(model(x).detach(), [4.0, 6.0])
    with model.register_forward_pre_hook(lambda module, args: (args[0] + 1, 1.0)):
        np.testing.assert_array_equal(model(x).detach(), [5.0, 7.0])
    with model.register_forward_hook(lambda module, args, result: result * 10):
        np.testing.assert_array_equal(model(x).detach(), [20.0, 40.0])
    np.testing.assert_array_equal(model(x).detach(), [2.0, 4.0])


def test_forward_hooks_with_keyword_arguments(lib, raises):
    model, x, seen = layer(lib), lib.tensor(1.0), []
    with model.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"offset": kwargs["offset"] + 1}), with_kwargs=True
    ):
        assert model(x, offset=1.0) == 4
    with model.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True):
        assert model(x, offset=1.0) == 3
    with (
        model.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True),
        raises(RuntimeError, "tuple of the new args and kwargs"),
    ):
        model(x)
    with model.register_forward_hook(
        lambda module, args, kwargs, result: seen.append(kwargs), with_kwargs=True
    ):
        model(x, offset=1.0)
    assert seen == [{"offset": 1.0}]
    with everywhere(lib).register_module_forward_hook(
        lambda module, args, kwargs, result: seen.append(kwargs), with_kwargs=True
    ):
        model(x, offset=2.0)
    assert seen[1:] == [{"offset": 2.0}]


def test_hooks_that_are_always_called(lib):
    class Fails(lib.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    model, seen = Fails(), []
    model.register_forward_hook(lambda m, args, result: seen.append(result), always_call=True)
    model.register_forward_hook(lambda m, args, result: seen.append("not called"))
    with pytest.raises(ValueError, match="no"):
        model(1)
    assert seen == [None]

    def fails_too(module, args, result):
        raise KeyError("hook")

    model.register_forward_hook(fails_too, always_call=True)
    with (
        pytest.warns(UserWarning, match="always_call|always_call=True"),
        pytest.raises(ValueError, match="no"),
    ):
        model(1)


def test_a_hook_that_ran_and_failed_is_not_called_again(lib):
    model, seen = layer(lib), []

    def fails(module, args, result):
        seen.append("fails")
        raise KeyError("hook")

    model.register_forward_hook(fails, always_call=True)
    model.register_forward_hook(lambda m, args, result: seen.append("after"), always_call=True)
    with pytest.raises(KeyError):
        model(lib.tensor(1.0))
    assert seen == ["fails", "after"]


def test_backward_hooks_see_and_change_gradients(lib):
    model = layer(lib)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    def pre(module, grad_output):
        seen.append([g.tolist() for g in grad_output])
        return (grad_output[0] * 10,)

    def post(module, grad_input, grad_output):
        seen.append(
            [[g if g is None else g.tolist() for g in gs] for gs in (grad_input, grad_output)]
        )
        return (grad_input[0] + 1, None)

    model.register_full_backward_pre_hook(pre)
    model.register_full_backward_hook(post)
    model(x, 3.0).sum().backward()
    assert seen[0] == [[1.0, 1.0]]
    assert seen[1] == [[[20.0, 20.0], None], [[10.0, 10.0]]]
    assert x.grad.tolist() == [21.0, 21.0]
    assert model.factor.grad.tolist() == 30


def test_a_single_gradient_may_be_returned():
    model = layer(ng)
    x = ng.tensor(1.0, requires_grad=True)
    model.register_full_backward_pre_hook(lambda module, grad_output: grad_output[0] * 3)
    model.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input[0] * 5)
    model(x).backward()
    assert x.grad == 30


def test_several_arguments_and_results(lib):
    class Two(lib.nn.Module):
        def forward(self, a, name, b):
            return a * 2, name, b * 3

    model, seen = Two(), []
    a, b = (lib.tensor(1.0, requires_grad=True) for _ in range(2))
    model.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    first, name, second = model(a, "name", b)
    assert name == "name"
    (first + second).backward()
    ((ga, gn, gb), (go, gm, gp)) = seen[0]
    assert (ga, gn, gb) == (2, None, 3)
    assert (go, gm, gp) == (1, None, 1)
    first, _, _ = model(a, "name", b)
    first.backward()
    assert seen[1][1][2] is None  # no gradient came


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_arguments_without_gradient(lib, raises):
    model, seen = layer(lib), []
    x = lib.tensor(1.0)
    with model.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go))):
        model(x).backward()
    assert seen == [((None,), (1,))]
    assert model.factor.grad == 1
    with (
        model.register_full_backward_hook(lambda m, gi, go: (x,)),
        raises(RuntimeError, "do not require any"),
    ):
        model(x).backward()
    with lib.no_grad(), model.register_full_backward_hook(lambda m, gi, go: seen.append("no")):
        model(x)
    assert len(seen) == 1


class Pair(NamedTuple):
    first: Any
    second: Any


class Row(tuple):
    """A tuple of a user's own."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [Pair, lambda *parts: Row(parts)], ids=["named", "subclass"])
@pytest.mark.parametrize(
    "hooks", ["register_full_backward_hook", "register_full_backward_pre_hook"]
)
def test_results_keep_their_class(lib, kind, hooks):
    if lib is not ng and kind is not Pair:
        pytest.skip("PyTorch makes named tuples only")

    class Two(lib.nn.Module):
        def forward(self, x):
            return kind(x * 2, "text")

    module, seen = Two(), []
    getattr(module, hooks)(lambda *given: seen.append(len(given[-1])))
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    result = module(x)
    assert type(result) is type(kind(1, 2))
    assert result[1] == "text"
    result[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert seen == [2]


def test_a_hook_may_return_no_gradients_of_arguments_without_one(lib):
    module, seen = layer(lib), []
    module.register_full_backward_hook(lambda _, found, given: seen.append(found) or (None,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch
        module(lib.tensor([1.0, 2.0])).sum().backward()
    assert seen == [(None,)]
    assert module.factor.grad.tolist() == 3.0


def test_wrong_numbers_of_gradients(lib, raises):
    model = layer(lib)
    x = lib.tensor(1.0, requires_grad=True)
    with (
        model.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0])),
        raises(RuntimeError, "returned 2 gradients"),
    ):
        model(x).backward()
    with (
        model.register_full_backward_pre_hook(lambda m, go: (go[0], go[0])),
        raises(RuntimeError, "returned 2 gradients"),
    ):
        model(x).backward()


def test_results_that_have_no_backward_hooks(lib):
    class InDict(lib.nn.Module):
        def forward(self, x):
            return {"y": x * 2}

    model = InDict()
    model.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="dict"):
        model(lib.tensor(1.0, requires_grad=True))["y"].backward()


def test_backward_twice_with_backward_hooks(lib):
    model, seen = layer(lib), []
    x = lib.tensor(1.0, requires_grad=True)
    model.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    y = model(x)
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [(2,), (2,)]
    assert x.grad == 4


def test_second_derivatives_through_hooked_modules(lib):
    model = layer(lib)
    model.register_full_backward_hook(lambda m, gi, go: (gi[0] * gi[0],))
    x = lib.tensor(3.0, requires_grad=True)
    (g,) = lib.autograd.grad(model(x), x, create_graph=True)
    assert g == 4
    (gg,) = lib.autograd.grad(g, model.factor)
    assert gg == 4  # d(factor**2)/d factor


def test_forward_mode_through_hooked_modules():
    model = layer(ng)
    model.register_full_backward_hook(lambda m, gi, go: None)
    forward_ad = ng.autograd.forward_ad
    with forward_ad.dual_level():
        x = ng.tensor(1.0, requires_grad=True)
        dual = forward_ad.make_dual(x, ng.tensor(5.0))
        assert forward_ad.unpack_dual(model(dual)).tangent == 10


def test_hooks_of_all_modules_reach_inner_ones(lib):
    model, seen = lib.nn.Sequential(layer(lib), layer(lib, 3.0)), []
    handle = everywhere(lib).register_module_forward_hook(
        lambda module, args, result: seen.append(type(module).__name__)
    )
    model(lib.tensor(1.0))
    handle.remove()
    model(lib.tensor(1.0))
    assert seen == ["Times", "Times", "Sequential"]


def test_a_hook_may_remove_itself(lib):
    model, seen = layer(lib), []

    def once(module, args, result):
        seen.append(1)
        handle.remove()

    handle = model.register_forward_hook(once)
    model.register_forward_hook(lambda *args: seen.append(2))
    model(lib.tensor(1.0))
    model(lib.tensor(1.0))
    assert seen == [1, 2, 2]


def test_copies_have_hooks_of_their_own(lib):
    model, seen = layer(lib), []
    model.register_forward_hook(lambda module, *args: seen.append(module))
    twin = copy.deepcopy(model)
    twin.register_forward_hook(lambda module, *args: seen.append("twin"))
    model(lib.tensor(1.0))
    assert seen == [model]
    twin(lib.tensor(1.0))
    assert seen == [model, twin, "twin"]


def test_modules_pay_for_hooks_only_while_there_are_some():
    model = layer(ng)
    x = ng.tensor(1.0)
    handle = model.register_forward_hook(lambda *args: None)
    everywhere(ng).register_module_forward_hook(lambda *args: None).remove()
    assert model._is_hooked
    model(x)
    assert model._is_hooked
    handle.remove()
    model(x)
    assert not model._is_hooked
    assert not nn.Module._is_hooked


def test_hooks_must_be_callable():
    model, glob = layer(ng), everywhere(ng)
    for register in (
        model.register_forward_pre_hook,
        model.register_forward_hook,
        model.register_full_backward_pre_hook,
        model.register_full_backward_hook,
        model.register_state_dict_pre_hook,
        model.register_state_dict_post_hook,
        model.register_load_state_dict_pre_hook,
        model.register_load_state_dict_post_hook,
        glob.register_module_forward_pre_hook,
        glob.register_module_forward_hook,
        glob.register_module_full_backward_pre_hook,
        glob.register_module_full_backward_hook,
        glob.register_module_parameter_registration_hook,
        glob.register_module_buffer_registration_hook,
        glob.register_module_module_registration_hook,
    ):
        with pytest.raises(TypeError, match=register.__name__):
            register(3)
    assert not nn.Module._is_hooked
