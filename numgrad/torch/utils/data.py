"""Datasets and loaders: ``torch.utils.data``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from numgrad.data import loader as _numgrad_loader
from numgrad.random.generator import generator_of
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias
from numgrad.torch.random import Generator
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import unwrap, wrap

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


def _as_dataset(name: str) -> Any:
    """A class of numgrad's, which is a dataset of this room and stands in its module, too."""
    made = type(name, (getattr(_dataset, name), Dataset), {"__module__": __name__})
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
    """A batch with lists where its samples have tuples without names."""
    if isinstance(value, Mapping):
        return {key: _lists(each) for key, each in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return list(map(_lists, value))
    return value


def default_collate(batch: Sequence[Any]) -> Any:
    """One value with a new first axis, along which the samples are."""
    return _lists(wrap(_numgrad_loader.default_collate(unwrap(list(batch)))))


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


class DataLoader(_loader.DataLoader, Generic[T]):
    """A dataset in batches: ``numgrad.data.DataLoader``.

    With ``batch_size=None`` samples come one by one. Workers are threads; what concerns processes
    (``timeout``, ``worker_init_fn``, ``multiprocessing_context``) is accepted.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        single = batch_size is None and batch_sampler is None
        if single:
            convert = collate_fn or default_convert
            collate_fn = lambda samples: convert(samples[0])  # noqa: E731
        super().__init__(
            dataset, 1 if batch_size is None else batch_size, bool(shuffle), sampler, batch_sampler,
            num_workers=num_workers, collate_fn=collate_fn, drop_last=drop_last,
            generator=generator, prefetch_factor=prefetch_factor or 2,
        )  # fmt: skip
        self._single = single
        if single:
            self.batch_size = None

    def _samples_at(self, indices: Any) -> Any:
        return [self._samples[indices[0]]] if self._single else super()._samples_at(indices)

    def _fetch(self, batch: Any) -> Any:
        return _lists(super()._fetch(batch)) if self.collate_fn is None else super()._fetch(batch)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()


_loader.default_collate = default_collate


def get_worker_info() -> None:
    """None: workers are threads, which share their objects."""


__getattr__ = _refuse(globals())
