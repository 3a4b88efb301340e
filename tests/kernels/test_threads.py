"""Parallel kernels: the same bits for any thread count, safe from threads and after fork."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads

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


def test_small_work_uses_one_thread_and_large_as_many_as_pay():
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


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_set_num_threads_refuses(bad):
    with pytest.raises(ng.NumgradValueError, match="set_num_threads"):
        ng.set_num_threads(bad)


def test_describe_names_the_layer_and_what_it_is_safe_for():
    described = threads.describe()
    assert described["layer"] in ("omp", "tbb", "workqueue")
    assert isinstance(described["safe_for_threads"], bool)
    assert isinstance(described["safe_after_fork"], bool)
