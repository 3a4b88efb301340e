"""The memory that a Tensor shows, with all that shares it: ``x.untyped_storage()``."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.torch import dtypes


class Storage:
    """Elements in memory, in the order in which they lie there; of an untyped one, bytes."""

    device = dtypes.device("cpu")

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.nbytes = lambda: array.nbytes
        self.size = self.__len__
        self.dtype = dtypes.OF[array.dtype]

    def __len__(self) -> int:
        return self._array.size

    def __getitem__(self, index: Any) -> Any:
        return self._array[index].tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._array.tolist()

    def untyped(self) -> Storage:
        """The same memory as bytes."""
        return Storage(self._array.view(np.uint8))

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.__array_interface__["data"][0]


def storage(x: Any) -> Storage:
    """The elements of the memory that a Tensor shows."""
    return Storage(_memory(x).view(x._tensor.dtype))


def untyped_storage(x: Any) -> Storage:
    """The bytes of the memory that a Tensor shows."""
    return Storage(_memory(x))


def _memory(x: Any) -> np.ndarray:
    root = x._tensor._array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root.ravel(order="K").view(np.uint8)
