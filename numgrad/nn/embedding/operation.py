"""Looking up rows of a table, with dense and row-sparse gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.abstract import ones
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.core.row_sparse import RowSparseArray
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.kernels.row_sparse import gather_rows, scatter_rows
from numgrad.operations.choice import where
from numgrad.operations.shape import expand_dims
from numgrad.operations.take import ALONG, INDICES


def _integers(indices: np.ndarray) -> np.ndarray:
    """Indices as int64 on one axis."""
    _check_integers(indices)
    return np.ascontiguousarray(indices, np.int64).ravel()


def _check_integers(indices: Any) -> None:
    empty_list = indices.dtype == np.float64 and prod(indices.shape) == 0
    if indices.dtype.kind not in "iu" and not empty_list:
        raise NumgradTypeError(
            f"embedding: indices must be integers, got dtype {indices.dtype}; convert them with "
            "astype(int)"
        )


def checked_indices(indices: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Indices as int64 on one axis, after checking that the table has these rows."""
    flat = _integers(indices)
    _check_table(weight)
    outside = (flat < 0) | (flat >= weight.shape[0])
    if outside.any():
        raise _out_of_range(flat[outside.argmax()], weight)
    return flat


def _check_table(weight: Any) -> None:
    if weight.ndim != 2:
        raise NumgradValueError(
            f"embedding: the table must have two axes, rows and what is in them; got shape "
            f"{weight.shape}"
        )


def _out_of_range(index: Any, weight: np.ndarray) -> NumgradIndexError:
    rows = weight.shape[0]
    return NumgradIndexError(
        f"embedding: index {index} in a table of {rows} rows; indices run from 0 to {rows - 1}"
    )


def padding_row(padding_idx: int | None, rows: int) -> int | None:
    """``padding_idx`` counted from the front."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise NumgradValueError(
            f"embedding: padding_idx {padding_idx} is no row of a table of {rows}"
        )
    return padding_idx % rows


@primitive(
    name="embedding",
    method=False,
    linear=True,
    row_sparse=True,
    errors=[(((3,), (2,)), {}, "NumgradTypeError")],
    lowering="numgrad.nn.embedding.lowering",
)
def _embedding(weight, indices, *, padding_idx=None, scale_grad_by_freq=False, sparse=False):
    """Rows of a table at integer indices.

    Parameters
    ----------
    weight
        Table of shape ``(n, d)``.
    indices
        Integers from 0 to ``n - 1``, any shape.
    padding_idx
        A row that gets no gradient; may be negative.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in this call.
    sparse
        Make the gradient of a leaf a ``RowSparseTensor`` of the rows looked up. A gradient that
        is recorded (``create_graph``) is dense.

    Returns
    -------
    Tensor
        Of shape ``(*indices.shape, d)`` and the dtype of ``weight``.

    Raises
    ------
    NumgradIndexError
        If an index is negative or not below ``n``.
    NumgradTypeError
        If indices are no integers.
    NumgradValueError
        If ``weight`` has not two axes, ``padding_idx`` is no row, or ``sparse`` meets
        ``scale_grad_by_freq``.

    Examples
    --------
    >>> table = ng.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    >>> rows = ng.nn.functional.embedding([2, 0, 2], table, sparse=True)
    >>> rows.detach()
    tensor([[4., 5.],
            [0., 1.],
            [4., 5.]])
    >>> rows.sum().backward()
    >>> table.grad.coalesce()
    row_sparse(indices=[0, 2],
               values=[[1., 1.],
                       [2., 2.]], shape=(3, 2))
    """
    flat = _integers(indices)
    _check_table(weight)
    if sparse and scale_grad_by_freq:
        raise _no_sparse_scaling()
    padding_row(padding_idx, weight.shape[0])
    out = np.empty((*indices.shape, weight.shape[1]), weight.dtype)
    bad = gather_rows(np.ascontiguousarray(weight), flat, out)
    if bad >= 0:
        raise _out_of_range(flat[bad], weight)
    return out


@_embedding.shape
def _embedding_result(weight, indices, *, padding_idx, scale_grad_by_freq, sparse):
    _check_integers(indices)
    _check_table(weight)
    if sparse and scale_grad_by_freq:
        raise _no_sparse_scaling()
    padding_row(padding_idx, weight.shape[0])
    return Meta((*indices.shape, weight.shape[1]), weight.dtype)


def _no_sparse_scaling() -> NumgradValueError:
    return NumgradValueError(
        "embedding: scale_grad_by_freq needs a dense gradient; leave sparse out"
    )


_embedding.no_derivative("indices")
_embedding.vjp(
    weight=lambda g, indices, meta_weight, padding_idx, scale_grad_by_freq: embedding_backward(
        g, indices, rows=meta_weight.shape[0], padding_idx=padding_idx, scaled=scale_grad_by_freq
    )
)


@_embedding.vjp_kernel
def _embedding_backward(call, mask, g, indices):
    (rows, width), params = call.metas[0].shape, call.params
    padding = params["padding_idx"]
    if not params["sparse"]:
        scaled = params["scale_grad_by_freq"]
        return [_accumulated(g, indices, rows, padding, scaled), None]
    flat = np.array(indices, np.int64).ravel()  # the caller's may change while the gradient lives
    values = np.ascontiguousarray(g).reshape(flat.size, width)
    if padding is not None:
        kept = flat != padding % rows
        flat, values = flat[kept], values[kept]
    return [RowSparseArray(flat, values, (rows, width)), None]


_embedding.calls = [
    (((3, 2),), lambda x: _embedding(x, INDICES)),
    (((3, 2),), lambda x: _embedding(x, ALONG)),
    (((3, 2),), lambda x: _embedding(x, np.zeros((0, 2), int))),
    (((3, 0),), lambda x: _embedding(x, INDICES)),
]


def _accumulated(
    g: np.ndarray, indices: np.ndarray, rows: int, padding_idx: int | None, scaled: bool
) -> np.ndarray:
    """Zeros with the rows of ``g`` added at the indices."""
    flat = _integers(indices)
    out = np.zeros((rows, g.shape[-1]), g.dtype)
    scatter_rows(np.ascontiguousarray(g).reshape(flat.size, g.shape[-1]), flat, out)
    if scaled:
        counts = np.bincount(flat, minlength=rows)
        repeated = np.flatnonzero(counts > 1)
        out[repeated] *= (1 / counts[repeated, np.newaxis]).astype(out.dtype)
    if padding_idx is not None:
        out[padding_idx] = 0
    return out


@primitive(
    internal=True,
    method=False,
    linear=True,
    lowering="numgrad.nn.embedding.lowering",
)
def embedding_backward(x, indices, *, rows, padding_idx, scaled):
    """Zeros of ``rows`` rows to which the operand's are added at the indices: see ``embedding``."""
    return _accumulated(x, indices, rows, padding_idx, scaled)


def _looked_up(g, indices, rows, padding_idx, scaled):
    """The transpose: rows of ``g``, zero where the padding was looked up, over their counts."""
    found = _embedding(g, indices)
    if scaled:
        each = ones((*indices.shape, 1), g.dtype)
        counts = embedding_backward(each, indices, rows=rows, padding_idx=None, scaled=False)
        found = found / _embedding(counts, indices)
    if padding_idx is not None:
        found = where(expand_dims(indices == padding_idx % rows, axis=-1), 0, found)
    return found


embedding_backward.shape(
    lambda x, indices, *, rows, padding_idx, scaled: Meta((rows, x.shape[-1]), x.dtype)
)
embedding_backward.no_derivative("indices")
embedding_backward.vjp(x=_looked_up)
embedding_backward.calls = [
    (((3, 2),), lambda x: embedding_backward(x, INDICES, rows=4, padding_idx=None, scaled=False)),
    (((2, 2, 2),), lambda x: embedding_backward(x, ALONG, rows=3, padding_idx=-1, scaled=True)),
]


@_embedding.batch
def _embedding_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    weight, indices = operands
    # how often a row is looked up is counted for each example
    if indices.batched and (weight.batched or params["scale_grad_by_freq"]):
        return NotImplemented
    if not weight.batched:
        return bind(op, (weight.value, indices.value), params)
    # the rows of all examples side by side
    rows, width = weight.shape
    beside = apply("reshape", apply("swapaxes", weight.value, axis1=0, axis2=1), (rows, -1))
    out = bind(op, (beside, indices.value), params)
    out = apply("reshape", out, (*indices.shape, size, width))
    return apply("moveaxis", out, -2, 0)


@embedding_backward.batch
def _backward_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, indices = operands
    if indices.batched:
        return NotImplemented
    beside = apply("reshape", apply("moveaxis", x.value, 0, -2), (*indices.shape, -1))
    out = bind(op, (beside, indices.value), params)
    out = apply("reshape", out, (params["rows"], size, x.shape[-1]))
    return apply("swapaxes", out, axis1=0, axis2=1)
