import gc
import pickle
import threading
import time
import traceback
from collections import namedtuple

import numpy as np
import pytest

import numgrad as ng
from numgrad.data import DataLoader, Subset, TensorDataset, default_collate

N = 11
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N)
Pair = namedtuple("Pair", "x y")


class Squares:
    """A map-style dataset."""

    def __init__(self, count=N):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return {"k": index, "square": np.array([index, index**2])}


class Loud(TensorDataset):
    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x * 100.0, y


DATASETS = {
    "array": X,
    "tensor": ng.tensor(X),
    "integers": Y,
    "tuple": (X, ng.tensor(Y)),
    "named": Pair(X, Y),
    "dict": {"x": X, "y": ng.tensor(Y)},
    "TensorDataset": TensorDataset(X, Y),
    "derived": Loud(X, Y),
    "list": list(X),
    "map": Squares(),
    "range": range(N),
    "subset": Subset((X, Y), [3, 3, 10, 0, 7]),
    "nested": Subset(Subset(TensorDataset(X, Y), np.arange(N)[::-1]), [1, 0, 5]),
    "subset of a map": Subset(Squares(), [9, 2, 4]),
    "rotated": (X[::-1].T.copy().T, Y[::2].repeat(2)[:N]),
}


def flat(batch):
    """The Tensors of a batch, after a look at its kind."""
    if isinstance(batch, ng.Tensor):
        return [batch]
    return [
        t for part in (batch.values() if isinstance(batch, dict) else batch) for t in flat(part)
    ]


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert list(found) == list(expected)
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def samples_of(dataset):
    if isinstance(dataset, tuple):
        rows = [list(part) for part in dataset]
        return [
            type(dataset)(*s) if isinstance(dataset, Pair) else s for s in zip(*rows, strict=True)
        ]
    if isinstance(dataset, dict):
        return [{k: v[i] for k, v in dataset.items()} for i in range(N)]
    return [dataset[i] for i in range(len(dataset))]


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", DATASETS)
def test_batches_are_those_of_default_collate(name, workers):
    samples = samples_of(DATASETS[name])
    loader = DataLoader(DATASETS[name], 4, num_workers=workers)
    batches = list(loader)
    assert len(batches) == len(loader) == -(-len(samples) // 4)
    for k, batch in enumerate(batches):
        assert_same(batch, default_collate(samples[4 * k : 4 * k + 4]))


def test_a_batch_shares_no_memory_with_arrays():
    x = X.copy()
    for dataset in (x, ng.from_numpy(x)):
        (batch,) = DataLoader(dataset, N)
        assert not np.shares_memory(batch.numpy(), x)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 3, 4, 11, 20])
@pytest.mark.parametrize("drop_last", [False, True])
def test_sizes_of_batches(batch_size, drop_last):
    loader = DataLoader(Y, batch_size, drop_last=drop_last)
    sizes = [len(batch) for batch in loader]
    full, left = divmod(N, batch_size)
    assert sizes == [batch_size] * full + [left] * bool(left and not drop_last)
    assert len(loader) == len(sizes)


def epoch(loader):
    return [k for batch in loader for k in batch.tolist()]


@pytest.mark.parametrize("workers", [0, 3])
def test_shuffling_repeats_with_a_seed_and_differs_between_epochs(workers):
    def epochs(**source):
        loader = DataLoader(Y, 4, shuffle=True, num_workers=workers, **source)
        return [epoch(loader) for _ in range(3)]

    found = epochs(seed=1)
    assert all(sorted(order) == Y.tolist() for order in found)
    assert len({tuple(order) for order in found}) == 3
    assert found == epochs(seed=1)
    assert found == epochs(generator=np.random.default_rng(1))
    assert found == epochs(generator=ng.random.default_rng(1))
    assert found != epochs(seed=2)
    np.random.seed(3)
    globally = epochs()
    np.random.seed(3)
    assert globally == epochs()


def test_the_order_is_drawn_when_iteration_begins():
    loader = DataLoader(Y, 4, shuffle=True, seed=0)
    first, second = iter(loader), iter(loader)
    interleaved = [(a.tolist(), b.tolist()) for a, b in zip(first, second, strict=True)]
    again = DataLoader(Y, 4, shuffle=True, seed=0)
    one, two = list(again), list(again)
    assert interleaved == [(a.tolist(), b.tolist()) for a, b in zip(one, two, strict=True)]


def test_no_shuffling_draws_nothing():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    list(DataLoader(Y, 4, generator=rng))
    assert rng.bit_generator.state == before


def test_collate_fn_gets_the_samples():
    loader = DataLoader((X, Y), 5, collate_fn=lambda samples: [s[1] for s in samples])
    assert list(loader) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10]]
    assert list(DataLoader(["a", "bb"], 2, collate_fn=" ".join)) == ["a bb"]


def test_a_dataset_that_grows():
    rows = [1, 2, 3]
    loader = DataLoader(rows, 2)
    assert len(loader) == 2
    rows += [4, 5]
    assert len(loader) == 3
    assert epoch(loader) == [1, 2, 3, 4, 5]


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("dataset", [np.zeros((0, 2)), [], (np.zeros((0, 2)), np.zeros(0))])
@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_to_load(dataset, workers):
    loader = DataLoader(dataset, 2, shuffle=True, num_workers=workers)
    assert len(loader) == 0
    assert list(loader) == []


def test_gradients_flow_into_a_dataset_that_requires_them():
    w = ng.ones((4, 2), requires_grad=True)
    for k, batch in enumerate(DataLoader(w, 2, num_workers=1)):
        (batch * (k + 1.0)).sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0]] * 2 + [[2.0, 2.0]] * 2
    with ng.no_grad():
        assert not any(batch.requires_grad for batch in DataLoader(w, 2, num_workers=1))


# ------------------------------------------------------------------------------------- workers


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    if running():
        gc.collect()
    deadline = time.monotonic() + 60
    while running():
        assert time.monotonic() < deadline, "worker threads are left"
        time.sleep(0.01)


def running():
    return [t for t in threading.enumerate() if t.name.startswith("numgrad-data")]


class Slow(Squares):
    """Samples of even number take longer."""

    def __init__(self, count=N):
        super().__init__(count)
        self.asked, self.threads = [], set()

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        self.asked.append(index)
        time.sleep(0.002 * (index % 2 == 0))
        return index


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_keep_the_order(workers):
    dataset = Slow(30)
    found = epoch(DataLoader(dataset, 1, num_workers=workers, prefetch_factor=3))
    assert found == list(range(30))
    assert threading.get_ident() not in dataset.threads


def test_workers_run_ahead_as_far_as_told():
    dataset = Slow(100)
    batches = iter(DataLoader(dataset, 1, num_workers=2, prefetch_factor=3))
    next(batches)
    deadline = time.monotonic() + 60
    while len(dataset.asked) < 7 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)
    assert sorted(dataset.asked) == list(range(7))  # one taken, two times three ahead
    batches.close()


def test_leaving_the_loop_stops_the_workers():
    dataset = Slow(1000)
    for batch in DataLoader(dataset, 1, num_workers=2):
        if batch.item() == 3:
            break
    del batch
    time.sleep(0.05)
    assert len(dataset.asked) < 20
    iterator = iter(DataLoader(dataset, 1, num_workers=2))
    next(iterator)
    del iterator  # and so does dropping it


def test_leaving_waits_for_no_sample_and_begins_no_other():
    go_on, asked, done = threading.Event(), [], []

    class Stuck(Squares):
        def __getitem__(self, index):
            asked.append(index)
            if index:
                go_on.wait(60)
            done.append(index)
            return index

    for _ in DataLoader(Stuck(), 1, num_workers=1, prefetch_factor=5):
        break
    assert done == [0]
    go_on.set()
    while running():
        time.sleep(0.005)
    assert asked in ([0], [0, 1])


class Broken(Squares):
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("sample five")
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_exceptions_come_with_their_type_and_traceback(workers):
    batches = iter(DataLoader(Broken(), 2, num_workers=workers))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="sample five") as caught:
        next(batches)
    lines = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("sample five")' in lines


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_raises_stop_iteration_does_not_end_the_loop_silently(workers):
    class Ends(Squares):
        def __getitem__(self, index):
            return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Ends(), 2, num_workers=workers))


class Counting(ng.data.Dataset):
    """Samples with the number of the worker, and how many it has made."""

    calls = 0

    def __len__(self):
        return 6

    def __getitem__(self, index):
        self.calls += 1
        info = ng.data.get_worker_info()
        return info.id, self.calls, index, info.dataset is self


def test_workers_make_batches_in_turn_with_datasets_of_their_own():
    dataset, began = Counting(), []

    def begin(worker):
        info = ng.data.get_worker_info()
        info.dataset.calls = 10 * worker
        began.append((worker, info.id, info.num_workers, info.seed))

    options = {"num_workers": 2, "worker_init_fn": begin, "collate_fn": lambda samples: samples[0]}
    loader = DataLoader(dataset, persistent_workers=True, seed=0, **options)
    made = [(index % 2, 10 * (index % 2) + 1 + index // 2, index, True) for index in range(6)]
    assert list(loader) == made
    assert list(loader) == [(worker, calls + 3, *rest) for worker, calls, *rest in made]
    assert [each[:3] for each in sorted(began)] == [(0, 0, 2), (1, 1, 2)]
    (_, _, _, first), (_, _, _, second) = sorted(began)
    assert second == first + 1
    assert (dataset.calls, ng.data.get_worker_info()) == (0, None)
    again = DataLoader(dataset, seed=0, **options)
    assert list(again) == list(again) == made  # its workers live for one loop
    assert sorted(began)[0][3] in {seed for *_, seed in began[2:]}


class Numbers(ng.data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = ng.data.get_worker_info() if self.by_worker else None
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


@pytest.mark.parametrize(
    ("by_worker", "count", "size", "expected"),
    [
        (False, 5, 2, [[0, 1], [2, 3], [4]]),
        (True, 5, 2, [[0, 2], [1, 3], [4]]),
        (True, 7, None, [0, 1, 2, 3, 4, 5, 6]),
        (True, 1, 3, [[0]]),
    ],
)
def test_a_stream_is_shared_by_workers_or_has_a_part_for_each(by_worker, count, size, expected):
    dataset = Numbers(count)
    dataset.by_worker = by_worker
    loader = DataLoader(dataset, size, num_workers=2)
    assert [np.asarray(batch).tolist() for batch in loader] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_one_by_one(workers):
    options = {"num_workers": workers}
    assert [(x.tolist(), y.item()) for x, y in DataLoader((X, Y), None, **options)] == [
        (x.tolist(), y) for x, y in zip(X, Y.tolist(), strict=True)
    ]
    loader = DataLoader(["a", "b"], None, collate_fn=str.upper, **options)
    assert (list(loader), len(loader), loader.batch_size) == (["A", "B"], 2, None)


def test_a_batch_that_takes_too_long_and_attributes_that_are_fixed():
    event = threading.Event()
    loader = DataLoader([1], num_workers=1, timeout=0.01, collate_fn=lambda _: event.wait(60))
    try:
        with pytest.raises(RuntimeError, match=r"timed out after 0.01 seconds"):
            list(loader)
    finally:
        event.set()
    with pytest.raises(ValueError, match="batch_size cannot be set"):
        loader.batch_size = 2


# -------------------------------------------------------------------------------------- errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size is at least 1, got 0"),
        ({"batch_size": 2.0}, TypeError, r"batch_size is an integer, got 2\.0"),
        ({"batch_size": None, "drop_last": True}, ValueError, "drop_last needs a batch_size"),
        ({"batch_size": None, "batch_sampler": [[0]]}, ValueError, "a batch_sampler says all"),
        ({"prefetch_factor": 3}, ValueError, "prefetch_factor needs num_workers"),
        ({"persistent_workers": True}, ValueError, "persistent_workers needs num_workers"),
        ({"timeout": -1.0}, ValueError, "timeout is at least 0, got -1.0"),
        ({"batch_size": True}, TypeError, "batch_size is an integer, got True"),
        ({"num_workers": -1}, ValueError, "num_workers is at least 0"),
        ({"prefetch_factor": 0}, ValueError, "prefetch_factor is at least 1"),
        ({"collate_fn": 3}, TypeError, "collate_fn is a function, got int"),
        ({"generator": 3}, TypeError, "the generator is one of .*, got int"),
        ({"generator": np.random.default_rng(), "seed": 1}, ValueError, "not both"),
        ({"dataset": iter([1])}, TypeError, "list_iterator is no dataset"),
        ({"dataset": (X, Y[:3])}, ValueError, "same number of rows"),
        ({"dataset": np.array(1.0)}, TypeError, "arrays with rows"),
        ({"dataset": {}}, TypeError, "arrays with rows"),
        ({"dataset": {0: "a", 1: "b"}}, TypeError, "keys 0, 1 is a dataset if"),
        ({"dataset": np.array(["a"])}, TypeError, "<U1"),
        ({"dataset": X.astype(np.float16)}, TypeError, "float16"),
    ],
)
def test_arguments_that_make_no_loader(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        DataLoader(**{"dataset": X, **arguments})
    assert isinstance(caught.value, ng.NumgradError)


def test_arguments_of_torch_that_mean_nothing_here_are_accepted():
    loader = ng.data.DataLoader(np.arange(4), 2, pin_memory=True)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_rows_of_a_series_are_taken_by_position():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([10.0, 20.0, 30.0], index=[2, 1, 0])
    (batch,) = ng.data.DataLoader(series, batch_size=3)
    assert batch.tolist() == [10.0, 20.0, 30.0]
    assert ng.data.Subset(series, [0, 2])[1] == 30.0
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["x", "y"])
    (batch,) = ng.data.DataLoader(frame, batch_size=2)
    assert batch.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    for dataset, build in (((frame, series[:2]), tuple), ({"x": frame, "y": series[:2]}, dict)):
        (batch,) = ng.data.DataLoader(dataset, batch_size=2)
        assert type(batch) is build
        x, y = batch.values() if build is dict else batch
        assert (x.tolist(), y.tolist()) == ([[1.0, 3.0], [2.0, 4.0]], [10.0, 20.0])
    with pytest.raises(ng.NumgradTypeError, match="dtype object"):
        ng.data.DataLoader(pandas.Series(["a", "b"], dtype=object))


def test_a_loader_of_an_array_can_be_pickled():
    loader = pickle.loads(pickle.dumps(ng.data.DataLoader(np.arange(4.0), batch_size=3)))
    assert [batch.tolist() for batch in loader] == [[0.0, 1.0, 2.0], [3.0]]
