"""Where a sparse matrix has elements, and what SciPy computes with such matrices.

Note [Factors of a pattern]
---------------------------
The solution of a system and the adjoint one that its gradient needs have the same factors, in eager
code and in a compiled function alike. So a pattern keeps the factors that it computed last, with
the elements that they are of, and looks there first.
"""

from __future__ import annotations

import copy
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from numgrad.errors import NumgradLinAlgError, NumgradTypeError
from numgrad.operations.sparse.kinds import is_sparse_kind

_KEPT = 2
"""Factors that are kept: those of a system, and of the next one."""


class SparsePattern:
    """The places of the elements of a sparse matrix; ``ng.sparse.pattern`` makes it.

    Elements of a matrix with that pattern are given as a vector ``data``, in the order of ``rows``
    and ``columns``. Those at the same place are added up.

    Attributes
    ----------
    shape
        Rows and columns of the matrix.
    rows, columns
        Where each element is.
    """

    def __init__(self, matrix: Any) -> None:
        if not is_sparse_kind(type(matrix)) or matrix.ndim != 2:
            raise NumgradTypeError(
                f"sparse: the pattern is a {type(matrix).__name__} of shape "
                f"{getattr(matrix, 'shape', None)}; give a matrix of scipy.sparse or what "
                "ng.sparse.pattern made of one"
            )
        self.shape: tuple[int, int] = tuple(map(int, matrix.shape))  # pyright: ignore
        self._order: np.ndarray | None = None
        """The places in ``data`` of elements row by row, if these are others."""
        self._factors: tuple[tuple[np.ndarray, Any], ...] = ()
        sparse = import_module("scipy.sparse")
        if matrix.format == "csr":
            parts = np.empty(0, bool), matrix.indices, matrix.indptr
        else:
            coo = matrix.tocoo()
            self._order = np.lexsort((coo.col, coo.row))
            starts = np.concatenate([[0], np.cumsum(np.bincount(coo.row, minlength=self.shape[0]))])
            parts = np.empty(0, bool), coo.col[self._order], starts.astype(coo.col.dtype)
        self._empty: Any = sparse.csr_array(self.shape, dtype=bool)
        self._empty.data, self._empty.indices, self._empty.indptr = parts

    @property
    def is_ordered(self) -> bool:
        """Whether elements are given row by row."""
        return self._order is None

    @property
    def nnz(self) -> int:
        """How many elements there are."""
        return len(self._empty.indices)

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each element."""
        return self._as_given(np.repeat(np.arange(self.shape[0]), np.diff(self._empty.indptr)))

    @cached_property
    def columns(self) -> np.ndarray:
        """The column of each element."""
        return self._as_given(self._empty.indices)

    def __repr__(self) -> str:
        return f"<SparsePattern of shape {self.shape} with {self.nnz} elements>"

    def __reduce__(self) -> tuple:
        given = (np.ones(self.nnz, bool), (self.rows, self.columns))
        return _of_places, (*given, self.shape)

    def _as_given(self, values: np.ndarray) -> np.ndarray:
        if self._order is None:
            return values
        found = np.empty_like(values)
        found[self._order] = values
        return found

    def places(self, adjoint: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the elements of the matrix or its adjoint."""
        return (self.columns, self.rows) if adjoint else (self.rows, self.columns)

    def matrix(self, data: np.ndarray) -> Any:
        """The ``csr_array`` with these elements."""
        found = copy.copy(self._empty)  # made anew, it would be checked anew
        found.data = data if self._order is None else data[self._order]
        return found

    # ---------------------------------------------------------------------------------- products

    def product(self, data: np.ndarray, x: np.ndarray, adjoint: bool) -> np.ndarray:
        """The matrix, or its adjoint, times a vector or matrix."""
        dtype = np.result_type(data, x)
        matrix = self.matrix(data.astype(dtype, copy=False))
        if adjoint:
            matrix = matrix.conj(copy=False).T
        return matrix @ x.astype(dtype, copy=False)

    # ----------------------------------------------------------------------------------- systems

    def solve(self, data: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
        """The ``x`` of ``matrix @ x = b``, or of that with the adjoint."""
        of_matrix, dtype = np.result_type(data, np.float32), np.result_type(data, b, np.float32)
        if not b.size:
            return np.zeros(b.shape, dtype)
        factors = self._factor(data.astype(of_matrix, copy=False))
        if of_matrix.kind != "c" and b.dtype.kind == "c":
            parts = [np.ascontiguousarray(part(b), of_matrix) for part in (np.real, np.imag)]
            x, y = (_substituted(factors, part, adjoint) for part in parts)
            return (x + 1j * y).astype(dtype, copy=False)
        return _substituted(factors, b.astype(of_matrix), adjoint).astype(dtype, copy=False)

    def _factor(self, data: np.ndarray) -> Any:
        """Factors of the transposed matrix: Note [Factors of a pattern]."""
        for known, factors in self._factors:
            if known.dtype == data.dtype and np.array_equal(known, data):
                return factors
        sparse, linalg = (import_module(f"scipy.sparse{part}") for part in ("", ".linalg"))
        matrix = self.matrix(data)
        transposed = sparse.csc_array(
            (matrix.data, matrix.indices.copy(), matrix.indptr.copy()), shape=self.shape
        )
        if self._order is None:
            transposed.data = data.copy()  # duplicates are added up in place
        try:
            factors = linalg.splu(transposed)
        except RuntimeError as error:
            if not np.isfinite(data).all():
                raise NumgradLinAlgError(
                    f"spsolve: the matrix of shape {self.shape} has elements that are not finite; "
                    "find out which step gave them"
                ) from error
            raise NumgradLinAlgError(
                f"spsolve: the matrix of shape {self.shape} is singular: {error}; check that no "
                "row or column is zero or depends on others, or add something to its diagonal"
            ) from error
        self._factors = ((data.copy(), factors), *self._factors)[:_KEPT]
        return factors


def _of_places(ones: np.ndarray, places: tuple[np.ndarray, np.ndarray], shape: Any) -> Any:
    return SparsePattern(import_module("scipy.sparse").coo_array((ones, places), shape=shape))


def _substituted(factors: Any, b: np.ndarray, adjoint: bool) -> np.ndarray:
    """Solutions by factors of the transposed matrix."""
    if not adjoint:
        return factors.solve(b, "T")
    return np.conj(factors.solve(np.conj(b))) if b.dtype.kind == "c" else factors.solve(b)


def as_pattern(given: Any) -> SparsePattern:
    """A pattern, or that of a matrix of SciPy's."""
    return given if isinstance(given, SparsePattern) else SparsePattern(given)
