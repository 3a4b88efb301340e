from collections import Counter

import numpy as np
import pytest

import numgrad as ng
from numgrad.data import Subset, TensorDataset, random_split

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6)


def test_rows_of_tensors():
    pairs = TensorDataset(X, ng.tensor(Y))
    assert len(pairs) == 6
    x, y = pairs[2]
    assert x.tolist() == [4.0, 5.0]
    assert y.item() == 2
    assert pairs[-1][1].item() == 5
    assert pairs[1:3][0].shape == (2, 2)


@pytest.mark.parametrize(
    ("arrays", "error"),
    [((X, Y[:5]), ValueError), ((), TypeError), ((X, np.array(1.0)), TypeError)],
)
def test_tensors_of_a_dataset_have_equally_many_rows(arrays, error):
    with pytest.raises(error, match="TensorDataset"):
        TensorDataset(*arrays)


def test_subsets():
    assert list(Subset("abcdef", [5, 0, 0])) == ["f", "a", "a"]
    assert len(Subset("abc", [])) == 0
    nested = Subset(Subset(list("abcdef"), [4, 2, 0]), np.array([2, 1]))
    assert list(nested) == ["a", "c"]
    assert [sample[1] for sample in Subset((X, Y), [3, 1])] == [3, 1]
    assert Subset({"x": X, "y": Y}, [3])[0]["y"] == 3
    with pytest.raises(IndexError):
        nested[2]


@pytest.mark.parametrize(
    ("lengths", "counts"),
    [([4, 2], [4, 2]), ([0.5, 0.5], [3, 3]), ([0.7, 0.3], [5, 1]), ([1 / 3] * 3, [2, 2, 2]),
     ([6], [6]), ([6, 0], [6, 0]), ([0.4, 0.4, 0.2], [3, 2, 1]), ([1.0], [6]), ([1, 0.0], [6, 0])],
)  # fmt: skip
@pytest.mark.parametrize("dataset", [range(10, 16), (X, Y), {"x": X, "y": Y}, TensorDataset(X, Y)])
def test_a_split_deals_every_sample_out_once(dataset, lengths, counts):
    parts = random_split(dataset, lengths, ng.random.default_rng(1))
    assert [len(part) for part in parts] == counts
    found = Counter(int(k) for part in parts for k in part.indices)
    assert found == Counter(range(6))


def test_one_sample_is_split_by_counts_or_fractions():
    assert [len(p) for p in random_split("a", [1, 0])] == [1, 0]
    assert [len(p) for p in random_split("a", [0.5, 0.5])] == [1, 0]
    assert [len(p) for p in random_split("a", [0, 1])] == [0, 1]
    assert random_split([], []) == []


def test_a_split_repeats_with_its_generator():
    def draw(generator=None):
        return [part.indices for part in random_split(range(20), [15, 5], generator)]

    assert draw(np.random.default_rng(3)) == draw(ng.random.default_rng(3))
    assert draw(np.random.default_rng(3)) != draw(np.random.default_rng(4))
    np.random.seed(5)
    first = draw()
    assert draw() != first
    np.random.seed(5)
    assert draw() == first


@pytest.mark.parametrize("lengths", [[3, 2], [7, -1], [0.5, 0.4], [5.0, 1.0], [2.5, 3.5], []])
def test_lengths_that_do_not_fit(lengths):
    with pytest.raises(ng.NumgradValueError, match=r"random_split: .*length"):
        random_split(range(6), lengths)


def test_a_generator_is_no_seed():
    with pytest.raises(ng.NumgradTypeError, match=r"random_split: the generator .*, got int"):
        random_split(range(6), [6], 0)
