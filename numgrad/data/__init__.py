"""Datasets, and loaders that give their rows in batches.

A ``DataLoader`` takes anything with a length and an index, such as ``TensorDataset``, or arrays of
equal length; ``random_split`` cuts a dataset into parts.

>>> import numpy as np
>>> import numgrad as ng
>>> loader = ng.data.DataLoader((np.arange(5.0), np.arange(5)), batch_size=2)
>>> [x.shape for x, y in loader]
[(2,), (2,), (1,)]
"""

from numgrad.data.collate import default_collate as default_collate
from numgrad.data.dataset import Dataset as Dataset
from numgrad.data.dataset import Subset as Subset
from numgrad.data.dataset import TensorDataset as TensorDataset
from numgrad.data.dataset import random_split as random_split
from numgrad.data.loader import DataLoader as DataLoader

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]


def __dir__() -> list[str]:
    return __all__
