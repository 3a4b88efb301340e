"""Attention: averages of values with weights that queries and keys decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.dropout.functional import dropout
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.matmul import matmul
from numgrad.operations.reduce import softmax
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
