"""Arrays of which only some rows are not zero, as gradients of looked-up rows are.

Note [Row-sparse gradients]
---------------------------
A backward kernel of a primitive declared with ``row_sparse=True`` may return a ``RowSparseArray``
in place of an ndarray. Leaves take it as it is: rows that meet rows at a leaf are put behind each
other, rows that meet an array are added to it. Where the gradient goes on into another node the
walk makes it dense first, so no other backward ever sees one. Hooks, ``.grad`` and
``autograd.grad`` show it as a ``RowSparseTensor``. A backward that is recorded (``create_graph``),
batched or read by forward mode goes by the formulas, which are dense.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.kernels.row_sparse import scatter_rows, sum_rows


class RowSparseArray:
    """An array of ``shape`` that is zero but in some rows: ``values[k]`` is in row ``indices[k]``.

    Rows may repeat; then they are meant to be added. ``indices`` are int64, not negative and below
    ``shape[0]``; both arrays are contiguous. Arrays and others of its kind are added to it with
    ``np.add`` as the engine does: the result is an array if an operand is one, which ``out`` may
    be.
    """

    __slots__ = ("coalesced", "indices", "shape", "values")
    base = None

    def __init__(
        self,
        indices: np.ndarray,
        values: np.ndarray,
        shape: tuple[int, ...],
        coalesced: bool = False,
    ) -> None:
        self.indices, self.values, self.shape = indices, values, shape
        self.coalesced = coalesced

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def copy(self) -> RowSparseArray:
        return self.with_values(self.values.copy(), self.indices.copy())

    def astype(self, dtype: Any) -> RowSparseArray:
        return self.with_values(self.values.astype(dtype))

    def with_values(self, values: np.ndarray, indices: Any = None) -> RowSparseArray:
        """Other values in the same rows."""
        indices = self.indices if indices is None else indices
        return RowSparseArray(indices, values, self.shape, self.coalesced)

    def coalesce(self) -> RowSparseArray:
        """The same with every row once, in rising order: Note [Sums of equal rows]."""
        if self.coalesced:
            return self
        return RowSparseArray(*sum_rows(self.values, self.indices), self.shape, True)

    def dense(self) -> np.ndarray:
        """The whole array."""
        return self.add_to(np.zeros(self.shape, self.dtype))

    def add_to(self, array: np.ndarray) -> np.ndarray:
        """Add the rows to an array of the same shape in place, and return it."""
        if array.flags.c_contiguous and array.dtype == self.dtype:
            scatter_rows(self.values, self.indices, array)
        else:
            once = self.coalesce()
            array[once.indices] += once.values
        return array

    def __array_ufunc__(self, ufunc: Any, method: str, a: Any, b: Any = None, out: Any = ()) -> Any:
        if ufunc is not np.add or method != "__call__":
            return NotImplemented
        if type(a) is type(b):
            return a.followed_by(b)
        rows, array = (a, b) if a is self else (b, a)
        return rows.add_to(array if out and out[0] is array else array.copy())

    def followed_by(self, other: RowSparseArray) -> RowSparseArray:
        """The sum: the rows of both, one behind the other."""
        return RowSparseArray(
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.values, other.values]),
            self.shape,
        )
