"""Losses as modules: see the functions in ``nn.functional`` for what they compute."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, applies
from numgrad.nn.loss import ctc, distance, likelihood
from numgrad.nn.loss import functional as F
from numgrad.nn.loss.functional import REDUCTIONS, check_reduction
from numgrad.tensors.creation import asarray


class Loss(Applied):
    """What losses have in common; weights are buffers."""

    reductions = REDUCTIONS
    shown = ()

    def _set_up(self, options: dict[str, Any]) -> None:
        weights = {name: options.pop(name) for name in ("weight", "pos_weight") if name in options}
        super()._set_up(options)
        for name, weight in weights.items():
            self.register_buffer(name, None if weight is None else asarray(weight))

    def _check_options(self, options: dict[str, Any]) -> None:
        check_reduction(type(self).__name__, options["reduction"], self.reductions)


@applies(F.mse_loss)
class MSELoss(Loss):
    """Squares of the differences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.MSELoss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    2.0
    """

    _: KW_ONLY
    reduction: str = "mean"


@applies(F.l1_loss, like=F.mse_loss)
class L1Loss(Loss):
    """Magnitudes of the differences.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.L1Loss()(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 4.0])).item()
    1.0
    """

    _: KW_ONLY
    reduction: str = "mean"


@applies(F.smooth_l1_loss)
class SmoothL1Loss(Loss):
    """Magnitudes of the differences, squares below ``beta``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SmoothL1Loss()(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    1.8125
    """

    _: KW_ONLY
    reduction: str = "mean"
    beta: float = option(default=1.0, at_least=0, doc="Where squares end.")


@applies(F.huber_loss)
class HuberLoss(Loss):
    """Half the squares of the differences up to ``delta``, linear above.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.HuberLoss(delta=2.0)(ng.tensor([0.5, 4.0]), ng.zeros(2)).item()
    3.0625
    """

    reduction: str = "mean"
    delta: float = option(default=1.0, above=0, doc="Where squares end.")


@applies(F.cross_entropy)
class CrossEntropyLoss(Loss):
    """Negative logarithm of the ``softmax`` of logits at the classes of a target.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.CrossEntropyLoss()(ng.zeros((1, 4)), np.array([2])).item()
    1.3862943611198906
    """

    weight: Any = None
    _: KW_ONLY
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = option(default=0.0, at_least=0, at_most=1)


@applies(F.nll_loss, like=F.cross_entropy)
class NLLLoss(Loss):
    """Negative of logarithms of probabilities at class indices.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.NLLLoss()(ng.tensor([[-1.0, -2.0]]), np.array([1])).item()
    2.0
    """

    weight: Any = None
    _: KW_ONLY
    ignore_index: int = -100
    reduction: str = "mean"


@applies(F.binary_cross_entropy)
class BCELoss(Loss):
    """Negative log-likelihood of probabilities for targets between 0 and 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BCELoss()(ng.tensor([0.5]), ng.ones(1)).item()
    0.6931471805599453
    """

    weight: Any = None
    _: KW_ONLY
    reduction: str = "mean"


@applies(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(Loss):
    """``BCELoss`` of ``sigmoid(input)``, accurate for large logits.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BCEWithLogitsLoss()(ng.tensor([-1000.0]), ng.ones(1)).item()
    1000.0
    """

    weight: Any = None
    _: KW_ONLY
    reduction: str = "mean"
    pos_weight: Any = None


@applies(likelihood.kl_div)
class KLDivLoss(Loss):
    """Kullback-Leibler divergence; ``reduction="batchmean"`` gives what mathematics calls so.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> loss = ng.nn.KLDivLoss(reduction="batchmean")
    >>> round(loss(np.log([[0.5, 0.5]]), np.array([[1.0, 0.0]])).item(), 9)
    0.693147181
    """

    _: KW_ONLY
    reduction: str = "mean"
    log_target: bool = False

    reductions = (*REDUCTIONS, "batchmean")


@applies(likelihood.poisson_nll_loss)
class PoissonNLLLoss(Loss):
    """Negative log-likelihood of counts that have a Poisson distribution.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PoissonNLLLoss()(ng.tensor([0.0, 0.0]), ng.tensor([1.0, 3.0])).item()
    1.0
    """

    log_input: bool = True
    full: bool = False
    _: KW_ONLY
    eps: float = 1e-8
    reduction: str = "mean"


@applies(likelihood.gaussian_nll_loss)
class GaussianNLLLoss(Loss):
    """Negative log-likelihood of normal variables with given means and variances.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GaussianNLLLoss()(ng.zeros(2), ng.tensor([0.0, 2.0]), ng.ones(2)).item()
    1.0
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@applies(distance.cosine_embedding_loss)
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
    _: KW_ONLY
    reduction: str = "mean"


@applies(distance.triplet_margin_loss)
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
    _: KW_ONLY
    reduction: str = "mean"

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        margin = options["margin"]
        if not margin > 0:
            raise NumgradValueError(f"TripletMarginLoss: margin must be positive, got {margin}")


@applies(ctc.ctc_loss)
class CTCLoss(Loss):
    """Negative log-likelihood of labels, summed over all times at which they may be.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_probs = ng.tensor(np.log(np.full((2, 1, 2), 0.5)))
    >>> round(ng.nn.CTCLoss()(log_probs, np.array([[1]]), [2], [1]).item(), 9)
    0.287682072
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
