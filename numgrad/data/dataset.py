"""Datasets: rows of arrays, parts of other datasets, and several together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from math import floor, isclose
from operator import index as as_integer, itemgetter
from typing import Any, Generic, TypeVar

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.foreign import refuse_mask
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays with rows, and what makes a sample or a batch of one row or batch of each.

    ``rows`` are the numbers of a ``Subset``'s samples, None for all.
    """

    arrays: tuple[Any, ...]
    build: Callable[[list[Any]], Any]
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.rows is None else len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        row = index if self.rows is None else self.rows[index]
        return self.build([array[row] for array in self.arrays])

    def subset(self, rows: np.ndarray) -> Columns:
        """The columns with some of the samples."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def batch(self, indices: np.ndarray) -> Any:
        """Batch as ``default_collate`` makes it of the samples at ``indices``, at once."""
        rows = indices if self.rows is None else self.rows[indices]
        return self.build([_take(array, rows) for array in self.arrays])


def _take(array: Any, rows: np.ndarray) -> Tensor:
    """A copy of some rows as a Tensor, recorded if the array requires grad."""
    if isinstance(array, Tensor):
        if array.requires_grad:
            return array[rows]
        array = array.numpy()
    return Tensor(np.take(array, rows, axis=0))


def columns_of(dataset: Any) -> Columns | None:
    """A dataset as columns; None if it is not made of arrays and must be asked for samples.

    Raises
    ------
    NumgradTypeError
        If an array has no rows or a dtype that Tensors do not have.
    NumgradValueError
        If arrays have different numbers of rows.
    """
    dataset = _by_position(dataset)
    if isinstance(dataset, dict):
        dataset = {key: _by_position(value) for key, value in dataset.items()}
    if isinstance(dataset, tuple):
        parts = map(_by_position, dataset)
        dataset = type(dataset)._make(parts) if hasattr(dataset, "_fields") else tuple(parts)  # pyright: ignore
    if hasattr(dataset, "columns"):
        return dataset.columns()
    if _is_array(dataset):
        return columns("a dataset", (dataset,), itemgetter(0))
    if isinstance(dataset, dict):
        if not all(map(_is_array, dataset.values())):
            raise NumgradTypeError(
                f"a dict with the keys {', '.join(map(repr, dataset))} is a dataset if all values "
                "are arrays or Tensors with rows"
            )
        return columns("a dataset", dataset.values(), partial(_as_dict, tuple(dataset)))
    if isinstance(dataset, tuple) and dataset and all(map(_is_array, dataset)):
        named = hasattr(dataset, "_fields")
        return columns("a dataset", dataset, type(dataset)._make if named else tuple)  # pyright: ignore
    return None


def columns(what: str, arrays: Iterable[Any], build: Callable[[list[Any]], Any]) -> Columns:
    """Columns of arrays that were checked to have as many rows each."""
    arrays = tuple(arrays)
    shapes = [array.shape for array in arrays]
    if not shapes or () in shapes:
        raise NumgradTypeError(f"{what} is made of arrays with rows, got the shapes {shapes}")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise NumgradValueError(
            f"the arrays of {what} need the same number of rows, got the shapes {shapes}"
        )
    for array in arrays:
        refuse_mask(what, array)
        check_dtype(what, array.dtype)
    return Columns(arrays, build)


def samples_of(dataset: Any) -> Any:
    """Sequence with sample ``k`` at index ``k``, as long as there are samples.

    Raises
    ------
    NumgradTypeError
        If ``dataset`` is none.
    """
    table = columns_of(dataset)
    if table is not None:
        return table
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return dataset
    raise NumgradTypeError(
        f"{type(dataset).__name__} is no dataset: it needs __getitem__ and __len__; collect what "
        "an iterator gives in a list"
    )


def batch_of(samples: Any, indices: Sequence[int]) -> Any:
    """The samples of a batch: by one call of ``__getitems__`` where there is such a method."""
    together = getattr(samples, "__getitems__", None)
    if callable(together):
        return together(indices)
    return [samples[index] for index in indices]


def _as_dict(keys: tuple, parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, parts, strict=True))


def _by_position(value: Any) -> Any:
    """Numbers of what pandas and its like hold: rows by position, not by label."""
    return value.to_numpy() if hasattr(value, "to_numpy") else value


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


T = TypeVar("T")


class Dataset(Generic[T]):
    """Base of datasets with samples by number: write ``__getitem__`` and ``__len__``.

    Loaders take anything that has these. With this base, datasets joined by ``+`` make a
    ``ConcatDataset``, and each worker of a loader has a copy whose attributes it may set; the data
    are shared.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Squares(ng.data.Dataset[int]):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> twice = Squares() + Squares()
    >>> [batch.tolist() for batch in ng.data.DataLoader(twice, batch_size=4)]
    [[0, 1, 4, 0], [1, 4]]
    """

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class TensorDataset(Dataset[Any]):
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


class Subset(Dataset[Any]):
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

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Samples of a batch, which the dataset may give together."""
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[index] for index in indices]
        return batch_of(self._samples, [self.indices[index] for index in indices])

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
    return [Subset(dataset, order[a:b].tolist()) for a, b in pairwise(bounds)]


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


class IterableDataset(Dataset[T]):
    """A dataset whose samples come one after another: derive a class and write ``__iter__``.

    Samples joined by ``+`` make a ``ChainDataset``.

    Attributes
    ----------
    by_worker : bool
        Whether each worker of a loader goes through samples of its own, those of its copy, which
        tells its part by ``get_worker_info``. By default workers make batches of the samples of one
        iteration.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Countdown(ng.data.IterableDataset):
    ...     def __init__(self, start):
    ...         self.start = start
    ...
    ...     def __iter__(self):
    ...         return iter(range(self.start, 0, -1))
    >>> [batch.tolist() for batch in ng.data.DataLoader(Countdown(5), batch_size=2)]
    [[5, 4], [3, 2], [1]]
    """

    by_worker: bool = False

    def __iter__(self) -> Iterator[Any]:
        """The samples: to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: defines no __iter__")

    def __add__(self, other: IterableDataset) -> ChainDataset:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[Any]):
    """The samples of several datasets that are only iterated, one after another.

    Parameters
    ----------
    datasets
        Each an ``IterableDataset``.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Letters(ng.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> list(ng.data.ChainDataset([Letters(), Letters()]))
    ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets: Iterable[IterableDataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise NumgradTypeError(
                    f"ChainDataset: joins datasets of the class IterableDataset, got "
                    f"{type(dataset).__name__}; ConcatDataset joins others"
                )
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # pyright: ignore


class ConcatDataset(Dataset[Any]):
    """The samples of several datasets, one after another.

    Parameters
    ----------
    datasets
        At least one; each anything that ``DataLoader`` takes, with a length.

    Raises
    ------
    NumgradTypeError
        If one has no length or no samples by number.
    NumgradValueError
        If there is none.

    Examples
    --------
    >>> import numgrad as ng
    >>> both = ng.data.ConcatDataset(["abc", "de"])
    >>> len(both), both[3], both[-1]
    (5, 'd', 'e')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise NumgradValueError("ConcatDataset: takes at least one dataset, got none")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise NumgradTypeError(
                    f"ConcatDataset: {type(dataset).__name__} has no samples by number; "
                    "ChainDataset joins datasets of its kind"
                )
        self._samples = [samples_of(dataset) for dataset in self.datasets]

    @property
    def cumulative_sizes(self) -> list[int]:
        """Where each dataset ends."""
        return list(accumulate(len(samples) for samples in self._samples))

    def __getitem__(self, index: int) -> Any:
        ends = self.cumulative_sizes
        position = as_integer(index)
        if not -ends[-1] <= position < ends[-1]:
            raise NumgradIndexError(f"ConcatDataset: sample {index} of {ends[-1]}")
        position %= ends[-1]
        which = bisect_right(ends, position)
        return self._samples[which][position - (ends[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any]):
    """The samples of several datasets of equal length side by side, as tuples or dicts.

    Parameters
    ----------
    *args
        Datasets whose samples make tuples.
    **kwargs
        Datasets whose samples make dicts; not together with others.

    Raises
    ------
    NumgradValueError
        If lengths differ, or there are none or both kinds of arguments.

    Examples
    --------
    >>> import numgrad as ng
    >>> pairs = ng.data.StackDataset("abc", [3, 4, 5])
    >>> pairs[1]
    ('b', 4)
    >>> ng.data.StackDataset(letter="abc", number=[3, 4, 5])[0]
    {'letter': 'a', 'number': 3}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise NumgradValueError(
                "StackDataset: takes datasets by position or by name, at least one and not both"
            )
        self.datasets: Any = args or kwargs
        parts = args or kwargs.values()
        self._samples = [samples_of(dataset) for dataset in parts]
        lengths = [len(samples) for samples in self._samples]
        if len(set(lengths)) > 1:
            raise NumgradValueError(f"StackDataset: datasets have different lengths, {lengths}")

    def __getitem__(self, index: Any) -> Any:
        parts = [samples[index] for samples in self._samples]
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Samples of a batch, of which a dataset may give its parts together."""
        if type(self).__getitem__ is not StackDataset.__getitem__:
            return [self[index] for index in indices]
        parts = [batch_of(samples, indices) for samples in self._samples]
        lengths = list(map(len, parts))
        if set(lengths) != {len(indices)}:
            raise NumgradValueError(
                f"StackDataset: __getitems__ of the datasets gave {lengths} samples for "
                f"{len(indices)} indices"
            )
        rows = zip(*parts, strict=True)
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self) -> int:
        return len(self._samples[0])
