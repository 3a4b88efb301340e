"""Averages of weights: their values, against PyTorch, the schedule to them, batch statistics."""

import copy
import math
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)
from tests.optim.schedules import optimizer, run


class Model(ng.nn.Module):
    """Two parameters of different dtypes, a floating and an integer buffer."""

    def __init__(self):
        super().__init__()
        self.weight = ng.nn.Parameter(ng.zeros((2, 3)))
        self.single = ng.nn.Parameter(ng.zeros(2, dtype="float32"))
        self.register_buffer("mean", ng.zeros(2))
        self.register_buffer("count", ng.tensor(0))

    def forward(self, x):
        return (self.weight @ x).sum() + self.single.sum()


def train(model, seed):
    """Values that a step of training might leave."""
    generator = np.random.default_rng(seed)
    for t in (*model.parameters(), *model.buffers()):
        t.detach().copy_((generator.normal(size=t.shape) * 10).astype(t.dtype))


def history(steps):
    """The model after each of several steps, as arrays."""
    model, rows = Model(), []
    for seed in range(steps):
        train(model, seed)
        rows.append({name: t.numpy().copy() for name, t in model.state_dict().items()})
    return rows


def updated(steps=5, **options):
    model = Model()
    averaged = AveragedModel(model, **options)
    for seed in range(steps):
        train(model, seed)
        averaged.update_parameters(model)
    return averaged


def ema(rows, decay):
    average = rows[0].astype(np.float64)
    for row in rows[1:]:
        average = decay * average + (1 - decay) * row
    return average


@pytest.mark.parametrize(
    "options",
    [{}, {"avg_fn": get_swa_avg_fn()}, {"multi_avg_fn": get_swa_multi_avg_fn()}],
    ids=["default", "one", "many"],
)
def test_the_mean(options):
    averaged, rows = updated(**options), history(5)
    for name in ("weight", "single"):
        got = getattr(averaged.module, name)
        assert got.dtype == rows[0][name].dtype
        expected = np.mean([row[name] for row in rows], axis=0)
        np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(averaged.module.mean.numpy(), rows[-1]["mean"])
    assert averaged.module.count.item() == rows[-1]["count"]
    assert averaged.n_averaged.item() == 5


@pytest.mark.parametrize(
    "options", [{"avg_fn": get_ema_avg_fn(0.8)}, {"multi_avg_fn": get_ema_multi_avg_fn(0.8)}]
)
def test_the_exponential_average(options):
    averaged, rows = updated(**options), history(5)
    expected = ema(np.array([row["weight"] for row in rows]), 0.8)
    np.testing.assert_allclose(averaged.module.weight.detach().numpy(), expected, rtol=1e-13)


def test_buffers_are_averaged_if_asked():
    averaged, rows = updated(use_buffers=True), history(5)
    expected = np.mean([row["mean"] for row in rows], axis=0)
    np.testing.assert_allclose(averaged.module.mean.numpy(), expected, rtol=1e-13)


def test_a_function_of_ones_own():
    seen = []

    def largest(average, present, n):
        seen.append(n.item())
        return np.maximum(average, present)

    averaged, rows = updated(3, avg_fn=largest), history(3)
    expected = np.max([row["weight"] for row in rows], axis=0)
    np.testing.assert_array_equal(averaged.module.weight.detach().numpy(), expected)
    assert seen == [1, 1, 2, 2]


def test_functions_of_many_get_one_dtype_at_a_time():
    calls = []

    def note(averages, present, n):
        calls.append((n.item(), [t.dtype.name for t in averages], len(present)))

    updated(2, multi_avg_fn=note)
    assert calls == [(1, ["float64"], 1), (1, ["float32"], 1)]


@pytest.mark.slow
@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("kind", ["default", "ema", "many ema", "swa", "many swa"])
def test_averages_are_pytorchs(torch, kind, use_buffers):
    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(2, 3))
            self.single = torch.nn.Parameter(torch.zeros(2, dtype=torch.float32))
            self.register_buffer("mean", torch.zeros(2))

    states = []
    for utils, model in ((ng.optim.swa_utils, Model()), (torch.optim.swa_utils, Theirs())):
        options = {
            "default": {},
            "ema": {"avg_fn": utils.get_ema_avg_fn(0.7)},
            "many ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.7)},
            "swa": {"avg_fn": utils.get_swa_avg_fn()},
            "many swa": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        }[kind]
        averaged = utils.AveragedModel(model, use_buffers=use_buffers, **options)
        for row in history(4):
            with torch.no_grad():
                for name in ("weight", "single", "mean"):
                    t = getattr(model, name)
                    value = row[name]
                    t.detach().copy_(value if isinstance(t, ng.Tensor) else torch.tensor(value))
            averaged.update_parameters(model)
        states.append({k: np.asarray(v.tolist()) for k, v in averaged.state_dict().items()})
    assert set(states[1]) == set(states[0]) - {"module.count"}
    for name, value in states[1].items():
        np.testing.assert_allclose(states[0][name], value, rtol=2e-6, atol=1e-6)


def test_the_model_is_a_module_of_its_own():
    model = Model()
    train(model, 0)
    averaged = AveragedModel(model, device="cpu")
    x = np.arange(3.0)
    assert averaged(x).item() == model(x).item()
    train(model, 1)
    assert averaged(x).item() != model(x).item()
    assert [name for name, _ in averaged.named_parameters()] == ["module.weight", "module.single"]
    averaged(x).backward()
    assert model.weight.grad is None
    for twin in (copy.deepcopy(averaged), pickle.loads(pickle.dumps(averaged))):
        assert twin(x).item() == averaged(x).item()
    other = AveragedModel(Model())
    other.load_state_dict(updated(3).state_dict())
    assert other.n_averaged.item() == 3


def test_an_update_is_noticed_by_a_backward_that_needs_the_old_values():
    model = Model()
    averaged = AveragedModel(model)
    y = (averaged.module.weight**2).sum()
    averaged.update_parameters(model)
    with pytest.raises(RuntimeError, match="in-place operations"):
        y.backward()


def test_errors():
    with pytest.raises(AssertionError, match="got avg_fn and multi_avg_fn") as caught:
        AveragedModel(Model(), avg_fn=get_ema_avg_fn(), multi_avg_fn=get_ema_multi_avg_fn())
    assert isinstance(caught.value, ng.NumgradError)
    with pytest.raises(ValueError, match="computes on the CPU, got device 'cuda'"):
        AveragedModel(Model(), device="cuda")
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        for decay in (-0.1, 1.1):
            with pytest.raises(ValueError, match=rf"{make.__name__}: decay .* got {decay}"):
                make(decay)
    averaged = updated(2)
    before = averaged.module.weight.detach().numpy().copy()
    with pytest.raises(ValueError, match="give the model that was copied"):
        averaged.update_parameters(ng.nn.Linear(3, 2))
    np.testing.assert_array_equal(averaged.module.weight.detach().numpy(), before)
    assert averaged.n_averaged.item() == 2


# ------------------------------------------------------------------------------------- schedule

WAYS = [
    {"swa_lr": 0.05},
    {"swa_lr": [0.05, 0.3], "anneal_epochs": 7, "anneal_strategy": "linear"},
    {"swa_lr": 0.9, "anneal_epochs": 0},
    {"swa_lr": 0.01, "anneal_epochs": 1, "anneal_strategy": "linear"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS)
def test_rates_are_pytorchs(torch, options):
    rows = []
    for lib in (ng, torch):
        opt = optimizer(lib)
        schedule = lib.optim.swa_utils.SWALR(opt, **options)
        rows.append(run(opt, schedule, 4))
        opt.param_groups[0]["lr"] *= 2
        rows.append(run(opt, schedule, 10))
    for ours, theirs in zip(rows[:2], rows[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("options", WAYS)
def test_rates_are_on_the_way(options):
    opt = optimizer(ng)
    n = options.get("anneal_epochs", 10)
    rates = run(opt, SWALR(opt, **options), 15)[:, 0]
    goal = options["swa_lr"]
    goal = goal[0] if isinstance(goal, list) else goal
    for t, rate in enumerate(rates):
        share = min(t / n, 1) if n else 1.0
        if options.get("anneal_strategy", "cos") == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        assert rate == pytest.approx(0.5 * (1 - share) + goal * share)


def test_a_resumed_schedule_gives_the_same_bits():
    opt = optimizer(ng)
    schedule = SWALR(opt, **WAYS[1])
    run(opt, schedule, 4)
    state = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
    expected = run(opt, schedule, 6)
    opt = optimizer(ng)
    schedule = SWALR(opt, swa_lr=0.7)
    opt.load_state_dict(state[0])
    schedule.load_state_dict(state[1])
    np.testing.assert_array_equal(run(opt, schedule, 6), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"swa_lr": [0.1]}, "swa_lr has 1 values, the optimizer 2 groups"),
        ({"swa_lr": 0.1, "anneal_strategy": "x"}, "'cos' or 'linear', got 'x'"),
        ({"swa_lr": 0.1, "anneal_epochs": -1}, "integer from 0, got -1"),
        ({"swa_lr": 0.1, "anneal_epochs": 1.5}, "integer from 0, got 1.5"),
    ],
)
def test_schedules_that_are_refused(options, message):
    opt = optimizer(ng)
    with pytest.raises(ValueError, match=message) as caught:
        SWALR(opt, **options)
    assert isinstance(caught.value, ng.NumgradError)
    assert "swa_lr" not in opt.param_groups[0]
    with pytest.raises(TypeError, match="got int"):
        SWALR(3, 0.1)


# ------------------------------------------------------------------------------ batch statistics


class Statistics(ng.nn.Module):
    """The part of a batch normalization that keeps the mean."""

    def __init__(self):
        super().__init__()
        self.momentum = 0.1
        self.register_buffer("running_mean", ng.zeros(2))
        self.batches = 0

    def reset_running_stats(self):
        self.running_mean.zero_()
        self.batches = 0

    def forward(self, x):
        if self.training:
            self.batches += 1
            share = 1 / self.batches if self.momentum is None else self.momentum
            self.running_mean += share * (x.mean(axis=0) - self.running_mean)
        return x - self.running_mean


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x, "label"), lambda x: [x]])
def test_statistics_are_those_of_all_batches(wrap):
    model = ng.nn.Sequential(Statistics(), ng.nn.Identity()).eval()
    model[1].train()
    batches = np.random.default_rng(0).normal(size=(6, 4, 2))
    model[0].running_mean.fill_(99.0)
    update_bn([wrap(ng.tensor(b)) for b in batches], model, device="cpu")
    np.testing.assert_allclose(model[0].running_mean.numpy(), batches.mean(axis=(0, 1)))
    assert model[0].momentum == 0.1
    assert (model.training, model[0].training, model[1].training) == (False, False, True)


def test_statistics_of_batch_normalization():
    model = ng.nn.Sequential(ng.nn.Linear(2, 2), ng.nn.BatchNorm1d(2, momentum=0.3)).eval()
    batches = np.random.default_rng(1).normal(size=(5, 4, 2))
    update_bn([ng.tensor(b) for b in batches], model)
    hidden = [model[0](ng.tensor(b)).detach().numpy() for b in batches]
    norm = model[1]
    np.testing.assert_allclose(norm.running_mean.numpy(), np.mean(hidden, axis=(0, 1)))
    variances = [h.var(axis=0, ddof=1) for h in hidden]
    np.testing.assert_allclose(norm.running_var.numpy(), np.mean(variances, axis=0))
    assert (norm.momentum, norm.training, norm.num_batches_tracked.item()) == (0.3, False, 5)


def test_nothing_is_recorded():
    grads = []

    class Watch(Statistics):
        def forward(self, x):
            grads.append(ng.is_grad_enabled())
            return super().forward(x)

    update_bn([ng.ones((1, 2))], Watch())
    assert grads == [False]


def test_momenta_come_back_after_an_exception():
    model = Statistics().eval()

    def loader():
        yield ng.ones((1, 2))
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        update_bn(loader(), model)
    assert (model.momentum, model.training) == (0.1, False)


def test_models_without_batch_normalization_are_not_run():
    class Refuses(ng.nn.Module):
        def forward(self, x):
            raise AssertionError

    model = Refuses()
    update_bn([1], model)
    assert model.training
    with pytest.raises(ValueError, match="computes on the CPU"):
        update_bn([], model, device="cuda")
