"""Threads that make the batches of a ``DataLoader`` ahead.

Note [Workers in turn]
----------------------
Each worker is one thread with a queue of its own, and batches go to the queues in turn. So the
order of batches is that of the sampler, worker ``k`` makes batches ``k``, ``k + n``, ..., and what
a worker remembers (its copy of the dataset, its part of a stream) is touched by one thread alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from copy import copy
from dataclasses import dataclass
from itertools import islice
from threading import local
from types import MethodType
from typing import Any

from numgrad.autograd.modes import is_grad_enabled, set_grad_enabled
from numgrad.data.dataset import Dataset, IterableDataset, samples_of
from numgrad.data.sampler import BatchSampler
from numgrad.errors import NumgradRuntimeError


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that asks: its number, how many there are, its seed, and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_thread = local()
_END = object()


def get_worker_info() -> WorkerInfo | None:
    """The worker of a ``DataLoader`` in whose thread this is called; elsewhere None.

    Returns
    -------
    WorkerInfo or None
        ``id`` from 0, ``num_workers``, ``seed`` (drawn when the loop begins, another for each
        worker) and ``dataset``, the worker's own copy.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Shard(ng.data.IterableDataset):
    ...     by_worker = True
    ...
    ...     def __iter__(self):
    ...         info = ng.data.get_worker_info()
    ...         return iter(range(info.id, 6, info.num_workers))
    >>> [batch.tolist() for batch in ng.data.DataLoader(Shard(), 2, num_workers=2)]
    [[0, 2], [1, 3], [4], [5]]
    >>> ng.data.get_worker_info() is None
    True
    """
    return getattr(_thread, "info", None)


def in_turn(loader: Any, batches: Iterator[Any], seed: int) -> Iterator[Any]:
    """Batches that workers make one after another: Note [Workers in turn].

    Parameters
    ----------
    loader
        The ``DataLoader``.
    batches
        What its batches are made of; anything where workers have streams of their own.
    seed
        The seed of the first worker; those of others follow.

    Raises
    ------
    NumgradRuntimeError
        If a batch takes longer than ``loader.timeout`` seconds.
    """
    recording, epoch = is_grad_enabled(), object()  # modes belong to threads

    def work(worker: int, batch: Any) -> Any:
        if get_worker_info() is None:
            _begin(loader, worker, seed + worker)
        own = _thread.loader
        if _thread.epoch is not epoch:
            _thread.epoch, _thread.stream = epoch, _stream(own)
        with set_grad_enabled(recording):
            batch = next(_thread.stream, _END) if _thread.stream else batch
            return _END if batch is _END else own._fetch(batch)

    workers = loader._workers or tuple(
        ThreadPoolExecutor(1, thread_name_prefix="numgrad-data") for _ in range(loader.num_workers)
    )
    persistent = loader.persistent_workers
    if persistent:
        loader.__dict__["_workers"] = workers
    turns, pending = deque(range(len(workers))), deque()

    def submit(count: int) -> None:
        for batch in islice(batches, count if turns else 0):
            pending.append((turns[0], workers[turns[0]].submit(work, turns[0], batch)))
            turns.rotate(-1)

    try:
        submit(len(workers) * loader.prefetch_factor)
        while pending:
            worker, future = pending.popleft()
            done, _ = wait([future], loader.timeout or None)
            if not done:
                raise NumgradRuntimeError(
                    f"DataLoader timed out after {loader.timeout} seconds: a batch of worker "
                    f"{worker} was not made in this time; give a longer timeout, or 0 for none"
                )
            result = future.result()
            if result is _END and worker in turns:
                turns.remove(worker)
            submit(1)
            if result is not _END:
                yield result
    finally:
        for _, future in pending:
            future.cancel()
        # Without waiting: a slow __getitem__ must not hold up who leaves the loop.
        for pool in () if persistent else workers:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(loader: Any, worker: int, seed: int) -> None:
    """Make this thread a worker."""
    copies: dict[int, Any] = {}
    dataset = _own(loader.dataset, copies)
    _thread.epoch, _thread.loader = None, copy(loader)
    _thread.info = info = WorkerInfo(worker, loader.num_workers, seed, dataset)
    loader._begin_worker(info)
    if loader.worker_init_fn is not None:
        _own(loader.worker_init_fn, copies)(worker)
    samples = dataset if isinstance(dataset, IterableDataset) else samples_of(dataset)
    _thread.loader.__dict__.update(
        dataset=dataset, _samples=samples, collate_fn=_own(loader.collate_fn, copies), _workers=()
    )  # whose threads end with the loader, which they must not hold


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


def has_streams(dataset: Any) -> bool:
    """Whether each worker goes through samples of its own."""
    return isinstance(dataset, IterableDataset) and dataset.by_worker


def _stream(loader: Any) -> Iterator[Any] | None:
    """Batches of a worker's own part of a stream."""
    if not has_streams(loader.dataset):
        return None
    return BatchSampler(loader.dataset, loader.batch_size or 1, loader.drop_last).batches()
