"""Several arrays as one real vector, as solvers for vectors see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad


class Packing:
    """Where the elements of each array or Tensor are in a vector; complex ones are pairs.

    The vector is of ``dtype``, float64 unless given.
    """

    def __init__(self, tensors: Sequence[Any], dtype: np.dtype | None = None) -> None:
        self.dtype = np.dtype(np.float64) if dtype is None else dtype
        self.tensors = list(tensors)
        self.shapes = [t.shape for t in tensors]
        self.dtypes = [t.dtype for t in tensors]
        self.real_dtypes = [np.finfo(dtype).dtype for dtype in self.dtypes]
        sizes = [t.size * (2 if t.dtype.kind == "c" else 1) for t in tensors]
        ends = np.cumsum([0, *sizes]).tolist()
        self.slices = [slice(*pair) for pair in pairwise(ends)]
        self.size: int = ends[-1]
        self.is_complex = any(dtype.kind == "c" for dtype in self.dtypes)

    def pack(self, arrays: Iterable[Any]) -> np.ndarray:
        """One array for each Tensor, shaped like it, as a new vector; None counts as zeros."""
        vector = np.zeros(self.size, self.dtype)
        for k, array in enumerate(arrays):
            if array is not None:
                flat = np.ascontiguousarray(array, self.dtypes[k]).reshape(-1)
                vector[self.slices[k]] = flat.view(self.real_dtypes[k])
        return vector

    def name(self, k: int, names: Sequence[str]) -> str:
        """Element ``k`` of the vector as a reader would write it, given names of the arrays."""
        part = next(p for p, place in enumerate(self.slices) if place.start <= k < place.stop)
        offset = (k - self.slices[part].start) // (2 if self.dtypes[part].kind == "c" else 1)
        index = np.unravel_index(offset, self.shapes[part])
        return names[part] + (f"[{', '.join(map(str, index))}]" if index else "")

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
