"""Datasets and loaders: ``torch.utils.data``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from copy import copy
from dataclasses import dataclass
from itertools import islice, repeat
from types import MethodType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from numgrad.autograd.modes import is_grad_enabled, set_grad_enabled
from numgrad.data import loader as _numgrad_loader
from numgrad.errors import NumgradAssertionError, NumgradRuntimeError, NumgradValueError
from numgrad.random.generator import generator_of
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias
from numgrad.torch.random import Generator, worker as _worker
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import face_function

T = TypeVar("T")


def _take(tensor: Any, rows: np.ndarray) -> Any:
    """A copy of some rows of a Tensor."""
    return tensor[rows]


def _generator_of(name: str, generator: Any) -> np.random.Generator:
    """NumPy's generator behind one of this room; for None NumPy's global one."""
    if isinstance(generator, Generator):
        return np.random.Generator(generator._source._bit_generator)
    return generator_of(name, generator)


_SHARED = {"asarray": lambda value: value, "check_dtype": lambda *_: None, "_take": _take,
           "generator_of": _generator_of}  # fmt: skip


def _specialized(name: str) -> Any:
    return specialize(f"numgrad.data.{name}", late=_SHARED)


_dataset, _sampler = _specialized("dataset"), _specialized("sampler")
_loader = _specialized("loader")
expose(globals(), "numgrad.data", _dataset, _sampler)
_alias(
    __name__, "utils.data.dataloader utils.data.dataset utils.data.distributed utils.data.sampler"
)


class Dataset(Generic[T]):
    """Base of datasets with samples by number."""

    def __add__(self, other: Any) -> Any:
        return _dataset.ConcatDataset([self, other])


class IterableDataset(_dataset.IterableDataset, Dataset[T]):
    """Base of datasets that are gone through in their own order."""


def _of_equal_length(build: Callable[..., None]) -> Callable[..., None]:
    """A constructor that raises PyTorch's class of error."""

    def __init__(self: Any, *args: Any) -> None:
        try:
            build(self, *args)
        except NumgradValueError as error:
            raise NumgradAssertionError(str(error)) from error

    return __init__


def _sample_of_several(self: Any, index: int) -> Any:
    """Sample ``index``, which may be negative."""
    if index < -len(self):
        raise NumgradValueError(f"ConcatDataset: sample {index} of {len(self)}")
    return _item_of_several(self, index)


_item_of_several = _dataset.ConcatDataset.__getitem__
_MEMBERS: dict[str, dict[str, Any]] = {
    "ConcatDataset": {"__init__": _of_equal_length(_dataset.ConcatDataset.__init__),
                      "__getitem__": _sample_of_several},
    "TensorDataset": {"__init__": _of_equal_length(_dataset.TensorDataset.__init__)},
}  # fmt: skip


def _as_dataset(name: str) -> Any:
    """A class of numgrad's, which is a dataset of this room and stands in its module, too."""
    members = {"__module__": __name__, **_MEMBERS.get(name, {})}
    source = getattr(_dataset, name)
    base = IterableDataset if issubclass(source, _dataset.IterableDataset) else Dataset
    made = type(name, (source, base), members)
    setattr(_dataset, name, made)
    return made


for _name in ("ChainDataset", "ConcatDataset", "StackDataset", "Subset", "TensorDataset"):
    globals()[_name] = _as_dataset(_name)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Any]:
    """Subsets of a dataset, drawn at random, whose indices are lists."""
    subsets = _dataset.random_split(dataset, lengths, generator)
    for subset in subsets:
        subset.indices = subset.indices.tolist()
    return subsets


def _lists(value: Any) -> Any:
    """A batch with lists where its samples have tuples without names, and words in tuples."""
    if isinstance(value, Mapping):
        return {key: _lists(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_column, value))
    return list(map(_column, value)) if isinstance(value, tuple | list) else value


def _column(value: Any) -> Any:
    """Values of samples at one place of a sequence: words in a tuple."""
    words = isinstance(value, list) and value and isinstance(value[0], str | bytes)
    return tuple(value) if words else _lists(value)


def default_collate(batch: Sequence[Any]) -> Any:
    """One value with a new first axis, along which the samples are."""
    return _lists(_collate(list(batch)))


_collate = face_function(_numgrad_loader.default_collate)


def default_convert(data: Any) -> Any:
    """Arrays as Tensors, also inside of lists and dictionaries."""
    if isinstance(data, np.ndarray | np.generic):
        from numgrad.torch.creation import as_tensor

        return as_tensor(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple | list) and not hasattr(data, "_fields"):
        return [default_convert(value) for value in data]
    return data


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that asks: its number, how many there are, its seed, and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_END = object()


def get_worker_info() -> WorkerInfo | None:
    """The worker of a ``DataLoader`` in whose thread this is called; elsewhere None."""
    return getattr(_worker, "info", None)


def _own(value: Any, copies: dict[int, Any]) -> Any:
    """A copy of a dataset, or its method, and of datasets that it is made of, not of their data."""
    if isinstance(value, MethodType):
        return MethodType(value.__func__, _own(value.__self__, copies))
    if type(value) in (list, tuple) and any(isinstance(each, Dataset) for each in value):
        return type(value)(_own(each, copies) for each in value)
    if not isinstance(value, Dataset):
        return value
    if id(value) not in copies:
        copies[id(value)] = twin = copy(value)
        for name, member in getattr(value, "__dict__", {}).items():
            twin.__dict__[name] = _own(member, copies)
    return copies[id(value)]


class DataLoader(_loader.DataLoader, Generic[T]):
    """A dataset in batches: ``numgrad.data.DataLoader``.

    With ``batch_size=None`` samples come one by one. Workers are threads, which make batches in
    turn. Each has a copy of its own of the dataset, whose attributes it may set, and a generator of
    its own, seeded by ``get_worker_info().seed``, for functions of ``torch``. What processes would
    have for themselves but threads share: the memory of lists and arrays in a dataset, global
    variables, the generators of NumPy and ``random``. An exception in a worker is raised as it is,
    with its traceback. ``multiprocessing_context``, ``pin_memory`` and ``in_order=False`` are
    accepted.

    Raises
    ------
    NumgradRuntimeError
        If a batch takes longer than ``timeout`` seconds.
    """

    _FIXED: ClassVar = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )
    _initialized = False

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        for wrong, what in (
            (prefetch_factor is not None and not num_workers, "prefetch_factor needs num_workers"),
            (persistent_workers and not num_workers, "persistent_workers needs num_workers"),
            (timeout < 0, f"timeout is at least 0, got {timeout}"),
            (batch_size is None and drop_last, "drop_last needs a batch_size"),
            (
                batch_size is None and batch_sampler is not None,
                "takes a batch_sampler or batch_size=None",
            ),
        ):
            if wrong:
                raise NumgradValueError(f"DataLoader: {what}")
        self._single = batch_size is None
        if self._single:
            convert = collate_fn or default_convert
            collate_fn = lambda samples: convert(samples[0])  # noqa: E731
        super().__init__(
            dataset, 1 if batch_size is None else batch_size, bool(shuffle), sampler, batch_sampler,
            num_workers=num_workers, collate_fn=collate_fn, drop_last=drop_last,
            generator=generator, prefetch_factor=prefetch_factor or 2,
        )  # fmt: skip
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self.timeout, self._workers = timeout, ()
        if self._single or batch_sampler is not None:
            self.batch_size = None
        if not num_workers:
            self.prefetch_factor = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in self._FIXED:
            raise NumgradValueError(
                f"DataLoader: {name} cannot be set after construction; make another loader"
            )
        super().__setattr__(name, value)

    def _samples_at(self, indices: Any) -> Any:
        return [self._samples[indices[0]]] if self._single else super()._samples_at(indices)

    def _fetch(self, batch: Any) -> Any:
        return _lists(super()._fetch(batch)) if self.collate_fn is None else super()._fetch(batch)

    def __iter__(self) -> Iterator[Any]:
        # Drawn without workers, too: orders do not depend on how many there are.
        seed = int(_generator_of("DataLoader", self.generator).integers(2**62))
        if not self.num_workers:
            return super().__iter__()
        iterated = isinstance(self.dataset, IterableDataset)
        return self._in_turn(repeat(None) if iterated else self._batches(), seed)

    def _in_turn(self, batches: Iterator[Any], seed: int) -> Iterator[Any]:
        """Batches that workers make one after another; one whose stream has ended is left out."""
        recording, epoch = is_grad_enabled(), object()  # modes belong to threads

        def work(worker: int, batch: Any) -> Any:
            if get_worker_info() is None:
                self._start(worker, seed + worker)
            if _worker.epoch is not epoch:
                _worker.epoch, _worker.stream = epoch, _worker.loader._stream()
            with set_grad_enabled(recording):
                batch = next(_worker.stream, _END) if _worker.stream else batch
                return _END if batch is _END else _worker.loader._fetch(batch)

        workers = self._workers or tuple(
            ThreadPoolExecutor(1, thread_name_prefix="numgrad-data")
            for _ in range(self.num_workers)
        )
        self._workers = workers if self.persistent_workers else ()
        turns, pending = deque(range(self.num_workers)), deque()

        def submit(count: int) -> None:
            for batch in islice(batches, count if turns else 0):
                pending.append((turns[0], workers[turns[0]].submit(work, turns[0], batch)))
                turns.rotate(-1)

        try:
            submit(self.num_workers * self.prefetch_factor)
            while pending:
                worker, future = pending.popleft()
                result = self._awaited(future)
                if result is _END and worker in turns:
                    turns.remove(worker)
                submit(1)
                if result is not _END:
                    yield result
        finally:
            for _, future in pending:
                future.cancel()
            for pool in () if self._workers else workers:
                pool.shutdown(wait=False, cancel_futures=True)

    def _awaited(self, future: Any) -> Any:
        done, _ = wait([future], self.timeout or None)
        if not done:
            raise NumgradRuntimeError(f"DataLoader timed out after {self.timeout} seconds")
        return future.result()

    def _start(self, worker: int, seed: int) -> None:
        """Make this thread a worker."""
        _worker.epoch, _worker.generator = None, Generator().manual_seed(seed)
        copies: dict[int, Any] = {}
        _worker.loader, dataset = copy(self), _own(self.dataset, copies)
        _worker.info = WorkerInfo(worker, self.num_workers, seed, dataset)
        if self.worker_init_fn is not None:
            _own(self.worker_init_fn, copies)(worker)
        samples = dataset if isinstance(dataset, IterableDataset) else _loader.samples_of(dataset)
        _worker.loader.__dict__.update(
            dataset=dataset, _samples=samples, collate_fn=_own(self.collate_fn, copies), _workers=()
        )  # whose threads end with the loader, which they must not hold

    def _stream(self) -> Any:
        """Batches of an ``IterableDataset``."""
        if not isinstance(self.dataset, IterableDataset):
            return None
        return _sampler.BatchSampler(self.dataset, self.batch_size or 1, self.drop_last).batches()


_loader.default_collate = default_collate


__getattr__ = _refuse(globals())
