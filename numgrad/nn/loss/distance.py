"""Distances and angles of vectors, and the losses that compare them."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, applies
from numgrad.nn.loss.reduction import Loss, check_reduction, reduced
from numgrad.operations.choice import clip, where
from numgrad.operations.norm import vector_norm
from numgrad.operations.shape import broadcast_to, reshape
from numgrad.tensors.creation import asarray, tensor
from numgrad.tensors.tensor import Tensor


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along an axis; lengths below ``eps`` count as that.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.cosine_similarity(ng.tensor([[3.0, 4.0]]), ng.tensor([[3.0, 0.0]]))
    tensor([0.6])
    """
    x1, x2 = asarray(x1), asarray(x2)
    if x1.ndim < x2.ndim:  # the axis counts in the shape they broadcast to
        x1 = reshape(x1, (*(1,) * (x2.ndim - x1.ndim), *x1.shape))
    elif x2.ndim < x1.ndim:
        x2 = reshape(x2, (*(1,) * (x1.ndim - x2.ndim), *x2.shape))
    if x1.ndim:
        x1, x2 = _as_long(x1, x2, dim), _as_long(x2, x1, dim)
    return (_direction(x1, dim, eps) * _direction(x2, dim, eps)).sum(axis=dim)


def _as_long(x: Tensor, other: Tensor, axis: int) -> Tensor:
    """``x`` with the length of the other along an axis: one number there is a vector of equals."""
    shape = tuple(x.shape)
    k = one_axis("cosine_similarity", axis, x.ndim)
    if shape[k] != 1 or other.shape[k] == 1:
        return x
    return broadcast_to(x, (*shape[:k], other.shape[k], *shape[k + 1 :]))


def _direction(x: Tensor, axis: int, eps: float) -> Tensor:
    # the square is limited before its root, whose gradient at 0 is infinite
    return x / np.sqrt(clip((x * x).sum(axis=axis, keepdims=True), eps * eps, None))


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Norm of order ``p`` of ``x1 - x2 + eps`` along the last axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.pairwise_distance(ng.tensor([3.0, 4.0]), ng.zeros(2), eps=0.0).item()
    5.0
    """
    return vector_norm(asarray(x1) - asarray(x2) + eps, axis=-1, keepdims=keepdim, ord=p)


def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Norms of order ``p`` of the differences of all pairs of rows, as SciPy orders them.

    Parameters
    ----------
    input
        Vectors, of shape (n, length).

    Returns
    -------
    Tensor
        Of shape ``(n * (n - 1) / 2,)``. Rows that are equal get no gradient from each other.

    Raises
    ------
    NumgradValueError
        If the input has not two axes, or ``p`` is negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.pdist(ng.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.        , 1.        , 4.24264069])
    """
    x = asarray(input)
    if x.ndim != 2:
        raise NumgradValueError(f"pdist: needs an input with two axes, got shape {tuple(x.shape)}")
    if not p >= 0:
        raise NumgradValueError(f"pdist: p must not be negative, got {p}")
    first, second = map(tensor, np.triu_indices(int(x.shape[0]), 1))
    return vector_norm(x[first] - x[second], axis=-1, ord=p)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """``1 - cos`` of pairs of vectors that belong together, else ``max(cos - margin, 0)``.

    Parameters
    ----------
    input1, input2
        Vectors of shape ``(n,)`` or ``(batch, n)``.
    target
        1 for pairs that belong together, -1 for others: shape ``()`` or ``(batch,)``.
    margin
        Cosine that others may have.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[3.0, 4.0]])
    >>> round(ng.nn.functional.cosine_embedding_loss(x, [[3.0, 0.0]], ng.ones(1)).item(), 9)
    0.4
    """
    name = "cosine_embedding_loss"
    check_reduction(name, reduction)
    input1, input2, target = asarray(input1), asarray(input2), asarray(target)
    if target.ndim > 1 or target.ndim + 1 != input1.ndim or target.ndim + 1 != input2.ndim:
        raise NumgradValueError(
            f"{name}: inputs of shapes {tuple(input1.shape)} and {tuple(input2.shape)} and target "
            f"of shape {tuple(target.shape)} do not fit; inputs are vectors or a batch of them, "
            "and the target has one number for each pair"
        )
    tiny = 1e-12  # keeps the root of the squared lengths away from 0
    lengths = ((input1 * input1).sum(axis=-1) + tiny) * ((input2 * input2).sum(axis=-1) + tiny)
    cosine = (input1 * input2).sum(axis=-1) / np.sqrt(lengths)
    dissimilar = where(target == -1, clip(cosine - margin, 0, None), 0)
    return reduced(where(target == 1, 1 - cosine, dissimilar), reduction)


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """``max(margin + d(anchor, positive) - d(anchor, negative), 0)`` of distances ``d``.

    Parameters
    ----------
    anchor, positive, negative
        Vectors along the last axis.
    margin
        How much nearer the positive has to be.
    p, eps
        Of ``pairwise_distance``.
    swap
        Take the distance of positive and negative where it is smaller than the anchor's.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> anchor, near, far = ng.zeros(2), ng.tensor([0.0, 1.0]), ng.tensor([0.0, 1.5])
    >>> round(ng.nn.functional.triplet_margin_loss(anchor, near, far).item(), 9)
    0.5
    """
    name = "triplet_margin_loss"
    check_reduction(name, reduction)
    if not margin > 0:
        raise NumgradValueError(f"{name}: margin must be positive, got {margin}")
    dims = [asarray(x).ndim for x in (anchor, positive, negative)]
    if len(set(dims)) > 1:
        raise NumgradValueError(
            f"{name}: anchor, positive and negative have {dims[0]}, {dims[1]} and {dims[2]} axes "
            "and must have equally many"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = np.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(clip(margin + near - far, 0, None), reduction)


@applies(cosine_embedding_loss)
class CosineEmbeddingLoss(Loss):
    """``1 - cos`` of pairs of vectors that belong together, else ``max(cos - margin, 0)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[3.0, 4.0]])
    >>> round(ng.nn.CosineEmbeddingLoss()(x, ng.tensor([[3.0, 0.0]]), ng.ones(1)).item(), 9)
    0.4
    """

    margin: float = 0.0


@applies(triplet_margin_loss)
class TripletMarginLoss(Loss):
    """How far the positive is from being nearer to the anchor than the negative by a margin.

    Raises
    ------
    NumgradValueError
        If the margin is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> anchor, near, far = ng.zeros(2), ng.tensor([0.0, 1.0]), ng.tensor([0.0, 1.5])
    >>> round(ng.nn.TripletMarginLoss()(anchor, near, far).item(), 9)
    0.5
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        margin = options["margin"]
        if not margin > 0:
            raise NumgradValueError(f"TripletMarginLoss: margin must be positive, got {margin}")


@applies(pairwise_distance)
class PairwiseDistance(Applied):
    """Norm of the difference of vectors.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PairwiseDistance(eps=0.0)(ng.tensor([3.0, 4.0]), ng.zeros(2)).item()
    5.0
    """

    p: float = option(default=2.0, doc="Order of the norm.")
    eps: float = option(default=1e-6, doc="Added to the difference.")
    keepdim: bool = option(default=False, doc="Whether to keep the last axis, with length 1.")


@applies(cosine_similarity)
class CosineSimilarity(Applied):
    """Cosine of the angle between vectors.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CosineSimilarity()(ng.tensor([[3.0, 4.0]]), ng.tensor([[3.0, 0.0]]))
    tensor([0.6])
    """

    dim: int = option(default=1, doc="The axis of the vectors.")
    eps: float = option(default=1e-8, at_least=0, doc="Smallest length.")
