"""Parallel kernels: the same bits for any thread count, safe from threads and after fork."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import estimate, threads
from numgrad.codegen.native import launch
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
    monkeypatch.setattr(estimate, "cache_sizes", lambda: (1 << 20, 32 << 20))
    assert estimate.serial_ns(500.0, 1000) == 500.0 + 1000 * estimate.L2_NS
    prices = [estimate.byte_ns(size) for size in (1 << 20, (1 << 20) + 1, 16 << 20, 17 << 20)]
    assert prices == [estimate.L2_NS, estimate.L3_NS, estimate.L3_NS, estimate.MEMORY_NS]


def test_caches_have_sizes_on_every_system(monkeypatch, tmp_path):
    second, third = estimate.cache_sizes()
    assert 1 << 15 <= second <= third
    monkeypatch.setattr(estimate, "Path", lambda _: tmp_path)
    assert estimate.cache_sizes.__wrapped__() == (1 << 20, 16 << 20)
    for name, content in (("level", "2"), ("type", "Unified"), ("size", "2048K")):
        (tmp_path / "index2").mkdir(exist_ok=True)
        (tmp_path / "index2" / name).write_text(content + "\n")
    assert estimate.cache_sizes.__wrapped__() == (2 << 20, 16 << 20)


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "_overhead_ns", 0.0)
    before = ng.get_num_threads()
    ng.set_num_threads(2)
    yield
    ng.set_num_threads(before)


def test_moving_bytes_is_work(two_threads, monkeypatch):
    monkeypatch.setattr(estimate, "cache_sizes", lambda: (1 << 20, 32 << 20))
    counts = []
    monkeypatch.setattr(threads, "launch", lambda entry, count, *given: counts.append(count))
    for size in (10_003, 100_003):
        a = np.ones(size)
        OPS["multiply"].plan((a, a)).compute((a, a))
    assert counts == [2]


def test_launches_that_do_not_pay_are_avoided_for_a_while(two_threads, monkeypatch):
    now = 1_000_000_000
    monkeypatch.setattr(threads, "perf_counter_ns", lambda: now)
    monkeypatch.setattr(launch, "losses", lambda: (50_000.0, 100_000.0))
    threads.prepare_pool()
    assert threads.launch(lambda x: x + 1, 2, 1) == 2
    # what could win less than twice the overhead of that launch
    assert (threads.worth(390_000.0), threads.worth(410_000.0)) == (1, 2)
    now += int(threads.PATIENCE * 50_000.0) - 1
    assert threads.worth(390_000.0) == 1
    now += 2
    assert threads.worth(390_000.0) == 2
    # one that pays changes nothing
    monkeypatch.setattr(launch, "losses", lambda: (0.0, 0.0))
    threads.launch(lambda x: x + 1, 2, 1)
    assert threads.worth(390_000.0) == 2


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
