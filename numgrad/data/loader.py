"""``DataLoader``: a dataset in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

from numgrad.autograd.modes import is_grad_enabled, set_grad_enabled
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.foreign import refuse_mask
from numgrad.data.dataset import Columns, IterableDataset, batch_of, samples_of
from numgrad.data.sampler import BatchSampler, RandomSampler, SequentialSampler, check_number
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.join import stack
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.tensor import Tensor


def default_collate(samples: Sequence[Any]) -> Any:
    """One value with a new first axis, along which the samples are.

    Numbers, arrays and Tensors become a Tensor of the dtype they have; tuples (named ones too),
    lists and dicts are gone into and come back as what they are; strings and bytes stay in a list.

    Parameters
    ----------
    samples : sequence
        At least one; all of one kind, arrays of one shape.

    Raises
    ------
    NumgradValueError
        If shapes, lengths or keys differ between samples, or there are none.
    NumgradTypeError
        If a sample holds anything else.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> x, label = ng.data.default_collate([(np.zeros(2), 3), (np.ones(2), 4)])
    >>> x
    tensor([[0., 0.],
            [1., 1.]])
    >>> label
    tensor([3, 4])
    """
    if not len(samples):
        raise NumgradValueError("default_collate: there are no samples to make a batch of")
    first = samples[0]
    if isinstance(first, Tensor | np.ndarray | np.generic | bool | int | float | complex):
        return _stack(samples)
    for sample in samples:
        if type(sample) is not type(first):
            raise NumgradTypeError(
                f"default_collate: a sample is {type(first).__name__} and another "
                f"{type(sample).__name__}; give all samples one form, or pass collate_fn"
            )
    if isinstance(first, str | bytes):
        return list(samples)
    if isinstance(first, Mapping):
        _check_equal("keys", [set(sample) for sample in samples])
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple | list):
        _check_equal("lengths", [len(sample) for sample in samples])
        batches = [default_collate(column) for column in zip(*samples, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*batches)
        return tuple(batches) if isinstance(first, tuple) else batches
    raise NumgradTypeError(
        f"default_collate: knows no batch of {type(first).__name__}; samples are numbers, arrays, "
        "Tensors, strings, and tuples, lists and dicts of these; for others pass collate_fn"
    )


def _stack(samples: Sequence[Any]) -> Tensor:
    _check_equal("shapes", [getattr(sample, "shape", ()) for sample in samples])
    if any(isinstance(sample, Tensor) and sample.requires_grad for sample in samples):
        return stack(samples)  # pyright: ignore
    rows = [sample.numpy() if isinstance(sample, Tensor) else sample for sample in samples]
    refuse_mask("default_collate", rows)
    batch = np.asarray(rows)
    check_dtype("default_collate", batch.dtype)
    return Tensor(batch)


def _check_equal(what: str, values: list[Any]) -> None:
    for other in values:
        if other != values[0]:
            raise NumgradValueError(
                f"default_collate: samples of one batch have the {what} {values[0]} and {other}; "
                "make them equal, or pass collate_fn"
            )


class DataLoader:
    """Go through a dataset in batches, as often as wanted.

    Parameters
    ----------
    dataset
        A Tensor or ndarray, whose rows are the samples; a tuple or dict of these with equal
        numbers of rows; a ``TensorDataset``; a ``Subset``; anything with ``__getitem__`` and
        ``__len__``; or an ``IterableDataset``. Arrays are indexed once per batch, others asked for
        sample by sample, or batch by batch by its ``__getitems__``.
    batch_size : int
        Number of samples in a batch; the last has what is left.
    shuffle : bool
        Draw a new random order each time.
    sampler
        What gives the numbers of samples, instead of ``shuffle``.
    batch_sampler
        What gives lists of these, one for each batch, instead of ``batch_size``, ``shuffle``,
        ``sampler`` and ``drop_last``.
    num_workers : int
        Threads that make batches ahead; batches come in the same order. With 0 the caller's thread
        makes each when it is wanted.
    collate_fn : callable, optional
        Makes a batch of a list of samples, by default ``default_collate``.
    drop_last : bool
        Leave out a last batch that is not full.
    generator : generator of ``ng.random`` or NumPy, optional
        Where orders are drawn from, by default NumPy's global generator.
    seed : int, optional
        A seed for a generator of its own, in place of ``generator``.
    prefetch_factor : int
        Batches that are made ahead for each worker.
    pin_memory, persistent_workers : bool
        Accepted for PyTorch's sake: there is one memory, and threads are made quickly.

    Raises
    ------
    NumgradTypeError
        If the dataset has no length or no samples by number, or an argument is of a wrong type.
    NumgradValueError
        If a number is out of range, or arrays have different numbers of rows.

    Notes
    -----
    Batches share no memory with the dataset. An exception in ``__getitem__`` or ``collate_fn`` is
    raised where its batch would come, with its own type and traceback, and ends the workers, as
    does leaving the loop.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> loader = ng.data.DataLoader((x, y), batch_size=2, shuffle=True, seed=0)
    >>> len(loader)
    3
    >>> for rows, labels in loader:
    ...     print(rows.shape, labels)
    (2, 2) tensor([2, 4])
    (2, 2) tensor([3, 0])
    (1, 2) tensor([1])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        *,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        generator: Generator | np.random.Generator | None = None,
        seed: int | None = None,
        prefetch_factor: int = 2,
        pin_memory: bool = False,
        persistent_workers: bool = False,
    ) -> None:
        check_number("DataLoader", "batch_size", batch_size, 1)
        check_number("DataLoader", "num_workers", num_workers, 0)
        check_number("DataLoader", "prefetch_factor", prefetch_factor, 1)
        if collate_fn is not None and not callable(collate_fn):
            raise NumgradTypeError(
                f"DataLoader: collate_fn is a function, got {type(collate_fn).__name__}"
            )
        if seed is not None:
            if generator is not None:
                raise NumgradValueError("DataLoader: takes a generator or a seed, not both")
            generator = np.random.default_rng(seed)
        generator_of("DataLoader", generator)
        self.dataset = dataset
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.collate_fn, self.generator = collate_fn, generator
        iterated = isinstance(dataset, IterableDataset)
        _check_together(iterated, batch_size, shuffle, drop_last, sampler, batch_sampler)
        self._samples: Any = dataset if iterated else samples_of(dataset)
        if sampler is None:
            if iterated:
                sampler = self._samples
            elif shuffle:
                sampler = RandomSampler(self._samples, generator=generator)
            else:
                sampler = SequentialSampler(self._samples)
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, bool(drop_last))

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()  # the order is drawn now, not with the first batch
        if self.num_workers:
            return self._ahead(batches)
        # A generator: what iterates over a ``map`` takes a StopIteration in it for the end.
        return (self._fetch(batch) for batch in batches)

    def _batches(self) -> Iterator[Any]:
        """Numbers of the samples of each batch, or the samples where these have no numbers."""
        if isinstance(self.batch_sampler, BatchSampler):
            return self.batch_sampler.batches()
        return iter(self.batch_sampler)

    def _fetch(self, batch: Any) -> Any:
        """One batch."""
        if isinstance(self._samples, Columns) and self.collate_fn is None:
            return self._samples.batch(np.asarray(batch, np.intp))
        collate = default_collate if self.collate_fn is None else self.collate_fn
        if isinstance(self._samples, IterableDataset):
            return collate(batch)
        indices = batch.tolist() if isinstance(batch, np.ndarray) else batch
        return collate(self._samples_at(indices))

    def _samples_at(self, indices: Any) -> Any:
        """The samples of a batch."""
        return batch_of(self._samples, indices)

    def _ahead(self, batches: Iterator[np.ndarray]) -> Iterator[Any]:
        """The batches in order, made by threads that end when no more are wanted."""
        recording = is_grad_enabled()  # modes belong to threads

        def fetch(indices: Any) -> Any:
            with set_grad_enabled(recording):
                return self._fetch(indices)

        workers = ThreadPoolExecutor(self.num_workers, thread_name_prefix="numgrad-data")
        try:
            ahead = self.num_workers * self.prefetch_factor
            pending = deque(workers.submit(fetch, batch) for batch in islice(batches, ahead))
            while pending:
                batch = pending.popleft().result()
                pending.extend(workers.submit(fetch, after) for after in islice(batches, 1))
                yield batch
        finally:
            # Without waiting: a slow __getitem__ must not hold up who leaves the loop.
            workers.shutdown(wait=False, cancel_futures=True)


def _check_together(
    iterated: bool, batch_size: int, shuffle: bool, drop_last: bool, sampler: Any, batches: Any
) -> None:
    """Raise where one of the arguments leaves nothing for another."""
    if iterated and (shuffle or sampler is not None or batches is not None):
        raise NumgradValueError(
            "DataLoader: an IterableDataset gives its samples in its own order; leave shuffle, "
            "sampler and batch_sampler out"
        )
    if sampler is not None and shuffle:
        raise NumgradValueError("DataLoader: takes a sampler or shuffle=True, not both")
    if batches is not None and (batch_size != 1 or shuffle or drop_last or sampler is not None):
        raise NumgradValueError(
            "DataLoader: a batch_sampler says all of batch_size, shuffle, sampler and drop_last; "
            "leave these out"
        )
