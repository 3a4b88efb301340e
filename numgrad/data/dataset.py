"""Datasets: anything with ``__getitem__`` and ``__len__``, and what is made of those."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, isclose
from typing import Any, Protocol

import numpy as np

from numgrad.data.columns import Columns, columns, samples_of
from numgrad.errors import NumgradValueError
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


class Dataset(Protocol):
    """A map-style dataset: samples by number."""

    def __getitem__(self, index: Any, /) -> Any:
        """Sample ``index``."""
        ...

    def __len__(self) -> int:
        """Number of samples."""
        ...


class TensorDataset:
    """Rows of several tensors of one length: sample ``k`` is the tuple of rows ``k``.

    Parameters
    ----------
    *tensors : Tensor or ndarray
        At least one; memory is shared.

    Raises
    ------
    NumgradValueError
        If their first axes have different lengths, or one has none.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> pairs = ng.data.TensorDataset(np.arange(6.0).reshape(3, 2), np.array([0, 1, 0]))
    >>> len(pairs), pairs[1]
    (3, (tensor([2., 3.]), tensor(1)))
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors: tuple[Tensor, ...] = tuple(asarray(tensor) for tensor in tensors)
        columns("a TensorDataset", self.tensors, tuple)

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def columns(self) -> Columns | None:
        """The tensors, to make batches of; a class derived from this may have other samples."""
        if type(self) is not TensorDataset:
            return None
        return columns("a TensorDataset", self.tensors, tuple)


class Subset:
    """The samples of a dataset at given numbers, in their order.

    Parameters
    ----------
    dataset
        Anything that ``DataLoader`` takes.
    indices : sequence of int
        A number may occur several times.

    Examples
    --------
    >>> import numgrad as ng
    >>> list(ng.data.Subset(["a", "b", "c"], [2, 0]))
    ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | np.ndarray) -> None:
        self.dataset, self.indices = dataset, indices
        self._samples = samples_of(dataset)

    def __getitem__(self, index: int) -> Any:
        return self._samples[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def columns(self) -> Columns | None:
        """The rows, to make batches of; None if the dataset is not made of arrays."""
        if type(self) is not Subset or not isinstance(self._samples, Columns):
            return None
        return self._samples.subset(np.asarray(self.indices, np.intp))


def random_split(
    dataset: Any,
    lengths: Sequence[int | float],
    generator: Generator | np.random.Generator | None = None,
) -> list[Subset]:
    """Deal the samples of a dataset out at random to subsets of given lengths.

    Parameters
    ----------
    dataset
        Anything that ``DataLoader`` takes.
    lengths : sequence
        Numbers of samples, or fractions with sum 1; samples that rounding leaves over go to the
        first subsets, one each.
    generator : generator of ``ng.random`` or NumPy, optional
        By default NumPy's global one.

    Raises
    ------
    NumgradValueError
        If the lengths do not have the dataset's length as their sum.

    Examples
    --------
    >>> import numgrad as ng
    >>> rng = ng.random.default_rng(0)
    >>> train, test = ng.data.random_split(range(10), [0.7, 0.3], generator=rng)
    >>> sorted([*train, *test]) == list(range(10)), len(train)
    (True, 7)
    """
    count = len(samples_of(dataset))
    counts = _counts(count, list(lengths))
    order = generator_of("random_split", generator).permutation(count)
    bounds = np.cumsum([0, *counts])
    return [Subset(dataset, order[a:b]) for a, b in pairwise(bounds)]


def _counts(count: int, lengths: list[Any]) -> list[int]:
    if any(length < 0 for length in lengths):
        raise NumgradValueError(f"random_split: no length can be negative, got {lengths}")
    if lengths and isclose(sum(lengths), 1.0) and all(length <= 1 for length in lengths):
        counts = [floor(count * length) for length in lengths]
        for k in range(count - sum(counts)):
            counts[k % len(counts)] += 1
        return counts
    if sum(lengths) != count or not all(isinstance(length, int) for length in lengths):
        raise NumgradValueError(
            f"random_split: the lengths {lengths} have the sum {sum(lengths)}; it must be the "
            f"number of samples, {count}, or 1 for fractions"
        )
    return lengths
