"""Losses as modules: see the functions in ``nn.functional`` for what they compute."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.loss import distance, functional, likelihood
from numgrad.nn.loss.functional import REDUCTIONS, check_reduction
from numgrad.nn.module.module import Module
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


class _Loss(Module):
    """What losses have in common."""

    reductions = REDUCTIONS

    def __init__(self, reduction: str) -> None:
        super().__init__()
        check_reduction(type(self).__name__, reduction, self.reductions)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with weights, which are a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Any, reduction: str) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", None if weight is None else asarray(weight))


class MSELoss(_Loss):
    """Squares of the differences.

    Parameters
    ----------
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MSELoss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    2.0
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Magnitudes of the differences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.L1Loss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    1.0
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Magnitudes of the differences, squares below ``beta``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SmoothL1Loss()(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    1.8125
    """

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squares of the differences up to ``delta``, linear above.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.HuberLoss(delta=2.0)(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    3.0625
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """Negative logarithm of the ``softmax`` of logits at the classes of a target.

    Parameters
    ----------
    weight
        One factor for each class.
    ignore_index
        A class index that counts for nothing.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    label_smoothing
        Share of each target that is spread evenly over the classes.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.CrossEntropyLoss()(ng.zeros((1, 4)), np.array([2])).item()
    1.3862943611198906
    """

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """Negative of logarithms of probabilities at class indices.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.NLLLoss()(ng.tensor([[-1.0, -2.0]]), np.array([1])).item()
    2.0
    """

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.nll_loss(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class BCELoss(_WeightedLoss):
    """Negative log-likelihood of probabilities for targets between 0 and 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BCELoss()(ng.tensor([0.5]), ng.ones(1)).item()
    0.6931471805599453
    """

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """``BCELoss`` of ``sigmoid(input)``, accurate for large logits.

    Parameters
    ----------
    weight
        Factors of the losses.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    pos_weight
        How much the target 1 counts.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BCEWithLogitsLoss()(ng.tensor([-1000.0]), ng.ones(1)).item()
    1000.0
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", None if pos_weight is None else asarray(pos_weight))

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence; ``reduction="batchmean"`` gives what mathematics calls so.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> loss = ng.nn.KLDivLoss(reduction="batchmean")
    >>> round(loss(np.log([[0.5, 0.5]]), np.array([[1.0, 0.0]])).item(), 9)
    0.693147181
    """

    reductions = (*REDUCTIONS, "batchmean")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return likelihood.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts that have a Poisson distribution.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PoissonNLLLoss()(ng.tensor([0.0, 0.0]), ng.tensor([1.0, 3.0])).item()
    1.0
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return likelihood.poisson_nll_loss(
            input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of normal variables with given means and variances.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GaussianNLLLoss()(ng.zeros(2), ng.tensor([0.0, 2.0]), ng.ones(2)).item()
    1.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        """Compute the loss."""
        return likelihood.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class CosineEmbeddingLoss(_Loss):
    """``1 - cos`` of pairs of vectors that belong together, else ``max(cos - margin, 0)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[3.0, 4.0]])
    >>> round(ng.nn.CosineEmbeddingLoss()(x, ng.tensor([[3.0, 0.0]]), ng.ones(1)).item(), 9)
    0.4
    """

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        """Compute the loss."""
        return distance.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """How much the positive is not nearer to the anchor than the negative by a margin.

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

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        if not margin > 0:
            raise NumgradValueError(f"TripletMarginLoss: margin must be positive, got {margin}")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        """Compute the loss."""
        return distance.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )
