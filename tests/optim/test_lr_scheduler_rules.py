"""What every schedule refuses, warns of, and leaves as it was."""

import copy
import gc
import math
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad.optim import lr_scheduler as s
from tests.optim.schedules import CYCLES, SCHEDULES, SIMPLE, optimizer, run

KINDS = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR",
    "ExponentialLR", "SequentialLR", "PolynomialLR", "CosineAnnealingLR", "ChainedScheduler",
    "ReduceLROnPlateau", "CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR",
]  # fmt: skip


def steps(opt, **options):
    return s.StepLR(opt, step_size=2, **options)


class Plain(ng.optim.Optimizer):
    """Has neither momentum nor betas."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})


@pytest.fixture
def opt():
    return optimizer(ng)


# -------------------------------------------------------------------------------------- errors

REFUSED = {
    "optimizer": (lambda o: s.LRScheduler(3), TypeError, "got int"),
    "optimizer of a function": (lambda o: s.LambdaLR(3, [math.cos]), TypeError, "got int"),
    "no get_lr": (lambda o: s.LRScheduler(o), NotImplementedError, "defines get_lr"),
    "resumed": (lambda o: steps(o, last_epoch=3), KeyError, "group 0 of the.* no 'initial_lr'"),
    "functions": (lambda o: s.LambdaLR(o, [math.cos]), ValueError, "1 functions for 2 groups"),
    "functions of a factor": (
        lambda o: s.MultiplicativeLR(o, [math.cos] * 3), ValueError, "3 functions for 2 groups",
    ),
    "no function": (lambda o: s.MultiplicativeLR(o, 0.5), TypeError, "got float"),
    "constant above 1": (lambda o: s.ConstantLR(o, 1.5), ValueError, r"factor is 1.5; .* in"),
    "constant below 0": (lambda o: s.ConstantLR(o, -0.5), ValueError, r"factor is -0.5; .* in"),
    "start above 1": (lambda o: s.LinearLR(o, 1.5, 2.0), ValueError, "start_factor.*is 1.5"),
    "start at 0": (lambda o: s.LinearLR(o, 0.0), ValueError, "start_factor.*is 0.0"),
    "end above 1": (lambda o: s.LinearLR(o, 0.5, 1.5), ValueError, "end_factor.*is 1.5"),
    "end below 0": (lambda o: s.LinearLR(o, 0.5, -0.5), ValueError, "end_factor.*is -0.5"),
    "empty sequence": (lambda o: s.SequentialLR(o, [], []), ValueError, "at least one"),
    "no part": (lambda o: s.SequentialLR(o, [3], []), TypeError, "part 0 is a int"),
    "plateau in a sequence": (
        lambda o: s.SequentialLR(o, [steps(o), s.ReduceLROnPlateau(o)], [3]),
        ValueError, "part 1 is a ReduceLROnPlateau",
    ),
    "foreign part": (
        lambda o: s.SequentialLR(o, [steps(o), steps(optimizer(ng))], [3]),
        ValueError, "part 1, a StepLR, schedules another optimizer",
    ),
    "milestones": (
        lambda o: s.SequentialLR(o, [steps(o), steps(o)], [1, 2]),
        ValueError, "2 schedules need 1 milestones between them, got 2",
    ),
    "empty chain": (lambda o: s.ChainedScheduler([]), ValueError, "at least one"),
    "no link": (lambda o: s.ChainedScheduler([steps(o), 3]), TypeError, "part 1 is a int"),
    "no first link": (lambda o: s.ChainedScheduler([3]), TypeError, "part 0 is a int"),
    "plateau in a chain": (
        lambda o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError, "part 0 is a Reduce",
    ),
    "foreign link": (
        lambda o: s.ChainedScheduler([steps(o), steps(optimizer(ng))]), ValueError, "part 1, a St",
    ),
    "chain of another": (
        lambda o: s.ChainedScheduler([steps(o)], optimizer(ng)), ValueError, "part 0, a St",
    ),
    "factor": (lambda o: s.ReduceLROnPlateau(3, factor=1.0), ValueError, "below 1, got 1.0"),
    "optimizer of a plateau": (lambda o: s.ReduceLROnPlateau(3), TypeError, "got int"),
    "min_lr": (lambda o: s.ReduceLROnPlateau(o, "?", min_lr=[0]), ValueError, "1 values, the opt"),
    "mode": (lambda o: s.ReduceLROnPlateau(o, "low"), ValueError, "'min' or 'max', got 'low'"),
    "threshold_mode": (
        lambda o: s.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "'rel' or 'abs', got 'x'",
    ),
    "optimizer of a cycle": (lambda o: s.CyclicLR(3, 1, 2), TypeError, "got int"),
    "base_lr": (lambda o: s.CyclicLR(o, [1], [2]), ValueError, "base_lr has 1 values"),
    "max_lr": (lambda o: s.CyclicLR(o, 1, [2]), ValueError, "max_lr has 1 values"),
    "shape of a cycle": (lambda o: s.CyclicLR(o, 1, 2, mode="sine"), ValueError, "got 'sine'"),
    "no momentum": (
        lambda o: s.CyclicLR(Plain([ng.ones(1)]), 1, 2), ValueError, "Plain has neither",
    ),
    "base_momentum": (
        lambda o: s.CyclicLR(o, 1, 2, base_momentum=[1]), ValueError, "base_momentum has 1 values",
    ),
    "max_momentum": (
        lambda o: s.CyclicLR(o, 1, 2, max_momentum=[1]), ValueError, "max_momentum has 1 values",
    ),
    "T_0": (lambda o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0.*got 0"),
    "T_0 a float": (lambda o: s.CosineAnnealingWarmRestarts(o, 2.0), ValueError, "T_0.*got 2.0"),
    "T_mult": (lambda o: s.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult.*got 0"),
    "T_mult a float": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 2, 1.5), ValueError, "T_mult.*got 1.5",
    ),
    "eta_min": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 2, eta_min="0"), ValueError, "eta_min.*'0'",
    ),
    "epoch": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "non-negative.*-1",
    ),
    "optimizer of one cycle": (lambda o: s.OneCycleLR(3, 1.0), TypeError, "got int"),
    "no steps": (lambda o: s.OneCycleLR(o, 1.0), ValueError, "give total_steps, or epochs"),
    "no epochs": (lambda o: s.OneCycleLR(o, 1.0, steps_per_epoch=3), ValueError, "give total_st"),
    "total_steps": (lambda o: s.OneCycleLR(o, 1.0, 0), ValueError, "total_steps.*got 0"),
    "total_steps a float": (lambda o: s.OneCycleLR(o, 1.0, 2.0), ValueError, "total_steps.*2.0"),
    "epochs": (
        lambda o: s.OneCycleLR(o, 1.0, epochs=0, steps_per_epoch=0), ValueError, "epochs.*got 0",
    ),
    "steps_per_epoch": (
        lambda o: s.OneCycleLR(o, 1.0, epochs=1, steps_per_epoch=0.5), ValueError, "steps_per.*0.5",
    ),
    "pct_start": (lambda o: s.OneCycleLR(o, 1.0, 9, pct_start=1.5), ValueError, "pct_start.*1.5"),
    "pct_start an integer": (
        lambda o: s.OneCycleLR(o, 1.0, 9, pct_start=1), ValueError, "pct_start.*got 1",
    ),
    "anneal_strategy": (
        lambda o: s.OneCycleLR(o, 1.0, 9, anneal_strategy="x"), ValueError, "'linear', got 'x'",
    ),
    "max_lr of one cycle": (lambda o: s.OneCycleLR(o, [1.0], 9), ValueError, "max_lr has 1 values"),
    "no momentum in one cycle": (
        lambda o: s.OneCycleLR(Plain([ng.ones(1)]), 1.0, 9), ValueError, "Plain has n",
    ),
    "no list of steps": (lambda o: s.MultiStepLR(o, 5), TypeError, "milestones is 5; .* a list"),
    "a milestone": (lambda o: s.MultiStepLR(o, [2, "a"]), TypeError, r"milestones\[1\] is 'a'"),
    "a milestone between": (lambda o: s.MultiStepLR(o, [1.5]), ValueError, r"s\[0\] is 1.5"),
    "gamma": (lambda o: s.MultiStepLR(o, [1], "a"), TypeError, "gamma is 'a'"),
    "patience": (lambda o: s.ReduceLROnPlateau(o, patience="3"), TypeError, "patience is '3'"),
    "patience below 0": (lambda o: s.ReduceLROnPlateau(o, patience=-3), ValueError, "is -3"),
    "cooldown": (lambda o: s.ReduceLROnPlateau(o, cooldown=-3), ValueError, "cooldown is -3"),
    "min_lr a string": (lambda o: s.ReduceLROnPlateau(o, min_lr="a"), TypeError, "min_lr is 'a'"),
    "max_lr a string": (lambda o: s.OneCycleLR(o, "1", 9), TypeError, "max_lr is '1'; .* a number"),
    "one max_lr": (lambda o: s.OneCycleLR(o, [1, "1"], 9), TypeError, r"max_lr\[1\] is '1'"),
    "div_factor": (lambda o: s.OneCycleLR(o, 1, 9, div_factor=0), ValueError, "div_factor is 0"),
    "result": (lambda o: s.LambdaLR(o, lambda e: "a"), TypeError, "result of lr_lambda is 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(opt, name):
    build, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        build(opt)
    assert isinstance(caught.value, ng.NumgradError)


@pytest.mark.parametrize(
    "build",
    [
        lambda o: s.CyclicLR(o, 0.1, 0.2, mode="sine"),
        lambda o: s.CyclicLR(o, 0.1, 0.2, max_momentum=[0.9]),
        lambda o: s.OneCycleLR(o, 0.1, 9, max_momentum=[0.9]),
        lambda o: s.ConstantLR(o, 2.0),
        lambda o: s.SequentialLR(o, [steps(o), steps(o)], []),
    ],
)
def test_what_is_refused_leaves_the_groups_alone(build):
    opt = optimizer(ng)
    steps(opt)
    s.ConstantLR(opt)
    before = copy.deepcopy(settings(opt))
    with pytest.raises(ValueError, match="LR:"):
        build(opt)
    assert settings(opt) == before


def test_a_schedule_that_fails_at_step_0_leaves_no_initial_rate(opt):
    before = copy.deepcopy(settings(opt))
    for wrong in ("a", None):
        with pytest.raises(TypeError, match="LambdaLR: the result of lr_lambda"):
            s.LambdaLR(opt, lambda step: wrong)  # noqa: B023
    assert settings(opt) == before


def test_numbers_of_numpy_are_numbers(opt):
    two, half = np.int64(2), np.float32(0.5)
    s.StepLR(opt, two, half)
    assert s.MultiStepLR(opt, np.array([1, 2, 2])).milestones == {1: 1, 2: 2}
    assert s.MultiStepLR(opt, [0.5 * 4, 3.0]).milestones == {2: 1, 3: 1}
    s.LambdaLR(opt, lambda step: half)
    s.ReduceLROnPlateau(opt, patience=two, cooldown=two, min_lr=half, factor=half)
    s.OneCycleLR(opt, max_lr=[half, half], total_steps=two, div_factor=two)


def settings(opt):
    return [{k: v for k, v in group.items() if k != "params"} for group in opt.param_groups]


def test_steps_beyond_the_last(opt):
    schedule = s.OneCycleLR(opt, 1.0, total_steps=4)
    run(opt, schedule, 4)
    with pytest.raises(ValueError, match="step 5 of a schedule of 4"):
        schedule.step()


def test_a_plateau_with_a_new_group(opt):
    listed = s.ReduceLROnPlateau(opt, min_lr=[0.1, 0.1], patience=0)
    plain = s.ReduceLROnPlateau(opt, min_lr=0.3, patience=0)
    opt.add_param_group({"params": [ng.ones(1)], "lr": 1.0})
    for schedule in (listed, plain):
        schedule.step(1.0)
    with pytest.raises(RuntimeError, match="given for 2 groups, the optimizer has 3"):
        listed.step(1.0)
    plain.step(1.0)
    assert plain.get_last_lr() == [0.3, 0.2, 0.3]


# ------------------------------------------------------------------------------------- warnings


def test_a_schedule_before_its_optimizer(opt):
    schedule = steps(opt)
    with pytest.warns(UserWarning, match="never used; call optimizer.step.. first") as caught:
        schedule.step()
    assert caught[0].filename == __file__
    schedule.step()
    after = steps(optimizer(ng))
    after.optimizer.step()
    after.step()


def test_an_optimizer_whose_step_was_replaced(opt):
    schedule = steps(opt)
    opt.step = lambda: None
    with pytest.warns(UserWarning, match="was replaced"):
        schedule.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_get_lr_from_outside(opt, name):
    schedule = SCHEDULES[name](s, opt)
    if not isinstance(schedule, s.SequentialLR | s.ChainedScheduler):
        opt.step()
        with pytest.warns(UserWarning, match="get_last_lr"):
            assert len(schedule.get_lr()) == 2
    assert schedule.get_last_lr() == [group["lr"] for group in opt.param_groups]


def test_an_epoch_is_deprecated(opt):
    schedule, plateau = steps(opt), s.ReduceLROnPlateau(opt)
    opt.step()
    with pytest.warns(UserWarning, match="epoch is deprecated") as caught:
        schedule.step(7)
    assert caught[0].filename == __file__
    assert schedule.get_last_lr() == pytest.approx([0.5e-3, 0.2e-3])
    with pytest.warns(UserWarning, match="epoch is deprecated"):
        plateau.step(1.0, epoch=5)
    assert plateau.last_epoch == 5
    multiplicative = s.MultiplicativeLR(opt, lambda t: t)  # without a closed form
    with pytest.warns(UserWarning, match="epoch is deprecated"):
        multiplicative.step(3)
    assert multiplicative.get_last_lr() == pytest.approx([1.5e-3, 0.6e-3])


# ----------------------------------------------------------------------------------- the groups


@pytest.mark.parametrize("kind", KINDS)
def test_all_are_schedules(kind):
    assert issubclass(getattr(s, kind), s.LRScheduler)


def test_initial_rates_are_kept_by_the_first_schedule(opt):
    s.ConstantLR(opt, 0.5)
    assert [g["initial_lr"] for g in opt.param_groups] == [0.5, 0.2]
    assert [g["lr"] for g in opt.param_groups] == [0.25, 0.1]
    second = s.ExponentialLR(opt, 0.5)
    assert second.base_lrs == [0.5, 0.2]
    assert [g["lr"] for g in opt.param_groups] == [0.25, 0.1]


def test_a_schedule_of_ones_own(opt):
    class Mine(s.StepLR):
        def get_lr(self):
            return [2 * lr for lr in super().get_lr()]

    schedule = Mine(opt, step_size=1)
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.5 * 2 * 2 / 10, 0.2 * 2 * 2 / 10])


def test_step_is_wrapped_once_and_does_what_it_did(opt):
    seen = []
    step = type(opt).step
    steps(opt)
    first = opt.step
    steps(opt)
    assert opt.step is first
    assert first.__wrapped__ is step
    replaced = optimizer(ng)
    replaced.step = lambda *args, **kwargs: seen.append((args, kwargs))
    schedule = steps(replaced)
    replaced.step(1, closure=2)
    schedule.step()
    assert seen == [((1,), {"closure": 2})]


def test_a_schedule_makes_no_cycle_that_keeps_the_optimizer():
    gc.disable()
    try:
        opt = optimizer(ng)
        schedule = steps(opt)
        opt.step()
        alive = weakref.ref(opt)
        del opt, schedule
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("lossy", [ng.tensor([2.0], requires_grad=True), 2, "2"])
def test_a_plateau_takes_what_makes_a_number(opt, lossy):
    schedule = s.ReduceLROnPlateau(opt, patience=0)
    schedule.step(1.0)
    schedule.step(lossy)
    assert schedule.get_last_lr() == pytest.approx([0.05, 0.02])


@pytest.mark.parametrize("cycle", ["CyclicLR", "OneCycleLR"])
def test_momenta_given_as_tensors_go_as_numbers_do(cycle):
    def momenta(number):
        optimizer = ng.optim.SGD([ng.nn.Parameter(np.ones(1))], lr=0.1, momentum=0.9)
        options = {"base_momentum": number(0.5), "max_momentum": number(0.75)}
        options |= {"total_steps": 9} if cycle == "OneCycleLR" else {"base_lr": 0.1}
        schedule = getattr(ng.optim.lr_scheduler, cycle)(optimizer, max_lr=0.2, **options)
        seen = []
        for _ in range(8):
            seen.append(float(optimizer.param_groups[0]["momentum"]))
            optimizer.step()
            schedule.step()
        assert float(optimizer.param_groups[0]["max_momentum"]) == 0.75
        return seen

    assert momenta(ng.tensor) == pytest.approx(momenta(float))


def test_bounds_given_as_tensors_are_not_shared():
    lr = ng.tensor(0.5)
    opt = optimizer(ng, lrs=[lr, lr])
    schedule = s.StepLR(opt, 1)
    assert schedule.base_lrs[0] is not lr
    assert schedule.base_lrs[0] is not schedule.base_lrs[1]
    CYCLES["cycle"](s, opt)
    SIMPLE["cosine"](s, opt)
    assert schedule.base_lrs[0].item() == 0.5


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("StepLR", {"step_size": 0}, "StepLR: step_size is 0; it must be positive"),
        ("CosineAnnealingLR", {"T_max": 0}, "CosineAnnealingLR: T_max is 0; it must be positive"),
        ("LinearLR", {"total_iters": -1}, "LinearLR: total_iters is -1; it must be at least 0"),
        (
            "CyclicLR",
            {"base_lr": 0.1, "max_lr": 0.2, "step_size_up": 0},
            "CyclicLR: step_size_up is 0; it must be positive",
        ),
        ("PolynomialLR", {"total_iters": "5"}, "PolynomialLR: total_iters is '5'; .* a number"),
    ],
)
def test_a_schedule_of_no_steps_says_so(name, options, message):
    optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0, momentum=0.9)
    with pytest.raises((ng.errors.NumgradValueError, ng.errors.NumgradTypeError), match=message):
        getattr(ng.optim.lr_scheduler, name)(optimizer, **options)


@pytest.mark.parametrize("name", ["LinearLR", "PolynomialLR"])
def test_no_steps_of_change_are_the_same_in_both_forms(name):
    optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=0.6)
    schedule = getattr(ng.optim.lr_scheduler, name)(optimizer, total_iters=0)
    begun = schedule.get_last_lr()
    for _ in range(2):
        optimizer.step()
        schedule.step()
    assert schedule.get_last_lr() == begun == schedule._get_closed_form_lr()
