"""Constructors that follow from declared options: signature, checks, documentation."""

import copy
import inspect
import pickle
import re
from dataclasses import KW_ONLY
from typing import Any

import pytest

import numgrad as ng
from numgrad.core.options import option
from numgrad.optim.optimizer import declared

DECLARED = sorted(
    (c for c in vars(ng.optim).values() if isinstance(c, type) and vars(c).get("_options")),
    key=lambda c: c.__name__,
)


def leaf(*shape):
    return ng.ones(shape or (2,), requires_grad=True)


def test_all_optimizers_are_declared():
    """All but the base and the one that divides another over processes."""
    apart = {ng.optim.Optimizer, ng.optim.ZeroRedundancyOptimizer}
    classes = (c for c in vars(ng.optim).values() if isinstance(c, type))
    optimizers = {c for c in classes if issubclass(c, ng.optim.Optimizer)}
    assert optimizers - apart == set(DECLARED)
    assert len(DECLARED) > 10
    assert all(f"``{cls.__name__}``" in ng.optim.__doc__ for cls in DECLARED)


def test_a_signature_has_names_and_defaults_in_pytorchs_order():
    signature = inspect.signature(ng.optim.RMSprop)
    assert list(signature.parameters) == [
        *("params", "lr", "alpha", "eps", "weight_decay", "momentum", "centered", "capturable"),
        *("foreach", "maximize", "differentiable"),
    ]
    assert signature.parameters["alpha"].default == 0.99
    adamw = inspect.signature(ng.optim.AdamW)
    assert adamw.parameters["weight_decay"].default == 0.01
    assert "decoupled_weight_decay" not in adamw.parameters
    assert adamw.parameters["foreach"].kind is inspect.Parameter.KEYWORD_ONLY
    with pytest.raises(TypeError, match=r"Adam\.__init__\(\) got an unexpected .* 'rate'"):
        ng.optim.Adam([leaf()], rate=1.0)


@pytest.mark.parametrize("cls", DECLARED)
def test_every_option_is_documented_and_in_the_groups(cls):
    names = list(inspect.signature(cls).parameters)
    section = cls.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line.split(" : ")[0] for line in section.splitlines() if line[0] != " "]
    assert [name for head in heads for name in head.split(", ")] == names
    assert all(o.doc.endswith(".") for o in cls._options.values() if o.init)
    assert set(cls([leaf(2, 2)]).defaults) == {*cls._options} - {"params"}
    assert not any(hasattr(cls, name) for name in names)


@pytest.mark.parametrize(
    ("name", "options", "first"),
    [
        ("Adam", {"betas": (2, 2), "eps": -1, "weight_decay": -1}, r"eps is -1; it must be at l"),
        ("Adam", {"betas": (0.5, 1), "weight_decay": -1}, r"betas\[1\] is 1; .* in \[0, 1\)"),
        ("RMSprop", {"alpha": -1, "momentum": -2, "weight_decay": -1}, "momentum is -2"),
        ("Muon", {"momentum": -2, "weight_decay": -1}, "momentum is -2"),
        ("Adafactor", {"eps": (-1, -1)}, r"eps\[0\] is -1"),
        ("Adafactor", {"beta2_decay": 1}, r"beta2_decay is 1; it must be in \[-inf, 0\]"),
        ("SparseAdam", {"eps": 0.0}, "eps is 0.0; it must be positive"),
        ("SGD", {"lr": float("nan")}, "lr is nan"),
        ("SGD", {"momentum": -1, "nesterov": True}, "momentum is -1"),
        ("SGD", {"lr": ng.ones(2)}, r"lr is a Tensor of shape \(2,\)"),
    ],
)
def test_checks_name_the_option_and_its_range_in_pytorchs_order(name, options, first):
    with pytest.raises(ng.errors.NumgradValueError, match=f"^{name}: {first}"):
        getattr(ng.optim, name)([leaf(2, 2)], **options)


def test_states_that_options_bring_are_kept_where_these_are_on():
    x = leaf()
    for momentum, centered in ((0, False), (0.5, False), (0, True), (0.5, True)):
        optimizer = ng.optim.RMSprop([x], momentum=momentum, centered=centered)
        x.grad = ng.ones(2)
        optimizer.step()
        brought = ["grad_avg"] * centered + ["momentum_buffer"] * bool(momentum)
        assert list(optimizer.state[x]) == ["square_avg", *brought, "step"]


def test_an_optimizer_of_ones_own_declares_its_options_or_keeps_those_of_its_base():
    @declared
    class Fixed(ng.optim.Optimizer):
        """Steps of a fixed size."""

        params: Any
        lr: float = 0.5
        _: KW_ONLY
        width: float = option(default=1.0, above=0.5, doc="Of the region.")

    assert Fixed([leaf()]).defaults == {"lr": 0.5, "width": 1.0}
    with pytest.raises(ValueError, match=r"Fixed: width is .* above"):
        Fixed([leaf()], width=0.5)
    with pytest.raises(TypeError, match="positional"):
        Fixed([leaf()], 0.5, 2.0)

    class Named(ng.optim.SGD):
        label: str = "mine"

    assert Named([leaf()], 0.25).label == "mine"
    assert inspect.signature(Named) == inspect.signature(ng.optim.SGD)


def test_averages_need_no_denominator():
    @declared
    class Lion(ng.optim.Optimizer):
        """Steps along signs."""

        params: Any
        lr: float = 1e-4
        betas: tuple[float, float] = (0.9, 0.99)

    assert Lion([leaf()]).defaults["betas"] == (0.9, 0.99)
    with pytest.raises(ng.NumgradValueError, match="betas"):
        Lion([leaf()], betas=(0.9, 1.0))


def test_a_declared_optimizer_is_pickled_and_copied():
    optimizer = ng.optim.AdamW([leaf()], 0.25)
    for twin in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert twin.defaults == optimizer.defaults


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lr": "0.1"}, "lr is '0.1'; it must be a number"),
        ({"lr": None}, "lr is None"),
        ({"eps": 1j}, "eps is 1j"),
        ({"betas": 0.9}, "betas is 0.9; it must be 2 numbers"),
        ({"betas": (0.9,)}, "2 numbers"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named(options, said):
    with pytest.raises(ng.NumgradTypeError, match=re.escape(said)):
        ng.optim.Adam([leaf()], **options)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (None, "params is a NoneType"),
        (ng.nn.Linear(2, 2), "give module.parameters()"),
        ([{"lr": 0.1}], "no 'params'"),
        ([{"params": [ng.ones(2, requires_grad=True)], "lr": -0.1}], "lr is -0.1"),
        ([{"params": 3}], "params is a int"),
    ],
)
def test_parameters_that_are_none_are_named(params, said):
    with pytest.raises(ng.NumgradError, match=re.escape(said)):
        ng.optim.Adam(params)


def _as_from_json(state):
    return {**state, "state": {str(key): value for key, value in state["state"].items()}}


def _climbing(state):
    return {**state, "param_groups": [{**state["param_groups"][0], "lr": -1.0}]}


@pytest.mark.parametrize("spoiled", [_as_from_json, _climbing])
def test_a_state_that_does_not_fit_changes_nothing(spoiled):
    x = leaf()
    optimizer = ng.optim.SGD([x], lr=0.1, momentum=0.9)
    x.grad = ng.ones_like(x)
    optimizer.step()
    state = optimizer.state_dict()
    with pytest.raises(ng.NumgradValueError, match="load_state_dict"):
        optimizer.load_state_dict(spoiled(state))
    assert str(optimizer.state_dict()) == str(state)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("SGD", {"dampening": 2}, r"SGD: dampening is 2; it must be in \[0, 1\]"),
        ("SGD", {"dampening": "a"}, "SGD: dampening is 'a'; it must be a number"),
        ("SGD", {"maximize": "no"}, "SGD: maximize is 'no'; it must be True or False"),
        ("SGD", {"foreach": 3}, "SGD: foreach is 3; it must be True or False"),
        ("ASGD", {"lambd": -1}, "ASGD: lambd is -1; it must be at least 0"),
        ("ASGD", {"alpha": None}, "ASGD: alpha is None; it must be a number, at least 0"),
        ("ASGD", {"t0": -1}, "ASGD: t0 is -1; it must be at least 0"),
        ("Muon", {"eps": -1}, "Muon: eps is -1; it must be at least 0"),
        ("Muon", {"ns_steps": 2.5}, "Muon: ns_steps is 2.5; it must be an integer"),
        ("LBFGS", {"max_iter": "3"}, "LBFGS: max_iter is '3'; it must be an integer, at least 0"),
        ("LBFGS", {"max_eval": -1}, "LBFGS: max_eval is -1; it must be at least 0"),
        ("LBFGS", {"history_size": 1.5}, "LBFGS: history_size is 1.5; it must be an integer"),
        ("LBFGS", {"tolerance_grad": "x"}, "LBFGS: tolerance_grad is 'x'; it must be a number"),
        ("LBFGS", {"line_search_fn": "foo"}, "line_search_fn is 'foo'; .* 'strong_wolfe' or None"),
        ("LBFGS", {"tolerance_change": -1}, "LBFGS: tolerance_change is -1; it must be at least"),
    ],
)
def test_kinds_are_checked_too(name, options, message):
    with pytest.raises((ng.errors.NumgradValueError, ng.errors.NumgradTypeError), match=message):
        getattr(ng.optim, name)([leaf(2, 2)], **options)
    getattr(ng.optim, name)([leaf(2, 2)], **({"maximize": 1} if "maximize" in options else {}))


def test_a_group_with_a_wrong_flag_is_refused():
    with pytest.raises(ng.errors.NumgradTypeError, match="Adam, a group: maximize is 'no'"):
        ng.optim.Adam([{"params": [leaf()], "maximize": "no"}])
