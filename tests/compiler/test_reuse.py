"""Large results are returned again once nobody holds them, and only then."""

import gc
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.run import program as reuse


@pytest.fixture
def doubled(monkeypatch):
    made = reuse.Reused(np.dtype(np.float64))
    monkeypatch.setattr(reuse, "SMALLEST", 64)
    return made


def test_memory_is_used_again_when_it_is_free(doubled):
    first = doubled((8, 2))
    place = first.ctypes.data
    del first
    assert doubled((8, 2)).ctypes.data == place


def test_held_memory_is_left_alone(doubled):
    first = doubled((8, 2))
    second = doubled((8, 2))
    assert not np.shares_memory(first, second)
    view = doubled((8, 2))[1:]
    assert not np.shares_memory(view, doubled((8, 2)))
    tensor = ng.asarray(doubled((8, 2)))
    assert not np.shares_memory(tensor.numpy(), doubled((8, 2)))


def test_other_shapes_and_small_results_get_memory_of_their_own(doubled):
    assert doubled((8, 2)).shape == (8, 2)
    assert doubled((2, 8)).shape == (2, 8)
    small = doubled((2,))
    assert small.base is None


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
def test_whatever_looks_at_the_memory_holds_it(doubled, hold):
    array = doubled((8, 2))
    place, held = array.ctypes.data, hold(array)
    del array
    assert doubled((8, 2)).ctypes.data != place
    del held
    gc.collect()


def test_borrowed_references_do_not_fool_it(doubled, monkeypatch):
    monkeypatch.setattr("sys.getrefcount", lambda x: 3)

    def borrow(array):
        return doubled((8, 2)), array

    other, array = borrow(doubled((8, 2)))
    assert not np.shares_memory(other, array)


def test_threads_get_memory_of_their_own(doubled):
    barrier = threading.Barrier(4)
    found = []

    def work():
        barrier.wait()
        found.append(doubled((8, 2)))

    for _ in range(20):
        found.clear()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({a.ctypes.data for a in found}) == 4


def test_arrays_are_as_empty_makes_them(doubled):
    for dtype in (np.float32, np.complex128, np.int8, np.bool_):
        made = reuse.Reused(np.dtype(dtype))((128, 2))
        assert (made.dtype, made.shape) == (np.dtype(dtype), (128, 2))
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert reuse.owns(made)
        assert not reuse.owns(made[1:])
