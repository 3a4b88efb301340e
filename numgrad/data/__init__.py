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

# fmt: off
# isort: off

from numgrad.core.absent import absent as _absent
from numgrad.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset,
    random_split,
)
from numgrad.data.loader import DataLoader, default_collate
from numgrad.data.sampler import (
    BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler,
    SubsetRandomSampler, WeightedRandomSampler,
)

# isort: on
# fmt: on

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
