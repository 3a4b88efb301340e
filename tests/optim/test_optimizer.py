"""The rules of all optimizers: constructors, groups, hooks, state, zero_grad."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import numgrad as ng
from tests.optim import problems


def leaf(*values):
    return ng.tensor(np.array(values, float), requires_grad=True)


def with_grad(*values):
    x = leaf(*values)
    x.grad = ng.ones(len(values))
    return x


# -------------------------------------------------------------------- what constructors refuse

ONE, TWO = ng.tensor(0.1), ng.tensor([0.1, 0.2])
LR = [{"lr": TWO}, {"lr": -1.0}, {"lr": float("nan")}]
BETAS = [{"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}]
RATES = [{"eps": -1e-8}, {"weight_decay": -0.1}]
REFUSED = {
    "Adadelta": [*LR, *RATES, {"rho": 1.5}],
    "Adagrad": [*LR, *RATES, {"lr_decay": -1}, {"initial_accumulator_value": -1}],
    "Adam": [
        *LR, *BETAS, *RATES, {"lr": ONE, "foreach": True}, {"betas": (0.9, ONE)},
        {"betas": (ONE, ONE), "foreach": True}, {"betas": (TWO, TWO)}, {"betas": (ONE, TWO)},
    ],
    "AdamW": [*LR, *BETAS, *RATES],
    "Adamax": [*LR, *BETAS, *RATES],
    "ASGD": [*LR, {"weight_decay": -1}],
    "NAdam": [*LR, *BETAS, *RATES, {"momentum_decay": -1}],
    "RAdam": [*LR, *BETAS, *RATES],
    "RMSprop": [*LR, *RATES, {"momentum": -1}, {"alpha": -1}],
    "Rprop": [*LR, {"etas": (1.0, 1.2)}, {"etas": (0.5, 1.0)}, {"etas": (0.0, 1.2)}],
    "SGD": [
        *LR, {"momentum": -1}, {"weight_decay": -1}, {"nesterov": True},
        {"nesterov": True, "momentum": 0.9, "dampening": 0.1},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, several in REFUSED.items() for options in several],
)
def test_numbers_out_of_range_are_refused(name, options):
    with pytest.raises((ng.NumgradValueError), match=name):
        getattr(ng.optim, name)([leaf(1.0)], **options)


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "AdamW", "SGD"])
@pytest.mark.parametrize("other", ["foreach", "differentiable"])
def test_fused_excludes_other_implementations(name, other):
    with pytest.raises(ng.NumgradRuntimeError, match=other):
        getattr(ng.optim, name)([leaf(1.0)], fused=True, **{other: True})


def test_adam_refuses_a_tensor_lr_that_foreach_was_given_later():
    x = with_grad(1.0)
    optimizer = ng.optim.Adam([x], foreach=True)
    optimizer.param_groups[0]["lr"] = ng.tensor(0.1)
    with pytest.raises(ng.NumgradRuntimeError, match="capturable"):
        optimizer.step()
    assert_array_equal(x.detach().numpy(), [1.0])


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        (lambda: leaf(1.0), TypeError, "list"),
        (list, ValueError, "no parameters"),
        (lambda: [{"params": {leaf(1.0)}}], TypeError, "set"),
        (lambda: [np.ones(2)], TypeError, "ndarray"),
        (lambda: [leaf(1.0) * 2], ValueError, "leaves"),
        (lambda: [("a", leaf(1.0)), leaf(2.0)], ValueError, "name all"),
        (lambda: [{"params": [x := leaf(1.0)]}, {"params": x}], ValueError, "two groups"),
        (lambda: [{"params": [("a", leaf(1.0))]}, {"params": leaf(1.0)}], ValueError, "named"),
        (lambda: [{"params": [leaf(1.0)]}, [leaf(1.0)]], TypeError, "dict"),
    ],
)
def test_what_cannot_be_optimized_is_refused(params, error, match):
    with pytest.raises(error, match=match) as caught:
        ng.optim.SGD(params())
    assert isinstance(caught.value, ng.NumgradError)


def test_a_missing_option_without_default_is_refused():
    from numgrad.optim.optimizer import REQUIRED

    with pytest.raises(ng.NumgradValueError, match="'rate'"):
        ng.optim.Optimizer([leaf(1.0)], {"rate": REQUIRED})


def test_the_base_has_no_step():
    with pytest.raises(ng.NumgradNotImplementedError, match="step"):
        ng.optim.Optimizer([leaf(1.0)], {}).step()


def test_results_that_retain_their_gradient_may_be_optimized():
    y = leaf(1.0) * 2
    y.retain_grad()
    ng.optim.SGD([y])
    ng.optim.SGD([leaf(1.0) * 2], differentiable=True)
    ng.optim.SGD([ng.ones(2)])  # does not require grad


# -------------------------------------------------------------------------------------- groups


def test_groups_take_defaults_and_their_own_options():
    a, b, c = leaf(1.0), leaf(1.0), leaf(1.0)
    optimizer = ng.optim.SGD([{"params": a}, {"params": iter([b]), "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": [c], "lr": 1.0})
    for x in (a, b, c):
        x.grad = ng.ones(1)
    optimizer.step()
    assert [x.item() for x in (a, b, c)] == [0.75, 0.5, 0.0]
    assert optimizer.param_groups[0]["params"] == [a]


def test_a_group_that_is_refused_changes_nothing():
    a = leaf(1.0)
    optimizer = ng.optim.SGD([a])
    group = {"params": [a, leaf(2.0)]}
    with pytest.raises(ng.NumgradValueError):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1
    assert list(group) == ["params"]


def test_repr_sorts_the_options():
    text = repr(ng.optim.SGD([leaf(1.0)], lr=0.5))
    assert text.startswith(
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n"
    )
    assert "    lr: 0.5\n" in text
    assert text.endswith(")")


def test_zero_grad():
    a, b = with_grad(1.0), leaf(1.0)
    optimizer = ng.optim.SGD([a, b])
    optimizer.zero_grad(set_to_none=False)
    assert_array_equal(a.grad.numpy(), [0.0])
    assert b.grad is None
    with pytest.warns(UserWarning, match="cycle"):
        (a * a).sum().backward(create_graph=True)
    grad = a.grad
    optimizer.zero_grad(set_to_none=False)
    assert a.grad is grad
    assert grad.grad_fn is None
    optimizer.zero_grad()
    assert a.grad is None


# --------------------------------------------------------------------------------------- steps


def test_a_closure_runs_with_gradients_and_its_loss_is_returned():
    x = leaf(3.0)
    optimizer = ng.optim.SGD([x], lr=0.5)

    def closure():
        assert ng.is_grad_enabled()
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with ng.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert x.item() == 0.0
    assert optimizer.step() is None


def test_an_exception_in_a_closure_or_a_pre_hook_leaves_everything_as_it_was():
    x = with_grad(1.0)
    optimizer = ng.optim.Adam([x])

    def fail(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        optimizer.step(fail)
    optimizer.register_step_pre_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        optimizer.step()
    assert_array_equal(x.detach().numpy(), [1.0])
    assert not optimizer.state


def test_a_gradient_that_cannot_be_used_is_found_before_any_group_is_updated():
    a, b = with_grad(1.0), leaf(1.0, 2.0)
    b.grad = ng.RowSparseTensor([0], [1.0], (2,))
    optimizer = ng.optim.Adam([{"params": a}, {"params": b}])
    with pytest.raises(ng.NumgradRuntimeError, match="row-sparse"):
        optimizer.step()
    assert_array_equal(a.detach().numpy(), [1.0])


def test_step_hooks_run_in_order_and_may_change_arguments():
    x = with_grad(1.0)
    optimizer = ng.optim.SGD([x], lr=0.5)
    seen = []
    handles = [
        optimizer.register_step_post_hook(lambda *a: seen.append("own post")),
        ng.optim.register_optimizer_step_post_hook(lambda *a: seen.append("global post")),
        optimizer.register_step_pre_hook(lambda *a: seen.append("own pre")),
        ng.optim.register_optimizer_step_pre_hook(
            lambda o, args, kwargs: seen.append("global pre") or ((*args, lambda: "given"), {})
        ),
    ]
    assert optimizer.step() == "given"
    assert seen == ["global pre", "own pre", "own post", "global post"]
    for handle in handles:
        handle.remove()
    assert optimizer.step() is None
    assert len(seen) == 4


def test_a_pre_hook_must_return_arguments():
    optimizer = ng.optim.SGD([with_grad(1.0)])
    for wrong in (3, ((), {}), ((3,), {}), ([optimizer], {})):
        with (
            optimizer.register_step_pre_hook(lambda *_, wrong=wrong: wrong),
            pytest.raises(ng.NumgradRuntimeError, match="pre-hook returned"),
        ):
            optimizer.step()


def test_hooks_get_the_arguments_of_the_call_with_the_optimizer_first():
    optimizer, seen = ng.optim.SGD([with_grad(1.0)]), []

    def closure():
        return 1.0

    def note(*given):
        seen.append(given)

    optimizer.register_step_pre_hook(note)
    optimizer.register_step_post_hook(note)
    for args, kwargs in (((), {}), ((closure,), {}), ((), {"closure": closure})):
        optimizer.step(*args, **kwargs)
        assert seen == [(optimizer, (optimizer, *args), kwargs)] * 2
        seen.clear()


def test_step_is_wrapped_once_per_class():
    assert ng.optim.SGD.step.hooked
    assert ng.optim.SGD.step is ng.optim.Adam.step


# --------------------------------------------------------------------------------------- state


def test_the_state_dict_counts_parameters():
    a, b, c = with_grad(1.0), leaf(1.0), with_grad(2.0)
    optimizer = ng.optim.Adam([{"params": [a, b]}, {"params": c, "lr": 0.5}])
    optimizer.step()
    state = optimizer.state_dict()
    assert sorted(state["state"]) == [0, 2]
    assert [group["params"] for group in state["param_groups"]] == [[0, 1], [2]]
    step = state["state"][0]["step"]
    assert (step.item(), step.shape, step.dtype) == (1.0, (), np.float64)


def test_loading_converts_to_the_dtype_of_the_parameter_and_copies():
    a = with_grad(1.0, 2.0)
    optimizer = ng.optim.NAdam([a])
    optimizer.step()
    single = ng.tensor(np.ones(2, np.float32), requires_grad=True)
    other = ng.optim.NAdam([single])
    other.load_state_dict(optimizer.state_dict())
    state = other.state[single]
    assert state["exp_avg"].dtype == np.float32
    assert state["step"].dtype == state["mu_product"].dtype == np.float64
    single.grad = ng.ones(2, np.float32)
    other.step()
    assert optimizer.state[a]["step"].item() == 1.0


def test_groups_that_do_not_fit_are_not_loaded():
    a, b = with_grad(1.0), leaf(2.0)
    optimizer = ng.optim.Adam([a, b])
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    for others, match in (([[a], [b]], "2 parameter groups"), ([[a]], "has 1 parameters")):
        saved = ng.optim.Adam([{"params": p} for p in others]).state_dict()
        with pytest.raises(ng.NumgradValueError, match=match):
            optimizer.load_state_dict(saved)
    assert repr(optimizer.state_dict()) == repr(before)


def test_names_in_a_loaded_state_win_and_absent_ones_leave_the_optimizers():
    named = ng.optim.SGD([("a", leaf(1.0))])
    assert named.param_groups[0]["param_names"] == ["a"]
    other = ng.optim.SGD([("b", leaf(1.0))])
    other.load_state_dict(named.state_dict())
    assert other.param_groups[0]["param_names"] == ["a"]
    other.load_state_dict(ng.optim.SGD([leaf(1.0)]).state_dict())
    assert other.param_groups[0]["param_names"] == ["a"]


def test_state_dict_hooks():
    x = with_grad(1.0)
    optimizer = ng.optim.SGD([x], lr=0.5)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    state = optimizer.state_dict()
    assert seen == ["first", "second"]
    assert state["more"] == 1

    def halve(o, state):
        state["param_groups"] = [{**g, "lr": g["lr"] / 2} for g in state["param_groups"]]
        return state

    optimizer.register_load_state_dict_pre_hook(halve)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert state["param_groups"][0]["lr"] == 0.5
    assert seen[-1] == "loaded"


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_go_on_by_themselves(how):
    x = with_grad(1.0)
    optimizer = ng.optim.Adam([x], lr=0.5)
    optimizer.step()
    model = {"x": x, "optimizer": optimizer}
    twin = copy.deepcopy(model) if how == "deepcopy" else pickle.loads(pickle.dumps(model))
    y, other = twin["x"], twin["optimizer"]
    assert other.param_groups[0]["params"] == [y]
    before = x.item()
    y.grad = ng.ones(1)
    other.step()
    assert x.item() == before
    optimizer.step()
    assert y.item() == x.item()


def test_a_saved_state_survives_a_file(tmp_path):
    _, optimizer = problems.run_quadratic(
        lambda a: ng.tensor(a, requires_grad=True), ng.optim.Adam, {}
    )
    ng.save(optimizer.state_dict(), tmp_path / "state")
    loaded = ng.load(tmp_path / "state")
    assert repr(loaded) == repr(optimizer.state_dict())


def test_nothing_warns_in_a_plain_training_loop():
    x = leaf(1.0)
    optimizer = ng.optim.RMSprop([x])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
