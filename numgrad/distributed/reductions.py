"""How values of ranks become one, with the same bits on all ranks.

Note [Equal bits]
-----------------
MPI combines the terms of ranks in the order that suits it, and where one rank computes ``a op b``
another may compute ``b op a``. Loops of ranks stay together only if that makes no difference:

- A sum or product of real numbers differs in which NaN it is. Each NaN of a result becomes
  ``np.nan``.
- The larger of two floats is one of them where they do not compare: for NaN, and zeros of both
  signs. So MPI compares integers in the order of the floats: -0 is below 0, and NaN beyond both
  infinities, on the side of what is looked for.
- A product of complex numbers may round otherwise than with the factors exchanged, by fused
  multiply-add. MPI applies an operation of ours to it, which is declared not to commute: then it
  keeps to the order of ranks.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError


class ReduceOp(Enum):
    """How values of ranks become one; AVG is the mean. Booleans are added by ``or``.

    A NaN of any rank is NaN in the result, also of MIN and MAX, for which -0 is below 0.
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    def __str__(self) -> str:
        return self.value


_MPI_NAMES = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_OF_BOOLEANS = {
    ReduceOp.SUM: "BOR",
    ReduceOp.MAX: "BOR",
    ReduceOp.PRODUCT: "BAND",
    ReduceOp.MIN: "BAND",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_EXTREMES = (ReduceOp.MIN, ReduceOp.MAX)


class Reduction:
    """A reduction of numbers of one dtype, in terms that MPI combines to equal bits on all ranks.

    ``terms`` of each rank are reduced by ``operation`` into an array like ``result``, of which
    ``put`` makes numbers: Note [Equal bits].

    Parameters
    ----------
    name
        The caller, for errors.
    op
        The member of ``ReduceOp``.
    dtype
        Of the numbers; booleans are sent as bytes.

    Raises
    ------
    NumgradTypeError
        If the dtype has no such reduction.
    """

    def __init__(self, name: str, op: Any, dtype: np.dtype) -> None:
        if not isinstance(op, ReduceOp):
            raise NumgradTypeError(f"{name}: op is a member of ng.distributed.ReduceOp, got {op!r}")
        kind = dtype.kind
        wrong = (
            (kind in "fc" and op in _BITWISE)
            or (kind == "c" and op in _EXTREMES)
            or (kind in "biu" and op is ReduceOp.AVG)
        )
        if wrong:
            raise NumgradTypeError(
                f"{name}: numbers of dtype {dtype} have no reduction {op}; use another ReduceOp, "
                "or another dtype"
            )
        self._op, self._kind = op, kind
        self._order = np.dtype(f"i{dtype.itemsize}") if kind == "f" and op in _EXTREMES else None

    def operation(self, mpi: Any) -> Any:
        """The operation of MPI's."""
        if self._kind == "c" and self._op is ReduceOp.PRODUCT:
            return _product_in_order(mpi)
        return getattr(mpi, (_OF_BOOLEANS if self._kind == "b" else _MPI_NAMES)[self._op])

    def terms(self, flat: np.ndarray) -> np.ndarray:
        """Array that MPI combines: the numbers, or a copy as integers of the same order."""
        if self._order is None:
            return flat
        bits = flat.view(self._order).copy()
        none = np.nan if self._op is ReduceOp.MAX else -np.nan
        bits[np.isnan(flat)] = np.array(none, flat.dtype).view(self._order)
        return _reorder(bits)

    def result(self, flat: np.ndarray) -> np.ndarray:
        """An array for the result of terms: that of the numbers, where it can be."""
        return flat if self._order is None else np.empty(flat.shape, self._order)

    def put(self, result: np.ndarray, flat: np.ndarray, size: int) -> None:
        """Put the numbers that a result of so many ranks means into an array."""
        if self._order is not None:
            flat[...] = _reorder(result).view(flat.dtype)
        if self._op is ReduceOp.AVG and size != 1:
            parts = real_parts(flat)
            np.divide(parts, size, out=parts)
        unify_nans(flat)


def _reorder(bits: np.ndarray) -> np.ndarray:
    """Bits of floats as integers of the same order, and back, in place."""
    bits ^= (bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max
    return bits


def real_parts(flat: np.ndarray) -> np.ndarray:
    """The same memory as real numbers."""
    return flat.view(np.finfo(flat.dtype).dtype) if flat.dtype.kind == "c" else flat


def unify_nans(flat: np.ndarray) -> None:
    """Make each NaN of a flat array the same."""
    if flat.dtype.kind not in "fc" or not flat.size:
        return
    parts = real_parts(flat)
    if np.isnan(parts.min()):  # as most arrays are not: a pass is faster than two
        parts[np.isnan(parts)] = np.nan


@cache
def _product_in_order(mpi: Any) -> Any:
    """MPI's operation for products of complex numbers, the factors in the order of ranks."""

    def multiply(before: Any, product: Any, datatype: Any) -> None:
        dtype = np.complex64 if datatype.Get_size() == 8 else np.complex128
        after = np.frombuffer(product, dtype)
        with np.errstate(all="ignore"):
            np.multiply(np.frombuffer(before, dtype), after, out=after)

    return mpi.Op.Create(multiply, commute=False)
