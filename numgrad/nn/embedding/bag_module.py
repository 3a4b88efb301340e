"""A table of vectors whose rows are put together by bags of integers."""

from __future__ import annotations

from typing import Any, Self

from numgrad.errors import NumgradValueError
from numgrad.nn import init
from numgrad.nn.embedding.bag import check_bag_options, embedding_bag
from numgrad.nn.embedding.operation import padding_row
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import Parameter, empty_parameter
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


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
        """Draw the table anew; the padding is zero."""
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
