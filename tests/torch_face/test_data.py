"""Datasets and loaders of ``numgrad.torch``, with expected values from PyTorch."""

import gc

import pytest

import numgrad.torch as torch
from numgrad.errors import NumgradError


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


# ------------------------------------------------------------------------------------- workers


def streams(data):
    class Shard(data.IterableDataset):
        def __init__(self, stop):
            self.stop = stop

        def __iter__(self):
            info = data.get_worker_info()
            assert (info.dataset is self, info.seed >= info.id) == (True, True)
            return iter(range(info.id, self.stop, info.num_workers))

    class Span(data.IterableDataset):
        def __init__(self, start, stop):
            self.start, self.stop = start, stop

        def __iter__(self):
            return iter(range(self.start, self.stop))

    class Asked(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return index * 10 + data.get_worker_info().id

    def split(worker):
        span = data.get_worker_info().dataset
        span.start, span.stop = ((0, 1), (1, 6))[worker]

    return Shard, Span, Asked, split


WORKERS = [
    (lambda d, Shard, *_: d.DataLoader(Shard(4), 2, num_workers=2), [[0, 2], [1, 3]]),
    (lambda d, Shard, *_: d.DataLoader(Shard(11), 2, num_workers=2),
     [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]),
    (lambda d, Shard, *_: d.DataLoader(Shard(5), None, num_workers=2), [0, 1, 2, 3, 4]),
    (lambda d, Shard, *_: d.DataLoader(Shard(1), 1, num_workers=3), [[0]]),
    (lambda d, _, Span, *__: d.DataLoader(Span(0, 5), 2, num_workers=2, drop_last=True),
     [[0, 1], [0, 1], [2, 3], [2, 3]]),
    (lambda d, _, Span, __, split: d.DataLoader(Span(0, 6), 2, num_workers=2,
                                                worker_init_fn=split), [[0], [1, 2], [3, 4], [5]]),
    (lambda d, _, __, Asked, ___: d.DataLoader(Asked(), 2, num_workers=2),
     [[0, 10], [21, 31], [40, 50]]),
    (lambda d, _, Span, *__: d.DataLoader(d.ChainDataset([Span(0, 1), Span(1, 3)]), 2,
                                          num_workers=2), [[0, 1], [0, 1], [2], [2]]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), WORKERS)
def test_workers_have_their_part_of_a_stream(build, expected):
    data = torch.utils.data
    assert data.get_worker_info() is None
    assert list(map(values, build(data, *streams(data)))) == expected
    assert data.get_worker_info() is None


@pytest.mark.slow(cases=1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("build", "expected"), WORKERS)
def test_workers_have_their_part_of_a_stream_in_torch(build, expected):
    data = pytest.importorskip("torch").utils.data
    assert list(map(values, build(data, *streams(data)))) == expected


def test_workers_raise_where_their_batch_would_come():
    data = torch.utils.data
    _, Span, _, split = streams(data)
    loader = data.DataLoader(Span(0, 6), 2, num_workers=3, worker_init_fn=split)
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(2)] == [[0], [1, 2]]
    with pytest.raises(IndexError, match="tuple index"):
        next(batches)


def test_orders_do_not_depend_on_workers():
    data = torch.utils.data

    def epochs(workers):
        torch.manual_seed(0)
        loader = data.DataLoader(range(9), 3, shuffle=True, num_workers=workers)
        return [list(map(values, loader)) for _ in range(2)]

    assert epochs(0) == epochs(2)


class Counting:
    def __init__(self, data, count=6):
        class Dataset(data.Dataset):
            calls = 0

            def __len__(self):
                return count

            def __getitem__(self, index):
                self.calls += 1
                return index

        self.dataset = Dataset()


def test_workers_have_datasets_and_generators_of_their_own():
    data = torch.utils.data
    inner = Counting(data).dataset
    seen = []

    def begin(worker):
        info = data.get_worker_info()
        info.dataset.dataset.calls = 100 * worker
        seen.append((info.seed, torch.initial_seed()))

    whole = data.Subset(inner, range(6))
    loader = data.DataLoader(
        whole, 1, num_workers=2, worker_init_fn=begin, persistent_workers=True,
        collate_fn=lambda batch: (data.get_worker_info().dataset.dataset.calls, torch.rand(2)),
    )  # fmt: skip
    torch.manual_seed(3)
    first, second = list(loader), list(loader)
    calls = [int(calls) for calls, _ in first + second]
    assert calls == [1, 101, 2, 102, 3, 103, 4, 104, 5, 105, 6, 106]
    assert inner.calls == 0
    assert [seed for seed, _ in seen] == [number for _, number in seen]
    torch.manual_seed(3)
    again = data.DataLoader(whole, 1, num_workers=2, collate_fn=lambda batch: torch.rand(2))
    for (_, expected), value in zip(first, again, strict=True):
        assert torch.equal(value, expected)


def test_seeds_and_methods_of_a_worker_are_its_own():
    data = torch.utils.data

    class Numbered(data.Dataset):
        def __len__(self):
            return 4

        def begin(self, worker):
            self.worker = worker
            torch.manual_seed(100 + worker)

        def __getitem__(self, index):
            return self.worker, torch.initial_seed(), index

        def together(self, samples):
            return [*samples[0], self.worker]

    torch.manual_seed(7)
    numbered = Numbered()
    options = {"worker_init_fn": numbered.begin, "collate_fn": numbered.together}
    assert list(data.DataLoader(numbered, num_workers=2, **options)) == [
        [index % 2, 100 + index % 2, index, index % 2] for index in range(4)
    ]
    assert torch.initial_seed() == 7
    assert not hasattr(numbered, "worker")


def test_persistent_workers_end_with_their_loader():
    data = torch.utils.data
    loader = data.DataLoader(range(4), num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 4
    threads = [pool._threads for pool in loader._workers]
    assert all(thread.is_alive() for pool in threads for thread in pool)
    del loader
    gc.collect()
    for pool in threads:
        for thread in pool:
            thread.join(60)
            assert not thread.is_alive()


def test_a_batch_that_takes_too_long():
    import threading

    data, event = torch.utils.data, threading.Event()
    loader = data.DataLoader([1], num_workers=1, timeout=0.01, collate_fn=lambda _: event.wait(60))
    try:
        with pytest.raises(RuntimeError, match=r"timed out after 0.01 seconds"):
            list(loader)
    finally:
        event.set()


# -------------------------------------------------------------------------------------- errors

REFUSED = {
    "prefetch_factor": (ValueError, lambda d, t: d.DataLoader(range(3), prefetch_factor=2)),
    "persistent": (ValueError, lambda d, t: d.DataLoader(range(3), persistent_workers=True)),
    "timeout": (ValueError, lambda d, t: d.DataLoader(range(3), timeout=-1)),
    "drop_last": (ValueError, lambda d, t: d.DataLoader(range(3), None, drop_last=True)),
    "both": (ValueError, lambda d, t: d.DataLoader(range(3), None, batch_sampler=[[0]])),
    "set": (ValueError, lambda d, t: setattr(d.DataLoader(range(3)), "batch_size", 2)),
    "rows": (AssertionError, lambda d, t: d.TensorDataset(t.zeros(2), t.zeros(3))),
    "nothing": (AssertionError, lambda d, t: d.ConcatDataset([])),
    "before": (ValueError, lambda d, t: d.ConcatDataset([range(3)])[-4]),
    "after": (IndexError, lambda d, t: d.ConcatDataset([range(3)])[3]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors_have_the_classes_of_torch(name):
    error, call = REFUSED[name]
    with pytest.raises(error) as caught:
        call(torch.utils.data, torch)
    assert isinstance(caught.value, NumgradError)


@pytest.mark.parametrize("name", REFUSED)
def test_errors_have_these_classes_in_torch(name):
    reference = pytest.importorskip("torch")
    error, call = REFUSED[name]
    with pytest.raises(error):
        call(reference.utils.data, reference)


def test_attributes_of_a_loader():
    data = torch.utils.data
    loader = data.DataLoader(range(3), batch_sampler=[[0], [1, 2]])
    assert (loader.batch_size, loader.drop_last, loader.prefetch_factor) == (None, False, None)
    assert (len(loader), data.DataLoader(range(3), num_workers=1).prefetch_factor) == (2, 2)
    assert data.ConcatDataset([range(3), "ab"])[-1] == "b"
    assert isinstance(data.ChainDataset([]), data.IterableDataset)


def test_columns_of_words_are_tuples():
    collate = torch.utils.data.default_collate
    assert collate([("a", b"b"), ("c", b"d")]) == [("a", "c"), (b"b", b"d")]
    assert collate(["a", "c"]) == ["a", "c"]
    assert collate([["a", {"x": "b"}], ["c", {"x": "d"}]]) == [("a", "c"), {"x": ["b", "d"]}]
    assert collate([(), ()]) == []
    assert collate([{"x": "a"}, {"x": "b"}]) == {"x": ["a", "b"]}
