"""Losses that ask for a margin, and distances, as modules: see ``nn.functional``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, applies
from numgrad.nn.loss import distance, margin
from numgrad.nn.loss.module import Loss


@applies(margin.margin_ranking_loss)
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
    _: KW_ONLY
    reduction: str = "mean"


@applies(margin.hinge_embedding_loss)
class HingeEmbeddingLoss(Loss):
    """Distances where pairs belong together, else ``max(margin - x, 0)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.HingeEmbeddingLoss()(ng.tensor([0.5, 0.5]), ng.tensor([1, -1])).item()
    0.5
    """

    margin: float = 1.0
    _: KW_ONLY
    reduction: str = "mean"


@applies(margin.soft_margin_loss)
class SoftMarginLoss(Loss):
    """``log(1 + exp(-target * input))`` of targets 1 or -1.

    Examples
    --------
    >>> import numgrad as ng
    >>> round(ng.nn.SoftMarginLoss()(ng.zeros(2), ng.tensor([1, -1])).item(), 9)
    0.693147181
    """

    _: KW_ONLY
    reduction: str = "mean"


@applies(margin.multi_margin_loss)
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
    _: KW_ONLY
    reduction: str = "mean"

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if options["p"] not in (1, 2):
            raise NumgradValueError(f"MultiMarginLoss: p is {options['p']}; it must be 1 or 2")


@applies(margin.multilabel_margin_loss)
class MultiLabelMarginLoss(Loss):
    """How far the scores of several classes are from exceeding all others by 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> scores = ng.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> round(ng.nn.MultiLabelMarginLoss()(scores, ng.tensor([[3, 0, -1, 1]])).item(), 9)
    0.85
    """

    _: KW_ONLY
    reduction: str = "mean"


@applies(margin.multilabel_soft_margin_loss)
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
    _: KW_ONLY
    reduction: str = "mean"


@applies(margin.triplet_margin_with_distance_loss)
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
    reduction: str = "mean"

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        margin.check_margin(type(self).__name__, options["margin"])


@applies(distance.pairwise_distance)
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


@applies(distance.cosine_similarity)
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
