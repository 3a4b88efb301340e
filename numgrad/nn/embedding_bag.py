"""Sums, means or largest elements of bags of rows of a table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from numgrad.core.interpreter import state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.embedding import embedding, embedding_backward, padding_row
from numgrad.nn.module.members import Parameter, empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.choice import where
from numgrad.operations.shape import expand_dims, reshape
from numgrad.operations.take import take, take_along_axis
from numgrad.tensors.creation import arange, asarray
from numgrad.tensors.tensor import Tensor

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
        values, some = rows.detach(), None
    else:
        values = where(expand_dims(counted, -1), rows.detach(), -np.inf)
        some = expand_dims(counted.any(axis=1), -1)
    first = expand_dims(np.argmax(values, axis=1), 1)
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
