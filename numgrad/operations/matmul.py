"""The matrix product, and products of vectors, matrices and tensors that are made of it."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, BatchOperand, Meta, Op, apply, bind, composite, normalize_axes
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import matrix_transpose, moveaxis, permute_dims
from numgrad.operations.product_plan import MatMul, product_shape
from numgrad.operations.shape import as_index, as_operand, expand_dims, reshape, squeeze


def conjugated(x: Any) -> Any:
    """The conjugate of an ndarray or a Tensor; of a real one itself, where NumPy copies."""
    return np.conj(x) if x.dtype.kind == "c" else x


def mH(x: Any) -> Any:
    """Conjugate transpose of matrices, of an ndarray or a Tensor."""
    return conjugated(matrix_transpose(x))


def _matmul_vjp_a(g, b, meta_a, meta_b):
    if len(meta_b.shape) == 1:
        return (expand_dims(g, -1) if len(meta_a.shape) > 1 else g) * conjugated(b)
    if len(meta_a.shape) == 1:
        if len(meta_b.shape) == 2:
            return matmul(conjugated(b), g)
        return squeeze(matmul(conjugated(b), expand_dims(g, -1)), -1)
    return matmul(g, mH(b))


def _matmul_vjp_b(g, a, meta_a, meta_b):
    if len(meta_a.shape) == 1:
        if len(meta_b.shape) == 1:
            return g * conjugated(a)
        return expand_dims(conjugated(a), -1) * expand_dims(g, -2)
    if len(meta_b.shape) == 1:
        if len(meta_a.shape) == 2:
            return matmul(mH(a), g)
        return squeeze(matmul(mH(a), expand_dims(g, -1)), -1)
    return matmul(mH(a), g)


def _declare(**options: Any) -> Any:
    return lambda function: MatMul(function, **options)


@_declare(
    ref=np.matmul,
    dunder="matmul",
    samples=[
        (((3, 4), (4, 5)), {}),
        (((4,), (4,)), {}),
        (((3, 4), (4,)), {}),
        (((4,), (4, 3)), {}),
        (((2, 3, 4), (2, 4, 2)), {}),
        (((2, 1, 3, 4), (3, 4, 2)), {}),
        (((2, 3, 4), (4,)), {}),
        (((4,), (2, 4, 3)), {}),
        (((3, 4), (2, 4, 3)), {}),
    ],
    bilinear=True,
    smooth=True,
)
def matmul(a, b):
    """Matrix product; vectors are rows on the left and columns on the right.

    Axes before the last two are stacks of matrices and broadcast against each other.

    Returns
    -------
    Tensor
        Of shape (..., rows of ``a``, columns of ``b``), without the axis that a vector has not.

    Examples
    --------
    >>> a = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.matmul(a, [1.0, 10.0])
    tensor([21., 43.])
    >>> ng.matmul(a, a)
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    return np.matmul(a, b)


@matmul.shape
def _matmul_result(a, b):
    return Meta(product_shape(a.shape, b.shape), np.result_type(a.dtype, b.dtype))


matmul.vjp(a=_matmul_vjp_a, b=_matmul_vjp_b)


@matmul.batch
def _batched_matmul(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Products of stacks of matrices, or one of two matrices where that does."""
    a, b = operands
    if a.ndim == 0 or b.ndim == 0:
        return NotImplemented  # an error, whose message one example gives
    # vectors or matrices of a batch times one matrix are one product of all
    if a.batched and not b.batched and b.ndim == 2:
        return bind(op, (a.value, b.value), {})
    if b.batched and b.ndim == 1 and not a.batched and a.ndim == 2:
        return bind(op, (b.value, apply("matrix_transpose", a.value)), {})
    row, column = a.batched and a.ndim == 1, b.batched and b.ndim == 1
    if row:
        a = BatchOperand(apply("expand_dims", a.value, axis=1), True)
    if column:
        b = BatchOperand(apply("expand_dims", b.value, axis=2), True)
    ndim = max(a.ndim, b.ndim)
    out = bind(op, (a.aligned(ndim), b.aligned(ndim)), {})
    if column:
        out = apply("squeeze", out, axis=-1)
    return apply("squeeze", out, axis=-1 if column or b.ndim == 1 else -2) if row else out


@composite(ref=np.dot, smooth=True)
def dot(a, b):
    """Sum of products over the last axis of ``a`` and the second to last (or only) one of ``b``.

    Returns
    -------
    Tensor
        With the other axes of ``a``, then those of ``b``.

    Examples
    --------
    >>> a = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> y = ng.dot(a, [3.0, 4.0])
    >>> y.detach()
    tensor(11.)
    >>> y.backward()
    >>> a.grad
    tensor([3., 4.])
    """
    a, b = as_operand(a), as_operand(b)
    if not a.shape or not b.shape:
        return OPS["multiply"](a, b)
    if len(b.shape) == 1 or (len(a.shape) <= 2 and len(b.shape) == 2):
        return matmul(a, b)
    return tensordot(a, b, (-1, -2))


@composite(ref=np.inner, method=False, smooth=True)
def inner(a, b):
    """Sum of products over the last axes of both operands.

    Returns
    -------
    Tensor
        With the other axes of ``a``, then those of ``b``.

    Examples
    --------
    >>> ng.inner(ng.tensor([[1.0, 2.0], [0.0, 1.0]]), [3.0, 4.0])
    tensor([11.,  4.])
    """
    a, b = as_operand(a), as_operand(b)
    if not a.shape or not b.shape:
        return OPS["multiply"](a, b)
    return tensordot(a, b, (-1, -1))


@composite(ref=np.outer, method=False, smooth=True)
def outer(a, b):
    """Product of every element of ``a`` with every element of ``b``, as a matrix.

    Returns
    -------
    Tensor
        Of shape (elements of ``a``, elements of ``b``).

    Examples
    --------
    >>> ng.outer(ng.tensor([1.0, 2.0]), [1.0, 10.0, 100.0])
    tensor([[  1.,  10., 100.],
            [  2.,  20., 200.]])
    """
    return OPS["multiply"](reshape(as_operand(a), (-1, 1)), reshape(as_operand(b), (1, -1)))


@composite(ref="numpy.vecdot", method=False, smooth=True)
def vecdot(a, b, axis=-1):
    """Sum of products over one axis, the first operand conjugated; other axes broadcast.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to, without the axis.

    Examples
    --------
    >>> ng.vecdot(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), [1.0, 10.0])
    tensor([21., 43.])
    """
    a, b = as_operand(a), as_operand(b)
    for x in (a, b):
        normalize_axes("vecdot", as_index("vecdot", axis), len(x.shape))
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise NumgradValueError(
            f"vecdot: shapes {tuple(a.shape)} and {tuple(b.shape)} (axis {axis} moved to the end) "
            "must have last axes of equal length"
        )
    if a.dtype.kind == "c":
        a = OPS["conjugate"](a)
    if len(a.shape) == 1 and len(b.shape) == 1:
        return matmul(a, b)
    product = matmul(expand_dims(a, -2), expand_dims(b, -1))
    return reshape(product, product.shape[:-2])


@composite(ref=np.vdot, method=False, smooth=True)
def vdot(a, b):
    """Sum of products of all elements, those of the first operand conjugated.

    Returns
    -------
    Tensor
        Without axes.

    Examples
    --------
    >>> ng.vdot(ng.tensor([1j, 2.0]), [1j, 3.0])
    tensor(7.+0.j, dtype=complex128)
    """
    a, b = as_operand(a), as_operand(b)
    if prod(a.shape) != prod(b.shape):
        raise NumgradValueError(
            f"vdot: shapes {tuple(a.shape)} and {tuple(b.shape)} have different numbers of elements"
        )
    return vecdot(reshape(a, (-1,)), reshape(b, (-1,)))


@composite(ref=np.tensordot, method=False, smooth=True)
def tensordot(a, b, axes=2):
    """Sum of products over axes of both operands: a number of adjoining ones, or two sequences.

    Parameters
    ----------
    axes : int or pair of sequences of ints
        Number of last axes of ``a`` and first of ``b`` to sum over, or the axes of each.

    Returns
    -------
    Tensor
        With the other axes of ``a``, then those of ``b``.

    Examples
    --------
    >>> a = ng.arange(6.0).reshape(2, 3)
    >>> ng.tensordot(a, a, axes=([1], [1]))
    tensor([[ 5., 14.],
            [14., 50.]])
    """
    a, b = as_operand(a), as_operand(b)
    of_a, of_b = _tensordot_axes(axes, a.shape, b.shape)
    lengths_a = [a.shape[k] for k in of_a]
    lengths_b = [b.shape[k] for k in of_b]
    if lengths_a != lengths_b:
        raise NumgradValueError(
            f"tensordot: shapes {tuple(a.shape)} and {tuple(b.shape)}: axes {of_a} have lengths "
            f"{lengths_a}, axes {of_b} have lengths {lengths_b}; they must be equal"
        )
    kept_a = [k for k in range(len(a.shape)) if k not in of_a]
    kept_b = [k for k in range(len(b.shape)) if k not in of_b]
    summed = prod(lengths_a)
    left = [a.shape[k] for k in kept_a]
    right = [b.shape[k] for k in kept_b]
    a = reshape(_permute(a, (*kept_a, *of_a)), (prod(left), summed))
    b = reshape(_permute(b, (*of_b, *kept_b)), (summed, prod(right)))
    return reshape(matmul(a, b), (*left, *right))


def _permute(x: Any, order: Sequence[int]) -> Any:
    order = tuple(order)
    return x if order == tuple(range(len(order))) else permute_dims(x, order)


def _tensordot_axes(
    axes: Any, a: tuple[int, ...], b: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    if isinstance(axes, tuple | list):
        if len(axes) != 2:
            raise NumgradValueError(
                f"tensordot: axes must be a number or a pair of sequences, got {axes!r}"
            )
        pair = [list(x) if isinstance(x, tuple | list) else [x] for x in axes]
        if len(pair[0]) != len(pair[1]):
            raise NumgradValueError(
                f"tensordot: axes {axes!r} name {len(pair[0])} axes of the first operand and "
                f"{len(pair[1])} of the second"
            )
        results = []
        for listed, shape in zip(pair, (a, b), strict=True):
            normalize_axes("tensordot", tuple(listed), len(shape))
            results.append([as_index("tensordot", k) % len(shape) for k in listed])
        return results[0], results[1]
    count = as_index("tensordot", axes, "axes")
    if not 0 <= count <= min(len(a), len(b)):
        raise NumgradValueError(
            f"tensordot: axes={count} for operands of shapes {tuple(a)} and {tuple(b)}"
        )
    return list(range(len(a) - count, len(a))), list(range(count))


@composite(ref=np.kron, method=False, smooth=True)
def kron(a, b):
    """Every element of ``a`` times the whole of ``b``, laid out in blocks.

    Returns
    -------
    Tensor
        With the lengths of both operands multiplied.

    Examples
    --------
    >>> ng.kron(ng.tensor([1.0, 10.0]), [1.0, 2.0])
    tensor([ 1.,  2., 10., 20.])
    """
    a, b = as_operand(a), as_operand(b)
    rank = max(len(a.shape), len(b.shape))
    shape_a = (1,) * (rank - len(a.shape)) + tuple(a.shape)
    shape_b = (1,) * (rank - len(b.shape)) + tuple(b.shape)
    left = reshape(a, [k for n in shape_a for k in (n, 1)])
    right = reshape(b, [k for n in shape_b for k in (1, n)])
    sizes = [m * n for m, n in zip(shape_a, shape_b, strict=True)]
    return reshape(OPS["multiply"](left, right), sizes)
