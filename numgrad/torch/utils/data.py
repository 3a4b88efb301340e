"""Datasets and loaders: ``torch.utils.data``, which is ``numgrad.data`` specialized.

Differences: streams of workers are their own, batches have lists where samples have tuples, and
``torch``'s generators are drawn from, in each worker one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.data import default_collate as _numgrad_collate
from numgrad.errors import NumgradAssertionError, NumgradIndexError, NumgradValueError
from numgrad.random.generator import generator_of
from numgrad.torch.creation import as_tensor
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias
from numgrad.torch.random import Generator, worker as _worker
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import face_function


class DatasetError(NumgradValueError, NumgradAssertionError):
    """Datasets do not fit: PyTorch raises AssertionError where numgrad raises ValueError."""


class SampleError(NumgradIndexError, NumgradValueError):
    """There is no such sample: the same of ValueError, for numbers below zero, and IndexError."""


def _generator_of(name: str, generator: Any) -> np.random.Generator:
    """NumPy's generator behind one of this room; for None NumPy's global one."""
    if isinstance(generator, Generator):
        return np.random.Generator(generator._source._bit_generator)
    return generator_of(name, generator)


_SHARED = {"check_dtype": lambda *_: None, "generator_of": _generator_of}
_dataset = specialize("numgrad.data.dataset", _SHARED | {
    "asarray": lambda value: value, "_take": lambda tensor, rows: tensor[rows],
    "NumgradValueError": DatasetError, "NumgradIndexError": SampleError,
})  # fmt: skip
_sampler = specialize("numgrad.data.sampler", _SHARED)
_workers = specialize("numgrad.data.workers")
_loader = specialize("numgrad.data.loader", _SHARED | {"asarray": as_tensor})
expose(globals(), "numgrad.data", _dataset, _sampler, _workers, _loader)
_dataset.IterableDataset.by_worker = True
_FILES = ("dataloader", "dataset", "distributed", "sampler")
_alias(__name__, " ".join(f"utils.data.{name}" for name in _FILES))


def _lists(value: Any, inside: bool = False) -> Any:
    """A batch with lists where samples have tuples without names, and words inside in tuples."""
    if isinstance(value, Mapping):
        return {key: _lists(each) for key, each in value.items()}
    if not isinstance(value, tuple | list):
        return value
    if hasattr(value, "_fields"):
        return type(value)(*[_lists(each, True) for each in value])
    words = inside and value and isinstance(value[0], str | bytes)
    return tuple(value) if words else [_lists(each, True) for each in value]


def default_collate(batch: Sequence[Any]) -> Any:
    """One value with a new first axis, along which the samples are."""
    return _lists(_collate(list(batch)))


_collate = face_function(_numgrad_collate)
_loader.default_collate = default_collate


class DataLoader(_loader.DataLoader):
    """A dataset in batches: ``numgrad.data.DataLoader``, whose workers are threads.

    Each has a generator of its own, seeded by ``get_worker_info().seed``, for functions of
    ``torch``.
    """

    def __iter__(self) -> Iterator[Any]:
        batches = super().__iter__()
        if not self.num_workers:
            self._draw_seed()  # orders do not depend on how many workers there are
        return batches

    def _begin_worker(self, info: Any) -> None:
        _worker.generator = Generator().manual_seed(info.seed)

    def _fetch(self, batch: Any) -> Any:
        return _lists(super()._fetch(batch)) if self.collate_fn is None else super()._fetch(batch)


__getattr__ = _refuse(globals())
