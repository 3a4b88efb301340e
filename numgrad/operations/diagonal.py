"""Triangles and diagonals of matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, shifted, with_parameters
from numgrad.core.declare import OPS, Meta, Op, bind, composite, primitive, view
from numgrad.errors import NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import of_matrices


@primitive(
    ref=np.tril, linear=True, samples=[(((3, 4),), {"k": -1}), (((2, 3, 3),), {}), (((3,),), {})]
)
def tril(x, *, k=0):
    """Elements on and below the ``k``-th diagonal of the last two axes, else zero.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.tril(ng.ones((3, 3)), k=-1)
    tensor([[0., 0., 0.],
            [1., 0., 0.],
            [1., 1., 0.]])
    """
    return _triangle("tril", np.tril, x, k)


tril.shape(lambda x, *, k: _triangle_shape("tril", x))
tril.vjp(x=lambda g, k: tril(g, k=k))
tril.batch(of_matrices)


@primitive(ref=np.triu, linear=True, samples=[(((3, 4),), {"k": 1}), (((2, 3, 3),), {})])
def triu(x, *, k=0):
    """Elements on and above the ``k``-th diagonal of the last two axes, else zero.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.triu(ng.ones((3, 3)), k=1)
    tensor([[0., 1., 1.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    return _triangle("triu", np.triu, x, k)


triu.shape(lambda x, *, k: _triangle_shape("triu", x))
triu.vjp(x=lambda g, k: triu(g, k=k))
triu.batch(of_matrices)


def _triangle(operation: str, function: Any, x: np.ndarray, k: int) -> np.ndarray:
    return function(_checked_triangle(operation, x), k)


def _triangle_shape(operation: str, x: Meta) -> Meta:
    _checked_triangle(operation, x)
    return x if x.ndim > 1 else Meta((*x.shape, *x.shape), x.dtype)


def _checked_triangle(operation: str, x: Any) -> Any:
    if x.ndim == 0:
        raise NumgradValueError(f"{operation}: needs an operand with axes, got a 0-d one")
    return x


@view(
    ref=np.diagonal,
    linear=True,
    samples=[(((3, 4),), {"offset": 1}), (((2, 3, 3),), {"axis1": 1, "axis2": 2})],
)
def diagonal(x, *, offset=0, axis1=0, axis2=1):
    """Elements whose indices along two axes differ by ``offset``; they become the last axis.

    Examples
    --------
    >>> ng.diagonal(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    out = np.diagonal(x, offset, axis1, axis2)
    out.flags.writeable = x.flags.writeable  # NumPy's is read-only, ours may be written through
    return out


diagonal.vjp(
    x=lambda g, meta_x, offset, axis1, axis2: diagonal_backward(
        g, meta_x.shape, offset, axis1, axis2
    )
)
diagonal.batch(
    with_parameters(
        lambda x, size, offset, axis1, axis2: {"axis1": x.axes(axis1), "axis2": x.axes(axis2)}
    )
)


@primitive(
    internal=True, linear=True, method=False, samples=[(((3,),), {"shape": (3, 4), "offset": 1})]
)
def diagonal_backward(x, *, shape, offset=0, axis1=0, axis2=1):
    """Zeros of ``shape`` with the operand along a diagonal."""
    out = np.zeros(shape, x.dtype)
    target = np.diagonal(out, offset, axis1, axis2)
    target.flags.writeable = True
    target[...] = x
    return out


diagonal_backward.shape(lambda x, *, shape, offset, axis1, axis2: Meta(tuple(shape), x.dtype))
diagonal_backward.vjp(
    x=lambda g, offset, axis1, axis2: diagonal(g, offset=offset, axis1=axis1, axis2=axis2)
)


@diagonal_backward.batch
def _batched_diagonal_backward(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape = params["shape"]
    axes = {name: shifted(params[name], len(shape)) for name in ("axis1", "axis2")}
    return bind(op, (x.aligned(len(shape) - 1),), {**params, **axes, "shape": (size, *shape)})


@composite(ref=np.trace, smooth=True)
def trace(x, offset=0, axis1=0, axis2=1, dtype=None):
    """Sum of the elements on a diagonal, added up as ``dtype`` if that is given.

    Returns
    -------
    Tensor
        Without the two axes.

    Examples
    --------
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> ng.trace(x).backward()
    >>> x.grad
    tensor([[1., 0.],
            [0., 1.]])
    """
    elements = diagonal(x, offset=offset, axis1=axis1, axis2=axis2)
    return OPS["sum"](elements, axis=-1, dtype=dtype)


@composite(ref=np.diag, smooth=True)
def diag(x, k=0):
    """The ``k``-th diagonal of a matrix; of a vector, the matrix that has it there.

    Returns
    -------
    Tensor
        A vector of a matrix, a matrix of a vector.

    Examples
    --------
    >>> ng.diag(ng.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    >>> ng.diag(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), k=1)
    tensor([2.])
    """
    x = as_operand(x)
    if len(x.shape) == 1:
        n = x.shape[0] + abs(k)
        return diagonal_backward(x, shape=(n, n), offset=k)
    if len(x.shape) == 2:
        return diagonal(x, offset=k)
    raise NumgradValueError(f"diag: needs one or two axes, got shape {x.shape}")
