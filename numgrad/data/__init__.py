"""Datasets, and loaders that give their rows in batches.

A ``DataLoader`` takes anything with a length and an index, such as ``TensorDataset``, or arrays of
equal length; ``random_split`` cuts a dataset into parts, ``ConcatDataset`` and ``StackDataset`` put
several together. Samplers such as ``WeightedRandomSampler`` say which samples come.

>>> import numpy as np
>>> import numgrad as ng
>>> loader = ng.data.DataLoader((np.arange(5.0), np.arange(5)), batch_size=2)
>>> [x.shape for x, y in loader]
[(2,), (2,), (1,)]
"""

from numgrad.core.absent import absent as _absent
from numgrad.data.collate import default_collate as default_collate
from numgrad.data.combined import ChainDataset as ChainDataset
from numgrad.data.combined import ConcatDataset as ConcatDataset
from numgrad.data.combined import IterableDataset as IterableDataset
from numgrad.data.combined import StackDataset as StackDataset
from numgrad.data.dataset import Dataset as Dataset
from numgrad.data.dataset import Subset as Subset
from numgrad.data.dataset import TensorDataset as TensorDataset
from numgrad.data.dataset import random_split as random_split
from numgrad.data.distributed import DistributedSampler as DistributedSampler
from numgrad.data.loader import DataLoader as DataLoader
from numgrad.data.sampler import BatchSampler as BatchSampler
from numgrad.data.sampler import RandomSampler as RandomSampler
from numgrad.data.sampler import Sampler as Sampler
from numgrad.data.sampler import SequentialSampler as SequentialSampler
from numgrad.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from numgrad.data.sampler import WeightedRandomSampler as WeightedRandomSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate",
    "random_split",
]  # fmt: skip

__getattr__ = _absent(
    __name__,
    __all__,
    {
        "get_worker_info": "workers are threads here and share their objects",
        "default_convert": "ng.asarray",
    },
)


def __dir__() -> list[str]:
    return __all__
