"""Products of vectors and matrices, and NumPy's forms of them for the last two axes."""

from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, composite
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.arrangement import moveaxis, permute_dims
from numgrad.operations.diagonal import diagonal
from numgrad.operations.join import stack
from numgrad.operations.linear_algebra.matrices import check_matrices
from numgrad.operations.linear_algebra.solve import inv, solve
from numgrad.operations.matmul import matmul, outer
from numgrad.operations.shape import as_index, as_operand, expand_dims, reshape, squeeze


@composite(ref=np.cross, method=False, smooth=True)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross products of vectors of three elements, or two, of which the third counts as zero.

    Parameters
    ----------
    axisa, axisb : int
        The axes of the operands along which vectors lie.
    axisc : int
        The axis of the result for its vectors; there is none if all vectors have two elements.
    axis : int
        All three axes at once.

    Returns
    -------
    Tensor
        With the other axes broadcast.

    Examples
    --------
    >>> ng.cross(ng.tensor([1.0, 0.0, 0.0]), ng.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return _cross("cross", a, b, axisa, axisb, axisc, axis)


def _cross(
    operation: str, a: Any, b: Any, axisa: int, axisb: int, axisc: int, axis: int | None
) -> Any:
    a, b = as_operand(a), as_operand(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    for x in (a, b):
        if not len(x.shape):
            raise NumgradValueError(f"{operation}: takes vectors, got an operand of shape ()")
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    lengths = a.shape[-1], b.shape[-1]
    if any(n not in (2, 3) for n in lengths):
        raise NumgradValueError(
            f"{operation}: vectors have 2 or 3 elements, these have {lengths[0]} and {lengths[1]}; "
            "shapes with vectors along the last axis: "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    a0, a1, b0, b1 = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    last = a0 * b1 - a1 * b0
    if lengths == (2, 2):
        return last
    if lengths[0] == 2:
        first, second = a1 * b[..., 2], -(a0 * b[..., 2])
    elif lengths[1] == 2:
        first, second = -(a[..., 2] * b1), a[..., 2] * b0
    else:
        first = a1 * b[..., 2] - a[..., 2] * b1
        second = a[..., 2] * b0 - a0 * b[..., 2]
    return moveaxis(stack(first, second, last, axis=-1), -1, axisc)


@composite(ref="numpy.linalg.cross", method=False, smooth=True)
def cross_of_last(a, b, /, *, axis=-1):
    """Cross products of vectors of three elements.

    Parameters
    ----------
    axis : int
        The axis along which vectors lie.

    Returns
    -------
    Tensor
        With the other axes broadcast.

    Examples
    --------
    >>> ng.linalg.cross(ng.tensor([1.0, 0.0, 0.0]), ng.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    a, b = as_operand(a), as_operand(b)
    for x in (a, b):
        if not len(x.shape) or x.shape[axis] != 3:
            raise NumgradValueError(
                f"cross: shapes {tuple(a.shape)} and {tuple(b.shape)}: both must have 3 elements "
                f"along axis {axis}"
            )
    return _cross("cross", a, b, axis, axis, axis, None)


@composite(ref="numpy.matvec" if hasattr(np, "matvec") else None, method=False, smooth=True)
def matvec(a, b):
    """Products of matrices with vectors, the last axes; other axes broadcast.

    Returns
    -------
    Tensor
        Vectors with as many elements as the matrices have rows.

    Examples
    --------
    >>> ng.matvec(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), ng.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    a, b = as_operand(a), as_operand(b)
    _check_product("matvec", a, b, a, b)
    return matmul(a, b) if len(b.shape) == 1 else squeeze(matmul(a, expand_dims(b, -1)), -1)


@composite(ref="numpy.vecmat" if hasattr(np, "vecmat") else None, method=False, smooth=True)
def vecmat(a, b):
    """Products of vectors, the last axes, conjugated, with matrices; other axes broadcast.

    Returns
    -------
    Tensor
        Vectors with as many elements as the matrices have columns.

    Examples
    --------
    >>> ng.vecmat(ng.tensor([1.0, 10.0]), ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([31., 42.])
    """
    a, b = as_operand(a), as_operand(b)
    _check_product("vecmat", a, b, b, a)
    if a.dtype.kind == "c":
        a = np.conj(a)
    return matmul(a, b) if len(a.shape) == 1 else squeeze(matmul(expand_dims(a, -2), b), -2)


def _check_product(operation: str, a: Any, b: Any, matrix: Any, vector: Any) -> None:
    if len(matrix.shape) < 2 or not len(vector.shape):
        raise NumgradValueError(
            f"{operation}: shapes {tuple(a.shape)} and {tuple(b.shape)}: takes matrices and vectors"
        )


# -------------------------------------------------------------------------------------- several


@composite(ref=np.linalg.multi_dot, method=False, smooth=True)
def multi_dot(arrays):
    """Product of several matrices, in the order of multiplications that costs least.

    Parameters
    ----------
    arrays : sequence of arrays
        Matrices; the first and the last may be vectors.

    Returns
    -------
    Tensor
        Without the axes that vectors have not.

    Examples
    --------
    >>> a = ng.ones((2, 3))
    >>> ng.linalg.multi_dot([a, ng.ones((3, 4)), ng.ones(4)])
    tensor([12., 12.])
    """
    factors = [as_operand(x) for x in arrays]
    if len(factors) < 2:
        raise NumgradValueError(f"multi_dot: needs two arrays at least, got {len(factors)}")
    row, column = len(factors[0].shape) == 1, len(factors[-1].shape) == 1
    if row:
        factors[0] = expand_dims(factors[0], 0)
    if column:
        factors[-1] = expand_dims(factors[-1], 1)
    for k, x in enumerate(factors):
        if len(x.shape) != 2:
            raise NumgradLinAlgError(
                f"multi_dot: array {k} has shape {tuple(x.shape)}; takes matrices, and vectors at "
                "the ends"
            )
    for x, y in pairwise(factors):
        if x.shape[1] != y.shape[0]:
            raise NumgradValueError(
                f"multi_dot: shapes {tuple(x.shape)} and {tuple(y.shape)} stand side by side"
            )
    lengths = [int(x.shape[0]) for x in factors] + [int(factors[-1].shape[1])]

    @cache
    def cost(i: int, j: int) -> tuple[int, int]:
        """Multiplications of the product of parts ``i`` to ``j``, and where it is cut."""
        if i == j:
            return 0, i
        return min(
            (cost(i, k)[0] + cost(k + 1, j)[0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
            for k in range(i, j)
        )

    def product(i: int, j: int) -> Any:
        if i == j:
            return factors[i]
        k = cost(i, j)[1]
        return matmul(product(i, k), product(k + 1, j))

    result = product(0, len(factors) - 1)
    if row:
        result = squeeze(result, 0)
    return squeeze(result, -1) if column else result


@composite(ref=np.linalg.tensorsolve, method=False, smooth=True)
def tensorsolve(a, b, axes=None):
    """The ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a
        Its first axes are those of ``b``, its last those of the result.
    axes : tuple of ints
        Axes of ``a`` to move to the end before.

    Returns
    -------
    Tensor
        With the last axes of ``a``.

    Examples
    --------
    >>> a = ng.eye(4).reshape(2, 2, 4)
    >>> ng.linalg.tensorsolve(a, ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 2., 3., 4.])
    """
    a, b = as_operand(a), as_operand(b)
    rank = len(a.shape)
    if axes is not None:
        order = [k for k in range(rank) if k not in axes]
        a = permute_dims(a, (*order, *axes))
    shape = a.shape[len(b.shape) :]
    if prod(shape) ** 2 != prod(a.shape) or prod(shape) != prod(b.shape):
        raise NumgradLinAlgError(
            f"tensorsolve: shapes {tuple(a.shape)} and {tuple(b.shape)}: the first axes of a must "
            "be those of b, and the others have as many elements"
        )
    n = prod(shape)
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), tuple(shape))


@composite(ref=np.linalg.tensorinv, method=False, smooth=True)
def tensorinv(a, ind=2):
    """The inverse for ``tensordot(a, x, ind)``.

    Parameters
    ----------
    ind : int
        Number of first axes that count as rows.

    Returns
    -------
    Tensor
        With the last axes of ``a``, then the first.

    Examples
    --------
    >>> ng.linalg.tensorinv(ng.tensor([[2.0]]), ind=1)
    tensor([[0.5]])
    """
    a, ind = as_operand(a), as_index("tensorinv", ind, "ind")
    if ind <= 0:
        raise NumgradValueError(f"tensorinv: ind must be positive, got {ind}")
    first, last = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if prod(first) != prod(last):
        raise NumgradLinAlgError(
            f"tensorinv: of shape {tuple(a.shape)}: the first {ind} axes must have as many elements"
            " as the others"
        )
    return reshape(inv(reshape(a, (prod(first), prod(last)))), (*last, *first))


# -------------------------------------------------------------------------- of the last two axes


@composite(ref="numpy.linalg.diagonal", method=False, smooth=True)
def diagonal_of_matrices(x, /, *, offset=0):
    """Diagonals of the matrices in the last two axes.

    Parameters
    ----------
    offset : int
        Which diagonal, above the main one if positive.

    Returns
    -------
    Tensor
        With the elements along the last axis.

    Examples
    --------
    >>> ng.linalg.diagonal(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1)
    tensor([2.])
    """
    x = as_operand(x)
    check_matrices("diagonal", x, "x")
    return diagonal(x, offset=offset, axis1=-2, axis2=-1)


@composite(ref="numpy.linalg.trace", method=False, smooth=True)
def trace_of_matrices(x, /, *, offset=0, dtype=None):
    """Sums of the diagonals of the matrices in the last two axes.

    Parameters
    ----------
    offset : int
        Which diagonal, above the main one if positive.

    Returns
    -------
    Tensor
        Without the last two axes.

    Examples
    --------
    >>> ng.linalg.trace(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    x = as_operand(x)
    check_matrices("trace", x, "x")
    return OPS["sum"](diagonal(x, offset=offset, axis1=-2, axis2=-1), axis=-1, dtype=dtype)


@composite(ref="numpy.linalg.outer", method=False, smooth=True)
def outer_of_vectors(a, b, /):
    """Products of every element of one vector with every element of another.

    Returns
    -------
    Tensor
        Of shape (elements of ``a``, elements of ``b``).

    Examples
    --------
    >>> ng.linalg.outer(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 10.0]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    a, b = as_operand(a), as_operand(b)
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise NumgradValueError(
            f"outer: shapes {tuple(a.shape)} and {tuple(b.shape)}: takes vectors; ng.outer flattens"
        )
    return outer(a, b)
