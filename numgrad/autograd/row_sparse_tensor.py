"""``RowSparseTensor``: a gradient of which only some rows are stored.

How the engine treats them says Note [Row-sparse gradients] in ``numgrad.core.row_gradients``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.op import OPS
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import (
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)


class RowSparseTensor:
    """A tensor that is zero but in some rows, which is how it is stored.

    The gradient of a table of which few rows were looked up, ``embedding(..., sparse=True)``. Row
    ``indices[k]`` has ``values[k]`` added to it; rows may repeat until ``coalesce()`` sums them.
    It has no graph: differentiate twice with a dense gradient.

    Parameters
    ----------
    indices
        Integers on one axis, from 0 up to the number of rows.
    values
        Array of shape ``(len(indices), *shape[1:])`` of a floating or complex dtype.
    shape
        Shape of the whole tensor, at least one axis.

    Raises
    ------
    NumgradIndexError
        If an index is out of range.
    NumgradTypeError
        If indices are no integers, or values neither floating nor complex.
    NumgradValueError
        If shapes do not fit together.

    Examples
    --------
    >>> import numgrad as ng
    >>> rows = ng.RowSparseTensor([2, 0, 2], [[1.0], [2.0], [3.0]], (3, 1))
    >>> rows.coalesce()
    row_sparse(indices=[0, 2],
               values=[[2.],
                       [4.]], shape=(3, 1))
    >>> rows.to_dense()
    tensor([[2.],
            [0.],
            [4.]])
    """

    __slots__ = ("__weakref__", "_array")
    __array_ufunc__ = None  # an ndarray leaves operators to this class

    is_sparse = True
    requires_grad = False
    is_leaf = True
    grad_fn = None

    def __init__(self, indices: Any, values: Any, shape: Sequence[int]) -> None:
        self._array = _checked(indices, values, tuple(shape))

    @classmethod
    def _of(cls, array: RowSparseArray) -> Self:
        made = cls.__new__(cls)
        made._array = array
        return made

    @property
    def indices(self) -> Tensor:
        """Row of each of the values, int64; shares memory."""
        return Tensor(self._array.indices)

    @property
    def values(self) -> Tensor:
        """The rows that are stored; shares memory."""
        return Tensor(self._array.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the whole tensor."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the values."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements of the whole tensor."""
        return self._array.size

    @property
    def nnz(self) -> int:
        """Number of rows that are stored."""
        return self._array.indices.size

    def is_coalesced(self) -> bool:
        """Whether every row is known to be stored once, in rising order."""
        return self._array.coalesced

    def coalesce(self) -> Self:
        """The same tensor with every row once, in rising order; itself if it is so already.

        Rows that repeat are summed in the order in which they are stored, so the bits of the
        result do not depend on the number of threads.
        """
        return self if self._array.coalesced else self._of(self._array.coalesce())

    def to_dense(self) -> Tensor:
        """The whole tensor."""
        return Tensor(self._array.dense())

    def detach(self) -> Self:
        """A tensor that shares the values."""
        return self._of(self._array.with_values(self._array.values))

    def detach_(self) -> Self:
        """Return itself, which has no graph."""
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Raise unless ``requires_grad`` is False, as it always is.

        Raises
        ------
        NumgradRuntimeError
            If it is to be True.
        """
        if requires_grad:
            raise NumgradRuntimeError(
                "requires_grad_: operations on row-sparse tensors are not recorded; use to_dense()"
            )
        return self

    def clone(self) -> Self:
        """A copy."""
        return self._of(self._array.copy())

    def zero_(self) -> Self:
        """Drop all rows."""
        a = self._array
        self._array = RowSparseArray(a.indices[:0], a.values[:0], a.shape, True)
        return self

    def mul_(self, factor: float | complex | Tensor) -> Self:
        """Multiply by a number."""
        self._array = (self * factor)._array
        return self

    def numpy(self) -> np.ndarray:
        """Raise: there is no array to share; ``to_dense().numpy()`` makes one.

        Raises
        ------
        NumgradTypeError
            Always.
        """
        raise NumgradTypeError(
            f"numpy: a row-sparse tensor of shape {self.shape} stores {self.nnz} rows only; use "
            "to_dense() first"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy()

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RowSparseTensor):
            if other.shape != self.shape:
                raise NumgradValueError(
                    f"add: row-sparse tensors of shapes {self.shape} and {other.shape}; they must "
                    "be equal"
                )
            if other.dtype != self.dtype:
                raise NumgradTypeError(
                    f"add: row-sparse tensors of dtypes {self.dtype} and {other.dtype}; they must "
                    "be equal"
                )
            return self._of(self._array.followed_by(other._array))
        if isinstance(other, Tensor | np.ndarray):
            return OPS["add"](self.to_dense(), other)
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        known = isinstance(other, Tensor | np.ndarray | RowSparseTensor)
        return self + -other if known else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, factor: Any) -> Any:
        scaled = self._scaled(factor)
        return scaled if scaled is NotImplemented else self._of(self._array.with_values(scaled))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        if _number(divisor) is None:
            return NotImplemented
        return self._of(self._array.with_values(self._array.values / _number(divisor)))

    def __neg__(self) -> Self:
        return self._of(self._array.with_values(-self._array.values))

    def _scaled(self, factor: Any) -> Any:
        number = _number(factor)
        return NotImplemented if number is None else self._array.values * number

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        def text(array: np.ndarray, label: str) -> str:
            lead = f"row_sparse({label}="
            return f"{label}={np.array2string(array, separator=', ', prefix=lead)}"

        a = self._array
        parts = [f"shape={a.shape}"]
        if a.dtype != np.float64:
            parts.append(f"dtype={a.dtype}")
        gap = " " * len("row_sparse(")
        shown = f"{text(a.indices, 'indices')},\n{gap}{text(a.values, 'values')}"
        return f"row_sparse({', '.join([shown, *parts])})"

    def __reduce__(self) -> tuple:
        a = self._array
        return _rebuild, (a.indices, a.values, a.shape, a.coalesced)


def _rebuild(
    indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], coalesced: bool
) -> RowSparseTensor:
    return RowSparseTensor._of(RowSparseArray(indices, values, shape, coalesced))


def _number(value: Any) -> Any:
    """A number, or the one element of a Tensor or array; None for anything else."""
    if isinstance(value, int | float | complex):
        return value
    array = value._array if isinstance(value, Tensor) else value
    return array.item() if isinstance(array, np.ndarray | np.generic) and array.ndim == 0 else None


def _checked(indices: Any, values: Any, shape: tuple[int, ...]) -> RowSparseArray:
    indices, values = (np.array(getattr(x, "_array", x), order="C") for x in (indices, values))
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise NumgradTypeError(
            f"RowSparseTensor: indices must be integers, got dtype {indices.dtype}"
        )
    if values.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"RowSparseTensor: values must be floating or complex, got dtype {values.dtype}"
        )
    if indices.ndim != 1 or not shape or values.shape != (indices.size, *shape[1:]):
        raise NumgradValueError(
            f"RowSparseTensor: indices of shape {indices.shape} and values of shape {values.shape} "
            f"do not make a tensor of shape {shape}; needed are (n,) and (n, *shape[1:])"
        )
    if indices.size and not 0 <= indices.min() <= indices.max() < shape[0]:
        raise NumgradIndexError(
            f"RowSparseTensor: indices from {indices.min()} to {indices.max()} in a tensor of "
            f"{shape[0]} rows; they run from 0 to {shape[0] - 1}"
        )
    return RowSparseArray(indices.astype(np.int64, copy=False), values, shape)


def as_tensor(g: Any) -> Any:
    """A gradient, an array or row-sparse, as users see it; Tensors and None stay what they are."""
    if type(g) is np.ndarray:  # most often by far
        return Tensor(g)
    if type(g) is RowSparseArray:
        return RowSparseTensor._of(g)
    return g if g is None or isinstance(g, Tensor | RowSparseTensor) else Tensor(g)
