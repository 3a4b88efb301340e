"""Rows of a table at integer indices; gradients are dense or row-sparse."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.abstract import ones
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import (
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.kernels.row_sparse import gather_rows, scatter_rows
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.module.members import Parameter, empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.choice import where
from numgrad.operations.shape import expand_dims
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


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
    name="embedding", method=False, linear=True, row_sparse=True, lowering="numgrad.nn.lowerings"
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
        learned = flat != padding % rows
        flat, values = flat[learned], values[learned]
    return [RowSparseArray(flat, values, (rows, width)), None]


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


@primitive(internal=True, method=False, linear=True, lowering="numgrad.nn.lowerings")
def embedding_backward(x, indices, *, rows, padding_idx, scaled):
    """Zeros of ``rows`` rows to which the operand's are added at the indices: see ``embedding``."""
    return _accumulated(x, indices, rows, padding_idx, scaled)


def _looked_up(g, indices, rows, padding_idx, scaled):
    """The transpose: rows of ``g``, zero where the padding was looked up, over their counts."""
    gathered = _embedding(g, indices)
    if scaled:
        each = ones((*indices.shape, 1), g.dtype)
        counts = embedding_backward(each, indices, rows=rows, padding_idx=None, scaled=False)
        gathered = gathered / _embedding(counts, indices)
    if padding_idx is not None:
        gathered = where(expand_dims(indices == padding_idx % rows, axis=-1), 0, gathered)
    return gathered


embedding_backward.shape(
    lambda x, indices, *, rows, padding_idx, scaled: Meta((rows, x.shape[-1]), x.dtype)
)


embedding_backward.no_derivative("indices")


embedding_backward.vjp(x=_looked_up)


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


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table at integer indices.

    Parameters
    ----------
    input
        Integers from 0 to ``n - 1``, any shape.
    weight
        Table of shape ``(n, d)``.
    padding_idx
        A row that gets no gradient; may be negative.
    max_norm
        Rows that are looked up and have a larger norm are scaled to this one first, in place and
        unseen by autograd.
    norm_type
        Order ``p`` of that norm.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in this call.
    sparse
        Make the gradient of a leaf a ``RowSparseTensor``; see ``SparseAdam`` and ``SGD``.

    Returns
    -------
    Tensor
        Of shape ``(*input.shape, d)`` and the dtype of ``weight``.

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
    >>> import numgrad as ng
    >>> table = ng.tensor([[0.0, 0.0], [3.0, 4.0], [0.3, 0.4]])
    >>> ng.nn.functional.embedding([[1, 2, 1]], table)
    tensor([[[3. , 4. ],
             [0.3, 0.4],
             [3. , 4. ]]])
    """
    input, weight = asarray(input), asarray(weight)
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    return _embedding(
        weight,
        input,
        padding_idx=padding_idx,
        scale_grad_by_freq=bool(scale_grad_by_freq),
        sparse=bool(sparse),
    )


def _renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows at ``indices`` whose norm is larger than ``max_norm`` to that norm."""
    rows = np.unique(checked_indices(indices._array, weight._array))
    vectors = weight._array[rows]
    norms = np.linalg.norm(vectors, norm_type, axis=1, keepdims=True)
    large = norms[:, 0] > max_norm
    if large.any():
        with no_grad():
            # the small number keeps a rounded product from being larger than max_norm
            weight[rows[large]] = vectors[large] * (max_norm / (norms[large] + 1e-7))


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a 1 at each index.

    Parameters
    ----------
    tensor
        Integers from 0 to ``num_classes - 1``, any shape.
    num_classes
        Length of the rows; -1 for the largest index plus 1.

    Returns
    -------
    Tensor
        Of shape ``(*tensor.shape, num_classes)``, int64.

    Raises
    ------
    NumgradTypeError
        If the indices are no integers.
    NumgradValueError
        If an index is negative or not below ``num_classes``, or there is none to tell their number.
    NumgradRuntimeError
        If ``num_classes`` is -1 under ``ng.vmap`` or ``ng.jit``.

    Notes
    -----
    Under ``ng.vmap`` and ``ng.jit`` indices are not checked: as in PyTorch's ``vmap``, one that is
    out of range gives zeros.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.one_hot([0, 2])
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    indices = asarray(tensor)._array
    if indices.size == 0 and indices.dtype == np.float64:  # an empty list
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise NumgradTypeError(f"one_hot: indices must be integers, got dtype {indices.dtype}")
    traced = not isinstance(indices, np.ndarray)
    if num_classes == -1:
        if traced:
            raise NumgradRuntimeError(
                "one_hot: what vmap or jit traces does not tell the number of classes; give a "
                "positive num_classes"
            )
        if indices.size == 0:
            raise NumgradValueError(
                f"one_hot: indices of shape {indices.shape} do not tell the number of classes; "
                "give num_classes"
            )
        num_classes = max(1, int(indices.max()) + 1)
    if num_classes < 1:
        raise NumgradValueError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
    if traced:
        equal: Any = np.equal(expand_dims(tensor, -1), np.arange(num_classes))
        return equal.astype(np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < num_classes:
        raise NumgradValueError(
            f"one_hot: indices from {indices.min()} to {indices.max()} with {num_classes} classes; "
            f"they run from 0 to {num_classes - 1}"
        )
    out = np.zeros((*indices.shape, num_classes), np.int64)
    np.put_along_axis(out, indices[..., np.newaxis].astype(np.int64), 1, axis=-1)
    return Tensor(out)


class Embedding(Module):
    """A table with a row for each integer below ``num_embeddings``, which is learned.

    Parameters
    ----------
    num_embeddings, embedding_dim
        Number of rows, and of elements in each.
    padding_idx
        A row that starts with zeros and gets no gradient; may be negative.
    max_norm
        Rows that are looked up and have a larger norm are scaled to this one first, in place.
    norm_type
        Order ``p`` of that norm.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in a call.
    sparse
        Gradients are ``RowSparseTensor``; take an optimizer that supports them.
    device
        None or ``"cpu"``.
    dtype
        Of the table; float64 by default.

    Attributes
    ----------
    weight
        The table, a Parameter of shape ``(num_embeddings, embedding_dim)``, at first drawn from a
        normal distribution of mean 0 and variance 1.

    Raises
    ------
    NumgradValueError
        If ``padding_idx`` is no row.

    Examples
    --------
    >>> import numgrad as ng
    >>> embedding = ng.nn.Embedding(10, 3, padding_idx=0)
    >>> embedding
    Embedding(10, 3, padding_idx=0)
    >>> embedding([[1, 2, 4, 0]]).shape
    (1, 4, 3)
    """

    @checked
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_row(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = empty_parameter(shape, dtype, device)
            self.weight.requires_grad = not _freeze
            self.reset_parameters()
        else:
            _weight = asarray(_weight)
            if _weight.shape != shape:
                raise NumgradValueError(
                    f"Embedding: a table of shape {_weight.shape} for {num_embeddings} embeddings "
                    f"of {embedding_dim} elements; it must have shape {shape}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draw a new table; the padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, input: Any) -> Tensor:
        """Rows of the table at integer indices of any shape."""
        return embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Sizes, and what is not by default."""
        defaults = {
            "padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False,
            "sparse": False,
        }  # fmt: skip
        changed = {name: getattr(self, name) for name in defaults}
        shown = [f"{name}={v}" for name, v in changed.items() if v != defaults[name]]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *shown])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Make one from a table of shape ``(n, d)``, whose memory it shares.

        Parameters
        ----------
        embeddings
            The table.
        freeze
            Learn nothing: ``weight.requires_grad`` is False.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            As for ``Embedding``; the row of the padding stays what it is.

        Raises
        ------
        NumgradValueError
            If the table has not two axes, or ``padding_idx`` is no row.

        Examples
        --------
        >>> import numgrad as ng
        >>> embedding = ng.nn.Embedding.from_pretrained(ng.tensor([[1.0, 2.3], [4.0, 5.1]]))
        >>> embedding([1])
        tensor([[4. , 5.1]])
        """
        embeddings = asarray(embeddings)
        if embeddings.ndim != 2:
            raise NumgradValueError(
                f"Embedding.from_pretrained: a table has two axes, got shape {embeddings.shape}"
            )
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            embeddings, freeze,
        )  # fmt: skip
