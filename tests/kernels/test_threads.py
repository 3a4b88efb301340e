"""Parallel kernels: the same bits for any thread count, safe from threads and after fork."""

import itertools
import multiprocessing
import os
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads, trials
from numgrad.codegen.native import thread_pool
from numgrad.core.op import OPS

N = 400_000


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=N), rng.normal(size=N)


def chain(x, w):
    a, b = ng.tensor(x, requires_grad=True), ng.tensor(w[:1], requires_grad=True)
    value = ng.sum(ng.exp(ng.tanh(a * b) + a))
    value.backward()
    return value.item(), a.grad.numpy(), b.grad.numpy()


@pytest.mark.slow(cases=0)
def test_same_bits_for_any_number_of_threads(data):
    before = ng.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            ng.set_num_threads(count)
            results.append(chain(*data))
    finally:
        ng.set_num_threads(before)
    for other in results[1:]:
        assert other[0] == results[0][0]
        np.testing.assert_array_equal(other[1], results[0][1])
        np.testing.assert_array_equal(other[2], results[0][2])
    x, w = data
    t = np.tanh(x * w[0])
    e = np.exp(t + x)
    np.testing.assert_allclose(results[0][2], [np.sum(e * (1 - t * t) * x)], rtol=1e-12)


@pytest.mark.slow(cases=0)
def test_python_threads_may_launch_at_once(data):
    expected = chain(*data)
    found, failures = [], []

    def work():
        try:
            for _ in range(3):
                found.append(chain(*data))
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not failures
    assert len(found) == 12
    for value, da, db in found:
        assert value == expected[0]
        np.testing.assert_array_equal(da, expected[1])
        np.testing.assert_array_equal(db, expected[2])


def _child(queue, x, w):
    queue.put(chain(x, w))


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_gradients_after_fork(data):
    expected = chain(*data)  # the pool runs in this process
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue, *data))
    child.start()
    value, da, db = queue.get(timeout=120)
    child.join(60)
    assert child.exitcode == 0
    assert value == expected[0]
    np.testing.assert_array_equal(da, expected[1])
    np.testing.assert_array_equal(db, expected[2])


def test_small_work_uses_one_thread_and_large_as_many_as_pay(monkeypatch):
    monkeypatch.setattr(threads, "_overhead_ns", 0.0)
    monkeypatch.setattr(threads, "_measured_ns", float("inf"))  # launches are quicker here or there
    before = ng.get_num_threads()
    try:
        ng.set_num_threads(64)
        assert threads.worth(1_000.0) == 1
        assert threads.worth(threads.WORK_PER_THREAD_NS * 3) == 3
        assert threads.worth(1e12) == 64
        ng.set_num_threads(1)
        assert threads.worth(1e12) == 1
    finally:
        ng.set_num_threads(before)


def test_bytes_cost_what_the_cache_that_holds_them_costs(monkeypatch):
    monkeypatch.setattr(threads, "cache_sizes", lambda: (1 << 20, 32 << 20))
    monkeypatch.setattr(threads, "moving_ns", lambda held: held * 1e-9)
    assert threads.serial_ns(500.0, 1000) == 500.0 + 1000 * (1 << 19) * 1e-9
    prices = [threads.byte_ns(size) for size in (1 << 20, (1 << 20) + 1, 16 << 20, 17 << 20)]
    second, third = (1 << 19) * 1e-9, (1 << 22) * 1e-9
    assert prices == [second, third, third, threads.MEMORY_NS]


def test_what_a_byte_costs_is_the_quickest_of_some_measurements(monkeypatch):
    times = iter([k * 10_000 + 3_000 * (k == 6) for k in range(20)])
    monkeypatch.setattr(threads, "perf_counter_ns", lambda: next(times))
    assert threads.moving_ns.__wrapped__(3 * 1_000_000) == 7_000 / 3_000_000
    times = iter(range(0, 20_000_000, 1_000_000))
    assert threads.moving_ns.__wrapped__(24) == threads.MEMORY_NS


def test_caches_have_sizes_on_every_system(monkeypatch, tmp_path):
    second, third = threads.cache_sizes()
    assert 1 << 15 <= second <= third
    monkeypatch.setattr(threads, "Path", lambda _: tmp_path)
    assert threads.cache_sizes.__wrapped__() == (1 << 20, 16 << 20)
    for name, content in (("level", "2"), ("type", "Unified"), ("size", "2048K")):
        (tmp_path / "index2").mkdir(exist_ok=True)
        (tmp_path / "index2" / name).write_text(content + "\n")
    assert threads.cache_sizes.__wrapped__() == (2 << 20, 16 << 20)


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "_overhead_ns", 0.0)
    monkeypatch.setattr(threads, "_losing", 0)  # other tests may have begun a series
    monkeypatch.setattr(threads, "_lost_ns", 0.0)
    before = ng.get_num_threads()
    ng.set_num_threads(2)
    yield
    ng.set_num_threads(before)


def test_moving_bytes_is_work(two_threads, monkeypatch):
    monkeypatch.setattr(threads, "moving_ns", lambda held: 0.035)
    counts = []
    monkeypatch.setattr(threads, "launch", lambda entry, count, *given: counts.append(count))
    for size in (10_003, 100_003):
        a = np.ones(size)
        OPS["multiply"].plan((a, a)).compute((a, a))
    assert counts == [2]


def test_launches_that_do_not_pay_are_avoided_for_a_while(two_threads, monkeypatch):
    threads.prepare_pool()  # which asks for losses too
    now = 1_000_000_000
    monkeypatch.setattr(threads, "perf_counter_ns", lambda: now)
    losses = iter([(50_000.0, 300_000.0), (50_000.0, 100_000.0), (50_000.0, 150_000.0)])
    monkeypatch.setattr(thread_pool, "losses", lambda: next(losses, (0.0, 0.0)))
    for _ in range(2):
        assert threads.launch(lambda x: x + 1, 2, 1) == 2
        assert threads.worth(190_000.0) == 2  # the threads may have slept before
    threads.launch(lambda x: x + 1, 2, 1)
    # what could win less than twice the overhead of the best of those launches
    assert (threads.worth(390_000.0), threads.worth(410_000.0)) == (1, 2)
    now += int(threads.PATIENCE * 150_000.0) - 1
    assert threads.worth(390_000.0) == 1
    now += 2
    assert threads.worth(390_000.0) == 2
    # one that pays changes nothing
    threads.launch(lambda x: x + 1, 2, 1)
    assert threads.worth(390_000.0) == 2


def test_a_launch_that_pays_ends_a_series_of_those_that_do_not(two_threads, monkeypatch):
    losses = iter([(5e4, 1e5), (5e4, 1e5), (0.0, 0.0)] * 3)
    monkeypatch.setattr(thread_pool, "losses", lambda: next(losses))
    threads.prepare_pool()
    for _ in range(9):
        threads.launch(lambda x: x + 1, 2, 1)
        assert threads.worth(190_000.0) == 2


@pytest.mark.parametrize(
    ("launch_ns", "least"), [(100.0, 5_000.0), (6_000.0, 9_000.0), (9e9, 20_000.0)]
)
def test_a_thread_gets_work_by_what_a_launch_takes(two_threads, monkeypatch, launch_ns, least):
    monkeypatch.setattr(threads, "_pool_ready", False)
    monkeypatch.setattr(threads, "_measured_ns", float("inf"))
    assert threads.work_per_thread_ns() == threads.WORK_PER_THREAD_NS
    monkeypatch.setattr(thread_pool, "launch_ns", lambda: launch_ns)
    threads.prepare_pool()
    assert threads.work_per_thread_ns() == least
    assert (threads.worth(2 * least - 1.0), threads.worth(2 * least)) == (1, 2)


class Clock:
    """Calls of variants that take what ``times`` says of so many threads: a number, or many."""

    def __init__(self, monkeypatch, one, two):
        self.now, self.counts, self.times = 0, [], {1: one, 2: two}
        monkeypatch.setattr(trials, "perf_counter_ns", lambda: self.now)

    def call(self, count, *arguments):
        self.counts.append(count)
        time = self.times[count]
        self.now += time if isinstance(time, int) else next(time)
        return arguments


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize(("one", "two"), [(25_000, 17_000), (25_000, 30_000), (25_000, 900_000)])
def test_a_trial_finds_the_quicker_variant_and_takes_little_time(monkeypatch, begins, one, two):
    clock = Clock(monkeypatch, one=one, two=two)
    trial = trials.VariantTrial(begins, 10)
    calls = 60_000
    for k in range(calls):
        assert trial.run(clock.call, 2, k) == (k,)
    better = 2 if two < one else 1
    assert trial.several == (better == 2)
    assert clock.counts[:10] == [2 if begins else 1] * 10
    first = trials.ROUNDS * (trials.OWN + trials.OTHER) + 10
    others = sum(count != better for count in clock.counts[first:])
    assert 0 < others * abs(two - one) < 0.02 * calls * min(one, two)


def test_an_interruption_does_not_decide_a_trial(monkeypatch):
    for late in (1, 2):
        clock = Clock(monkeypatch, one=25_000, two=17_000)
        usual = clock.times[late]
        clock.times[late] = itertools.chain([usual] * 11, [4_000_000], itertools.repeat(usual))
        trial = trials.VariantTrial(False)
        for _ in range(trials.ROUNDS * (trials.OWN + trials.OTHER)):
            trial.run(clock.call, 2)
        assert trial.several


def test_a_trial_follows_what_changes(monkeypatch):
    clock = Clock(monkeypatch, one=25_000, two=17_000)
    trial = trials.VariantTrial(False)
    for _ in range(3_000):
        trial.run(clock.call, 2)
    assert trial.several
    clock.times[2] = 60_000  # such as when another process takes a core
    for _ in range(3_000):
        trial.run(clock.call, 2)
    assert not trial.several


def test_work_near_the_crossing_is_tried(two_threads, monkeypatch):
    monkeypatch.setattr(threads, "BEFORE_TRIAL_NS", 0.0)
    threads.prepare_pool()
    monkeypatch.setattr(threads, "_measured_ns", 8_000.0)
    monkeypatch.setattr(threads, "_avoided_until", 0)
    counts = []
    monkeypatch.setattr(threads, "launch", lambda entry, count: counts.append(count))
    for work_ns, some in ((9_999.0, 0), (15_000.0, 15), (60_000.0, 100), (64_000.0, 115)):
        counts.clear()
        clock = iter(range(10**6))
        monkeypatch.setattr(trials, "perf_counter_ns", lambda clock=clock: next(clock))
        run = threads.choose(lambda: lambda: None, lambda: None, work_ns)
        for _ in range(trials.ROUNDS * (trials.OWN + trials.OTHER)):
            run()
        assert len(counts) == some
        assert set(counts) <= {2}
    ng.set_num_threads(1)
    run = threads.choose(lambda: lambda: 3, lambda: None, 15_000.0)
    assert [run() for _ in range(200)] == [3] * 200


def test_much_small_work_starts_the_pool(two_threads, monkeypatch):
    started = []
    monkeypatch.setattr(threads, "prepare_pool", lambda: started.append(True))
    monkeypatch.setattr(threads, "_pool_ready", False)
    monkeypatch.setattr(threads, "_measured_ns", float("inf"))
    monkeypatch.setattr(threads, "_without_pool_ns", 0.0)
    work = threads.WORK_PER_THREAD_NS
    for _ in range(int(threads.BEFORE_POOL_NS / work) - 1):
        assert threads.worth(work) == 1
    assert threads.worth(threads.least_ns() - 1.0) == 1
    assert not started
    threads.worth(work)
    assert started


def test_a_launch_of_nothing_takes_some_time():
    threads.prepare_pool()
    assert 0.0 < thread_pool.launch_ns() < 1e9
    assert thread_pool.losses() == (0.0, 0.0)


def test_all_of_a_formula_is_work(monkeypatch):
    monkeypatch.setattr(threads, "moving_ns", lambda held: 0.01)
    works = []

    def choose(serial, parallel, work_ns, released=None):
        works.append(work_ns)
        return serial()

    monkeypatch.setattr(threads, "choose", choose)
    x = np.ones((100, 13))
    for name in ("softmax", "log_softmax", "sum"):
        OPS[name].plan(x, {"axis": 1}).compute(x)
    softmax, log_softmax, plain = works
    assert softmax > x.size * 1.25  # an exponential and a quotient
    assert log_softmax > x.size
    assert plain < 0.5 * x.size


def test_many_small_loops_stay_in_one_thread(two_threads):
    def mlp(weights, x):
        for w in weights:
            x = np.tanh(x @ w)
        return np.sum(x * x)

    draw = np.random.default_rng(0)
    weights = [draw.normal(size=(32, 32)) for _ in range(8)]
    fast = ng.jit(ng.value_and_grad(mlp))
    fast(weights, draw.normal(size=(64, 32)))
    assert "threads: one if" in fast.report()
    assert "so 1" in fast.report()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_set_num_threads_refuses(bad):
    with pytest.raises(ng.NumgradValueError, match="set_num_threads"):
        ng.set_num_threads(bad)


def test_describe_names_the_layer_and_what_it_is_safe_for():
    described = threads.describe()
    assert described["layer"] in ("omp", "tbb", "workqueue")
    assert isinstance(described["safe_for_threads"], bool)
    assert isinstance(described["safe_after_fork"], bool)
