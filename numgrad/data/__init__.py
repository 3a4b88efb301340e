"""Datasets in batches."""

from numgrad.data.collate import default_collate as default_collate
from numgrad.data.dataset import Dataset as Dataset
from numgrad.data.dataset import Subset as Subset
from numgrad.data.dataset import TensorDataset as TensorDataset
from numgrad.data.dataset import random_split as random_split
from numgrad.data.loader import DataLoader as DataLoader

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]


def __dir__() -> list[str]:
    return __all__
