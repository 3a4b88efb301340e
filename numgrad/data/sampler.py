"""Samplers: which samples come, in which order, and which of them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np

from numgrad.distributed.group import get_rank, get_world_size
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.tensor import Tensor


def check_number(owner: str, name: str, value: Any, least: int) -> None:
    """Raise unless ``value`` is an integer of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise NumgradTypeError(f"{owner}: {name} is an integer, got {value!r}")
    if value < least:
        raise NumgradValueError(f"{owner}: {name} is at least {least}, got {value}")


class Sampler(Protocol):
    """Iterable that gives numbers of samples each time; a length is welcome."""

    def __iter__(self) -> Iterator[Any]:
        """Numbers of samples."""
        ...


class Ordered:
    """A sampler that knows the whole order when an iteration begins."""

    def order(self) -> np.ndarray:
        """Numbers of samples, drawn each time where they are random."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().tolist())


class SequentialSampler(Ordered):
    """All samples in their order.

    Parameters
    ----------
    data_source
        Anything with a length.

    Examples
    --------
    >>> import numgrad as ng
    >>> list(ng.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def order(self) -> np.ndarray:
        """All numbers."""
        return np.arange(len(self.data_source))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Ordered):
    """Samples in random order, or drawn one by one.

    Parameters
    ----------
    data_source
        Anything with a length.
    replacement
        Draw each independently, so that one can come several times.
    num_samples
        How many to draw, by default as many as there are; more of them are several random orders
        one after another.
    generator : generator of ``ng.random`` or NumPy, optional
        By default NumPy's global one.

    Raises
    ------
    NumgradValueError
        If ``num_samples`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> sampler = ng.data.RandomSampler("abcd", generator=ng.random.default_rng(0))
    >>> list(sampler), list(sampler)
    ([2, 0, 1, 3], [3, 2, 1, 0])
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise NumgradTypeError(
                f"RandomSampler: replacement is True or False, got {replacement!r}"
            )
        if num_samples is not None:
            check_number("RandomSampler", "num_samples", num_samples, 1)
        generator_of("RandomSampler", generator)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many samples an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def order(self) -> np.ndarray:
        """Numbers drawn."""
        rng = generator_of("RandomSampler", self.generator)
        count, total = len(self.data_source), self.num_samples
        if self.replacement:
            return rng.integers(count, size=total)
        if not count or total == count:
            return rng.permutation(count)
        orders = [rng.permutation(count) for _ in range(-(-total // count))]
        return np.concatenate(orders)[:total]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Ordered):
    """Given numbers in random order.

    Parameters
    ----------
    indices : sequence of int
        Numbers of samples.
    generator : generator of ``ng.random`` or NumPy, optional
        By default NumPy's global one.

    Examples
    --------
    >>> import numgrad as ng
    >>> sorted(ng.data.SubsetRandomSampler([5, 8, 3]))
    [3, 5, 8]
    """

    def __init__(
        self,
        indices: Sequence[int] | np.ndarray,
        generator: Generator | np.random.Generator | None = None,
    ) -> None:
        generator_of("SubsetRandomSampler", generator)
        self.indices, self.generator = indices, generator

    def order(self) -> np.ndarray:
        """The numbers, shuffled."""
        rng = generator_of("SubsetRandomSampler", self.generator)
        return np.asarray(self.indices, np.intp)[rng.permutation(len(self.indices))]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Ordered):
    """Samples drawn with probabilities that weights are in proportion to.

    Parameters
    ----------
    weights
        A number for each sample, not negative, not all zero.
    num_samples
        How many to draw.
    replacement
        Whether one can come several times.
    generator : generator of ``ng.random`` or NumPy, optional
        By default NumPy's global one.

    Raises
    ------
    NumgradValueError
        If the weights are none, or leave fewer samples than are to be drawn without replacement.

    Examples
    --------
    >>> import numgrad as ng
    >>> sampler = ng.data.WeightedRandomSampler([0.0, 3.0, 0.0], 4)
    >>> list(sampler)
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | np.random.Generator | None = None,
    ) -> None:
        name = "WeightedRandomSampler"
        check_number(name, "num_samples", num_samples, 1)
        if not isinstance(replacement, bool):
            raise NumgradTypeError(f"{name}: replacement is True or False, got {replacement!r}")
        generator_of(name, generator)
        values = weights.detach().numpy() if isinstance(weights, Tensor) else weights
        self.weights = np.asarray(values, np.float64)
        if self.weights.ndim != 1 or not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise NumgradValueError(
                f"{name}: weights are finite numbers of at least 0 along one axis; got shape "
                f"{self.weights.shape}, {self.weights}"
            )
        possible = np.count_nonzero(self.weights)
        if possible < (1 if replacement else num_samples):
            raise NumgradValueError(
                f"{name}: {num_samples} samples are to be drawn, and {possible} have a weight "
                "above 0"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def order(self) -> np.ndarray:
        """Numbers drawn."""
        rng = generator_of("WeightedRandomSampler", self.generator)
        chances = self.weights / self.weights.sum()
        return rng.choice(len(chances), self.num_samples, self.replacement, chances)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler:
    """Numbers of a sampler in lists of equal length.

    Parameters
    ----------
    sampler
        A sampler, or anything to iterate over.
    batch_size
        Numbers in a list; the last has what is left.
    drop_last
        Leave out a last list that is not full.

    Examples
    --------
    >>> import numgrad as ng
    >>> list(ng.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        check_number("BatchSampler", "batch_size", batch_size, 1)
        if not isinstance(drop_last, bool):
            raise NumgradTypeError(f"BatchSampler: drop_last is True or False, got {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self.batches():
            yield batch if isinstance(batch, list) else batch.tolist()

    def batches(self) -> Iterator[Any]:
        """The lists, as arrays where the order is known; random ones are drawn now."""
        if isinstance(self.sampler, Ordered):
            order = self.sampler.order()
            starts = range(0, self._count(len(order)) * self.batch_size, self.batch_size)
            return (order[start : start + self.batch_size] for start in starts)
        return self._collected(iter(self.sampler))

    def _collected(self, numbers: Iterator[Any]) -> Iterator[list[Any]]:
        for first in numbers:
            batch = list(islice(chain([first], numbers), self.batch_size))
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def _count(self, samples: int) -> int:
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __len__(self) -> int:
        sampler: Any = self.sampler
        return self._count(len(sampler))


class DistributedSampler(Ordered):
    """Every so many-th sample, so that all ranks together have all and each has as many as another.

    Parameters
    ----------
    dataset
        Anything with a length.
    num_replicas, rank
        The number of parts, and which of them comes here; by default those of
        ``ng.distributed``.
    shuffle
        Draw a new random order for each epoch, the same one on all ranks.
    seed
        Where orders begin; the same on all ranks.
    drop_last
        Leave out what would make parts unequal; else the first samples come again.

    Raises
    ------
    NumgradRuntimeError
        If a default is asked for before ``ng.distributed.init_process_group``.
    NumgradTypeError, NumgradValueError
        If a number is none, or out of its range.

    Notes
    -----
    The order depends on ``seed`` and the epoch only: call ``set_epoch`` before each. Position ``i``
    of the order goes to rank ``i % num_replicas``.

    Examples
    --------
    >>> import numgrad as ng
    >>> samplers = [ng.data.DistributedSampler("abcde", 2, rank, shuffle=False) for rank in (0, 1)]
    >>> [list(sampler) for sampler in samplers]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        name = "DistributedSampler"
        replicas: Any = get_world_size() if num_replicas is None else num_replicas
        number: Any = get_rank() if rank is None else rank
        check_number(name, "num_replicas", replicas, 1)
        check_number(name, "rank", number, 0)
        check_number(name, "seed", seed, 0)
        for option, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise NumgradTypeError(f"{name}: {option} is True or False, got {value!r}")
        if number >= replicas:
            raise NumgradValueError(
                f"{name}: rank is below num_replicas, got rank {number} of {replicas}"
            )
        self.dataset, self.num_replicas, self.rank = dataset, replicas, number
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch begins, from which its random order follows.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If it is no integer from 0.
        """
        check_number("set_epoch", "epoch", epoch, 0)
        self.epoch = epoch

    @property
    def num_samples(self) -> int:
        """How many samples come on each rank."""
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    def order(self) -> np.ndarray:
        """Numbers of samples of this rank."""
        count, total = len(self.dataset), self.num_samples * self.num_replicas
        every = np.arange(count)
        if self.shuffle:
            every = np.random.default_rng([self.seed, self.epoch]).permutation(count)
        return np.resize(every, total)[self.rank :: self.num_replicas] if total else every[:0]

    def __len__(self) -> int:
        return self.num_samples
