"""A table of vectors for integers: words, users, categories."""

from __future__ import annotations

from typing import Any, Self

from numgrad.errors import NumgradValueError
from numgrad.nn import init
from numgrad.nn.embedding.functional import embedding
from numgrad.nn.embedding.operation import padding_row
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import Parameter, empty_parameter
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


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
        """Draw the table anew; the padding is zero."""
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
