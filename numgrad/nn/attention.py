"""Attention: averages of values with weights that queries and keys decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.dropout import dropout
from numgrad.nn.linear import Linear, linear
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.join import concat, split
from numgrad.operations.matmul import matmul
from numgrad.operations.reduce import softmax
from numgrad.operations.shape import broadcast_to
from numgrad.tensors.creation import arange, asarray


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``.

    Parameters
    ----------
    query
        Of shape (..., targets, features), where leading axes, such as examples and heads,
        broadcast with those of key and value.
    key
        Of shape (..., sources, features).
    value
        Of shape (..., sources, values).
    attn_mask
        Of a shape that broadcasts to (..., targets, sources): bool, True where a target takes part
        of a source, or numbers that are added. A target without any source gets zeros.
    dropout_p
        Probability that a weight is set to zero; functions do not know of evaluation mode.
    is_causal
        Whether a target sees sources up to its own position only; not together with ``attn_mask``.
    scale
        By default ``1 / sqrt(features)``.
    enable_gqa
        Whether key and value may have fewer heads (third axis from the end), each for an equal
        number of the query's heads.

    Returns
    -------
    Tensor
        Of shape (..., targets, values).

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or for a mask with ``is_causal``.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> q, k = ng.zeros((1, 2)), ng.ones((2, 2))
    >>> v = ng.tensor([[1.0], [3.0]])
    >>> ng.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    """
    name = "scaled_dot_product_attention"
    query, key, value = asarray(query), asarray(key), asarray(value)
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1]:
        raise NumgradValueError(
            f"{name}: query of shape {query.shape} and key of shape {key.shape} need at least two "
            "axes, the last of which are equal"
        )
    if enable_gqa:
        key, value = (_for_heads(name, query, x) for x in (key, value))
    if is_causal:
        if attn_mask is not None:
            raise NumgradValueError(f"{name}: pass attn_mask or is_causal, not both")
        attn_mask = up_to_own_position(query.shape[-2], key.shape[-2])
    weights = attention_weights(query, key, attn_mask, scale)
    return matmul(dropout(weights, dropout_p) if dropout_p > 0 else weights, value)


def up_to_own_position(targets: int, sources: int) -> Any:
    """The mask that allows each target the sources up to its own position."""
    return np.expand_dims(arange(targets), 1) >= arange(sources)


def attention_weights(query: Any, key: Any, mask: Any, scale: float | None = None) -> Any:
    """``softmax(query @ key.T * scale + mask)``, zeros for targets that ``mask`` leaves nothing."""
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    scores = matmul(query * scale, matrix_transpose(key))
    if mask is None:
        return softmax(scores, axis=-1)
    mask = asarray(mask)
    if mask.dtype.kind not in "bf":
        raise NumgradTypeError(
            f"attention: a mask is of bool or floating dtype, got {mask.dtype}; compare or convert"
        )
    allowed = mask.detach() if mask.dtype.kind == "b" else mask.detach() > -np.inf
    empty = np.logical_not(np.any(allowed, axis=-1, keepdims=True))
    # where nothing is left the softmax of everything is taken, so that no gradient is NaN
    if mask.dtype.kind == "b":
        scores = np.where(np.logical_or(mask, empty), scores, -np.inf)
    else:
        scores = scores + np.where(empty, 0.0, mask).astype(scores.dtype)
    return np.where(empty, 0.0, softmax(scores, axis=-1)).astype(scores.dtype)


def _for_heads(name: str, query: Tensor, x: Tensor) -> Any:
    """Heads of keys or values repeated for those of the query that share them."""
    heads, wanted = (t.shape[-3] if t.ndim > 2 else 1 for t in (x, query))
    if heads == 0 or wanted % heads or x.ndim < 3:
        raise NumgradValueError(
            f"{name}: {wanted} heads of the query (shape {query.shape}) cannot share {heads} of "
            f"shape {x.shape} equally"
        )
    return x if heads == wanted else np.repeat(x, wanted // heads, axis=-3)


class MultiheadAttention(Module):
    """Attention in several heads: each has its own projections of queries, keys and values.

    Parameters
    ----------
    embed_dim
        Features of queries and of the result, split among the heads.
    num_heads
        Number of heads.
    dropout
        Probability that a weight is set to zero in training.
    bias
        Whether projections have biases.
    add_bias_kv
        Whether a learnt source is added to keys and values.
    add_zero_attn
        Whether a source of zeros is added.
    kdim, vdim
        Features of keys and values, by default ``embed_dim``.
    batch_first
        Whether inputs have shape (batch, length, features) rather than (length, batch, features).
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        If the heads cannot share the features equally.

    Notes
    -----
    Parameters have PyTorch's names: ``in_proj_weight`` for all three projections, or
    ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` where ``kdim`` or ``vdim`` are given;
    ``in_proj_bias``, ``bias_k``, ``bias_v``, ``out_proj``. A target that may attend to no source
    gets weights of zero.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = ng.ones((3, 5, 4))
    >>> y, weights = layer(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 4), (3, 5, 5))
    """

    @checked
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise NumgradValueError(
                f"MultiheadAttention: embed_dim={embed_dim} cannot be split equally among "
                f"num_heads={num_heads}; it must be a multiple of that"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        together = self.kdim == embed_dim and self.vdim == embed_dim
        shapes = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            made = None if shape is None else empty_parameter(shape, dtype, device)
            self.register_parameter(name, made)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                init.xavier_uniform_(parameter)
            elif name == "in_proj_bias":
                init.zeros_(parameter)
            else:
                init.xavier_normal_(parameter)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to ``value`` with weights from ``query`` and ``key``.

        Parameters
        ----------
        query, key, value
            Of shapes (targets, batch, embed_dim), (sources, batch, kdim) and (sources, batch,
            vdim); ``batch`` comes first with ``batch_first``, or is left out of all.
        key_padding_mask
            Of shape (batch, sources): bool, True for sources to leave out, or numbers to add.
        need_weights
            Whether to return the weights.
        attn_mask
            Of shape (targets, sources) or (batch * heads, targets, sources): bool, True for what to
            leave out, or numbers to add.
        average_attn_weights
            Whether to average the returned weights over the heads.
        is_causal
            A hint that ``attn_mask`` leaves out sources after a target's position; without
            ``attn_mask`` these are left out.

        Returns
        -------
        tuple
            The result, of the shape of ``query``, and weights of shape (batch, targets, sources),
            or (batch, heads, targets, sources) if not averaged, or None.

        Raises
        ------
        NumgradValueError
            If shapes do not fit.
        NumgradTypeError
            If a mask is neither bool nor floating.
        """
        query, key, value = asarray(query), asarray(key), asarray(value)
        self._check(query, key, value)
        batched = query.ndim == 3
        projected = self._project(query, key, value)
        if not batched:
            projected = [x[None] for x in projected]
        elif not self.batch_first:
            projected = [np.swapaxes(x, 0, 1) for x in projected]
        q, k, v = projected  # (batch, length, features)
        batch, targets, sources = q.shape[0], q.shape[1], k.shape[1]
        if is_causal and attn_mask is None:
            attn_mask = np.logical_not(up_to_own_position(targets, sources))
        added = 0
        if self.bias_k is not None:
            shape = (batch, 1, self.embed_dim)
            k = concat(k, broadcast_to(self.bias_k, shape), axis=1)
            v = concat(v, broadcast_to(self.bias_v, shape), axis=1)
            added += 1
        if self.add_zero_attn:
            k, v = (
                concat(x, np.zeros((batch, 1, self.embed_dim), x.dtype), axis=1) for x in (k, v)
            )
            added += 1
        mask = self._mask(attn_mask, key_padding_mask, (batch, targets, sources), batched, added)
        q, k, v = (self._by_head(x) for x in (q, k, v))
        weights = attention_weights(q, k, mask)
        if self.dropout > 0:
            weights = dropout(weights, self.dropout, self.training)
        y = np.swapaxes(np.matmul(weights, v), 1, 2).reshape((batch, targets, self.embed_dim))
        y = self.out_proj(y)
        if not batched:
            y, weights = y[0], weights[0]
        elif not self.batch_first:
            y = y.swapaxes(0, 1)
        if not need_weights:
            return y, None
        return y, weights.mean(axis=-3) if average_attn_weights else weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if self.in_proj_weight is not None:
            if query is key and key is value:
                return list(split(linear(query, self.in_proj_weight, self.in_proj_bias), 3, -1))
            weights = split(self.in_proj_weight, 3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else split(self.in_proj_bias, 3)
        operands = zip((query, key, value), weights, biases, strict=True)
        return [linear(x, weight, bias) for x, weight, bias in operands]

    def _by_head(self, x: Any) -> Any:
        """(batch, length, features) as (batch, heads, length, features of a head)."""
        batch, length, _ = x.shape
        return np.swapaxes(x.reshape((batch, length, self.num_heads, self.head_dim)), 1, 2)

    def _mask(
        self, attn_mask: Any, padding: Any, sizes: tuple[int, int, int], batched: bool, added: int
    ) -> Any:
        """Both masks as one of four axes: bool, True for what is allowed, or numbers to add."""
        batch, targets, sources = sizes
        parts = []
        if attn_mask is not None:
            attn_mask = asarray(attn_mask)
            stacked = (batch * self.num_heads, targets, sources)
            if attn_mask.shape == stacked:
                attn_mask = attn_mask.reshape((batch, self.num_heads, targets, sources))
            elif attn_mask.shape != (targets, sources):
                raise NumgradValueError(
                    f"MultiheadAttention: attn_mask of shape {attn_mask.shape}; expected "
                    f"(targets, sources) = {(targets, sources)}, or {stacked} for each head"
                )
            parts.append(attn_mask)
        if padding is not None:
            padding = asarray(padding)
            expected = (batch, sources) if batched else (sources,)
            if padding.shape != expected:
                raise NumgradValueError(
                    f"MultiheadAttention: key_padding_mask of shape {padding.shape}; expected "
                    f"{expected}"
                )
            parts.append(padding.reshape((batch, 1, 1, sources)))
        if not parts:
            return None
        for part in parts:
            if part.dtype.kind not in "bf":
                raise NumgradTypeError(
                    f"MultiheadAttention: masks are of bool or floating dtype, got {part.dtype}"
                )
        if all(part.dtype.kind == "b" for part in parts):
            left_out = parts[0] if len(parts) == 1 else np.logical_or(*parts)
            mask, fill = np.logical_not(left_out), True
        else:
            numbers = [np.where(p, -np.inf, 0.0) if p.dtype.kind == "b" else p for p in parts]
            mask, fill = numbers[0] if len(parts) == 1 else numbers[0] + numbers[1], 0.0
        if added:
            extra = np.full((*mask.shape[:-1], added), fill, mask.dtype)
            mask = concat(mask, extra, axis=-1)
        return mask

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
        axis = 0 if self.batch_first else 1
        if query.ndim not in (2, 3) or {key.ndim, value.ndim} != {query.ndim}:
            raise NumgradValueError(
                f"MultiheadAttention: {shapes}: all have three axes, or two without a batch"
            )
        features = (self.embed_dim, self.kdim, self.vdim)
        if (query.shape[-1], key.shape[-1], value.shape[-1]) != features:
            raise NumgradValueError(
                f"MultiheadAttention: {shapes}: the last axes must be embed_dim, kdim and vdim, "
                f"{features}"
            )
        if key.shape[:-1] != value.shape[:-1] or (
            query.ndim == 3 and query.shape[axis] != key.shape[axis]
        ):
            raise NumgradValueError(
                f"MultiheadAttention: {shapes}: keys and values are pairs, and all have the same "
                f"batch (axis {axis}); is batch_first={self.batch_first} meant?"
            )
