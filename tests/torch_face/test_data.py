"""Datasets and loaders of ``numgrad.torch``, with expected values from PyTorch."""

import pytest

import numgrad.torch as torch


class Rows:
    """Samples that differ in whether they were asked for one by one or together."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return index * 10

    def __getitems__(self, indices):
        assert type(indices) is list
        return [index * 100 for index in indices]


def derived(data):
    class Negative(data.TensorDataset):
        def __getitems__(self, indices):
            return [-super(Negative, self).__getitem__(index)[0] for index in indices]

    return Negative


LOADERS = {
    "itself": (lambda d, t: d.DataLoader(Rows(), 2), [[0, 100], [200, 300], [400]]),
    "one by one": (lambda d, t: d.DataLoader(Rows(), None), [0, 10, 20, 30, 40]),
    "subset": (lambda d, t: d.DataLoader(d.Subset(d.Subset(Rows(), [4, 2, 1]), [2, 0]), 2),
               [[100, 400]]),
    "tensors": (lambda d, t: d.DataLoader(derived(d)(t.arange(4)), 3), [[0, -1, -2], [-3]]),
    "stack": (lambda d, t: d.DataLoader(d.StackDataset(a=Rows(), b=range(5)), 3),
              [{"a": [0, 100, 200], "b": [0, 1, 2]}, {"a": [300, 400], "b": [3, 4]}]),
    "batches": (lambda d, t: d.DataLoader(Rows(), batch_sampler=[[3], [0, 1]]), [[300], [0, 100]]),
}  # fmt: skip


def values(batch):
    if isinstance(batch, dict):
        return {key: value.tolist() for key, value in batch.items()}
    return batch.tolist() if hasattr(batch, "tolist") else batch


@pytest.mark.parametrize("name", LOADERS)
def test_datasets_that_give_whole_batches(name):
    build, expected = LOADERS[name]
    assert list(map(values, build(torch.utils.data, torch))) == expected


@pytest.mark.parametrize("name", LOADERS)
def test_datasets_that_give_whole_batches_in_torch(name):
    reference = pytest.importorskip("torch")
    build, expected = LOADERS[name]
    assert list(map(values, build(reference.utils.data, reference))) == expected
