"""Functions of sparse matrices as a caller writes them: checked, then calls of operations."""

from __future__ import annotations

from typing import Any

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradLinAlgError, NumgradTypeError, NumgradValueError, warn
from numgrad.operations.shape import as_operand
from numgrad.operations.sparse.kinds import is_sparse_kind
from numgrad.operations.sparse.pattern import SparsePattern, as_pattern
from numgrad.operations.sparse.products import sparse_matmul
from numgrad.operations.sparse.systems import sparse_solve


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
    places = as_pattern(pattern)
    return _product("sparse.matmul", _elements("sparse.matmul", data, places), places, x, False)


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
    places = as_pattern(pattern)
    if places.shape[0] != places.shape[1]:
        raise NumgradLinAlgError(
            f"spsolve: the matrix has shape {places.shape}; only a system with as many equations "
            "as unknowns has one solution"
        )
    data, b = _elements("spsolve", data, places), as_operand(b)
    if len(b.shape) not in (1, 2) or b.shape[0] != places.shape[0]:
        raise NumgradValueError(
            f"spsolve: b has shape {tuple(b.shape)}, the matrix {places.shape}; b is a vector with "
            "an element for each row, or a matrix with a row for each"
        )
    return sparse_solve(data, b, pattern=places)


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
    places = SparsePattern(matrix)
    data = _constant_elements(a if left else b, matrix, places)
    if not left and data.dtype.kind == "c":
        data = OPS["conjugate"](data)
    if left:
        out = _product("matmul", data, places, x, False)
        return OPS["squeeze"](out, 0 if len(x.shape) < 2 else -2) if of_vector else out
    turned = x if len(x.shape) < 2 else OPS["matrix_transpose"](x)
    out = _product("matmul", data, places, turned, True)
    if of_vector:
        return OPS["squeeze"](out, 0 if len(x.shape) < 2 else -2)
    return out if len(x.shape) < 2 else OPS["matrix_transpose"](out)


def _constant_elements(given: Any, matrix: Any, places: SparsePattern) -> Any:
    """The elements of ``matrix``, which has two axes: if possible read where ``given`` has them."""
    around = state.ground.found(getattr(given, "data", None))
    if around and given is matrix and matrix.format in ("csr", "csc", "coo"):
        return matrix.data
    if around:
        warn(
            f"matmul: the elements of a {given.ndim}-d {type(given).__name__} become part of the "
            "compiled function as they are now; those of csr, csc and coo matrices with two axes "
            "are read at each call, so convert it with tocsr()"
        )
    return state.ground.made(matrix.data if places.is_ordered else matrix.tocoo().data)


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
        matrix, given = pattern.shape, tuple(x.shape)
        if adjoint:  # a row times the matrix
            given = given[:-2] + given[:-3:-1]
            shapes = f"{given} and {matrix}"
        else:
            shapes = f"{matrix} and {given}"
        raise NumgradValueError(f"{name}: shapes {shapes} do not fit; transpose or reshape one")
    if ndim < 3:
        return sparse_matmul(data, x, pattern=pattern, adjoint=adjoint)
    first = OPS["moveaxis"](x, -2, 0)
    flat = sparse_matmul(data, OPS["reshape"](first, (inner, -1)), pattern=pattern, adjoint=adjoint)
    split = OPS["reshape"](flat, (flat.shape[0], *first.shape[1:]))
    return OPS["moveaxis"](split, 0, -2)
