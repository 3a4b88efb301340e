"""``DataLoader``: a dataset in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar, Generic

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.foreign import refuse_mask
from numgrad.data.dataset import Columns, IterableDataset, T, batch_of, samples_of
from numgrad.data.sampler import BatchSampler, RandomSampler, SequentialSampler, check_number
from numgrad.data.workers import WorkerInfo, has_streams, in_turn
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.join import stack
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import asarray
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


def default_convert(data: Any) -> Any:
    """A sample with Tensors in place of arrays, also inside of lists and dictionaries.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> ng.data.default_convert({"x": np.ones(2), "name": "ones"})
    {'x': tensor([1., 1.]), 'name': 'ones'}
    """
    if isinstance(data, np.ndarray | np.generic):
        return asarray(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple | list) and not hasattr(data, "_fields"):
        return [default_convert(value) for value in data]
    return data


class DataLoader(Generic[T]):
    """Go through a dataset in batches, as often as wanted.

    Parameters
    ----------
    dataset
        A Tensor or ndarray, whose rows are the samples; a tuple or dict of these with equal
        numbers of rows; a ``TensorDataset``; a ``Subset``; anything with ``__getitem__`` and
        ``__len__``; or an ``IterableDataset``. Arrays are indexed once per batch, others asked for
        sample by sample, or batch by batch by its ``__getitems__``.
    batch_size : int or None
        Number of samples in a batch; the last has what is left. With None samples come one by one.
    shuffle : bool
        Draw a new random order each time.
    sampler
        What gives the numbers of samples, instead of ``shuffle``.
    batch_sampler
        What gives lists of these, one for each batch, instead of ``batch_size``, ``shuffle``,
        ``sampler`` and ``drop_last``.
    num_workers : int
        Threads that make batches ahead, in turn; batches come in the same order. With 0 the
        caller's thread makes each when it is wanted.
    collate_fn : callable, optional
        Makes a batch of a list of samples, by default ``default_collate``; without a ``batch_size``
        it is called with each sample, by default ``default_convert``.
    drop_last : bool
        Leave out a last batch that is not full.
    generator : generator of ``ng.random`` or NumPy, optional
        Where orders are drawn from, by default NumPy's global generator.
    seed : int, optional
        A seed for a generator of its own, in place of ``generator``.
    prefetch_factor : int, optional
        Batches that are made ahead for each worker, by default 2.
    persistent_workers : bool
        Let threads and what they remember live as long as the loader, and not for one loop.
    timeout : float
        Seconds that a worker may take for a batch; 0 is no bound.
    worker_init_fn : callable, optional
        Called in each worker, with its number, before its first batch: ``get_worker_info`` has more
        of it.
    pin_memory, pin_memory_device, multiprocessing_context, in_order
        Accepted for PyTorch's sake: there is one memory, workers are threads, and batches come in
        order.

    Raises
    ------
    NumgradTypeError
        If the dataset has no length or no samples by number, or an argument is of a wrong type.
    NumgradValueError
        If a number is out of range, or arrays have different numbers of rows; if what says how
        samples are chosen is set after construction.
    NumgradRuntimeError
        In the loop, if a batch takes longer than ``timeout``.

    Notes
    -----
    Batches share no memory with the dataset. A loop with workers draws a seed for them from
    ``generator``. Workers are threads: each has a copy of its own of a dataset of the class
    ``Dataset``, whose attributes it may set, and shares arrays and lists in it, global variables
    and the generators of NumPy and ``random`` with all others. An exception in ``__getitem__`` or
    ``collate_fn`` is raised where its batch would come, with its own type and traceback, and ends
    the workers, as does leaving the loop.

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

    _FIXED: ClassVar = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )
    _initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | np.random.Generator | None = None,
        *,
        seed: int | None = None,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._single = batch_size is None
        check_number("DataLoader", "batch_size", 1 if batch_size is None else batch_size, 1)
        check_number("DataLoader", "num_workers", num_workers, 0)
        ahead = 2 if prefetch_factor is None else prefetch_factor
        check_number("DataLoader", "prefetch_factor", ahead, 1)
        for wrong, what in (
            (prefetch_factor is not None and not num_workers, "prefetch_factor needs num_workers"),
            (persistent_workers and not num_workers, "persistent_workers needs num_workers"),
            (timeout < 0, f"timeout is at least 0, got {timeout}"),
            (self._single and drop_last, "drop_last needs a batch_size"),
        ):
            if wrong:
                raise NumgradValueError(f"DataLoader: {what}")
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
        self.num_workers, self.collate_fn, self.generator = num_workers, collate_fn, generator
        self.prefetch_factor = ahead if num_workers else None
        self.persistent_workers, self.timeout = persistent_workers, timeout
        self.worker_init_fn, self._workers = worker_init_fn, ()
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
            self.batch_sampler = BatchSampler(self.sampler, batch_size or 1, bool(drop_last))
        else:
            self.batch_size = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in self._FIXED:
            raise NumgradValueError(
                f"DataLoader: {name} cannot be set after construction; make another loader"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()  # the order is drawn now, not with the first batch
        if self.num_workers:
            return in_turn(self, batches, self._draw_seed())
        # A generator: what iterates over a ``map`` takes a StopIteration in it for the end.
        return (self._fetch(batch) for batch in batches)

    def _draw_seed(self) -> int:
        """The seed of the first worker."""
        return int(generator_of("DataLoader", self.generator).integers(2**62))

    def _begin_worker(self, info: WorkerInfo) -> None:
        """Called in the thread of a worker, before its ``worker_init_fn``."""

    def _batches(self) -> Iterator[Any]:
        """Numbers of the samples of each batch, or the samples where these have no numbers."""
        if self.num_workers and has_streams(self.dataset):
            return repeat(None)
        if isinstance(self.batch_sampler, BatchSampler):
            return self.batch_sampler.batches()
        return iter(self.batch_sampler)

    def _fetch(self, batch: Any) -> Any:
        """One batch, or one sample."""
        if isinstance(self._samples, Columns) and self.collate_fn is None and not self._single:
            return self._samples.batch(np.asarray(batch, np.intp))
        iterated = isinstance(self._samples, IterableDataset)
        indices = batch.tolist() if isinstance(batch, np.ndarray) else batch
        if self._single:
            convert = default_convert if self.collate_fn is None else self.collate_fn
            return convert(indices[0] if iterated else self._samples[indices[0]])
        collate = default_collate if self.collate_fn is None else self.collate_fn
        return collate(indices if iterated else batch_of(self._samples, indices))


def _check_together(
    iterated: bool,
    batch_size: int | None,
    shuffle: bool | None,
    drop_last: bool,
    sampler: Any,
    batches: Any,
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
