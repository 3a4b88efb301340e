"""Random Tensors are NumPy's numbers."""

import numpy as np
import pytest

import numgrad as ng

CALLS = [
    lambda r: r.normal(1.0, 2.0, (2, 3)), lambda r: r.uniform(-1, 1, 4), lambda r: r.integers(0,
    9, 5),
    lambda r: r.permutation(6), lambda r: r.choice(10, 3, replace=False), lambda r: r.random(3),
    lambda r: r.standard_normal(2, np.float32), lambda r: r.choice([1.0, 2.0], p=[0.5, 0.5]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_same_numbers_as_numpy(call):
    ours, theirs = call(ng.random.default_rng(3)), call(np.random.default_rng(3))
    assert isinstance(ours, ng.Tensor)
    assert ours.dtype == np.asarray(theirs).dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_tensors_as_arguments():
    rng = ng.random.default_rng(0)
    assert rng.normal(ng.zeros(3), ng.ones(3)).shape == (3,)
    assert sorted(rng.permutation(ng.arange(4)).tolist()) == [0, 1, 2, 3]
