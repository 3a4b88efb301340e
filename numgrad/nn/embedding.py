"""Rows of a table at integer indices, and sums, means or largest elements of bags of them.

Gradients are dense or row-sparse.
"""

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
from numgrad.core.interpreter import bind, state
from numgrad.core.op import Op
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.kernels.row_sparse import gather_rows, scatter_rows
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.module.members import Parameter, empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.choice import where
from numgrad.operations.shape import expand_dims, reshape
from numgrad.operations.take import take, take_along_axis
from numgrad.tensors.creation import arange, asarray
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


@primitive(
    internal=True,
    method=False,
    linear=True,
    lowering="numgrad.nn.lowerings",
)
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
    if num_classes == -1:
        if indices.size == 0:
            raise NumgradValueError(
                f"one_hot: indices of shape {indices.shape} do not tell the number of classes; "
                "give num_classes"
            )
        num_classes = max(1, int(indices.max()) + 1)
    if num_classes < 1:
        raise NumgradValueError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
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


MODES = ("sum", "mean", "max")


def check_bag_options(name: str, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raise unless the mode exists and can do what is asked for."""
    if mode not in MODES:
        raise NumgradValueError(f"{name}: mode is {mode!r}; it must be one of {MODES}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        option = "scale_grad_by_freq" if scale_grad_by_freq else "sparse"
        raise NumgradValueError(f"{name}: mode 'max' has no {option}; leave it out")


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or largest elements of rows of a table, for several bags of indices.

    Parameters
    ----------
    input
        Integers: of shape (bags, length), or all bags one after another with ``offsets``.
    weight
        Table of shape ``(n, d)``.
    offsets
        Where each bag begins; the first begins at 0. Empty ones give zeros.
    max_norm, norm_type
        Rows that are looked up and have a larger norm of this order are scaled to it first, in
        place and unseen by autograd.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in this call.
    mode
        ``"sum"``, ``"mean"`` or ``"max"``.
    sparse
        Make the gradient of a leaf a ``RowSparseTensor``.
    per_sample_weights
        Factors of the rows, in the shape of ``input``; with ``"sum"`` only.
    include_last_offset
        Whether ``offsets`` ends with the number of indices.
    padding_idx
        A row that is left out and gets no gradient; may be negative.

    Returns
    -------
    Tensor
        Of shape ``(bags, d)`` and the dtype of ``weight``.

    Raises
    ------
    NumgradIndexError
        If an index is negative or not below ``n``.
    NumgradTypeError
        If indices or offsets are no integers.
    NumgradValueError
        If shapes or options do not fit, or offsets are not in order.

    Examples
    --------
    >>> import numgrad as ng
    >>> table = ng.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> ng.nn.functional.embedding_bag([1, 2, 2, 0], table, [0, 3], mode="sum")
    tensor([[10., 13.],
            [ 0.,  1.]])
    """
    name = "embedding_bag"
    check_bag_options(name, mode, scale_grad_by_freq, sparse)
    input, weight = asarray(input), asarray(weight)
    factors = None if per_sample_weights is None else asarray(per_sample_weights)
    if factors is not None and (mode != "sum" or tuple(factors.shape) != tuple(input.shape)):
        raise NumgradValueError(
            f"{name}: per_sample_weights of shape {tuple(factors.shape)} for indices of shape "
            f"{tuple(input.shape)} and mode {mode!r}; they have the shape of the indices, and the "
            "mode is 'sum'"
        )
    if input.ndim not in (1, 2) or (input.ndim == 1) == (offsets is None):
        raise NumgradValueError(
            f"{name}: indices of shape {tuple(input.shape)} with offsets "
            f"{None if offsets is None else 'given'}; give one axis and offsets, or (bags, length) "
            "without"
        )
    if padding_idx is not None:
        padding_idx = padding_row(padding_idx, weight.shape[0])
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counted = None if padding_idx is None else input != padding_idx
    if offsets is not None:
        starts = _starts(name, offsets, input.shape[0], include_last_offset)
        if mode != "max":
            return _added(rows, counted, factors, *_bags(starts, input.shape[0]), mode)
        places, inside = _table(starts, input.shape[0])
        rows = take(rows, places, axis=0)
        counted = inside if counted is None else np.logical_and(inside, take(counted, places))
    if mode == "max":
        return _largest(rows, counted)
    if counted is not None:
        rows = where(expand_dims(counted, -1), rows, 0.0)
    total = (rows if factors is None else rows * expand_dims(factors, -1)).sum(axis=1)
    if mode == "sum":
        return total
    length = input.shape[1] if counted is None else counted.sum(axis=1, keepdims=True)
    return total / np.maximum(length, 1).astype(weight.dtype)


def _starts(name: str, offsets: Any, count: int, include_last: bool) -> Tensor:
    """Where bags begin, checked as far as that is known."""
    offsets = asarray(offsets)
    if offsets.dtype.kind not in "iu":
        raise NumgradTypeError(f"{name}: offsets must be integers, got dtype {offsets.dtype}")
    numbers = state.ground.numbers(offsets)
    if offsets.ndim != 1 or (include_last and not offsets.shape[0]):
        raise NumgradValueError(
            f"{name}: offsets of shape {tuple(offsets.shape)}; they have one axis"
            + (", and at least one element with include_last_offset" if include_last else "")
        )
    known = [] if numbers is None else numbers.tolist()
    if known and (known[0] != 0 or known != sorted(known) or known[-1] > count):
        raise NumgradValueError(
            f"{name}: offsets {known} must begin with 0, go up, and end at most at the number of "
            f"indices, {count}"
        )
    return offsets[:-1] if include_last else offsets


def _bags(starts: Tensor, count: int) -> tuple[Any, int]:
    """The bag of each index, and how many bags there are."""
    numbers = state.ground.numbers(starts)
    if numbers is None:
        after = expand_dims(arange(count), 1) >= starts
        return after.astype(np.int64).sum(axis=1) - 1, starts.shape[0]
    return np.searchsorted(numbers, np.arange(count), side="right") - 1, len(numbers)


def _table(starts: Tensor, count: int) -> tuple[Any, Any]:
    """Places of the indices of each bag, and which of these are inside of it."""
    numbers = state.ground.numbers(starts)
    if numbers is None:
        ends = np.concatenate([starts[1:], np.full_like(starts[:1], count)])
        longest = count
    else:
        starts = numbers
        ends = np.append(numbers[1:], count)
        longest = int((ends - numbers).max(initial=0))
    places = expand_dims(asarray(starts), 1) + arange(longest)
    inside = places < expand_dims(asarray(ends), 1)
    return np.minimum(places, max(count - 1, 0)), inside


def _added(rows: Tensor, counted: Any, factors: Any, bags: Any, number: int, mode: str) -> Tensor:
    """Sums or means of the rows of each bag."""

    def added(values: Any) -> Any:
        return embedding_backward(values, bags, rows=number, padding_idx=None, scaled=False)

    if counted is not None:
        rows = where(expand_dims(counted, -1), rows, 0.0)
    if factors is not None:
        rows = rows * expand_dims(factors, -1)
    total = added(rows)
    if mode == "sum":
        return total
    ones: Any = np.ones_like(rows[:, :1]) if counted is None else expand_dims(counted, -1)
    return total / np.maximum(added(ones.detach().astype(rows.dtype)), 1.0)


def _largest(rows: Tensor, counted: Any) -> Tensor:
    """The largest of the counted rows of each bag, zeros where there are none."""
    bags, length, width = rows.shape
    if not length:
        return rows.sum(axis=1)
    if counted is None:
        seen, some = rows.detach(), None
    else:
        seen = where(expand_dims(counted, -1), rows.detach(), -np.inf)
        some = expand_dims(counted.any(axis=1), -1)
    first = expand_dims(np.argmax(seen, axis=1), 1)
    maximum = reshape(take_along_axis(rows, first, axis=1), (bags, width))
    return maximum if some is None else where(some, maximum, 0.0)


class EmbeddingBag(Module):
    """A learned table, of which sums, means or largest elements of several rows are taken.

    Parameters
    ----------
    num_embeddings, embedding_dim
        Number of rows, and of elements in each.
    max_norm, norm_type
        Rows that are looked up and have a larger norm of this order are scaled to it first.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in a call.
    mode
        ``"sum"``, ``"mean"`` or ``"max"``.
    sparse
        Gradients are ``RowSparseTensor``.
    include_last_offset
        Whether offsets end with the number of indices.
    padding_idx
        A row that starts with zeros, is left out and gets no gradient; may be negative.
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
        If an option has no meaning, or ``padding_idx`` is no row.

    Examples
    --------
    >>> import numgrad as ng
    >>> bag = ng.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag
    EmbeddingBag(10, 3, mode='sum')
    >>> bag([1, 2, 4, 5, 4, 3, 2, 9], [0, 4]).shape
    (2, 3)
    """

    @checked
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_bag_options(type(self).__name__, mode, scale_grad_by_freq, sparse)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_row(padding_idx, num_embeddings)
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = empty_parameter(shape, dtype, device)
            self.reset_parameters()
        else:
            _weight = asarray(_weight)
            if tuple(_weight.shape) != shape:
                raise NumgradValueError(
                    f"EmbeddingBag: a table of shape {tuple(_weight.shape)} for {num_embeddings} "
                    f"embeddings of {embedding_dim} elements; it must have shape {shape}"
                )
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draw a new table; the padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """One vector for each bag: see ``functional.embedding_bag``."""
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Sizes, the mode, and what is not by default."""
        before = {"max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}
        shown = [f"{k}={getattr(self, k)}" for k, v in before.items() if getattr(self, k) != v]
        shown.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *shown])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Make one from a table of shape ``(n, d)``, whose memory it shares.

        With ``freeze`` nothing is learned; other arguments are those of ``EmbeddingBag``.

        Raises
        ------
        NumgradValueError
            If the table has not two axes, or ``padding_idx`` is no row.

        Examples
        --------
        >>> import numgrad as ng
        >>> bag = ng.nn.EmbeddingBag.from_pretrained(ng.tensor([[1.0, 2.0], [4.0, 5.0]]))
        >>> bag([[1, 0]])
        tensor([[2.5, 3.5]])
        """
        embeddings = asarray(embeddings)
        if embeddings.ndim != 2:
            raise NumgradValueError(
                f"EmbeddingBag.from_pretrained: a table has two axes, got shape {embeddings.shape}"
            )
        rows, columns = embeddings.shape
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
