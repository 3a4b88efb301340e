"""Several Tensors as one real vector, as minimizers for vectors see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.tensors.tensor import Tensor


class Packing:
    """Where the elements of each Tensor are in the vector; complex ones are pairs of reals.

    The vector is of ``dtype``, float64 unless given.
    """

    def __init__(self, tensors: Sequence[Tensor], dtype: np.dtype | None = None) -> None:
        self.dtype = np.dtype(np.float64) if dtype is None else dtype
        self.tensors = list(tensors)
        self.shapes = [t.shape for t in tensors]
        self.dtypes = [t.dtype for t in tensors]
        self.real_dtypes = [np.finfo(dtype).dtype for dtype in self.dtypes]
        sizes = [t.size * (2 if t.dtype.kind == "c" else 1) for t in tensors]
        ends = np.cumsum([0, *sizes]).tolist()
        self.slices = [slice(*pair) for pair in pairwise(ends)]
        self.size: int = ends[-1]

    def pack(self, arrays: Iterable[Any]) -> np.ndarray:
        """One array for each Tensor, shaped like it, as a new vector; None counts as zeros."""
        vector = np.zeros(self.size, self.dtype)
        for k, array in enumerate(arrays):
            if array is not None:
                flat = np.ascontiguousarray(array, self.dtypes[k]).reshape(-1)
                vector[self.slices[k]] = flat.view(self.real_dtypes[k])
        return vector

    def unpack(self, vector: np.ndarray) -> list[np.ndarray]:
        """New arrays, of the shapes and dtypes of the Tensors."""
        arrays = []
        for k, place in enumerate(self.slices):
            with np.errstate(over="ignore"):  # float32 has an infinity for what is too large
                flat = vector[place].astype(self.real_dtypes[k])
            arrays.append(flat.view(self.dtypes[k]).reshape(self.shapes[k]))
        return arrays

    def values(self) -> np.ndarray:
        """The present values of the Tensors as a new vector."""
        return self.pack(t.detach().numpy() for t in self.tensors)

    def store(self, arrays: Iterable[np.ndarray]) -> None:
        """Write values to the Tensors, unrecorded."""
        with no_grad():
            for tensor, array in zip(self.tensors, arrays, strict=True):
                tensor.copy_(array)
