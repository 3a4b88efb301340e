"""Steps of a profile: which are recorded, and when they are handed over."""

import itertools

import pytest

import numgrad as ng
from numgrad.profiler import ProfilerAction, profile, schedule


def test_actions_are_those_of_pytorch():
    theirs = pytest.importorskip("torch.profiler")
    for wait, warmup, active, repeat, skip in itertools.product(
        (0, 1, 2), (1, 2), (1, 3), (0, 1, 2), (0, 2)
    ):
        options = dict(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
        ours, other = schedule(**options), theirs.schedule(**options)
        for step in range(20):
            assert ours(step).name == other(step).name, (options, step)


def test_cycles_are_handed_over_one_by_one():
    seen = []

    def ready(p):
        seen.append([event.name for event in p.events()])

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as p:
        for k in range(10):
            assert p.step_num == k
            ng.exp(ng.ones(1)) if k % 2 else ng.tanh(ng.ones(1))
            p.step()
    assert seen == [
        ["ProfilerStep#2", "tanh", "ProfilerStep#3", "exp"],
        ["ProfilerStep#6", "tanh", "ProfilerStep#7", "exp"],
    ]
    assert [event.name for event in p.events()] == seen[-1]  # the last ones stay


def test_a_profile_that_ends_within_a_cycle_hands_over_what_there_is():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=0, active=5), on_trace_ready=seen.append) as p:
        ng.exp(ng.ones(1))
    assert seen == [p]
    assert [event.name for event in p.events()] == ["ProfilerStep#0", "exp"]


def test_what_a_schedule_leaves_out_costs_nothing():
    from numgrad.core.op import OPS

    ng.exp(ng.ones(1))
    entry = OPS["exp"].in_python
    code = entry.__code__
    with profile(schedule=schedule(wait=1, warmup=1, active=1)) as p:
        assert entry.__code__ is code
        p.step()
        assert entry.__code__ is not code
    assert entry.__code__ is code


def test_steps_without_a_schedule():
    with profile() as p:
        for _ in range(2):
            ng.exp(ng.ones(1))
            p.step()
    assert [e.name for e in p.events()] == ["ProfilerStep#0", "exp", "ProfilerStep#1", "exp"]


def test_a_schedule_of_ones_own():
    with profile(schedule=lambda k: list(ProfilerAction)[2 * (k == 1)]) as p:
        for _ in range(3):
            ng.exp(ng.ones(1))
            p.step()
    assert [event.name for event in p.events()] == ["ProfilerStep#1", "exp"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"active": 0}, ng.NumgradValueError, "active=0"),
        ({"wait": -1}, ng.NumgradValueError, "wait=-1"),
        ({"warmup": 1.5}, ng.NumgradTypeError, "float"),
    ],
)
def test_bad_schedules(options, error, message):
    with pytest.raises(error, match=message):
        schedule(**{"wait": 0, "warmup": 0, "active": 1, **options})


def test_bad_arguments():
    with pytest.raises(ng.NumgradTypeError, match="schedule"):
        profile(schedule=3)  # pyright: ignore
    with pytest.raises(ng.NumgradTypeError, match="on_trace_ready"):
        profile(on_trace_ready="x")  # pyright: ignore


def test_a_schedule_that_returns_no_action_leaves_the_profile_as_it_was():
    actions = [ProfilerAction.RECORD, 7, ProfilerAction.NONE]
    with pytest.raises(ng.NumgradTypeError, match="returned 7 for step 0"):
        profile(schedule=lambda k: 7).start()  # pyright: ignore
    with profile(schedule=lambda k: actions.pop(0)) as p:  # pyright: ignore
        ng.exp(ng.ones(1))
        with pytest.raises(ng.NumgradTypeError, match="returned 7 for step 1"):
            p.step()
        ng.exp(ng.ones(1))
        p.step()
        ng.exp(ng.ones(1))
    assert sum(event.name == "exp" for event in p.events()) == 2


def test_an_on_trace_ready_that_raises_ends_the_profile():
    def ready(p):
        raise KeyError("ready")

    with pytest.raises(KeyError), profile(on_trace_ready=ready):
        pass
    with profile() as p:
        ng.exp(ng.ones(1))
    assert len(p.events()) == 1


def test_a_block_without_a_name_is_refused():
    with pytest.raises(ng.NumgradTypeError, match="@record_function"):

        @ng.profiler.record_function
        def square(x):
            return x * x
