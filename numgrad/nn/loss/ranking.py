"""Losses that rank: distances and angles of vectors compared, classes or pairs with a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from math import inf
from typing import Any

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.core.options import option
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.applied import Applied, applies
from numgrad.nn.loss.likelihood import require_between
from numgrad.nn.loss.regression import Loss, check_reduction, reduced
from numgrad.operations.choice import clip, where
from numgrad.operations.error_gamma_logistic import log_sigmoid, relu, softplus
from numgrad.operations.norm import vector_norm
from numgrad.operations.shape import broadcast_to, expand_dims, reshape
from numgrad.operations.take import take_along_axis
from numgrad.tensors.creation import arange, asarray, tensor
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


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """``max(margin - target * (input1 - input2), 0)``.

    Parameters
    ----------
    input1, input2
        Arrays of equally many axes.
    target
        1 where the first is to be larger, -1 where the second is.
    margin
        By how much.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If the arrays have different numbers of axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> x, y = ng.tensor([3.0, 1.0]), ng.tensor([1.0, 2.0])
    >>> ng.nn.functional.margin_ranking_loss(x, y, ng.ones(2)).item()
    0.5
    """
    name = "margin_ranking_loss"
    check_reduction(name, reduction)
    input1, input2, target = asarray(input1), asarray(input2), asarray(target)
    if not input1.ndim == input2.ndim == target.ndim:
        raise NumgradValueError(
            f"{name}: inputs of shapes {tuple(input1.shape)} and {tuple(input2.shape)} and target "
            f"of shape {tuple(target.shape)} must have equally many axes"
        )
    return reduced(clip(margin - target * (input1 - input2), 0, None), reduction)


def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    """Distances where pairs belong together, else ``max(margin - input, 0)``.

    Parameters
    ----------
    input
        Distances.
    target
        1 for pairs that belong together, -1 for others.
    margin
        Distance that others are to have.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.hinge_embedding_loss(ng.tensor([0.5, 0.5]), [1, -1]).item()
    0.5
    """
    check_reduction("hinge_embedding_loss", reduction)
    input, target = asarray(input), asarray(target)
    dissimilar = where(target != 1, clip(margin - input, 0, None), 0.0)
    return reduced(dissimilar + where(target != -1, input, 0.0), reduction)


def soft_margin_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-target * input))`` of targets 1 or -1, accurate for large inputs.

    Parameters
    ----------
    input
        Scores, positive for what is thought to be of class 1.
    target
        1 or -1.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.soft_margin_loss(ng.tensor([0.0, 1000.0]), [1, -1], reduction="none")
    tensor([6.93147181e-01, 1.00000000e+03])
    """
    check_reduction("soft_margin_loss", reduction)
    return reduced(softplus(-asarray(target) * asarray(input)), reduction)


def _rows(name: str, input: Any, target: Any, like: str) -> tuple[Tensor, Tensor, bool]:
    """Scores as (examples, classes), targets with the same first axis, and whether it was there."""
    input, target = asarray(input), asarray(target)
    if target.dtype.kind not in "iu":
        raise NumgradTypeError(f"{name}: targets are classes, integers; got dtype {target.dtype}")
    single = input.ndim < 2
    expected = tuple(input.shape) if like == "classes" else tuple(input.shape[:-1])
    fits = tuple(target.shape) == expected or (
        single and like == "examples" and tuple(target.shape) == (1,)
    )
    if input.ndim > 2 or not fits or 0 in input.shape[-1:]:
        raise NumgradValueError(
            f"{name}: input of shape {tuple(input.shape)} and target of shape "
            f"{tuple(target.shape)} do not fit; the input needs shape (examples, classes) or "
            f"(classes,), and the target then {expected}"
        )
    if single:
        input = input.reshape((1, -1))
        target = target.reshape((1, -1) if like == "classes" else (1,))
    return input, target, single


def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """``sum over k of max(margin - x[class] + x[k], 0)**p``, by the number of classes.

    Parameters
    ----------
    input
        Scores, (examples, classes) or (classes,).
    target
        The class of each example.
    p
        1 or 2.
    margin
        By how much the score of the class is to exceed the others.
    weight
        A factor for each class, that of the target counts.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, ``p`` is another number, or a target is no class.

    Examples
    --------
    >>> import numgrad as ng
    >>> scores = ng.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> round(ng.nn.functional.multi_margin_loss(scores, [3]).item(), 9)
    0.325
    """
    name = "multi_margin_loss"
    check_reduction(name, reduction)
    if p not in (1, 2):
        raise NumgradValueError(f"{name}: p is {p!r}; it must be 1 or 2")
    input, target, single = _rows(name, input, target, "examples")
    classes = input.shape[1]
    require_between(
        target, low=0, high=classes - 1, problem=f"{name}: targets must be below {classes}"
    )
    own = expand_dims(target, 1)
    missing = relu(margin - take_along_axis(input, own, axis=1) + input)
    losses = missing if p == 1 else missing * missing
    if weight is not None:
        weight = asarray(weight)
        if tuple(weight.shape) != (classes,):
            raise NumgradValueError(
                f"{name}: weight of shape {tuple(weight.shape)}; it needs a number for each of the "
                f"{classes} classes"
            )
        losses = losses * expand_dims(weight[target], 1)
    losses = where(arange(classes) == own, 0.0, losses).sum(axis=1) / classes
    return reduced(losses[0] if single else losses, reduction)


def multilabel_margin_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """``sum over classes k and others j of max(1 - x[k] + x[j], 0)``, by the number of classes.

    Parameters
    ----------
    input
        Scores, (examples, classes) or (classes,).
    target
        Of the same shape: the classes of each example, and -1 behind the last.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or a target is no class.

    Examples
    --------
    >>> import numgrad as ng
    >>> scores = ng.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> round(ng.nn.functional.multilabel_margin_loss(scores, [[3, 0, -1, 1]]).item(), 9)
    0.85
    """
    name = "multilabel_margin_loss"
    check_reduction(name, reduction)
    input, target, single = _rows(name, input, target, "classes")
    classes = input.shape[1]
    require_between(
        target, low=-1, high=classes - 1, problem=f"{name}: targets must be below {classes}"
    )
    valid = (target < 0).astype(np.int64).cumsum(axis=1) == 0  # up to the first -1
    labels = where(valid, target, 0)
    one_hot = np.logical_and(expand_dims(labels, 2) == arange(classes), expand_dims(valid, 2))
    others = np.logical_not(one_hot.any(axis=1))
    own = expand_dims(take_along_axis(input, labels, axis=1), 2)
    counted = np.logical_and(expand_dims(valid, 2), expand_dims(others, 1))
    missing = where(counted, relu(1.0 - own + expand_dims(input, 1)), 0.0)
    losses = missing.sum(axis=(1, 2)) / classes
    return reduced(losses[0] if single else losses, reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Tensor:
    """Mean over classes of the binary cross entropy of logits, for each example.

    Parameters
    ----------
    input
        Logits, (..., classes).
    target
        1 for the classes of an example, else 0.
    weight
        A factor for each class.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> loss = ng.nn.functional.multilabel_soft_margin_loss(ng.zeros((1, 3)), ng.ones((1, 3)))
    >>> round(loss.item(), 9)
    0.693147181
    """
    check_reduction("multilabel_soft_margin_loss", reduction)
    input, target = asarray(input), asarray(target)
    losses = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        losses = losses * asarray(weight)
    return reduced(losses.mean(axis=-1), reduction)


def check_margin(name: str, margin: float) -> None:
    """Raise unless the margin is positive."""
    if not 0 < margin < inf:
        raise NumgradValueError(f"{name}: margin must be positive, got {margin}")


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` with a distance of one's own.

    Parameters
    ----------
    anchor, positive, negative
        What the distance takes.
    distance_function
        A function of two of these, by default ``pairwise_distance``.
    margin
        How much nearer the positive has to be.
    swap
        Take the distance of positive and negative where it is smaller than the anchor's.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> anchor, near, far = ng.zeros((1, 2)), ng.tensor([[0.0, 1.0]]), ng.tensor([[0.0, 1.5]])
    >>> loss = ng.nn.functional.triplet_margin_with_distance_loss(
    ...     anchor, near, far, distance_function=lambda x, y: abs(x - y).sum(axis=-1)
    ... )
    >>> loss.item()
    0.5
    """
    name = "triplet_margin_with_distance_loss"
    check_reduction(name, reduction)
    check_margin(name, margin)
    anchor, positive, negative = asarray(anchor), asarray(positive), asarray(negative)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise NumgradValueError(
            f"{name}: anchor, positive and negative have {anchor.ndim}, {positive.ndim} and "
            f"{negative.ndim} axes and must have equally many"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return reduced(clip(margin + near - far, 0, None), reduction)


@applies(margin_ranking_loss)
class MarginRankingLoss(Loss):
    """How far the first of two inputs is from exceeding the second by a margin.

    Examples
    --------
    >>> import numgrad as ng
    >>> x, y = ng.tensor([3.0, 1.0]), ng.tensor([1.0, 2.0])
    >>> ng.nn.MarginRankingLoss()(x, y, ng.ones(2)).item()
    0.5
    """

    margin: float = 0.0


@applies(hinge_embedding_loss)
class HingeEmbeddingLoss(Loss):
    """Distances where pairs belong together, else ``max(margin - x, 0)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.HingeEmbeddingLoss()(ng.tensor([0.5, 0.5]), ng.tensor([1, -1])).item()
    0.5
    """

    margin: float = 1.0


@applies(soft_margin_loss)
class SoftMarginLoss(Loss):
    """``log(1 + exp(-target * input))`` of targets 1 or -1.

    Examples
    --------
    >>> import numgrad as ng
    >>> round(ng.nn.SoftMarginLoss()(ng.zeros(2), ng.tensor([1, -1])).item(), 9)
    0.693147181
    """


@applies(multi_margin_loss)
class MultiMarginLoss(Loss):
    """How far the score of a class is from exceeding all others by a margin.

    Examples
    --------
    >>> import numgrad as ng
    >>> scores = ng.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> round(ng.nn.MultiMarginLoss()(scores, ng.tensor([3])).item(), 9)
    0.325
    """

    p: int = 1
    margin: float = 1.0
    weight: Any = None

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if options["p"] not in (1, 2):
            raise NumgradValueError(f"MultiMarginLoss: p is {options['p']}; it must be 1 or 2")


@applies(multilabel_margin_loss)
class MultiLabelMarginLoss(Loss):
    """How far the scores of several classes are from exceeding all others by 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> scores = ng.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> round(ng.nn.MultiLabelMarginLoss()(scores, ng.tensor([[3, 0, -1, 1]])).item(), 9)
    0.85
    """


@applies(multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(Loss):
    """Mean over classes of the binary cross entropy of logits.

    Examples
    --------
    >>> import numgrad as ng
    >>> loss = ng.nn.MultiLabelSoftMarginLoss()(ng.zeros((1, 3)), ng.ones((1, 3)))
    >>> round(loss.item(), 9)
    0.693147181
    """

    weight: Any = None


@applies(triplet_margin_with_distance_loss)
class TripletMarginWithDistanceLoss(Loss):
    """``TripletMarginLoss`` with a distance of one's own.

    Raises
    ------
    NumgradValueError
        If the margin is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> loss = ng.nn.TripletMarginWithDistanceLoss(
    ...     distance_function=lambda x, y: abs(x - y).sum(axis=-1)
    ... )
    >>> loss(ng.zeros((1, 2)), ng.tensor([[0.0, 1.0]]), ng.tensor([[0.0, 1.5]])).item()
    0.5
    """

    _: KW_ONLY
    distance_function: Callable[[Any, Any], Any] | None = None
    margin: float = 1.0
    swap: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        check_margin(type(self).__name__, options["margin"])
