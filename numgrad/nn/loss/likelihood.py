"""Losses of probabilities: divergence, likelihoods of events, counts and normal variables.

Targets have gradients too. A loss whose target is a probability has ``x`` first, as the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradValueError, warn
from numgrad.nn.applied import applies
from numgrad.nn.loss.regression import (
    REDUCTIONS,
    Loss,
    _loss,
    _require_equal_shapes,
    _weighted,
    check_reduction,
    reduced,
)
from numgrad.operations.error_gamma_logistic import scipy_special, sigmoid, softplus
from numgrad.operations.shape import expand_dims
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor

LOWEST_LOG = -100.0
"""Logarithms of probabilities are not taken as smaller, so that a wrong certainty stays finite."""


SMALLEST_VARIANCE = 1e-12
"""Smallest variance of a Bernoulli variable in a denominator."""


# -------------------------------------------------------------------------------- probabilities


def _clamped(logarithm):
    return np.where(logarithm < LOWEST_LOG, LOWEST_LOG, logarithm)


@_loss(
    domain=(0.05, 0.95),
    ref=lambda x, t: (
        -(t * np.maximum(np.log(x), -100) + (1.0 - t) * np.maximum(np.log1p(-x), -100))
    ),
)
def bernoulli_error(x, target):
    """Negative log-likelihood of a probability ``x`` for a target between 0 and 1."""
    return (target - 1) * _clamped(np.log1p(-x)) - target * _clamped(np.log(x))


def _bernoulli_vjp(g, x, target):
    variance = x * (1 - x)
    return g * ((x - target) / np.where(variance < SMALLEST_VARIANCE, SMALLEST_VARIANCE, variance))


bernoulli_error.vjp(
    x=_bernoulli_vjp, target=lambda g, x: g * (_clamped(np.log1p(-x)) - _clamped(np.log(x)))
)


bernoulli_error.kink(x=([0.0, 1.0, 0.5], [-1e12, 1e12, 0]), target=([1.0, 0.0, 0.5], None))


bernoulli_error.kink(x=([0.0, 1.0], None), target=([1.0, 0.0], [100, -100]))


@_loss(ref=lambda x, t: (1.0 - t) * x + np.logaddexp(-x, 0.0))
def bernoulli_logit_error(x, target):
    """``bernoulli_error`` of ``sigmoid(x)``, without its roundings."""
    return (1 - target) * x + softplus(-x)


bernoulli_logit_error.vjp(
    x=lambda g, x, target: g * ((1 - target) - sigmoid(-x)), target=lambda g, x: -(g * x)
)


bernoulli_logit_error.kink(
    x=([800.0, -800.0, -800.0], [0, -1, 0]), target=([1.0, 1.0, 0.0], [-800, 800, 800])
)


@_loss(
    ref=lambda x, t, w: (1.0 - t) * np.logaddexp(x, 0.0) + t * w * np.logaddexp(-x, 0.0),
    smooth=True,
)
def weighted_bernoulli_logit_error(x, target, weight):
    """``bernoulli_logit_error`` in which the target 1 counts ``weight`` times."""
    return (1 - target) * x + (1 + (weight - 1) * target) * softplus(-x)


weighted_bernoulli_logit_error.vjp(
    x=lambda g, x, target, weight: g * ((1 - target) - (1 + (weight - 1) * target) * sigmoid(-x)),
    target=lambda g, x, weight: g * ((weight - 1) * softplus(-x) - x),
    weight=lambda g, x, target: g * (target * softplus(-x)),
)


@primitive(
    internal=True,
    differentiable=False,
    method=False,
    may_raise=True,
    lowering="numgrad.nn.lowerings",
)
def require_between(x, *, low, high, problem):
    """Raise, and say what the problem is, unless all elements lie between two bounds."""
    if x.size and not (x.min() >= low and x.max() <= high):
        raise NumgradValueError(f"{problem} (elements run from {x.min()} to {x.max()})")
    return np.ones((), np.bool_)


require_between.shape(lambda x, *, low, high, problem: Meta((), np.dtype(bool)))


@require_between.batch
def _require_of_all(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    return apply("broadcast_to", bind(op, (operands[0].value,), params), shape=(size,))


@_loss(domain=(0.1, 2.0), special=(0.0,), ref=lambda x, t: scipy_special("xlogy")(t, t) - t * x)
def divergence_error(x, target):
    """``target * (log(target) - x)``, 0 where the target is; ``x`` is a logarithm."""
    zero = target == 0
    return target * np.log(np.where(zero, 1, target)) - target * x


divergence_error.vjp(
    x=lambda g, target: -(g * target), target=lambda g, x, target: g * (np.log(target) + 1 - x)
)


divergence_error.kink(x=([-1.0, -2.0], [0, 0]), target=([0.0, 0.0], None))


divergence_error.kink(x=([-1.0], None), target=([0.0], [-np.inf]))


@_loss(ref=lambda x, t: np.exp(t) * (t - x), smooth=True)
def log_divergence_error(x, target):
    """``divergence_error`` of a target that is a logarithm too."""
    return np.exp(target) * (target - x)


log_divergence_error.vjp(
    x=lambda g, target: -(g * np.exp(target)),
    target=lambda g, x, target: g * (np.exp(target) * (target - x + 1)),
)


# ---------------------------------------------------------------------------------- likelihoods


@_loss(ref=lambda x, t: np.exp(x) - t * x, smooth=True)
def poisson_log_error(x, target):
    """Negative log-likelihood of a count for the logarithm ``x`` of a rate, without Stirling's."""
    return np.exp(x) - target * x


poisson_log_error.vjp(x=lambda g, x, target: g * (np.exp(x) - target), target=lambda g, x: -(g * x))


@_loss(domain=(0.2, 3.0), ref=lambda x, t, eps: x - t * np.log(x + eps), smooth=True)
def poisson_error(x, target, eps):
    """``poisson_log_error`` of ``log(x + eps)``, for a rate ``x``."""
    return x - target * np.log(x + eps)


poisson_error.vjp(
    x=lambda g, x, target, eps: g * (1 - target / (x + eps)),
    target=lambda g, x, eps: -(g * np.log(x + eps)),
)


@_loss(
    domain=(1.1, 4.0),
    special=(0.0, 1.0),
    ref=lambda x: np.where(
        x > 1, x * np.log(np.maximum(x, 1)) - x + np.log(2 * np.pi * np.maximum(x, 1)) / 2, 0
    ),
)
def stirling(x):
    """Stirling's approximation of ``log(x!)`` where ``x`` is above 1, else 0."""
    safe = np.where(x > 1, x, 1)
    return np.where(x > 1, safe * np.log(safe) - safe + 0.5 * np.log((2 * math.pi) * safe), 0)


def _stirling_vjp(g, x):
    safe = np.where(x > 1, x, 1)
    return np.where(x > 1, g * (np.log(safe) + 0.5 / safe), 0)


stirling.vjp(x=_stirling_vjp)


stirling.kink(x=([1.0, 0.0, 2.0], [0, 0, np.log(2) + 0.25]))


@_loss(
    domain=(0.3, 2.0),
    ref=lambda x, t, var, eps: (
        (np.log(np.maximum(var, eps)) + np.square(x - t) / np.maximum(var, eps)) / 2
    ),
)
def gaussian_error(x, target, var, eps):
    """Negative log-likelihood of a normal variable, without its constant.

    A variance below ``eps`` counts as ``eps``, and its gradient is the one there.
    """
    v = np.where(var < eps, eps, var)
    return 0.5 * (np.log(v) + np.square(x - target) / v)


def _gaussian_slope(x, target, var, eps):
    return (x - target) / np.where(var < eps, eps, var)


def _gaussian_vjp_var(g, x, target, var, eps):
    v = np.where(var < eps, eps, var)
    return g * (0.5 * (1 - np.square(x - target) / v) / v)


gaussian_error.vjp(
    x=lambda g, x, target, var, eps: g * _gaussian_slope(x, target, var, eps),
    target=lambda g, x, target, var, eps: g * _gaussian_slope(target, x, var, eps),
    var=_gaussian_vjp_var,
)


gaussian_error.kink(x=([1.0], [2]), target=([0.0], [-2]), var=([0.0], [-1]), eps=(0.5, None))


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of probabilities for targets between 0 and 1.

    Logarithms are not taken as smaller than -100, so that the loss is finite.

    Parameters
    ----------
    input, target
        Probabilities of the same shape.
    weight
        Factors of the losses, which broadcast; a mean is not divided by them.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If an input is no probability, or shapes differ.

    Examples
    --------
    >>> import numgrad as ng
    >>> p = ng.tensor([0.5, 0.0])
    >>> ng.nn.functional.binary_cross_entropy(p, ng.ones(2), reduction="none")
    tensor([  0.69314718, 100.        ])
    """
    check_reduction("binary_cross_entropy", reduction)
    _require_equal_shapes("binary_cross_entropy", input, target)
    require_between(
        input,
        low=0.0,
        high=1.0,
        problem="binary_cross_entropy: the input must hold probabilities; apply sigmoid first, or "
        "use binary_cross_entropy_with_logits",
    )
    return _weighted(bernoulli_error(input, target), weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(input)``, accurate for large logits.

    Parameters
    ----------
    input, target
        Logits, and targets between 0 and 1, of the same shape.
    weight
        Factors of the losses, which broadcast; a mean is not divided by them.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    pos_weight
        How much the target 1 counts, in a shape that broadcasts.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([0.0, -1000.0])
    >>> ng.nn.functional.binary_cross_entropy_with_logits(x, ng.ones(2), reduction="none")
    tensor([6.93147181e-01, 1.00000000e+03])
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction)
    _require_equal_shapes(name, input, target)
    if pos_weight is None:
        losses = bernoulli_logit_error(input, target)
    else:
        losses = weighted_bernoulli_logit_error(input, target, pos_weight)
    return _weighted(losses, weight, reduction)


def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of the distribution of the input from that of the target.

    Parameters
    ----------
    input
        Logarithms of probabilities.
    target
        Probabilities, or their logarithms with ``log_target``.
    reduction
        ``"batchmean"`` divides the sum by the length of the first axis, which is the divergence;
        ``"mean"``, the default as in PyTorch, divides by the number of elements, with a warning.
        ``"sum"`` or ``"none"`` else.
    log_target
        Whether the target holds logarithms.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_p = ng.tensor(np.log([[0.5, 0.5]]))
    >>> round(ng.nn.functional.kl_div(log_p, [[1.0, 0.0]], reduction="batchmean").item(), 9)
    0.693147181
    """
    check_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    input, target = asarray(input), asarray(target)
    if reduction == "mean":
        warn(
            "kl_div: reduction='mean' divides by the number of elements, which is no divergence; "
            "'batchmean' divides by the number of distributions",
            UserWarning,
        )
    op = log_divergence_error if log_target else divergence_error
    losses = op(input, target)
    if reduction != "batchmean":
        return reduced(losses, reduction)
    return losses.sum() / input.shape[0] if input.ndim else losses.sum()


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of counts that have a Poisson distribution.

    Parameters
    ----------
    input
        Rates, or their logarithms with ``log_input``.
    target
        Counts.
    log_input
        Whether the input holds logarithms.
    full
        Add Stirling's approximation of ``log(target!)`` where the target is above 1.
    eps
        Added to rates before their logarithm is taken.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.poisson_nll_loss(ng.tensor([0.0, 0.0]), ng.tensor([1.0, 3.0])).item()
    1.0
    """
    check_reduction("poisson_nll_loss", reduction)
    if log_input:
        losses = poisson_log_error(input, target)
    else:
        losses = poisson_error(input, target, float(eps))
    if full:
        losses = losses + stirling(target)
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of normal variables with mean ``input`` and variance ``var``.

    Parameters
    ----------
    input, target
        Means and what was observed.
    var
        Variances: a number, or an array in the shape of the input, which may lack the last axis or
        have length 1 along some.
    full
        Add the constant ``log(2 * pi) / 2``.
    eps
        Smallest variance; a smaller one counts as that, and gets the gradient there.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If a variance is negative, ``eps`` is not positive, or shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.gaussian_nll_loss(ng.zeros(2), ng.tensor([0.0, 2.0]), ng.ones(2)).item()
    1.0
    """
    name = "gaussian_nll_loss"
    check_reduction(name, reduction)
    if not eps > 0:
        raise NumgradValueError(f"{name}: eps must be positive, got {eps}")
    input = asarray(input)
    var = asarray(var, input.dtype) if isinstance(var, int | float) else asarray(var)
    shape = tuple(input.shape)
    if var.ndim and tuple(var.shape) != shape:
        if tuple(var.shape) == shape[:-1]:
            var = expand_dims(var, -1)
        elif var.ndim != len(shape) or any(
            n not in (1, m) for n, m in zip(var.shape, shape, strict=True)
        ):
            raise NumgradValueError(
                f"{name}: input of shape {shape} and variances of shape {tuple(var.shape)} do not "
                "fit; their shape is that of the input, without the last axis or with length 1 "
                "along some"
            )
    require_between(var, low=0.0, high=math.inf, problem=f"{name}: variances must not be negative")
    losses = gaussian_error(input, target, var, float(eps))
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@applies(binary_cross_entropy)
class BCELoss(Loss):
    """Negative log-likelihood of probabilities for targets between 0 and 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BCELoss()(ng.tensor([0.5]), ng.ones(1)).item()
    0.6931471805599453
    """

    weight: Any = None


@applies(binary_cross_entropy_with_logits)
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
    pos_weight: Any = None


@applies(kl_div)
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
    log_target: bool = False

    reductions = (*REDUCTIONS, "batchmean")


@applies(poisson_nll_loss)
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


@applies(gaussian_nll_loss)
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
