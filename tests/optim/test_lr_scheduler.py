"""Every schedule: against PyTorch step by step, its closed form, chained, stopped and resumed."""

import copy
import itertools
import math

import numpy as np
import pytest

import numgrad as ng
from numgrad.optim import lr_scheduler
from tests.optim.schedules import (
    COMPOSITE,
    CYCLES,
    PLATEAU_LOSSES,
    SCHEDULES,
    SIMPLE,
    Decay,
    chain,
    of,
    optimizer,
    run,
    sequence,
)

PLATEAUS = [
    {},
    {"mode": "max", "factor": 0.5, "patience": 2},
    {"patience": 1, "threshold": 0.3, "cooldown": 3, "min_lr": [0.01, 0.1]},
    {"patience": 0, "threshold_mode": "abs", "factor": 0.9, "eps": 0.004},
    {"mode": "max", "threshold_mode": "abs", "patience": 4, "min_lr": 0.05},
]


# ------------------------------------------------------------------------------ against PyTorch


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "SGD") for name in SCHEDULES), *((name, "Adam") for name in CYCLES)],
)
def test_a_hundred_steps_are_pytorchs(torch, name, kind):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib, kind)
        rows.append(run(opt, SCHEDULES[name](lib.optim.lr_scheduler, opt), 100))
    np.testing.assert_allclose(*rows, rtol=1e-14, atol=1e-17)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_what_pytorch_saved(torch, name):
    theirs = optimizer(torch)
    schedule = SCHEDULES[name](torch.optim.lr_scheduler, theirs)
    run(theirs, schedule, 33)
    ours = optimizer(ng)
    resumed = SCHEDULES[name](lr_scheduler, ours)
    state = schedule.state_dict()
    for group, saved in zip(ours.param_groups, theirs.param_groups, strict=True):
        group.update({k: v for k, v in saved.items() if k != "params"})
    resumed.load_state_dict(state)
    assert set(state) == set(resumed.state_dict())
    np.testing.assert_allclose(run(ours, resumed, 30), run(theirs, schedule, 30), rtol=1e-14)


@pytest.mark.parametrize("name", [*SIMPLE, *CYCLES])
def test_last_epoch_goes_on_as_in_pytorch(torch, name):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib)
        run(opt, SCHEDULES[name](lib.optim.lr_scheduler, opt), 20)
        build = getattr(lib.optim.lr_scheduler, NAMES[name])
        fresh = optimizer(lib)
        fresh.load_state_dict(copy.deepcopy(opt.state_dict()))
        rows.append(run(fresh, build(fresh, **arguments(name), last_epoch=19), 25))
    np.testing.assert_allclose(*rows, rtol=1e-14, atol=1e-17)


class _Recorder:
    """In place of a library's schedules: notes which is built, and with what."""

    def __getattr__(self, kind):
        return lambda opt, **arguments: (kind, arguments)


NAMES = {name: build(_Recorder(), None)[0] for name, build in (SIMPLE | CYCLES).items()}


def arguments(name):
    return SCHEDULES[name](_Recorder(), None)[1]


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_changed_by_hand_are_changed_further_as_in_pytorch(torch, name):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib)
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, opt)
        rows.append(run(opt, schedule, 15))
        opt.param_groups[1]["lr"] *= 3
        rows.append(run(opt, schedule, 40))
    for ours, theirs in zip(rows[:2], rows[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-17)


@pytest.mark.parametrize("options", PLATEAUS)
def test_plateaus_are_pytorchs(torch, options):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(opt, **options)
        seen = []
        for loss in PLATEAU_LOSSES:
            schedule.step(loss)
            seen.append([*schedule.get_last_lr(), schedule.num_bad_epochs, schedule.in_cooldown])
        rows.append(seen)
    assert len(np.unique(np.array(rows[0])[:, 0])) > 1
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("t_mult", [1, 2, 3])
def test_restarts_go_to_parts_of_epochs_as_in_pytorch(torch, t_mult):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib)
        schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=4, T_mult=t_mult)
        seen = []
        for t in np.arange(0, 50, 0.37):
            schedule.step(float(t))
            seen.append(schedule.get_last_lr())
        schedule.step()
        seen.append(schedule.get_last_lr())
        rows.append(seen)
    np.testing.assert_allclose(*rows, rtol=1e-12)


# ----------------------------------------------------------------------------------- closed forms


FORMULAS = {
    "lambda": lambda t: 0.5 * 0.97**t,
    "step": lambda t: 0.5 * 0.6 ** (t // 7),
    "milestones": lambda t: 0.5 * 0.3 ** (2 * (t >= 5) + (t >= 30) + (t >= 60)),
    "constant": lambda t: 0.5 * (0.25 if t < 9 else 1.0),
    "linear": lambda t: 0.5 * (0.2 + 0.5 * min(t, 12) / 12),
    "linear down": lambda t: 0.5 * (1 - min(t, 8) / 8),
    "exponential": lambda t: 0.5 * 0.93**t,
    "polynomial": lambda t: 0.5 * max(1 - t / 40, 0) ** 1.7,
    "cosine": lambda t: 0.01 + 0.49 * (1 + math.cos(math.pi * t / 13)) / 2,
    "cosine of one step": lambda t: 0.25 * (1 + math.cos(math.pi * t)),
    "restarts": lambda t: 0.02 + 0.48 * (1 + math.cos(math.pi * (t % 7) / 7)) / 2,
    "cycle": lambda t: 0.1 + 0.4 * np.interp(t % 13, [0, 9, 13], [0, 1, 0]),
    "halved cycle": lambda t: 0.1 + 0.3 * 0.5 ** (t // 12) * (1 - abs(t % 12 - 6) / 6),
    "exponential cycle": lambda t: 0.1 + 0.3 * 0.98**t * (1 - abs(t % 12 - 6) / 6),
    "one cycle": lambda t: (
        0.036 + 0.864 * (1 - math.cos(math.pi * t / 29)) / 2
        if t <= 29
        else 3.6e-6 + (0.9 - 3.6e-6) * (1 + math.cos(math.pi * (t - 29) / 70)) / 2
    ),
    "one linear cycle": lambda t: np.interp(t, [0, 32, 109], [0.09, 0.9, 0.0009]),
    "sequence": lambda t: (
        0.5 * (0.1 + 0.9 * t / 10)
        if t < 10
        else 0.01 + 0.49 * (1 + math.cos(math.pi * (t - 10) / 13)) / 2
        if t < 40
        else 0.5 * 0.93 ** (t - 40)
    ),
    "chain": lambda t: 0.5 * (0.1 + 0.9 * min(t, 10) / 10) * 0.93**t,
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_the_rate_of_step_t_is_the_formula(name):
    opt = optimizer(ng)
    got = run(opt, SCHEDULES[name](lr_scheduler, opt), 100)[:, 0]
    np.testing.assert_allclose(got, [FORMULAS[name](t) for t in range(100)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(SIMPLE.keys() - {"multiplicative"}))  # which has none
@pytest.mark.filterwarnings("ignore:step. the argument epoch:UserWarning")
def test_a_step_to_an_epoch_uses_the_closed_form(name):
    opt = optimizer(ng)
    rates = run(opt, SCHEDULES[name](lr_scheduler, opt), 60)
    opt = optimizer(ng)
    schedule = SCHEDULES[name](lr_scheduler, opt)
    opt.step()
    for t in (40, 3, 13, 59, 0):
        schedule.step(t)
        np.testing.assert_allclose(schedule.get_last_lr(), rates[t, ::2], rtol=1e-9, atol=1e-12)
        assert schedule.last_epoch == t


def test_momentum_moves_against_the_rate():
    for kind, key in (("SGD", "momentum"), ("Adam", "betas")):
        opt = optimizer(ng, kind)
        schedule = CYCLES["halved cycle"](lr_scheduler, opt)
        rows = run(opt, schedule, 24)
        height = np.array([0.5 ** (t // 12) * (1 - abs(t % 12 - 6) / 6) for t in range(24)])
        np.testing.assert_allclose(rows[:, 1], 0.8 - 0.3 * height, rtol=1e-12)
        np.testing.assert_allclose(rows[:, 3], 0.8 - 0.2 * height, rtol=1e-12)
        if key == "betas":
            assert opt.param_groups[0]["betas"][1] == 0.999


def test_one_cycle_may_rise_to_the_very_end():
    opt = optimizer(ng)
    schedule = lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=4, pct_start=1.0)
    assert run(opt, schedule, 4)[3, 0] == pytest.approx(0.5)
    opt = optimizer(ng)
    schedule = lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=1, pct_start=1.0)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.5)


def test_rates_held_at_zero_come_back():
    opt = optimizer(ng)
    schedule = lr_scheduler.ConstantLR(opt, factor=0.0, total_iters=3)
    np.testing.assert_array_equal(run(opt, schedule, 5)[:, 0], [0, 0, 0, 0.5, 0.5])


# ------------------------------------------------------------------------- composed and resumed


def test_composed_schedules_can_be_parts():
    warm = of("LinearLR", start_factor=0.5, total_iters=2)
    decay = of("ExponentialLR", gamma=0.5)
    inner = sequence([2], warm, decay)
    for first, later in itertools.product([chain(warm, decay), inner, decay], repeat=2):
        alone = optimizer(ng)
        expected = run(alone, first(lr_scheduler, alone), 4)
        alone = optimizer(ng)
        expected = np.vstack([expected, run(alone, later(lr_scheduler, alone), 5)])
        opt = optimizer(ng)
        got = run(opt, sequence([4], first, later)(lr_scheduler, opt), 9)
        np.testing.assert_allclose(got, expected, rtol=1e-14)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_resumed_schedule_gives_the_same_bits(name):
    def build():
        opt = optimizer(ng)
        return opt, SCHEDULES[name](lr_scheduler, opt)

    opt, schedule = build()
    run(opt, schedule, 37)
    state = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
    expected = run(opt, schedule, 30)
    opt, schedule = build()
    before = set(state[1])
    opt.load_state_dict(state[0])
    schedule.load_state_dict(state[1])
    assert set(state[1]) == before
    np.testing.assert_array_equal(run(opt, schedule, 30), expected)


@pytest.mark.parametrize("name", ["milestones", "lambdas", "chain of three", "own cycle"])
def test_states_can_be_saved_in_files(name, tmp_path):
    opt = optimizer(ng)
    schedule = SCHEDULES[name](lr_scheduler, opt)
    run(opt, schedule, 20)
    ng.save([opt.state_dict(), schedule.state_dict()], tmp_path / "state")
    expected = run(opt, schedule, 20)
    opt = optimizer(ng)
    schedule = SCHEDULES[name](lr_scheduler, opt)
    of_optimizer, of_schedule = ng.load(tmp_path / "state")
    opt.load_state_dict(of_optimizer)
    schedule.load_state_dict(of_schedule)
    np.testing.assert_array_equal(run(opt, schedule, 20), expected)


def test_a_resumed_plateau_gives_the_same_bits():
    def rates(schedule, losses):
        for loss in losses:
            schedule.step(loss)
            yield schedule.get_last_lr()

    opt = optimizer(ng)
    schedule = lr_scheduler.ReduceLROnPlateau(opt, **PLATEAUS[2])
    list(rates(schedule, PLATEAU_LOSSES[:50]))
    state = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
    expected = list(rates(schedule, PLATEAU_LOSSES[50:]))
    fresh = optimizer(ng)
    other = lr_scheduler.ReduceLROnPlateau(fresh)
    fresh.load_state_dict(state[0])
    other.load_state_dict(state[1])
    assert list(rates(other, PLATEAU_LOSSES[50:])) == expected


def test_functions_are_saved_by_their_attributes_only():
    opt = optimizer(ng)
    schedule = SIMPLE["lambdas"](lr_scheduler, opt)
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [None, {"rate": 0.9}]
    assert "optimizer" not in state
    other = lr_scheduler.LambdaLR(optimizer(ng), [lambda t: 1 / (1 + t), Decay(0.1)])
    other.load_state_dict(state)
    assert other.lr_lambdas[1].rate == 0.9
    assert state["lr_lambdas"] == [None, {"rate": 0.9}]
    schedule = CYCLES["own cycle"](lr_scheduler, opt)
    assert schedule.state_dict()["_scale_fn_custom"] == {"rate": 0.5}
    plain, own = (
        lr_scheduler.CyclicLR(optimizer(ng), 0.1, 0.4, scale_fn=f, cycle_momentum=False)
        for f in (None, Decay(0.1))
    )
    own.load_state_dict(plain.state_dict())
    assert own.scale_fn(1) == 0.1
    for other, expected in ((own, 0.25), (plain, 1.0)):
        other.load_state_dict(schedule.state_dict())
        assert other.scale_fn(2) == expected
    schedule = lr_scheduler.LambdaLR(opt, math.cos)
    assert schedule.state_dict()["lr_lambdas"] == [None, None]


def test_milestones_survive_keys_that_became_strings():
    opt = optimizer(ng)
    schedule = SIMPLE["milestones"](lr_scheduler, opt)
    state = schedule.state_dict()
    schedule.load_state_dict(
        state | {"milestones": {str(k): n for k, n in state["milestones"].items()}}
    )
    assert schedule.state_dict() == state


# ------------------------------------------------------------------------------- tensor rates


@pytest.mark.parametrize("name", [*SIMPLE, *CYCLES, *COMPOSITE])
def test_tensor_rates_are_filled_in_place(name):
    tensors = [ng.tensor(0.5), ng.tensor([0.2], requires_grad=True)]
    opt = optimizer(ng, lrs=tensors)
    schedule = SCHEDULES[name](lr_scheduler, opt)
    plain = optimizer(ng)
    expected = run(plain, SCHEDULES[name](lr_scheduler, plain), 30)
    rows = []
    for _ in range(30):
        rows.append([t.item() for t in tensors])
        opt.step()
        schedule.step()
    np.testing.assert_allclose(rows, expected[:, ::2], rtol=1e-14)
    assert all(group["lr"] is t for group, t in zip(opt.param_groups, tensors, strict=True))
    last = schedule.get_last_lr()
    assert [t.item() for t in last] == [t.item() for t in tensors]
    last[0].fill_(7.0)
    assert tensors[0].item() != 7.0
    assert schedule.get_last_lr()[0].item() != 7.0


def test_tensor_betas_are_filled_in_place():
    opt = ng.optim.Adam([ng.ones(1, requires_grad=True)], betas=(ng.tensor(0.9), ng.tensor(0.99)))
    beta = opt.param_groups[0]["betas"][0]
    lr_scheduler.CyclicLR(opt, 0.1, 0.4, base_momentum=0.5, max_momentum=0.75)
    assert opt.param_groups[0]["betas"][0] is beta
    assert beta.item() == 0.75


CHECKED = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 3]),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda k: 0.5**k),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2),
    "ReduceLROnPlateau": lr_scheduler.ReduceLROnPlateau,
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.StepLR(o, 2), lr_scheduler.ExponentialLR(o, 0.5)], [2]
    ),
    "SWALR": lambda o: ng.optim.swa_utils.SWALR(o, 0.5),
}


@pytest.mark.parametrize("kind", CHECKED)
def test_a_state_with_anything_missing_is_refused_and_changes_nothing(kind):
    schedule = CHECKED[kind](ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=0.5, momentum=0.9))
    state = schedule.state_dict()
    before = str(state)
    for bad in (None, {}, 3):
        with pytest.raises((ng.NumgradTypeError, ng.NumgradValueError), match="load_state_dict"):
            schedule.load_state_dict(bad)
    for key, value in state.items():
        without = {k: v for k, v in state.items() if k != key}
        with pytest.raises(ng.NumgradValueError, match=f"has no {key}"):
            schedule.load_state_dict(without)
        if isinstance(value, list):
            with pytest.raises(ng.NumgradValueError, match=f"{key} has"):
                schedule.load_state_dict({**state, key: [*value, *value]})
    assert str(schedule.state_dict()) == before
    schedule.load_state_dict(state)
    assert str(schedule.state_dict()) == before


def test_a_schedule_of_torch_goes_on_here():
    torch = pytest.importorskip("torch")
    theirs = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=torch.tensor(0.5))
    other = torch.optim.lr_scheduler.ExponentialLR(theirs, 0.5)
    theirs.step()
    other.step()
    optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=0.5)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.9)
    optimizer.load_state_dict(theirs.state_dict())
    schedule.load_state_dict(other.state_dict())
    optimizer.step()
    schedule.step()
    assert float(schedule.get_last_lr()[0]) == 0.125
