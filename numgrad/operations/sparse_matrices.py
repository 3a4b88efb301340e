"""Products with sparse matrices and systems of them, in terms of their non-zero elements.

A sparse matrix ``M`` is a vector of its elements and a pattern. The gradient of ``M @ x`` by the
elements is ``g @ x^H`` at their places, which is the second operation here.

Note [Factors of a pattern]
---------------------------
The solution of a system and the adjoint one that its gradient needs have the same factors, in eager
code and in a compiled function alike. So a pattern keeps the factors that it computed last, with
the elements that they are of, and looks there first.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import OPS, Meta, Op, bind, is_sparse_kind, primitive, state
from numgrad.errors import NumgradLinAlgError, NumgradTypeError, NumgradValueError, warn
from numgrad.operations.shape import as_operand

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
            pattern = np.empty(0, bool), matrix.indices, matrix.indptr
        else:
            coo = matrix.tocoo()
            self._order = np.lexsort((coo.col, coo.row))
            starts = np.concatenate([[0], np.cumsum(np.bincount(coo.row, minlength=self.shape[0]))])
            pattern = np.empty(0, bool), coo.col[self._order], starts.astype(coo.col.dtype)
        self._empty: Any = sparse.csr_array(self.shape, dtype=bool)
        self._empty.data, self._empty.indices, self._empty.indptr = pattern

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
        arguments = (np.ones(self.nnz, bool), (self.rows, self.columns))
        return _of_places, (*arguments, self.shape)

    def _as_given(self, values: np.ndarray) -> np.ndarray:
        if self._order is None:
            return values
        result = np.empty_like(values)
        result[self._order] = values
        return result

    def places(self, adjoint: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the elements of the matrix or its adjoint."""
        return (self.columns, self.rows) if adjoint else (self.rows, self.columns)

    def matrix(self, data: np.ndarray) -> Any:
        """The ``csr_array`` with these elements."""
        result = copy.copy(self._empty)  # made anew, it would be checked anew
        result.data = data if self._order is None else data[self._order]
        return result

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
            components = [
                np.ascontiguousarray(component(b), of_matrix) for component in (np.real, np.imag)
            ]
            x, y = (_substituted(factors, component, adjoint) for component in components)
            return (x + 1j * y).astype(dtype, copy=False)
        return _substituted(factors, b.astype(of_matrix), adjoint).astype(dtype, copy=False)

    def _factor(self, data: np.ndarray) -> Any:
        """Factors of the transposed matrix: Note [Factors of a pattern]."""
        for known, factors in self._factors:
            if known.dtype == data.dtype and np.array_equal(known, data):
                return factors
        sparse, linalg = (import_module(f"scipy.sparse{module}") for module in ("", ".linalg"))
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


def _of_places(ones: np.ndarray, indices: tuple[np.ndarray, np.ndarray], shape: Any) -> Any:
    return SparsePattern(import_module("scipy.sparse").coo_array((ones, indices), shape=shape))


def _substituted(factors: Any, b: np.ndarray, adjoint: bool) -> np.ndarray:
    """Solutions by factors of the transposed matrix."""
    if not adjoint:
        return factors.solve(b, "T")
    return np.conj(factors.solve(np.conj(b))) if b.dtype.kind == "c" else factors.solve(b)


def as_pattern(matrix: Any) -> SparsePattern:
    """A pattern, or that of a matrix of SciPy's."""
    return matrix if isinstance(matrix, SparsePattern) else SparsePattern(matrix)


_AT_ONCE = 1 << 20
"""Elements of a dense matrix that are gathered at once."""


@primitive(internal=True, method=False, bilinear=True, smooth=True)
def sparse_matmul(data, x, *, pattern, adjoint=False):
    """Multiply a sparse matrix, or its adjoint, with a vector or matrix."""
    return pattern.product(data, x, adjoint)


@sparse_matmul.shape
def _matmul_shape(data, x, *, pattern, adjoint):
    rows = pattern.shape[1 if adjoint else 0]
    return Meta((rows, *x.shape[1:]), np.result_type(data.dtype, x.dtype))


@primitive(internal=True, method=False, bilinear=True, smooth=True)
def sparse_outer(a, b, *, pattern):
    """The elements of ``a @ b^H`` at the places of a pattern."""
    dtype = np.result_type(a, b)
    rows, columns = pattern.rows, pattern.columns
    if a.ndim == 1:
        return a[rows] * np.conj(b[columns])
    out = np.empty(len(rows), dtype)
    count = max(1, _AT_ONCE // max(1, a.shape[1]))
    for start in range(0, len(rows), count):
        chunk = slice(start, start + count)
        left, right = a[rows[chunk]], np.conj(b[columns[chunk]])
        out[chunk] = np.einsum("ij,ij->i", left, right)
    return out


@sparse_outer.shape
def _outer_shape(a, b, *, pattern):
    return Meta((pattern.nnz,), np.result_type(a.dtype, b.dtype))


def _matmul_vjp_data(g, x, pattern, adjoint):
    return sparse_outer(x, g, pattern=pattern) if adjoint else sparse_outer(g, x, pattern=pattern)


sparse_matmul.vjp(
    data=_matmul_vjp_data,
    x=lambda g, data, pattern, adjoint: sparse_matmul(
        data, g, pattern=pattern, adjoint=not adjoint
    ),
)
sparse_outer.vjp(
    a=lambda g, b, pattern: sparse_matmul(g, b, pattern=pattern),
    b=lambda g, a, pattern: sparse_matmul(g, a, pattern=pattern, adjoint=True),
)


def columns_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Right sides of one matrix, of many examples, as columns of one right side."""
    data, x = operands
    if data.batched:
        return NotImplemented
    rest = x.shape[1:]
    moved = apply("moveaxis", x.value, source=0, destination=1)
    flat = apply("reshape", moved, shape=(x.shape[0], size * (rest[0] if rest else 1)))
    out = bind(op, (data.value, flat), params)
    split = apply("reshape", out, shape=(out.shape[0], size, *rest))
    return apply("moveaxis", split, source=0, destination=1)


sparse_matmul.batch(columns_of_batch)


@sparse_outer.batch
def _outer_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    pattern = params["pattern"]
    factors = [
        apply("take", o.value, indices, axis=1 if o.batched else 0)
        for o, indices in zip(operands, pattern.places(False), strict=True)
    ]
    result = apply("multiply", factors[0], apply("conjugate", factors[1]))
    return apply("sum", result, axis=-1) if operands[0].ndim > 1 else result


def example() -> SparsePattern:
    """A pattern that tests use, with an empty row and an element given in two parts."""
    from scipy.sparse import coo_array

    indices = np.array([2, 0, 0, 2, 3]), np.array([0, 2, 1, 0, 2])
    return SparsePattern(coo_array((np.ones(5), indices), shape=(4, 3)))


@primitive(internal=True, method=False, smooth=True)
def sparse_solve(data, b, *, pattern, adjoint=False):
    """Solve a system with a sparse matrix, or with its adjoint."""
    return pattern.solve(data, b, adjoint)


@sparse_solve.shape
def _solve_shape(data, b, *, pattern, adjoint):
    return Meta(b.shape, np.result_type(data.dtype, b.dtype, np.float32))


def _of_elements(z: Any, y: Any, pattern: SparsePattern, adjoint: bool) -> Any:
    """The gradient by the elements, from the solutions of the other system and of this one."""
    left, right = (y, z) if adjoint else (z, y)
    return -(sparse_outer(left, right, pattern=pattern))


def _solve_vjp_b(g, data, pattern, adjoint):
    return sparse_solve(data, g, pattern=pattern, adjoint=not adjoint)


def _solve_vjp_data(g, data, y, pattern, adjoint):
    return _of_elements(_solve_vjp_b(g, data, pattern, adjoint), y, pattern, adjoint)


sparse_solve.vjp(data=_solve_vjp_data, b=_solve_vjp_b)
sparse_solve.batch(columns_of_batch)


@sparse_solve.jvp
def _solve_jvp(t_data, t_b, data, y, pattern, adjoint):
    moved = t_b - sparse_matmul(t_data, y, pattern=pattern, adjoint=adjoint)
    return sparse_solve(data, moved, pattern=pattern, adjoint=adjoint)


@sparse_solve.vjp_kernel
def _solve_backward(call, mask, g, data: Any = None, y: Any = None):
    pattern, adjoint = call.params["pattern"], call.params["adjoint"]
    z = pattern.solve(data, g, not adjoint)
    of_data = _of_elements(z, y, pattern, adjoint) if mask & 1 else None
    return [of_data, z if mask & 2 else None]


def pattern(matrix: Any) -> SparsePattern:
    """Find the places of the elements of a ``scipy.sparse`` matrix, to use them many times.

    Parameters
    ----------
    matrix
        A sparse array or matrix with two axes, in any format. Stored zeros count, but in the
        formats that do not know them (``dia``).

    Returns
    -------
    SparsePattern
        With ``shape``, ``rows`` and ``columns``. Elements have the order of ``matrix.tocoo()``;
        those of ``csr`` and ``csc`` are ``matrix.data``.

    Raises
    ------
    NumgradTypeError
        If it is not such a matrix.

    Examples
    --------
    >>> import numgrad as ng
    >>> from scipy.sparse import csr_array
    >>> p = ng.sparse.pattern(csr_array([[1.0, 2.0], [0.0, 3.0]]))
    >>> p.rows, p.columns
    (array([0, 0, 1]), array([0, 1, 1], dtype=int32))
    """
    return SparsePattern(matrix.copy() if is_sparse_kind(type(matrix)) else matrix)


def matmul(data: Any, pattern: Any, x: Any) -> Any:
    """Multiply a sparse matrix, given by its elements, with a vector or matrix.

    Parameters
    ----------
    data
        The elements, a vector in the order of the pattern.
    pattern
        What ``ng.sparse.pattern`` made, or a ``scipy.sparse`` matrix, of which the places count.
    x
        Of shape (n,), (n, k) or (..., n, k) for a matrix of n columns.

    Returns
    -------
    Tensor
        The product, of the dtype to which ``data`` and ``x`` promote.

    Raises
    ------
    NumgradTypeError
        If ``pattern`` is neither of these.
    NumgradValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> from scipy.sparse import csr_array
    >>> p = ng.sparse.pattern(csr_array([[1.0, 2.0], [0.0, 3.0]]))
    >>> ng.sparse.matmul(ng.tensor([1.0, 2.0, 3.0]), p, [1.0, 10.0])
    tensor([21., 30.])
    """
    sparsity = as_pattern(pattern)
    return _product("sparse.matmul", _elements("sparse.matmul", data, sparsity), sparsity, x, False)


def spsolve(data: Any, pattern: Any, b: Any) -> Any:
    """The ``x`` of ``M @ x = b`` for a sparse matrix ``M`` that is given by its elements.

    The matrix is factored once: solving for gradients, and again with the same elements, uses the
    same factors. Gradients are ``z = M^-H @ g`` for ``b``, and ``-z @ x^H`` at the places of the
    pattern for ``data``.

    Parameters
    ----------
    data
        The elements, a vector in the order of the pattern.
    pattern
        What ``ng.sparse.pattern`` made, or a square ``scipy.sparse`` matrix, of which the places
        count. Made once, it keeps factors between calls.
    b
        The right side, of shape (n,), or several of shape (n, k).

    Returns
    -------
    Tensor
        Of the shape of ``b``.

    Raises
    ------
    NumgradLinAlgError
        If the matrix is singular, not finite or not square.
    NumgradTypeError
        If ``pattern`` is neither of these.
    NumgradValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from scipy.sparse import csr_array
    >>> p = ng.sparse.pattern(csr_array([[2.0, 1.0], [0.0, 4.0]]))
    >>> def first(data):
    ...     return ng.sparse.spsolve(data, p, np.array([4.0, 8.0]))[0]
    >>> ng.grad(first)(np.array([2.0, 1.0, 4.0]))
    array([-0.5 , -1.  ,  0.25])
    """
    sparsity = as_pattern(pattern)
    if sparsity.shape[0] != sparsity.shape[1]:
        raise NumgradLinAlgError(
            f"spsolve: the matrix has shape {sparsity.shape}; only a system with as many equations "
            "as unknowns has one solution"
        )
    data, b = _elements("spsolve", data, sparsity), as_operand(b)
    if len(b.shape) not in (1, 2) or b.shape[0] != sparsity.shape[0]:
        raise NumgradValueError(
            f"spsolve: b has shape {tuple(b.shape)}, the matrix {sparsity.shape}; b is a vector "
            "with an element for each row, or a matrix with a row for each"
        )
    return sparse_solve(data, b, pattern=sparsity)


def product(a: Any, b: Any) -> Any:
    """``a @ b`` where one of the two is a constant sparse matrix of SciPy's."""
    left = is_sparse_kind(type(a))
    matrix, x = (a, as_operand(b)) if left else (b, as_operand(a))
    if is_sparse_kind(type(x)) or matrix.ndim > 2:
        raise NumgradTypeError(
            f"matmul: a {type(a).__name__} of shape {a.shape} times a {type(b).__name__} of shape "
            f"{b.shape}; one of both is a Tensor or array, the other has one axis or two"
        )
    of_vector = matrix.ndim == 1
    if of_vector:
        matrix = matrix.reshape(1, -1) if left else matrix.reshape(-1, 1)
    pattern = SparsePattern(matrix)
    data = _constant_elements(a if left else b, matrix, pattern)
    if not left and data.dtype.kind == "c":
        data = OPS["conjugate"](data)
    if left:
        out = _product("matmul", data, pattern, x, False)
        return OPS["squeeze"](out, 0 if len(x.shape) < 2 else -2) if of_vector else out
    turned = x if len(x.shape) < 2 else OPS["matrix_transpose"](x)
    out = _product("matmul", data, pattern, turned, True)
    if of_vector:
        return OPS["squeeze"](out, 0 if len(x.shape) < 2 else -2)
    return out if len(x.shape) < 2 else OPS["matrix_transpose"](out)


def _constant_elements(operand: Any, matrix: Any, pattern: SparsePattern) -> Any:
    """The elements of ``matrix``, which has two axes: if possible read where ``given`` has them."""
    around = state.ground.found(getattr(operand, "data", None))
    if around and operand is matrix and matrix.format in ("csr", "csc", "coo"):
        return matrix.data
    if around:
        warn(
            f"matmul: the elements of a {operand.ndim}-d {type(operand).__name__} become part of "
            "the compiled function as they are now; those of csr, csc and coo matrices with two "
            "axes are read at each call, so convert it with tocsr()"
        )
    return state.ground.made(matrix.data if pattern.is_ordered else matrix.tocoo().data)


def _elements(name: str, data: Any, pattern: SparsePattern) -> Any:
    data = as_operand(data)
    if tuple(data.shape) != (pattern.nnz,):
        raise NumgradValueError(
            f"{name}: data has shape {tuple(data.shape)}, the pattern {pattern.nnz} elements; give "
            "a vector with one number for each of them, in the order of pattern.rows"
        )
    return data


def _product(name: str, data: Any, pattern: SparsePattern, x: Any, adjoint: bool) -> Any:
    x = as_operand(x)
    inner, ndim = pattern.shape[0 if adjoint else 1], len(x.shape)
    if not ndim or x.shape[-2 if ndim > 1 else 0] != inner:
        matrix, operand_shape = pattern.shape, tuple(x.shape)
        if adjoint:  # a row times the matrix
            operand_shape = operand_shape[:-2] + operand_shape[:-3:-1]
            shapes = f"{operand_shape} and {matrix}"
        else:
            shapes = f"{matrix} and {operand_shape}"
        raise NumgradValueError(f"{name}: shapes {shapes} do not fit; transpose or reshape one")
    if ndim < 3:
        return sparse_matmul(data, x, pattern=pattern, adjoint=adjoint)
    first = OPS["moveaxis"](x, -2, 0)
    flat = sparse_matmul(data, OPS["reshape"](first, (inner, -1)), pattern=pattern, adjoint=adjoint)
    split = OPS["reshape"](flat, (flat.shape[0], *first.shape[1:]))
    return OPS["moveaxis"](split, 0, -2)
