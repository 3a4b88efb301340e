"""Large arrays and temporaries: memory is used again once nobody holds it, and only then."""

import gc
import os
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numba import prange

import numgrad as ng
from numgrad.codegen import memory

PAGE = 1 << 21
COUNT = 5 * 10**6  # of 40 MB
RNG = np.random.default_rng(3)


@pytest.fixture
def pool(monkeypatch):
    """The pool, empty, which takes arrays of any length."""
    monkeypatch.setattr(memory, "LARGE", 64)
    pool = memory.load_pool()
    gc.collect()
    pool.trim(1 << 62, 0)
    assert pool.counts[0] == 0
    yield pool
    pool.trim(1 << 62, 0)


def doubled(shape, dtype: Any = np.float64):
    return memory.empty(shape, np.dtype(dtype))


# -------------------------------------------------------------------------------------- arrays


def test_memory_is_used_again_when_it_is_free(pool):
    first = doubled((8, 2))
    place = first.ctypes.data
    del first
    assert pool.counts[0] == PAGE
    assert doubled((8, 2)).ctypes.data == place


def test_held_memory_is_left_alone(pool):
    first = doubled((8, 2))
    second = doubled((8, 2))
    assert not np.shares_memory(first, second)
    view = doubled((8, 2))[1:]
    assert not np.shares_memory(view, doubled((8, 2)))
    tensor = ng.asarray(doubled((8, 2)))
    assert not np.shares_memory(tensor.numpy(), doubled((8, 2)))


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a[2:, :1].T,
        lambda a: memoryview(a),
        lambda a: np.asarray(memoryview(a)),
        lambda a: ng.asarray(a).reshape(-1)[3:],
        lambda a: a.view(np.int64),
        lambda a: [a],
        lambda a: lambda: a,
        lambda a: np.lib.stride_tricks.as_strided(a, (2,), (8,)),
        lambda a: np.ndarray((2,), np.float64, a),
        lambda a: np.frombuffer(a),
    ],
)
def test_whatever_looks_at_the_memory_holds_it(pool, hold):
    array = doubled((8, 2))
    place, held = array.ctypes.data, hold(array)
    del array
    assert doubled((8, 2)).ctypes.data != place
    del held
    gc.collect()


def test_borrowed_references_do_not_fool_it(pool, monkeypatch):
    monkeypatch.setattr("sys.getrefcount", lambda x: 3)

    def borrow(array):
        return doubled((8, 2)), array

    other, array = borrow(doubled((8, 2)))
    assert not np.shares_memory(other, array)


def test_threads_get_memory_of_their_own(pool):
    barrier = threading.Barrier(4)
    made = []

    def work():
        barrier.wait()
        made.append(doubled((8, 2)))

    for _ in range(20):
        made.clear()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({a.ctypes.data for a in made}) == 4


def test_arrays_are_as_empty_makes_them(pool):
    for dtype in (np.float32, np.complex128, np.int8, np.bool_):
        for shape in ((128, 2), (256,)):
            made = doubled(shape, dtype)
            assert (made.dtype, made.shape) == (np.dtype(dtype), shape)
            assert made.flags.c_contiguous
            assert made.flags.writeable
            assert memory.owns(made)
            assert not memory.owns(made[1:])
    assert doubled((2,)).base is None
    number = memory.large(16, np.dtype(np.float64))
    assert number.shape == (16,)


def test_zeros_are_zero_and_copies_are_copies(pool):
    doubled((8, 2))[...] = 7.0
    assert not memory.zeros((8, 2), np.dtype(np.float64)).any()
    x = RNG.standard_normal((4, 8))
    for given in (x, x.T, x[::2], x.astype(np.float32)):
        copy = memory.copied(given)
        np.testing.assert_array_equal(copy, given)
        assert not np.shares_memory(copy, x)
        assert copy.dtype == np.asarray(given).dtype
    assert memory.copied(x).base is not None
    assert memory.copied(x.T).flags.f_contiguous


def test_gradients_over_blocks_are_handed_over_without_a_copy(pool):
    x = ng.tensor(RNG.standard_normal(1 << 19), requires_grad=True)
    y = ng.tanh(ng.tanh(ng.tanh(x)))
    y.backward(ng.ones(x.shape), retain_graph=True)  # which compiles kernels
    x.grad = None
    tracemalloc.start()
    try:
        y.backward(ng.ones(x.shape))
        assert tracemalloc.get_traced_memory()[1] < 2.5 * x.nbytes  # the seed, and one more
    finally:
        tracemalloc.stop()


def test_what_no_one_could_hold_raises_as_numpy_does(pool):
    for count in (1 << 45, 1 << 62, 1 << 75):
        with pytest.raises((MemoryError, ValueError, OverflowError)):
            doubled((count,))


def test_tracemalloc_sees_leases(pool):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        a = doubled((1000, 100))
        assert 800_000 <= tracemalloc.get_traced_memory()[0] - before < 900_000
        del a
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------- bounds


def test_blocks_fit_sizes_that_are_at_most_a_fifth_less(pool):
    place = pool.take(10 * PAGE, 0)
    pool.give(place)
    for size, again in ((10 * PAGE + 1, False), (8 * PAGE, True), (8 * PAGE - PAGE, False)):
        other = pool.take(size, 0)
        assert (other == place) == again
        pool.give(other)
        pool.trim(1 << 62, 0)
        place = pool.take(10 * PAGE, 0)
        pool.give(place)


def test_no_more_is_kept_than_the_bound(pool, monkeypatch):
    monkeypatch.setattr(ng.config, "pool_bytes", 3 * PAGE)
    places = [pool.take(PAGE, 0) for _ in range(5)]
    for number, place in enumerate(places):
        pool.give(place)
        assert pool.counts[0] <= 3 * PAGE
        assert pool.counts[0] >= min(number + 1, 1) * PAGE
    pool.give(pool.take(4 * PAGE, 0))  # one beyond the bound leaves the others
    assert PAGE <= pool.counts[0] <= 3 * PAGE
    ng.config.pool_bytes = 0
    assert pool.counts[0] == 0
    pool.give(pool.take(PAGE, 0))
    assert pool.counts[0] == 0


def test_more_blocks_than_slots(pool):
    places = [pool.take(PAGE, 0) for _ in range(20)]
    assert len(set(places)) == 20
    for place in places:
        pool.give(place)
    assert pool.counts[0] == 16 * PAGE
    assert {pool.take(PAGE, 0) for _ in range(16)} < set(places)
    assert pool.counts[0] == 0
    for place in places[:16]:
        pool.give(place)


def test_what_is_not_used_goes_back(pool, monkeypatch):
    monkeypatch.setattr(memory, "SECONDS", 0.0)
    gc.disable()
    try:
        pool.give(pool.take(PAGE, 0))
        gc.collect()
        assert pool.counts[0] == PAGE  # given since the last sweep
        used = pool.take(PAGE, 0)
        pool.give(pool.take(2 * PAGE, 0))
        pool.give(used)
        gc.collect()
        assert pool.counts[0] == 3 * PAGE
        pool.give(pool.take(PAGE, 0))
        gc.collect()
        assert pool.counts[0] == PAGE
        gc.collect()
        assert pool.counts[0] == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", 1 << 62])
def test_the_bound_is_a_number_of_bytes(value):
    before = ng.config.pool_bytes
    with pytest.raises(ng.errors.NumgradValueError, match="pool_bytes"):
        ng.config.pool_bytes = value
    assert ng.config.pool_bytes == before


# --------------------------------------------------------------------------------------- kernels


@ng.kernel
def twice_by_temporary(x, n):
    temporary = np.zeros(n)
    for i in range(0, n, 4096):
        temporary[i] += x
    total = 0.0
    for i in range(0, n, 2048):
        total += temporary[i]
    return total


def test_temporaries_of_kernels_are_used_again_and_zero(pool):
    expected = 3.0 * len(range(0, COUNT, 4096))
    kept = []
    for _ in range(3):
        assert twice_by_temporary(3.0, COUNT) == expected
        kept.append(pool.counts[0])
    assert kept == [kept[0]] * 3
    assert 8 * COUNT <= kept[0] <= 8 * COUNT + PAGE
    assert twice_by_temporary(3.0, 100) == 3.0


@pytest.mark.slow
def test_gradients_with_large_states_are_right(pool):
    @ng.kernel
    def flow(x, step):  # of s' = sin(s), for a time of 0.5
        s = x
        time = 0.0
        while time < 0.5:
            s = s + step * np.sin(s)
            time += step
        return s

    start = 0.3
    end = 2 * np.arctan(np.tan(start / 2) * np.exp(0.5))
    for _ in range(2):
        # np.sin(end) / np.sin(start), from tan(s / 2) = tan(x / 2) * exp(t)
        derivative = ng.grad(flow)(start, 0.5 / COUNT)
        np.testing.assert_allclose(derivative, np.sin(end) / np.sin(start), rtol=1e-5)


@pytest.mark.slow
def test_tasks_and_forks_have_memory_of_their_own(pool):
    @ng.kernel
    def by_rows(x, n):
        out = np.zeros(x.shape[0])
        for k in prange(x.shape[0]):
            temporary = np.zeros(n)
            for i in range(0, n, 512):
                temporary[i] += x[k]
            for i in range(0, n, 256):
                out[k] += temporary[i]
        return out

    x = np.arange(1.0, 65.0)
    expected = x * len(range(0, COUNT, 512))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(np.asarray(by_rows(x, COUNT))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)
    child = os.fork() if hasattr(os, "fork") else None
    if child == 0:
        right = twice_by_temporary(2.0, COUNT) == 2.0 * len(range(0, COUNT, 4096))
        os._exit(0 if right else 1)
    if child is not None:
        assert os.waitpid(child, 0)[1] == 0
