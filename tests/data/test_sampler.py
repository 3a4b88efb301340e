"""Samplers, datasets made of several, and loaders that take them."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError

data = ng.data
X = np.arange(14.0).reshape(7, 2)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_random_orders():
    sampler = data.RandomSampler(X, generator=rng())
    orders = [list(sampler) for _ in range(3)]
    assert all(sorted(order) == list(range(7)) for order in orders)
    assert orders[0] != orders[1]
    assert len(sampler) == 7
    more = data.RandomSampler(X, num_samples=17, generator=rng())
    found = list(more)
    assert sorted(found[:7]) == sorted(found[7:14]) == list(range(7))
    assert len(found) == len(more) == 17
    assert list(data.RandomSampler(X, num_samples=3, generator=rng())) == found[:3]
    drawn = list(data.RandomSampler(X, replacement=True, num_samples=500, generator=rng()))
    np.testing.assert_allclose(np.bincount(drawn) / 500, 1 / 7, atol=0.06)
    assert list(data.RandomSampler([])) == []
    subset = data.SubsetRandomSampler([3, 5, 6], rng())
    assert sorted(subset) == [3, 5, 6]
    assert len({tuple(subset) for _ in range(20)}) == 6


def test_weights():
    weights = ng.tensor([1.0, 0.0, 3.0])
    sampler = data.WeightedRandomSampler(weights, 4000, generator=rng())
    counts = np.bincount(list(sampler), minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] / 4000 - 0.75) < 0.03
    alone = data.WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False, generator=rng())
    assert sorted(alone) == [0, 2]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("sampler", [range(7), list("abcdefg"), data.SequentialSampler(range(7))])
def test_batches_are_those_of_torch(sampler, drop_last):
    torch_data = pytest.importorskip("torch.utils.data")
    ours = data.BatchSampler(sampler, 3, drop_last)
    theirs = torch_data.BatchSampler(sampler, 3, drop_last)
    assert list(ours) == list(theirs)
    assert len(ours) == len(theirs)


class Letters(data.IterableDataset):
    def __init__(self, text):
        self.text = text

    def __iter__(self):
        return iter(self.text)

    def __len__(self):
        return len(self.text)


def test_datasets_of_several():
    both = data.ConcatDataset([X, data.TensorDataset(X, X), [3, 4]])
    assert (len(both), both.cumulative_sizes) == (16, [7, 14, 16])
    assert both[6].tolist() == [12.0, 13.0]
    assert both[7][1].tolist() == [0.0, 1.0]
    assert (both[-1], both[np.int64(14)]) == (4, 3)
    for place in (16, -17):
        with pytest.raises(IndexError, match=f"sample {place} of 16"):
            both[place]
    stacked = data.StackDataset(x=X, y=[5] * 7)
    assert stacked[2]["x"].tolist() == [4.0, 5.0]
    (batch,) = data.DataLoader(stacked, 7)
    assert batch["y"].tolist() == [5] * 7
    chained = Letters("ab") + Letters("c")
    assert (list(chained), len(chained)) == (["a", "b", "c"], 3)


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_take_samplers(workers):
    options = {"num_workers": workers}
    rows = data.DataLoader((X, np.arange(7)), 2, sampler=[5, 1, 5], **options)
    assert [labels.tolist() for _, labels in rows] == [[5, 1], [5]]
    assert len(rows) == 2
    lists = data.DataLoader(list("abcdefg"), batch_sampler=[[0, 3], (6,)], **options)
    assert list(lists) == [["a", "d"], ["g"]]
    named = data.DataLoader({"x": X}, batch_sampler=[[6, 6, 0]], **options)
    assert next(iter(named))["x"][:, 0].tolist() == [12.0, 12.0, 0.0]
    letters = data.DataLoader(Letters("abcde"), 2, drop_last=True, **options)
    assert (list(letters), len(letters)) == ([["a", "b"], ["c", "d"]], 2)
    joined = data.DataLoader(Letters("abc"), 2, collate_fn="".join, **options)
    assert (list(joined), list(joined)) == (["ab", "c"], ["ab", "c"])
    assert isinstance(data.DataLoader(X, shuffle=True).sampler, data.RandomSampler)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.RandomSampler(X, num_samples=0), "num_samples is at least 1, got 0"),
        (lambda: data.RandomSampler(X, 3), "replacement is True or False, got 3"),
        (lambda: data.RandomSampler(X, generator=3), "RandomSampler: the generator is one of"),
        (lambda: data.WeightedRandomSampler([1.0, -1.0], 1), "finite numbers of at least 0"),
        (lambda: data.WeightedRandomSampler([0.0], 1), "1 samples are to be drawn, and 0 have"),
        (lambda: data.WeightedRandomSampler([1.0, 0.0], 2, False), "2 samples .* and 1 have"),
        (lambda: data.BatchSampler(X, 0, False), "batch_size is at least 1"),
        (lambda: data.ConcatDataset([]), "at least one dataset"),
        (lambda: data.ConcatDataset([Letters("a")]), "Letters has no samples by number"),
        (lambda: list(data.ChainDataset([[1]])), "IterableDataset, got list"),
        (lambda: data.StackDataset([1], [1, 2]), r"different lengths, \[1, 2\]"),
        (lambda: data.StackDataset(), "by position or by name"),
        (lambda: data.DataLoader(X, shuffle=True, sampler=[1]), "sampler or shuffle=True"),
        (lambda: data.DataLoader(X, 2, batch_sampler=[[1]]), "batch_sampler says all of"),
        (lambda: data.DataLoader(Letters("a"), shuffle=True), "in its own order"),
        (lambda: list(data.IterableDataset()), "defines no __iter__"),
    ],
)
def test_errors(make, message):
    with pytest.raises((NumgradError, NotImplementedError), match=message):
        make()
