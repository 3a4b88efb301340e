from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import numgrad as ng
from numgrad.data import default_collate

Pair = namedtuple("Pair", "x y")


def assert_batch(found, expected, dtype):
    assert type(found) is ng.Tensor
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.detach().numpy(), expected)


@pytest.mark.parametrize(
    ("samples", "dtype"),
    [
        ([1, 2, 3], np.int64),
        ([1.5, 2.0], np.float64),
        ([True, False], np.bool_),
        ([1j, 2.0], np.complex128),
        ([np.float32(1), np.float32(2)], np.float32),
        ([np.uint8(1), np.uint8(2)], np.uint8),
        ([np.zeros((2, 3), np.float32)] * 2, np.float32),
        ([np.zeros((0, 3))] * 2, np.float64),
        ([ng.zeros(2), ng.ones(2)], np.float64),
        ([ng.zeros(2), np.ones(2)], np.float64),
        ([ng.tensor(1.0), ng.tensor(2.0)], np.float64),
    ],
)
def test_numbers_arrays_and_tensors_are_stacked(samples, dtype):
    expected = [s.numpy() if isinstance(s, ng.Tensor) else s for s in samples]
    assert_batch(default_collate(samples), np.array(expected), dtype)


def test_a_batch_is_a_copy():
    row = np.zeros(2)
    batch = default_collate([row])
    batch += 1.0
    assert row.tolist() == [0.0, 0.0]


def test_containers_keep_their_kind():
    batch = default_collate([{"p": Pair(1, [2.0]), "s": "a", "b": (b"x",)}] * 3)
    assert type(batch) is dict
    assert type(batch["p"]) is Pair
    assert_batch(batch["p"].x, [1, 1, 1], np.int64)
    assert type(batch["p"].y) is list
    assert_batch(batch["p"].y[0], [2.0] * 3, np.float64)
    assert batch["s"] == ["a", "a", "a"]
    assert batch["b"] == ([b"x"] * 3,)
    assert default_collate([(), ()]) == ()
    assert default_collate([OrderedDict(a=1)])["a"].tolist() == [1]


def test_gradients_flow_through_samples_that_require_them():
    w = ng.ones(2, requires_grad=True)
    batch = default_collate([w * 2.0, ng.zeros(2)])
    batch.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([], ValueError, "there are no samples"),
        ([np.zeros(2), np.zeros(3)], ValueError, r"shapes \(2,\) and \(3,\)"),
        ([1.0, np.zeros(1)], ValueError, r"shapes \(\) and \(1,\)"),
        ([(1, 2), (1,)], ValueError, "lengths 2 and 1"),
        ([{"a": 1}, {"b": 1}], ValueError, "keys .*'a'.* and .*'b'"),
        ([{"a": (np.zeros(2),)}, {"a": (np.zeros(1),)}], ValueError, r"\(2,\) and \(1,\)"),
        ([(1,), [1]], TypeError, "a sample is tuple and another list"),
        (["a", 1], TypeError, "a sample is str and another int"),
        ([None], TypeError, "no batch of NoneType"),
        ([{1, 2}], TypeError, "no batch of set"),
        ([np.float16(1)], TypeError, "default_collate: .*float16"),
        ([np.array("a")], TypeError, "default_collate: .*<U1"),
        ([2**70], TypeError, "default_collate: .*object"),
    ],
)
def test_samples_that_make_no_batch(samples, error, message):
    with pytest.raises(error, match=message) as caught:
        default_collate(samples)
    assert isinstance(caught.value, ng.NumgradError)
    assert str(caught.value).startswith("default_collate: ")
