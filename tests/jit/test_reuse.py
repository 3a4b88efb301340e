"""Large results are returned again once nobody holds them, and only then."""

import gc

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit import reuse


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
    del small
    gc.collect()
    assert doubled._kept is None
