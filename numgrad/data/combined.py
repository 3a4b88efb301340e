"""Datasets made of several, one after another or side by side, and those only iterated over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import index as as_integer
from typing import Any

from numgrad.data.columns import samples_of
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError


class IterableDataset:
    """A dataset whose samples come one after another: derive a class and write ``__iter__``.

    Samples joined by ``+`` make a ``ChainDataset``.

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

    def __iter__(self) -> Iterator[Any]:
        """The samples: to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: defines no __iter__")

    def __add__(self, other: IterableDataset) -> ChainDataset:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
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


class ConcatDataset:
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
        place = as_integer(index)
        if not -ends[-1] <= place < ends[-1]:
            raise NumgradIndexError(f"ConcatDataset: sample {index} of {ends[-1]}")
        place %= ends[-1]
        which = bisect_right(ends, place)
        return self._samples[which][place - (ends[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset:
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

    def __len__(self) -> int:
        return len(self._samples[0])
